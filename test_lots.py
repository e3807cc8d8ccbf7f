"""Les tests de deux outils : les lots, et la génération de cas. Le serveur et les gestes communs
sont ceux de test_eval_cv.py.

python3 -m unittest test_lots
"""

import io
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from test_eval_cv import (
    CASES,
    CRITERIA,
    GOOD,
    HERE,
    KEY,
    Terminal,
    WithApi,
    error,
    eval_cv,
    message,
)

sys.path.insert(0, str(HERE / "outils"))

import generer_cas
import lots


class Clock:
    """Une horloge où attendre ne prend pas de temps."""

    def __init__(self):
        self.now = 1000.0
        self.pauses = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def answer_once(handler, status, body):
    """Répond à une requête du serveur local, puis ferme la connexion."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("content-type", "text/html" if data is body else "application/json")
    handler.send_header("content-length", str(len(data)))
    handler.send_header("connection", "close")
    handler.end_headers()
    handler.wfile.write(data)
    handler.close_connection = True


PORTAL = b"<html>portail captif</html>"
CUT = "coupure"  # la connexion est fermée sans réponse


class WithBatches(WithApi):
    """`polls` et `results` sont les pannes à venir de l'état d'un lot et de ses résultats : un code
    HTTP, PORTAL ou CUT. `creation(requêtes)` peut rendre une panne pour l'envoi."""

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        clock = patch.object(lots, "time", self.clock)
        clock.start()
        self.addCleanup(clock.stop)
        self.polls = []
        self.results = []
        self.creation = lambda requests: None
        handler = self.api.server.RequestHandlerClass
        get = handler.do_GET
        post = handler.do_POST
        test = self

        def fail(handler, fault):
            if fault == CUT:
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
            elif fault == PORTAL:
                answer_once(handler, 200, PORTAL)
            else:
                answer_once(handler, fault, error("x", f"panne {KEY}"))

        def do_get(handler):
            faults = test.results if handler.path.endswith("/results") else test.polls
            if "/batches/" in handler.path and faults:
                fail(handler, faults.pop(0))
            else:
                get(handler)

        def do_post(handler):
            data = handler.rfile.read(int(handler.headers["content-length"]))
            requests = json.loads(data).get("requests")
            fault = requests and test.creation(requests)
            if fault:
                return fail(handler, fault)
            connection = handler.rfile
            handler.rfile = io.BytesIO(data)
            post(handler)
            handler.rfile = connection

        handler.do_GET = do_get
        handler.do_POST = do_post

    def lots(self, *arguments, code=0):
        folder = str(self.folder / "resultats")
        return self.main(lots.command, "--sortie", folder, *arguments, code=code)

    def lots_json(self, *arguments, code=0):
        return json.loads(self.lots("--json", *arguments, code=code)[0])

    def resume(self, *arguments, code=0):
        return self.lots("--reprendre", str(self.journal()), *arguments, code=code)

    def sizes(self):
        """Le nombre de requêtes de chaque lot que le serveur a reçu."""
        return [len(batch) for batch in self.api.batches.values()]


class Lots(WithBatches):
    """Mêmes validations, même journal, même bilan qu'eval_cv.py."""

    def test_le_bilan_est_celui_d_eval_cv(self):
        alone = self.json("--passages", "2")
        found = self.lots_json("--passages", "2")
        for same in ("versions", "comparisons", "usage", "models"):
            self.assertEqual(found[same], alone[same])

    def test_un_lot_de_resumes_puis_un_lot_de_notations(self):
        self.lots()
        summaries, gradings = self.api.batches.values()
        self.assertEqual(self.sizes(), [18, 18])
        for item in summaries:
            self.assertNotIn("output_config", item["params"])
        for item in gradings:
            self.assertIn("output_config", item["params"])

    def test_les_requetes_sont_celles_d_eval_cv(self):
        self.script("--passages", "1")
        direct = self.api.requests.copy()
        self.lots("--passages", "1")
        sent = [item["params"] for batch in self.api.batches.values() for item in batch]
        order = {"key": lambda params: json.dumps(params, sort_keys=True)}
        self.assertEqual(sorted(sent, **order), sorted(direct, **order))

    def test_les_identifiants_des_requetes_sont_ceux_que_l_api_admet(self):
        self.lots("--passages", "1")
        for batch in self.api.batches.values():
            names = {item["custom_id"] for item in batch}
            self.assertEqual(len(names), 6)
            for name in names:
                self.assertRegex(name, "^[a-zA-Z0-9_-]{1,64}$")

    def test_les_resultats_se_rangent_quel_que_soit_leur_ordre(self):
        # Le résumé reprend le nom du CV, la note en découle : tout serait faux si l'ordre comptait.
        marks = {"Sophie": 9, "Ahmed": 5, "Marie": 2}

        def name(text):
            return next(name for name in marks if name in text)

        def grade(text):
            mark = marks[name(text.partition("<resume>")[2])]
            return message(json.dumps({**GOOD, **dict.fromkeys(CRITERIA, mark)}))

        self.api.summary = lambda text: message(name(text.partition("<cv>")[2]))
        self.api.grade = grade
        comparison = self.lots_json("--passages", "1")["comparisons"]["V2"]
        self.assertEqual(comparison["by_case"], [[9.0, 9.0], [5.0, 5.0], [2.0, 2.0]])

    def fail_v1(self, *kinds):
        """Les trois résumés de V1 manquent, chacun à sa façon."""
        failures = iter(kinds)

        def kind(item):
            content = item["params"]["messages"][0]["content"]
            of_v1 = content.startswith(eval_cv.PROMPT_V1)
            return next(failures, "succeeded") if of_v1 else "succeeded"

        self.api.batch_result = kind

    def test_une_requete_en_erreur_expiree_ou_annulee_est_une_cause(self):
        self.fail_v1("errored", "expired", "canceled")
        found = self.lots_json("--passages", "1", code=1)["versions"]  # V1 n'a aucune note
        self.assertEqual(
            found["V1"]["impossible"],
            {
                "résumé : requête en erreur dans le lot : « bad-request [clé] »": 1,
                "résumé : le lot a expiré": 1,
                "résumé : le lot a été annulé": 1,
            },
        )
        self.assertEqual(self.sizes(), [6, 3])
        self.assertNotIn(KEY, self.journal().read_text("utf-8"))

    def test_une_requete_absente_des_resultats_est_une_cause(self):
        self.fail_v1("missing")
        found = self.lots_json("--passages", "1")["versions"]
        cause = "résumé : requête absente des résultats du lot"
        self.assertEqual(found["V1"]["impossible"], {cause: 1})
        self.assertEqual(self.sizes(), [6, 5])

    def test_un_resultat_mal_forme_ne_coute_que_lui_meme(self):
        for kind in ("errored_flat", "unknown"):
            self.fail_v1(kind)
            found = self.lots_json("--passages", "1")["versions"]
            self.assertEqual((found["V1"]["graded"], found["V2"]["graded"]), (2, 3))
            cause = "résumé : requête en erreur dans le lot"
            self.assertEqual(found["V1"]["impossible"], {cause: 1})

    def test_un_resultat_sans_forme_ne_coute_que_lui_meme(self):
        item = self.api.item
        misshapen = {"custom_id": ["a"], "result": None}
        for shape in (7, {}, misshapen, {"result": {"type": "succeeded"}}):
            shapes = iter([shape])
            self.api.item = lambda request, shapes=shapes: next(shapes, item(request))
            found = self.lots_json("--passages", "1")["versions"]
            self.assertEqual(found["V1"]["graded"] + found["V2"]["graded"], 5, shape)

    def test_un_resultat_sans_message_n_est_pas_une_note(self):
        item = self.api.item

        def without_message(request):
            result = {"type": "succeeded"}
            grading = "output_config" in request["params"]
            return {**item(request), "result": result} if grading else item(request)

        self.api.item = without_message
        found = self.lots_json("--passages", "1", code=1)["versions"]
        cause = "notation : la réponse n'est ni un texte, ni un message de l'API"
        self.assertEqual(found["V1"]["impossible"], {cause: 3})

    def test_une_reponse_inutilisable_n_est_payee_qu_une_fois_par_execution(self):
        self.api.grade = lambda text: message("cassé")
        found = self.lots_json("--passages", "1", code=1)
        self.assertEqual(
            found["versions"]["V1"]["impossible"],
            {"notation : JSON illisible, ou entouré d'un autre texte": 3},
        )
        self.assertEqual(self.sizes(), [6, 6])
        self.assertEqual(found["usage"]["input_tokens"], 1200)

    def test_la_reprise_ne_redemande_que_ce_qui_manque(self):
        self.api.grade = lambda text: message("cassé")
        self.lots("--passages", "1", code=1)
        self.api.grade = lambda text: message(json.dumps(GOOD))
        self.assertIn("V1 : 7.67/10", self.resume()[0])
        self.assertEqual(self.sizes(), [6, 6, 6])
        self.resume()
        self.assertEqual(self.sizes(), [6, 6, 6])

    def test_eval_cv_complete_un_journal_dont_les_lots_sont_finis(self):
        self.fail_v1("errored", "expired", "canceled")
        self.lots("--passages", "1", code=1)
        again = self.json("--reprendre", str(self.journal()))["versions"]
        self.assertEqual([version["graded"] for version in again.values()], [3, 3])

    def test_un_lot_a_1000_requetes_au_plus(self):
        self.api.batch_result = lambda item: "expired"
        cases = [{"input": f"CV n° {n}", "expected_focus": "x"} for n in range(1001)]
        prompt = self.file("p.txt", "Résume.")
        options = ("--cas", self.cases(cases), "--prompts", prompt, "--passages", "1")
        self.lots(*options, code=1)
        self.assertEqual(self.sizes(), [1000, 1])

    def test_une_vague_de_plusieurs_lots_est_recueillie_en_entier(self):
        with patch.object(lots, "REQUESTS", 4):
            found = self.lots_json("--passages", "1")["versions"]
        self.assertEqual(self.sizes(), [4, 2, 4, 2])
        self.assertEqual([version["graded"] for version in found.values()], [3, 3])

    def test_une_demonstration_est_refusee_avant_de_creer_un_journal(self):
        err = self.lots("--demo", code=2)[1]
        self.assertIn("--demo : une démonstration n'appelle aucun modèle", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_le_journal_d_une_demonstration_est_refuse(self):
        self.script("--demo", "--limite", "1")
        self.assertIn("faites-la avec eval_cv.py", self.resume(code=2)[1])
        self.assertEqual(self.sizes(), [])

    def test_au_terminal_pas_de_compteur_que_rien_ne_ferait_avancer(self):
        arguments = ["--sortie", str(self.folder / "resultats"), "--passages", "1"]
        with redirect_stdout(io.StringIO()), redirect_stderr(Terminal()) as err:
            lots.command(arguments)
        self.assertIn("Appels à faire : 12 ; réponses déjà au journal : 0\n", err.getvalue())
        self.assertNotIn("manquante", err.getvalue())

    def test_l_aide_est_en_francais_et_explique_ses_options(self):
        process = self.process("--help", script="outils/lots.py")
        out = self.ended(process)[0]
        self.assertTrue(out.startswith("Fait par lots (API Message Batches), à moitié prix"), out)
        for option in ("--reprendre", "--trouve LOT", "--perdu LOT", "--demo"):
            self.assertIn(option, out)


class Reprise(WithBatches):
    """Rien n'est payé deux fois, où que l'on coupe."""

    def stop(self, *options):
        """Laisse un journal dont un lot, celui des résumés, est en cours."""
        self.polls.append(401)
        self.lots("--passages", "1", *options, code=2)

    def test_tue_pendant_l_attente_il_retrouve_son_lot(self):
        self.api.polls_before_end = 10**9
        process = self.process("--passages", "1", script="outils/lots.py")
        for line in process.stderr:
            if b"en cours" in line:
                break
        self.assertIn("Lot msgbatch_0 : requêtes en cours : 6", line.decode())
        process.kill()
        process.communicate()
        self.assertNotEqual(process.returncode, 0)  # tué, et non fini
        self.api.polls_before_end = 1
        self.assertIn("V1 : 7.67/10", self.resume()[0])
        self.assertEqual(self.sizes(), [6, 6])

    def test_interrompu_pendant_l_attente_il_dit_comment_reprendre(self):
        def ctrl_c(seconds):
            raise KeyboardInterrupt

        self.clock.sleep = ctrl_c
        self.api.polls_before_end = 10**9
        with patch.object(sys, "argv", ["outils/lots.py"]):
            err = self.lots("--passages", "1", code=130)[1]
        self.assertIn(f'"outils/lots.py" --reprendre "{self.journal()}"', err)
        self.assertIn("lots.py : interrompu", err)
        self.assertNotIn("peut-être", err)

    def test_eval_cv_ne_reprend_pas_un_journal_dont_un_lot_est_en_cours(self):
        self.stop()
        err = self.script("--reprendre", str(self.journal()), code=2)[1]
        self.assertIn(
            "attend les résultats d'un lot (msgbatch_0) ; reprenez-le avec outils/lots.py", err
        )
        self.assertIn("outils/lots.py --reprendre", err)
        self.assertEqual(self.api.requests, [])

    def test_coupe_apres_les_resumes_il_ne_demande_que_les_notations(self):
        self.lots("--passages", "1")
        path = self.journal()
        first, summaries = path.read_bytes().split(b'{"collected": "msgbatch_0"}')
        path.write_bytes(first + b'{"collected": "msgbatch_0"}')
        self.resume()
        self.assertEqual(self.sizes(), [6, 6, 6])
        for item in self.api.batches["msgbatch_2"]:
            self.assertIn("output_config", item["params"])

    def test_coupe_pendant_l_ecriture_des_resultats(self):
        whole = self.lots("--passages", "1")[0]
        path = self.journal()
        lines = path.read_bytes().split(b"\n")
        place = next(i for i, line in enumerate(lines) if b'"collected": "msgbatch_0"' in line)
        path.write_bytes(b"\n".join(lines[: place - 2])[:-30])  # quatre réponses, dont une coupée
        self.assertEqual(self.resume()[0], whole)  # les tokens aussi : rien n'est compté deux fois
        self.assertEqual(self.sizes(), [6, 6, 6])
        for item in self.api.batches["msgbatch_2"]:
            self.assertIn("output_config", item["params"])

    def test_un_resultat_dont_on_n_a_plus_besoin_est_garde(self):
        self.stop("--passages", "2")
        self.resume("--passages", "1")
        self.resume("--passages", "2")
        self.assertEqual(self.sizes(), [12, 6, 6])  # aucun résumé n'est repayé

    def test_un_journal_de_la_version_precedente_se_reprend(self):
        self.stop()
        old = []
        for record in self.records():
            if "inconnu" in (record.get("batch"), record.get("collected")):
                continue
            for name in ("names", "limite"):
                record.get("run", {}).pop(name, None)
            old.append(json.dumps(record, ensure_ascii=False))
        self.journal().write_text("\n".join(old), encoding="utf-8")
        self.assertEqual([*json.loads(old[1])], ["batch", "requests"])
        self.resume()
        self.assertEqual(self.sizes(), [6, 6])


class Attente(WithBatches):
    """Pendant une heure, une panne veut dire « pas encore »."""

    def assert_waits(self, faults, expected, where):
        for fault in faults:
            where.append(fault)
        out, err = self.lots("--passages", "1")
        self.assertIn("V1 : 7.67/10", out)
        self.assertEqual(self.sizes(), [6, 6])
        self.assertEqual(where, [])
        for line in expected:
            self.assertIn(f"Lot msgbatch_0 : {line}", err)
        self.assertNotIn(KEY, err)
        return err

    FAULTS = [404, 503, 429, 529, 500, CUT, PORTAL]
    LINES = [
        "HTTP 404, lot inconnu à cette adresse ; est-il dans la console d'Anthropic ?\n",
        "échec de l'appel, HTTP 503 : « panne [clé] »\n",
        "échec de l'appel, HTTP 429 : « panne [clé] »\n",
        "échec de l'appel, HTTP 529 : « panne [clé] »\n",
        "échec de l'appel, HTTP 500 : « panne [clé] »\n",
        "échec de l'appel, ",
        "la réponse ne vient pas de l'API\n",
    ]

    def test_une_panne_de_l_etat_du_lot(self):
        err = self.assert_waits(self.FAULTS, self.LINES, self.polls)
        for false in ("ANTHROPIC_BASE_URL", "--modele", "--juge"):
            self.assertNotIn(false, err)

    def test_une_panne_des_resultats(self):
        faults = [fault for fault in self.FAULTS if fault != PORTAL]
        self.assert_waits(faults, self.LINES[:-1], self.results)

    def test_les_pauses_doublent_jusqu_a_une_minute(self):
        self.api.polls_before_end = 10
        self.lots("--passages", "1", "--prompts", self.file("p.txt", "Résume."))
        self.assertEqual(self.clock.pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60])

    def test_une_panne_n_interrompt_pas_la_progression_des_pauses(self):
        self.polls += [503, 404, CUT]
        self.lots("--passages", "1")
        self.assertEqual(self.clock.pauses, [1, 2, 4])

    def test_un_lot_qui_dure_des_heures_est_attendu(self):
        self.api.polls_before_end = 200
        self.lots("--passages", "1")
        self.assertGreater(self.clock.now - 1000, 3 * 3600)

    def test_apres_une_heure_de_pannes_il_s_arrete_sans_rien_dire_de_faux(self):
        self.polls += [503] * 100
        err = self.lots("--passages", "1", code=2)[1]
        waited = self.clock.now - 1000
        self.assertTrue(3600 <= waited < 3660, waited)
        sentence = (
            "lot msgbatch_0 : aucune réponse utilisable depuis 60 minutes (échec de l'appel, "
            "HTTP 503 : « panne [clé] »). Ce lot n'est sans doute pas perdu, reprenez plus tard. "
            "S'il n'est plus dans la console d'Anthropic, ou si ses résultats ont expiré, reprenez "
            "avec --perdu msgbatch_0 : ses requêtes seront envoyées et payées de nouveau."
        )
        self.assertIn(sentence, err)
        for false in ("ANTHROPIC_BASE_URL", "--modele", "--juge", "sa ligne", "peut-être créé"):
            self.assertNotIn(false, err)
        self.polls.clear()
        self.resume()
        self.assertEqual(self.sizes(), [6, 6])

    def test_des_resultats_introuvables_pendant_une_heure_l_arretent_aussi(self):
        self.results += [404] * 200  # l'état du lot, lui, se lit toujours
        err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("depuis 60 minutes (HTTP 404, lot inconnu à cette adresse ;", err)

    def test_une_bonne_reponse_rend_sa_patience_a_l_attente(self):
        self.api.polls_before_end = 100
        batch = self.api.batch

        def one_in_two(number, ended):
            if not ended:
                self.polls.append(503)  # la réponse suivante
            return batch(number, ended)

        self.api.batch = one_in_two
        self.lots("--passages", "1")
        self.assertGreater(self.clock.now - 1000, 2 * 3600)

    def test_une_cle_refusee_arrete_tout_de_suite(self):
        for status, advice in [(401, "clé refusée"), (403, "la clé n'a pas le droit")]:
            self.polls += [status]
            err = self.lots("--passages", "1", code=2)[1]
            self.assertIn(f"{advice}", err)
            self.assertIn(f"(HTTP {status} : « panne [clé] »)", err)
            self.assertNotIn("--perdu", err)
        self.assertEqual(self.clock.pauses, [])


class Envoi(WithBatches):
    """Un lot se crée en un seul essai, et l'on sait toujours s'il a pu l'être."""

    DOUBT = (
        "Un lot a peut-être été créé. Cherchez-le dans la console d'Anthropic, parmi les derniers "
        ": s'il y est, ajoutez à la commande de reprise --trouve et son identifiant, et rien ne "
        "sera repayé ; s'il n'y est pas, ajoutez à cette commande --perdu inconnu."
    )

    def test_une_coupure_apres_l_envoi_laisse_un_doute(self):
        self.api.lose_creations = 1
        err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("envoi d'un lot : échec de l'appel, ", err)
        self.assertIn(self.DOUBT, err)
        self.assertEqual(self.sizes(), [6])

    def test_une_panne_du_serveur_laisse_un_doute(self):
        for fault in (500, 503, 529, PORTAL, CUT):
            self.creation = lambda requests, fault=fault: fault
            err = self.lots("--passages", "1", code=2)[1]
            self.assertIn(self.DOUBT, err, fault)
            self.assertNotIn(KEY, err)

    def test_une_reponse_qui_n_est_pas_un_lot_laisse_un_doute(self):
        self.creation = lambda requests: PORTAL
        err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("envoi d'un lot : la réponse ne vient pas de l'API. Un lot a peut-être", err)

    def test_un_refus_ne_laisse_pas_de_doute(self):
        tries = []
        for status in (400, 401, 404, 429):
            self.creation = lambda requests, status=status: tries.append(status) or status
            err = self.lots("--passages", "1", code=2)[1]
            self.assertIn(f"HTTP {status} : « panne [clé] »", err)
            self.assertIn("Ce lot n'a pas été créé.", err)
            self.assertNotIn("peut-être", err)
        self.assertEqual(tries, [400, 401, 404, 429])  # un seul essai chacun

    def test_apres_un_refus_la_reprise_envoie_le_lot(self):
        self.creation = lambda requests: 429
        self.lots("--passages", "1", code=2)
        self.creation = lambda requests: None
        self.resume()
        self.assertEqual(self.sizes(), [6, 6])

    def test_une_erreur_d_avant_l_envoi_ne_laisse_pas_de_doute(self):
        handler = self.api.server.RequestHandlerClass

        def last_answer(request):
            self.api.server.shutdown()
            self.api.server.socket.close()
            answer_once(request, 404, error("x", "y"))

        handler.do_GET = last_answer  # la vérification de l'accès, puis plus rien
        err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("envoi d'un lot : échec de l'appel, connexion refusée", err)
        self.assertIn("Ce lot n'a pas été créé.", err)
        self.assertNotIn("peut-être", err)

    def test_seules_les_erreurs_d_avant_l_envoi_ecartent_le_doute(self):
        import anthropic

        http = anthropic._base_client
        http = getattr(http, "httpx", None) or http.httpx2
        request = http.Request("POST", "http://x")

        def wrapped(cause):
            fault = anthropic.APIConnectionError(request=request)
            fault.__cause__ = cause
            return fault

        for name in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"):
            self.assertFalse(lots.may_be_created(wrapped(getattr(http, name)(""))), name)
        for name in ("UnsupportedProtocol", "LocalProtocolError"):
            self.assertFalse(lots.may_be_created(wrapped(getattr(http, name)(""))), name)
        for name in ("ReadTimeout", "WriteTimeout", "ReadError", "WriteError"):
            self.assertTrue(lots.may_be_created(wrapped(getattr(http, name)(""))), name)
        self.assertTrue(lots.may_be_created(wrapped(http.RemoteProtocolError(""))))
        self.assertFalse(lots.may_be_created(TypeError("authentication method")))
        self.assertFalse(lots.may_be_created(UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "x")))

    def test_sans_cle_ni_journal_ni_lot(self):
        with patch.dict(os.environ, {"ANTHROPIC_API_KEY": ""}):
            err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("la clé manque", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    @unittest.skipIf(os.name == "nt", "SIGINT n'y est pas un Ctrl-C")
    def test_interrompu_pendant_l_envoi_il_dit_le_doute(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def ctrl_c(requests):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            over.wait(30)

        self.creation = ctrl_c
        with patch.object(sys, "argv", ["outils/lots.py"]):
            err = self.lots("--passages", "1", code=130)[1]
        self.assertIn(self.DOUBT, err)
        self.assertIn("lots.py : interrompu", err)

    def test_tue_pendant_l_envoi_la_reprise_ne_paie_rien_avant_qu_on_ait_verifie(self):
        received = threading.Event()
        over = threading.Event()
        self.addCleanup(over.set)

        def wait(requests):
            self.api.batches["msgbatch_0"] = requests
            received.set()
            over.wait(30)

        self.creation = wait
        process = self.process("--passages", "1", script="outils/lots.py")
        self.assertTrue(received.wait(30))
        self.creation = lambda requests: None
        process.kill()
        process.communicate()
        err = self.resume(code=2)[1]
        self.assertIn(f"{self.journal()} : un envoi a été interrompu. {self.DOUBT}", err)
        self.assertEqual(self.sizes(), [6])
        self.script("--reprendre", str(self.journal()), code=2)
        self.assertEqual(self.api.requests, [])

    def test_un_lot_trouve_dans_la_console_n_est_pas_repaye(self):
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        self.assertIn("V1 : 7.67/10", self.resume("--trouve", "msgbatch_0")[0])
        self.assertEqual(self.sizes(), [6, 6])
        self.resume()
        self.assertEqual(self.sizes(), [6, 6])

    def test_un_lot_qui_n_est_pas_dans_la_console_est_envoye_de_nouveau(self):
        self.creation = lambda requests: 500
        self.lots("--passages", "1", code=2)
        self.creation = lambda requests: None
        self.assertIn("V1 : 7.67/10", self.resume("--perdu", "inconnu")[0])
        self.assertEqual(self.sizes(), [6, 6])

    def test_un_lot_perdu_est_redemande_apres_l_avoir_dit(self):
        self.polls += [404] * 100
        self.lots("--passages", "1", code=2)
        self.polls.clear()
        self.api.batches["msgbatch_0"] = []
        out, err = self.resume("--perdu", "msgbatch_0")
        self.assertIn("V1 : 7.67/10", out)
        self.assertIn(
            "Le lot msgbatch_0 est déclaré perdu : ses requêtes (6) vont être envoyées de "
            "nouveau ; celles qu'il a déjà traitées seront payées deux fois.",
            err,
        )
        self.assertEqual(self.sizes(), [0, 6, 6])
        self.assertIn({"collected": "msgbatch_0"}, self.records())

    def test_on_ne_declare_que_ce_que_le_journal_attend(self):
        self.lots("--passages", "1")
        before = self.journal().read_bytes()
        path = self.journal()
        none = "lots attendus : aucun ; corrigez l'identifiant, "
        none += "ou reprenez le journal sans --trouve ni"
        for declared, expected in [
            (["--perdu", "msgbatch_7"], f"n'attend pas le lot msgbatch_7 ; {none}"),
            (["--trouve", "msgbatch_7"], f"n'a pas d'envoi interrompu ; {none}"),
        ]:
            self.assertIn(f"{path} : ce journal {expected}", self.resume(*declared, code=2)[1])
        self.assertEqual(path.read_bytes(), before)

    def test_un_autre_lot_que_celui_attendu_est_nomme(self):
        self.polls += [401]
        self.lots("--passages", "1", code=2)
        err = self.resume("--perdu", "msgbatch_9", code=2)[1]
        self.assertIn("n'attend pas le lot msgbatch_9 ; lots attendus : msgbatch_0 ; corrigez", err)

    def test_un_envoi_interrompu_n_a_pas_encore_d_identifiant_a_perdre(self):
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        err = self.resume("--perdu", "msgbatch_0", code=2)[1]
        said = "ce journal n'attend pas le lot msgbatch_0, et un envoi y a été interrompu"
        self.assertIn(f"{said}. {self.DOUBT}", err)

    def test_un_lot_trouve_doit_exister(self):
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        before = self.journal().read_bytes()
        for fault, said in [
            (None, "l'API ne connaît pas ce lot, recopiez son identifiant"),
            (401, "clé refusée, vérifiez ANTHROPIC_API_KEY"),
            (PORTAL, "la réponse ne vient pas de l'API"),
        ]:
            self.polls = [fault] if fault else []
            err = self.resume("--trouve", "msgbatch_9", code=2)[1]
            self.assertIn(f"--trouve msgbatch_9 : {said}", err)
            self.assertIn("Le journal n'a pas changé.", err)
        self.assertEqual(self.journal().read_bytes(), before)
        self.assertIn("V1 : 7.67/10", self.resume("--trouve", "msgbatch_0")[0])

    def test_un_lot_trouve_est_bien_celui_dont_on_doute(self):
        # L'envoi interrompu est celui des notations : le lot des résumés n'est pas le bon.
        def creation(requests):
            self.api.lose_creations = "output_config" in requests[0]["params"]

        self.creation = creation
        self.lots("--passages", "1", code=2)
        before = self.journal().read_bytes()
        err = self.resume("--trouve", "msgbatch_0", code=2)[1]
        self.assertIn("--trouve msgbatch_0 : ce n'est pas le lot de l'envoi interrompu", err)
        self.assertEqual(self.journal().read_bytes(), before)
        self.assertIn("V1 : 7.67/10", self.resume("--trouve", "msgbatch_1")[0])
        self.assertEqual(self.sizes(), [6, 6])

    def test_un_lot_qui_a_une_requete_de_plus_n_est_pas_le_bon(self):
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        before = self.journal().read_bytes()
        batch = self.api.batches["msgbatch_0"]
        batch.append({**batch[0], "custom_id": "autre"})
        err = self.resume("--trouve", "msgbatch_0", code=2)[1]
        self.assertIn("--trouve msgbatch_0 : ce n'est pas le lot de l'envoi interrompu", err)
        self.assertEqual(self.journal().read_bytes(), before)

    def test_rien_n_est_declare_si_le_reste_de_la_commande_est_incorrect(self):
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        before = self.journal().read_bytes()
        self.resume("--perdu", "inconnu", "--cas", str(self.folder / "absent"), code=2)
        self.assertEqual(self.journal().read_bytes(), before)

    def test_un_identifiant_vide_ne_declare_rien(self):
        # Une variable vide du terminal ne doit pas faire perdre le lot dont on doute.
        self.api.lose_creations = 1
        self.lots("--passages", "1", code=2)
        before = self.journal().read_bytes()
        for option in ("--trouve", "--perdu"):
            err = self.resume(option, "", code=2)[1]
            self.assertIn(
                "un argument est vide, peut-être parce qu'une variable n'est pas définie", err
            )
        self.assertEqual(self.journal().read_bytes(), before)

    def test_trouve_et_perdu_veulent_un_journal(self):
        for option in ("--trouve", "--perdu"):
            err = self.lots(option, "msgbatch_0", code=2)[1]
            self.assertIn("--trouve et --perdu vont avec --reprendre JOURNAL", err)
            self.assertIn(
                f"car il manque la valeur de {option} ; voyez",
                self.main(lots.command, option, code=2)[1],
            )
        both = ("--trouve", "a", "--perdu", "b")
        self.assertIn(
            "est refusée, car une option ou une valeur est de trop",
            self.main(lots.command, *both, code=2)[1],
        )
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_un_lot_trop_gros_est_coupe_en_deux_sans_rien_payer_deux_fois(self):
        self.creation = lambda requests: 413 if len(requests) > 2 else None
        out, err = self.lots("--passages", "1")
        self.assertIn("V1 : 7.67/10", out)
        # 6 refusées, 3 refusées, puis 1 à la fois ; et de même pour les notations.
        self.assertEqual(self.sizes(), [1] * 12)
        for large, small in [(6, 3), (3, 1)]:
            self.assertIn(
                f"Un lot de {large} requêtes est trop gros pour l'API (HTTP 413) : il n'a pas été "
                f"créé ; nouvel essai par lots de {small}.\n",
                err,
            )
        self.assertNotIn("peut-être", err)

    def test_une_requete_trop_grosse_a_elle_seule_ne_coute_qu_elle(self):
        cases = [{"input": f"CV n° {n} " + "a" * n, "expected_focus": "x"} for n in (1, 9000)]
        self.creation = lambda requests: 413 if len(json.dumps(requests)) > 9000 else None
        options = ("--passages", "1", "--cas", self.cases(cases))
        found = self.lots_json(*options)["versions"]
        cause = "résumé : requête trop grosse pour l'API (HTTP 413)"
        for version in found.values():
            self.assertEqual((version["graded"], version["impossible"]), (1, {cause: 1}))
        sent = [item["custom_id"] for batch in self.api.batches.values() for item in batch]
        self.assertEqual((len(sent), len(set(sent))), (4, 4))


class GenererCas(WithApi):
    def setUp(self):
        super().setUp()
        numbers = itertools.count()
        self.api.grade = lambda text: self.case(input=f"CV - n° {next(numbers)}")
        self.path = self.folder / "nouveau.json"

    def case(self, **changes):
        return message(json.dumps({"input": "CV - Léa", "expected_focus": "x", **changes}))

    def generate(self, *arguments, code=0):
        return self.main(generer_cas.command, *map(str, arguments), code=code)

    def written(self):
        return json.loads(self.path.read_text(encoding="utf-8"))

    def test_complete_un_fichier_et_garde_ce_qui_y_etait(self):
        self.path = Path(self.cases([{**CASES[0], "source": "à moi", "note": "\ud83d"}]))
        out, _ = self.generate("3", self.path)
        cases = self.written()
        self.assertEqual(cases[0], {**CASES[0], "source": "à moi", "note": "\ud83d"})
        new = {f"CV - n° {n}" for n in range(3)}
        self.assertEqual({case["input"] for case in cases[1:]}, new)
        path = self.path.resolve()
        command = f'"{sys.executable}" "{eval_cv.__file__}" --cas "{path}"'
        advice = f"Relisez les cas ajoutés, qui sont des brouillons, puis évaluez-les : {command}"
        self.assertEqual(out, f"{path} : 3 cas de plus.\n{advice}\n")

    def test_cree_un_fichier_qu_on_lit_a_l_oeil(self):
        self.api.grade = lambda text: self.case(input="CV - Léa\nPoste : élève")
        self.generate("1", self.path)
        self.assertEqual(
            self.path.read_text(encoding="utf-8"),
            '[\n  {\n    "input": "CV - Léa\\nPoste : élève",\n    "expected_focus": "x"\n  }\n]\n',
        )
        self.assertEqual(os.listdir(self.folder), ["nouveau.json"])

    def test_la_requete_dit_le_modele_le_prompt_et_le_schema(self):
        self.generate("1", self.path)
        [sent] = self.api.requests
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}, "expected_focus": {"type": "string"}},
            "required": ["input", "expected_focus"],
            "additionalProperties": False,
        }
        self.assertEqual(sent["model"], "claude-sonnet-5-5")
        self.assertEqual(sent["max_tokens"], 4096)
        output = {"format": {"type": "json_schema", "schema": schema}}
        self.assertEqual(sent["output_config"], output)
        [asked] = sent["messages"]
        self.assertEqual(asked["role"], "user")
        self.assertIn("(domaine : santé ; situation : premier emploi)", asked["content"])
        self.assertIn("Donne une ou deux réalisations chiffrées.", asked["content"])
        self.assertNotRegex(asked["content"], "[{}]")
        self.assertEqual(sorted(sent), ["max_tokens", "messages", "model", "output_config"])

    def test_un_autre_modele(self):
        self.generate("1", self.path, "--modele", "autre")
        self.assertEqual(self.api.requests[0]["model"], "autre")

    def test_tous_les_profils_se_croisent_et_la_moitie_est_sans_chiffre(self):
        self.generate("90", self.path)
        asked = [sent["messages"][0]["content"] for sent in self.api.requests]
        self.assertEqual(len(set(asked)), 90)  # 9 domaines, 5 situations, 2 consignes
        domains = {text.partition("domaine : ")[2].partition(" ;")[0] for text in asked}
        expected = "santé bâtiment comptabilité logiciel école vente droit cuisine art"
        self.assertEqual(domains, set(expected.split()))
        self.assertEqual(sum("Aucune réalisation ne doit" in text for text in asked), 45)

    def test_les_profils_continuent_apres_ceux_du_fichier(self):
        self.path = Path(self.cases(CASES))  # trois cas : les profils 0, 1 et 2
        self.generate("1", self.path)
        [sent] = self.api.requests
        content = sent["messages"][0]["content"]
        self.assertIn("(domaine : logiciel ; situation : sans emploi)", content)
        self.assertIn("Aucune réalisation", content)

    def outputs(self, *answers, code=0):
        """Ce que l'outil affiche quand le modèle répond ainsi."""
        left = iter(answers)
        self.api.grade = lambda text: next(left)
        return self.generate(len(answers), self.path, code=code)[0]

    def test_un_cas_deja_present_n_est_pas_ajoute(self):
        again = self.case(input=" CV -  Léa\n")  # des espaces de plus ne font pas un autre CV
        out = self.outputs(self.case(), again, self.case())
        self.assertIn(" : 1 cas de plus.\n  2 × cas déjà présent\n", out)
        self.assertEqual(len(self.written()), 1)

    def test_une_reponse_inutilisable_ne_coute_que_ce_cas(self):
        for answer, cause in [
            (message("pas du JSON"), "JSON illisible, ou entouré d'un autre texte"),
            (message('["a",' * 100_000), "JSON illisible, ou entouré d'un autre texte"),
            (message("[1]"), "JSON sans les clés demandées, ou avec d'autres"),
            (message('{"input": "CV"}'), "JSON sans les clés demandées, ou avec d'autres"),
            (self.case(autre="x"), "JSON sans les clés demandées, ou avec d'autres"),
            (self.case(input=" …"), "« input » vide"),
            (self.case(expected_focus=3), "« expected_focus » vide"),
            (self.case(input="CV \ud83d"), "« input » illisible, un emoji y est coupé en deux"),
            (
                message("{", "max_tokens"),
                "réponse tronquée à MAX_TOKENS (4096), réflexion comprise",
            ),
            (message("", "refusal"), "le modèle a refusé de répondre"),
        ]:
            self.path.unlink(missing_ok=True)
            out = self.outputs(answer, self.case())
            self.assertIn(f" : 1 cas de plus.\n  1 × {cause}\n", out)
            self.assertEqual([case["input"] for case in self.written()], ["CV - Léa"])

    def test_une_erreur_d_un_appel_ne_coute_que_ce_cas(self):
        bad = (400, error("invalid_request_error", "non"))
        out = self.outputs(bad, self.case())
        self.assertIn(" : 1 cas de plus.\n  1 × échec de l'appel, HTTP 400 : « non »\n", out)

    def test_rien_d_utilisable_donne_le_code_1(self):
        refusal = message("", "refusal")
        out = self.outputs(refusal, refusal, code=1)
        expected = f"{self.path.resolve()} : 0 cas de plus.\n  2 × le modèle a refusé de répondre\n"
        expected += "Pour avoir ceux qui manquent, relancez la commande avec leur nombre.\n"
        self.assertEqual(out, expected)
        self.assertFalse(self.path.exists())

    def test_une_erreur_qui_condamne_tout_garde_ce_qui_arrive_et_ne_demande_rien_de_plus(self):
        refused = threading.Event()
        numbers = itertools.count()

        def grade(text):
            number = next(numbers)
            if number < 2:  # le second appel est parti quand le troisième est refusé
                refused.wait(30)
                time.sleep(0.2)  # le temps que le refus soit lu le premier
                return self.case(input=f"CV n° {number}")
            refused.set()
            return 401, error("authentication_error", f"invalide {KEY}")

        self.api.grade = grade
        with patch.object(generer_cas, "PARALLEL", 3):
            out, err = self.generate("300", self.path, code=2)
        self.assertIn(" : 2 cas de plus.\n", out)
        sentence = "clé refusée, vérifiez ANTHROPIC_API_KEY (HTTP 401 : « invalide [clé] »)"
        self.assertIn(sentence, err)
        self.assertEqual(len(self.written()), 2)
        self.assertLess(len(self.api.requests), 150)

    def test_une_erreur_de_programmation_ne_fait_pas_payer_la_suite(self):
        schema = {key: generer_cas.SCHEMA_CASE[key] for key in ("type", "properties")}
        changes = {"SCHEMA_CASE": schema, "PARALLEL": 1}  # qui l'adapte a oublié « required »
        with patch.multiple(generer_cas, **changes), self.assertRaises(KeyError):
            self.generate("300", self.path)
        for thread in threading.enumerate():
            if thread.name.startswith("ThreadPoolExecutor"):
                thread.join(30)
        self.assertLess(len(self.api.requests), 150)

    def tool(self, *arguments, **changes):
        """Démarre l'outil comme on le fait d'un terminal."""
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **changes}
        environment.pop("PYTHONUNBUFFERED", None)
        command = [sys.executable, str(HERE / "outils" / "generer_cas.py"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=environment, **pipes)

    @unittest.skipIf(os.name == "nt", "SIGINT n'y est pas un Ctrl-C")
    def test_interrompu_il_dit_combien_de_cas_il_a_gardes(self):
        over = threading.Event()
        self.addCleanup(over.set)
        numbers = itertools.count()

        def grade(text):
            number = next(numbers)
            if number >= 2:
                over.wait()
            return self.case(input=f"CV n° {number}")

        self.api.grade = grade
        process = self.tool("5", str(self.path))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.path.exists() and len(self.written()) == 2:
                break
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = self.ended(process, code=130)
        self.assertIn(" : 2 cas de plus.\n", out)
        self.assertIn("generer_cas.py : interrompu", err)
        self.assertEqual(len(eval_cv.load_cases(self.path)), 2)

    def test_le_fichier_est_en_utf_8_quel_que_soit_le_systeme(self):
        self.api.grade = lambda text: self.case(input="CV - Léa 🙂")
        ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        self.ended(self.tool("1", str(self.path), **ascii_only))
        self.assertEqual(eval_cv.load_cases(self.path)[0]["input"], "CV - Léa 🙂")

    @unittest.skipIf(os.name == "nt", "sans objet")
    def test_un_fichier_lisible_de_son_seul_proprietaire_le_reste_a_tout_instant(self):
        case = {"input": "CV " + "a " * 1_000_000, "expected_focus": "x"}
        self.path = Path(self.cases([case]))  # assez gros pour que l'écrire prenne du temps
        self.path.chmod(0o600)
        seen = set()
        over = threading.Event()

        def watch():
            while not over.is_set():
                for name in os.listdir(self.folder):
                    try:
                        seen.add(stat.S_IMODE(os.stat(self.folder / name).st_mode))
                    except FileNotFoundError:
                        continue

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.generate("4", self.path)
        over.set()
        watcher.join()
        self.assertEqual(seen, {0o600})

    @unittest.skipIf(os.name == "nt", "sans objet")
    def test_un_fichier_partage_le_reste(self):
        self.path = Path(self.cases(CASES))
        self.path.chmod(0o664)
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.generate("1", self.path)
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o664)

    @unittest.skipIf(os.name == "nt", "sans objet")
    def test_un_lien_reste_un_lien(self):
        target = Path(self.cases(CASES))
        self.path.symlink_to(target)
        self.generate("1", self.path)
        self.assertTrue(self.path.is_symlink())
        self.assertEqual(len(eval_cv.load_cases(target)), 4)

    def test_un_disque_plein_ne_laisse_ni_fichier_coupe_ni_brouillon(self):
        self.path = Path(self.cases(CASES))
        full = OSError(28, "No space left on device")
        with patch.object(Path, "replace", side_effect=full):
            out, err = self.generate("1", self.path, code=2)
        self.assertIn(f"{self.path.resolve()} : ", err)
        self.assertIn(" : 0 cas de plus.\n", out)
        self.assertEqual(self.written(), CASES)
        self.assertEqual(os.listdir(self.folder), ["cas.json"])

    def test_une_commande_incorrecte_est_une_phrase_avant_tout_appel(self):
        wrong = self.file("cas.json", "[1]")
        absent = self.folder.resolve() / "absent" / "x.json"
        for arguments, expected in [
            (["0", self.path], "N : un nombre entier de 1 à 9999 est attendu, et non « 0 »"),
            (["-3", self.path], "N : un nombre entier de 1 à 9999 est attendu, et non « -3 »"),
            (["deux", self.path], "N : un nombre entier de 1 à 9999 est attendu, et non « deux »"),
            (
                ["1", absent],
                f"écriture de {absent} : ce fichier, ou le dossier où il doit être, n'existe pas",
            ),
            (["1", wrong], "cas.json, cas n° 1 : une clé « input » est attendue, avec un texte"),
            (["1"], " » est refusée, car il manque ceci : FICHIER ; voyez --help"),
            ([], " » est refusée, car il manque ceci : N, FICHIER ; voyez --help"),
            (["1", "a" * 300], "a : le système répond « File name too long »"),
            (["1", "a" * 250], "a : le système répond « File name too long »"),  # son brouillon
        ]:
            out, err = self.generate(*arguments, code=2)
            self.assertIn(expected, err)
            self.assertEqual(out, "")
        self.assertEqual(Path(wrong).read_text(), "[1]")
        self.assertEqual(self.api.requests, [])

    def test_un_prompt_dont_les_accolades_ne_vont_pas_aux_axes_est_refuse(self):
        for prompt in ("{} " * 4, "{} {}", "{nom} {} {} {}", "{", "{} {} {} }"):
            with patch.object(generer_cas, "PROMPT_CASE", prompt):
                err = self.generate("1", self.path, code=2)[1]
            self.assertIn("dans PROMPT_CASE, il faut un {} par liste d'AXES", err)

    def test_un_axe_qui_n_est_pas_une_liste_est_refuse_sans_rien_payer(self):
        with patch.object(generer_cas, "AXES", ["paiement", ["a"], ["b"]]):
            err = self.generate("1", self.path, code=2)[1]
        self.assertIn("AXES doit être une liste de listes", err)
        self.assertEqual(self.api.requests, [])

    def test_une_cle_refusee_se_sait_avant_tout_appel(self):
        self.api.models = (401, error("authentication_error", "non"))
        self.assertIn("clé refusée", self.generate("3", self.path, code=2)[1])
        self.assertEqual(self.api.requests, [])

    def test_l_aide_est_en_francais_et_explique_ses_arguments(self):
        out, err = self.ended(self.tool("--help"))
        self.assertEqual(err, "")
        self.assertTrue(out.startswith("Ajoute à un fichier de cas des CV fictifs"), out)
        for argument in ("  N  ", "  FICHIER  ", "  --modele NOM  "):
            self.assertIn(argument, out)


class SansInstallation(unittest.TestCase):
    def test_uv_run_sait_quoi_installer(self):
        """L'en-tête PEP 723 est celui d'eval_cv.py."""
        expected = (HERE / "eval_cv.py").read_text(encoding="utf-8").partition('"""')[0]
        self.assertIn('# dependencies = ["anthropic>=0.77"]', expected)
        for name in ("lots.py", "generer_cas.py"):
            text = (HERE / "outils" / name).read_text(encoding="utf-8")
            self.assertEqual(text.partition('"""')[0], expected)


if __name__ == "__main__":
    unittest.main()
