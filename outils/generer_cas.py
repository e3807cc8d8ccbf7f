#!/usr/bin/env python3
"""Ajoute à un fichier de cas des CV fictifs, écrits par un modèle, un appel chacun.

    python outils/generer_cas.py 20 mes_cas.json

Les profils varient, et la moitié n'a pas de réalisation chiffrée, puisque PROMPT_V2 en exige une.
Relisez-les : un cas généré est un brouillon.
"""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import Arret, Impossible

SCHEMA_CASE = {
    "type": "object",
    "properties": {"input": {"type": "string"}, "expected_focus": {"type": "string"}},
    "required": ["input", "expected_focus"],
    "additionalProperties": False,
}
PROMPT_CASE = """\
Écris le CV fictif, en français, d'une personne (domaine : {} ; situation : {}). De 6 à 9 lignes :
« CV - Prénom Nom », puis des lignes « Libellé : texte » (poste ou situation, expériences,
formation, compétences, réalisations, langues). {}
`input` : le CV ; `expected_focus` : en dix mots au plus, ce qu'un bon résumé doit en retenir."""
AXES = [  # parcourus en boucle, de longueurs premières entre elles : tous les profils se croisent
    ["santé", "bâtiment", "comptabilité", "logiciel", "école", "vente", "droit", "cuisine", "art"],
    ["en début de carrière", "cinq ans d'expérience", "vingt ans", "sans emploi", "à son compte"],
    ["Donne une ou deux réalisations chiffrées.", "Aucune réalisation ne doit être chiffrée."],
]


def plain(case):  # pour reconnaître un CV que l'on a déjà
    return " ".join(case["input"].casefold().split())


def generate(model, number):
    """Demande un cas : {"input", "expected_focus"} ; lève `Impossible`."""
    prompt = PROMPT_CASE.format(*(axis[number % len(axis)] for axis in AXES))
    output = {"format": {"type": "json_schema", "schema": SCHEMA_CASE}}
    message = eval_cv.ask(eval_cv.request(model, prompt, output_config=output))
    try:
        case = json.loads(eval_cv.complete_text(message))
        texts = [case["input"], case["expected_focus"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Impossible("JSON illisible") from None
    if not all(isinstance(text, str) and any(map(str.isalnum, text)) for text in texts):
        raise Impossible("un texte vide")
    return case


def add(path, case):
    """Ajoute un cas au fichier, qu'il remplace d'un coup ; lève `Impossible` s'il y est déjà."""
    cases = eval_cv.load_cases(path) if path.exists() else []  # un autre en ajoute peut-être aussi
    if plain(case) in map(plain, cases):
        raise Impossible("cas déjà présent")
    draft = Path(f"{path}.{os.getpid()}.tmp")
    text = json.dumps([*cases, case], ensure_ascii=False, indent=2) + "\n"
    draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    if path.exists():
        shutil.copymode(path, draft)
    draft.replace(path)


def run(argv):
    parser = argparse.ArgumentParser(description="Ajoute N CV fictifs à un fichier de cas.")
    parser.error = eval_cv.refuse
    parser.add_argument("n", metavar="N", type=int)
    parser.add_argument("fichier", metavar="FICHIER", help="créé s'il n'existe pas")
    parser.add_argument("--modele", metavar="NOM", default=eval_cv.MODEL, help=eval_cv.MODEL)
    options = parser.parse_args(argv)
    path = Path(options.fichier).resolve()
    if options.n < 1 or not os.access(path.parent, os.W_OK):
        raise Arret(f"{path} : un entier d'au moins 1 et un dossier où écrire sont attendus")
    start = len(eval_cv.load_cases(path)) if path.exists() else 0
    pool, added, causes = ThreadPoolExecutor(20), 0, Counter()
    numbers = range(start, start + options.n)
    for future in as_completed([pool.submit(generate, options.modele, n) for n in numbers]):
        try:
            add(path, future.result())  # dès qu'il arrive
            added += 1
        except Impossible as cause:
            causes[str(cause)] += 1
    print(f"{path} : {added} cas de plus. Relisez-les, ce sont des brouillons.")
    for cause, count in causes.items():
        print(f"  {count} × {cause}")
    return 0 if added else 1


if __name__ == "__main__":
    os._exit(eval_cv.main(run))
