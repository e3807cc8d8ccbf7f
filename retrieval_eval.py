#!/usr/bin/env python3
"""Évaluer une recherche documentaire : Hit Rate et MRR, avant et après l'affinage d'un embedding.

    python retrieval_eval.py                            l'exemple de l'exercice
    python retrieval_eval.py avant.json apres.json      deux fichiers à comparer
    python retrieval_eval.py avant.trec apres.jsonl --qrels qrels.tsv --k 1 5 10

Un « run » est ce que la recherche a trouvé, les « qrels » ce qu'il fallait trouver ; le dénominateur
est toujours le nombre total de questions. `evaluer_retrieval` est l'exercice ; la suite lit des
fichiers et compare. Laissé dehors : les autres mesures (nDCG, rappel…), que donne ranx.
"""

import argparse
import gzip
import json
import math
import os
import random
import sys
import zlib
from array import array
from collections import Counter
from contextlib import suppress
from itertools import chain, compress, groupby, product
from operator import itemgetter, neg
from statistics import fmean, stdev

# --- 1. L'exercice


def metrics(positions, k):
    """(Hit Rate à k, MRR à k, MRR), de 0 à 1, à 4 décimales ; une position part de 1, 0 si absent.
    Rang réciproque et MRR : Voorhees, « The TREC-8 Question Answering Track Report », 1999."""
    n = len(positions) or 1
    at_k = [position for position in positions if 0 < position <= k]
    ranks = [math.fsum(1 / p for p in kept if p) for kept in (at_k, positions)]
    return tuple(round(total / n, 4) for total in (len(at_k), *ranks))


def is_list(value):
    """Une liste, un tuple ou un tableau numpy, mais ni texte, ni dictionnaire, ni ensemble."""
    indexed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return indexed and not isinstance(value, (str, bytes, dict))


def position_of(question, documents, relevant):
    """La position du premier document pertinent, à partir de 1, ou 0 s'il n'y est pas."""
    if type(relevant) is str and type(documents) is list:  # le cas courant, et le plus rapide
        return documents.index(relevant) + 1 if relevant in documents else 0
    several = is_list(relevant) or isinstance(relevant, (set, frozenset))
    if relevant is None or several and not len(relevant):
        raise ValueError(f"la question {question!r:.60} n'a pas de document pertinent")
    if not is_list(documents) or isinstance(relevant, dict):
        kinds = "une liste de documents trouvés, et un document pertinent ou plusieurs"
        raise TypeError(f"question {question!r:.60} : il faut {kinds}")
    relevant = set(relevant) if several else {relevant}
    return next((n for n, document in enumerate(documents, 1) if document in relevant), 0)


def evaluer_retrieval(questions, resultats, documents_pertinents, k=5) -> dict:
    """Hit Rate à k et MRR d'une recherche ; le dénominateur est toujours le nombre de questions.

    `questions` : liste de chaînes ; `resultats` : pour chacune, ses documents (textes ou entiers),
    du plus au moins pertinent ; `documents_pertinents` : {question: document, ou liste ou ensemble
    de documents, dont compte le premier trouvé} ; `k` : profondeur du Hit Rate, le MRR regardant
    toute la liste. Une liste peut être un tuple ou un tableau numpy. Rend {"hit_rate": 0.5, "mrr":
    0.25, "details": [{"question": "Q1", "position": 2, "hit": True, "reciprocal_rank": 0.5}, …]}.
    Une entrée incorrecte lève TypeError ou ValueError ; elle n'est jamais comptée comme un échec.
    """
    if type(k) is not int or k < 1:
        raise (ValueError if type(k) is int else TypeError)(
            f"k : un entier d'au moins 1, pas {k!r}"
        )
    for name, value in [("questions", questions), ("resultats", resultats)]:
        if not is_list(value):
            raise TypeError(f"{name} : une liste est attendue, pas {value!r:.60}")
    if not isinstance(documents_pertinents, dict):
        raise TypeError("documents_pertinents : un dictionnaire {question: document} est attendu")
    if len(questions) != len(resultats):
        raise ValueError(f"questions : {len(questions)}, listes de résultats : {len(resultats)}")
    get = documents_pertinents.get
    positions = [position_of(q, found, get(q)) for q, found in zip(questions, resultats)]
    hit_rate, _, mrr = metrics(positions, k)
    details = [
        {"question": q, "position": p, "hit": 0 < p <= k, "reciprocal_rank": 1 / p if p else 0.0}
        for q, p in zip(questions, positions)
    ]
    return {"hit_rate": hit_rate, "mrr": mrr, "details": details}


EXAMPLE = {
    "questions": ["Q1", "Q2"],
    "resultats": [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]],
    "documents_pertinents": {"Q1": "doc_b", "Q2": "doc_z"},
}

# --- 2. Lire les fichiers


class Faute(Exception):
    """Un fichier ou un usage incorrect ; le texte nomme le fichier et l'erreur."""


FAULTS = {  # ce que peuvent lever l'ouverture et la lecture d'un fichier, dans l'ordre à essayer
    FileNotFoundError: "fichier introuvable",
    IsADirectoryError: "c'est un dossier",
    (gzip.BadGzipFile, EOFError, zlib.error): "fichier gzip corrompu",
    OSError: "lecture ou écriture impossible",
    UnicodeDecodeError: "le texte n'est pas en UTF-8",
    json.JSONDecodeError: "JSON invalide, ligne {0.lineno}, colonne {0.colno}",
    (ValueError, RecursionError): "JSON invalide (nombre démesuré, imbrication trop profonde)",
}
# Les colonnes des fichiers texte, selon leur nombre : place du document, place du nombre, signe.
RUN = {6: (2, 4, 1), 3: (1, 2, -1)}  # TREC (un score) ; MS MARCO (un rang, le plus petit d'abord)
QRELS = {4: (2, 3, 1), 3: (1, 2, 1), 2: (1, None, 1)}  # TREC ; BEIR ; MS MARCO (tous pertinents)
BOM = b"\xef\xbb\xbf"


def unique(pairs):
    """Un objet JSON ; une clé répétée en écraserait une autre sans que rien ne le signale."""
    if len(dict(pairs)) < len(pairs):
        raise Faute("une clé y est répétée")
    return dict(pairs)


def single(numbers, sign=1):
    """Des nombres en simple précision, celle où trec_eval les compare ; lève ValueError."""
    numbers = array("f", map(float, numbers))
    if any(map(math.isnan, numbers)):
        raise ValueError
    return numbers if sign > 0 else array("f", map(neg, numbers))


def text_blocks(file, columns):
    """Rend (question, documents, nombres) pour chaque suite de lignes d'une même question."""
    rows = filter(None, map(bytes.split, file))
    first = next(rows, [])
    width, header = len(first), columns is QRELS and first[2:] == [b"score"]
    if width not in columns:
        raise Faute(f"ligne 1 : {width} colonnes au lieu de {' ou '.join(map(str, columns))}")
    at, place, sign = columns[width]
    for question, group in groupby(rows if header else chain([first], rows), itemgetter(0)):
        group = list(group)
        values = list(zip(*group))
        try:
            if set(map(len, group)) != {width}:
                raise ValueError
            numbers = single(values[place], sign) if place else array("f", [1]) * len(group)
        except ValueError:
            raise Faute(first_fault(file, width, place, header)) from None
        yield question.decode(), values[at], numbers


def first_fault(file, width, place, header):
    """La première ligne fautive, que l'on ne cherche qu'une fois sûr qu'il y en a une."""
    file.seek(0)
    for n, line in enumerate(file, 1):
        row, good = line.split(), False
        with suppress(ValueError):
            good = len(row) == width and (not place or single([row[place]]))
        if row and not good and not (header and n == 1):
            return f"ligne {n} : {width} colonnes avec leur nombre sont attendues, pas {line!r:.60}"


def json_blocks(file):
    """Comme `text_blocks`, pour {question: {document: nombre}} ou les prédictions, une par ligne, de
    sentence-transformers. Un fichier de l'exercice vient entier : (None, contenu, None)."""
    first = file.readline()
    try:
        data = json.loads(first, object_pairs_hook=unique)
    except json.JSONDecodeError:
        data = None
    if isinstance(data, dict) and "results" in data and "query_id" in data:
        for n, line in enumerate(chain([first], file), 1):
            try:
                record = json.loads(line) if line.strip() else None
                ids = [str(hit["corpus_id"]) for hit in record["results"]] if record else []
            except (ValueError, TypeError, KeyError):
                raise Faute(
                    f"ligne {n} : une prédiction de sentence-transformers est attendue"
                ) from None
            if record:  # déjà dans l'ordre : pour score, l'opposé du rang
                yield str(record["query_id"]), ids, array("f", range(0, -len(ids), -1))
        return
    rest = file.read()
    if data is None or rest.strip():
        data = json.loads(first + rest, object_pairs_hook=unique)
    if not isinstance(data, dict):
        raise Faute("{question: {document: nombre}} est attendu")
    if data.keys() & {"resultats", "documents_pertinents"}:
        yield None, data, None
        return
    for question, values in data.items():
        if not isinstance(values, dict) or not set(map(type, values.values())) <= {int, float}:
            raise Faute(f"question {question!r:.60} : {{document: nombre}} est attendu")
        yield question, list(values), single(values.values())


def blocks(path, columns):
    """Lit un fichier, compressé ou non, dont le contenu dit le format ; lève `Faute`."""
    try:
        with open(path, "rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            if file.peek(3)[:3] == BOM:
                file.read(3)
            is_json = file.peek(1).lstrip()[:1] in (b"{", b"[")
            yield from json_blocks(file) if is_json else text_blocks(file, columns)
    except Faute as fault:
        raise Faute(f"{path} : {fault}") from None
    except Exception as error:
        for kinds, text in FAULTS.items():
            if isinstance(error, kinds):
                raise Faute(f"{path} : {text.format(error)}") from None
        raise


def read_qrels(path):
    """Les jugements : {question: les documents dont la pertinence dépasse 0}."""
    qrels = {}
    for question, documents, numbers in blocks(path, QRELS):
        if question is None:
            raise Faute(f"{path} : un fichier de l'exercice n'est pas un fichier de jugements")
        relevant = [d for d, number in zip(documents, numbers) if number > 0]
        relevant = {d if isinstance(d, str) else d.decode() for d in relevant}
        qrels[question] = qrels.get(question, frozenset()) | relevant
    if not qrels:
        raise Faute(f"{path} : aucune question jugée")
    return qrels


def first_relevant(documents, numbers, relevant):
    """La position du premier document pertinent, 0 s'il n'y en a pas, dans l'ordre de trec_eval :
    nombre décroissant, puis identifiant décroissant."""
    found = relevant.intersection(documents)
    if not found:
        return 0
    number, name = max((numbers[documents.index(document)], document) for document in found)
    above = sum(map(number.__lt__, numbers))
    if numbers.count(number) > 1:
        above += sum(d > name for d, other in zip(documents, numbers) if other == number)
    return 1 + above


# --- 3. Évaluer un fichier, et comparer l'avant et l'après


def texts(values):
    """Des identifiants en textes, car 12 et "12" désignent le même document ; le reste tel quel."""
    if not isinstance(values, list):
        return values
    if not set(map(type, values)) <= {str, int}:
        raise TypeError("un identifiant doit être un texte ou un entier")
    return list(map(str, values))


def exercise_side(data):
    """L'évaluation d'un fichier au format de l'exercice (voir `evaluate`)."""
    try:
        questions, results = texts(data["questions"]), data["resultats"]
        results = list(map(texts, results)) if isinstance(results, list) else results
        relevant = data["documents_pertinents"]
        if isinstance(relevant, dict):
            relevant = {q: texts(d if isinstance(d, list) else [d]) for q, d in relevant.items()}
        details = evaluer_retrieval(questions, results, relevant)["details"]
    except KeyError as error:
        raise Faute(f"la clé {error} manque") from None
    except (TypeError, ValueError) as error:
        raise Faute(str(error)) from None
    seen, positions = Counter(), {}
    for question, position in map(itemgetter("question", "position"), details):
        seen[question] += 1
        positions[question, frozenset(relevant[question]), seen[question]] = position
    return {"positions": positions, "sans_resultat": results.count([]), "sans_jugement": 0}


def evaluate(path, qrels=None):
    """Évalue un fichier. Rend {"positions": {(question, documents attendus, occurrence): position},
    "sans_resultat": 0, "sans_jugement": 0}."""
    found, unjudged, some = {}, set(), "aucun"
    for question, documents, numbers in blocks(path, RUN):
        if question is None:
            try:
                return exercise_side(documents)
            except Faute as fault:
                raise Faute(f"{path} : {fault}") from None
        if qrels is None:
            raise Faute(f"{path} : ce run se lit avec ses jugements, ajoutez --qrels FICHIER")
        if question in found:
            advice = "triez le fichier par question, par exemple avec sort -s -k1,1"
            raise Faute(f"{path} : la question {question!r:.60} y revient plus loin ; {advice}")
        if question not in qrels:
            unjudged.add(question)
            continue
        relevant = qrels[question]
        if documents and isinstance(documents[0], bytes):
            relevant = {document.encode("utf-8", "surrogatepass") for document in relevant}
        found[question] = first_relevant(documents, numbers, relevant)
    if not found:
        ids = f"run : {min(unjudged, default='')!r:.60}, qrels : {min(qrels)!r:.60}"
        raise Faute(f"{path} : aucune de ses questions n'est jugée ({ids})")
    positions = {(q, documents, 1): found.get(q, 0) for q, documents in qrels.items()}
    counts = {"sans_resultat": len(qrels) - len(found), "sans_jugement": len(unjudged)}
    return {"positions": positions, **counts}


def report_of(side, ks):
    """Les mesures d'une évaluation (voir `evaluate`), pour chaque k."""
    positions = list(side["positions"].values())
    values = {k: metrics(positions, k) for k in ks}
    at_k = {"hit_rate": {k: values[k][0] for k in ks}, "mrr_at_k": {k: values[k][1] for k in ks}}
    counts = {name: side[name] for name in ("sans_resultat", "sans_jugement")}
    return {**at_k, "mrr": values[ks[0]][2], "questions": len(positions), **counts}


def p_value(gaps) -> float:
    """Le p, de 0 à 1, du test de permutation apparié bilatéral par changement de signe (Fisher,
    1935). Si rien ne distinguait l'avant de l'après, chaque écart pourrait être de l'autre signe :
    p est la part des tirages de signes dont la somme est au moins aussi loin de zéro que celle
    observée. Écarts 1, 2 et 3 : deux tirages sur huit (+++ et ---) atteignent 6 ou -6, p = 0,25.
    Tous les tirages jusqu'à 16 écarts non nuls, 10 000 au hasard jusqu'à 2 000, la loi normale
    au-delà. (Comme dans eval_cv.py, loi normale en plus : chaque script se copie seul.)"""
    values = [gap for gap in gaps if gap]
    n, total = len(values), math.fsum(values)
    observed = abs(total) - 1e-9 * sum(map(abs, values))  # des sommes égales diffèrent d'un arrondi
    if n > 2000:
        sizes = set(map(abs, values))
        observed -= max(sizes) if len(sizes) == 1 else 0  # les sommes vont de 2 en 2 écarts
        return math.erfc(max(0, observed) / math.sqrt(2 * sum(value * value for value in values)))
    flips = product((1, 0), repeat=n)  # 1 : l'écart garde son signe ; 0 : il en change
    if n > 16:  # l'observé compte avec les 10 000 tirages : p n'est jamais nul
        draw, coin = random.Random(0).randbytes, bytes([0, 1]) * 128  # un octet : pile ou face
        flips = chain([[1] * n], (draw(n).translate(coin) for _ in range(10_000)))
    return fmean(abs(2 * sum(compress(values, f)) - total) >= observed for f in flips)


def compare(before, after, k):
    """Pour le MRR et le Hit Rate à k : l'écart (des valeurs affichées), son erreur type et son p ;
    puis combien de questions montent, descendent, restent. Les deux côtés ont les mêmes clés."""
    pairs = [(rank, after[key]) for key, rank in before.items()]
    gaps = {"mrr": [(b and 1 / b) - (a and 1 / a) for a, b in pairs]}
    gaps["hit_rate"] = [(0 < b <= k) - (0 < a <= k) for a, b in pairs]
    old, new = (metrics(list(side.values()), k) for side in (before, after))
    result = {}
    for metric, at in (("mrr", 2), ("hit_rate", 0)):
        error = stdev(gaps[metric]) / math.sqrt(len(pairs)) if len(pairs) > 1 else None
        result[metric] = {
            "difference": round(new[at] - old[at], 4),
            "standard_error": None if error is None else round(error, 4),
            "p_value": round(p_value(gaps[metric]), 4),
        }
    moves = Counter((gap > 0) - (gap < 0) for gap in gaps["mrr"])
    return result | {"hausse": moves[1], "baisse": moves[-1], "stable": moves[0]}


# --- 4. L'écran et la ligne de commande


def report_lines(reports, sides):
    """Le tableau des mesures (avant, après, écart) et l'histogramme des positions."""
    reports = list(reports.values())
    ks = list(reports[0]["hit_rate"])
    rows = [(f"Hit Rate@{k}", *(r["hit_rate"][k] for r in reports)) for k in ks]
    rows += [(f"MRR@{k}", *(r["mrr_at_k"][k] for r in reports)) for k in ks]
    lines = ["".join(f"{title:>12}" for title in ("", "avant", "après", "écart"))]
    lines = lines if len(reports) > 1 else []
    for name, *values in [*rows, ("MRR", *(r["mrr"] for r in reports))]:
        gap = f"{values[1] - values[0]:>+12.4f}" if len(values) > 1 else ""
        lines.append(f"{name:>12}" + "".join(f"{value:>12.4f}" for value in values) + gap)
    lines += ["", "Nombre de questions selon la position du premier document pertinent :"]
    ends = sorted(ks)
    for low, high in zip([1, *(k + 1 for k in ends), 0], [*ends, math.inf, 0]):
        label = f"{low} à {high}" if low < high < math.inf else f"{low} ou plus"
        label = label if low < high else low or "absent"
        line = f"{label:>12}"
        for side in sides:
            count = sum(low <= rank <= high for rank in side.values())
            line += f"{count:>8} {'█' * round(24 * count / len(side)):<24}"
        lines.append(line.rstrip())
    return lines


def comparison_lines(comparison, before, after, k):
    """Ce que la comparaison permet de dire : les mouvements, les pires baisses, l'incertitude."""
    up, down, still = (comparison[name] for name in ("hausse", "baisse", "stable"))
    lines = [f"\nQuestions en hausse : {up}, en baisse : {down}, stables : {still}"]
    falls = [(1 / b if b else 0, a, b, key[0]) for key, a in before.items() if a and ...]
    return lines


def run(argv): ...
