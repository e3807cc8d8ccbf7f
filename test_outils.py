"""Les tests des outils : la page, les lots, la génération de cas. Le serveur et les gestes communs
sont ceux de test_eval_cv.py.

python -m unittest test_outils
"""

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
        self.assertIn("sa grille n'est pas celle", err)

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
        self.api.batch_result = lambda item: next(failures, "succeeded")
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
        self.assertIn("lot non cr", self.lots("--passages", "1", code=2)[1])

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


class Everywhere(Outils):
    def test_tools_work_from_any_folder_and_have_help(self):
        for name in ("page.py", "lots.py", "generer_cas.py"):
            done = self.tool(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("usage: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
