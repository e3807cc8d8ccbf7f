#!/usr/bin/env python3
"""Évaluer une recherche documentaire : retrouve-t-elle mieux les bons documents qu'avant ?

On lui donne ce que la recherche a trouvé avant un changement (par exemple l'affinage du modèle
d'embedding), puis après. Il calcule le Hit Rate à k (la part des questions dont un bon document
est dans les k premiers) et le MRR (la moyenne des 1/position du premier bon document, 0 s'il est
absent), puis dit si l'écart dépasse le hasard.

    python3 retrieval_eval.py                          l'exemple de l'exercice
    python3 retrieval_eval.py avant.json               un seul fichier
    python3 retrieval_eval.py avant.json apres.json    deux fichiers, comparés
    python3 retrieval_eval.py avant.trec apres.trec --qrels qrels.trec --k 1 5 10

  --qrels FICHIER  les jugements : quels documents il fallait trouver (pertinence supérieure à 0)
  --k K [K …]      les profondeurs (1 5 10), après les fichiers ; la comparaison regarde la première
  --json           le bilan en JSON
  -h, --help       cette aide

Un fichier, compressé en gzip ou non, est reconnu à son contenu :

  fichier de l'exercice, qui dit lui-même quels documents il fallait trouver (sans --qrels) :
    {"questions": ["Q1"], "resultats": [["a", "b"]], "documents_pertinents": {"Q1": "b"}}
    Plusieurs documents pertinents s'écrivent en liste.
  run (ce que la recherche a trouvé) :
    TREC                   question Q0 document rang score nom, une ligne par document
    MS MARCO               question document rang (0 ou 1, puis croissant)
    Tevatron               question document score (avec des décimales)
    JSON                   {"q1": {"d1": 14.2, "d2": 13.9}}, du nom au score
    sentence-transformers  {"query_id": "q1", "results": [{"corpus_id": "d1"}]}, une par ligne
  qrels (les jugements) :
    TREC                   question 0 document pertinence
    BEIR                   question document pertinence, avec ou sans ligne de titre
    MS MARCO               question document
    JSON                   {"q1": {"d2": 1}}

Un score plus grand est meilleur ; les scores égaux (en simple précision) se départagent par le nom
du document, décroissant, comme dans trec_eval. Les lignes d'une question se suivent. Toutes les
questions jugées comptent, même absentes du run ; les autres sont écartées. Le bilan en donne le
nombre : sans résultat (aucun document trouvé), sans jugement (écartées), rien à trouver (aucun
document pertinent : elles comptent 0) ; la profondeur est le plus grand nombre de documents d'une
question.

Code de sortie : 0, 2 si une entrée est incorrecte ou la sortie impossible, 130 si interrompu.
"""

import argparse
import gzip
import io
import json
import os
import re
import shlex
import sys
import zlib
from array import array
from collections import Counter
from contextlib import suppress
from itertools import zip_longest
from math import fsum, inf, sqrt
from numbers import Number
from statistics import fmean, stdev

# --- 1. L'exercice


def evaluer_retrieval(questions, resultats, documents_pertinents, k=5) -> dict:
    """Le Hit Rate à k et le MRR d'une recherche, de 0 à 1, à 4 décimales.

    `questions` : une liste de chaînes. `resultats` : pour chacune, la liste de ses documents, du
    plus au moins pertinent. `documents_pertinents` : {question: document}, ou plusieurs, en liste
    ou en ensemble : le premier trouvé compte. `k` : la profondeur du Hit Rate ; le MRR (Voorhees,
    « The TREC-8 Question Answering Track Report », 1999) regarde toute la liste. Le dénominateur
    est toujours le nombre de questions.

    Rend {"hit_rate": 0.5, "mrr": 0.25, "details": [{"question": "Q1", "position": 2, "hit": True,
    "reciprocal_rank": 0.5}, …]} ; une position part de 1, et vaut 0 si le document est absent.
    Lève TypeError ou ValueError si un argument est incorrect.
    """
    if type(k) is not int:
        raise TypeError(f"k : un entier est attendu, et non {quoted(k)}")
    if k < 1:
        raise ValueError(f"k : un entier d'au moins 1 est attendu, et non {k}")
    if not is_list(questions) or not is_list(resultats):
        raise TypeError("questions et resultats : deux listes sont attendues")
    if not isinstance(documents_pertinents, dict):
        raise TypeError("documents_pertinents : un dictionnaire est attendu")
    if len(questions) != len(resultats):
        raise ValueError(f"questions : {len(questions)}, listes de résultats : {len(resultats)}")
    expected = map(documents_pertinents.get, questions)
    positions = [
        # Un texte cherché dans une liste est le cas courant, le seul qui doive aller vite.
        (found.index(one) + 1 if one in found else 0)
        if type(one) is str and type(found) is list
        else position_of(question, found, one)
        for question, found, one in zip(questions, resultats, expected)
    ]
    if not any(positions):
        check_kinds(resultats, [documents_pertinents[question] for question in questions])
    return measures(questions, positions, k)


def position_of(question, documents, relevant):
    """La position du premier document pertinent, à partir de 1, ou 0 s'il est absent."""
    if not is_list(documents):
        raise TypeError(f"question {quoted(question)} : une liste de documents est attendue")
    if isinstance(relevant, dict):
        raise TypeError(f"question {quoted(question)} : un document pertinent, ou une liste")
    relevant = several(relevant)
    if not relevant:
        raise ValueError(f"la question {quoted(question)} n'a pas de document pertinent")
    for position, document in enumerate(documents, 1):
        if document in relevant:
            return position
    return 0


def is_list(value):
    """Vrai pour une liste, un tuple, un tableau numpy… ; faux pour un texte ou un ensemble."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict, set, frozenset))


def several(relevant):
    """Les documents pertinents d'une question, en liste, qu'il y en ait un, plusieurs ou aucun."""
    if relevant is None:
        return []
    if is_list(relevant) or isinstance(relevant, (set, frozenset)):
        return list(relevant)
    return [relevant]


def check_kinds(results, expected):
    """Rien n'a été trouvé : lève TypeError si c'est que 7 a été cherché parmi des « 7 »."""
    found = {kind(document): document for documents in results for document in documents}
    wanted = {kind(document): document for relevant in expected for document in several(relevant)}
    if found and wanted and not found.keys() & wanted.keys():
        one, other = next(iter(found.values())), next(iter(wanted.values()))
        raise TypeError(
            f"aucun document pertinent n'est trouvé, et les identifiants sont de deux types : "
            f"{quoted(one)} ({type(one).__name__}) dans resultats, "
            f"{quoted(other)} ({type(other).__name__}) dans documents_pertinents"
        )


def kind(document):
    """Le type d'un identifiant ; tous les textes n'en font qu'un, tous les nombres aussi."""
    for family in (str, Number):
        if isinstance(document, family):
            return family
    return type(document)


def hit_rate(positions, k):
    """La part des positions de 1 à k."""
    hits = sum(1 for position in positions if 0 < position <= k)
    return round(hits / len(positions), 4) if positions else 0.0


def mean_reciprocal_rank(positions, k=inf):
    """La moyenne des 1/position ; une position nulle ou au-delà de k compte pour 0."""
    ranks = fsum(1 / position for position in positions if 0 < position <= k)
    return round(ranks / len(positions), 4) if positions else 0.0


def measures(questions, positions, k):
    """Ce que rend `evaluer_retrieval`, une fois les positions connues."""
    models = {}  # un détail par position, à copier : plus rapide que d'en écrire un million
    for position in set(positions):
        models[position] = {
            "question": "",
            "position": position,
            "hit": 0 < position <= k,
            "reciprocal_rank": 1 / position if position else 0.0,
        }
    details = [models[position].copy() for position in positions]
    for detail, question in zip(details, questions):
        detail["question"] = question
    mrr = mean_reciprocal_rank(positions)
    return {"hit_rate": hit_rate(positions, k), "mrr": mrr, "details": details}


def quoted(value):
    """Une valeur citée dans une phrase, entre guillemets : une ligne, 60 caractères au plus."""
    text = str(value)
    if not text.isprintable():
        text = repr(text)[1:-1]
    if len(text) > 60:
        text = text[:59] + "…"
    return f"« {text} »"


# --- 2. Comparer l'avant et l'après


def comparer_retrieval(avant, apres) -> dict:
    """L'écart entre deux évaluations des mêmes questions, dans le même ordre, avec le même k.

    `avant`, `apres` : ce qu'`evaluer_retrieval` a rendu. Rend {"mrr": {"difference": 0.25,
    "interval": [0.04, 0.46]}, "hit_rate": {…}, "hausse": 5, "baisse": 1, "stable": 2} : l'écart des
    valeurs affichées ; son intervalle à 95 %, ou None si moins de six questions ont changé ou si
    tous les écarts sont égaux ; combien de questions ont un meilleur, un moins bon ou le même rang.
    Lève ValueError si les questions diffèrent.
    """
    check_same_questions(avant["details"], apres["details"])
    gaps = gaps_between(avant, apres)
    comparison = {}
    for measure in ("mrr", "hit_rate"):
        bounds = None
        if moved(gaps[measure]) >= 6:
            bounds = interval(gaps[measure])
        if bounds is not None:
            bounds = [rounded(bound) for bound in bounds]
        difference = rounded(apres[measure] - avant[measure])
        comparison[measure] = {"difference": difference, "interval": bounds}
    comparison["hausse"] = sum(gap > 0 for gap in gaps["mrr"])
    comparison["baisse"] = sum(gap < 0 for gap in gaps["mrr"])
    comparison["stable"] = len(gaps["mrr"]) - moved(gaps["mrr"])
    return comparison


def interval(gaps):
    """L'intervalle à 95 % de l'écart moyen (Student), ou None : sous six écarts, ou s'ils sont tous
    égaux. Rend (bas, haut). Arrondir à 9 décimales évite de prendre un arrondi pour un écart."""
    gaps = [round(gap, 9) for gap in gaps]
    n = len(gaps)
    if n < 6 or len(set(gaps)) == 1:
        return None
    student = 1.96 + 2.37 / (n - 1) + 2.82 / (n - 1) ** 2  # le quantile à 97,5 %, à 1 % près
    margin = student * stdev(gaps) / sqrt(n)
    return fmean(gaps) - margin, fmean(gaps) + margin


def gaps_between(before, after):
    """L'écart de chaque question : {"mrr": [0.5, 0.0, …], "hit_rate": [1, 0, …]}."""
    pairs = list(zip(before["details"], after["details"]))
    return {
        "mrr": [b["reciprocal_rank"] - a["reciprocal_rank"] for a, b in pairs],
        "hit_rate": [b["hit"] - a["hit"] for a, b in pairs],
    }


def moved(gaps):
    """Combien d'écarts ne sont pas nuls."""
    return sum(gap != 0 for gap in gaps)


def rounded(value):
    """À 4 décimales, et jamais -0.0, qui s'afficherait « -0.0000 »."""
    return round(value, 4) + 0.0


def check_same_questions(before, after):
    """Lève ValueError en nommant la première question qui diffère."""
    pairs = zip_longest(before, after, fillvalue={"question": "aucune"})
    for number, (a, b) in enumerate(pairs, 1):
        if a["question"] != b["question"]:
            names = f"{quoted(a['question'])} avant, {quoted(b['question'])} après"
            raise ValueError(f"la question {number} diffère : {names}")


# --- 3. Lire les fichiers


class Erreur(Exception):
    """Un fichier ou une commande incorrects ; le texte est la phrase à afficher."""


# Les lecteurs rendent des blocs : ce qu'un fichier dit d'une question. D'un run, les documents et
# leurs scores, dans l'ordre du fichier ; sans score (None), l'ordre du fichier est le bon :
#     ("q1", ["d3", "d1"], [14.2, 13.9], None)
#     ("q2", ["d9", "d4"], None, None)
# D'un fichier de l'exercice, en plus, les documents pertinents :
#     ("Q1", ["doc_a", "doc_b"], None, ["doc_b"])


def read_blocks(path, layouts):
    """Ouvre un fichier et rend ses blocs, un par un ; `layouts` dit les colonnes admises."""
    try:
        with open(path, "rb", buffering=1 << 20) as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                file = gzip.GzipFile(fileobj=file)
            if file.peek(3)[:3] == b"\xef\xbb\xbf":  # la marque qu'écrit Windows
                file.read(3)
            head = file.peek(99).lstrip()
            if head.startswith(b'{"query_id"'):
                yield from prediction_blocks(file)
            elif head.startswith(b"{"):
                yield from json_blocks(file)
            else:
                # Un octet qui n'est pas de l'UTF-8 y est lu comme un caractère isolé (NOT_UTF8).
                text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="\n")
                yield from text_blocks(text, layouts)
    except Erreur as error:
        raise Erreur(f"{path} : {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Erreur(f"{path} : le fichier gzip est corrompu ou incomplet") from None
    except OSError as error:
        raise Erreur(f"{path} : {system_error(error)}") from None


def system_error(error):
    """Une erreur du système, en français."""
    sentences = {
        FileNotFoundError: "fichier introuvable",
        IsADirectoryError: "c'est un dossier, un fichier est attendu",
        NotADirectoryError: "un fichier y tient la place d'un dossier",
        PermissionError: "l'accès est refusé",
    }
    return sentences.get(type(error), f"le système refuse (« {error.strerror or error} »)")


# Les colonnes des fichiers texte, selon leur nombre.
RUN = {6: "question Q0 document rang score nom", 3: "question document nombre"}
QRELS = {
    4: "question 0 document pertinence",
    3: "question document pertinence",
    2: "question document",
}
NOT_UTF8 = re.compile("[\udc80-\udcff]")


def text_blocks(file, layouts):
    """Les blocs d'un fichier en colonnes : un run, ou des jugements, de score leur pertinence."""
    width = current = None
    documents, scores, ranks = [], [], False
    seen = set()
    for number, line in enumerate(file, 1):
        columns = line.split()
        if width is None and columns:
            width = len(columns)
            if width not in layouts:
                raise unexpected(number, line, layouts, width)
            if layouts is QRELS and columns[2:] == ["score"]:  # la ligne de titre de BEIR
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
                text = "1"
            score = float(text)
        except ValueError:
            if not columns:  # une ligne vide
                continue
            raise unexpected(number, line, layouts, width) from None
        if score != score:  # NaN
            raise unexpected(number, line, layouts, width)
        if not line.isascii() and NOT_UTF8.search(line):
            raise Erreur(f"ligne {number} : le texte n'est pas en UTF-8")
        if question != current:
            if documents:
                yield text_block(current, documents, scores, ranks)
            if layouts is RUN and question in seen:
                advice = "triez le fichier (sort -s -k1,1)"
                raise Erreur(f"ligne {number} : {quoted(question)} revient, {advice}")
            seen.add(question)
            current = question
            documents = []
            scores = array("f")  # en simple précision, où trec_eval les compare
            ranks = layouts is RUN and width == 3  # sauf si un nombre a des décimales
        documents.append(document)
        scores.append(score)
        if ranks and not text.lstrip("+-").isdigit():
            ranks = False
    if width is None:
        raise Erreur("le fichier est vide")
    if documents:
        yield text_block(current, documents, scores, ranks)


def text_block(question, documents, scores, ranks):
    """Le bloc d'une question ; des rangs, qui confirment l'ordre du fichier, valent sans score."""
    if not ranks:
        return question, documents, scores, None
    increasing = all(a < b for a, b in zip(scores, scores[1:]))
    if scores[0] not in (0, 1) or not increasing:
        raise Erreur(
            f"question {quoted(question)} : des nombres entiers en troisième colonne sont des "
            "rangs, qui commencent à 0 ou 1 et augmentent ; un score s'écrit avec des décimales"
        )
    return question, documents, None, None


def unexpected(number, line, layouts, width):
    """L'erreur d'une ligne qui n'a pas les colonnes attendues, ou pas de nombre là où il faut."""
    layout = layouts.get(width) or " » ou « ".join(layouts.values())
    return Erreur(f"ligne {number} : « {layout} » est attendu, et non {quoted(line.strip())}")


def prediction_blocks(file):
    """Les blocs des prédictions de sentence-transformers, une par ligne, déjà dans l'ordre."""
    seen = set()
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode())
            question = identifier(record["query_id"])
            documents = [identifier(result["corpus_id"]) for result in record["results"]]
        except UnicodeDecodeError:
            raise Erreur(f"ligne {number} : le texte n'est pas en UTF-8") from None
        except (ValueError, TypeError, KeyError, RecursionError):
            found = quoted(line.decode().strip())
            raise Erreur(f"ligne {number} : une prédiction est attendue, et non {found}") from None
        if question in seen:
            raise Erreur(f"ligne {number} : {quoted(question)} revient, gardez une prédiction")
        seen.add(question)
        yield question, documents, None, None


def json_blocks(file):
    """Les blocs d'un fichier JSON : un fichier de l'exercice, un run ou des jugements."""
    try:
        data = json.loads(file.read().decode(), object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise Erreur("le texte n'est pas en UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"ligne {error.lineno}, colonne {error.colno}"
        raise Erreur(f"le JSON est invalide, {place}") from None
    except RecursionError:
        raise Erreur("le JSON est trop imbriqué") from None
    except ValueError:  # un entier de plus de 4 300 chiffres
        raise Erreur("le JSON contient un nombre trop long") from None
    if "resultats" in data or "documents_pertinents" in data:
        yield from exercise_blocks(data)
        return
    for question, values in data.items():
        expected = f"question {quoted(question)} : {{document: nombre}} est attendu"
        if not isinstance(values, dict):
            raise Erreur(f"{expected}, et non {quoted(values)}")
        for document, value in values.items():
            if type(value) not in (int, float) or value != value:  # NaN
                raise Erreur(f"{expected}, et non {quoted(value)} pour {quoted(document)}")
        try:
            scores = array("f", values.values())
        except OverflowError:
            raise Erreur(f"question {quoted(question)} : un nombre est trop grand") from None
        yield question, list(values), scores, None


def unique(pairs):
    """Un objet JSON ; une clé répétée en écraserait une autre sans un mot."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Erreur(f"la clé {quoted(repeated)} est répétée")
    return found


def identifier(value):
    """Un identifiant lu dans du JSON : 12 et "12" désignent la même chose."""
    if type(value) not in (str, int, float):
        raise TypeError(f"un texte ou un nombre est attendu, et non {quoted(value)}")
    return str(value)


def exercise_blocks(data):
    """Les blocs d'un fichier de l'exercice, vérifié par la fonction de l'exercice."""
    for name in ("questions", "resultats", "documents_pertinents"):
        if name not in data:
            raise Erreur(f"la clé « {name} » manque")
    try:
        questions = identifiers(data["questions"])
        results = data["resultats"]
        if isinstance(results, list):
            results = [identifiers(documents) for documents in results]
        relevant = data["documents_pertinents"]
        if isinstance(relevant, dict):
            relevant = {question: identifiers(value) for question, value in relevant.items()}
        evaluer_retrieval(questions, results, relevant)
    except (TypeError, ValueError) as error:
        raise Erreur(error) from None
    for question, documents in zip(questions, results):
        yield question, documents, None, several(relevant[question])


def identifiers(value):
    """Les identifiants d'une liste, ou d'un nombre seul ; le reste est rendu tel quel."""
    if isinstance(value, list):
        return [identifier(one) for one in value]
    return identifier(value) if isinstance(value, (int, float)) else value


def read_qrels(path):
    """Les jugements : {question: ensemble des documents dont la pertinence dépasse 0}."""
    qrels = {}
    for question, documents, relevances, expected in read_blocks(path, QRELS):
        if relevances is not None:
            expected = [d for d, relevance in zip(documents, relevances) if relevance > 0]
        if expected is None:
            raise Erreur(f"{path} : --qrels attend des jugements, et non des prédictions")
        qrels[question] = qrels.get(question, frozenset()).union(expected)
    return qrels


# --- 4. Évaluer un fichier


def first_relevant(documents, scores, relevant):
    """La position, ou 0, du premier pertinent, par score puis nom décroissants (trec_eval)."""
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


def evaluate(path, qrels):
    """Évalue un fichier, question par question ; `qrels` est None quand il n'y a pas de jugements.

    Rend {"positions": {(question, documents pertinents, occurrence): position}, "is_run": True si
    les jugements sont ceux de `qrels`, et trois nombres : "answered", les questions qui ont des
    documents, "unjudged", les questions écartées, "depth", la profondeur}.
    """
    side = {"positions": {}, "is_run": False, "answered": 0, "unjudged": 0, "depth": 0}
    positions = side["positions"]
    occurrences, orders = Counter(), Counter()
    unknown = examples = None  # à citer : une question sans jugement ; un trouvé et un attendu
    for question, documents, scores, expected in read_blocks(path, RUN):
        if scores is not None and len(documents) > 1:
            orders[order_of(scores)] += 1
        if expected is None:
            side["is_run"] = True
            if qrels is None:
                raise Erreur(f"{path} : c'est un run, donnez ses jugements avec --qrels")
            expected = qrels.get(question)
        if expected is None:
            side["unjudged"] += 1
            unknown = question
            continue
        expected = frozenset(expected)
        occurrences[question] += 1
        key = question, expected, occurrences[question]
        positions[key] = first_relevant(documents, scores, expected)
        side["depth"] = max(side["depth"], len(documents))
        if documents:
            side["answered"] += 1
        if documents and expected and examples is None:
            examples = f"{quoted(documents[0])} et {quoted(min(expected))}"
    if unknown is not None and not positions:
        known = quoted(min(qrels)) if qrels else "rien"
        names = f"{quoted(unknown)} dans l'un, {known} dans l'autre : mêmes identifiants ?"
        raise Erreur(f"{path} : aucune de ses questions n'est dans --qrels ({names})")
    if not positions:
        raise Erreur(f"{path} : le fichier n'a aucune question")
    if side["is_run"]:  # les questions jugées que le run ne contient pas comptent aussi
        for question, expected in qrels.items():
            positions.setdefault((question, expected, 1), 0)
    warn_of_order(path, orders)
    if examples and not any(positions.values()):
        advice = f"comparez {examples} : mêmes identifiants ?"
        warn(f"{path} : aucun document pertinent n'est trouvé ; {advice}")
    return side


def report_of(side, ks):
    """Le bilan d'un fichier évalué, tel que --json l'affiche."""
    positions = list(side["positions"].values())
    return {
        "hit_rate": {k: hit_rate(positions, k) for k in ks},
        "mrr_at_k": {k: mean_reciprocal_rank(positions, k) for k in ks},
        "mrr": mean_reciprocal_rank(positions),
        "questions": len(positions),
        "sans_resultat": len(positions) - side["answered"],
        "sans_jugement": side["unjudged"],
        "sans_pertinent": sum(not expected for _, expected, _ in side["positions"]),
        "profondeur": side["depth"],
    }


def order_of(scores):
    """L'ordre des scores d'une question dans le fichier, jugé à ses deux bouts."""
    if scores[0] > scores[-1]:
        return "décroissants"
    return "égaux" if min(scores) == max(scores) else "autres"


def warn_of_order(path, orders):
    """Avertit si aucune question n'a ses scores dans l'ordre où l'on range des scores."""
    if orders["décroissants"]:
        return
    if orders["autres"]:
        warn(
            f"{path} : le premier document d'une question n'y a jamais un meilleur score que le "
            "dernier ; des distances ? Un score plus grand doit être meilleur : changez leur signe."
        )
    elif orders["égaux"]:
        warn(
            f"{path} : dans chaque question, tous les scores sont égaux ; les documents sont "
            "rangés par leur nom, ce qui ne mesure pas la recherche."
        )


def warn(sentence):
    """Une phrase sur la sortie d'erreur, si elle est ouverte (None, `print` irait sur l'autre)."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"retrieval_eval.py : {sentence}", file=sys.stderr, flush=True)


def compare(paths, sides, k):
    """`comparer_retrieval` de deux fichiers évalués, leurs questions mises dans le même ordre.
    Rend aussi ce qu'on y compare : (avant, après, comparaison)."""
    before, after = (side["positions"] for side in sides)
    for key in [*before, *after]:
        if key not in before or key not in after:
            question = f"la question {quoted(key[0])} ou ses documents pertinents diffèrent"
            raise Erreur(f"{' et '.join(paths)} : {question} de l'un à l'autre")
    questions = [question for question, _, _ in before]
    avant = measures(questions, list(before.values()), k)
    apres = measures(questions, [after[key] for key in before], k)
    return avant, apres, comparer_retrieval(avant, apres)


# --- 5. L'écran et la ligne de commande


COUNTS = {  # les nombres d'un bilan, et leur nom à l'écran
    "questions": "questions",
    "sans_resultat": "sans résultat",
    "sans_jugement": "sans jugement",
    "sans_pertinent": "rien à trouver",
    "profondeur": "profondeur",
}


def table(reports):
    """Les lignes du tableau : les mesures, avec leur écart s'il y en a deux, puis les nombres."""
    two = len(reports) == 2
    lines = [f"{'':14}{'avant':>12}{'après':>12}{'écart':>12}"] if two else []
    rows = []
    for k in reports[0]["hit_rate"]:
        rows.append((f"Hit Rate@{k}", [report["hit_rate"][k] for report in reports]))
    for k in reports[0]["mrr_at_k"]:
        rows.append((f"MRR@{k}", [report["mrr_at_k"][k] for report in reports]))
    rows.append(("MRR", [report["mrr"] for report in reports]))
    for name, values in rows:
        line = f"{name:>14}" + "".join(f"{value:12.4f}" for value in values)
        if two:
            line += f"{rounded(values[1] - values[0]):+12.4f}"
        lines.append(line)
    for key, name in COUNTS.items():
        lines.append(f"{name:>14}" + "".join(f"{report[key]:12}" for report in reports))
    return lines


def comparison_lines(avant, apres, comparison, k):
    """Les lignes de la comparaison : mouvements, plus fortes baisses, incertitude, suite."""
    up, down, still = (comparison[name] for name in ("hausse", "baisse", "stable"))
    lines = [f"Questions en hausse : {up}, en baisse : {down}, stables : {still}"]
    if down:
        lines.append("Les plus fortes baisses, à lire d'abord :")
    pairs = list(zip(avant["details"], apres["details"]))
    pairs.sort(key=lambda pair: pair[1]["reciprocal_rank"] - pair[0]["reciprocal_rank"])
    for old, new in pairs[: min(5, down)]:
        name = quoted(old["question"])
        lines.append(f"  {name} : position {old['position']} → {new['position'] or 'absent'}")
    gaps = gaps_between(avant, apres)
    for measure, name in (("mrr", "MRR"), ("hit_rate", f"Hit Rate@{k}")):
        difference = comparison[measure]["difference"]
        bounds = comparison[measure]["interval"]
        meaning = interval_meaning(bounds, gaps[measure])
        lines.append(f"{name} : écart {difference:+.4f}, {meaning}.")
    if down == 0:
        lines.append("Pour en savoir plus, évaluez d'autres questions.")
    return lines


def interval_meaning(bounds, gaps):
    """L'intervalle affiché, et ce qu'il permet de dire ; sans lui, ce qui l'empêche."""
    if bounds is None:
        changed = moved(gaps)
        if changed < 6:
            found = f"{changed} sur {len(gaps)}" if changed else "aucune"
            return f"sans intervalle : trop peu de questions ont changé ({found}, il en faut 6)"
        return "sans intervalle : toutes les questions ont le même écart"
    low, high = bounds
    text = f"intervalle à 95 % de {low:+.4f} à {high:+.4f} ; il "
    if low > 0:
        return text + "exclut 0 : l'après est meilleur, au-delà de ces questions"
    if high < 0:
        return text + "exclut 0 : l'après est moins bon, au-delà de ces questions"
    return text + "contient 0 : rien ne dit lequel est le meilleur au-delà de ces questions"


def depth_option(text):
    """Une profondeur donnée à --k."""
    try:
        k = int(text)
    except ValueError:
        k = 0
    if k < 1:
        expected = "un nombre entier d'au moins 1 est attendu"
        raise Erreur(f"--k : {expected}, et non {quoted(text)} (--k se donne après les fichiers)")
    return k


def parse(argv):
    """Les options de la ligne de commande ; lève `Erreur`, argparse parlant anglais."""

    def refuse(message):
        raise Erreur(f"commande refusée : {quoted(shlex.join(argv))}, voir --help")

    parser = argparse.ArgumentParser(add_help=False)
    parser.error = refuse
    parser.add_argument("files", nargs="*")
    parser.add_argument("--qrels")
    parser.add_argument("--k", type=depth_option, nargs="+")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_intermixed_args(argv)
    if len(options.files) > 2:
        count = len(options.files)
        raise Erreur(f"un ou deux fichiers sont attendus, et non {count}, voir --help")
    return options


def show_example(k, as_json):
    """L'exemple de l'exercice, et d'où viennent ses nombres."""
    questions = ["Q1", "Q2"]
    results = [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]]
    relevant = {"Q1": "doc_b", "Q2": "doc_z"}
    found = evaluer_retrieval(questions, results, relevant, k)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print("L'exemple de l'exercice :")
    for detail, documents in zip(found["details"], results):
        question, position = detail["question"], detail["position"]
        place = f"en position {position}" if position else "absent"
        rank = f"1/{position}" if position else "0"
        print(
            f"  {question} trouve {', '.join(documents)} ; il fallait {relevant[question]}, "
            f"{place} : {rank}"
        )
    hits = sum(detail["hit"] for detail in found["details"])
    print(f"Hit Rate@{k} : {found['hit_rate']} ({hits} question sur 2 : position {k} au plus)")
    print(f"MRR : {found['mrr']} ((1/2 + 0) / 2)")
    print(
        "Pour vos fichiers : python3 retrieval_eval.py avant.json apres.json ; "
        "leurs formats : python3 retrieval_eval.py --help"
    )


def run(argv):
    """Toute l'évaluation, à l'écran ou en JSON."""
    options = parse(argv)
    if options.help:
        print(__doc__.strip())
        return
    if not options.files:
        if options.qrels is not None:
            raise Erreur("--qrels : des jugements sans run à évaluer, ajoutez son fichier")
        show_example(options.k[0] if options.k else 5, options.json)
        return
    ks = list(dict.fromkeys(options.k or [1, 5, 10]))
    qrels = None if options.qrels is None else read_qrels(options.qrels)
    sides = [evaluate(path, qrels) for path in options.files]
    if qrels is not None and not any(side["is_run"] for side in sides):
        raise Erreur(
            "--qrels : des jugements sans run, car ce sont des fichiers de l'exercice, "
            "qui ont déjà les leurs ; retirez --qrels"
        )
    reports = [report_of(side, ks) for side in sides]
    comparison = None
    if len(sides) == 2:
        avant, apres, comparison = compare(options.files, sides, ks[0])
        warn_of_depth(reports)
    if options.json:
        data = {"avant": reports[0], "apres": None, "comparaison": comparison}
        if len(sides) == 2:
            data["apres"] = reports[1]
        print(json.dumps(data, indent=2))
        return
    print(*table(reports), sep="\n")
    print()
    if comparison is None:
        print("Pour comparer, ajoutez à la commande le fichier d'après, à la suite de celui-ci.")
    else:
        print(*comparison_lines(avant, apres, comparison, ks[0]), sep="\n")


def warn_of_depth(reports):
    """Avertit si les deux côtés n'ont pas la même profondeur."""
    before, after = (report["profondeur"] for report in reports)
    if before != after:
        warn(
            f"jusqu'à {before} documents par question avant, {after} après : au-delà de "
            f"{min(before, after)}, les mesures ne se comparent pas. Donnez la même profondeur."
        )


def main(argv=None):
    """Lance `run` ; rend le code de sortie, une erreur étant dite en une phrase."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # ni un carnet Jupyter, ni une sortie fermée
            stream.reconfigure(errors="replace")  # une console sans UTF-8 affiche « ? »
    try:
        run(sys.argv[1:] if argv is None else argv)
        print(end="", flush=True)
    except BrokenPipeError:  # « … | head » en a assez lu
        return 0
    except Erreur as error:
        warn(error)
        return 2
    except OSError as error:
        warn(f"la sortie est impossible, {system_error(error)}")
        return 2
    except KeyboardInterrupt:
        warn("interrompu")
        return 130
    return 0


if __name__ == "__main__":
    os._exit(main())  # sans le second vidage de la sortie, qui échouerait encore en anglais
