#!/usr/bin/env python3
"""Évaluer une recherche documentaire : Hit Rate et MRR, avant et après l'affinage (fine-tuning) d'un embedding.

    python retrieval_eval.py                                     l'exemple de l'exercice
    python retrieval_eval.py avant.json apres.json               deux fichiers à comparer
    python retrieval_eval.py avant.trec apres.trec --qrels qrels.trec --k 1 5 10

Vocabulaire du domaine : un « run » est ce que le moteur a trouvé, les « qrels » ce qu'il fallait trouver. Quelle que
soit la liste rendue pour une question, le dénominateur est toujours le nombre total de questions.
Bibliothèque standard seulement. `evaluer_retrieval` est l'exercice ; la suite lit des fichiers et compare.
"""

import argparse
import bisect
import gzip
import io
import itertools
import json
import math
import operator
import os
import random
import re
import sys
import zlib
from array import array
from collections import Counter
from contextlib import contextmanager
from statistics import stdev

# --- 1. L'exercice ------------------------------------------------------------------------------------------------


def metrics(positions, k):
    """Hit Rate à k, MRR à k et MRR, entre 0 et 1, à 4 décimales ; `positions` : à partir de 1, 0 si absent.
    Rang réciproque et MRR : Voorhees, « The TREC-8 Question Answering Track Report », 1999."""
    n = len(positions) or 1
    at_k = [position for position in positions if 0 < position <= k]
    ranks = (math.fsum(1 / position for position in kept if position) for kept in (at_k, positions))
    return tuple(round(total / n, 4) for total in (len(at_k), *ranks))


def first_position(documents, expected, question):
    """La position du premier document pertinent, quand `expected` n'est pas une simple chaîne."""
    several = isinstance(expected, (list, tuple, set, frozenset))
    if expected is None or several and not expected:
        raise ValueError(f"la question {question!r:.60} n'a pas de document pertinent")
    if not several and hasattr(expected, "__iter__"):
        raise TypeError(
            f"question {question!r:.60} : un document, une liste ou un ensemble est attendu, pas {expected!r:.60}"
        )
    expected = expected if several else [expected]
    for rank, document in enumerate(documents, 1):
        if document in expected:
            return rank
    return 0


def evaluer_retrieval(questions, resultats, documents_pertinents, k=5):
    """Hit Rate à k et MRR d'une recherche ; le dénominateur est toujours le nombre de questions.

    `questions` : liste de chaînes ; `resultats` : pour chacune, la liste de ses documents, du plus au moins pertinent ;
    `documents_pertinents` : {question: document, ou liste ou ensemble de documents, dont compte le premier trouvé} ;
    `k` : profondeur du Hit Rate, le MRR regardant toute la liste.
    Rend {"hit_rate", "mrr", "details"} : deux fractions de 0 à 1, à 4 décimales, puis par question "question",
    "position" (à partir de 1, 0 si absent), "hit" et "reciprocal_rank".
    Une entrée incorrecte lève TypeError ou ValueError, qui la nomme ; elle n'est jamais comptée comme un échec.
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise (ValueError if type(k) is int else TypeError)(f"k doit être un entier d'au moins 1, pas {k!r}")
    for name, value in [("questions", questions), ("resultats", resultats)]:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{name} : une liste est attendue, pas {value!r:.60}")
    if not isinstance(documents_pertinents, dict):
        raise TypeError(f"documents_pertinents : un dictionnaire est attendu, pas {documents_pertinents!r:.60}")
    if len(questions) != len(resultats):
        raise ValueError(f"questions : {len(questions)}, mais listes de résultats : {len(resultats)}")
    positions = []
    for question, documents in zip(questions, resultats):
        if not isinstance(documents, (list, tuple)):
            raise TypeError(f"question {question!r:.60} : une liste de documents est attendue, pas {documents!r:.60}")
        try:
            expected = documents_pertinents.get(question)
            if type(expected) is str:  # le cas courant, et le plus rapide
                positions.append(documents.index(expected) + 1 if expected in documents else 0)
            else:
                positions.append(first_position(documents, expected, question))
        except TypeError as error:  # Python ne sait pas comparer une liste ou un dictionnaire à un identifiant
            if "unhashable" not in str(error):
                raise
            raise TypeError(f"question {question!r:.60} : elle et ses documents doivent être des textes") from None
    hit_rate, _, mrr = metrics(positions, k)
    details = [
        {"question": question, "position": rank, "hit": 0 < rank <= k, "reciprocal_rank": 1 / rank if rank else 0.0}
        for question, rank in zip(questions, positions)
    ]
    return {"hit_rate": hit_rate, "mrr": mrr, "details": details}


EXEMPLE = {
    "questions": ["Q1", "Q2"],
    "resultats": [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]],
    "documents_pertinents": {"Q1": "doc_b", "Q2": "doc_z"},
}

# --- 2. Lire les fichiers, et en tirer la position de chaque question ---------------------------------------------


class Faute(Exception):
    """Un fichier ou un usage incorrect ; le texte de l'exception nomme le fichier et l'erreur."""


def unique(pairs):
    """Un objet JSON, en dictionnaire : une clé répétée en écraserait une autre sans que rien ne le signale."""
    if len(dict(pairs)) < len(pairs):
        raise Faute("une clé y est répétée")
    return dict(pairs)


@contextmanager
def opened(path):
    """Ouvre un fichier, compressé ou non ; donne (fichier, None), ou (None, contenu) pour du JSON ; lève `Faute`."""
    try:
        with open(path, "rb") as raw:
            data = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            is_json = data.peek(1).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
            if is_json:
                yield None, json.load(io.TextIOWrapper(data, encoding="utf-8-sig"), object_pairs_hook=unique)
            else:
                yield data, None
    except json.JSONDecodeError as error:
        raise Faute(f"{path} : JSON invalide, ligne {error.lineno}, colonne {error.colno}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Faute(f"{path} : fichier gzip corrompu") from None
    except OSError as error:
        known = {FileNotFoundError: "fichier introuvable", IsADirectoryError: "c'est un dossier"}
        known[io.UnsupportedOperation] = "ses lignes sont dispersées, il faut un fichier ordinaire pour les relire"
        raise Faute(f"{path} : {known.get(type(error), 'lecture impossible')}") from None
    except UnicodeDecodeError:
        raise Faute(f"{path} : le texte n'est pas en UTF-8") from None
    except (ValueError, RecursionError):
        raise Faute(f"{path} : JSON invalide (nombre démesuré ou imbrication trop profonde)") from None
    except Faute as error:
        raise Faute(f"{path} : {error}") from None


def numbers(values):
    """Des nombres en simple précision, celle où trec_eval compare les scores ; ValueError s'il y a autre chose."""
    try:
        found = array("f", map(float, values))
    except (TypeError, OverflowError):
        raise ValueError from None
    if math.isnan(sum(found)) and any(map(math.isnan, found)):
        raise ValueError
    return found


def json_blocks(data):
    """Rend (question, documents, nombres) pour chaque entrée de {question: {document: nombre}}."""
    if not isinstance(data, dict):
        raise Faute("{question: {document: nombre}} est attendu")
    for question, values in data.items():
        try:
            if not set(map(type, values.values())) <= {int, float}:
                raise ValueError
            if values:
                yield question, list(values), numbers(values.values())
        except (AttributeError, ValueError):
            raise Faute(f"question {question!r:.60} : {{document: nombre}} est attendu") from None


def trec_columns(file, width, at):
    """Rend par gros paquets les colonnes (questions, documents, nombres) ; les nombres sont dans la colonne `at`."""
    start = 1
    while text := file.read(1 << 20) + file.readline():
        text = text.removeprefix(b"\xef\xbb\xbf" if start == 1 else b"").removesuffix(b"\n")
        # Découper d'un coup tout le paquet est bien plus rapide ; un « \0 » par fin de ligne garde trace des lignes.
        n_lines, tokens = text.count(b"\n") + 1, text.replace(b"\n", b" \0 ").split()
        ends = tokens[width :: width + 1].count(b"\0")
        if len(tokens) != n_lines * (width + 1) - 1 or ends != n_lines - 1 or b"\0" in text:
            rows = [line.split() for line in text.split(b"\n")]  # une ligne vide, ou fautive
            for number, row in enumerate(rows, start):
                if len(row) not in (0, width):
                    raise Faute(f"ligne {number} : {len(row)} colonnes au lieu de {width}")
            tokens = [token for row in rows if row for token in (*row, b"\0")]
        try:
            yield tokens[0 :: width + 1], tokens[2 :: width + 1], numbers(tokens[at :: width + 1])
        except ValueError:
            for number, line in enumerate(text.split(b"\n"), start):
                try:
                    numbers(line.split()[at : at + 1])
                except ValueError:
                    raise Faute(
                        f"ligne {number} : « {line.split()[at].decode('utf-8', 'replace'):.40} » n'est pas un nombre"
                    ) from None
        start += n_lines


def trec_blocks(file, width, at):
    """Rend (question, documents, nombres) pour chaque suite de lignes d'une même question."""
    current, documents, values = None, [], array("f")
    for questions, more_documents, more_values in trec_columns(file, width, at):
        start = 0
        for question, group in itertools.groupby(questions):
            if question != current and documents:
                yield current.decode(), documents, values
                documents, values = [], array("f")
            current, end = question, start + len(list(group))
            documents += more_documents[start:end]
            values += more_values[start:end]
            start = end
    if documents:
        yield current.decode(), documents, values


def read_qrels(path):
    """Les jugements, TREC (`qid 0 docid pertinence`) ou JSON : {question: ses documents de pertinence > 0}."""
    qrels = {}
    with opened(path) as (file, data):
        for question, documents, values in trec_blocks(file, 4, 3) if file else json_blocks(data):
            relevant = {document for document, value in zip(documents, values) if value > 0}
            qrels.setdefault(question, set()).update({d.decode() for d in relevant} if file else relevant)
        if not qrels:
            raise Faute("aucune question jugée")
    return qrels


def first_relevant(documents, scores, relevant):
    """La position du premier pertinent, 0 s'il n'y en a pas, dans l'ordre de trec_eval : par score, puis par
    identifiant décroissants. Répété, un document compte à sa première ligne."""
    found = [(scores[documents.index(document)], document) for document in relevant.intersection(documents)]
    if not found:
        return 0
    score, name = max(found)
    ordered = sorted(scores)  # presque gratuit : les lignes d'un run sont d'ordinaire déjà dans l'ordre
    start, end = bisect.bisect_left(ordered, score), bisect.bisect_right(ordered, score)
    ties = end - start > 1 and sum(d > name for d, s in zip(documents, scores) if s == score)
    return 1 + len(ordered) - end + ties


def encoded(documents):
    """Des identifiants en octets, comme `trec_blocks` les laisse : décoder des millions de lignes serait lent."""
    return {document.encode("utf-8", "surrogatepass") for document in documents}


def run_positions(file, data, qrels):
    """Rend {question jugée: position} et les questions sans jugement d'un run, TREC ou JSON.
    D'un run TREC, une seule question est en mémoire à la fois, sauf si ses lignes y sont dispersées."""
    positions, unjudged, scattered = {}, set(), {}
    for question, documents, scores in trec_blocks(file, 6, 4) if file else json_blocks(data):
        if question not in qrels:
            unjudged.add(question)
        elif question in positions:
            break
        else:
            positions[question] = first_relevant(
                documents, scores, encoded(qrels[question]) if file else qrels[question]
            )
    else:
        return positions, unjudged
    file.seek(0)
    for question, documents, scores in trec_blocks(file, 6, 4):
        all_documents, all_scores = scattered.setdefault(question, ([], array("f")))
        all_documents += documents
        all_scores += scores
    for question in scattered.keys() & qrels:
        positions[question] = first_relevant(*scattered[question], encoded(qrels[question]))
    return positions, scattered.keys() - qrels


def named(values):
    """Une liste d'identifiants en texte, car 12 et "12" désignent le même document ; le reste tel quel."""
    if not isinstance(values, list):
        return values
    if not {str, int} >= set(map(type, values)):
        raise Faute("un identifiant doit être un texte ou un entier")
    return list(map(str, values))


def exercise_side(data):
    """L'évaluation d'un fichier au format de l'exercice (voir `evaluate`)."""
    try:
        questions, results = named(data["questions"]), data["resultats"]
        results = list(map(named, results)) if isinstance(results, list) else results
        relevant = data["documents_pertinents"]
        if isinstance(relevant, dict):
            relevant = {q: set(named(d if isinstance(d, list) else [d])) for q, d in relevant.items()}
        details = evaluer_retrieval(questions, results, relevant)["details"]
    except KeyError as error:
        raise Faute(f"la clé {error} manque") from None
    except (TypeError, ValueError) as error:
        raise Faute(str(error)) from None
    seen = Counter()
    positions, expected = {}, {}
    for question, position in ((detail["question"], detail["position"]) for detail in details):
        seen[question] += 1
        positions[question, seen[question]], expected[question, seen[question]] = position, relevant[question]
    return {"positions": positions, "expected": expected, "sans_resultat": results.count([]), "sans_jugement": 0}


def evaluate(path, qrels=None):
    """Évalue un fichier. Rend {"positions": {(question, n): position}, "expected": {(question, n): documents},
    "sans_resultat", "sans_jugement"} ; n numérote les occurrences d'une question dans un fichier de l'exercice."""
    with opened(path) as (file, data):
        if isinstance(data, dict) and data.keys() & {"resultats", "documents_pertinents"}:
            if qrels:
                raise Faute("ce fichier dit déjà quels documents sont pertinents : retirez --qrels")
            side = exercise_side(data)
        elif not qrels:
            raise Faute("ce run se lit avec ses jugements : ajoutez --qrels FICHIER")
        else:
            found, unjudged = run_positions(file, data, qrels)
            if not found:
                raise Faute(f"aucune de ses questions n'est jugée (run : {min(unjudged)!r}…, qrels : {min(qrels)!r}…)")
            side = {"positions": {(question, 1): found.get(question, 0) for question in qrels}}
            side |= {"expected": {(question, 1): documents for question, documents in qrels.items()}}
            side |= {"sans_resultat": len(qrels) - len(found), "sans_jugement": len(unjudged)}
        if not side["positions"]:
            raise Faute("aucune question")
    return side | {"path": path}


def report(side, ks):
    """Les mesures d'une évaluation, pour chaque k."""
    values = {k: metrics(list(side["positions"].values()), k) for k in ks}
    at_k = {"hit_rate": {k: values[k][0] for k in ks}, "mrr_at_k": {k: values[k][1] for k in ks}}
    counts = {name: side[name] for name in ("sans_resultat", "sans_jugement")}
    return {**at_k, "mrr": values[ks[0]][2], "questions": len(side["positions"]), **counts}


# --- 3. Comparer l'avant et l'après -------------------------------------------------------------------------------
# `signed_sums` et `p_value` sont aussi dans eval_cv.py : chaque script se copie seul.


def signed_sums(values):
    """Les 2^n sommes ± v1 ± v2 … ± vn."""
    sums = [0.0]
    for value in values:
        sums = [s + signed for s in sums for signed in (value, -value)]
    return sums


def p_value(differences):
    """Le p, de 0 à 1, du test de permutation apparié bilatéral par changement de signe (Fisher, 1935).
    Si rien ne distinguait l'avant de l'après, chaque écart pourrait être de l'autre signe : p est la part des tirages
    de signes dont la somme est au moins aussi loin de zéro que celle observée. Écarts 1, 2 et 3 : deux tirages sur huit
    (+++ et ---) atteignent 6 ou -6, donc p = 0,25. Tous les tirages jusqu'à 16 écarts non nuls, 10 000 au hasard
    (graine fixe) jusqu'à 2 000, l'approximation normale au-delà."""
    values = [d for d in differences if d]
    observed = abs(math.fsum(values)) - 1e-12 * sum(map(abs, values))  # des sommes égales diffèrent d'un arrondi
    if observed <= 0:
        return 1.0
    if len(values) > 2000:
        sizes = set(map(abs, values))
        observed -= max(sizes) if len(sizes) == 1 else 0  # correction de continuité : les sommes vont de 2 en 2 écarts
        return math.erfc(observed / math.sqrt(2 * sum(v * v for v in values)))
    if len(values) <= 16:
        sums = signed_sums(values)
        return sum(abs(s) >= observed for s in sums) / len(sums)
    values += [0.0] * (-len(values) % 8)  # par paquets de 8 écarts : un octet au hasard choisit une des 256 sommes
    tables = [signed_sums(values[i : i + 8]) for i in range(0, len(values), 8)]
    draw = random.Random(0).randbytes
    sums = (sum(map(operator.getitem, tables, draw(len(tables)))) for _ in range(10_000))
    return (1 + sum(abs(s) >= observed for s in sums)) / 10_001


def compare(before, after, k):
    """Pour le MRR et le Hit Rate à k : l'écart (des valeurs arrondies), son erreur type et son p ; puis combien de
    questions montent, descendent, restent. Lève `Faute` si les questions ou leurs documents attendus diffèrent."""
    for key in before["expected"] | after["expected"]:
        if before["expected"].get(key) != after["expected"].get(key):
            what = "n'est pas autant de fois dans les deux fichiers, avec les mêmes documents pertinents"
            raise Faute(f"{before['path']} et {after['path']} : la question {key[0]!r:.60} {what}")
    pairs = [(rank, after["positions"][key]) for key, rank in before["positions"].items()]
    gaps = {
        "mrr": [(b and 1 / b) - (a and 1 / a) for a, b in pairs],
        "hit_rate": [(0 < b <= k) - (0 < a <= k) for a, b in pairs],
    }
    old, new = (metrics(list(side["positions"].values()), k) for side in (before, after))
    result = {}
    for metric, index in (("mrr", 2), ("hit_rate", 0)):
        values = gaps[metric]
        result[metric] = {
            "difference": round(new[index] - old[index], 4),
            "standard_error": round(stdev(values) / math.sqrt(len(values)), 4) if len(values) > 1 else None,
            "p_value": round(p_value(values), 4),
        }
    moves = Counter((gap > 0) - (gap < 0) for gap in gaps["mrr"])
    return result | {"hausse": moves[1], "baisse": moves[-1], "stable": moves[0]}


def report_lines(reports, sides):
    """Le tableau des mesures (avant, après, écart) et l'histogramme des positions, pour l'écran."""
    reports, columns = list(reports.values()), ["", "avant", "après", "écart"]
    ks = list(reports[0]["hit_rate"])
    rows = [(f"Hit Rate@{k}", *(r["hit_rate"][k] for r in reports)) for k in ks]
    rows += [(f"MRR@{k}", *(r["mrr_at_k"][k] for r in reports)) for k in ks]
    lines = ["".join(f"{column:>12}" for column in columns)] * (len(reports) > 1)
    for name, *values in [*rows, ("MRR", *(r["mrr"] for r in reports))]:
        gap = f"{values[1] - values[0]:>+12.4f}" if len(values) > 1 else ""
        lines.append(f"{name:>12}" + "".join(f"{value:>12.4f}" for value in values) + gap)
    lines += ["", "Nombre de questions selon la position du premier document pertinent :"]
    for low, high in zip([1, *(k + 1 for k in sorted(ks)), 0], [*sorted(ks), math.inf, 0]):
        counts = [sum(low <= rank <= high for rank in side["positions"].values()) for side in sides.values()]
        label = f"{low} à {high}" if low < high < math.inf else f"{low} ou plus" if low < high else low or "absent"
        bars = [f"{count:>8} {'█' * round(24 * count / reports[0]['questions']):<24}" for count in counts]
        lines.append((f"{label:>12}" + "".join(bars)).rstrip())
    return lines


def comparison_lines(comparison, before, after, k):
    """Ce que la comparaison permet de dire, pour l'écran."""
    up, down, still = (comparison[name] for name in ("hausse", "baisse", "stable"))
    lines = [f"{up} question(s) en hausse, {down} en baisse, {still} stable(s)"]
    falls = sorted((((b and 1 / b) - 1 / a, key[0], a, b) for key, a in before.items() if a and (b := after[key]) != a))
    for gap, question, a, b in falls[:5]:
        lines += [f"  baisse : {question!r:.60}, position {a} → {b or 'absent'}"] * (gap < 0)
    for metric, name in (("mrr", "MRR"), ("hit_rate", f"Hit Rate@{k}")):
        gap, error, p = comparison[metric].values()
        says = f"un tel écart serait {'rare' if p <= 0.05 else 'banal'} si rien n'avait changé"
        if up + down < 6:
            says = "trop peu de questions ont bougé pour conclure (p ne passe sous 0.05 qu'à partir de 6)"
        error = "indisponible" if error is None else f"{error:.4f}"
        shown = f"= {p:g}" if p >= 0.0001 else "< 0.0001"
        lines.append(f"{name} : écart {gap:+.4f}, erreur type {error}, p {shown} ; {says}.")
    return lines


# --- 4. La ligne de commande --------------------------------------------------------------------------------------

# Les messages d'argparse qu'on peut lire ici, en français.
FRENCH = {
    "usage: ": "usage : ",
    "options": "options ",
    "ignored explicit argument %r": "cette option n'admet pas de valeur (%r)",
    "positional arguments": "fichiers ",
    "show this help message and exit": "affiche cette aide",
    "%(prog)s: error: %(message)s\n": "%(prog)s : %(message)s\n",
    "argument %(argument_name)s: %(message)s": "%(argument_name)s : %(message)s",
    "unrecognized arguments: %s": "arguments inconnus : %s",
    "expected one argument": "une valeur est attendue",
    "expected at least one argument": "au moins une valeur est attendue",
}


def at_least_one(text):
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"un entier d'au moins 1 est attendu, pas « {text} »")
    return int(text)


def parse(argv):
    argparse._ = lambda text: FRENCH.get(text, text)
    parser = argparse.ArgumentParser(description="Hit Rate et MRR, avant et après l'affinage.", allow_abbrev=False)
    add = parser.add_argument
    add("avant", nargs="?", metavar="AVANT", help="run, ou fichier au format de l'exercice (sans fichier : l'exemple)")
    add("apres", nargs="?", metavar="APRES", help="le second, à comparer au premier")
    add("--qrels", metavar="FICHIER", help="les jugements, pour des runs")
    add(
        "--k",
        metavar="K",
        type=at_least_one,
        nargs="+",
        default=[1, 5, 10],
        help="profondeurs (par défaut : 1 5 10) ; à donner après les fichiers",
    )
    add("--details", metavar="FICHIER", help="écrit une ligne JSON par question (« hit » au premier k)")
    add("--json", action="store_true", help="le bilan en JSON sur la sortie standard")
    return parser.parse_args(argv)


def run(argv):
    """Toute l'évaluation, pour l'écran ou en JSON."""
    options = parse(argv)
    ks = list(dict.fromkeys(options.k))
    qrels = None if options.qrels is None else read_qrels(options.qrels)
    paths = {"avant": options.avant, "apres": options.apres}
    if qrels and options.avant is None:
        raise Faute("--qrels : indiquez aussi le run à évaluer")
    sides = {name: evaluate(path, qrels) for name, path in paths.items() if path is not None}
    sides = sides or {"avant": exercise_side(EXEMPLE)}
    reports = {name: report(side, ks) for name, side in sides.items()}
    positions = {name: side["positions"] for name, side in sides.items()}
    comparison = compare(*sides.values(), ks[0]) if len(sides) > 1 else None
    if options.details is not None:
        with open(options.details, "w", encoding="utf-8", errors="replace") as file:
            for key in positions["avant"]:
                ranks = {name: found[key] for name, found in positions.items()}
                line = {
                    name: {"position": r, "hit": 0 < r <= ks[0], "reciprocal_rank": r and 1 / r}
                    for name, r in ranks.items()
                }
                file.write(
                    json.dumps({"question": key[0]} | (line if comparison else line["avant"]), ensure_ascii=False)
                    + "\n"
                )
    if options.json:
        print(json.dumps({"avant": None, "apres": None} | reports | {"comparaison": comparison}, indent=2))
        return
    if options.avant is None:
        print(
            "L'exemple de l'exercice : pour Q1, la recherche trouve doc_a, doc_b, doc_c et il fallait doc_b ; pour Q2,"
        )
        print("elle trouve doc_x, doc_y et il fallait doc_z. Avec vos fichiers : retrieval_eval.py AVANT [APRES]\n")
    print("\n".join(report_lines(reports, sides)) + "\n")
    for name, r in reports.items():
        counts = f"questions : {r['questions']}, dont sans résultat : {r['sans_resultat']}"
        print(f"{paths[name] or 'exemple'} ; {counts} ; écartées faute de jugement : {r['sans_jugement']}")
    if comparison:
        print("\n" + "\n".join(comparison_lines(comparison, *positions.values(), ks[0])))


def main(argv=None):
    """Le point d'entrée : rend 0, ou 2 après une phrase pour toute faute de l'utilisateur."""
    try:
        run(argv)
        print(end="", flush=True)
        return 0
    except Faute as fault:
        print(f"retrieval_eval.py : {fault}", file=sys.stderr)
    except OSError as fault:
        print(f"retrieval_eval.py : {fault.filename or 'sortie'} : écriture impossible", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # une console qui n'est pas en UTF-8 affiche « ? » au lieu d'échouer
    sys.exit(main())
