#!/usr/bin/env python3
"""Fait la page où lire une évaluation, d'après son journal : les comparaisons, le tableau de tous
les cas, les résumés côte à côte avec leurs notes, et la cause de chaque notation impossible.

    python3 outils/page.py            la page du dernier journal de resultats/ qui a une réponse
    python3 outils/page.py JOURNAL    la page de ce journal

La page, un fichier HTML, est écrite à côté du journal, sous le même nom. Elle contient les CV : ne
la publiez pas. Rien de ce qui vient d'un CV, d'un prompt ou d'un modèle ne peut s'y exécuter.
Ce script n'appelle jamais l'API.

  -h, --help   cette aide

Codes de sortie : 0, la page est écrite ; 2, une commande ou un fichier est incorrect ; 130, le
programme a été interrompu.
"""

import html
import os
import re
import shutil
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import CHECKS, CRITERIA, HIGHEST, LOWEST, MEASURES, Arret, mark_text, system_errors

MIDDLE = (LOWEST + HIGHEST) / 2
DEMONSTRATION = "une démonstration, où aucun modèle n'a rien résumé ni noté"
INTRODUCTION = (
    "Chaque prompt (V1, V2…) sert à résumer les mêmes cas, et un modèle, le juge, note chaque "
    "résumé. Un passage résume et note une fois chaque cas."
)
HOW_TO_READ = (
    "Seuls les cas notés dans les deux versions sont comparés ; l'intervalle, s'il y en a un, "
    "réunit les écarts moyens compatibles avec ces cas. Ci-dessous, chaque cas est un trait, qui "
    "va de sa note en V1 à sa note dans l'autre version : vert si la note monte, rouge et en "
    "pointillé si elle baisse, gris si elle ne change pas ; le trait large est celui de la moyenne "
    "des cas."
)
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --paper: #fff; --up: #0a6b4b;
  --down: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --soft: #a3adb8; --paper: #14171b;
  --up: #5fd3a5; --down: #ff8f86 } }
body { max-width: 66rem; margin: auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
h1 { font-size: 1.4rem } h2 { margin-top: 2.5rem }
h3 { border-top: 1px solid var(--soft); padding-top: 1rem } .soft, figcaption { color: var(--soft) }
.side { display: flex; flex-wrap: wrap; gap: 1.5rem } .side > div { flex: 1 1 18rem; min-width: 0 }
pre { white-space: pre-wrap; font: inherit; margin: .5rem 0 }
.scroll { overflow-x: auto; overflow-wrap: normal } table { border-collapse: collapse;
  font-size: .9rem }
th, td { padding: .2rem .3rem; text-align: right; border-bottom: 1px solid var(--soft) }
td { white-space: nowrap; font-variant-numeric: tabular-nums }
figure { margin: 0; width: min(11rem, 42%) } svg { width: 100%; font-size: 12px; fill: var(--ink) }
svg path { stroke: var(--soft); opacity: .5 } svg line { stroke: var(--soft); stroke-width: 1.5 }
svg .up { stroke: var(--up) } svg .down { stroke: var(--down); stroke-dasharray: 5 3 }
svg .mean { stroke: var(--ink); stroke-width: 6; opacity: .35 }
@media print { :root { --ink: #000; --soft: #444; --paper: #fff; --up: #000; --down: #000 }
  body { max-width: none } article, figure, tr { break-inside: avoid }
  h4 { break-after: avoid } figure { width: 21% } }
"""


def newest_journal():
    """Le chemin du journal de resultats/ modifié le plus récemment, parmi ceux qui contiennent une
    réponse ; lève `Arret` s'il n'y en a pas."""
    journals = [path for path in Path("resultats").glob("*.jsonl") if path.is_file()]
    for path in sorted(journals, key=os.path.getmtime, reverse=True):
        with system_errors(path):
            content = path.read_bytes()
        if b'"message":' in content:  # la clé d'une réponse ; dans un texte, elle est échappée
            return path
    raise Arret(
        "resultats/ : aucun journal n'y contient de réponse ; allez dans le dossier d'où vous avez "
        "lancé eval_cv.py, ou donnez le chemin d'un journal"
    )


def read_evaluation(chosen):
    """Un journal (voir `eval_cv.Journal`), celui de `newest_journal` si `chosen` est None, et ses
    résultats, {"V1": passages, …} ; lève `Arret` si ses notes viennent d'une autre grille."""
    path = newest_journal() if chosen is None else Path(chosen)
    journal = eval_cv.load_journal(path)
    if journal.grid != eval_cv.GRID:
        raise Arret(
            f"{path} : la grille d'eval_cv.py n'est pas celle de la dernière évaluation de ce "
            "journal ; remettez celle-ci, ou reprenez le journal (seules seront payées les notes "
            "que le journal n'a pas encore pour la grille actuelle) : "
            f'"{sys.executable}" "{eval_cv.__file__}" --reprendre "{path}"'
        )
    if chosen is None and journal.plan["model"] == eval_cv.DEMO:
        eval_cv.tell(f"{path} est {DEMONSTRATION}")
    return journal, eval_cv.reread(journal)


# --- Le texte

TO_REPLACE = (  # dans une phrase tapée au clavier, les caractères que FRENCH remplace
    r" (?=[:;!?»%×→])|(?<=[«°]) "  # les espaces de « V1 : » et de « n° 3 »
    r"|(?<=\d) (?=(?:cas|mots|points|tokens|notes)\b)"  # celle de 12 cas
    r"|(?<=\d)\.(?=\d)"  # le point de 7.5
    r"|(?<![\w-])-(?=\d)"  # le tiret de -0.5
    r"|(?<=\w)'(?=\w)"  # l'apostrophe
)
FRENCH = {" ": "\u00a0", ".": ",", "-": "−", "'": "’"}


def french(text, *quoted):
    """Une de nos phrases, échappée, dans la typographie du français (voir FRENCH), sauf dans ce
    qu'elle cite : ce qui est entre guillemets, et `quoted` (le nom d'un modèle, d'un fichier).
    Ainsi french("de -0.5 à 2.5, par m-1.5", "m-1.5") rend "de −0,5 à 2,5, par m-1.5"."""
    names = map(re.escape, filter(None, quoted))  # un nom vide serait trouvé partout
    citation = "|".join([*names, "(?<=« ).*?(?= »)"])  # sans les guillemets ni leurs espaces
    pieces = re.split(f"({citation})", text)  # le groupe garde les citations, aux places impaires
    for place in range(0, len(pieces), 2):
        pieces[place] = re.sub(TO_REPLACE, lambda found: FRENCH[found[0]], pieces[place])
    return html.escape("".join(pieces))


def folded(title, text):
    """Un long texte, un CV ou un prompt, que l'on déplie."""
    return f"<details><summary>{title}</summary><pre>{html.escape(text)}</pre></details>"


# --- Les comparaisons


def gap_between(before, after):
    """L'écart de deux notes telles qu'on les affiche, à 2 décimales."""
    return round(round(after, 2) - round(before, 2), 2)


def trend(kind, before, after):
    """Le trait qui va d'une note à l'autre : 150 est le bas de l'échelle, 10 en est le haut."""
    scale = 140 / (HIGHEST - LOWEST)
    y1 = 150 - scale * (before - LOWEST)
    y2 = 150 - scale * (after - LOWEST)
    return f'<line class="{kind}" x1="30" y1="{y1:.1f}" x2="140" y2="{y2:.1f}"/>'


def panel(name, second, pairs, old_mean, new_mean):
    """Une mesure en image : un trait par cas, de V1 à une autre version, et celui de la moyenne.
    `pairs` : les notes de chaque cas noté dans les deux, [(6.0, 8.0), …]."""
    gaps = [gap_between(before, after) for before, after in pairs]
    kinds = ["up" if gap > 0 else "down" if gap < 0 else "flat" for gap in gaps]
    lines = [trend(kind, before, after) for kind, (before, after) in zip(kinds, pairs)]
    lines.append(trend("mean", old_mean, new_mean))
    change = gap_between(old_mean, new_mean)
    legend = french(
        f"{old_mean:.2f} → {new_mean:.2f} ({change:+.2f}) ; cas en hausse : {kinds.count('up')}, "
        f"en baisse : {kinds.count('down')}, stables : {kinds.count('flat')}"
    )
    return f"""<figure><svg viewBox="0 0 170 175" role="img" aria-label="{french(name)} : {legend}">
<path d="M30 10V150M140 10V150"/><text x="24" y="14" text-anchor="end">{HIGHEST}</text>
<text x="24" y="154" text-anchor="end">{LOWEST}</text>{"".join(lines)}
<text x="30" y="170" text-anchor="middle">V1</text>
<text x="140" y="170" text-anchor="middle">{second}</text>
</svg><figcaption><b>{french(name)}</b><br>{legend}</figcaption></figure>"""


def comparison_section(second, results):
    """La comparaison d'une version à V1 : ce qu'on en conclut, et une image par mesure."""
    comparison = eval_cv.compare(results["V1"], results[second])
    sentences = [eval_cv.verdict("V1", second, comparison)]
    panels = []
    if comparison["cases"]:
        sentences.append(eval_cv.goal_sentence(comparison))
        sentences.append(eval_cv.beyond_sentence("V1", second, comparison))
        sentences.append(HOW_TO_READ)
        means = zip(eval_cv.case_means(results["V1"]), eval_cv.case_means(results[second]))
        common = [(old, new) for old, new in means if old and new]
        for name, old_mean in comparison["before"].items():
            pairs = [(old[name], new[name]) for old, new in common]
            new_mean = comparison["after"][name]
            panels.append(panel(name, second, pairs, old_mean, new_mean))
    text = "".join(f"<p>{french(sentence)}</p>" for sentence in sentences)
    title = french(f"V1 → {second}")
    return f'<h2>{title}</h2>{text}<div class="side">{"".join(panels)}</div>'


# --- Le tableau de tous les cas


@dataclass
class CaseRow:
    """Un cas de la page : ce qu'en montrent le tableau et le détail."""

    case_number: int
    case: dict  # {"input": "le CV", "expected_focus": …}
    results: dict  # {"V1": [un résultat par passage, voir `eval_cv.run_test_case`], "V2": …}
    marks: dict  # {"V1": 6.0, "V2": 5.5} : ses moyennes ; une version sans note n'y est pas
    gaps: dict  # {"V2": -0.5} : leurs écarts à celle de V1


def case_rows(results):
    """Une ligne par cas, dans l'ordre des cas."""
    means = {version: eval_cv.case_means(passes) for version, passes in results.items()}
    rows = []
    for place, result in enumerate(results["V1"][0]):
        of_case = {v: [one_pass[place] for one_pass in passes] for v, passes in results.items()}
        marks = {v: means[v][place]["moyenne"] for v in results if means[v][place]}
        gaps = {}
        if "V1" in marks:
            gaps = {v: gap_between(marks["V1"], marks[v]) for v in marks if v != "V1"}
        rows.append(CaseRow(place + 1, result["case"], of_case, marks, gaps))
    return rows


def rank(row):
    """La clé de tri du tableau : les cas comparés, de la plus forte baisse à la plus forte hausse,
    puis ceux dont l'écart manque, par note, puis ceux qui n'ont pas de note."""
    if row.gaps:
        return 0, min(row.gaps.values())
    if row.marks:
        return 1, min(row.marks.values())
    return 2, 0


def disagreement(result):
    """La phrase qui dit que le juge et les contrôles par code se contredisent sur un résumé ; s'ils
    s'accordent, un texte vide."""
    if not result["notes"] or not result["checks"]:
        return ""
    mean = result["notes"]["moyenne"]
    passed = all(result["checks"].values())
    if mean > MIDDLE and not passed:
        return f"Désaccord : la moyenne dépasse {MIDDLE:g}, mais le résumé échoue à un contrôle."
    if mean < MIDDLE and passed:
        return (
            f"Désaccord : la moyenne est inférieure à {MIDDLE:g}, mais le résumé satisfait aux "
            "contrôles."
        )
    return ""


def cells(values, form):
    """Des cases de tableau : une note, un écart ou un compte ; un tiret s'il n'y en a pas."""
    texts = ["–" if value is None else french(format(value, form)) for value in values]
    return "".join(f"<td>{text}</td>" for text in texts)


def cases_table(versions, rows):
    """Le tableau de tous les cas ; le numéro de chacun mène à son détail."""
    headers = ["cas", *versions, *[f"{second} − V1" for second in versions[1:]]]
    order = (
        "Les plus grandes baisses d'abord"
        if len(versions) > 1
        else "Les notes les plus basses d'abord"
    )
    legend = f"{order} ; un tiret remplace une note ou un écart qui manque."
    if CHECKS:
        headers.append("juge ≠ code")
        legend += (
            " La colonne « juge ≠ code » compte les résumés que le juge note au-dessus de "
            f"{MIDDLE:g} alors qu'ils échouent à un contrôle par code, ou au-dessous de {MIDDLE:g} "
            "alors qu'ils satisfont à tous les contrôles."
        )
    lines = []
    for row in rows:
        link = f'<a href="#cas-{row.case_number}">{row.case_number}</a>'
        line = cells([row.marks.get(version) for version in versions], ".2f")
        line += cells([row.gaps.get(second) for second in versions[1:]], "+.2f")
        if CHECKS:
            every_result = chain(*row.results.values())
            line += cells([sum(disagreement(result) != "" for result in every_result)], "d")
        lines.append(f'<tr><th scope="row">{link}</th>{line}</tr>')
    heads = "".join(f'<th scope="col">{header}</th>' for header in headers)
    return f"""<h2 id="cas">Tous les cas</h2><p class="soft">{french(legend)}</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="cas"><table>
<thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>"""


# --- Les versions, et chaque cas


def version_section(label, report, prompt):
    """Le bilan d'une version, et son prompt ; `label` est déjà du HTML."""
    passes = " ; ".join(map(mark_text, report["by_pass"]))
    text = f"{eval_cv.headline(report)}\nMoyenne de chaque passage : {passes}"
    shares = [f"{name}, {n} sur {total}" for name, (n, total) in report["checks"].items()]
    if shares:
        whose = "contrôles par code (faits par un programme, non par le juge)"
        text += f"\nRésumés qui satisfont aux {whose} : {' ; '.join(shares)}"
    return f"<h3>{label}</h3><pre>{french(text)}</pre>{folded('Le prompt', prompt)}"


def grading(passage, result):
    """Les notes d'un passage et leur justification, ou pourquoi il n'y en a pas."""
    notes = result["notes"]
    why = []
    if notes:
        marks = " · ".join(f"{name}\u00a0{notes[name]:g}" for name in MEASURES)
        why.append(html.escape(notes["justification"]))
    elif "cause" in result:
        marks = "pas de note"
        why.append(french(result["cause"]))
    elif result["summary"] is None:
        marks = "résumé pas encore demandé"
    else:
        marks = "note pas encore demandée"
    contradiction = disagreement(result)
    if contradiction:
        why.append(f"<b>{french(contradiction)}</b>")
    heading = french(f"Passage {passage} : {marks}")
    return f"<p>{'<br>'.join([f'<b>{heading}</b>', *why])}</p>"


def summaries(case_results):
    """Les résumés d'un cas par une version, un résultat par passage : chaque texte une seule fois,
    avec ce qu'en dit le code et les notes de chaque passage."""
    groups = {}  # {résumé: [(numéro de passage, résultat), …]}
    for passage, result in enumerate(case_results, 1):
        groups.setdefault(result["summary"], []).append((passage, result))
    articles = []
    for summary, group in groups.items():
        text = ""
        if summary is not None:
            text += f"<pre>{html.escape(summary)}</pre>"
            checks = group[0][1]["checks"]  # les mêmes pour tout le groupe
            outcomes = [f"{name}, {'oui' if checks[name] else 'non'}" for name in checks]
            if outcomes:
                text += f"<p>{french('Contrôles par code : ' + ' ; '.join(outcomes))}</p>"
        for passage, result in group:
            text += grading(passage, result)
        articles.append(f"<article>{text}</article>")
    return "".join(articles)


def case_section(row):
    """Un cas : son CV, replié, ce qu'on en attend, puis les résumés de chaque version."""
    columns = []
    for version, case_results in row.results.items():
        columns.append(f"<div><h4>{version}</h4>{summaries(case_results)}</div>")
    title = french(f"Cas n° {row.case_number}")
    case_text = folded("Le texte du cas", row.case["input"])
    return f"""<h3 id="cas-{row.case_number}">{title}</h3>{case_text}
<p class="soft">{french("Informations attendues : ")}{html.escape(row.case["expected_focus"])}</p>
<div class="side">{"".join(columns)}</div><p><a href="#cas">Retour au tableau</a></p>"""


def page_of(journal, results):
    """La page entière, en HTML : elle n'a besoin d'aucun autre fichier."""
    plan = journal.plan
    reports = {version: eval_cv.report_of(passes) for version, passes in results.items()}
    scores = [f"{version}\u00a0{mark_text(r['average'])}" for version, r in reports.items()]
    title = french(f"Évaluation de prompts, moyennes sur {HIGHEST} : {' ; '.join(scores)}")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = f"""<!doctype html><html lang="fr"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style>
<h1>{title}</h1>"""
    parts = [head, f"<p>{french(INTRODUCTION)}</p>"]
    if plan["model"] == eval_cv.DEMO:
        parts.append(f"<p><b>{french(f'Mais ceci est {DEMONSTRATION}.')}</b></p>")
    models = [plan["model"], plan["judge"], *journal.served, *chain(*journal.served.values())]
    for line in eval_cv.context_lines(journal):
        parts.append(f'<p class="soft">{french(line, *models)}</p>')
    name = journal.path.name
    text = f"Cas : {len(plan['cases'])} ; passages : {plan['passages']} ; journal : {name}"
    parts.append(f'<p class="soft">{french(text, name)}</p>')
    versions = list(results)
    for second in versions[1:]:
        parts.append(comparison_section(second, results))
    rows = case_rows(results)
    parts.append(cases_table(versions, sorted(rows, key=rank)))
    parts.append("<h2>Les versions</h2>")
    labels = eval_cv.labels(plan)
    for (version, report), prompt in zip(reports.items(), plan["prompts"]):
        parts.append(version_section(french(labels[version], *plan["names"]), report, prompt))
    grid = [f"<li>{french(f'{name} : {text}')}</li>" for name, text in CRITERIA.items()]
    parts.append(f"<h2>La grille du juge</h2><ul>{''.join(grid)}</ul><h2>Cas par cas</h2>")
    for row in rows:
        parts.append(case_section(row))
    return "\n".join(parts)


def command(argv):
    """Écrit la page d'un journal ; rend le code de sortie."""
    parser = eval_cv.parser_for(argv)
    parser.add_argument("journal", nargs="?", default=None)
    journal, results = read_evaluation(parser.parse_args(argv).journal)
    content = page_of(journal, results)
    path = journal.path
    target = path.with_suffix(".html")
    if path.suffix.lower() == ".html":
        raise Arret(f"{path} : la page prendrait ce nom, renommez le journal en .jsonl")
    draft = target.with_suffix(".html.tmp")  # la page précédente reste entière jusqu'au bout
    with system_errors(draft):
        draft.touch(0o600)  # lisible de vous seul, jusqu'à recevoir les droits du journal
        draft.write_text(content, encoding="utf-8", errors="replace")  # pour les emojis coupés
        shutil.copymode(path, draft)  # celui qui ne peut pas lire le journal ne lit pas la page
    with system_errors(target):
        os.replace(draft, target)
    eval_cv.display(f"Page à ouvrir dans un navigateur : {target}")
    return 0


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
