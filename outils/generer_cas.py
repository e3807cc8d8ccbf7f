#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["anthropic>=0.77"]
# ///
"""Ajoute à un fichier de cas des CV fictifs, écrits par un modèle ; chacun coûte un appel.

    python3 outils/generer_cas.py 20 mes_cas.json

  N                      combien de cas demander
  FICHIER                le fichier de cas à compléter, créé s'il n'existe pas
  --modele NOM           le modèle qui écrit (par défaut, claude-sonnet-5-5)
  -h, --help             cette aide

Il faut le paquet anthropic et une clé, comme pour eval_cv.py. Les profils varient, et la moitié n'a
pas de réalisation chiffrée : PROMPT_V2 en demande une, et il faut voir ce qu'un modèle écrit
quand le CV n'en a pas. Les cas sont ajoutés à mesure qu'ils arrivent. Relisez-les : ce sont des
brouillons.

Codes de sortie : 0, des cas ont été ajoutés ; 1, aucun ne l'a été ; 2, une commande ou un fichier
est incorrect, ou une erreur condamne tous les appels (les cas déjà reçus sont gardés) ; 130, le
programme a été interrompu.
"""

import json
import os
import shutil
import sys
from collections import Counter
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import Arret, Impossible

# Pour un autre domaine que les CV, changez PROMPT_CASE et AXES. Chaque {} du prompt reçoit une
# valeur d'un axe, dans l'ordre. Les axes sont parcourus ensemble et en boucle : comme leurs
# longueurs, 9, 5 et 2, sont deux à deux premières entre elles, ils donnent leurs 90 combinaisons
# avant de se répéter.
PROMPT_CASE = """\
Écris le CV fictif, en français, d'une personne (domaine : {} ; situation : {}). De 6 à 9 lignes :
« CV - Prénom Nom », puis des lignes « Libellé : texte » (poste ou situation, expériences,
formation, compétences, réalisations, langues). {}
`input` : le CV ; `expected_focus` : en dix mots au plus, ce qu'un bon résumé doit en retenir."""
AXES = [
    ["santé", "bâtiment", "comptabilité", "logiciel", "école", "vente", "droit", "cuisine", "art"],
    ["premier emploi", "cinq ans de métier", "vingt ans de métier", "sans emploi", "à son compte"],
    ["Donne une ou deux réalisations chiffrées.", "Aucune réalisation ne doit être chiffrée."],
]

SCHEMA_CASE = {
    "type": "object",
    "properties": {"input": {"type": "string"}, "expected_focus": {"type": "string"}},
    "required": ["input", "expected_focus"],
    "additionalProperties": False,
}
PARALLEL = 20  # appels à la fois


def generate(model, number):
    """Fait écrire un cas, {"input": …, "expected_focus": …}, selon le profil de ce numéro : un
    appel. Lève `Impossible`, ou `Arret`."""
    profile = [axis[number % len(axis)] for axis in AXES]
    output = {"format": {"type": "json_schema", "schema": SCHEMA_CASE}}
    params = eval_cv.request(model, PROMPT_CASE.format(*profile), output_config=output)
    case = eval_cv.json_of(eval_cv.ask(params), SCHEMA_CASE)
    for name, content in case.items():
        if not isinstance(content, str) or not eval_cv.has_words(content):
            raise Impossible(f"« {name} » vide")
        if eval_cv.has_half_character(content):
            raise Impossible(f"« {name} » illisible, un emoji y est coupé en deux")
    return case


def draft_of(path):
    """Le chemin du brouillon qui remplacera ce fichier."""
    return Path(f"{path}.{os.getpid()}.tmp")


def add(path, case):
    """Ajoute un cas au fichier ; lève `Impossible` s'il y est déjà. Le fichier est relu à chaque
    fois, et un brouillon complet le remplace : un arrêt ne peut pas le laisser à moitié écrit."""
    replaced = path.exists()
    cases = eval_cv.load_cases(path) if replaced else []
    # Des espaces ou des sauts de ligne de plus ne font pas un autre CV.
    texts = [" ".join(known["input"].split()) for known in cases]
    if " ".join(case["input"].split()) in texts:
        raise Impossible("cas déjà présent")
    text = json.dumps([*cases, case], ensure_ascii=False, indent=2) + "\n"
    draft = draft_of(path)
    with eval_cv.system_errors(path):
        try:
            if replaced:  # lisible de vous seul, jusqu'à recevoir les droits du fichier
                draft.touch(0o600)
            # Une moitié d'emoji, dans un champ que vous avez ajouté, redevient "\ud83d".
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
            if replaced:
                shutil.copymode(path, draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def command(argv):
    """Fait écrire les cas et les ajoute ; rend le code de sortie."""
    parser = eval_cv.parser_for(argv)
    parser.add_argument("count", metavar="N")
    parser.add_argument("file", metavar="FICHIER")
    parser.add_argument("--modele", default=eval_cv.MODEL)
    options = parser.parse_args(argv)
    count = eval_cv.whole_number("N", options.count)
    rest = PROMPT_CASE.replace("{}", "")
    if not all(isinstance(axis, list) for axis in AXES):
        raise Arret('AXES doit être une liste de listes, comme [["paiement", "livraison"], …]')
    if PROMPT_CASE.count("{}") != len(AXES) or "{" in rest or "}" in rest:
        raise Arret("dans PROMPT_CASE, il faut un {} par liste d'AXES, et aucune autre accolade")
    path = Path(os.path.realpath(options.file))
    draft = draft_of(path)
    with eval_cv.system_errors(f"écriture de {path}"):  # vérifié avant de payer
        draft.touch(0o600)
        draft.unlink()
    start = len(eval_cv.load_cases(path)) if path.exists() else 0
    eval_cv.verify_access()
    fault = None
    added = 0
    causes = Counter()
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        numbers = range(start, start + count)
        calls = [pool.submit(generate, options.modele, number) for number in numbers]
        for call in as_completed(calls):
            try:
                add(path, call.result())
                added += 1
            except CancelledError:  # un appel annulé plus bas, après une erreur fatale
                pass
            except Impossible as cause:
                causes[str(cause)] += 1
            except Arret as error:  # ne plus rien demander, mais garder ce que rendent les autres
                fault = error
                # Pas `shutdown` ici : il annule sans prévenir `as_completed`, qui attendrait
                # sans fin.
                for other in calls:
                    other.cancel()
    finally:  # même interrompu, dire ce qui est gardé
        pool.shutdown(wait=False, cancel_futures=True)
        lines = [f"{path} : {added} cas de plus."]
        lines += [f"  {times} × {cause}" for cause, times in causes.items()]
        if causes:
            lines.append("Pour avoir ceux qui manquent, relancez la commande avec leur nombre.")
        if added:
            run = f'"{sys.executable}" "{eval_cv.__file__}" --cas "{path}"'
            advice = "Relisez les cas ajoutés, qui sont des brouillons, puis évaluez-les"
            lines.append(f"{advice} : {run}")
        eval_cv.display("\n".join(lines))
    if fault:
        raise fault
    return 0 if added else 1


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
