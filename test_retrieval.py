"""Les tests de retrieval_eval.py : les valeurs de l'exercice d'abord, puis une règle par test.

python -m unittest test_retrieval
"""

import gzip
import io
import json
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import retrieval_eval
from retrieval_eval import evaluer_retrieval, p_value

HERE = Path(__file__).resolve().parent


class Exercice(unittest.TestCase):
    """Les valeurs de l'énoncé."""

    def test_un_bon_document_sur_deux(self):
        resultats = [["doc_a", "doc_b", "doc_c"], ["doc_x", "doc_y"]]
        bilan = evaluer_retrieval(["Q1", "Q2"], resultats, {"Q1": "doc_b", "Q2": "doc_z"}, k=3)
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (0.5, 0.25))

    def test_positions(self):
        bilan = evaluer_retrieval(["Q1", "Q2"], [["a", "b", "c"], ["x", "y", "z"]], {"Q1": "b", "Q2": "z"}, k=3)
        self.assertEqual(bilan["hit_rate"], 1.0)
        self.assertEqual([detail["position"] for detail in bilan["details"]], [2, 3])

    def test_document_absent(self):
        bilan = evaluer_retrieval(["Q1"], [["a", "b", "c"]], {"Q1": "inconnu"}, k=3)
        self.assertEqual((bilan["hit_rate"], bilan["mrr"], bilan["details"][0]["position"]), (0.0, 0.0, 0))

    def test_premier_et_deuxieme(self):
        bilan = evaluer_retrieval(["Q1", "Q2"], [["bon", "x"], ["x", "bon"]], {"Q1": "bon", "Q2": "bon"}, k=5)
        self.assertEqual(bilan["mrr"], 0.75)

    def test_le_mrr_regarde_au_dela_de_k(self):
        resultats = [["a", "bon"], ["bon", "a"], ["a", "b", "c", "bon"]]
        bilan = evaluer_retrieval(["Q1", "Q2", "Q3"], resultats, dict.fromkeys(["Q1", "Q2", "Q3"], "bon"), k=2)
        self.assertEqual(bilan["hit_rate"], 0.6667)
        self.assertEqual(bilan["mrr"], 0.5833)  # (1/2 + 1 + 1/4) / 3
        self.assertEqual(bilan["details"][2], {"question": "Q3", "position": 4, "hit": False, "reciprocal_rank": 0.25})


class Fonction(unittest.TestCase):
    """Ce que l'énoncé ne dit pas, une règle par test."""

    def test_plusieurs_documents_pertinents_le_premier_trouve_compte(self):
        for pertinents in (["c", "b"], {"c", "b"}, ("c", "b")):
            self.assertEqual(evaluer_retrieval(["Q"], [["a", "b", "c"]], {"Q": pertinents})["mrr"], 0.5)

    def test_liste_vide_compte_au_denominateur(self):
        bilan = evaluer_retrieval(["Q1", "Q2"], [["bon"], []], {"Q1": "bon", "Q2": "bon"})
        self.assertEqual((bilan["hit_rate"], bilan["mrr"], bilan["details"][1]["position"]), (0.5, 0.5, 0))

    def test_document_repete_compte_une_fois(self):
        bilan = evaluer_retrieval(["Q"], [["bon", "bon", "bon"]], {"Q": "bon"})
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (1.0, 1.0))

    def test_question_repetee_compte_chaque_fois(self):
        bilan = evaluer_retrieval(["Q", "Q"], [["bon"], ["x", "bon"]], {"Q": "bon"})
        self.assertEqual((bilan["mrr"], len(bilan["details"])), (0.75, 2))

    def test_rang_reciproque_non_arrondi(self):
        bilan = evaluer_retrieval(["Q"], [["a", "b", "bon"]], {"Q": "bon"})
        self.assertEqual((bilan["mrr"], bilan["details"][0]["reciprocal_rank"]), (0.3333, 1 / 3))

    def test_aucune_question(self):
        self.assertEqual(evaluer_retrieval([], [], {}), {"hit_rate": 0.0, "mrr": 0.0, "details": []})

    def test_documents_qui_ne_sont_pas_des_chaines(self):
        self.assertEqual(evaluer_retrieval(["Q"], [[7, 12]], {"Q": 12})["mrr"], 0.5)

    def test_fautes_nommees(self):
        for arguments, faute, dit in [
            (
                (["Q1", "Q2"], [["a"]], {"Q1": "a", "Q2": "a"}),
                ValueError,
                "questions : 2, mais listes de résultats : 1",
            ),
            ((["Q1"], [["a"]], {"Q1": "a"}, 0), ValueError, "k doit"),
            ((["Q1"], [["a"]], {"Q1": "a"}, True), TypeError, "k doit"),
            ((["Q1"], [["a"]], {"Q1": "a"}, 2.0), TypeError, "k doit"),
            ((["Q1"], [["a"]], {}), ValueError, "'Q1' n'a pas de document pertinent"),
            ((["Q1"], [["a"]], {"Q1": []}), ValueError, "'Q1' n'a pas de document pertinent"),
            ((["Q1"], ["abc"], {"Q1": "a"}), TypeError, "'Q1'"),
            ((["Q1"], [["a"]], {"Q1": {"a": 1}}), TypeError, "'Q1' : un document, une liste"),
            (([["Q1"]], [["a"]], {"Q1": "a"}), TypeError, "doivent être des textes"),
            (("Q1", [["a"]] * 2, {"Q": "a", "1": "a"}), TypeError, "questions"),
            ((["Q1"], "a", {"Q1": "a"}), TypeError, "resultats"),
            ((["Q1"], [["a"]], ["a"]), TypeError, "documents_pertinents"),
        ]:
            with self.assertRaisesRegex(faute, dit):
                evaluer_retrieval(*arguments)


class Permutation(unittest.TestCase):
    """La même fonction que dans eval_cv.py, qui doit pouvoir se copier seul."""

    def test_a_la_main(self):
        self.assertEqual(p_value([1, 1, 1]), 2 / 8)
        self.assertEqual(p_value([3, 2, 1, -1]), 6 / 16)  # 7 d'une façon, 5 de deux, et leurs opposés
        self.assertEqual(p_value([0.0, 0.0]), 1.0)
        self.assertEqual(p_value([1 / 3, 1 / 6, -1 / 2] * 2), 1.0)  # la somme est nulle, à un arrondi près

    def test_tirages_et_approximation_suivent_la_loi_binomiale(self):
        self.assertAlmostEqual(p_value([1] * 15 + [-1] * 5), 0.0414, delta=0.01)  # 2 × P(X >= 15 | n = 20)
        # 1 031 hausses, 1 030 baisses : 2 × P(X >= 1031 | n = 2061) vaut 1, ce que dit la correction de continuité.
        self.assertAlmostEqual(p_value([1] * 1031 + [-1] * 1030), 1.0, delta=0.001)


class AvecFichiers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        content = content if isinstance(content, (str, bytes)) else json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def script(self, *arguments, code=0):
        """Lance `main` ; rend la sortie standard, ou la sortie d'erreur si le code attendu est 2."""
        out, said = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(said):
            try:
                got = retrieval_eval.main(arguments)
            except SystemExit as stop:  # argparse s'arrête ainsi
                got = stop.code
        self.assertEqual(got, code, said.getvalue())
        return said.getvalue() if code else out.getvalue()

    def json(self, *arguments):
        return json.loads(self.script("--json", *arguments))

    def exercice(self, name, resultats, pertinents=None):
        questions = [f"Q{number}" for number in range(1, len(resultats) + 1)]
        pertinents = pertinents or dict.fromkeys(questions, "bon")
        data = {"questions": questions, "resultats": resultats, "documents_pertinents": pertinents}
        return self.file(name, data)


RUN = """\
q1 Q0 d1 1 3.0 essai
q1 Q0 d2 2 2.0 essai
q1 Q0 d3 3 1.0 essai
q2\tQ0\td9  1\t0.5\tessai
inconnue Q0 d1 1 1.0 essai
"""
QRELS = """\
q1 0 d2 1
q1 0 d1 0
q2 0 d9 0
q3 0 d4 2
"""


class Formats(AvecFichiers):
    def check(self, run, qrels):
        """q1 : d2 en deuxième ; q2 : jugée seulement avec 0 ; q3 : absente du run ; « inconnue » : sans jugement."""
        bilan = self.json(run, "--qrels", qrels, "--k", "1", "2")["avant"]
        expected = {"hit_rate": {"1": 0.0, "2": 0.3333}, "mrr_at_k": {"1": 0.0, "2": 0.1667}, "mrr": 0.1667}
        self.assertEqual(bilan, {**expected, "questions": 3, "sans_resultat": 1, "sans_jugement": 1})

    def test_trec(self):
        self.check(self.file("run", RUN), self.file("qrels", QRELS))

    def test_json(self):
        run = {"q1": {"d1": 3.0, "d2": 2, "d3": 1.0}, "q2": {"d9": 0.5}, "inconnue": {"d1": 1.0}}
        qrels = {"q1": {"d2": 1, "d1": 0}, "q2": {"d9": 0}, "q3": {"d4": 2}}
        self.check(self.file("run", run), self.file("qrels", qrels))

    def test_gzip_reconnu_a_son_contenu(self):
        self.check(self.file("run", gzip.compress(RUN.encode())), self.file("qrels", gzip.compress(QRELS.encode())))

    def test_bom_fins_de_ligne_windows_et_lignes_vides(self):
        run = b"\xef\xbb\xbf" + RUN.replace("\n", "\r\n\r\n").encode()
        self.check(self.file("run", run), self.file("qrels", b"\xef\xbb\xbf" + QRELS.encode()))

    def test_lignes_dispersees(self):
        lines = RUN.splitlines()
        self.check(self.file("run", "\n".join(lines[i] for i in (2, 3, 1, 4, 0))), self.file("qrels", QRELS))

    def test_un_run_de_plusieurs_paquets(self):
        lines = [f"q{q} Q0 d{rank} {rank} {1000 - rank} essai" for q in range(50) for rank in range(1, 1001)]
        qrels = "".join(f"q{q} 0 d{q + 1} 1\n" for q in range(50))  # la question q a son document en position q + 1
        bilan = self.json(self.file("run", "\n".join(lines)), "--qrels", self.file("qrels", qrels))["avant"]
        self.assertEqual(bilan["mrr"], round(sum(1 / (q + 1) for q in range(50)) / 50, 4))

    def test_le_score_decide_pas_la_colonne_du_rang(self):
        run, qrels = self.file("run", "q Q0 a 1 1.0 t\nq Q0 b 2 5.0 t\n"), self.file("qrels", "q 0 b 1\n")
        self.assertEqual(self.json(run, "--qrels", qrels)["avant"]["mrr"], 1.0)

    def test_ex_aequo_par_identifiant_decroissant(self):
        run, qrels = self.file("run", {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}), self.file("qrels", {"q": {"b": 1}})
        self.assertEqual(self.json(run, "--qrels", qrels)["avant"]["mrr"], 0.5)  # c, b, a

    def test_scores_compares_en_simple_precision_comme_trec_eval(self):
        run, qrels = self.file("run", {"q": {"a": 1.00000001, "b": 1.0}}), self.file("qrels", {"q": {"a": 1}})
        self.assertEqual(self.json(run, "--qrels", qrels)["avant"]["mrr"], 0.5)

    def test_identifiants_nombres_ou_textes(self):
        data = {"questions": [1], "resultats": [[7, 12]], "documents_pertinents": {"1": "12"}}
        self.assertEqual(self.json(self.file("a.json", data))["avant"]["mrr"], 0.5)

    def test_exercice_avec_plusieurs_pertinents_et_question_repetee(self):
        data = {"questions": ["Q", "Q"], "resultats": [["a", "b"], []], "documents_pertinents": {"Q": ["b", "c"]}}
        bilan = self.json(self.file("a.json", data))["avant"]
        self.assertEqual((bilan["mrr"], bilan["questions"], bilan["sans_resultat"]), (0.25, 2, 1))

    def test_question_sans_resultat_dans_un_run_json(self):
        run, qrels = self.file("run", {"q1": {}, "q2": {"d": 1}}), self.file("qrels", {"q1": {"d": 1}, "q2": {"d": 1}})
        bilan = self.json(run, "--qrels", qrels)["avant"]
        self.assertEqual((bilan["mrr"], bilan["sans_resultat"]), (0.5, 1))


class Comparaison(AvecFichiers):
    def test_ecarts_et_mouvements(self):
        avant = self.exercice("avant.json", [["bon"], ["x", "bon"], ["x"], ["bon"]])
        apres = self.exercice("apres.json", [["x", "bon"], ["bon"], ["bon"], ["bon"]])
        bilan = self.json(avant, apres, "--k", "1")
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.625, 0.875))
        comparaison = bilan["comparaison"]
        # Écarts : -1/2, +1/2, +1, 0. Moyenne 1/4, écart type √(5/12), divisé par √4 questions. Sur 8 tirages de
        # signes, 6 sont au moins aussi loin de zéro que 1 : les sommes 2, 1, 1 et leurs opposées.
        self.assertEqual(comparaison["mrr"], {"difference": 0.25, "standard_error": 0.3227, "p_value": 0.75})
        # Hits : -1, +1, +1, 0 ; tous les tirages de trois signes ont une somme d'au moins 1.
        self.assertEqual(comparaison["hit_rate"], {"difference": 0.25, "standard_error": 0.4787, "p_value": 1.0})
        self.assertEqual([comparaison[name] for name in ("hausse", "baisse", "stable")], [2, 1, 1])

    def test_les_plus_fortes_baisses_et_une_phrase(self):
        avant = self.exercice("avant.json", [["bon"]] * 7)
        apres = self.exercice("apres.json", [["x", "bon"], ["x"], *[["bon"]] * 5])
        out = self.script(avant, apres)
        self.assertIn("'Q2', position 1 → absent", out)
        self.assertLess(out.index("'Q2'"), out.index("'Q1'"))
        self.assertNotIn("'Q3'", out)
        self.assertIn("trop peu de questions ont bougé pour conclure", out)

    def test_memes_questions_exigees(self):
        avant = self.exercice("avant.json", [["bon"], ["bon"]])
        autre = self.exercice("autre.json", [["bon"], ["bon"]], {"Q1": "bon", "Q2": "autre"})
        said = self.script(avant, autre, code=2)
        self.assertIn("avant.json et ", said)
        self.assertIn("autre.json : la question 'Q2'", said)
        self.assertIn("'Q2'", self.script(avant, self.exercice("court.json", [["bon"]]), code=2))

    def test_deux_runs_memes_qrels(self):
        qrels = self.file("qrels", {"q1": {"a": 1}, "q2": {"a": 1}})
        runs = self.file("un", {"q1": {"a": 1.0, "b": 2.0}}), self.file("deux", {"q1": {"a": 1.0}, "q2": {"a": 1.0}})
        bilan = self.json(*runs, "--qrels", qrels)
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.25, 1.0))
        self.assertEqual((bilan["avant"]["sans_resultat"], bilan["apres"]["sans_resultat"]), (1, 0))

    def test_details(self):
        details = str(self.folder / "details.jsonl")
        avant, apres = self.exercice("avant.json", [["x", "bon"]]), self.exercice("apres.json", [["bon"]])
        self.script(avant, apres, "--details", details)
        line = json.loads(Path(details).read_text(encoding="utf-8"))
        self.assertEqual(line["avant"], {"position": 2, "hit": False, "reciprocal_rank": 0.5})
        self.assertEqual((line["question"], line["apres"]["position"]), ("Q1", 1))


class Fautes(AvecFichiers):
    """Une phrase qui nomme le fichier, la ligne et la faute, et le code 2."""

    def test_fichiers(self):
        good_qrels, good_run = self.file("qrels", QRELS), self.file("run", RUN)
        exercice = self.exercice("exercice.json", [["bon"]])
        for arguments, dit in [
            ([str(self.folder / "absent")], "absent : fichier introuvable"),
            ([good_run], "--qrels"),
            (["--qrels", good_qrels], "indiquez aussi le run"),
            ([exercice, "--qrels", good_qrels], "retirez --qrels"),
            ([self.file("court", RUN + "q9 Q0 d1 1 3.0\n"), "--qrels", good_qrels], "court : ligne 6 : 5 colonnes"),
            ([self.file("decale", "a Q0 d 1 1\nb Q0 d 1 1 t u\n"), "--qrels", good_qrels], "ligne 1 : 5 colonnes"),
            ([self.file("texte", "\n" + RUN + "q9 Q0 d1 1 x t\n"), "--qrels", good_qrels], "ligne 7 : « x »"),
            ([self.file("zero", "q1 Q0 d1\n5 t \0 q1 Q0 d2 1 2.0 t\n"), "--qrels", good_qrels], "ligne 1 : 3 colonnes"),
            (["", exercice], "introuvable"),
            ([exercice, ""], "introuvable"),
            ([self.file("pertinents", {"questions": [], "resultats": [], "documents_pertinents": []})], "dictionnaire"),
            ([self.file("nan", RUN + "q9 Q0 d1 1 nan t\n"), "--qrels", good_qrels], "ligne 6 : « nan »"),
            ([self.file("binaire", b"\xff Q0 d1 1 1.0 t\n"), "--qrels", good_qrels], "UTF-8"),
            ([self.file("coupe", gzip.compress(RUN.encode())[:40]), "--qrels", good_qrels], "fichier gzip corrompu"),
            ([self.file("autre", "zz Q0 d1 1 1.0 t\n"), "--qrels", good_qrels], "aucune de ses questions n'est jugée"),
            ([good_run, "--qrels", self.file("vide", "")], "aucune question jugée"),
            ([self.file("json", '{"a":\n }')], "ligne 2, colonne 2"),
            ([self.file("double", '{"q": {"a": 1}, "q": {"a": 2}}'), "--qrels", good_qrels], "répétée"),
            ([self.file("liste", [1, 2]), "--qrels", good_qrels], "{document: nombre}"),
            ([self.file("bool", {"q1": {"a": True}}), "--qrels", good_qrels], "q1"),
            ([self.file("enorme", '{"q1": {"a": 1' + "0" * 400 + "}}"), "--qrels", good_qrels], "q1"),
            ([self.file("manque", {"questions": [], "resultats": []})], "'documents_pertinents' manque"),
            ([self.exercice("chaine", ["abc"])], "'Q1'"),
            ([self.exercice("rien", [])], "aucune question"),
            ([self.exercice("nul", [[None]])], "identifiant"),
            ([exercice, "--k", "0"], "un entier d'au moins 1"),
            ([exercice, "--inconnu"], "arguments inconnus : --inconnu"),
            ([exercice, "--details", str(self.folder / "absent" / "d.jsonl")], "d.jsonl"),
        ]:
            self.assertIn(dit, self.script(*arguments, code=2))

    def test_moitie_d_emoji_dans_les_details(self):
        data = '{"questions": ["\\ud800"], "resultats": [["a"]], "documents_pertinents": {"\\ud800": "a"}}'
        self.script(self.file("a.json", data), "--details", str(self.folder / "d.jsonl"))
        self.assertEqual(json.loads((self.folder / "d.jsonl").read_text(encoding="utf-8"))["question"], "?")

    def test_sans_fichier_l_exemple(self):
        out = self.script()
        self.assertIn("AVANT [APRES]", out)
        self.assertRegex(out, r"MRR +0\.2500")

    def test_terminal_qui_n_est_pas_en_utf_8(self):
        for encoding in ("ascii", "cp1252"):
            done = subprocess.run(
                [sys.executable, "-X", "utf8=0", str(HERE / "retrieval_eval.py")],
                env={"PYTHONIOENCODING": encoding, "SYSTEMROOT": "C:\\Windows"},
                capture_output=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
