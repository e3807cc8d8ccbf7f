#!/usr/bin/env python3
"""Fait la même évaluation qu'eval_cv.py, par lots (API Message Batches).

    python outils/lots.py --cas mes_cas.json --passages 3

Moitié prix, mais en deux vagues (les résumés, puis les notations), de 24 heures au plus chacune.
Ordinateur éteint ? `lots.py --reprendre JOURNAL` retrouve les lots sans rien repayer.
"""

import json
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import eval_cv
from eval_cv import Arret, Impossible, as_message, complete_text, fault_of, notes_of, write

REQUESTS = 5_000  # par lot ; l'API en admet davantage, mais la mémoire compte


def ask(journal, queue, received, params, version, passage):
    """Prend la place d'`eval_cv.ask` : rend la réponse du journal, ou met la requête en attente."""
    key = eval_cv.call_key(params, version, passage)
    try:
        message = as_message(journal.get(key, {"cause": "rien encore"}))
        notes_of(message) if "output_config" in params else complete_text(message)
        return message
    except Impossible:
        if key in received:  # un lot vient de répondre ainsi : ne pas le redemander
            raise
    queue[key] = {"version": version, "pass": passage, "request": params}
    raise Impossible("en attente d'un lot")


def send(path, queue):
    """Envoie ce qui attend, une seule fois : un nouvel essai pourrait payer un second lot."""
    for start in range(0, len(queue), REQUESTS):
        sent = dict(list(queue.items())[start : start + REQUESTS])
        items = [{"custom_id": key, "params": record["request"]} for key, record in sent.items()]
        try:
            batches = eval_cv.client().with_options(max_retries=0).messages.batches
            write(path, {"batch": batches.create(requests=items).id, "requests": sent})
        except (Exception, KeyboardInterrupt) as error:
            refused = getattr(error, "status_code", 500) < 500
            if not refused and not isinstance(error, (ImportError, TypeError)):
                print("\nLot peut-être créé : vérifiez dans la console.", file=sys.stderr)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise Arret(f"envoi du lot : {fault_of(error)}") from None


def unfinished(path):
    """Les lots, {identifiant: requêtes}, dont le journal n'a pas encore les résultats."""
    sent = {}
    for line in Path(path).read_bytes().split(b"\n"):
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            record = json.loads(line)
            sent.pop(record.get("collected"), None)
            sent[record["batch"]] = record["requests"]
    return sent


def outcome(item):
    """Le message d'un résultat de lot, ou la cause de son absence."""
    result = getattr(item, "result", None)
    kind = getattr(result, "type", "invalide")
    if kind == "succeeded":
        return {"message": result.message}
    error = getattr(getattr(result, "error", None), "error", None)
    reason = str(getattr(error, "message", kind)).replace(eval_cv.KEY or "\0", "[clé]")
    known = {"expired": "le lot a expiré", "canceled": "le lot a été annulé"}
    return {"cause": known.get(kind, f"requête en erreur dans le lot : {reason:.200}")}


def collect(path, batch_id, requests, received):
    """Attend la fin d'un lot, de moins en moins souvent, et en écrit les résultats au journal."""
    batches, pause = eval_cv.client().messages.batches, 1
    try:
        while (batch := batches.retrieve(batch_id)).processing_status != "ended":
            print(f"Lot {batch_id} : {batch.request_counts.processing} en cours", file=sys.stderr)
            time.sleep(pause)
            pause = min(60, 2 * pause)
        items = list(batches.results(batch_id))  # dans le désordre
    except Exception as error:
        advice = "reprenez plus tard, ou retirez sa ligne du journal"
        raise Arret(f"lot {batch_id} : {advice} ; {fault_of(error)}") from None
    found = {getattr(item, "custom_id", None): outcome(item) for item in items}
    for key, record in requests.items():
        write(path, record | found.get(key, {"cause": "requête absente des résultats du lot"}))
        received.add(key)
    write(path, {"collected": batch_id})


def in_batches(journal):
    """Relance `run_versions` jusqu'à ce que rien n'attende ; rend ses résultats."""
    path, run, received = journal["path"], journal["settings"]["run"], set()
    if run["model"] == eval_cv.DEMO:
        raise Arret("une démonstration n'appelle pas de modèle, retirez --demo")
    for _ in range(4):  # les lots laissés en cours, les résumés, les notations, la lecture
        queue, known = {}, eval_cv.load_journal(path)
        results = eval_cv.run_versions(**run, ask=partial(ask, known, queue, received))
        if not queue:
            return results
        if not unfinished(path):
            send(path, queue)
        for batch_id, requests in unfinished(path).items():
            collect(path, batch_id, requests, received)
    raise Arret("des réponses manquent encore après les lots, reprenez le journal")


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    os._exit(eval_cv.main(partial(eval_cv.run, evaluate=in_batches)))
