#!/usr/bin/env python3
"""Évaluer une recherche documentaire : Hit Rate et MRR, avant et après l'affinage d'un embedding.

    python retrieval_eval.py                         l'exemple de l'exercice
    python retrieval_eval.py avant.json apres.json   deux fichiers à comparer

Un « run » est ce que la recherche a trouvé, les « qrels » ce qu'il fallait trouver.
"""

import argparse
import gc
import gzip
import json
import math
import random
import sys
import zlib
from array import array
from collections import Counter
from contextlib import suppress
from itertools import chain, compress, groupby, product
from operator import itemgetter
from statistics import fmean, stdev

# --- 1. L'exercice


def metrics(positions, k):
    """(Hit Rate à k, MRR à k, MRR), de 0 à 1, à 4 décimales ; une position part de 1, 0 si absent.
    MRR : Voorhees, « The TREC-8 Question Answering Track Report », 1999."""
    counts = Counter(positions)
    at_k = {position: n for position, n in counts.items() if 0 < position <= k}
    ranks = [math.fsum(n / p for p, n in kept.items() if p) for kept in (at_k, counts)]
    total = len(positions) or 1
    return tuple(round(found / total, 4) for found in (sum(at_k.values()), *ranks))


def is_list(value):
    """Liste, tuple, tableau numpy… mais ni texte, ni dictionnaire, ni ensemble."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict, set, frozenset))


def position_of(question, documents, relevant):
    """La position du premier document pertinent, à partir de 1, ou 0 sans lui."""
    several = is_list(relevant) or isinstance(relevant, (set, frozenset))
    if relevant is None or several and not len(relevant):
        raise ValueError(f"la question {question!r:.60} n'a pas de document pertinent")
    if not is_list(documents) or isinstance(relevant, dict):
        raise TypeError(f"question {question!r:.60} : une liste de documents est attendue")
    relevant = set(relevant) if several else {relevant}
    return next((n for n, document in enumerate(documents, 1) if document in relevant), 0)


def evaluer_retrieval(questions, resultats, documents_pertinents, k=5) -> dict:
    """Hit Rate à k et MRR d'une recherche ; le dénominateur est toujours le nombre de questions.
    `questions` : liste de chaînes ; `resultats` : pour chacune, ses documents, du plus au moins
    pertinent ; `documents_pertinents` : {question: document, ou plusieurs} ; `k` : profondeur du
    Hit Rate seul. Rend {"hit_rate": 0.5, "mrr": 0.25, "details": [{"question": "Q1", "position":
    2, "hit": True, "reciprocal_rank": 0.5}, …]}. Une faute lève TypeError ou ValueError."""
    if type(k) is not int:
        raise TypeError(f"k : un entier est attendu, pas {k!r}")
    if k < 1:
        raise ValueError(f"k : au moins 1 est attendu, pas {k}")
    if not (is_list(questions) and is_list(resultats) and isinstance(documents_pertinents, dict)):
        raise TypeError("questions, resultats : des listes ; documents_pertinents : un dict")
    if len(questions) != len(resultats):
        raise ValueError(f"questions : {len(questions)}, listes de résultats : {len(resultats)}")
    expected = map(documents_pertinents.get, questions)
    positions = [
        (found.index(one) + 1 if one in found else 0)
        if type(one) is str and type(found) is list  # le cas courant
        else position_of(question, found, one)
        for question, found, one in zip(questions, resultats, expected)
    ]
    hit_rate, _, mrr = metrics(positions, k)
    ranks = {p: {"hit": 0 < p <= k, "reciprocal_rank": 1 / p if p else 0.0} for p in set(positions)}
    details = [{"question": q, "position": p, **ranks[p]} for q, p in zip(questions, positions)]
    return {"hit_rate": hit_rate, "mrr": mrr, "details": details}


# --- 2. Lire les fichiers


class Faute(Exception):
    """Un fichier ou un usage incorrect, que le texte nomme."""


FAULTS = {  # ce que lève la lecture d'un fichier
    FileNotFoundError: "fichier introuvable",
    (gzip.BadGzipFile, EOFError, zlib.error): "fichier gzip corrompu",
    OSError: "lecture impossible ({0.strerror})",
    UnicodeDecodeError: "le texte n'est pas en UTF-8",
    json.JSONDecodeError: "JSON invalide, ligne {0.lineno}, colonne {0.colno}",
    RecursionError: "JSON trop imbriqué",
    KeyError: "la clé {0} manque",
    (Faute, TypeError, ValueError, OverflowError): "{0}",
}
# Les colonnes des fichiers texte, selon leur nombre : place du document, place du nombre, lecture.
RUN = {6: (2, 4, float), 3: (1, 2, lambda rank: -float(rank))}  # TREC (score) ; MS MARCO (rang)
QRELS = {4: (2, 3, float), 3: (1, 2, float), 2: (1, 1, lambda _: 1.0)}  # TREC ; BEIR ; MS MARCO


def single(numbers):
    """Des nombres en simple précision, comme dans trec_eval ; lève ValueError."""
    numbers = array("f", numbers)
    if math.isnan(sum(numbers)) and any(map(math.isnan, numbers)):
        raise ValueError("un nombre manque (NaN)")
    return numbers


def text_blocks(file, columns):
    """Rend (question, documents, nombres, None) pour chaque suite de lignes d'une même question."""
    rows = filter(None, map(bytes.split, file))
    first = next(rows, [])
    if len(first) not in columns:
        raise Faute(f"ligne 1 : {len(first)} colonnes et non {' ou '.join(map(str, columns))}")
    at, place, read = columns[len(first)]
    header = columns is QRELS and first[2:] == [b"score"]
    for question, group in groupby(rows if header else chain([first], rows), itemgetter(0)):
        group = list(group)
        try:
            numbers = single([read(row[place]) for row in group])
            if set(map(len, group)) != {len(first)}:
                raise ValueError
        except (ValueError, IndexError):
            raise Faute(first_fault(file, len(first), place, read, header)) from None
        yield question.decode(), [row[at] for row in group], numbers, None


def first_fault(file, width, place, read, header):
    """La première ligne fautive, cherchée une fois sûr qu'il y en a une."""
    file.seek(0)
    for n, line in enumerate(file, 1):
        row, good = line.split(), header and n == 1
        with suppress(ValueError):
            good = good or not row or len(row) == width and single([read(row[place])])
        if not good:
            return f"ligne {n} : {width} colonnes, dont un nombre, et non {line!r:.60}"


def unique(pairs):
    """Un objet JSON ; une clé répétée en écraserait une autre sans un mot."""
    if len(dict(pairs)) < len(pairs):
        raise Faute("une clé y est répétée")
    return dict(pairs)


def encoded(identifiers):
    """Des identifiants en octets : décoder ceux des fichiers texte serait lent."""
    return [str(name).encode("utf-8", "surrogatepass") for name in identifiers]


def json_blocks(file, columns):
    """Comme `text_blocks`, avec les documents attendus au lieu de None si le fichier les dit."""
    data = json.loads(file.read(), object_pairs_hook=unique)
    if data.keys() & {"resultats", "documents_pertinents"}:  # un fichier de l'exercice
        names = ("questions", "resultats", "documents_pertinents")
        questions, results, relevant = (data[name] for name in names)
        if isinstance(questions, list):  # 12 et "12" désignent la même question
            questions = list(map(str, questions))
        if isinstance(relevant, dict):
            relevant = {q: d if isinstance(d, list) else [d] for q, d in relevant.items()}
        evaluer_retrieval(questions, results, relevant)  # pour ses refus
        for question, documents in zip(questions, results):
            expected = frozenset(encoded(relevant[question]))
            yield question, encoded(documents), range(0, -len(documents), -1), expected
        return
    for question, values in data.items():
        if not isinstance(values, dict) or not {int, float} >= set(map(type, values.values())):
            raise Faute(f"question {question!r:.60} : {{document: nombre}} est attendu")
        yield question, encoded(values), single(values.values()), None


def prediction_blocks(file, columns):
    """Comme `text_blocks`, pour les prédictions de sentence-transformers, une par ligne."""
    for n, line in enumerate(filter(bytes.strip, file), 1):
        try:
            record = json.loads(line)
            documents = encoded(result["corpus_id"] for result in record["results"])
            yield str(record["query_id"]), documents, range(0, -len(documents), -1), None
        except (ValueError, TypeError, KeyError):
            raise Faute(f"ligne {n} : une prédiction, et non {line!r:.60}") from None


def blocks(path, columns):
    """Lit un fichier, compressé ou non, dont le contenu dit le format ; lève `Faute`."""
    try:
        with open(path, "rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            if file.peek(3)[:3] == b"\xef\xbb\xbf":  # un BOM
                file.read(3)
            head = file.peek(99).lstrip()
            read = json_blocks if head[:1] == b"{" else text_blocks
            read = prediction_blocks if head.startswith(b'{"query_id"') else read
            yield from read(file, columns)
    except Exception as error:
        for kinds, text in FAULTS.items():
            if isinstance(error, kinds):
                raise Faute(f"{path} : {text.format(error)}") from None
        raise


def read_qrels(path):
    """Les jugements : {question: documents dont la pertinence dépasse 0}."""
    qrels = {}
    for question, documents, numbers, expected in blocks(path, QRELS):
        relevant = {d for d, number in zip(documents, numbers) if number > 0}
        qrels[question] = qrels.get(question, frozenset()) | (expected or relevant)
    return qrels


def first_relevant(documents, numbers, relevant):
    """La position, ou 0, du premier pertinent, par nombre puis nom décroissants (trec_eval)."""
    found = relevant.intersection(documents)
    if not found:
        return 0
    number, name = max((numbers[documents.index(d)], d) for d in found)
    reached = [n for n in numbers if n >= number]
    position = 1 + len(reached) - reached.count(number)
    if reached.count(number) > 1:  # des ex æquo
        position += sum(d > name for d, n in zip(documents, numbers) if n == number)
    return position


# --- 3. Évaluer un fichier, comparer l'avant et l'après


def evaluate(path, qrels, ks):
    """Évalue un fichier. Rend ses {(question, documents attendus, occurrence): position}, et son
    bilan : {"hit_rate": {1: 0.5, …}, "mrr_at_k": {1: 0.5, …}, "mrr": 0.5, "questions": 2, …}."""
    positions, seen, answered, ids = {}, Counter(), 0, ()
    for question, documents, numbers, expected in blocks(path, RUN):
        is_run = expected is None  # ses jugements sont ailleurs
        if is_run and question in seen:
            raise Faute(f"{path} : {question!r:.60} y revient, triez le fichier (sort -s -k1,1)")
        seen[question] += 1
        expected = qrels.get(question) if is_run else expected
        if expected is not None:
            rank = first_relevant(documents, numbers, expected)
            positions[question, expected, seen[question]] = rank
            answered += bool(documents)
            ids = ids or (*documents[:1], *sorted(expected)[:1])
    if not positions:
        ids = f"{min(seen, default='')!r:.60} et {min(qrels, default='')!r:.60}"
        raise Faute(f"{path} : aucune de ses questions n'est dans --qrels ({ids})")
    unjudged = seen.total() - len(positions)
    if is_run:  # les questions jugées sans résultat comptent aussi
        positions = {(q, expected, 1): 0 for q, expected in qrels.items()} | positions
    if not any(positions.values()):
        names = " et ".join(name.decode("utf-8", "replace") for name in ids)
        print(f"{path} : aucun bon document, comparez {names}", file=sys.stderr)
    rates, at_k, mrrs = zip(*(metrics(list(positions.values()), k) for k in ks))
    report = {"hit_rate": dict(zip(ks, rates)), "mrr_at_k": dict(zip(ks, at_k)), "mrr": mrrs[0]}
    report |= {"questions": len(positions), "sans_resultat": len(positions) - answered}
    return positions, report | {"sans_jugement": unjudged}


def p_value(gaps) -> float:
    """Le p, de 0 à 1, du test de permutation apparié bilatéral par changement de signe (Fisher,
    1935) : la part des tirages de signes dont la somme est au moins aussi loin de zéro que celle
    observée. Écarts 1, 2 et 3 : +++ et ---, deux sur huit, p = 0,25. Au-delà de 16 écarts, 10 000
    tirages au hasard au lieu de tous."""
    values = [gap for gap in gaps if gap]
    n, total = len(values), math.fsum(values)
    observed = abs(total) - 1e-9 * sum(map(abs, values))  # des sommes égales diffèrent d'un arrondi
    flips = product((1, 0), repeat=n)  # 1 : signe gardé, 0 : changé ; somme = 2 × gardés - total
    if n > 16:  # l'observé compte avec les 10 000 tirages : p n'est jamais nul
        draw, coin = random.Random(0).randbytes, bytes([0, 1]) * 128  # un octet : pile ou face
        flips = chain([[1] * n], (draw(n).translate(coin) for _ in range(10_000)))
    return fmean(abs(2 * sum(compress(values, f)) - total) >= observed for f in flips)


def compare(before, after, k):
    """L'écart des valeurs affichées, son erreur type, son p ; combien de questions bougent."""
    pairs = [(position, after[key]) for key, position in before.items()]
    gaps = {"mrr": [(b and 1 / b) - (a and 1 / a) for a, b in pairs]}
    gaps["hit_rate"] = [(0 < b <= k) - (0 < a <= k) for a, b in pairs]
    old, new = (metrics(list(side.values()), k) for side in (before, after))
    comparison, n = {}, len(pairs)
    for metric, at in (("mrr", 2), ("hit_rate", 0)):
        gap, p = round(new[at] - old[at], 4), round(p_value(gaps[metric]), 6)
        error = round(stdev(gaps[metric]) / math.sqrt(n), 4) if n > 1 else None
        comparison[metric] = {"difference": gap, "standard_error": error, "p_value": p}
    moves = Counter((gap > 0) - (gap < 0) for gap in gaps["mrr"])
    return comparison | {"hausse": moves[1], "baisse": moves[-1], "stable": moves[0]}


# --- 4. L'écran et la ligne de commande


def report_lines(reports, sides):
    """Le tableau des mesures, puis l'histogramme des positions."""
    ks, two = list(reports[0]["hit_rate"]), len(reports) > 1
    rows = [(f"Hit Rate@{k}", [r["hit_rate"][k] for r in reports]) for k in ks]
    rows += [(f"MRR@{k}", [r["mrr_at_k"][k] for r in reports]) for k in ks]
    lines = [f"{'':14}{'avant':>12}{'après':>12}{'écart':>12}"] if two else []
    for name, values in [*rows, ("MRR", [r["mrr"] for r in reports])]:
        gap = f"{values[1] - values[0]:+12.4f}" if two else ""
        lines.append(f"{name:>14}" + "".join(f"{value:12.4f}" for value in values) + gap)
    for name in ("questions", "sans_resultat", "sans_jugement"):
        lines.append(f"{name:>14}" + "".join(f"{r[name]:12}" for r in reports))
    lines.append("\nQuestions selon la position du premier document pertinent :")
    bins = [*sorted(ks), math.inf]
    for low, high in [*zip([1, *(k + 1 for k in bins)], bins), (0, 0)]:
        line = f"{'absent' if not high else f'{low} à {high}'.replace('à inf', 'ou plus'):>14}"
        for side in sides:
            count = sum(low <= position <= high for position in side.values())
            line += f"{count:8} {'█' * round(24 * count / len(side)):<24}"
        lines.append(line.rstrip())
    return lines


def comparison_lines(comparison, before, after, k):
    """Ce que la comparaison permet de dire : mouvements, pires baisses, incertitude."""
    up, down, still = (comparison[name] for name in ("hausse", "baisse", "stable"))
    lines = [f"\nQuestions en hausse : {up}, en baisse : {down}, stables : {still}"]
    gaps = {key: (after[key] and 1 / after[key]) - 1 / a for key, a in before.items() if a}
    for key in sorted(gaps, key=gaps.get)[: min(5, down)]:
        lines.append(f"  {key[0]!r:.60} : position {before[key]} → {after[key] or 'absent'}")
    for metric, name in (("mrr", "MRR"), ("hit_rate", f"Hit Rate@{k}")):
        gap, error, p = comparison[metric].values()
        says = f"un tel écart serait {'rare' if p <= 0.05 else 'banal'} si rien n'avait changé"
        if up + down < 6:
            says = "trop peu de questions ont bougé pour conclure, il en faut 6"
        error = "indisponible" if error is None else error
        lines.append(f"{name} : écart {gap:+.4f}, erreur type {error}, p = {p:.2g} ; {says}.")
    return lines


def refuse(message):
    raise Faute(f"usage incorrect, voir --help ({message})")


def run(argv):
    """Toute l'évaluation, à l'écran ou en JSON."""
    parser = argparse.ArgumentParser(description="Hit Rate et MRR, avant et après l'affinage.")
    parser.error, add = refuse, parser.add_argument
    add("avant", nargs="?", help="run, ou fichier de l'exercice (sinon, l'exemple)")
    add("apres", nargs="?", help="le second, à comparer au premier")
    add("--qrels", help="les jugements, pour des runs")
    add("--k", type=int, nargs="+", default=[1, 5, 10], help="profondeurs (1 5 10), à la fin")
    add("--json", action="store_true", help="bilan en JSON")
    options = parser.parse_args(argv)
    ks = list(dict.fromkeys(options.k))
    if min(ks) < 1:
        raise Faute("--k : un entier d'au moins 1 est attendu")
    if options.avant is None:
        results = [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]]
        example = evaluer_retrieval(["Q1", "Q2"], results, {"Q1": "doc_b", "Q2": "doc_z"})
        return print(json.dumps(example, indent=2))
    qrels = {} if options.qrels is None else read_qrels(options.qrels)
    paths = [path for path in (options.avant, options.apres) if path is not None]
    sides, reports = zip(*(evaluate(path, qrels, ks) for path in paths))
    for question, *_ in sides[0].keys() ^ sides[-1].keys():
        raise Faute(f"{' et '.join(paths)} : {question!r:.60} diffère de l'un à l'autre")
    comparison = compare(*sides, ks[0]) if len(sides) > 1 else None
    if options.json:
        data = dict(zip(("avant", "apres"), [*reports, None])) | {"comparaison": comparison}
        return print(json.dumps(data, indent=2))
    print(*report_lines(reports, sides), sep="\n")
    if comparison:
        print(*comparison_lines(comparison, *sides, ks[0]), sep="\n")


def main(argv=None):
    """Lance `run` ; rend 0, ou 2 après avoir dit une faute en une phrase."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="replace")  # une console qui n'est pas en UTF-8 affiche « ? »
    try:
        run(sys.argv[1:] if argv is None else argv)
        print(end="", flush=True)
    except (Faute, OSError) as fault:
        print(f"retrieval_eval.py : {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    gc.disable()  # rien ici n'est cyclique : 10 % du temps
    sys.exit(main())
