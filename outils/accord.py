#!/usr/bin/env python3
"""Le juge note-t-il comme vous ? Compare ses notes aux vôtres, d'après un journal d'eval_cv.py.

    python outils/accord.py resultats/….jsonl --exporter a_noter.csv   vingt résumés à noter
    python outils/accord.py resultats/….jsonl a_noter.csv              la feuille une fois remplie

N'appelle jamais l'API.
"""

import argparse
import csv
import io
import json
import math
import os
import random
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean, stdev

from page import reread  # page.py sait où trouver eval_cv

import eval_cv
from eval_cv import CRITERIA, GOALS, HIGHEST, LOWEST, Arret

HEADER = ["numero", "cv", "attendu", "resume", *CRITERIA]
COLUMNS = {"n": "n", "human": "vous", "judge": "juge", "bias": "biais"}
COLUMNS |= {"standard_error": "err.type", "p_value": "p", "absolute_gap": "|écart|"}
COLUMNS |= {"within_one": "à 1 près", "kappa": "kappa"}


def key_of(row):
    """Un CV et son résumé, sans les espaces ni les tabulations, qu'un tableur peut perdre."""
    return tuple("".join(row[name].replace("\u200b", "").split()) for name in ("cv", "resume"))


def graded(path):
    """Les résumés notés par le juge, sans doublon : {clé: {"version": "V1", "cv": "…", "attendu":
    "…", "resume": "…", "judge": ses notes}, …}."""
    found = {}
    for version, passes in reread(path)[1].items():
        for result in (result for result in chain(*passes) if result["notes"]):
            row = {"version": version, "cv": result["case"]["input"], "judge": result["notes"]}
            row |= {"attendu": result["case"]["expected_focus"], "resume": result["summary"]}
            row["judge"]["moyenne"] = fmean(row["judge"][name] for name in CRITERIA)  # sans arrondi
            found.setdefault(key_of(row), row)
    return found


def export(path, found, n):
    """Tire n résumés (graine fixe), autant que possible de chaque version, et écrit la feuille à
    remplir, sans jamais en écraser une : ni version ni note, et dans un ordre qui ne dit rien."""
    rng, versions = random.Random(0), {}
    for row in rng.sample(list(found.values()), len(found)):
        versions.setdefault(row["version"], []).append(row)
    drawn = [row for turn in zip_longest(*versions.values()) for row in turn if row][:n]
    with open(path, "x", encoding="utf-8-sig", errors="replace", newline="") as file:
        sheet = csv.writer(file, delimiter=";")
        sheet.writerow(HEADER)
        for number, row in enumerate(rng.sample(drawn, len(drawn)), 1):
            texts = [row[name] for name in HEADER[1:4]]  # sans que le tableur y voie une formule
            texts = ["\u200b" + text if text.lstrip()[:1] in "=+-@" else text for text in texts]
            sheet.writerow([number, *texts, *("" for _ in CRITERIA)])
    print(f"{path} : {len(drawn)} résumés différents à noter de {LOWEST} à {HIGHEST}.")


def read_sheet(path, found):
    """Rend les lignes notées, avec leur "numero" et vos notes, "human", et le nombre des autres."""
    try:
        text, marked = Path(path).read_text(encoding="utf-8-sig"), []
        separator = ";" if ";" in text.split("\n")[0] else ","
        sheet = csv.DictReader(io.StringIO(text), delimiter=separator, restval="")
        rows = list(sheet)
    except (ValueError, csv.Error) as error:
        raise Arret(f"{path} : enregistrez la feuille en CSV UTF-8 ({error})") from None
    for name in set(HEADER) - set(sheet.fieldnames or []):
        raise Arret(f"{path}, ligne 1 : la colonne {name} manque")
    for n, row in enumerate(rows, 2):
        human = {}
        for name, cell in ((name, row[name].strip()) for name in CRITERIA if row[name].strip()):
            with suppress(ValueError):
                human[name] = float(cell.replace(",", "."))
            if not LOWEST <= human.get(name, math.nan) <= HIGHEST:
                raise Arret(f"{path}, ligne {n} : {name} va de {LOWEST} à {HIGHEST}, pas {cell:.9}")
        if human and key_of(row) not in found:
            raise Arret(f"{path}, ligne {n} : résumé inconnu de ce journal, ou déjà noté plus haut")
        if len(human) == len(CRITERIA):
            human["moyenne"] = fmean(human.values())
        if human:
            marked.append({**found.pop(key_of(row)), "numero": row["numero"], "human": human})
    return marked, len(rows) - len(marked)


def agreement(marked, name):
    """L'accord sur un critère ou la moyenne, clés de COLUMNS, None pour ce qui n'est pas défini.
    Kappa quadratique (Cohen, 1968) : 1 moins le rapport du carré moyen des écarts à celui qu'aurait
    un appariement au hasard ; 1 est l'accord parfait, 0 celui du hasard."""
    pairs = [(row["human"][name], row["judge"][name]) for row in marked if name in row["human"]]
    found, gaps = {"n": len(pairs)}, [round(judge - human, 9) for human, judge in pairs]
    if pairs:
        human, judge = zip(*pairs)
        found |= {"human": fmean(human), "judge": fmean(judge), "bias": fmean(gaps)}
        found |= {"p_value": eval_cv.p_value(gaps), "absolute_gap": fmean(map(abs, gaps))}
        found["within_one"] = fmean(abs(gap) <= 1 for gap in gaps)
        if len(pairs) > 1:
            found["standard_error"] = stdev(gaps) / math.sqrt(len(pairs))
        if name in CRITERIA and min(len(set(human)), len(set(judge))) > 1:
            chance = fmean((h - j) ** 2 for h in human for j in judge)
            found["kappa"] = 1 - fmean(gap**2 for gap in gaps) / chance
    return {key: round(found[key], 4) if key in found else None for key in COLUMNS}


def show(marked, criteria, versions):
    """Affiche l'accord, les trois plus grands désaccords, et ce qu'on peut en faire."""
    for name, cells in {"": COLUMNS, **criteria}.items():
        print(f"{name:12}", *(f"{'-' if cell is None else cell:>8}" for cell in cells.values()))
    for version, means in versions.items():
        print("{0} : vous {human}, le juge {judge}".format(version, **means))
    whole = [row for row in marked if "moyenne" in row["human"]]
    whole.sort(key=lambda row: -abs(row["judge"]["moyenne"] - row["human"]["moyenne"]))
    for row in whole[:3]:
        marks = "vous {human[moyenne]:.2f}, le juge {judge[moyenne]:.2f}".format(**row)
        print(f"n° {row['numero']} ({row['version']}), {marks} : {row['judge']['justification']}")
    if len(whole) < 6:
        print(f"Résumés notés en entier : {len(whole)} ; il en faut au moins 6 pour conclure.")
        return
    first, *others = versions.values()
    shifts = [f"{c} {m['bias']:+.2f}" for c, m in criteria.items() if m["p_value"] <= 0.05]
    text = "Rien ne montre que le juge note plus haut ou plus bas que vous."
    if shifts:
        text = f"Biais du juge : {', '.join(shifts)} ; ne comparez ses notes qu'entre elles."
    if any((m["human"] - first["human"]) * (m["judge"] - first["judge"]) < 0 for m in others):
        text += " Il ne classe pas les versions comme vous : précisez la grille avant de le croire."
    print(text)


def run(argv):
    parser = argparse.ArgumentParser(description="Le juge note-t-il comme vous ?")
    parser.error, add = eval_cv.refuse, parser.add_argument
    add("journal", help="un journal d'eval_cv.py")
    add("feuille", help="la feuille de notes, un CSV")
    add("--exporter", action="store_true", help="créer la feuille, à remplir")
    add("--nombre", type=int, default=20, help="résumés à exporter (20)")
    add("--json", action="store_true", help="bilan en JSON")
    options = parser.parse_args(argv)
    found = graded(options.journal)
    if options.exporter:
        export(options.feuille, found, options.nombre)
        return 0
    marked, skipped = read_sheet(options.feuille, found)
    criteria, versions = {name: agreement(marked, name) for name in GOALS}, {}
    for version in sorted({row["version"] for row in marked if "moyenne" in row["human"]}):
        mean = agreement([row for row in marked if row["version"] == version], "moyenne")
        versions[version] = {name: mean[name] for name in ("human", "judge")}
    if options.json:
        data = {"n": len(marked), "skipped": skipped, "criteria": criteria, "versions": versions}
        print(json.dumps(data, indent=2))
    else:
        print(f"Résumés notés : {len(marked)} ; lignes vides : {skipped}\n")
        show(marked, criteria, versions)
    return 0 if marked else 1


if __name__ == "__main__":
    os._exit(eval_cv.main(run))
