#!/usr/bin/env python3
"""Écrit la page où lire un journal d'eval_cv.py : les résumés côte à côte, leurs notes, leurs
justifications, et la cause de chaque notation impossible. N'appelle jamais l'API.

    python outils/page.py                               le journal le plus récent de resultats/
    python outils/page.py resultats/2026-11-30….jsonl   celui-là

Tout ce qui vient d'un CV, d'un prompt ou d'un modèle y est échappé : rien ne peut s'y exécuter.
"""

import argparse
import html
import os
import re
import sys
from functools import partial
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import GOALS, HIGHEST, LOWEST, Arret, mark_text

SHOWN = 300  # au-delà, la page ne montre que les CV dont l'écart est le plus grand
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --paper: #fff; --up: #0a6b4b;
  --down: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --soft: #a3adb8; --paper: #14171b;
  --up: #5fd3a5; --down: #ff8f86 } }
body { max-width: 66rem; margin: auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper) }
h1 { font-size: 1.4rem } h2 { margin-top: 2.5rem }
h3 { border-top: 1px solid var(--soft); padding-top: 1rem } .soft, figcaption { color: var(--soft) }
.side { display: flex; flex-wrap: wrap; gap: 1.5rem } .side > div { flex: 1 1 18rem; min-width: 0 }
figure { margin: 0; width: min(11rem, 42%) } svg { width: 100%; font-size: 12px; fill: var(--ink) }
svg path { stroke: var(--soft); opacity: .5 } svg line { stroke: var(--soft); stroke-width: 1.5 }
svg .up { stroke: var(--up) } svg .down { stroke: var(--down); stroke-dasharray: 5 3 }
svg .mean { stroke: var(--ink); stroke-width: 6; opacity: .35 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .5rem 0 }
@media print { :root { --ink: #000; --soft: #444; --paper: #fff; --up: #000; --down: #000 }
  body { max-width: none } article { break-inside: avoid } }
"""


def newest_journal():
    """Le dernier journal écrit dans resultats/ ; lève `Arret` s'il n'y en a pas."""
    journals = sorted(Path("resultats").glob("*.jsonl"), key=os.path.getmtime)
    if not journals:
        raise Arret("resultats/ : aucun journal, lancez eval_cv.py ou indiquez-en un")
    return journals[-1]


def recall(journal, params, version, passage):
    """Prend la place de `ask`, d'après le seul journal."""
    nothing = {"cause": "pas encore demandé"}
    return eval_cv.as_message(journal.get(eval_cv.call_key(params, version, passage), nothing))


def reread(path):
    """Ce qu'un journal a exécuté (voir `eval_cv.open_journal`), et ses {version: passages}."""
    journal = eval_cv.load_journal(path)
    run = journal["settings"]["run"]
    grid = [journal["settings"].get(key) for key in ("grader", "schema")]
    if grid != [eval_cv.PROMPT_GRADER, eval_cv.SCHEMA_NOTES]:
        raise Arret(f"{path} : la grille a changé, faites-le renoter par eval_cv.py --reprendre")
    return run, eval_cv.run_versions(**run, ask=partial(recall, journal))


def french(text):
    """Une de nos phrases pour la page : échappée, virgules décimales, espaces insécables."""
    text = html.escape(re.sub(r"(?<=\d)\.(?=\d)", ",", str(text)))
    return re.sub(r" (?=[:;!?»%×→])|(?<=«) ", "\u00a0", text)


def panel(name, first, second, pairs):
    """Un critère en image : un trait par CV, d'une version à l'autre, et celui de la moyenne."""

    def line(kind, a, b):
        y1, y2 = (150 - 140 * (mark - LOWEST) / (HIGHEST - LOWEST) for mark in (a, b))
        return f'<line class="{kind}" x1="30" y1="{y1:.1f}" x2="140" y2="{y2:.1f}"/>'

    a, b = (round(fmean(side), 2) for side in zip(*pairs))
    trends = ["up" if b > a else "down" if b < a else "flat" for a, b in pairs]
    up, down, flat = (trends.count(trend) for trend in ("up", "down", "flat"))
    moves = f"en hausse : {up}, en baisse : {down}, stables : {flat}"
    legend = french(f"{a:.2f} → {b:.2f} ({b - a:+.2f}) ; CV {moves}")
    lines = [line(trend, *pair) for trend, pair in zip(trends[:SHOWN], pairs)]
    return f"""<figure><svg viewBox="0 0 170 175" role="img" aria-label="{french(name)} : {legend}">
<path d="M30 10V150M140 10V150"/><text x="24" y="14" text-anchor="end">{HIGHEST}</text>
<text x="24" y="154" text-anchor="end">{LOWEST}</text>{line("mean", a, b)}{"".join(lines)}
<text x="30" y="170" text-anchor="middle">{first}</text>
<text x="140" y="170" text-anchor="middle">{second}</text>
</svg><figcaption><b>{french(name)}</b><br>{legend}</figcaption></figure>"""


def comparison_section(first, second, before, after):
    """Une comparaison : une image par critère, et ce qu'on en conclut."""
    comparison = eval_cv.compare(before, after)
    yield f"<h2>{french(f'{first} → {second}')}</h2>"
    if not comparison["cases"]:
        yield f"<p>{french('Aucun CV noté dans les deux versions : rien à conclure.')}</p>"
        return
    for sentence in eval_cv.comparison_lines(first, second, comparison)[-2:]:
        yield f"<p>{french(sentence)}</p>"
    pairs = [pair for pair in zip(*map(eval_cv.case_means, (before, after))) if all(pair)]
    panels = [panel(c, first, second, [(a[c], b[c]) for a, b in pairs]) for c in GOALS]
    note = "Un trait par CV, en tirets si la note baisse ; le trait large est la moyenne."
    yield f'<div class="side">{"".join(panels)}</div><p class="soft">{french(note)}</p>'


def case_section(number, case, results):
    """Un CV, replié, puis ses versions côte à côte, un passage sous l'autre."""
    cv, focus = html.escape(case["input"]), html.escape(case["expected_focus"])
    yield f"<h3>CV n° {number}</h3><details><summary>Le CV</summary><pre>{cv}</pre></details>"
    yield f'<p class="soft">{french("Informations attendues : ")}{focus}</p><div class="side">'
    for version, passes in results.items():
        yield f"<div><h4>{version}</h4>"
        for n, one_pass in enumerate(passes, 1):
            result = one_pass[number - 1]
            marks, why = "Pas de note", result.get("cause", "")
            if notes := result["notes"]:
                marks = " · ".join(f"{name} {notes[name]:g}" for name in GOALS)
                why = notes["justification"]
            yield f'<article><p class="soft">Passage {n}</p>'
            yield f"<pre>{html.escape(result['summary'] or '')}</pre>"
            yield f"<p><b>{french(marks)}</b><br>{html.escape(why)}</p></article>"
        yield "</div>"
    yield "</div>"


def page(run, results):
    """Rend par morceaux une page HTML autonome."""
    first, *others = results
    reports = {version: eval_cv.report_of(passes) for version, passes in results.items()}
    means = {version: f"{version} : {mark_text(r['average'])}" for version, r in reports.items()}
    title = french(f"{' → '.join(means.values())}, sur {HIGHEST}")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    yield f"""<!doctype html><html lang="fr"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style>
<h1>{title}</h1>
<p class="soft">{html.escape(f"Résumés : {run['model']} ; notes : {run['judge']}.")}</p>"""
    for other in others:
        yield from comparison_section(first, other, results[first], results[other])
    yield "<h2>Les versions</h2>"
    for (version, report), prompt in zip(reports.items(), run["prompts"]):
        passes = " ; ".join(map(mark_text, report["by_pass"]))
        yield f"<h3>{version}</h3><p>{french(f'Moyenne de chaque passage : {passes}')}</p>"
        yield f"<pre>{french(eval_cv.headline(report))}</pre>"
        yield f"<details><summary>Le prompt</summary><pre>{html.escape(prompt)}</pre></details>"
    grid = [f"<li>{french(f'{name} : {text}')}</li>" for name, text in eval_cv.CRITERIA.items()]
    yield f"<p>La grille :</p><ul>{''.join(grid)}</ul><h2>CV par CV</h2>"
    gaps = dict.fromkeys(range(len(run["cases"])), 0.0)
    for other in others:
        by_case = eval_cv.compare(results[first], results[other])["by_case"]
        gaps |= {i: abs(b - a) for i, (a, b) in enumerate(by_case) if None not in (a, b)}
    if len(gaps) > SHOWN:
        yield f"<p>{french(f'Les {SHOWN} plus grands écarts, sur {len(gaps)} CV.')}</p>"
    for i in sorted(sorted(gaps, key=gaps.get, reverse=True)[:SHOWN]):
        yield from case_section(i + 1, run["cases"][i], results)


def run(argv):
    parser = argparse.ArgumentParser(description="Écrit la page où lire un journal d'eval_cv.py.")
    parser.error = eval_cv.refuse
    parser.add_argument("journal", nargs="?", help="le plus récent de resultats/, par défaut")
    path = Path(parser.parse_args(argv).journal or newest_journal())
    pieces = page(*reread(path))
    target = path.with_suffix(".html")
    with target.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
    print(f"Page à lire : {target}")
    return 0


if __name__ == "__main__":
    os._exit(eval_cv.main(run))
