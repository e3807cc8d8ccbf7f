#!/usr/bin/env python3
"""Le juge note-t-il comme vous ? Notez à l'aveugle, dans un tableur, les résumés d'un journal
d'eval_cv.py : ce script compare vos notes à celles du juge. Il n'appelle jamais l'API.

    python3 outils/accord.py resultats/a_noter.csv --exporter
                                          créer la feuille à remplir
    python3 outils/accord.py resultats/a_noter.csv --journal JOURNAL
                                          une fois remplie, la comparer au journal dont elle vient

Entre les deux, notez chaque résumé dans un tableur, et enregistrez la feuille au format CSV UTF-8.

La feuille réunit, mélangés et sans note, les résumés que chaque version a faits des mêmes cas ; sa
colonne « identifiant » sert à les retrouver. La feuille contient les CV, donc des données
personnelles : gardez-la dans un dossier que git ignore.

  FEUILLE             la feuille de notes, un fichier CSV
  --journal JOURNAL   le journal d'où viennent les résumés ; par défaut, le plus récent de
                      resultats/ qui contient une réponse
  --exporter          créer la feuille ; un fichier qui existe n'est jamais écrasé
  --nombre N          combien de résumés exporter (par défaut, 20) ; s'il y a trop peu de cas, la
                      feuille prend aussi les résumés des autres passages ; elle ne reprend pas les
                      notes d'une feuille précédente
  --json              la comparaison en JSON sur la sortie standard
  -h, --help          cette aide

Le biais est la note du juge moins la vôtre, et |écart| la même différence sans son signe. La
colonne « à 1 point » donne la part de vos notes dont le juge s'écarte d'un point au plus. Un
intervalle, à 95 %, compte chaque cas une fois ; il demande au moins 6 cas dont les écarts ne soient
pas tous égaux. Le kappa quadratique vaut 1 pour un accord parfait, 0 pour un accord dû au hasard.

Codes de sortie : 0, la feuille est créée ou comparée ; 1, il n'y a aucune note à comparer ; 2, une
commande ou un fichier est incorrect ; 130, le programme a été interrompu.
"""

import csv
import hashlib
import json
import os
import random
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # le dossier d'eval_cv.py

from page import read_evaluation

import eval_cv
from eval_cv import CRITERIA, HIGHEST, LOWEST, MEASURES, Arret, rounded_interval, system_errors


@dataclass
class Row:
    """Une ligne de la feuille : un résumé que le juge a noté, et que vous notez ou non."""

    id: str  # "id3f0c81e22b9a"
    version: str  # "V1"
    case_number: int  # à partir de 1
    result: dict  # ce que rend `eval_cv.run_test_case`
    judge: dict  # {"exactitude": 9, …, "moyenne": 7.666…}
    human: dict = None  # vos notes, sans "moyenne" s'il y manque un critère
    line: int = None  # la ligne, dans la feuille, où vous les avez mises


# --- La feuille à remplir

IDENTIFIER = "identifiant"
ENCODING = "utf-8-sig"  # la marque du début dit aux tableurs que c'est de l'UTF-8
# Ce qui précède un signe qui ferait du texte une formule : le début de la cellule ou, pour un
# tableur qui se trompe de séparateur, un saut de ligne, une virgule…
BEFORE_FORMULA = re.compile(r'(?:^|(?<=[\n\r\t,;"]))(?=\s*[=+\-@＝＋－＠])')
INVISIBLE = "\u200b"  # l'espace de largeur nulle que l'on y met


def graded_rows(results):
    """Les résumés notés par le juge, {identifiant: ligne}, d'après les passages de chaque version.
    Un texte qu'une version redonne n'y est qu'une fois, au premier passage où il est noté."""
    graded = {}
    for version, passes in results.items():
        for one_pass in passes:
            for case_number, result in enumerate(one_pass, 1):
                if result["notes"] is None:
                    continue
                content = json.dumps([version, result["case"]["input"], result["summary"]])
                digest = hashlib.sha256(content.encode()).hexdigest()
                key = "id" + digest[:12]  # sans « id », un tableur pourrait y voir un nombre
                judge = {name: result["notes"][name] for name in CRITERIA}
                judge["moyenne"] = fmean(judge.values())  # sans arrondi
                graded.setdefault(key, Row(key, version, case_number, result, judge))
    return graded


def draw(candidates, version_count, number):
    """Tire environ `number` lignes, toujours les mêmes, et les mélange. Un cas tiré donne un résumé
    de chaque version ; les autres passages ne servent que si tous les cas sont déjà tirés."""
    rng = random.Random(0)
    cases = {}  # {3: {"V1": [une ligne par résumé différent], "V2": …}}
    for row in candidates:
        by_version = cases.setdefault(row.case_number, {})
        by_version.setdefault(row.version, []).append(row)
    firsts = []  # pour chaque cas, un résumé de chaque version : (ligne de V1, ligne de V2)
    others = []  # leurs autres résumés, groupés de même ; ce qu'une version a de plus est ignoré
    for by_version in cases.values():
        if len(by_version) == version_count:  # un résumé noté dans chaque version
            groups = list(zip(*by_version.values()))  # [(1er résumé de V1, 1er de V2), …]
            firsts.append(groups[0])
            others.extend(groups[1:])
    rng.shuffle(firsts)
    rng.shuffle(others)
    kept = (firsts + others)[: max(1, number // version_count)]
    drawn = [row for rows in kept for row in rows]
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
            cells = [BEFORE_FORMULA.sub(INVISIBLE, text) for text in texts]
            blanks = [""] * len(CRITERIA)
            sheet.writerow([*cells, *blanks, row.id])


def export(path, journal, results, number):
    """Crée la feuille ; rend les phrases qui disent quoi en faire."""
    if Path(path).suffix.lower() != ".csv":
        raise Arret(f"{path} : la feuille est un fichier CSV, son nom doit finir par .csv")
    drawn = draw(graded_rows(results).values(), len(results), number)
    if not drawn:
        raise Arret(
            f"{journal.path} : aucun cas n'a de résumé noté dans toutes les versions ; complétez "
            f'le journal : "{sys.executable}" "{eval_cv.__file__}" --reprendre "{journal.path}"'
        )
    write_sheet(path, drawn)
    cases = len({row.case_number for row in drawn})
    again = f'"{sys.executable}" "{sys.argv[0]}" "{path}" --journal "{journal.path}"'
    lines = [f"{path} : feuille créée ; résumés à noter : {len(drawn)} ; cas différents : {cases}"]
    if cases < eval_cv.FEWEST:
        wanted = f"Il faut au moins {eval_cv.FEWEST} cas pour conclure"
        lines.append(f"{wanted} : évaluez-en d'autres avant de noter.")
    return [
        *lines,
        f"1. Dans un tableur, notez chaque résumé de {LOWEST} à {HIGHEST} sur chaque critère.",
        "2. Enregistrez la feuille sous le même nom, au format CSV UTF-8.",
        f"3. Comparez vos notes à celles du juge : {again}",
    ]


# --- La feuille remplie


def read_lines(path):
    """Les lignes non vides d'une feuille, avec leur numéro dans le tableur : [(2,
    {"exactitude": "7,5", …, "identifiant": "id3f0c81e22b9a", …}), …] ; lève `Arret`."""
    if not os.path.exists(path):
        raise Arret(f"{path} : cette feuille n'existe pas, créez-la avec --exporter")
    csv.field_size_limit(10**9)  # par défaut, 131 072 caractères : moins qu'un long CV
    # Sans `newline=""` : quel que soit le tableur, une fin de ligne se lit « \n ».
    with system_errors(path), open(path, encoding=ENCODING) as file:
        try:
            titles = file.readline()
            separator = max(";,\t", key=titles.count)  # le plus fréquent dans l'en-tête
            file.seek(0)
            rows = list(csv.reader(file, delimiter=separator, strict=True))
            header, *lines = rows or [[]]  # une feuille vide n'a pas d'en-tête
        except (UnicodeDecodeError, csv.Error):
            fault = "ce n'est pas un CSV en UTF-8"
            raise Arret(f"{path} : {fault}, enregistrez la feuille au format CSV UTF-8") from None
    names = [title.partition(" : ")[0].strip() for title in header]  # sans la définition
    for name in (IDENTIFIER, *CRITERIA):
        if names.count(name) != 1:
            raise Arret(
                f"{path}, ligne 1 : il faut une colonne « {name} », et il y en a "
                f"{names.count(name)} ; donnez la feuille exportée, avec son en-tête"
            )
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
            raise Arret(
                f"{place}, {name} : une note de {LOWEST} à {HIGHEST} est attendue, et non "
                f"« {text[:60]} »"
            )
    if len(marks) == len(CRITERIA):
        marks["moyenne"] = fmean(marks.values())
    return marks


def read_sheet(path, graded, journal):
    """Met vos notes dans les lignes de `graded` (voir `graded_rows`). Rend celles où un critère au
    moins est noté, et le nombre de lignes sans note de la feuille ; lève `Arret`."""
    unknown = []
    skipped = 0
    for line, cells in read_lines(path):
        identifier = cells.get(IDENTIFIER, "").strip()
        marks = marks_of(cells, f"{path}, ligne {line}")
        if not identifier and not marks:  # rien à comparer, ni à signaler
            skipped += 1
            continue
        row = graded.get(identifier)
        if row is None:
            unknown.append(str(line))
        elif not marks:
            skipped += 1
        elif row.human:
            twins = f"lignes {row.line} et {line}"
            raise Arret(
                f"{path}, {twins} : le même résumé est noté deux fois, ne gardez qu'une ligne"
            )
        else:
            row.line = line
            row.human = marks
    if unknown:
        eval_cv.tell(
            f"{path}, lignes ignorées ({', '.join(unknown)}) : leur identifiant n'est celui "
            f"d'aucun résumé noté par le juge dans {journal.path} ; si la feuille vient d'un autre "
            "journal, donnez-le avec --journal"
        )
    return [row for row in graded.values() if row.human], skipped


# --- La comparaison


def means_by_case(marked, name):
    """Sur un critère, deux dictionnaires : la moyenne de vos notes par cas, {3: 7.5, …}, et celle
    des notes du juge aux mêmes résumés. `marked` : les lignes que vous avez notées."""
    human = {}
    judge = {}
    for row in marked:
        if name in row.human:
            human.setdefault(row.case_number, []).append(row.human[name])
            judge.setdefault(row.case_number, []).append(row.judge[name])
    human_means = {case: fmean(marks) for case, marks in human.items()}
    judge_means = {case: fmean(marks) for case, marks in judge.items()}
    return human_means, judge_means


def rounded_mean(values):
    """La moyenne à 2 décimales, ou None s'il n'y a rien."""
    return round(fmean(values), 2) + 0.0 if values else None  # -0.0 devient 0.0


def kappa(human_marks, judge_marks):
    """Le kappa quadratique (Cohen, « Weighted kappa », 1968) : 1 moins le rapport du carré moyen
    des écarts à celui d'un appariement au hasard ; None si vous, ou le juge, avez toujours mis la
    même note."""
    if len(set(human_marks)) < 2 or len(set(judge_marks)) < 2:
        return None
    observed = fmean((b - a) ** 2 for a, b in zip(human_marks, judge_marks))
    chance = fmean((b - a) ** 2 for a in human_marks for b in judge_marks)
    return round(1 - observed / chance, 2)


def agreement(marked, name):
    """L'accord sur un critère, ou sur la moyenne : {"n": 20, "cases": 10, "human": 6.1, "judge":
    7.2, "bias": 1.1, "interval": [0.32, 1.88], "absolute_gap": 1.3, "within_one": 0.6, "kappa":
    0.41} ; None pour ce qui ne se calcule pas. Les moyennes, le biais et son intervalle comptent
    chaque cas une fois ; le reste, chaque résumé."""
    human_means, judge_means = means_by_case(marked, name)
    human = rounded_mean(human_means.values())
    judge = rounded_mean(judge_means.values())
    biases = [judge_means[case] - human_means[case] for case in human_means]
    rows = [row for row in marked if name in row.human]
    human_marks = [row.human[name] for row in rows]
    judge_marks = [row.judge[name] for row in rows]
    # Arrondis, sinon 8.3 - 7.3 dépasse 1.
    gaps = [round(abs(b - a), 9) for a, b in zip(human_marks, judge_marks)]
    return {
        "n": len(rows),
        "cases": len(human_means),
        "human": human,
        "judge": judge,
        "bias": round(judge - human, 2) if rows else None,
        "interval": rounded_interval(biases),
        "absolute_gap": rounded_mean(gaps),
        "within_one": rounded_mean([gap <= 1 for gap in gaps]),
        "kappa": kappa(human_marks, judge_marks) if name in CRITERIA else None,
    }


def difference(old_rows, new_rows):
    """L'écart d'une version à une autre, sur les cas que vous avez notés dans les deux : {"cases":
    10, "human": 1.1, "human_interval": [0.32, 1.88], "judge": 1.55, "judge_interval": …}."""
    old_human, old_judge = means_by_case(old_rows, "moyenne")
    new_human, new_judge = means_by_case(new_rows, "moyenne")
    common = [case for case in old_human if case in new_human]
    human_gaps = [new_human[case] - old_human[case] for case in common]
    judge_gaps = [new_judge[case] - old_judge[case] for case in common]
    return {
        "cases": len(common),
        "human": rounded_mean(human_gaps),
        "human_interval": rounded_interval(human_gaps),
        "judge": rounded_mean(judge_gaps),
        "judge_interval": rounded_interval(judge_gaps),
    }


def comparison_of(marked, skipped, versions):
    """Toute la comparaison, comme l'affiche --json."""
    by_version = {v: [row for row in marked if row.version == v] for v in versions}
    return {
        "n": len(marked),
        "skipped": skipped,
        "criteria": {name: agreement(marked, name) for name in MEASURES},
        "comparisons": {v: difference(by_version["V1"], by_version[v]) for v in versions[1:]},
    }


# --- L'affichage

TABLE = "{:15}{:>3}{:>7}{:>7}{:>7}{:>16}{:>9}{:>11}{:>7}"
TITLES = ["", "cas", "vous", "juge", "biais", "intervalle", "|écart|", "à 1 point", "kappa"]


def shown(value, form=".2f"):
    """Une mesure à l'écran, ou un tiret si elle ne se calcule pas."""
    return "-" if value is None else format(value, form)


def shown_interval(ends):
    """Un intervalle à l'écran : « +0.32 à +1.88 », ou un tiret."""
    return "-" if ends is None else f"{ends[0]:+.2f} à {ends[1]:+.2f}"


def table_line(name, found):
    """La ligne d'un critère, sous TITLES."""
    means = [shown(found["human"]), shown(found["judge"]), shown(found["bias"], "+.2f")]
    ends = shown_interval(found["interval"])
    within_one = shown(found["within_one"], ".0%").replace("%", " %")
    others = [shown(found["absolute_gap"]), within_one, shown(found["kappa"])]
    return TABLE.format(name, found["cases"], *means, ends, *others)


def sign(ends):
    """1 ou -1 si un intervalle exclut 0, selon le côté où il se trouve ; 0 sinon."""
    if ends is None or ends[0] <= 0 <= ends[1]:
        return 0
    return 1 if ends[0] > 0 else -1


def difference_lines(second, found):
    """L'écart de V1 à une autre version, selon vous et selon le juge ; dit ensuite si vous êtes
    d'accord."""
    cases = f"cas que vous avez notés dans les deux versions : {found['cases']}"
    lines = ["", f"V1 → {second} ; {cases}"]
    for side, who in [("human", "vous"), ("judge", "le juge")]:
        gap = shown(found[side], "+.2f")
        ends = shown_interval(found[f"{side}_interval"])
        lines.append(f"selon {who:8}: écart {gap} ; intervalle à 95 % : {ends}")
    yours = sign(found["human_interval"])
    its = sign(found["judge_interval"])
    if yours and yours == its:
        answer = "Oui."
    elif yours and yours == -its:
        answer = "Non, il les classe dans l'ordre inverse : précisez la grille avant de le croire."
    else:
        answer = (
            "On ne peut pas le dire, car un intervalle manque ou contient 0 : notez d'autres cas "
            "sur tous les critères. Pour une feuille plus longue, donnez un autre nom de fichier, "
            "et ajoutez --exporter et un plus grand --nombre ; elle reprendra les lignes de la "
            "feuille actuelle, mais sans vos notes, à recopier d'après les identifiants."
        )
    return [*lines, f"Le juge classe-t-il V1 et {second} comme vous ? {answer}"]


def distance(row):
    """De combien la moyenne du juge s'écarte de la vôtre."""
    return abs(row.judge["moyenne"] - row.human["moyenne"])


def disagreement_lines(marked):
    """Vos trois plus grands désaccords avec le juge, et ses raisons."""
    complete = [row for row in marked if "moyenne" in row.human]
    rows = [row for row in complete if distance(row) > 0]
    rows.sort(key=distance, reverse=True)
    lines = ["", "Vos plus grands désaccords, et la justification du juge :"] if rows else []
    for row in rows[:3]:
        marks = f"vous {row.human['moyenne']:.2f}, juge {row.judge['moyenne']:.2f}"
        lines.append(f"ligne {row.line} ({row.version}, cas n° {row.case_number}) : {marks}")
        why = row.result["notes"]["justification"]
        printable = "".join(char if char.isprintable() else " " for char in why)
        lines.append(f"  « {printable} »")
    return lines


def screen(report, marked):
    """Tout ce qui s'affiche d'une comparaison."""
    lines = [f"Résumés notés : {report['n']} ; lignes sans note : {report['skipped']}"]
    if not report["n"] and report["skipped"]:
        return [*lines, "Notez les résumés, enregistrez la feuille, puis relancez cette commande."]
    if not report["n"]:
        return [
            *lines,
            "Aucune ligne à comparer : donnez avec --journal le journal dont l'export a affiché le "
            "nom.",
        ]
    incomplete = sorted(row.line for row in marked if "moyenne" not in row.human)
    if incomplete:
        numbers = ", ".join(map(str, incomplete))
        lines.append(
            f"Il manque la note d'un critère (lignes du tableur : {numbers}) : ajoutez-la, puis "
            "relancez cette commande ; sinon, la moyenne de ces lignes ne compte pas."
        )
    lines += ["", TABLE.format(*TITLES)]
    biased = []
    for name, found in report["criteria"].items():
        lines.append(table_line(name, found))
        if sign(found["interval"]):
            biased.append(name)
    names = ", ".join(biased) or "aucun"
    lines.append(f"Biais établis (ceux dont l'intervalle exclut 0) : {names}.")
    lines.append("Pour le sens des colonnes, voyez --help.")
    for second, found in report["comparisons"].items():
        lines += difference_lines(second, found)
    return lines + disagreement_lines(marked)


def command(argv):
    """Crée la feuille, ou fait la comparaison ; rend le code de sortie."""
    parser = eval_cv.parser_for(argv)  # qui ne donne aucune valeur par défaut
    parser.add_argument("feuille", metavar="FEUILLE")
    parser.add_argument("--journal", default=None)
    parser.add_argument("--exporter", action="store_true", default=False)
    parser.add_argument("--nombre", type=partial(eval_cv.whole_number, "--nombre"), default=20)
    parser.add_argument("--json", action="store_true", default=False)
    options = parser.parse_args(argv)
    journal, results = read_evaluation(options.journal)
    eval_cv.tell(f"Journal : {journal.path}")
    code = 0
    if options.exporter:
        lines = export(options.feuille, journal, results, options.nombre)
    else:
        marked, skipped = read_sheet(options.feuille, graded_rows(results), journal)
        report = comparison_of(marked, skipped, list(results))
        lines = [json.dumps(report, indent=2)] if options.json else screen(report, marked)
        code = 0 if marked else 1
    eval_cv.display("\n".join(lines))
    return code


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
