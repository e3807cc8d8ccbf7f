#!/usr/bin/env python3
"""Le juge note-t-il comme vous ? Compare ses notes à celles que vous donnez à l'aveugle, dans un
tableur, à des résumés d'un journal d'eval_cv.py. N'appelle jamais l'API.

    python3 outils/accord.py resultats/a_noter.csv --exporter    créer la feuille à remplir
    python3 outils/accord.py resultats/a_noter.csv               comparer, une fois remplie

La feuille réunit, pour les mêmes cas, un résumé de chaque version, mélangés et sans aucune note.
L'en-tête rappelle la grille ; la dernière colonne, « identifiant », sert à retrouver les résumés,
même si le tableur coupe un long texte (Excel, à 32 767 caractères). La feuille contient les CV,
donc des données personnelles : gardez-la dans un dossier que git ignore.

  FEUILLE             la feuille de notes, un fichier CSV
  --journal JOURNAL   le journal d'où viennent les résumés ; par défaut, le plus récent de
                      resultats/ qui contient une réponse
  --exporter          créer la feuille ; un fichier qui existe n'est jamais écrasé
  --nombre N          combien de résumés exporter (20) ; s'il y a trop peu de cas, la feuille prend
                      aussi les résumés des autres passages
  --json              la comparaison en JSON sur la sortie standard

Le biais est la note du juge moins la vôtre. Son intervalle à 95 % compte chaque cas une seule fois
et demande au moins 6 cas. Le kappa quadratique vaut 1 pour un accord parfait, et 0 pour un accord
dû au hasard. Un tiret remplace ce qui ne se calcule pas.

Codes de sortie : 0, la feuille est créée ou comparée ; 1, la feuille n'a aucune note ; 2, commande
ou fichier incorrect ; 130, interruption.
"""

import csv
import hashlib
import io
import json
import os
import random
import re
import sys
from functools import partial
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # le dossier d'eval_cv.py

from page import newest_journal, reread_journal

import eval_cv
from eval_cv import CRITERIA, HIGHEST, LOWEST, MEASURES, Arret, named, tell

# Un résumé noté par le juge : {"id": "bgdaohkcpmfe", "version": "V1", "case": 3 (le numéro du cas),
# "result": ce que rend `eval_cv.run_test_case`, "judge": {"exactitude": 9, …, "moyenne": 7.666…}}.
# Une fois relu dans la feuille, il a aussi "line": 12, sa ligne, et "human", vos notes, de la même
# forme ; sans "moyenne" si vous n'avez pas noté tous les critères.


def grouped(rows, key):
    """Des résumés rangés selon un de leurs champs : {"V1": [résumé, …], "V2": […]}, par exemple."""
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


# --- La feuille à remplir

IDENTIFIER = "identifiant"
ENCODING = "utf-8-sig"  # la marque du début dit aux tableurs que c'est de l'UTF-8
# La place d'un signe qui ferait du texte une formule : au début, ou, pour un tableur qui se trompe
# de séparateur, après un saut de ligne, une virgule…
FORMULA = re.compile(r'(?<![^\n\r\t,;"])(?=[^\S\n\r\t]*[=+\-@＝＋－＠])')


def identifier(version, result):
    """Douze lettres qui désignent un résumé sans dire sa version : un tableur ne peut les prendre
    ni pour un nombre ni pour une date."""
    content = json.dumps([version, result["case"]["input"], result["summary"]])
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return digest.translate(str.maketrans("0123456789", "ghijklmnop"))


def graded_summaries(results):
    """Les résumés notés par le juge (voir plus haut), {identifiant: résumé}, d'après les passages
    de chaque version. Le texte qu'une version redonne à un autre passage n'y est qu'une fois."""
    found = {}
    for version, passes in results.items():
        for one_pass in passes:
            for number, result in enumerate(one_pass, 1):
                if result["notes"]:
                    row = {"id": identifier(version, result), "version": version, "case": number}
                    marks = {name: result["notes"][name] for name in CRITERIA}
                    marks["moyenne"] = fmean(marks.values())  # sans arrondi
                    found.setdefault(row["id"], {**row, "result": result, "judge": marks})
    return found


def draw(summaries, versions, number):
    """Tire environ `number` résumés, toujours les mêmes, et les mélange. Un cas tiré donne un
    résumé de chaque version ; les autres passages ne servent qu'une fois tous les cas tirés."""
    rng = random.Random(0)
    cases = list(grouped(summaries, "case").values())
    rng.shuffle(cases)
    sets = []  # [(tour, (un résumé de V1, un de V2)), …]
    for rows in cases:
        by_version = grouped(rows, "version")
        if len(by_version) == len(versions):
            sets += enumerate(zip(*by_version.values()))
    sets.sort(key=lambda one: one[0])
    wanted = max(1, number // len(versions))
    drawn = [row for turn, rows in sets[:wanted] for row in rows]
    rng.shuffle(drawn)
    return drawn


def write_sheet(path, rows):
    """Écrit la feuille à remplir, sans jamais en écraser une."""
    content = io.StringIO()
    sheet = csv.writer(content, delimiter=";")
    grid = [f"{name} : {text} ({LOWEST} à {HIGHEST})" for name, text in CRITERIA.items()]
    sheet.writerow(["texte du cas", "informations attendues", "résumé à noter", *grid, IDENTIFIER])
    for row in rows:
        case = row["result"]["case"]
        texts = [case["input"], case["expected_focus"], row["result"]["summary"]]
        texts = [FORMULA.sub("\u200b", text) for text in texts]  # un caractère invisible
        sheet.writerow([*texts, *[""] * len(CRITERIA), row["id"]])
    with named(path), open(path, "x", encoding=ENCODING, newline="") as file:
        file.write(content.getvalue())


def export(path, journal, results, number):
    """Crée la feuille ; rend les phrases qui disent quoi en faire."""
    drawn = draw(graded_summaries(results).values(), results, number)
    if not drawn:
        raise Arret(
            f"{journal.path} : aucun cas n'a de résumé noté dans toutes les versions ; complétez "
            f'le journal avec python3 eval_cv.py --reprendre "{journal.path}"'
        )
    write_sheet(path, drawn)
    cases = len(grouped(drawn, "case"))
    compare = f'"{sys.executable}" "{sys.argv[0]}" "{path}" --journal "{journal.path}"'
    return [
        f"{path} : feuille créée ; résumés à noter : {len(drawn)} ; cas différents : {cases}",
        f"1. Dans un tableur, notez chaque résumé de {LOWEST} à {HIGHEST} sur chaque critère.",
        "2. Enregistrez la feuille sous le même nom, au format CSV UTF-8.",
        f"3. Comparez vos notes à celles du juge : {compare}",
    ]


# --- La feuille remplie


def read_cells(path):
    """Les cellules d'une feuille, une liste par ligne ; lève `Arret`."""
    with named(path):
        data = Path(path).read_bytes()
    try:
        text = data.decode(ENCODING)
        csv.field_size_limit(10**9)  # par défaut, 131 072 caractères : moins qu'un long CV
        for separator in ";,\t":
            lines = io.StringIO(text, newline=None)  # toute fin de ligne y devient « \n »
            header = next(csv.reader(lines, delimiter=separator), [])
            if IDENTIFIER in header:
                lines.seek(0)
                return list(csv.reader(lines, delimiter=separator, strict=True))
    except (UnicodeDecodeError, csv.Error):
        fault = "ce n'est pas un CSV en UTF-8"
        raise Arret(f"{path} : {fault}, enregistrez la feuille au format CSV UTF-8") from None
    raise Arret(
        f"{path}, ligne 1 : la colonne « {IDENTIFIER} » manque ; gardez toutes les colonnes, ou "
        "créez une autre feuille avec --exporter si celle-ci vient d'une ancienne version"
    )


def read_rows(path):
    """Les lignes d'une feuille qui ne sont pas vides, avec leur numéro dans le tableur : [(2,
    {"exactitude": "7,5", …, "identifiant": "bgdaohkcpmfe", …}), …] ; lève `Arret`."""
    header, *lines = read_cells(path)
    names = [title.partition(" : ")[0].strip() for title in header]  # sans la définition
    for name in [*CRITERIA, IDENTIFIER]:
        if names.count(name) != 1:
            found = f"colonnes « {name} » : {names.count(name)}"
            raise Arret(f"{path}, ligne 1 : {found}, il en faut une ; reprenez l'en-tête exporté")
    numbered = enumerate(lines, 2)
    return [(number, dict(zip(names, cells))) for number, cells in numbered if any(cells)]


def marks_of(row, place):
    """Vos notes d'une ligne, {"exactitude": 7.5, …}, et leur moyenne s'il n'en manque aucune ; lève
    un `Arret` qui commence par `place`."""
    marks = {}
    for name in CRITERIA:
        cell = row.get(name, "").strip()
        if not cell:
            continue
        number = re.fullmatch(r"-?\d+([.,]\d+)?", cell)
        mark = float(cell.replace(",", ".")) if number else None
        if mark is None or not LOWEST <= mark <= HIGHEST:
            wanted = f"une note de {LOWEST} à {HIGHEST} est attendue"
            raise Arret(f"{place}, {name} : {wanted}, et non « {eval_cv.masked(cell)} »")
        marks[name] = mark
    if len(marks) == len(CRITERIA):
        marks["moyenne"] = fmean(marks.values())
    return marks


def read_sheet(path, found, journal):
    """Les résumés dont vous avez noté un critère au moins, et le nombre de lignes sans note ; lève
    `Arret`. `found` : voir `graded_summaries`."""
    marked = {}
    unknown = []
    skipped = 0
    for line, row in read_rows(path):
        key = row.get(IDENTIFIER, "").strip()
        marks = marks_of(row, f"{path}, ligne {line}")
        if not marks:
            skipped += 1
        elif key not in found:
            unknown.append(str(line))
        elif key in marked:
            twins = f"lignes {marked[key]['line']} et {line}"
            raise Arret(f"{path}, {twins} : le même résumé est noté deux fois, gardez-en une")
        else:
            marked[key] = {**found[key], "line": line, "human": marks}
    if unknown:
        sentence = f"{path} : lignes ignorées, car {journal.path} n'a pas de note du juge pour "
        sentence += f"leur identifiant : {', '.join(unknown)} ; si la feuille vient d'un autre "
        sentence += "journal, donnez-le avec --journal"
        if not marked:
            raise Arret(sentence)
        tell(sentence)
    return list(marked.values()), skipped


# --- La comparaison

AGREEMENT = [  # ce que rend `agreement` : nom à l'écran, clé, format
    ("résumés notés", "n", "{}"),
    ("cas notés", "cases", "{}"),
    ("vous", "human", "{:.2f}"),
    ("juge", "judge", "{:.2f}"),
    ("biais (juge - vous)", "bias", "{:+.2f}"),
    ("intervalle à 95 %", "interval", "{0[0]:+.2f} à {0[1]:+.2f}"),
    ("écart absolu moyen", "absolute_gap", "{:.2f}"),
    ("part à 1 point près", "within_one", "{:.2f}"),
    ("kappa quadratique", "kappa", "{:.2f}"),
]


def mean_of(rows, side, name):
    """La moyenne de vos notes (`side` vaut "human") ou de celles du juge ("judge")."""
    return fmean(row[side][name] for row in rows)


def rounded_interval(gaps):
    """L'intervalle d'`eval_cv.interval`, à 2 décimales, ou None."""
    ends = eval_cv.interval(gaps)
    return ends and [round(end, 2) + 0.0 for end in ends]  # -0.0 devient 0.0


def agreement(marked, name):
    """L'accord sur un critère, ou sur la moyenne : {"n": 20, "cases": 10, "human": 6.1, "judge":
    7.2, "bias": 1.1, "interval": [0.32, 1.88], "absolute_gap": 1.3, "within_one": 0.6, "kappa":
    0.41} ; None pour ce qui ne se calcule pas. Les moyennes, le biais et son intervalle comptent
    chaque cas une fois ; le reste, chaque résumé. Kappa : Cohen, « Weighted kappa », 1968."""
    rows = [row for row in marked if name in row["human"]]
    cases = grouped(rows, "case").values()
    found = dict.fromkeys(key for label, key, form in AGREEMENT)
    found["n"] = len(rows)
    found["cases"] = len(cases)
    if not rows:
        return found
    human = [mean_of(case, "human", name) for case in cases]
    judge = [mean_of(case, "judge", name) for case in cases]
    found["human"] = round(fmean(human), 2)
    found["judge"] = round(fmean(judge), 2)
    found["bias"] = round(found["judge"] - found["human"], 2)  # celui des moyennes affichées
    found["interval"] = rounded_interval([b - a for a, b in zip(human, judge)])
    pairs = [(row["human"][name], row["judge"][name]) for row in rows]
    gaps = [round(abs(b - a), 9) for a, b in pairs]
    found["absolute_gap"] = round(fmean(gaps), 2)
    found["within_one"] = round(fmean(gap <= 1 for gap in gaps), 2)
    several = all(len(set(marks)) > 1 for marks in zip(*pairs))  # des deux côtés
    if name in CRITERIA and several:
        # Le carré moyen des écarts, rapporté à celui qu'aurait un appariement au hasard.
        chance = fmean((b - a) ** 2 for a, _ in pairs for _, b in pairs)
        found["kappa"] = round(1 - fmean(gap**2 for gap in gaps) / chance, 2)
    return found


def differences(whole, second):
    """L'écart de V1 à une autre version selon vous et selon le juge, sur les résumés notés en
    entier des cas que vous avez notés dans les deux : {"cases": 10, "human": 1.1, "human_interval":
    [0.32, 1.88], "judge": 1.55, "judge_interval": [0.4, 2.7]}."""
    by_case = [grouped(rows, "version") for rows in grouped(whole, "case").values()]
    common = [rows for rows in by_case if "V1" in rows and second in rows]
    found = {"cases": len(common)}
    for side in ("human", "judge"):
        before = [mean_of(rows["V1"], side, "moyenne") for rows in common]
        after = [mean_of(rows[second], side, "moyenne") for rows in common]
        gaps = [b - a for a, b in zip(before, after)]
        found[side] = round(fmean(gaps), 2) + 0.0 if gaps else None
        found[f"{side}_interval"] = rounded_interval(gaps)
    return found


def compare(marked, whole, skipped, versions):
    """Toute la comparaison, comme l'affiche --json."""
    means = {}
    for version, rows in sorted(grouped(whole, "version").items()):
        found = agreement(rows, "moyenne")
        means[version] = {"human": found["human"], "judge": found["judge"]}
    return {
        "n": len(marked),
        "skipped": skipped,
        "criteria": {name: agreement(marked, name) for name in MEASURES},
        "versions": means,
        "comparison": {version: differences(whole, version) for version in versions[1:]},
    }


# --- L'affichage


def table(criteria):
    """Le tableau de l'accord, une colonne par critère."""
    width = max(13, *map(len, criteria)) + 2
    lines = [f"{'':19}" + "".join(f"{name:>{width}}" for name in criteria)]
    for label, key, form in AGREEMENT:
        values = [found[key] for found in criteria.values()]
        cells = ["-" if value is None else form.format(value) for value in values]
        lines.append(f"{label:19}" + "".join(f"{cell:>{width}}" for cell in cells))
    return lines


def sign(gap, ends, cases):
    """1 ou -1 si l'on connaît le signe de l'écart au-delà de ces cas, sinon 0. Six écarts égaux
    n'ont pas d'intervalle, mais le hasard ne leur donne le même signe qu'une fois sur 32."""
    if cases < 6:
        return 0
    low, high = ends or (gap, gap)
    return (low > 0) - (high < 0)


def bias_sentence(criteria):
    """Le juge note-t-il plus haut, ou plus bas, que vous ?"""
    if max(found["cases"] for found in criteria.values()) < 6:
        return "Pour conclure sur le biais du juge, il faut noter au moins 6 cas."
    shifts = []
    for name, found in criteria.items():
        if sign(found["bias"], found["interval"], found["cases"]):
            shifts.append(f"{name} {found['bias']:+.2f}")
    if shifts:
        return f"Biais du juge : {', '.join(shifts)}. Ne comparez ses notes qu'entre elles."
    return "Rien ne montre que le juge note plus haut ou plus bas que vous."


def ranking_sentence(second, found):
    """Le juge classe-t-il V1 et une autre version comme vous ?"""
    yours = sign(found["human"], found["human_interval"], found["cases"])
    judges = sign(found["judge"], found["judge_interval"], found["cases"])
    if yours and yours == judges:
        better = "mieux" if yours > 0 else "moins bien"
        return f"Vous trouvez le même sens que le juge : {second} fait {better} que V1."
    if yours and judges:
        return (
            f"Le juge classe V1 et {second} à l'inverse de vous : précisez la grille avant de le "
            "croire."
        )
    reason = "l'un des deux écarts peut être nul ; notez plus de cas."
    if found["cases"] < 6:
        reason = "il faut noter au moins 6 cas dans les deux versions."
    return f"On ne peut pas dire si le juge classe V1 et {second} comme vous : {reason}"


def difference_lines(second, found):
    """L'écart de V1 à une autre version selon vous et selon le juge, et s'ils sont du même avis."""
    lines = ["", f"V1 → {second} ; cas que vous avez notés dans les deux : {found['cases']}"]
    if not found["cases"]:
        return lines
    for side, who in (("human", "vous"), ("judge", "le juge")):
        ends = found[f"{side}_interval"]
        text = "intervalle à 95 % de {:+.2f} à {:+.2f}".format(*ends) if ends else "sans intervalle"
        lines.append(f"selon {who:8}: écart {found[side]:+.2f}, {text}")
    return [*lines, ranking_sentence(second, found)]


def distance(row):
    """De combien la moyenne du juge s'écarte de la vôtre."""
    return round(abs(row["judge"]["moyenne"] - row["human"]["moyenne"]), 9)


def disagreements(whole):
    """Vos trois plus grands désaccords avec le juge, et ses raisons."""
    rows = [row for row in whole if distance(row)]
    if not rows:
        return []
    rows.sort(key=distance, reverse=True)
    lines = ["", "Vos plus grands désaccords :"]
    for row in rows[:3]:
        marks = f"vous {row['human']['moyenne']:.2f}, juge {row['judge']['moyenne']:.2f}"
        lines.append(f"ligne {row['line']} ({row['version']}, cas n° {row['case']}) : {marks}")
        why = row["result"]["notes"]["justification"]
        printable = "".join(char if char.isprintable() else " " for char in why)
        lines.append(f"  « {printable} »")
    return lines


def screen(found, whole):
    """Tout ce qui s'affiche d'une comparaison."""
    lines = [f"Résumés notés : {found['n']} ; lignes sans note : {found['skipped']}"]
    if found["n"]:
        lines += ["", *table(found["criteria"]), bias_sentence(found["criteria"])]
        for second, difference in found["comparison"].items():
            lines += difference_lines(second, difference)
        lines += disagreements(whole)
    return lines


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
        whole = [row for row in marked if "moyenne" in row["human"]]
        found = compare(marked, whole, skipped, list(results))
        lines = [json.dumps(found, indent=2)] if options.json else screen(found, whole)
        code = 0 if marked else 1
    with named("la sortie standard"):
        print("\n".join(lines), flush=True)
    return code


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
