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
from array import array
from collections import UserList
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
        resultats = [["a", "b", "c"], ["x", "y", "z"]]
        bilan = evaluer_retrieval(["Q1", "Q2"], resultats, {"Q1": "b", "Q2": "z"}, k=3)
        self.assertEqual(bilan["hit_rate"], 1.0)
        self.assertEqual([detail["position"] for detail in bilan["details"]], [2, 3])

    def test_document_absent(self):
        bilan = evaluer_retrieval(["Q1"], [["a", "b", "c"]], {"Q1": "inconnu"}, k=3)
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (0.0, 0.0))
        self.assertEqual(bilan["details"][0]["position"], 0)

    def test_premier_et_deuxieme(self):
        resultats = [["bon", "x"], ["x", "bon"]]
        bilan = evaluer_retrieval(["Q1", "Q2"], resultats, {"Q1": "bon", "Q2": "bon"}, k=5)
        self.assertEqual(bilan["mrr"], 0.75)

    def test_le_mrr_regarde_au_dela_de_k(self):
        resultats = [["a", "bon"], ["bon", "a"], ["a", "b", "c", "bon"]]
        questions = ["Q1", "Q2", "Q3"]
        bilan = evaluer_retrieval(questions, resultats, dict.fromkeys(questions, "bon"), k=2)
        self.assertEqual(bilan["hit_rate"], 0.6667)
        self.assertEqual(bilan["mrr"], 0.5833)  # (1/2 + 1 + 1/4) / 3
        detail = {"question": "Q3", "position": 4, "hit": False, "reciprocal_rank": 0.25}
        self.assertEqual(bilan["details"][2], detail)


class Texte(str):
    """Une chaîne comme celles de numpy (numpy.str_) : d'une classe dérivée de str."""


class Entier(int):
    """Un entier comme ceux de numpy (numpy.int64) : indexable sans être une liste."""

    def __getitem__(self, index):
        raise IndexError


class Fonction(unittest.TestCase):
    """Ce que l'énoncé ne dit pas, une règle par test."""

    def test_plusieurs_documents_pertinents_le_premier_trouve_compte(self):
        for pertinents in (["c", "b"], {"c", "b"}, ("c", "b"), frozenset("cb")):
            bilan = evaluer_retrieval(["Q"], [["a", "b", "c"]], {"Q": pertinents})
            self.assertEqual(bilan["mrr"], 0.5)

    def test_liste_vide_compte_au_denominateur(self):
        bilan = evaluer_retrieval(["Q1", "Q2"], [["bon"], []], {"Q1": "bon", "Q2": "bon"})
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (0.5, 0.5))
        self.assertEqual(bilan["details"][1]["position"], 0)

    def test_document_repete_compte_une_fois(self):
        bilan = evaluer_retrieval(["Q"], [["bon", "bon", "bon"]], {"Q": "bon"})
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (1.0, 1.0))

    def test_question_repetee_compte_chaque_fois(self):
        bilan = evaluer_retrieval(["Q", "Q"], [["bon"], ["x", "bon"]], {"Q": "bon"})
        self.assertEqual((bilan["mrr"], len(bilan["details"])), (0.75, 2))

    def test_rang_reciproque_non_arrondi(self):
        bilan = evaluer_retrieval(["Q"], [["a", "b", "bon"]], {"Q": "bon"})
        self.assertEqual(bilan["mrr"], 0.3333)
        self.assertEqual(bilan["details"][0]["reciprocal_rank"], 1 / 3)

    def test_aucune_question(self):
        bilan = evaluer_retrieval([], [], {})
        self.assertEqual(bilan, {"hit_rate": 0.0, "mrr": 0.0, "details": []})

    def test_identifiants_de_numpy(self):
        for pertinent in (12, Entier(12), [Entier(12)]):
            bilan = evaluer_retrieval(["Q"], [[Entier(7), Entier(12)]], {"Q": pertinent})
            self.assertEqual(bilan["mrr"], 0.5)

    def test_toute_suite_ordonnee(self):
        """Listes, tuples, et ce qui se comporte comme eux (les tableaux de numpy, par exemple)."""
        for documents in (
            [7, 12],
            (7, 12),
            array("q", [7, 12]),
            UserList([7, 12]),
            range(7, 13, 5),
        ):
            for suite in (list, tuple, UserList):
                bilan = evaluer_retrieval(suite(["Q"]), suite([documents]), {"Q": 12})
                self.assertEqual(bilan["mrr"], 0.5)

    def test_chaine_d_une_classe_derivee(self):
        bilan = evaluer_retrieval([Texte("Q")], [[Texte("a"), Texte("b")]], {"Q": Texte("b")})
        self.assertEqual(bilan["mrr"], 0.5)

    def test_au_rang_1_hit_rate_et_mrr_se_confondent(self):
        positions = [1, 0, 3, 1, 2, 0, 7]
        hit_rate, mrr_at_1, _ = retrieval_eval.metrics(positions, 1)
        self.assertEqual(hit_rate, mrr_at_1)
        self.assertEqual(hit_rate, 0.2857)  # 2 questions sur 7

    def test_fautes_nommees(self):
        un = {"Q1": "a"}
        for arguments, faute, dit in [
            ((["Q1", "Q2"], [["a"]], un), ValueError, "questions : 2, listes de résultats : 1"),
            ((["Q1"], [["a"]], un, 0), ValueError, "k : au moins 1"),
            ((["Q1"], [["a"]], un, True), TypeError, "k : un entier"),
            ((["Q1"], [["a"]], un, 2.0), TypeError, "k : un entier"),
            ((["Q1"], [["a"]], {}), ValueError, "'Q1' n'a pas de document pertinent"),
            ((["Q1"], [["a"]], {"Q1": []}), ValueError, "'Q1' n'a pas de document pertinent"),
            ((["Q1"], ["abc"], un), TypeError, "'Q1' : une liste de documents"),
            ((["Q1"], [{"a"}], un), TypeError, "'Q1' : une liste de documents"),
            ((["Q1"], [{"a": 1}], un), TypeError, "'Q1' : une liste de documents"),
            ((["Q1"], [iter("a")], un), TypeError, "'Q1' : une liste de documents"),
            ((["Q1"], [["a"]], {"Q1": {"a": 1}}), TypeError, "'Q1'"),
            (("Q1", [["a"]] * 2, {"Q": "a", "1": "a"}), TypeError, "questions, resultats"),
            ((["Q1"], "a", un), TypeError, "questions, resultats"),
            ((["Q1"], {"a"}, un), TypeError, "questions, resultats"),
            ((["Q1"], [["a"]], ["a"]), TypeError, "documents_pertinents : un dict"),
        ]:
            with self.assertRaisesRegex(faute, dit):
                evaluer_retrieval(*arguments)


class Permutation(unittest.TestCase):
    """Le même test que dans eval_cv.py, qui doit pouvoir se copier seul."""

    def test_a_la_main(self):
        self.assertEqual(p_value([1, 2, 3]), 2 / 8)
        self.assertEqual(
            p_value([3, 2, 1, -1]), 6 / 16
        )  # 7 d'une façon, 5 de deux, et leurs opposés
        self.assertEqual(p_value([0.0, 0.0]), 1.0)
        self.assertEqual(p_value([1 / 3, 1 / 6, -1 / 2] * 2), 1.0)  # nulle, à un arrondi près

    def test_tirages_au_hasard(self):
        # 2 × P(X >= 15 | n = 20), puis 2 × P(X >= 1031 | n = 2061), qui vaut 1.
        self.assertAlmostEqual(p_value([1] * 15 + [-1] * 5), 0.0414, delta=0.01)
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
        """Lance `main` ; rend ce qu'il affiche sur ses deux sorties, son code étant vérifié."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            got = retrieval_eval.main(arguments)
        for stream in (out, err):
            stream.flush()
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        self.assertEqual(got, code, "".join(texts))
        return texts

    def json(self, *arguments):
        return json.loads(self.script("--json", *arguments)[0])

    def exercice(self, name, resultats, pertinents=None):
        questions = [f"Q{number}" for number in range(1, len(resultats) + 1)]
        pertinents = pertinents or dict.fromkeys(questions, "bon")
        data = {"questions": questions, "resultats": resultats}
        return self.file(name, {**data, "documents_pertinents": pertinents})


# Un même run dans tous les formats : pour q1, d1 puis d2 puis d3, et d2 est pertinent ; pour q2,
# d9, jugé sans intérêt ; q3 manque au run ; « inconnue » manque aux jugements.
RUNS = {
    "TREC": """\
q1 Q0 d1 1 3.0 essai
q1 Q0 d2 2 2.0 essai
q1 Q0 d3 3 1.0 essai
q2\tQ0\td9  1\t0.5\tessai
inconnue Q0 d1 1 1.0 essai
""",
    "MS MARCO": "q1\td1\t1\nq1\td2\t2\nq1\td3\t3\nq2\td9\t1\ninconnue\td1\t1\n",
    "JSON": {"q1": {"d3": 1.0, "d1": 3.0, "d2": 2}, "q2": {"d9": 0.5}, "inconnue": {"d1": 1.0}},
    "sentence-transformers": """\
{"query_id": "q1", "query": "Où ?", "results": [{"corpus_id": "d1", "score": 0.9}, \
{"corpus_id": "d2", "score": 0.8}, {"corpus_id": "d3", "score": 0.7}]}
{"query_id": "q2", "query": "Qui ?", "results": [{"corpus_id": "d9", "score": 0.5}]}
{"query_id": "inconnue", "query": "?", "results": [{"corpus_id": "d1", "score": 0.5}]}
""",
}
QRELS = {
    "TREC": "q1 0 d2 1\nq1 0 d1 0\nq2 0 d9 0\nq3 0 d4 2\n",
    "BEIR": "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t0\nq2\td9\t0\nq3\td4\t2\n",
    "BEIR sans en-tête": "q1\td2\t1\nq1\td1\t0\nq2\td9\t0\nq3\td4\t2\n",
    "JSON": {"q1": {"d2": 1, "d1": 0}, "q2": {"d9": 0}, "q3": {"d4": 2}},
}
# d2 est deuxième pour q1 ; 0 pour q2 et q3 : Hit Rate@2 = 1/3, MRR = (1/2) / 3.
BILAN = {"hit_rate": {"1": 0.0, "2": 0.3333}, "mrr_at_k": {"1": 0.0, "2": 0.1667}, "mrr": 0.1667}
BILAN |= {"questions": 3, "sans_resultat": 1, "sans_jugement": 1}


class Formats(AvecFichiers):
    def check(self, run, qrels):
        run, qrels = self.file("run", run), self.file("qrels", qrels)
        bilan = self.json(run, "--qrels", qrels, "--k", "1", "2")["avant"]
        self.assertEqual(bilan, BILAN)

    def test_chaque_run_avec_chaque_fichier_de_jugements(self):
        for run_name, run in RUNS.items():
            for qrels_name, qrels in QRELS.items():
                with self.subTest(run=run_name, qrels=qrels_name):
                    self.check(run, qrels)

    def test_reference_ms_marco_a_deux_colonnes(self):
        run, qrels = self.file("run", RUNS["MS MARCO"]), self.file("qrels", "q1\td2\nq3\td4\n")
        bilan = self.json(run, "--qrels", qrels, "--k", "2")["avant"]
        self.assertEqual((bilan["mrr"], bilan["hit_rate"]["2"]), (0.25, 0.5))  # (1/2 + 0) / 2
        self.assertEqual((bilan["questions"], bilan["sans_jugement"]), (2, 2))

    def test_gzip_reconnu_a_son_contenu(self):
        for run in ("TREC", "sentence-transformers"):
            qrels = gzip.compress(QRELS["BEIR"].encode())
            self.check(gzip.compress(RUNS[run].encode()), qrels)

    def test_bom_fins_de_ligne_windows_et_lignes_vides(self):
        for name in ("TREC", "MS MARCO", "sentence-transformers"):
            run = b"\xef\xbb\xbf" + RUNS[name].replace("\n", "\r\n\r\n").encode()
            self.check(run, b"\xef\xbb\xbf" + QRELS["BEIR"].replace("\n", "\r\n").encode())

    def test_un_grand_run(self):
        lines = [
            f"q{q} Q0 d{rank} {rank} {1000 - rank} essai"
            for q in range(50)
            for rank in range(1, 1001)
        ]
        qrels = "".join(f"q{q} 0 d{q + 1} 1\n" for q in range(50))  # en position q + 1
        run = self.file("run", "\n".join(lines))
        bilan = self.json(run, "--qrels", self.file("qrels", qrels))["avant"]
        self.assertEqual(bilan["mrr"], round(sum(1 / (q + 1) for q in range(50)) / 50, 4))

    def mrr(self, run, qrels):
        return self.json(self.file("run", run), "--qrels", self.file("qrels", qrels))["avant"][
            "mrr"
        ]

    def test_le_score_decide_pas_la_colonne_du_rang(self):
        self.assertEqual(self.mrr("q Q0 a 1 1.0 t\nq Q0 b 2 5.0 t\n", "q 0 b 1\n"), 1.0)

    def test_le_plus_petit_rang_d_abord(self):
        self.assertEqual(self.mrr("q\ta\t2\nq\tb\t10\nq\tc\t1\n", "q\tb\n"), 0.3333)  # c, a, b

    def test_ex_aequo_par_identifiant_decroissant(self):
        self.assertEqual(self.mrr({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": {"b": 1}}), 0.5)

    def test_scores_compares_en_simple_precision_comme_trec_eval(self):
        self.assertEqual(self.mrr({"q": {"a": 1.00000001, "b": 1.0}}, {"q": {"a": 1}}), 0.5)

    def test_les_predictions_gardent_leur_ordre(self):
        results = [{"corpus_id": name, "score": 0.5} for name in "abc"]
        run = json.dumps({"query_id": "q", "query": "?", "results": results})
        self.assertEqual(self.mrr(run, {"q": {"b": 1}}), 0.5)  # a, b, c, malgré les ex æquo

    def test_document_repete_compte_a_sa_premiere_ligne(self):
        self.assertEqual(
            self.mrr("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 b 3 9 t\n", "q 0 b 1\n"), 0.3333
        )

    def test_identifiants_nombres_ou_textes(self):
        data = {"questions": [1], "resultats": [[7, 12]], "documents_pertinents": {"1": "12"}}
        self.assertEqual(self.json(self.file("a.json", data))["avant"]["mrr"], 0.5)

    def test_exercice_avec_plusieurs_pertinents_et_question_repetee(self):
        data = {"questions": ["Q", "Q"], "resultats": [["a", "b"], []]}
        path = self.file("a.json", {**data, "documents_pertinents": {"Q": ["b", "c"]}})
        bilan = self.json(path)["avant"]
        self.assertEqual((bilan["mrr"], bilan["questions"], bilan["sans_resultat"]), (0.25, 2, 1))

    def test_question_sans_resultat_dans_un_run_json(self):
        run = self.file("run", {"q1": {}, "q2": {"d": 1}})
        qrels = self.file("qrels", {"q1": {"d": 1}, "q2": {"d": 1}})
        bilan = self.json(run, "--qrels", qrels)["avant"]
        self.assertEqual((bilan["mrr"], bilan["sans_resultat"]), (0.5, 1))


class Comparaison(AvecFichiers):
    def test_ecarts_et_mouvements(self):
        avant = self.exercice("avant.json", [["bon"], ["x", "bon"], ["x"], ["bon"]])
        apres = self.exercice("apres.json", [["x", "bon"], ["bon"], ["bon"], ["bon"]])
        bilan = self.json(avant, apres, "--k", "1")
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.625, 0.875))
        found = bilan["comparaison"]
        # Écarts : -1/2, +1/2, +1, 0. Moyenne 1/4, écart type √(5/12), divisé par √4 questions. Sur
        # 8 tirages de signes, 6 sont au moins aussi loin de zéro que 1 : 2, 1, 1 et leurs opposés.
        mrr = {"difference": 0.25, "standard_error": 0.3227, "p_value": 0.75}
        self.assertEqual(found["mrr"], mrr)
        # Hits : -1, +1, +1, 0 ; tous les tirages de trois signes ont une somme d'au moins 1.
        hit_rate = {"difference": 0.25, "standard_error": 0.4787, "p_value": 1.0}
        self.assertEqual(found["hit_rate"], hit_rate)
        self.assertEqual([found[name] for name in ("hausse", "baisse", "stable")], [2, 1, 1])

    def test_les_plus_fortes_baisses_et_une_phrase(self):
        avant = self.exercice("avant.json", [["bon"]] * 7)
        apres = self.exercice("apres.json", [["x", "bon"], ["x"], *[["bon"]] * 5])
        out, _ = self.script(avant, apres)
        self.assertIn("'Q2' : position 1 → absent", out)
        self.assertLess(out.index("'Q2'"), out.index("'Q1'"))
        self.assertNotIn("'Q3'", out)
        self.assertIn("trop peu de questions ont bougé pour conclure", out)
        self.assertRegex(out, r"MRR +1\.0000 +0\.7857 +-0\.2143")  # (5 + 1/2) / 7

    def test_six_questions_permettent_de_conclure(self):
        avant = self.exercice("avant.json", [["x", "bon"]] * 6)
        out, _ = self.script(avant, self.exercice("apres.json", [["bon"]] * 6))
        self.assertIn("p = 0.031 ; un tel écart serait rare", out)

    def test_memes_questions_exigees(self):
        avant = self.exercice("avant.json", [["bon"], ["bon"]])
        autre = self.exercice("autre.json", [["bon"], ["bon"]], {"Q1": "bon", "Q2": "autre"})
        err = self.script(avant, autre, code=2)[1]
        self.assertIn("avant.json et ", err)
        self.assertIn("autre.json : 'Q2'", err)
        court = self.exercice("court.json", [["bon"]])
        self.assertIn("'Q2'", self.script(avant, court, code=2)[1])

    def test_deux_formats_et_les_memes_jugements(self):
        qrels = self.file("qrels", QRELS["BEIR"])
        paths = [self.file(name, run) for name, run in RUNS.items()]
        exercice = {"questions": ["q1", "q3"], "resultats": [["d2"], ["d4"]]}
        for avant in paths:
            for apres in paths:
                bilan = self.json(avant, apres, "--qrels", qrels)
                self.assertEqual(bilan["comparaison"]["mrr"]["difference"], 0.0)
        exercice = self.file(
            "ex.json", {**exercice, "documents_pertinents": {"q1": "d2", "q3": "d4"}}
        )
        qrels = self.file("qrels2", "q1 0 d2 1\nq3 0 d4 1\n")
        bilan = self.json(paths[0], exercice, "--qrels", qrels)
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.25, 1.0))

    def test_histogramme(self):
        resultats = [["bon"], ["x", "bon"], ["x"] * 11 + ["bon"], ["x"], []]
        out, _ = self.script(self.exercice("a.json", resultats))
        for line in ("1 à 1       1", "2 à 5       1", "11 ou plus       1", "absent       2"):
            self.assertIn(line, out)


class Fautes(AvecFichiers):
    """Une phrase qui nomme le fichier, la ligne et la faute, et le code 2."""

    def test_fichiers(self):
        qrels = ("--qrels", self.file("qrels", QRELS["TREC"]))
        run, exercice = self.file("run", RUNS["TREC"]), self.exercice("exercice.json", [["bon"]])
        trec = RUNS["TREC"]
        vide = {"questions": [], "resultats": []}
        for arguments, dit in [
            ([str(self.folder / "absent")], "absent : fichier introuvable"),
            ([str(self.folder)], f"{self.folder} : lecture impossible"),
            ([run], "aucune de ses questions n'est dans --qrels ('inconnue' et '')"),
            (
                [self.file("court", trec + "q9 Q0 d1 1 3.0\n"), *qrels],
                "court : ligne 6 : 6 colonnes",
            ),
            (
                [self.file("decale", "a Q0 d 1 1 t\nb Q0 d 1 1 t u\n"), *qrels],
                "ligne 2 : 6 colonnes",
            ),
            ([self.file("etroit", "a d\n"), *qrels], "ligne 1 : 2 colonnes et non 6 ou 3"),
            ([self.file("texte", "\n" + trec + "q9 Q0 d1 1 x t\n"), *qrels], "ligne 7 : "),
            ([self.file("entete", "qid did rank\nq1 d1 1\n"), *qrels], "entete : ligne 1 : "),
            (
                [run, "--qrels", self.file("q3", QRELS["BEIR"].replace("score", "note"))],
                "ligne 1 : ",
            ),
            ([self.file("nan", trec + "q9 Q0 d1 1 nan t\n"), *qrels], "nan : ligne 6 : "),
            ([self.file("nanj", '{"q1": {"d1": NaN}}'), *qrels], "NaN"),
            ([self.file("binaire", b"\xff Q0 d1 1 1.0 t\n"), *qrels], "UTF-8"),
            (
                [self.file("coupe", gzip.compress(trec.encode())[:40]), *qrels],
                "fichier gzip corrompu",
            ),
            ([self.file("autre", "zz Q0 d1 1 1.0 t\n"), *qrels], "('zz' et 'q1')"),
            ([run, "--qrels", self.file("vide", "")], "vide : ligne 1 : 0 colonnes"),
            ([self.file("json", '{"a":\n }')], "json : JSON invalide, ligne 2, colonne 2"),
            ([self.file("double", '{"q": {"a": 1}, "q": {"a": 2}}'), *qrels], "répétée"),
            ([self.file("disperse", trec + "q1 Q0 d4 4 0.5 t\n"), *qrels], "'q1' y revient"),
            (
                [self.file("pred", '{"query_id": "q1"}\n'), *qrels],
                "pred : ligne 1 : une prédiction",
            ),
            ([self.file("deux", RUNS["sentence-transformers"] * 2), *qrels], "y revient"),
            ([self.file("bool", {"q1": {"a": True}}), *qrels], "q1"),
            ([self.file("manque", vide)], "'documents_pertinents' manque"),
            ([self.file("liste", {**vide, "documents_pertinents": []})], "un dict"),
            ([self.exercice("chaine", ["abc"])], "'Q1' : une liste"),
            ([self.exercice("rien", [])], "aucune de ses questions"),
            ([self.file("profond", '{"a":' * 100_000), *qrels], "trop imbriqué"),
            ([exercice, "--k", "0"], "--k : un entier d'au moins 1"),
            ([exercice, "--inconnu"], "--inconnu"),
        ]:
            err = self.script(*arguments, code=2)[1]
            self.assertIn(dit, err)
            self.assertEqual(err.count("\n"), 1, err)

    def test_identifiants_qui_ne_se_rencontrent_jamais(self):
        run = self.file("run", "q1 Q0 doc1_chunk3 1 2.0 t\n")
        out, err = self.script(run, "--qrels", self.file("qrels", "q1 0 doc1 1\n"))
        self.assertRegex(out, r"MRR +0\.0000")
        self.assertIn("comparez doc1_chunk3 et doc1", err)
        out, err = self.script(self.exercice("a.json", [["bon_1"]]))
        self.assertIn("comparez bon_1 et bon", err)

    def test_sans_fichier_l_exemple(self):
        example = json.loads(self.script()[0])
        self.assertEqual((example["hit_rate"], example["mrr"]), (0.5, 0.25))

    def test_terminal_qui_n_est_pas_en_utf_8(self):
        data = {"questions": ["É"], "resultats": [["→"]], "documents_pertinents": {"É": "→"}}
        path = self.file("a.json", data)
        for encoding in ("ascii", "cp1252"):
            done = subprocess.run(
                [sys.executable, "-X", "utf8=0", str(HERE / "retrieval_eval.py"), path, path],
                env={"PYTHONIOENCODING": encoding, "SYSTEMROOT": "C:\\Windows"},
                capture_output=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
