#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["anthropic>=0.77"]
# ///
"""Fait par lots (API Message Batches), à moitié prix, la même évaluation qu'eval_cv.py.

    python3 outils/lots.py --cas mes_cas.json      une nouvelle évaluation
    python3 outils/lots.py --reprendre JOURNAL     retrouve ses lots, et demande ce qui manque

Les requêtes partent en deux vagues, les résumés puis leurs notations, et l'API peut prendre
24 heures pour chaque vague. On peut arrêter le script ou l'ordinateur pendant ce temps, puis
reprendre.

Il faut le même paquet et la même clé que pour eval_cv.py. Le journal, l'affichage et les codes de
sortie sont aussi ceux d'eval_cv.py ; les options également, sauf --demo, qui est refusée, et
--paralleles, qui ne change rien à un lot : voyez python3 eval_cv.py --help. Deux options, où LOT
est l'identifiant d'un lot, complètent --reprendre :

  --trouve LOT           à donner si l'envoi d'un lot a été interrompu et que la console
                         d'Anthropic montre ce lot : ses résultats seront attendus, et rien ne
                         sera repayé
  --perdu LOT            à donner si l'API ne connaît plus ce lot, ou si ses résultats ont expiré
                         (si vous n'avez jamais reçu son identifiant, donnez à sa place le mot
                         « inconnu ») : ses requêtes seront envoyées de nouveau, et celles qu'il
                         a déjà traitées seront payées deux fois
  -h, --help             cette aide
"""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import Arret, Impossible, PasDemande, keep, tell

REQUESTS = 1_000  # par lot, au plus
FIRST_PAUSE = 1  # secondes avant de redemander où en est un lot ; le double à chaque fois,
LAST_PAUSE = 60  # sans dépasser cette valeur
PATIENCE = 3600  # pendant combien de secondes une erreur veut dire « pas encore »

# Au journal, un lot est {"batch": son identifiant, "requests": {clé d'un appel: {"version": "V1",
# "pass": 2, "request": les paramètres}, …}}. Puis {"collected": son identifiant} dit qu'on n'en
# attend plus rien : ses résultats sont écrits, son envoi a été refusé, ou on l'a déclaré perdu.
# Tant que l'API n'a pas donné l'identifiant, UNKNOWN en tient lieu ; le lot est ensuite réécrit
# sous le vrai, et UNKNOWN est à son tour "collected".
UNKNOWN = "inconnu"
DOUBT = (
    "Un lot a peut-être été créé. Cherchez-le dans la console d'Anthropic, parmi les derniers : "
    "s'il y est, ajoutez à la commande de reprise --trouve et son identifiant, et rien ne sera "
    f"repayé ; s'il n'y est pas, ajoutez à cette commande --perdu {UNKNOWN}."
)
NOT_SENT = {  # les exceptions qui précèdent tout envoi
    "TypeError",
    "UnicodeEncodeError",
    "UnsupportedProtocol",
    "LocalProtocolError",
    "ConnectError",
    "ConnectTimeout",
    "PoolTimeout",
    "ProxyError",
}
NO_DEMO = "une démonstration n'appelle aucun modèle, faites-la avec eval_cv.py"


def known_or_waiting(journal, waiting, received, version, passage, params):
    """Prend la place d'`eval_cv.answer_once` : rend la réponse du journal, ou met la requête dans
    `waiting` et lève `PasDemande`. Ce qui est dans `received` (un lot y a répondu, même mal, ou
    l'API a refusé l'envoi) n'est pas redemandé : on paierait sans fin."""
    key = eval_cv.call_key(version, passage, params)
    try:
        return eval_cv.known_answer(journal, key, params)
    except Impossible:  # pas de réponse, ou une réponse inutilisable
        if key in received:
            raise
    waiting[key] = {"version": version, "pass": passage, "request": params}
    raise PasDemande


def fault_of(error):
    """Comme `eval_cv.fault_of`, mais un AttributeError veut dire que ce n'est pas l'API qui a
    répondu : un portail captif, par exemple."""
    if isinstance(error, AttributeError):
        return Impossible("la réponse ne vient pas de l'API")
    return eval_cv.fault_of(error)


def may_be_created(error):
    """Vrai si le lot a pu être créé malgré cette erreur."""
    status = getattr(error, "status_code", None)
    if status:
        refused = 400 <= status < 500 and status != 408  # 408 : délai dépassé, lot peut-être reçu
        return not refused
    cause = error.__cause__ or error  # le SDK enveloppe l'exception d'origine
    return type(cause).__name__ not in NOT_SENT


def name_batch(journal, batch_id):
    """Donne son identifiant au lot dont le journal ne connaissait que l'envoi."""
    keep(journal, {"batch": batch_id, "requests": journal.batches[UNKNOWN]})
    keep(journal, {"collected": UNKNOWN})


def create_batch(journal, requests):
    """Crée un lot, en un seul essai : un autre pourrait faire payer un second lot. Rend faux si
    l'API le trouve trop gros ; lève `Arret`."""
    batches = eval_cv.client().with_options(max_retries=0).messages.batches
    items = [{"custom_id": key, "params": record["request"]} for key, record in requests.items()]
    keep(journal, {"batch": UNKNOWN, "requests": requests})  # au cas où tout s'arrêterait ici
    try:
        batch_id = batches.create(requests=items).id
    except KeyboardInterrupt:
        tell(DOUBT)
        raise
    except Exception as error:
        fault = fault_of(error)
        if may_be_created(error):
            raise Arret(f"envoi d'un lot : {fault}. {DOUBT}") from None
        keep(journal, {"collected": UNKNOWN})
        if getattr(error, "status_code", None) == 413:
            return False
        raise Arret(f"envoi d'un lot : {fault}. Ce lot n'a pas été créé.") from None
    name_batch(journal, batch_id)
    return True


def check_batch(batch_id, requests):
    """Lève `Arret` si ce lot n'est pas celui de ces requêtes (l'API ne le connaît pas, il n'en a
    pas le même nombre ou, une fois fini, aucun de ses résultats ne répond à l'une d'elles), ou si
    l'on ne peut pas le vérifier."""
    batches = eval_cv.client().with_options(max_retries=1, timeout=60).messages.batches
    cause = None
    try:
        batch = batches.retrieve(batch_id)
        counts = vars(batch.request_counts)  # {"processing": 3, "succeeded": 5, …}
        same = sum(counts.values()) == len(requests)
        if same and batch.processing_status == "ended":
            results = list(batches.results(batch_id))  # lus à demi, ils bloqueraient le SDK
            same = any(item.custom_id in requests for item in results)
        if not same:
            cause = "ce n'est pas le lot de l'envoi interrompu, cherchez-en un autre"
    except Exception as error:
        cause = fault_of(error)
        if getattr(error, "status_code", None) == 404:
            cause = "l'API ne connaît pas ce lot, recopiez son identifiant"
    if cause:
        raise Arret(f"--trouve {batch_id} : {cause}. Le journal n'a pas changé.")


def send(journal, waiting, received):
    """Envoie ce qui attend, en lots que l'API ne trouve pas trop gros."""
    left = list(waiting.items())
    size = REQUESTS
    while left:
        part = dict(left[:size])
        if create_batch(journal, part):
            left = left[size:]
        elif len(part) > 1:
            size = len(part) // 2
            refused = f"Un lot de {len(part)} requêtes est trop gros pour l'API (HTTP 413)"
            tell(f"{refused} : il n'a pas été créé ; nouvel essai par lots de {size}.")
        else:
            key, record = left.pop(0)
            keep(journal, {**record, "cause": "requête trop grosse pour l'API (HTTP 413)"})
            received.add(key)


def results_of(batch_id):
    """Attend la fin d'un lot, et rend ses résultats, dans le désordre. Une erreur, même HTTP 404,
    veut dire « pas encore » ; lève `Arret` après PATIENCE secondes d'erreurs, ou aussitôt si une
    autre erreur condamne tous les appels."""
    batches = eval_cv.client().with_options(max_retries=0, timeout=60).messages.batches
    pause = FIRST_PAUSE
    failing_since = None
    while True:
        try:
            batch = batches.retrieve(batch_id)
            if batch.processing_status == "ended":
                return list(batches.results(batch_id))
            state = f"requêtes en cours : {batch.request_counts.processing}"
            failing_since = None
        except Exception as error:
            fault = fault_of(error)
            not_found = getattr(error, "status_code", None) == 404
            if not (not_found or isinstance(fault, Impossible)):
                raise fault from None
            state = str(fault)
            if not_found:
                state = (
                    "HTTP 404, lot inconnu à cette adresse ; est-il dans la console d'Anthropic ?"
                )
            if failing_since is None:
                failing_since = time.monotonic()
            if time.monotonic() - failing_since >= PATIENCE:
                raise Arret(
                    f"lot {batch_id} : aucune réponse utilisable depuis {PATIENCE // 60} minutes "
                    f"({state}). Ce lot n'est sans doute pas perdu, reprenez plus tard. S'il n'est "
                    "plus dans la console d'Anthropic, ou si ses résultats ont expiré, reprenez "
                    f"avec --perdu {batch_id} : ses requêtes seront envoyées et payées de nouveau."
                ) from None
        tell(f"Lot {batch_id} : {state}")
        time.sleep(pause)
        pause = min(LAST_PAUSE, 2 * pause)


def outcome(item):
    """Ce que le journal garde d'un résultat de lot : {"message": …} ou {"cause": …}."""
    result = getattr(item, "result", None)
    kind = getattr(result, "type", None)
    if kind == "succeeded":
        return {"message": getattr(result, "message", None)}
    if kind == "expired":
        return {"cause": "le lot a expiré"}
    if kind == "canceled":
        return {"cause": "le lot a été annulé"}
    try:
        reason = f" : « {eval_cv.masked(result.error.error.message)} »"
    except AttributeError:
        reason = ""
    return {"cause": f"requête en erreur dans le lot{reason}"}


def collect(journal, batch_id, received):
    """Attend un lot et en écrit les résultats au journal."""
    outcomes = {}
    for item in results_of(batch_id):
        outcomes[str(getattr(item, "custom_id", None))] = outcome(item)
    missing = {"cause": "requête absente des résultats du lot"}
    for key, sent in journal.batches[batch_id].items():
        # Le SDK rend des objets, le journal des dictionnaires : par du JSON, on peut les comparer.
        record = {**sent, **outcomes.get(key, missing)}
        record = json.loads(json.dumps(record, default=eval_cv.attributes))
        if record != journal.answers.get(key):  # égal : un essai précédent, interrompu, l'a écrit
            keep(journal, record)
        received.add(key)
    keep(journal, {"collected": batch_id})


def in_batches(journal, ask):
    """Prend la place d'`eval_cv.evaluate_directly`, mais envoie des lots : `ask` ne sert pas. Rend
    la même chose."""
    if journal.plan["model"] == eval_cv.DEMO:
        raise Arret(f"{journal.path} : {NO_DEMO}")
    if UNKNOWN in journal.batches:
        raise Arret(f"{journal.path} : un envoi a été interrompu. {DOUBT}")
    received = set()  # les clés à ne plus demander : un lot a répondu, ou l'API a refusé l'envoi
    while True:  # attend les lots partis, puis envoie la vague suivante : résumés, notations
        for batch_id in list(journal.batches):
            collect(journal, batch_id, received)
        waiting = {}  # les appels à faire, {clé d'un appel: ligne à écrire}
        call = partial(known_or_waiting, journal, waiting, received)
        versions = eval_cv.run_plan(journal.plan, call)
        if not waiting:
            return versions
        send(journal, waiting, received)


def not_awaited(journal, fault):
    """L'erreur à lever quand --trouve ou --perdu ne convient pas à ce journal."""
    names = ", ".join(journal.batches) or "aucun"
    advice = "corrigez l'identifiant, ou reprenez le journal sans --trouve ni --perdu"
    return Arret(f"{journal.path} : ce journal {fault} ; lots attendus : {names} ; {advice}")


def declare_found(journal, batch_id):
    """--trouve : donne son identifiant au lot dont l'envoi a été interrompu ; lève `Arret`."""
    if UNKNOWN not in journal.batches:
        raise not_awaited(journal, "n'a pas d'envoi interrompu")
    check_batch(batch_id, journal.batches[UNKNOWN])
    name_batch(journal, batch_id)


def declare_lost(journal, batch_id):
    """--perdu : note que ce lot n'est plus attendu ; lève `Arret` s'il ne l'était pas."""
    if batch_id not in journal.batches:
        if UNKNOWN in journal.batches:
            fault = f"ce journal n'attend pas le lot {batch_id}, et un envoi y a été interrompu"
            raise Arret(f"{journal.path} : {fault}. {DOUBT}")
        raise not_awaited(journal, f"n'attend pas le lot {batch_id}")
    count = len(journal.batches[batch_id])
    tell(
        f"Le lot {batch_id} est déclaré perdu : ses requêtes ({count}) vont être envoyées de "
        "nouveau ; celles qu'il a déjà traitées seront payées deux fois."
    )
    keep(journal, {"collected": batch_id})


def command(argv):
    """La commande d'eval_cv.py, par lots, avec --trouve et --perdu ; rend le code de sortie."""
    parser = eval_cv.parser_for(argv)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--trouve")
    either.add_argument("--perdu")
    declared, others = parser.parse_known_args(argv)
    given = eval_cv.parse(others)
    if given["demo"]:
        raise Arret(f"--demo : {NO_DEMO}")
    if vars(declared):  # n'a que les options données : --trouve ou --perdu
        if "reprendre" not in given:
            raise Arret("--trouve et --perdu vont avec --reprendre JOURNAL, ajoutez-le")
        # `eval_cv.command` relira ce journal ; ici, un défaut du plan arrête tout avant l'écriture.
        journal, _ = eval_cv.open_journal(given, None)
        if "trouve" in declared:
            declare_found(journal, declared.trouve)
        else:
            declare_lost(journal, declared.perdu)
    return eval_cv.command(others, evaluate_journal=in_batches)


if __name__ == "__main__":
    os._exit(eval_cv.launch(command, __doc__))
