"""Les tests des outils : la page, les lots, la génération de cas, l'accord avec le juge. Le serveur
et les gestes communs sont ceux de test_eval_cv.py.

python -m unittest test_outils
"""

import csv
import io
import itertools
import json
import os
import re
import subprocess
import sys
import time
import unittest
from functools import partial
from pathlib import Path
from unittest.mock import patch

from test_eval_cv import CASES, CRITERIA, GOOD, HERE, KEY, WithApi, error, eval_cv, message

sys.path.insert(0, str(HERE / "outils"))

import accord
import generer_cas
import lots
import page


class Outils(WithApi):
    def tool(self, name, *arguments):
        """Lance un outil depuis le dossier temporaire, comme on le fait d'un terminal."""
        command = [sys.executable, str(HERE / "outils" / name), *arguments]
        options = {"cwd": self.folder, "capture_output": True, "encoding": "utf-8"}
        return subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, **options)


class Page(Outils):
    def page(self, path=None):
        self.main(page.run, str(path or self.journal()))
        return next(self.folder.glob("**/*.html")).read_text(encoding="utf-8")

    def test_shows_every_summary_mark_and_cause(self):
        good = message(json.dumps(GOOD))
        self.api.grade = lambda text: good if "Sophie" in text else message("", "refusal")
        self.script("--passages", "2")
        html = self.page()
        self.assertEqual(html.count("+45 % de prospects"), 1 + 12)  # le CV n° 1, et douze résumés
        self.assertEqual(html.count("Pas de note"), 8)
        self.assertEqual(html.count("notation : refus</p>"), 8)
        self.assertIn("V1\u00a0: 7,67\u00a0→ V2\u00a0: 7,67, sur 10", html)
        self.assertIn("<svg", html)

    def test_shows_calls_that_failed_or_were_not_made(self):
        bad = (400, error("invalid_request_error", "<script>alert(1)</script>"))
        self.api.grade = lambda text: bad
        self.script("--passages", "1", code=1)
        html = self.page()
        self.assertIn("HTTP 400 : &lt;script&gt;", html)
        self.assertNotIn("<script", html)
        first = self.journal().read_text("utf-8").split("\n")[0]
        self.assertEqual(self.page(self.file("vide.jsonl", first)).count("pas encore demandé"), 8)

    def test_never_calls_and_needs_only_the_journal(self):
        self.script("--passages", "1")
        self.api.requests.clear()
        moved = self.folder / "ailleurs.jsonl"
        self.journal().rename(moved)
        self.assertIn("CV n° 3", self.page(moved))
        self.assertTrue(moved.with_suffix(".html").exists())
        self.assertEqual(self.api.requests, [])

    def test_everything_is_escaped(self):
        attack = '</pre><script>alert(1)</script><img src=x onerror="alert(1)"> \' & <cv>'
        self.api.summary = lambda text: message(attack)
        self.api.grade = lambda text: message(json.dumps({**GOOD, "justification": attack}))
        cases = self.cases([{"input": "CV" + attack, "expected_focus": attack}])
        prompt = self.file("p.txt", "Résume " + attack)
        self.script("--passages", "1", "--cas", cases, "--prompts", prompt, prompt)
        html = self.page()
        self.assertNotIn("<script", html)
        self.assertNotIn("<img", html)
        # le CV, l'attendu, deux prompts, deux résumés et leurs justifications
        self.assertEqual(html.count("&lt;script&gt;"), 8)
        self.assertNotIn(KEY, html)
        self.assertNotRegex(html, r'(?:src|href|url)\s*[=(]\s*["\']?(?:https?:)?//')

    def test_large_sets_show_the_widest_gaps_only(self):
        marks = {"CV 1": 9, "CV 2": 5, "CV 3": 2}

        def grade(text):
            mark = next(marks[name] for name in marks if name in text)
            given = mark if "résumé par règles" in text else 2
            return message(json.dumps({**GOOD, **dict.fromkeys(CRITERIA, given)}))

        self.api.grade = grade
        self.api.summary = lambda text: message(
            "résumé par règles" if "Règles" in text else "résumé"
        )
        cases = [{"input": name, "expected_focus": "x"} for name in marks]
        self.script("--passages", "1", "--cas", self.cases(cases))
        with patch.object(page, "SHOWN", 2):
            html = self.page()
        self.assertEqual(re.findall(r"<h3>CV n° (\d)", html), ["1", "2"])

    def test_one_version_and_no_common_cv(self):
        prompt = self.file("p.txt", "Résume.")
        self.script("--passages", "1", "--prompts", prompt)
        self.assertIn("<title>V1\u00a0: 7,67, sur 10</title>", self.page())
        self.api.grade = lambda text: message("", "refusal")
        self.script("--passages", "1", code=1)
        latest = max(self.folder.glob("resultats/*.jsonl"))
        self.main(page.run, str(latest))
        self.assertIn("rien à conclure", latest.with_suffix(".html").read_text("utf-8"))

    def test_half_an_emoji(self):
        self.api.summary = lambda text: message("résumé \ud83d coupé")
        self.script("--passages", "1", code=1)
        self.assertIn("résumé ? coupé", self.page())

    def test_a_folder_is_not_a_journal(self):
        self.assertIn(". : ", self.main(page.run, ".", code=2)[1])

    def test_newest_journal_by_default(self):
        self.assertIn("aucun journal", self.tool("page.py").stderr)
        self.script("--demo", "--passages", "1")
        self.script("--demo", "--passages", "1")
        newest = max((self.folder / "resultats").glob("*.jsonl"), key=os.path.getmtime)
        out = self.tool("page.py").stdout
        self.assertEqual(out, f"Page à lire : {Path('resultats') / newest.stem}.html\n")

    def test_another_grid_is_refused(self):
        self.script("--demo")
        text = self.journal().read_text("utf-8").replace("Tu évalues", "Tu juges")
        err = self.main(page.run, self.file("autre.jsonl", text), code=2)[1]
        self.assertIn("la grille a changé", err)

    def test_command_given_by_eval_cv(self):
        err = self.script("--demo")[1]
        path = str(HERE / "outils" / "page.py")
        self.assertIn(f'Page à lire : "{sys.executable}" "{path}" "{self.journal()}"', err)


class Lots(WithApi):
    """Mêmes validations, même journal, même bilan qu'eval_cv.py."""

    run_lots = staticmethod(partial(eval_cv.run, evaluate=lots.in_batches))

    def lots(self, *arguments, code=0):
        folder = str(self.folder / "resultats")
        return self.main(self.run_lots, "--sortie", folder, *arguments, code=code)

    def lots_json(self, *arguments, code=0):
        return json.loads(self.lots("--json", *arguments, code=code)[0])

    def sizes(self):
        return [len(batch) for batch in self.api.batches.values()]

    def test_same_report_as_without(self):
        alone = self.json("--passages", "2")
        found = self.lots_json("--passages", "2")
        self.assertEqual(found["versions"], alone["versions"])
        self.assertEqual(found["usage"], alone["usage"])

    def test_one_batch_of_summaries_then_one_of_gradings(self):
        self.lots()
        self.assertEqual(self.sizes(), [18, 18])
        for batch in self.api.batches.values():
            names = {item["custom_id"] for item in batch}
            self.assertEqual(len(names), 18)
            self.assertTrue(all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names))

    def test_results_find_their_chain_in_any_order(self):
        # Le résumé reprend le nom du CV, la note en découle : tout serait faux si l'ordre comptait.
        marks = {"Sophie": 9, "Ahmed": 5, "Marie": 2}

        def name(text):
            return next(name for name in marks if name in text)

        def grade(text):
            mark = marks[name(text.partition("<resume>")[2])]
            return message(json.dumps({**GOOD, **dict.fromkeys(CRITERIA, mark)}))

        self.api.summary = lambda text: message(name(text.partition("<cv>")[2]))
        self.api.grade = grade
        comparison = self.lots_json("--passages", "1")["comparison"]
        self.assertEqual(comparison["by_case"], [[9.0, 9.0], [5.0, 5.0], [2.0, 2.0]])

    def test_errored_expired_and_canceled_are_causes(self):
        failures = iter(["errored", "expired", "canceled"])
        self.api.batch_result = lambda item: (
            next(failures, "succeeded")  # dans un ordre quelconque : les trois CV de V1
            if item["params"]["messages"][0]["content"].startswith(eval_cv.PROMPT_V1)
            else "succeeded"
        )
        found = self.lots_json("--passages", "1", code=1)["versions"]  # aucun CV noté dans V1
        causes = {"résumé : requête en erreur dans le lot : bad-request [clé]"}
        causes |= {"résumé : le lot a expiré", "résumé : le lot a été annulé"}
        self.assertEqual({*found["V1"]["impossible"], *found["V2"]["impossible"]}, causes)
        self.assertEqual(self.sizes(), [6, 3])
        self.assertNotIn(KEY, self.journal().read_text("utf-8"))
        again = self.json("--reprendre", str(self.journal()))["versions"]
        self.assertEqual([version["graded"] for version in again.values()], [3, 3])

    def test_unusable_answers_are_paid_once_per_run(self):
        self.api.grade = lambda text: message("cassé")
        found = self.lots_json("--passages", "1", code=1)
        self.assertEqual(found["versions"]["V1"]["impossible"], {"notation : JSON illisible": 3})
        self.assertEqual((self.sizes(), found["usage"]["input_tokens"]), ([6, 6], 1200))

    def test_misshapen_result_costs_only_itself(self):
        self.api.batch_result = lambda item: next(shapes, "succeeded")
        for shape in ("errored_flat", "unknown"):
            shapes = iter([shape])
            found = self.lots_json("--passages", "1")["versions"]
            self.assertEqual(found["V1"]["graded"] + found["V2"]["graded"], 5)

    def cut(self, when, *options):
        """Coupe le processus au moment dit par `when(journal)`."""
        options = options or ("--passages", "1")
        process = self.process(*options, script="outils/lots.py")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if any(self.folder.glob("resultats/*.jsonl")) and when(self.records()):
                break
            time.sleep(0.02)
        process.kill()
        process.communicate()

    def test_cut_while_waiting_then_resumed_finds_its_batch(self):
        self.api.polls_before_end = 10**9
        self.cut(lambda records: any("batch" in record for record in records))
        self.assertEqual(self.sizes(), [6])
        self.api.polls_before_end = 1
        self.assertIn("V1 : 7.67/10", self.lots("--reprendre", str(self.journal()))[0])
        self.assertEqual(self.sizes(), [6, 6])

    def test_cut_between_the_two_batches(self):
        self.lots("--passages", "1")
        path = self.journal()
        lines = path.read_bytes().split(b"\n")
        place = next(i for i, line in enumerate(lines) if b'"collected"' in line)
        path.write_bytes(b"\n".join(lines[:place]))
        self.lots("--reprendre", str(path))
        self.assertEqual(self.sizes(), [6, 6, 6])  # seules les notations, à nouveau

    def test_lost_answer_to_a_creation_is_not_sent_again(self):
        self.api.lose_creations = 1
        self.assertIn("vérifiez dans la console", self.lots("--passages", "1", code=2)[1])
        self.assertEqual(len(self.api.batches), 1)

    def test_interrupted_creation_is_code_130_and_server_error_leaves_a_doubt(self):
        self.api.create_status = 500
        err = self.lots("--passages", "1", code=2)[1]
        self.assertIn("vérifiez dans la console", err)
        self.api.create_status = 400
        self.assertNotIn("console", self.lots("--passages", "1", code=2)[1])
        self.api.create_status = 200
        self.api.batch = lambda number, ended: b"<html>portail captif</html>"
        self.assertIn("envoi du lot : ", self.lots("--passages", "1", code=2)[1])

    def test_results_no_longer_needed_are_kept(self):
        self.api.polls_before_end = 10**9
        self.cut(lambda records: any("batch" in record for record in records), "--passages", "2")
        self.api.polls_before_end = 1
        self.lots("--reprendre", str(self.journal()), "--passages", "1")
        self.lots("--reprendre", str(self.journal()), "--passages", "2")
        self.assertEqual(self.sizes(), [12, 6, 6])  # aucun résumé n'est repayé

    def test_result_that_is_missing_is_a_cause(self):
        results = iter(["missing"])
        self.api.batch_result = lambda item: next(results, "succeeded")
        found = self.lots_json("--passages", "1")["versions"]
        self.assertIn("résumé : requête absente des résultats du lot", found["V1"]["impossible"])
        self.assertEqual(self.sizes(), [6, 5])

    def test_batch_that_is_gone_says_so(self):
        self.api.polls_before_end = 10**9
        self.cut(lambda records: any("batch" in record for record in records))
        self.api.batches.clear()
        err = self.lots("--reprendre", str(self.journal()), code=2)[1]
        self.assertIn("lot msgbatch_0 : ", err)
        self.assertIn("retirez sa ligne du journal", err)

    def test_large_batches_are_split(self):
        with patch.object(lots, "REQUESTS", 4):
            self.lots("--passages", "1")
        self.assertEqual(self.sizes(), [4, 2, 4, 2])

    def test_demo_is_refused(self):
        self.assertIn("retirez --demo", self.lots("--demo", code=2)[1])

    def test_resume_command_names_the_tool(self):
        self.api.lose_creations = 1
        process = self.process("--passages", "1", script="outils/lots.py")
        err = self.ended(process, code=2)[1]
        self.assertIn(f'"{HERE / "outils" / "lots.py"}" --reprendre', err)


class GenererCas(WithApi):
    def setUp(self):
        super().setUp()
        numbers = itertools.count()
        case = {"expected_focus": "x"}
        self.api.grade = lambda text: message(
            json.dumps({"input": f"CV - n° {next(numbers)}", **case})
        )

    def generate(self, *arguments, code=0):
        return self.main(generer_cas.run, *arguments, code=code)

    def test_appends_and_keeps_what_was_there(self):
        path = self.cases([{**CASES[0], "source": "à moi"}])
        out, _ = self.generate("3", path)
        cases = json.loads(Path(path).read_text(encoding="utf-8"))
        self.assertEqual((cases[0], len(cases)), ({**CASES[0], "source": "à moi"}, 4))
        self.assertIn("3 cas de plus", out)

    def test_creates_the_file(self):
        path = str(self.folder / "nouveau.json")
        self.generate("2", path, "--modele", "autre")
        self.assertEqual(len(eval_cv.load_cases(path)), 2)
        self.assertEqual(self.api.requests[0]["model"], "autre")

    def test_repeats_and_unusable_answers_are_left_out_and_counted(self):
        same = {"input": "CV - Léa", "expected_focus": "x"}
        answers = iter([same, same, {**same, "input": " "}, [1], {"input": "CV"}])
        self.api.grade = lambda text: message(json.dumps(next(answers)))
        out, _ = self.generate("5", str(self.folder / "nouveau.json"))
        for line in ("1 cas de plus", "1 × cas déjà présent", "1 × un texte vide"):
            self.assertIn(line, out)
        self.assertIn("2 × JSON illisible", out)

    def test_nothing_usable_is_code_1(self):
        self.api.grade = lambda text: message("", "refusal")
        self.assertIn("2 × refus", self.generate("2", str(self.folder / "n.json"), code=1)[0])

    def test_profiles_differ_and_half_have_no_figure(self):
        self.generate("8", str(self.folder / "nouveau.json"))
        asked = [sent["messages"][0]["content"] for sent in self.api.requests]
        self.assertEqual(len(set(asked)), 8)
        self.assertEqual(sum("Aucune réalisation ne doit" in text for text in asked), 4)

    def test_wrong_use_is_one_sentence_before_any_call(self):
        wrong = self.file("cas.json", "[1]")
        for arguments, expected in [
            (["1", str(self.folder / "absent" / "x.json")], "un dossier où écrire"),
            (["0", str(self.folder / "x.json")], "un entier d'au moins 1"),
            (["1", wrong], "cas.json, cas n° 1"),
            (["1"], "usage incorrect"),
        ]:
            self.assertIn(expected, self.generate(*arguments, code=2)[1])
        self.assertEqual(Path(wrong).read_text(), "[1]")
        self.assertEqual(self.api.requests, [])


class Agreement(unittest.TestCase):
    """Les mesures, sur des couples (votre note, celle du juge) vérifiables à la main."""

    def agreement(self, *pairs, name="exactitude"):
        marked = [{"human": {name: human}, "judge": {name: judge}} for human, judge in pairs]
        return accord.agreement(marked, name)

    def test_three_summaries(self):
        found = self.agreement((5, 6), (6, 8), (7, 7))  # écarts : 1, 2 et 0
        expected = {"n": 3, "human": 6, "judge": 7, "bias": 1, "absolute_gap": 1}
        self.assertEqual({key: found[key] for key in expected}, expected)
        self.assertEqual(found["within_one"], 0.6667)  # deux sur trois
        self.assertEqual(found["standard_error"], 0.5774)  # écart type 1, divisé par √3
        self.assertEqual(found["p_value"], 0.5)  # ++ et --, sur quatre tirages de signes

    def test_kappa(self):
        self.assertEqual(self.agreement((2, 2), (4, 4))["kappa"], 1)
        # Écarts au carré : 4 et 4. Au hasard : 4, 0, 0 et 4, de moyenne 2. 1 - 4/2 = -1.
        self.assertEqual(self.agreement((2, 4), (4, 2))["kappa"], -1)
        # Écarts : 1 et 0, de moyenne 1/2. Au hasard : 1, 0, 9 et 4, de moyenne 3,5 ; 1 - 1/7.
        self.assertEqual(self.agreement((2, 3), (5, 5))["kappa"], 0.8571)

    def test_undefined_is_none(self):
        self.assertIsNone(self.agreement((2, 5), (4, 5))["kappa"])  # une seule note du juge
        self.assertIsNone(self.agreement((2, 2), (4, 4), name="moyenne")["kappa"])
        self.assertIsNone(self.agreement((2, 2))["standard_error"])
        self.assertEqual(set(self.agreement().values()), {0, None})


class Accord(Outils):
    """Six CV, deux prompts, deux passages aux mêmes réponses : douze résumés. Le juge met 6 partout
    à ceux de V1, et 8 partout à ceux de V2, qui commencent par un tiret."""

    def setUp(self):
        super().setUp()
        cases = [{"input": f"CV n° {n}", "expected_focus": "l'essentiel"} for n in range(6)]
        options = ("--cas", self.cases(cases), "--passages", "2", "--sortie", str(self.folder))
        journal = eval_cv.open_journal(options)[1]
        self.journal_path = str(journal["path"])
        ask = partial(eval_cv.ask_once, journal, self.answer)
        eval_cv.run_versions(**journal["settings"]["run"], ask=ask)
        self.path = self.folder / "a_noter.csv"

    def answer(self, params, **about):
        text = params["messages"][0]["content"]
        reply = json.dumps(GOOD | dict.fromkeys(CRITERIA, 8 if "- CV" in text else 6))
        if "output_config" not in params:
            dash = "- " if text.startswith(eval_cv.PROMPT_V2) else "Le "
            reply = dash + re.search(r"CV n° \d", text)[0]
        return eval_cv.as_message({"message": message(reply)})

    def accord(self, *arguments, code=0):
        return self.main(accord.run, self.journal_path, str(self.path), *arguments, code=code)

    def rows(self, delimiter=";"):
        text = self.path.read_text(encoding="utf-8-sig")
        return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))

    def fill(self, mark, **how):
        """Remplit la feuille : `mark(résumé)` donne la même note à tous les critères."""
        rows = [row | dict.fromkeys(CRITERIA, mark(row["resume"])) for row in self.rows()]
        self.save(rows, **how)

    def save(self, rows, delimiter=";", encoding="utf-8-sig"):
        with open(self.path, "w", encoding=encoding, newline="") as file:
            sheet = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
            sheet.writeheader()
            sheet.writerows(rows)

    def report(self):
        return json.loads(self.accord("--json")[0])

    def test_the_sheet_is_blind_without_repeats_and_shares_out_the_versions(self):
        self.accord("--exporter", "--nombre", "8")
        self.assertEqual(self.api.requests, [])
        self.assertTrue(self.path.read_bytes().startswith(b"\xef\xbb\xbfnumero;cv;attendu;resume;"))
        rows = self.rows()
        self.assertEqual(list(rows[0]), ["numero", "cv", "attendu", "resume", *CRITERIA])
        self.assertEqual({row[name] for row in rows for name in CRITERIA}, {""})
        self.assertEqual(sum("Le CV" in row["resume"] for row in rows), 4)
        self.assertEqual(len({row["resume"] for row in rows}), 8)

    def test_fewer_summaries_than_asked(self):
        self.assertIn("12 résumés différents à noter", self.accord("--exporter")[0])
        self.assertEqual(len(self.rows()), 12)

    def test_an_existing_sheet_is_never_overwritten(self):
        self.path.write_text("mes notes")
        self.assertIn("a_noter.csv", self.accord("--exporter", code=2)[1])
        self.assertEqual(self.path.read_text(), "mes notes")

    def test_no_text_can_become_a_formula(self):
        self.accord("--exporter")
        self.assertIn("\u200b- CV n° 0", [row["resume"] for row in self.rows()])
        self.assertIn("Le CV n° 0", [row["resume"] for row in self.rows()])

    def test_reads_the_sheet_back(self):
        self.accord("--exporter")
        self.fill(lambda text: "7,5" if "- CV" in text else "5")
        report = self.report()
        self.assertEqual((report["n"], report["skipped"]), (12, 0))
        self.assertEqual(
            report["versions"], {"V1": {"human": 5, "judge": 6}, "V2": {"human": 7.5, "judge": 8}}
        )
        self.assertEqual(list(report["criteria"]), ["moyenne", *CRITERIA])
        for found in report["criteria"].values():  # écarts : six fois 1, six fois 0,5
            self.assertEqual((found["bias"], found["within_one"]), (0.75, 1))
            self.assertEqual(found["p_value"], 0.0005)  # 2 tirages sur 4096
        self.assertIn("Biais du juge : moyenne +0.75, exactitude +0.75", self.accord()[0])

    def test_one_mark_apart_is_within_one_whatever_the_thirds(self):
        self.accord("--exporter")
        journal = Path(self.journal_path)
        text = journal.read_text(encoding="utf-8").replace('couverture\\": 6', 'couverture\\": 7')
        journal.write_text(text, encoding="utf-8")  # le juge : 6,333… ou 8
        self.save([row | dict(zip(CRITERIA, ("7", "7", "8"))) for row in self.rows()])  # 7,333…
        self.assertEqual(self.report()["criteria"]["moyenne"]["within_one"], 1)

    def test_a_sheet_saved_again_by_a_spreadsheet(self):
        self.accord("--exporter")
        self.fill(lambda text: "6", delimiter=",", encoding="utf-8")
        rows = [row | {"remarque": "à revoir, peut-être"} for row in self.rows(",")]
        rows[0] |= {"resume": rows[0]["resume"].replace("\u200b", "").replace(" ", "\u00a0")}
        self.save(rows[::-1], delimiter=",", encoding="utf-8")
        self.assertEqual(self.report()["n"], 12)

    def test_empty_rows_are_skipped_and_counted(self):
        self.accord("--exporter")
        self.fill(lambda text: "6" if "5" in text else " ")
        self.assertEqual((self.report()["n"], self.report()["skipped"]), (2, 10))
        out, _ = self.accord()
        self.assertIn("lignes vides : 10", out)
        self.assertIn("Résumés notés en entier : 2 ; il en faut au moins 6 pour conclure", out)
        self.fill(lambda text: "")
        self.accord(code=1)

    def test_a_row_marked_in_part_counts_where_it_is_marked(self):
        self.accord("--exporter")
        self.save([row | {"concision": "6"} for row in self.rows()])
        criteria = self.report()["criteria"]
        self.assertEqual([criteria[name]["n"] for name in ("concision", "moyenne")], [12, 0])

    def test_a_row_pasted_twice_is_refused(self):
        self.accord("--exporter")
        self.fill(lambda text: "6")
        self.save([*self.rows(), self.rows()[0]])
        self.assertIn(
            "ligne 14 : résumé inconnu de ce journal, ou déjà noté plus haut",
            self.accord(code=2)[1],
        )

    def test_biases_that_cancel_out_in_the_mean_are_said(self):
        self.accord("--exporter")
        self.save([row | dict(zip(CRITERIA, ("9", "5", "7"))) for row in self.rows()])  # 6 ou 8
        self.assertIn("Biais du juge : exactitude -2.00, concision +2.00 ;", self.accord()[0])

    def test_versions_ranked_the_other_way(self):
        self.accord("--exporter")
        self.fill(lambda text: "9" if "Le CV" in text else "4")
        self.assertIn("Il ne classe pas les versions comme vous", self.accord()[0])

    def test_the_largest_disagreements_come_with_the_justification(self):
        self.accord("--exporter")
        self.fill(lambda text: "1" if text == "Le CV n° 3" else "7")
        number = next(row["numero"] for row in self.rows() if row["resume"] == "Le CV n° 3")
        first = re.search(r"n° .*", self.accord()[0])[0]
        self.assertEqual(first, f"n° {number} (V1), vous 1.00, le juge 6.00 : Fidèle, un peu long.")

    def test_a_wrong_sheet_is_a_sentence_with_its_line(self):
        self.accord("--exporter")
        rows = self.rows()
        for change, expected in [
            ({"exactitude": "11"}, "ligne 2 : exactitude va de 0 à 10, pas 11"),
            ({"exactitude": "nan"}, "ligne 2 : exactitude va de 0 à 10, pas nan"),
            ({"exactitude": "bien"}, "ligne 2 : exactitude va de 0 à 10, pas bien"),
            ({"exactitude": "7", "resume": "autre"}, "ligne 2 : résumé inconnu de ce journal"),
        ]:
            self.save([rows[0] | change, *rows[1:]])
            self.assertIn(expected, self.accord(code=2)[1])
        self.save([{name: row[name] for name in row if name != "concision"} for row in rows])
        self.assertIn("ligne 1 : la colonne concision manque", self.accord(code=2)[1])
        self.path.write_bytes("numero;cv;é".encode("cp1252"))
        self.assertIn("a_noter.csv : enregistrez la feuille en CSV UTF-8", self.accord(code=2)[1])


class Everywhere(Outils):
    def test_tools_work_from_any_folder_and_have_help(self):
        for name in ("page.py", "lots.py", "generer_cas.py", "accord.py"):
            done = self.tool(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("usage: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
