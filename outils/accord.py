#!/usr/bin/env python3
"""Le juge note-t-il comme vous ? Compare ses notes à celles que vous donnez à l'aveugle, dans un
tableur, à des résumés d'un journal d'eval_cv.py. N'appelle jamais l'API.

    python3 outils/accord.py resultats/a_noter.csv --exporter    créer la feuille à remplir
    python3 outils/accord.py resultats/a_noter.csv               comparer, une fois remplie

La feuille réunit, pour les mêmes cas, un résumé de chaque version, mélangés et sans aucune note. Sa
colonne « identifiant » sert à les retrouver. Elle contient les CV, donc des données personnelles :
gardez-la dans un dossier que git ignore.

  FEUILLE             la feuille de notes, un fichier CSV
  --journal JOURNAL   le journal d'où viennent les résumés ; par défaut, le plus récent de
                      resultats/ qui contient une réponse
  --exporter          créer la feuille ; un fichier qui existe n'est jamais écrasé
  --nombre N          combien de résumés exporter (20) ; s'il y a trop peu de cas, la feuille prend
                      aussi les résumés des autres passages
  --json              la comparaison en JSON sur la sortie standard

Le biais est la note du juge moins la vôtre, et |écart| la même différence sans son signe. Un
intervalle, à 95 %, compte chaque cas une fois ; il demande au moins 6 cas et des écarts qui
diffèrent. Le kappa quadratique vaut 1 pour un accord parfait, 0 pour un accord dû au hasard.

Codes de sortie : 0, la feuille est créée ou comparée ; 1, aucune note à comparer ; 2, commande ou
fichier incorrect ; 130, interruption.
"""

import csv
import hashlib
import json
import os
import random
import re
import sys
from functools import partial
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # le dossier d'eval_cv.py

from page import newest_journal, reread_journal

import eval_cv
from eval_cv import (
    CRITERIA,
    HIGHEST,
    LOWEST,
    MEASURES,
    Arret,
    rounded_interval,
    system_errors,
    tell,
)

# Un résumé noté par le juge : id="id3f0c81e22b9a", version="V1", case=3 (le numéro du cas), result
# (ce que rend `eval_cv.run_test_case`), judge={"exactitude": 9, …, "moyenne": 7.666…} et, si la
# feuille le note, line=12 (sa ligne) et human : vos notes, de la même forme, mais sans "moyenne"
# s'il y manque un critère.

# --- La feuille à remplir

IDENTIFIER = "identifiant"
ENCODING = "utf-8-sig"  # la marque du début dit aux tableurs que c'est de l'UTF-8
# Ce qui précède un signe qui ferait du texte une formule : le début de la cellule ou, pour un
# tableur qui se trompe de séparateur, un saut de ligne, une virgule…
BEFORE_FORMULA = re.compile(r'(^|[\n\r\t,;"])(?=\s*[=+\-@＝＋－＠])')


def graded_summaries(results):
    """Les résumés notés par le juge, {identifiant: résumé}, d'après les passages de chaque version.
    Le texte qu'une version redonne à un autre passage n'y est qu'une fois."""
    found = {}
    for version, passes in results.items():
        for one_pass in passes:
            for case, result in enumerate(one_pass, 1):
                if result["notes"] is None:
                    continue
                row = SimpleNamespace(version=version, case=case, result=result)
                content = json.dumps([version, result["case"]["input"], result["summary"]])
                digest = hashlib.sha256(content.encode()).hexdigest()
                row.id = f"id{digest:.12}"  # sans « id », un tableur pourrait y voir un nombre
                row.judge = {name: result["notes"][name] for name in CRITERIA}
                row.judge["moyenne"] = fmean(row.judge.values())  # sans arrondi
                row.human = None
                found.setdefault(row.id, row)
    return found


def draw(summaries, versions, number):
    """Tire environ `number` résumés, toujours les mêmes, et les mélange. Un cas tiré donne un
    résumé de chaque version ; les autres passages ne servent qu'une fois tous les cas tirés."""
    rng = random.Random(0)
    cases = {}  # {3: {"V1": [un résumé par passage], "V2": …}}
    for row in summaries:
        by_version = cases.setdefault(row.case, {})
        by_version.setdefault(row.version, []).append(row)
    turns = {}  # {numéro d'un tour: [(un résumé de V1, un de V2), …]}, un ensemble par cas
    for by_version in cases.values():
        if len(by_version) == versions:
            for turn, rows in enumerate(zip(*by_version.values())):
                turns.setdefault(turn, []).append(rows)
    sets = []
    for turn in sorted(turns):
        rng.shuffle(turns[turn])
        sets += turns[turn]
    drawn = []
    for rows in sets[: max(1, number // versions)]:
        drawn += rows
    rng.shuffle(drawn)
    return drawn


def write_sheet(path, rows):
    """Écrit la feuille à remplir, sans jamais en écraser une."""
    titles = ["texte du cas", "informations attendues", "résumé à noter"]
    for name, text in CRITERIA.items():
        titles.append(f"{name} : {text} ({LOWEST} à {HIGHEST})")
    with system_errors(path), open(path, "x", encoding=ENCODING, newline="") as file:
        sheet = csv.writer(file, delimiter=";")
        sheet.writerow([*titles, IDENTIFIER])
        for row in rows:
            case = row.result["case"]
            texts = (case["input"], case["expected_focus"], row.result["summary"])
            cells = [BEFORE_FORMULA.sub("\\1\u200b", text) for text in texts]  # un invisible
            blanks = [""] * len(CRITERIA)
            sheet.writerow([*cells, *blanks, row.id])


def export(path, journal, results, number):
    """Crée la feuille ; rend les phrases qui disent quoi en faire."""
    drawn = draw(graded_summaries(results).values(), len(results), number)
    if not drawn:
        raise Arret(
            f"{journal.path} : aucun cas n'a de résumé noté dans toutes les versions ; complétez "
            f'le journal avec python3 eval_cv.py --reprendre "{journal.path}"'
        )
    write_sheet(path, drawn)
    cases = len({row.case for row in drawn})
    again = f'"{sys.executable}" "{sys.argv[0]}" "{path}" --journal "{journal.path}"'
    return [
        f"{path} : feuille créée ; résumés à noter : {len(drawn)} ; cas différents : {cases}",
        f"1. Dans un tableur, notez chaque résumé de {LOWEST} à {HIGHEST} sur chaque critère.",
        "2. Enregistrez la feuille sous le même nom, au format CSV UTF-8.",
        f"3. Comparez vos notes à celles du juge : {again}",
    ]


# --- La feuille remplie


def read_rows(path):
    """Les lignes d'une feuille qui ne sont pas vides, avec leur numéro dans le tableur : [(2,
    {"exactitude": "7,5", …, "identifiant": "id3f0c81e22b9a", …}), …] ; lève `Arret`."""
    csv.field_size_limit(10**9)  # par défaut, 131 072 caractères : moins qu'un long CV
    with system_errors(path), open(path, encoding=ENCODING) as file:
        try:
            first = re.search("[;,\t]", file.readline())
            separator = first[0] if first else ";"
            file.seek(0)
            header, *lines = list(csv.reader(file, delimiter=separator, strict=True)) or [[]]
        except (UnicodeDecodeError, csv.Error):
            fault = "ce n'est pas un CSV en UTF-8"
            raise Arret(f"{path} : {fault}, enregistrez la feuille au format CSV UTF-8") from None
    names = [title.partition(" : ")[0].strip() for title in header]  # sans la définition
    for name in (IDENTIFIER, *CRITERIA):
        if names.count(name) != 1:
            found = f"colonnes « {name} » : {names.count(name)}, il en faut une"
            raise Arret(f"{path}, ligne 1 : {found} ; reprenez l'en-tête exporté")
    numbered = enumerate(lines, 2)
    return [(number, dict(zip(names, cells))) for number, cells in numbered if any(cells)]


def marks_of(cells, place):
    """Vos notes d'une ligne, {"exactitude": 7.5, …}, et leur moyenne s'il n'en manque aucune ; lève
    un `Arret` qui commence par `place`."""
    marks = {}
    for name in CRITERIA:
        text = cells.get(name, "").strip()
        if not text:
            continue
        if re.fullmatch(r"-?\d+([.,]\d+)?", text):
            marks[name] = float(text.replace(",", "."))
        if name not in marks or not LOWEST <= marks[name] <= HIGHEST:
            wanted = f"une note de {LOWEST} à {HIGHEST} est attendue"
            raise Arret(f"{place}, {name} : {wanted}, et non « {eval_cv.masked(text)} »")
    if len(marks) == len(CRITERIA):
        marks["moyenne"] = fmean(marks.values())
    return marks


def read_sheet(path, found, journal):
    """Les résumés dont vous avez noté un critère au moins, et le nombre de lignes sans note ; lève
    `Arret`. `found` : voir `graded_summaries`."""
    unknown = []
    skipped = 0
    for line, cells in read_rows(path):
        row = found.get(cells.get(IDENTIFIER, "").strip())
        marks = marks_of(cells, f"{path}, ligne {line}")
        if not marks:
            skipped += 1
        elif row is None:
            unknown.append(str(line))
        elif row.human:
            twins = f"lignes {row.line} et {line}"
            raise Arret(f"{path}, {twins} : le même résumé est noté deux fois, gardez-en une")
        else:
            row.line = line
            row.human = marks
    if unknown:
        ignored = f"{path} : lignes ignorées, car {journal.path} n'a pas de note du juge pour leur "
        ignored += f"identifiant : {', '.join(unknown)} ; "
        tell(ignored + "si la feuille vient d'un autre journal, donnez-le avec --journal")
    return [row for row in found.values() if row.human], skipped


# --- La comparaison

SIDES = {"human": "vous", "judge": "le juge"}


def means_by_case(rows, side, name):
    """Pour chaque cas, la moyenne de vos notes (`side` vaut "human") ou de celles du juge ("judge")
    sur un critère : {3: 7.5, …}."""
    marks = {}
    for row in rows:
        mark = getattr(row, side)[name]
        marks.setdefault(row.case, []).append(mark)
    return {case: fmean(values) for case, values in marks.items()}


def mean(values):
    """La moyenne à 2 décimales, ou None s'il n'y a rien."""
    return round(fmean(values), 2) + 0.0 if values else None  # -0.0 devient 0.0


def kappa(yours, judges):
    """Le kappa quadratique (Cohen, « Weighted kappa », 1968) : 1 moins le carré moyen des écarts,
    rapporté à celui d'un appariement au hasard ; None si l'un des deux n'a mis qu'une note."""
    if len(set(yours)) < 2 or len(set(judges)) < 2:
        return None
    observed = fmean((b - a) ** 2 for a, b in zip(yours, judges))
    chance = fmean((b - a) ** 2 for a in yours for b in judges)
    return round(1 - observed / chance, 2)


def agreement(marked, name):
    """L'accord sur un critère, ou sur la moyenne : {"n": 20, "cases": 10, "human": 6.1, "judge":
    7.2, "bias": 1.1, "interval": [0.32, 1.88], "absolute_gap": 1.3, "within_one": 0.6, "kappa":
    0.41} ; None pour ce qui ne se calcule pas. Les moyennes, le biais et son intervalle comptent
    chaque cas une fois ; le reste, chaque résumé."""
    rows = [row for row in marked if name in row.human]
    human = means_by_case(rows, "human", name)
    judge = means_by_case(rows, "judge", name)
    found = {"n": len(rows), "cases": len(human)}
    found["human"] = mean(human.values())
    found["judge"] = mean(judge.values())
    found["bias"] = round(found["judge"] - found["human"], 2) if rows else None
    found["interval"] = rounded_interval([judge[case] - human[case] for case in human])
    yours = [row.human[name] for row in rows]
    judges = [row.judge[name] for row in rows]
    gaps = [round(abs(b - a), 9) for a, b in zip(yours, judges)]
    found["absolute_gap"] = mean(gaps)
    found["within_one"] = mean([gap <= 1 for gap in gaps])
    found["kappa"] = kappa(yours, judges) if name in CRITERIA else None
    return found


def difference(complete, second):
    """L'écart de V1 à une autre version, sur les cas que vous avez notés dans les deux : {"cases":
    10, "human": 1.1, "human_interval": [0.32, 1.88], "judge": 1.55, "judge_interval": …}."""
    old = [row for row in complete if row.version == "V1"]
    new = [row for row in complete if row.version == second]
    found = {}
    for side in SIDES:
        before = means_by_case(old, side, "moyenne")
        after = means_by_case(new, side, "moyenne")
        gaps = [after[case] - before[case] for case in before if case in after]
        found["cases"] = len(gaps)
        found[side] = mean(gaps)
        found[f"{side}_interval"] = rounded_interval(gaps)
    return found


def comparison_of(marked, complete, skipped, versions):
    """Toute la comparaison, comme l'affiche --json."""
    means = {}
    for version in versions:
        found = agreement([row for row in complete if row.version == version], "moyenne")
        if found["n"]:
            means[version] = {side: found[side] for side in SIDES}
    return {
        "n": len(marked),
        "skipped": skipped,
        "criteria": {name: agreement(marked, name) for name in MEASURES},
        "versions": means,
        "comparison": {second: difference(complete, second) for second in versions[1:]},
    }


# --- L'affichage

TITLES = "               cas   vous   juge  biais      intervalle  |écart|  à 1 point  kappa"
TABLE = "{name:15}{cases:>3}{human:>7}{judge:>7}{bias:>7}{interval:>16}{absolute_gap:>9}"
TABLE += "{within_one:>11}{kappa:>7}"
ANSWERS = {  # selon le produit des signes des deux écarts ; 0, si l'on ignore l'un d'eux
    1: "Oui.",
    -1: "Non, c'est l'inverse : précisez la grille avant de le croire.",
    0: "On ne peut pas le dire si un intervalle manque ou contient 0 : notez d'autres cas.",
}


def shown(value, form="+.2f"):
    """Une mesure ou un intervalle à l'écran : « +6.10 », « +0.32 à +1.88 », un tiret pour None."""
    if value is None:
        return "-"
    ends = value if isinstance(value, list) else [value]
    return " à ".join(format(end, form) for end in ends)


def sign(ends):
    """1 ou -1 si un intervalle exclut 0, selon le côté où il se trouve ; 0 sinon."""
    low, high = ends or (0, 0)
    return (low > 0) - (high < 0)


def difference_lines(second, found):
    """L'écart de V1 à une autre version, selon vous et selon le juge, et s'ils sont d'accord."""
    lines = ["", f"V1 → {second} ; cas que vous avez notés dans les deux : {found['cases']}"]
    for side, who in SIDES.items():
        gap = shown(found[side])
        ends = shown(found[f"{side}_interval"])
        lines.append(f"selon {who:8}: écart {gap} ; intervalle à 95 % : {ends}")
    agreed = sign(found["human_interval"]) * sign(found["judge_interval"])
    return [*lines, f"Le juge classe-t-il V1 et {second} comme vous ? {ANSWERS[agreed]}"]


def distance(row):
    """De combien la moyenne du juge s'écarte de la vôtre."""
    return abs(row.judge["moyenne"] - row.human["moyenne"])


def disagreement_lines(complete):
    """Vos trois plus grands désaccords avec le juge, et ses raisons."""
    rows = sorted(filter(distance, complete), key=distance, reverse=True)
    lines = ["", "Vos plus grands désaccords :"] if rows else []
    for row in rows[:3]:
        marks = f"vous {row.human['moyenne']:.2f}, juge {row.judge['moyenne']:.2f}"
        lines.append(f"ligne {row.line} ({row.version}, cas n° {row.case}) : {marks}")
        why = row.result["notes"]["justification"]
        printable = "".join(char if char.isprintable() else " " for char in why)
        lines.append(f"  « {printable} »")
    return lines


def screen(report, complete):
    """Tout ce qui s'affiche d'une comparaison."""
    lines = [f"Résumés notés : {report['n']} ; lignes sans note : {report['skipped']}"]
    if not report["n"]:
        return [*lines, "Notez les résumés, enregistrez la feuille, puis relancez cette commande."]
    lines += ["", TITLES]
    biased = []
    for name, found in report["criteria"].items():
        cells = {key: shown(value, ".2f") for key, value in found.items()}
        for key in ("bias", "interval"):
            cells[key] = shown(found[key])
        cells["cases"] = found["cases"]
        lines.append(TABLE.format(name=name, **cells))
        if sign(found["interval"]):
            biased.append(name)
    names = ", ".join(biased) or "aucun"
    lines.append(f"Biais établis, car leur intervalle exclut 0 : {names}.")
    lines.append("L'accord, lui, se lit à la part à 1 point près et au kappa.")
    for second, found in report["comparison"].items():
        lines += difference_lines(second, found)
    return lines + disagreement_lines(complete)


def command(argv):
    """Crée la feuille, ou fait la comparaison ; rend le code de sortie."""
    parser = eval_cv.parser_for(argv)
    parser.add_argument("feuille")
    parser.add_argument("--journal", default=None)
    parser.add_argument("--exporter", action="store_true", default=False)
    parser.add_argument("--nombre", type=partial(eval_cv.whole_number, "--nombre"), default=20)
    parser.add_argument("--json", action="store_true", default=False)
    options = parser.parse_args(argv)
    journal, results = reread_journal(options.journal or newest_journal())
    tell(f"Journal : {journal.path}")
    code = 0
    if options.exporter:
        lines = export(options.feuille, journal, results, options.nombre)
    else:
        marked, skipped = read_sheet(options.feuille, graded_summaries(results), journal)
        complete = [row for row in marked if "moyenne" in row.human]
        report = comparison_of(marked, complete, skipped, list(results))
        lines = [json.dumps(report, indent=2)] if options.json else screen(report, complete)
        code = 0 if marked else 1
    eval_cv.display("\n".join(lines))
    return code


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
