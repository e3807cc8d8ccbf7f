#!/usr/bin/env python3
"""Évalue une recherche documentaire : retrouve-t-elle mieux les bons documents qu'avant ?

On donne à ce script ce que la recherche a trouvé avant un changement (par exemple l'affinage du
modèle d'embedding), puis après. Il calcule le Hit Rate à k (la part des questions dont un bon
document est dans les k premiers résultats) et le MRR (la moyenne des 1/position du premier bon
document, 0 s'il est absent ; le MRR@k ne regarde que les k premiers résultats), puis dit si l'écart
peut être dû au hasard.

    python3 retrieval_eval.py                          l'exemple de l'exercice
    python3 retrieval_eval.py avant.json               un seul fichier
    python3 retrieval_eval.py avant.json apres.json    deux fichiers, comparés
    python3 retrieval_eval.py avant.trec apres.trec --qrels qrels.trec --k 1 5 10

  --qrels FICHIER  les jugements : quels documents il fallait trouver (pertinence supérieure à 0)
  --k K [K …]      les valeurs de k (par défaut, 1 5 10), à donner après les fichiers ; les
                   intervalles portent sur le MRR, et sur le Hit Rate à la première de ces valeurs
  --json           le bilan en JSON
  -h, --help       cette aide

Le format d'un fichier, compressé en gzip ou non, est reconnu à son contenu. Dans un fichier en
colonnes, celles-ci sont séparées par des espaces ou des tabulations. Voici les formats :

  format de l'exercice, qui dit lui-même quels documents il fallait trouver (sans --qrels) :
    {"questions": ["Q1"], "resultats": [["a", "b"]], "documents_pertinents": {"Q1": "b"}}
    Plusieurs documents pertinents s'écrivent en liste.
  run (ce que la recherche a trouvé) :
    TREC                   question Q0 document rang score nom, une ligne par document
    MS MARCO               question document rang (0 ou 1, puis croissant)
    Tevatron               question document score (avec des décimales)
    JSON                   {question: {document: score}}, comme {"q1": {"d1": 14.2, "d2": 13.9}}
    sentence-transformers  {"query_id": "q1", "results": [{"corpus_id": "d1"}]}, une question
                           par ligne
  qrels (les jugements) :
    TREC                   question 0 document pertinence
    BEIR                   question document pertinence, avec ou sans ligne de titre
    MS MARCO               question document
    JSON                   {"q1": {"d2": 1}}

Un score plus grand est meilleur ; à score égal (en simple précision), les documents sont rangés par
identifiant décroissant, comme dans trec_eval. Dans un run, les lignes d'une question se suivent.
Toutes les questions jugées comptent, même absentes du run ; une question du run sans jugement est
écartée. Le bilan compte les questions sans résultat (aucun document trouvé), sans jugement
(écartées), et celles où il n'y a rien à trouver (aucun document pertinent : elles comptent pour
0) ; la profondeur est le plus grand nombre de documents trouvés pour une question jugée.

Codes de sortie : 0, le bilan est affiché ; 2, une commande ou un fichier est incorrect, ou le
bilan ne peut pas être affiché ; 130, le programme a été interrompu.
"""

import argparse
import errno
import gzip
import json
import os
import re
import shlex
import sys
import zlib
from array import array
from collections import Counter
from contextlib import suppress
from math import fsum, inf, isnan, nan, sqrt
from numbers import Number
from statistics import fmean, stdev
from typing import NamedTuple

# --- 1. L'exercice : écrire evaluer_retrieval


def evaluer_retrieval(questions, resultats, documents_pertinents, k=5) -> dict:
    """Le Hit Rate à k et le MRR d'une recherche, de 0 à 1, à 4 décimales.

    `questions` : une liste de chaînes. `resultats` : pour chacune, la liste de ses documents, du
    plus au moins pertinent. `documents_pertinents` : {question: document}, ou plusieurs, en liste
    ou en ensemble : le premier trouvé compte. `k` : où s'arrête le Hit Rate ; le MRR (Voorhees,
    « The TREC-8 Question Answering Track Report », 1999) regarde toute la liste. Le dénominateur
    est toujours le nombre de questions.

    Rend {"hit_rate": 0.5, "mrr": 0.25, "details": [{"question": "Q1", "position": 2, "hit": True,
    "reciprocal_rank": 0.5}, …]} ; une position part de 1, et vaut 0 si le document est absent.
    Lève TypeError ou ValueError si un argument est incorrect.
    """
    if type(k) is not int:
        found = f"{quoted(k)}, de type {type(k).__name__}"
        raise TypeError(f"k : un entier est attendu, et non {found}")
    if k < 1:
        raise ValueError(f"k : un entier d'au moins 1 est attendu, et non {k}")
    if not is_list(questions) or not is_list(resultats):
        raise TypeError("questions et resultats : deux listes sont attendues")
    if not isinstance(documents_pertinents, dict):
        raise TypeError("documents_pertinents : un dictionnaire est attendu")
    if len(questions) != len(resultats):
        raise ValueError(
            f"le nombre de questions est {len(questions)}, et celui des listes de résultats est "
            f"{len(resultats)} ; il faut une liste par question"
        )
    positions = []
    for question, documents in zip(questions, resultats):
        relevant = documents_pertinents.get(question)
        if type(relevant) is str and type(documents) is list:  # le cas courant, qui va vite
            position = documents.index(relevant) + 1 if relevant in documents else 0
        else:
            position = position_of(question, documents, relevant)
        positions.append(position)
    if not any(positions):  # rien de trouvé : a-t-on confondu le nombre 7 et le texte « 7 » ?
        check_kinds(resultats, map(documents_pertinents.get, questions))
    return measures(questions, positions, k)


def position_of(question, documents, relevant):
    """La position du premier document pertinent, à partir de 1, ou 0 s'il est absent."""
    if not is_list(documents):
        raise TypeError(f"question {quoted(question)} : une liste de documents est attendue")
    if isinstance(relevant, dict):
        raise TypeError(
            f"question {quoted(question)} : un document pertinent, ou une liste de documents, "
            "est attendu"
        )
    relevant_documents = as_list(relevant)
    if not relevant_documents:
        raise ValueError(
            f"la question {quoted(question)} n'a pas de document pertinent, ajoutez-en un à "
            "documents_pertinents, ou retirez la question"
        )
    for position, document in enumerate(documents, 1):
        if document in relevant_documents:
            return position
    return 0


def is_list(value):
    """Vrai pour une liste, un tuple, un tableau numpy… ; faux pour un texte, un ensemble ou un
    dictionnaire."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict, set, frozenset))


def as_list(value):
    """[] pour None, `list(value)` pour une liste ou un ensemble, et [value] pour le reste."""
    if value is None:
        return []
    if is_list(value) or isinstance(value, (set, frozenset)):
        return list(value)
    return [value]


def check_kinds(results, all_relevant):
    """Lève TypeError si les documents trouvés et attendus n'ont pas d'identifiants du même type."""
    # Un exemple de chaque type : {"un nombre": 7} d'un côté, {"un texte": "7"} de l'autre.
    found = {kind(document): document for documents in results for document in documents}
    wanted = {kind(document): document for value in all_relevant for document in as_list(value)}
    if found and found.keys().isdisjoint(wanted):  # `wanted` n'est jamais vide : voir `position_of`
        one, other = next(iter(found.values())), next(iter(wanted.values()))
        raise TypeError(
            "aucun document pertinent n'est trouvé, et les identifiants sont de deux types : "
            f"{quoted(one)} ({kind(one)}) dans resultats, {quoted(other)} ({kind(other)}) dans "
            "documents_pertinents"
        )


def kind(document):
    """Le type d'un identifiant, en français ; tous les nombres n'en font qu'un."""
    if isinstance(document, str):
        return "un texte"
    if isinstance(document, Number):
        return "un nombre"
    return f"de type {type(document).__name__}"


def hit_rate(counts, k):
    """La part des questions dont la position va de 1 à k ; `counts` dit combien de questions ont
    chaque position : Counter({1: 12, 3: 5, 0: 3})."""
    hits = sum(count for position, count in counts.items() if 0 < position <= k)
    return round(hits / counts.total(), 4) if counts else 0.0


def mean_reciprocal_rank(counts, k=inf):
    """La moyenne des 1/position (voir `hit_rate`), où seules comptent les positions de 1 à k."""
    total = fsum(count / position for position, count in counts.items() if 0 < position <= k)
    return round(total / counts.total(), 4) if counts else 0.0


def measures(questions, positions, k):
    """Ce que rend `evaluer_retrieval`, une fois les positions connues."""
    counts = Counter(positions)
    samples = {}  # {position: un détail sans sa question}, que l'on copie : c'est plus rapide
    for position in counts:
        samples[position] = {
            "question": "",
            "position": position,
            "hit": 0 < position <= k,
            "reciprocal_rank": 1 / position if position else 0.0,
        }
    details = [samples[position].copy() for position in positions]
    for detail, question in zip(details, questions):
        detail["question"] = question
    mrr = mean_reciprocal_rank(counts)
    return {"hit_rate": hit_rate(counts, k), "mrr": mrr, "details": details}


def quoted(value):
    """Une valeur citée dans une phrase, entre guillemets : une ligne, 60 caractères au plus."""
    text = str(value)
    if not text.isprintable():
        text = repr(text)[1:-1]
    if len(text) > 60:
        text = text[:59] + "…"
    return f"« {text} »"


# --- 2. Comparer l'avant et l'après

FEWEST = 6  # questions qui ont changé : avec moins, pas d'intervalle


def comparer_retrieval(avant, apres) -> dict:
    """L'écart entre deux évaluations des mêmes questions, dans le même ordre, avec le même k.

    `avant`, `apres` : ce qu'`evaluer_retrieval` a rendu. Rend {"mrr": {"difference": 0.25,
    "interval": [0.04, 0.46]}, "hit_rate": {…}, "hausse": 5, "baisse": 1, "stable": 2} ;
    "difference" : l'écart des valeurs affichées ; "interval" : son intervalle à 95 %, ou None si
    moins de six questions ont changé ou si tous les écarts sont égaux ; "hausse", "baisse" et
    "stable" : combien de questions montent, descendent ou gardent leur position.
    Lève ValueError si les questions diffèrent.
    """
    before, after = avant["details"], apres["details"]
    if len(before) != len(after):
        raise ValueError(f"le nombre de questions est {len(before)} avant, et {len(after)} après")
    pairs = list(zip(before, after))
    for number, (old, new) in enumerate(pairs, 1):
        if old["question"] != new["question"]:
            names = f"{quoted(old['question'])} avant, {quoted(new['question'])} après"
            raise ValueError(f"la question n° {number} n'est pas la même : {names}")
    gaps = {
        "mrr": [new["reciprocal_rank"] - old["reciprocal_rank"] for old, new in pairs],
        "hit_rate": [new["hit"] - old["hit"] for old, new in pairs],  # 1, 0 ou -1
    }
    comparison = {}
    for measure, changes in gaps.items():
        difference = rounded(apres[measure] - avant[measure])
        comparison[measure] = {"difference": difference, "interval": rounded_interval(changes)}
    comparison["hausse"] = sum(gap > 0 for gap in gaps["mrr"])
    comparison["baisse"] = sum(gap < 0 for gap in gaps["mrr"])
    comparison["stable"] = sum(gap == 0 for gap in gaps["mrr"])
    return comparison


def interval(gaps):
    """L'intervalle à 95 % de l'écart moyen (Student), ou None s'il y a moins de six écarts, ou
    s'ils sont tous égaux. Rend (bas, haut). Arrondir à 9 décimales évite de prendre une erreur de
    calcul pour un écart."""
    gaps = [round(gap, 9) for gap in gaps]
    n = len(gaps)
    if n < FEWEST or len(set(gaps)) == 1:
        return None
    student = 1.96 + 2.37 / (n - 1) + 2.82 / (n - 1) ** 2  # le quantile à 97,5 %, à 1 % près
    margin = student * stdev(gaps) / sqrt(n)
    return fmean(gaps) - margin, fmean(gaps) + margin


def rounded_interval(gaps):
    """L'intervalle d'`interval`, [0.04, 0.46], ou None. Toutes les questions entrent dans l'écart
    moyen, mais il en faut au moins six qui aient changé."""
    if sum(gap != 0 for gap in gaps) < FEWEST:
        return None
    ends = interval(gaps)
    return None if ends is None else [rounded(end) for end in ends]


def rounded(value):
    """À 4 décimales, et jamais -0.0, qui s'afficherait « -0.0000 »."""
    return round(value, 4) + 0.0


# --- 3. Lire les fichiers


class Erreur(Exception):
    """Un fichier ou une commande incorrects ; le texte est la phrase à afficher."""


class Block(NamedTuple):
    """Ce qu'un fichier dit d'une question.

    Run : Block("q1", ["d3", "d1"], numbers=[14.2, 13.9]), ou sans nombres s'il est déjà en ordre
    Jugements : Block("q1", ["d3", "d1"], numbers=[0, 1])
    Format de l'exercice : Block("q1", ["d3", "d1"], relevant=frozenset(["d1"]))
    """

    question: str
    documents: list  # dans l'ordre du fichier
    # Leurs scores, ou leurs pertinences ; un `int` ne vient que d'un fichier à trois colonnes, où
    # un nombre sans décimales peut être un rang (voir `without_ranks`). Ailleurs, des `float`.
    numbers: list | None = None
    relevant: frozenset | None = None  # ceux qu'il fallait trouver ; format de l'exercice seul


# Les colonnes des fichiers texte, selon leur nombre.
RUN = {6: "question Q0 document rang score nom", 3: "question document nombre"}
QRELS = {
    4: "question 0 document pertinence",
    3: "question document pertinence",
    2: "question document",
}


def read_blocks(path, layouts):
    """Ouvre un fichier et rend ses blocs, un par un ; `layouts` : RUN ou QRELS."""
    try:
        with open(path, "rb", buffering=1 << 20) as file:
            if file.peek(2)[:2] == b"\x1f\x8b":  # la signature de gzip
                file = gzip.GzipFile(fileobj=file)
            if file.peek(3)[:3] == b"\xef\xbb\xbf":  # la marque qu'écrit Windows
                file.read(3)
            head = file.peek(99).lstrip()
            if head.startswith(b'{"query_id"'):
                yield from prediction_blocks(file)
            elif head.startswith(b"{"):
                yield from json_blocks(file)
            elif head.startswith(b"["):
                raise Erreur("une liste JSON n'est pas l'un des formats attendus ; voyez --help")
            elif layouts is RUN:
                yield from map(without_ranks, text_blocks(file, layouts))
            else:
                yield from text_blocks(file, layouts)
    except Erreur as error:
        raise Erreur(f"{path} : {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Erreur(f"{path} : le fichier gzip est corrompu ou incomplet") from None
    except OSError as error:
        raise Erreur(f"{path} : {system_error(error)}") from None


SYSTEM_ERRORS = {  # les erreurs du système que l'on rencontre
    errno.ENOENT: "ce fichier ou son dossier n'existe pas, vérifiez le chemin",
    errno.EISDIR: "c'est un dossier, un fichier est attendu",
    errno.ENOTDIR: "un dossier est attendu, et c'est un fichier",
    errno.EACCES: "l'accès est refusé, vérifiez vos droits",
    errno.ENOSPC: "le disque est plein",
}


def system_error(error):
    """Une erreur du système, en français."""
    return SYSTEM_ERRORS.get(error.errno, f"le système répond « {error.strerror or error} »")


NOT_UTF8 = "le fichier n'est pas en UTF-8, réenregistrez-le en UTF-8"


def text_blocks(file, layouts):
    """Les blocs d'un fichier en colonnes ; le nombre de colonnes, constant, dit le format. Un bloc
    se remplit ligne à ligne ; il est rendu quand la question change, et à la fin du fichier."""
    width = None
    block = None
    current = None  # la question du bloc, en octets
    for row, line in enumerate(file, 1):
        columns = line.split()
        if not columns:  # une ligne vide
            continue
        if width is None:
            width = len(columns)
            if width not in layouts:
                kind = "un run" if layouts is RUN else "un fichier de jugements"
                error = unexpected(row, line, *layouts.values())
                raise Erreur(f"{error} ; ce fichier devrait être {kind}")
            if layouts is QRELS and columns[2:] == [b"score"]:  # la ligne de titre de BEIR
                continue
        try:
            if width == 6:
                question, _, document, _, text, _ = columns
            elif width == 4:
                question, _, document, text = columns
            elif width == 3:
                question, document, text = columns
            else:
                question, document = columns
                text = b"1"
            identifier = document.decode()
            number = float(text)
            if isnan(number):
                raise ValueError
            if width == 3 and text.lstrip(b"+-").isdigit():
                number = int(text)  # le type `int` marque un rang possible : voir `without_ranks`
        except UnicodeDecodeError:
            raise Erreur(f"ligne {row} : {NOT_UTF8}") from None
        except ValueError:  # mauvais nombre de colonnes, ou nombre illisible
            raise unexpected(row, line, layouts[width]) from None
        if question != current:
            if block is not None:
                yield block
            current = question
            block = Block(decoded(question, row), [], [])
        block.documents.append(identifier)
        block.numbers.append(number)
    if width is None:
        raise Erreur("le fichier est vide, vérifiez le chemin")
    if block is not None:
        yield block


def without_ranks(block):
    """Le bloc d'un run ; si ses nombres sont tous entiers (`int`), ce sont des rangs : on les ôte,
    car l'ordre du fichier suffit. Lève `Erreur` s'ils ne peuvent pas être des rangs."""
    ranks = block.numbers
    if not all(type(rank) is int for rank in ranks):
        return block
    increasing = all(a < b for a, b in zip(ranks, ranks[1:]))
    if ranks[0] not in (0, 1) or not increasing:
        raise Erreur(
            f"question {quoted(block.question)} : les entiers de la troisième colonne ne sont pas "
            "des rangs, car des rangs partent de 0 ou de 1 et augmentent ; si ce sont des scores, "
            "écrivez-les avec des décimales"
        )
    return Block(block.question, block.documents)


def unexpected(row, line, *expected):
    """L'erreur d'une ligne qui n'a aucune des formes attendues."""
    forms = " ou ".join(f"« {form} »" for form in expected)
    found = quoted(decoded(line, row).strip())
    return Erreur(f"ligne {row} : {forms} est attendu, et non {found} ; voyez --help")


def decoded(text, row):
    """Le texte d'une ligne, ou d'un de ses mots ; lève `Erreur` s'il n'est pas en UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise Erreur(f"ligne {row} : {NOT_UTF8}") from None


AS_TEXT = {"parse_int": str, "parse_float": str}  # les identifiants 12 et "12" n'en font qu'un


def prediction_blocks(file):
    """Les blocs des prédictions de sentence-transformers, une par ligne, déjà dans l'ordre."""
    for row, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode(), **AS_TEXT)
            question = record["query_id"]
            documents = [result["corpus_id"] for result in record["results"]]
            check_names([question, *documents])
        except (ValueError, TypeError, KeyError, RecursionError):
            expected = '{"query_id": …, "results": [{"corpus_id": …}, …]}'
            raise unexpected(row, line, expected) from None
        yield Block(question, documents)


def json_blocks(file):
    """Les blocs d'un fichier JSON : au format de l'exercice, un run ou des jugements."""
    try:
        content = file.read().decode().rstrip()  # l'erreur désigne ainsi une ligne non vide
        data = json.loads(content, object_pairs_hook=unique, **AS_TEXT)
    except UnicodeDecodeError:
        raise Erreur(NOT_UTF8) from None
    except json.JSONDecodeError as error:
        place = f"ligne {error.lineno}, colonne {error.colno}"
        advice = "vérifiez à cet endroit les virgules, les guillemets et les crochets"
        raise Erreur(f"le JSON est invalide à la {place} ; {advice}") from None
    except RecursionError:
        raise Erreur("le JSON est trop imbriqué") from None
    if "resultats" in data or "documents_pertinents" in data:
        yield from exercise_blocks(data)
        return
    for question, values in data.items():
        expected = f"question {quoted(question)} : {{document: nombre}} est attendu"
        if not isinstance(values, dict):
            raise Erreur(f"{expected}, et non {quoted(values)}")
        numbers = []
        for document, value in values.items():
            try:
                number = float(str(value))  # un texte (AS_TEXT), sauf True, dont float vaut 1
            except ValueError:
                number = nan
            if isnan(number):
                raise Erreur(f"{expected}, et non {quoted(value)} pour {quoted(document)}")
            numbers.append(number)
        yield Block(question, list(values), numbers)


def unique(pairs):
    """Le dictionnaire d'un objet JSON ; lève `Erreur` si une clé y est répétée."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Erreur(f"la clé {quoted(repeated)} est répétée")
    return found


def check_names(names):
    """Lève TypeError si l'un de ces identifiants n'est pas un texte ; AS_TEXT a déjà changé les
    nombres en textes."""
    for name in as_list(names):
        if type(name) is not str:
            raise TypeError(
                f"un identifiant doit être un texte ou un nombre, et non {quoted(name)}"
            )


def exercise_blocks(data):
    """Les blocs d'un fichier au format de l'exercice, vérifié par la fonction de l'exercice."""
    for name in ("questions", "resultats", "documents_pertinents"):
        if name not in data:
            raise Erreur(f"la clé « {name} » manque ; voyez --help")
    questions, results = data["questions"], data["resultats"]
    relevant = data["documents_pertinents"]
    try:
        check_names(questions)
        for documents in as_list(results):
            check_names(documents)
        evaluer_retrieval(questions, results, relevant)  # vérifie aussi les types et les longueurs
        for documents in relevant.values():
            check_names(documents)
    except (TypeError, ValueError) as error:
        raise Erreur(error) from None
    for question, documents in zip(questions, results):
        yield Block(question, documents, relevant=frozenset(as_list(relevant[question])))


def read_qrels(path):
    """Les jugements, {question: ensemble des documents dont la pertinence dépasse 0} ; un fichier
    au format de l'exercice en contient aussi."""
    qrels = {}
    decimals = False
    for block in read_blocks(path, QRELS):
        if block.relevant is not None:  # le format de l'exercice
            relevant = block.relevant
        elif block.numbers is not None:
            decimals = decimals or any(number % 1 != 0 for number in block.numbers)
            relevant = [d for d, number in zip(block.documents, block.numbers) if number > 0]
        else:
            raise Erreur(f"{path} : --qrels attend des jugements, et non des prédictions")
        qrels[block.question] = qrels.get(block.question, frozenset()).union(relevant)
    if not qrels:
        raise Erreur(f"{path} : le fichier n'a aucun jugement")
    if decimals:
        warn(
            f"{path} : ces jugements ont des décimales, comme des scores ; a-t-on interverti un "
            "run et ses jugements ?"
        )
    return qrels


# --- 4. Évaluer un fichier


class Answer(NamedTuple):
    """La réponse d'un fichier à une question, et ce qu'en disent les jugements."""

    question: str
    relevant: frozenset | None  # les documents pertinents ; None si la question n'est pas jugée
    position: int = 0  # celle du premier document pertinent, ou 0
    depth: int = 0  # combien de documents ont été trouvés
    first: str | None = None  # le premier d'entre eux, dans l'ordre du fichier
    look: str = ""  # l'allure des scores, selon `look_of`


def evaluate(path, qrels):
    """Évalue un fichier ; `qrels` est None quand il n'y a pas de jugements. Rend {"questions": les
    questions jugées, par ordre alphabétique, "relevant": leurs documents pertinents, "positions":
    pour chacune, celle du premier document pertinent, ou 0, "totals": les nombres du bilan,
    "is_run": vrai si les jugements sont `qrels`}."""
    answers, is_run = read_answers(path, qrels)
    if not answers:
        raise Erreur(f"{path} : le fichier n'a aucune question")
    warn_about_scores(path, {answer.look for answer in answers})
    judged = [answer for answer in answers if answer.relevant is not None]  # ce qui comptera
    if not judged:  # c'est donc un run, et `qrels` n'est pas None
        raise Erreur(
            f"{path} : aucune question de ce fichier n'est dans les jugements ; comparez "
            f"{quoted(answers[0].question)} et {quoted(min(qrels))} : "
            "les identifiants sont-ils les mêmes ?"
        )
    warn_if_none_found(path, judged)
    if is_run:  # les questions jugées que le run ne contient pas comptent aussi
        absent = qrels.keys() - {answer.question for answer in judged}
        judged += [Answer(question, qrels[question]) for question in absent]
    totals = {
        "questions": len(judged),
        "sans_resultat": sum(answer.depth == 0 for answer in judged),
        "sans_jugement": sum(answer.relevant is None for answer in answers),
        "sans_pertinent": sum(not answer.relevant for answer in judged),
        "profondeur": max(answer.depth for answer in judged),
    }
    judged.sort(key=lambda answer: answer.question)
    return {
        "questions": [answer.question for answer in judged],
        "relevant": [answer.relevant for answer in judged],
        "positions": [answer.position for answer in judged],
        "totals": totals,
        "is_run": is_run,
    }


def warn_if_none_found(path, judged):
    """Avertit si aucun document pertinent n'est trouvé, en citant, pour une même question, un
    document trouvé et un document attendu."""
    if any(answer.position for answer in judged):
        return
    for answer in judged:
        if answer.first is not None and answer.relevant:
            first, expected = quoted(answer.first), quoted(min(answer.relevant))
            warn(
                f"{path} : aucun document pertinent n'est trouvé ; comparez {first} et "
                f"{expected} : les identifiants sont-ils les mêmes ?"
            )
            return


def read_answers(path, qrels):
    """Rend les réponses d'un fichier, dans son ordre, puis True si c'est un run, False sinon."""
    answers = []
    seen = set()
    is_run = False  # un run n'a pas ses jugements ; un fichier de l'exercice a les siens
    for question, documents, scores, relevant in read_blocks(path, RUN):  # les champs d'un Block
        if relevant is None:  # un run : ses jugements sont dans `qrels`
            is_run = True
            if qrels is None:
                raise Erreur(f"{path} : c'est un run, donnez ses jugements avec --qrels")
            if question in seen:
                raise Erreur(
                    f"{path} : la question {quoted(question)} est à deux endroits du fichier ; "
                    "triez-le (sort -s -k1,1), ou gardez une prédiction par question"
                )
            seen.add(question)
            relevant = qrels.get(question)
        if scores is not None:
            scores = array("f", scores)  # en simple précision, comme les compare trec_eval
        position = 0 if relevant is None else first_relevant(documents, scores, relevant)
        first = documents[0] if documents else None
        answers.append(Answer(question, relevant, position, len(documents), first, look_of(scores)))
    return answers, is_run


def look_of(scores):
    """L'allure des scores d'une question, d'après le premier et le dernier du fichier :
    "décroissants", comme il se doit, si le premier dépasse le dernier ; sinon "égaux", si tous le
    sont, ou "croissants" dans les autres cas, dont les distances ; "" s'il y en a moins de deux."""
    if scores is None or len(scores) < 2:
        return ""
    if scores[0] > scores[-1]:
        return "décroissants"
    return "égaux" if min(scores) == max(scores) else "croissants"


def warn_about_scores(path, looks):
    """Avertit si des questions ont des scores, et qu'aucune n'en ait de décroissants (`looks` :
    leurs allures, selon `look_of`)."""
    if "décroissants" in looks:
        return
    if "croissants" in looks:
        warn(
            f"{path} : ces scores sont-ils des distances ? Pour aucune question, le score "
            "du premier document ne dépasse celui du dernier. Si ce sont des distances, changez "
            "leur signe, car un score plus grand doit être meilleur."
        )
    elif "égaux" in looks:
        warn(
            f"{path} : pour chaque question, tous les scores sont égaux ; les documents sont "
            "rangés par identifiant, et les mesures ne disent rien de la recherche"
        )


def first_relevant(documents, scores, relevant):
    """La position du premier document pertinent, ou 0. Les documents sont dans l'ordre de la liste
    ou, s'ils ont des scores, rangés par score puis par identifiant, décroissants, comme dans
    trec_eval : le premier document pertinent est alors celui dont le couple (score, identifiant)
    est le plus grand, et sa position, 1 plus le nombre de documents qui passent devant lui."""
    found = relevant.intersection(documents)
    if not found:
        return 0
    if scores is None:
        return 1 + min(documents.index(document) for document in found)
    best, name = max((scores[documents.index(document)], document) for document in found)
    position = 1
    for score, document in zip(scores, documents):
        if score > best or (score == best and document > name):
            position += 1
    return position


def warn(sentence):
    """Affiche une phrase sur la sortie d'erreur."""
    if sys.stderr is not None:  # None si elle est fermée : `print` écrirait sur l'autre sortie
        with suppress(OSError):
            print(f"retrieval_eval.py : {sentence}", file=sys.stderr, flush=True)


def report_of(side, ks):
    """Le bilan d'un fichier évalué, tel que --json l'affiche."""
    counts = Counter(side["positions"])
    return {
        "hit_rate": {k: hit_rate(counts, k) for k in ks},
        "mrr_at_k": {k: mean_reciprocal_rank(counts, k) for k in ks},
        "mrr": mean_reciprocal_rank(counts),
        **side["totals"],
    }


def compare(paths, sides, k):
    """Compare deux fichiers évalués. Rend l'avant et l'après, tels qu'`evaluer_retrieval` les
    rendrait, et leur comparaison. Avertit s'ils n'ont pas la même profondeur."""
    # Des compteurs, et non des ensembles : une question peut être posée deux fois.
    first, second = (Counter(zip(side["questions"], side["relevant"])) for side in sides)
    different = (first - second) or (second - first)
    if different:
        question, _ = next(iter(different))
        raise Erreur(
            f"{' et '.join(paths)} : la question {quoted(question)} manque à l'un d'eux, ou ses "
            "documents pertinents diffèrent de l'un à l'autre ; comparez les mêmes questions"
        )
    old_depth, new_depth = (side["totals"]["profondeur"] for side in sides)
    if old_depth != new_depth:
        warn(
            f"la profondeur est de {old_depth} avant, et de {new_depth} après : au-delà "
            f"de la position {min(old_depth, new_depth)}, les mesures ne se comparent pas ; "
            "gardez le même nombre de documents dans les deux fichiers"
        )
    avant, apres = (measures(side["questions"], side["positions"], k) for side in sides)
    return avant, apres, comparer_retrieval(avant, apres)


# --- 5. L'écran et la ligne de commande

EXAMPLE = """\
L'exemple de l'exercice :
  Q1 trouve doc_a, doc_b, doc_c ; il fallait doc_b, trouvé en position 2 : 1/2
  Q2 trouve doc_x, doc_y ; il fallait doc_z, absent : 0
Hit Rate@{k} : {hit_rate} (part des questions dont le bon document est en position {k} au plus)
MRR : {mrr} ((1/2 + 0) / 2)
Pour comparer vos fichiers : python3 retrieval_eval.py avant.json apres.json
Pour connaître leurs formats : python3 retrieval_eval.py --help"""

COUNT_NAMES = {  # les nombres d'un bilan, tels que l'écran les nomme
    "questions": "questions",
    "sans_resultat": "sans résultat",
    "sans_jugement": "sans jugement",
    "sans_pertinent": "rien à trouver",
    "profondeur": "profondeur",
}


def table(reports):
    """Les lignes du tableau : les mesures, leur écart s'il y a deux fichiers, puis les nombres."""
    rows = {f"Hit Rate@{k}": [r["hit_rate"][k] for r in reports] for k in reports[0]["hit_rate"]}
    rows |= {f"MRR@{k}": [r["mrr_at_k"][k] for r in reports] for k in reports[0]["mrr_at_k"]}
    rows["MRR"] = [report["mrr"] for report in reports]
    lines = []
    if len(reports) == 2:
        lines.append(f"{'':14}{'avant':>12}{'après':>12}{'écart':>12}")
    for name, values in rows.items():
        line = f"{name:>14}" + "".join(f"{value:12.4f}" for value in values)
        if len(values) == 2:
            line += f"{rounded(values[1] - values[0]):+12.4f}"
        lines.append(line)
    for key, name in COUNT_NAMES.items():
        lines.append(f"{name:>14}" + "".join(f"{report[key]:12}" for report in reports))
    return lines


def comparison_lines(avant, apres, comparison, k):
    """Les lignes de la comparaison : les questions qui ont changé, les plus fortes baisses, puis
    l'écart de chaque mesure et son intervalle."""
    up, down, still = (comparison[name] for name in ("hausse", "baisse", "stable"))
    lines = [f"Questions en hausse : {up}, en baisse : {down}, stables : {still}"]
    if down:
        lines.append("Les plus fortes baisses, à lire d'abord :")
    pairs = list(zip(avant["details"], apres["details"]))
    pairs.sort(key=lambda pair: pair[1]["reciprocal_rank"] - pair[0]["reciprocal_rank"])
    for old, new in pairs[: min(5, down)]:
        name = quoted(old["question"])
        lines.append(f"  {name} : position {old['position']} → {new['position'] or 'aucune'}")
    changed = {"mrr": up + down, "hit_rate": sum(old["hit"] != new["hit"] for old, new in pairs)}
    for measure, name in (("mrr", "MRR"), ("hit_rate", f"Hit Rate@{k}")):
        found = comparison[measure]
        meaning = interval_meaning(found["interval"], changed[measure], len(pairs))
        lines.append(f"{name} : écart {found['difference']:+.4f}, {meaning}.")
    return lines


def interval_meaning(bounds, changed, total):
    """L'intervalle d'une mesure et ce qu'il permet de dire, ou pourquoi il n'y en a pas."""
    if bounds is None and changed < FEWEST:
        quota = f"{changed} sur {total} ; il en faut au moins {FEWEST}"
        return f"sans intervalle, car trop peu de questions ont changé de résultat ({quota})"
    if bounds is None:
        return "sans intervalle, car toutes les questions ont le même écart"
    low, high = bounds
    text = f"intervalle à 95 % de {low:+.4f} à {high:+.4f} ; il "
    if low > 0:
        return text + "exclut 0 : la recherche fait mieux, et pas seulement sur ces questions"
    if high < 0:
        return text + "exclut 0 : la recherche fait moins bien, et pas seulement sur ces questions"
    return text + "contient 0 : on ne sait pas si la recherche ferait mieux sur d'autres questions"


def k_of(text):
    """Une valeur de --k, convertie en nombre entier ; lève `Erreur`."""
    try:
        k = int(text)
    except ValueError:
        k = 0
    if k < 1:
        raise Erreur(
            f"--k : un nombre entier d'au moins 1 est attendu, et non {quoted(text)} (les valeurs "
            "se séparent par des espaces, et --k se donne après les fichiers)"
        )
    return k


def parse(argv):
    """Les options de la ligne de commande ; lève `Erreur`, car argparse refuserait en anglais."""

    def refuse(message):
        fault = "une option ou une valeur est de trop"
        unknown = re.fullmatch("unrecognized arguments: (.+)", message)
        incomplete = re.fullmatch("argument (.+): expected .+", message)
        if unknown:
            fault = f"le script n'attend pas « {unknown[1]} »"
        elif incomplete:
            fault = f"il manque la valeur de {incomplete[1]}"
        typed = shlex.join(["retrieval_eval.py", *argv])
        raise Erreur(f"la commande « {typed} » est refusée, car {fault} ; voyez --help")

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = refuse
    parser.add_argument("files", nargs="*")
    parser.add_argument("--qrels")
    parser.add_argument("--k", type=k_of, nargs="+")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_intermixed_args(argv)  # des fichiers avant et après une option
    count = len(options.files)
    if count > 2:
        raise Erreur(f"un ou deux fichiers sont attendus, et non {count} ; voyez --help")
    if count == 0 and options.qrels is not None:
        raise Erreur("--qrels : il y a des jugements, mais rien à juger ; ajoutez un run")
    return options


def show_example(k, as_json):
    """L'exemple de l'exercice."""
    results = [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]]
    found = evaluer_retrieval(["Q1", "Q2"], results, {"Q1": "doc_b", "Q2": "doc_z"}, k)
    print(json.dumps(found, indent=2) if as_json else EXAMPLE.format(k=k, **found))


def run(argv):
    """Toute l'évaluation, à l'écran ou en JSON."""
    options = parse(argv)
    ks = list(dict.fromkeys(options.k or [1, 5, 10]))
    if options.help:
        print(__doc__.strip())
        return
    if not options.files:
        show_example(options.k[0] if options.k else 5, options.json)
        return
    qrels = None if options.qrels is None else read_qrels(options.qrels)
    sides = [evaluate(path, qrels) for path in options.files]
    if qrels is not None and not any(side["is_run"] for side in sides):
        raise Erreur(
            f"{options.files[0]} est au format de l'exercice, et contient déjà ses jugements ; "
            "retirez --qrels"
        )
    reports = [report_of(side, ks) for side in sides]
    comparison = None
    if len(sides) == 2:
        avant, apres, comparison = compare(options.files, sides, ks[0])
    if options.json:
        after = reports[1] if len(reports) == 2 else None
        data = {"avant": reports[0], "apres": after, "comparaison": comparison}
        print(json.dumps(data, indent=2))
        return
    print(*table(reports), "", sep="\n")
    if comparison is None:
        print("Pour comparer, ajoutez à la commande le fichier obtenu après le changement.")
    else:
        print(*comparison_lines(avant, apres, comparison, ks[0]), sep="\n")


def main(argv=None):
    """Lance `run` ; rend le code de sortie, une erreur étant dite en une phrase."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # faux dans un carnet Jupyter, ou pour une sortie fermée
            stream.reconfigure(errors="replace")  # une console sans UTF-8 affiche « ? »
    try:
        run(sys.argv[1:] if argv is None else argv)
        print(end="", flush=True)  # vide la sortie ici, où l'erreur est traitée
    except BrokenPipeError:  # « … | head » en a assez lu
        return 0
    except Erreur as error:
        warn(error)
        return 2
    except OSError as error:
        warn(f"l'affichage est impossible, {system_error(error)}")
        return 2
    except KeyboardInterrupt:
        warn("interrompu")
        return 130
    return 0


if __name__ == "__main__":
    os._exit(main())  # sans le vidage final, dont l'échec s'afficherait en anglais
