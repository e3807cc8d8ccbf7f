"""Les tests de retrieval_eval.py : les valeurs de l'exercice d'abord, puis une règle par test.

python3 -m unittest test_retrieval
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from array import array
from collections import Counter, UserList
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import retrieval_eval
from retrieval_eval import comparer_retrieval, evaluer_retrieval, interval

HERE = Path(__file__).resolve().parent
SCRIPT = str(HERE / "retrieval_eval.py")


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
        suites = [[7, 12], (7, 12), array("q", [7, 12]), UserList([7, 12]), range(7, 13, 5)]
        for documents in suites:
            for suite in (list, tuple, UserList):
                bilan = evaluer_retrieval(suite(["Q"]), suite([documents]), {"Q": 12})
                self.assertEqual(bilan["mrr"], 0.5)

    def test_chaine_d_une_classe_derivee(self):
        bilan = evaluer_retrieval([Texte("Q")], [[Texte("a"), Texte("b")]], {"Q": Texte("b")})
        self.assertEqual(bilan["mrr"], 0.5)

    def test_les_details_en_entier(self):
        """Aux positions 0, 1, k et k + 1."""
        resultats = [["x"], ["bon", "x"], ["x", "bon"], ["x", "y", "bon"]]
        questions = ["Q0", "Q1", "Qk", "Qk+1"]
        bilan = evaluer_retrieval(questions, resultats, dict.fromkeys(questions, "bon"), k=2)
        attendu = [("Q0", 0, False, 0.0), ("Q1", 1, True, 1.0), ("Qk", 2, True, 0.5)]
        attendu.append(("Qk+1", 3, False, 1 / 3))
        cles = ("question", "position", "hit", "reciprocal_rank")
        self.assertEqual(bilan["details"], [dict(zip(cles, valeurs)) for valeurs in attendu])
        self.assertEqual([list(detail) for detail in bilan["details"]], [list(cles)] * 4)
        self.assertEqual((bilan["hit_rate"], bilan["mrr"]), (0.5, 0.4583))  # (1 + 1/2 + 1/3) / 4

    def test_au_rang_1_hit_rate_et_mrr_se_confondent(self):
        counts = Counter([1, 0, 3, 1, 2, 0, 7])
        hit_rate = retrieval_eval.hit_rate(counts, 1)
        self.assertEqual(hit_rate, retrieval_eval.mean_reciprocal_rank(counts, 1))
        self.assertEqual(hit_rate, 0.2857)  # 2 questions sur 7

    def test_k_vaut_5_si_on_ne_le_dit_pas(self):
        resultats = [["x"] * 4 + ["bon"], ["x"] * 5 + ["bon"]]
        bilan = evaluer_retrieval(["Q5", "Q6"], resultats, {"Q5": "bon", "Q6": "bon"})
        self.assertEqual([detail["hit"] for detail in bilan["details"]], [True, False])

    def test_k_1_ne_compte_que_les_premiers(self):
        resultats = [["bon"], ["x", "bon"]]
        bilan = evaluer_retrieval(["Q1", "Q2"], resultats, {"Q1": "bon", "Q2": "bon"}, k=1)
        self.assertEqual(bilan["hit_rate"], 0.5)

    def test_identifiants_de_deux_types_quand_rien_n_est_trouve(self):
        cas = [
            ([3, 7], "7", r"« 7 » \(un nombre\) dans resultats, « 7 » \(un texte\)"),
            ([("a", 0.5)], "a", r"\(de type tuple\) dans resultats, « a » \(un texte\)"),
            ([["a", 0.5]], ["a"], r"\(de type list\) dans resultats, « a » \(un texte\)"),
            ([("a",)], b"a", r"\(de type tuple\) dans resultats, « b'a' » \(de type bytes\)"),
            (["7"], [7, 8], r"\(un texte\) dans resultats, « 8 » \(un nombre\)"),
        ]
        for documents, pertinent, dit in cas:
            with self.assertRaisesRegex(TypeError, dit):
                evaluer_retrieval(["Q"], [documents], {"Q": pertinent})

    def test_des_identifiants_du_meme_type_peuvent_etre_absents(self):
        cas = [(["a"], "b"), ([Texte("a")], "b"), ([Entier(7)], 8), ([7.0], Entier(8))]
        cas += [([7, "a"], "b"), ([], "b")]
        for documents, pertinent in cas:
            self.assertEqual(evaluer_retrieval(["Q"], [documents], {"Q": pertinent})["mrr"], 0.0)

    def test_deux_types_dont_l_un_a_ete_trouve(self):
        bilan = evaluer_retrieval(["Q1", "Q2"], [["a"], [7]], {"Q1": "a", "Q2": "7"})
        self.assertEqual(bilan["mrr"], 0.5)

    def refuse(self, faute, dit, questions, resultats, pertinents, k=5):
        with self.assertRaisesRegex(faute, dit):
            evaluer_retrieval(questions, resultats, pertinents, k)

    def test_k_est_un_entier_d_au_moins_1(self):
        for k, faute in [(0, ValueError), (-1, ValueError), (True, TypeError), (2.0, TypeError)]:
            self.refuse(
                faute, "k : un entier .*est attendu, et non", ["Q1"], [["a"]], {"Q1": "a"}, k
            )

    def test_autant_de_resultats_que_de_questions(self):
        dit = "est 2, et celui des listes de résultats est 1 ; il faut une liste par question$"
        self.refuse(ValueError, dit, ["Q1", "Q2"], [["a"]], {"Q1": "a"})

    def test_chaque_question_a_un_document_pertinent(self):
        for pertinents in ({}, {"Q1": []}, {"Q1": None}, {"Q1": set()}):
            dit = "« Q1 » n'a pas de document pertinent"
            self.refuse(ValueError, dit, ["Q1"], [["a"]], pertinents)

    def test_les_arguments_sont_des_listes_et_un_dictionnaire(self):
        un = {"Q1": "a"}
        for documents in ("abc", {"a"}, {"a": 1}, iter("a")):
            self.refuse(TypeError, "« Q1 » : une liste de documents", ["Q1"], [documents], un)
        dit = "« Q1 » : un document pertinent, ou"
        self.refuse(TypeError, dit, ["Q1"], [["a"]], {"Q1": {"a": 1}})
        dit = "questions et resultats : deux listes"
        self.refuse(TypeError, dit, "Q1", [["a"]] * 2, {"Q": "a", "1": "a"})
        self.refuse(TypeError, dit, ["Q1"], "a", un)
        self.refuse(TypeError, dit, ["Q1"], {"a"}, un)
        self.refuse(TypeError, "documents_pertinents : un dict", ["Q1"], [["a"]], ["a"])


def bilan_de(*positions, k=5):
    """Ce que rend `evaluer_retrieval` quand le bon document est à ces positions (0 : absent)."""
    questions = [f"Q{numero}" for numero in range(1, len(positions) + 1)]
    resultats = [["x"] * (p - 1) + ["bon"] if p else ["x"] for p in positions]
    return evaluer_retrieval(questions, resultats, dict.fromkeys(questions, "bon"), k)


class Intervalle(unittest.TestCase):
    def test_a_la_main(self):
        # Moyenne 3,5 ; variance 17,5 / 5 = 3,5 ; Student à 5 degrés de liberté : 1,96 + 2,37/5 +
        # 2,82/25 = 2,5468 ; marge 2,5468 × √3,5 / √6 = 1,9452.
        low, high = interval([1, 2, 3, 4, 5, 6])
        self.assertAlmostEqual(low, 1.5548, delta=0.0001)
        self.assertAlmostEqual(high, 5.4452, delta=0.0001)

    def test_student_a_1_pour_cent(self):
        """Le quantile à 97,5 % des tables, de 5 à 1 000 degrés de liberté."""
        for degres, quantile in [(5, 2.571), (9, 2.262), (19, 2.093), (49, 2.010), (999, 1.962)]:
            n = degres + 1
            gaps = [-1, 1] * (n // 2)  # d'écart type √(n / (n - 1)) : marge quantile / √(n - 1)
            low, high = interval(gaps)
            self.assertAlmostEqual(low, -high)
            self.assertAlmostEqual(high * degres**0.5 / quantile, 1, delta=0.01)

    def test_sous_six_ecarts_ou_tous_egaux_pas_d_intervalle(self):
        for gaps in ([], [1], [1, 2, 3, 4, 5], [0.5] * 6, [0] * 100):
            self.assertIsNone(interval(gaps))

    def test_un_arrondi_n_est_pas_un_ecart(self):
        self.assertIsNone(interval([0.1 + 0.2, 0.3] * 3))
        self.assertIsNotNone(interval([0.300000002, 0.3] * 3))


class ComparerRetrieval(unittest.TestCase):
    """De Python : on compare ce qu'`evaluer_retrieval` a rendu avant et après."""

    def test_absents_avant_et_apres_a_k_5(self):
        avant = bilan_de(0, 0, 6, 1, 2, 1, 5)
        apres = bilan_de(0, 1, 5, 0, 1, 2, 6)
        # Rangs : 0, +1, 1/5 - 1/6, -1, +1/2, -1/2, 1/6 - 1/5. Somme 0.
        # Hits : 0, +1, +1, -1, 0, 0, -1 : quatre questions seulement ont changé.
        found = comparer_retrieval(avant, apres)
        self.assertEqual(found["mrr"]["difference"], 0.0)
        # Écart type √((2 × 1 + 2 × 1/4 + 2/900) / 6) = 0,6458 ; Student à 6 degrés de liberté :
        # 1,96 + 2,37/6 + 2,82/36 = 2,4333 ; marge 2,4333 × 0,6458 / √7 = 0,5939.
        self.assertEqual(found["mrr"]["interval"], [-0.5939, 0.5939])
        self.assertEqual(found["hit_rate"], {"difference": 0.0, "interval": None})
        self.assertEqual([found[name] for name in ("hausse", "baisse", "stable")], [3, 3, 1])
        self.assertEqual(list(found), ["mrr", "hit_rate", "hausse", "baisse", "stable"])

    def test_six_questions_doivent_avoir_change(self):
        stables = [1] * 10
        cinq = comparer_retrieval(bilan_de(*[2] * 5, *stables), bilan_de(*[1] * 5, *stables))
        self.assertIsNone(cinq["mrr"]["interval"])
        six = comparer_retrieval(bilan_de(*[2] * 6, *stables), bilan_de(*[1] * 6, *stables))
        # Seize écarts, six de 1/2 : moyenne 0,1875, écart type 1/4 ; Student à 15 degrés de liberté
        # 1,96 + 2,37/15 + 2,82/225 = 2,1305 ; marge 2,1305 / 16 = 0,1332.
        self.assertEqual(six["mrr"], {"difference": 0.1875, "interval": [0.0543, 0.3207]})

    def test_la_difference_est_celle_des_valeurs_affichees(self):
        # 1/3 s'affiche 0.3333, 2/3 s'affiche 0.6667 : leur écart, 0.3334.
        found = comparer_retrieval(bilan_de(1, 0, 0), bilan_de(1, 1, 0))
        self.assertEqual(found["hit_rate"]["difference"], 0.3334)

    def test_les_memes_questions_dans_le_meme_ordre(self):
        def bilan(*questions):
            return evaluer_retrieval(questions, [["a"]] * len(questions), dict.fromkeys("ABC", "a"))

        for autres, dit in [
            ("AC", "la question n° 2 n'est pas la même : « B » avant, « C » après"),
            ("BA", "la question n° 1 n'est pas la même : « A » avant, « B » après"),
            ("ABC", "le nombre de questions est 2 avant, et 3 après"),
            ("A", "le nombre de questions est 2 avant, et 1 après"),
        ]:
            with self.assertRaisesRegex(ValueError, dit):
                comparer_retrieval(bilan("A", "B"), bilan(*autres))

    def test_aucune_question(self):
        rien = {"difference": 0.0, "interval": None}
        found = comparer_retrieval(bilan_de(), bilan_de())
        nombres = {"hausse": 0, "baisse": 0, "stable": 0}
        self.assertEqual(found, {"mrr": rien, "hit_rate": rien, **nombres})


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
BILAN |= {"questions": 3, "sans_resultat": 1, "sans_jugement": 1, "sans_pertinent": 1}
BILAN |= {"profondeur": 3}


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
        ranks, questions = range(1, 1001), range(50)
        lines = [f"q{q} Q0 d{rank} {rank} {1000 - rank} t" for q in questions for rank in ranks]
        qrels = "".join(f"q{q} 0 d{q + 1} 1\n" for q in range(50))  # en position q + 1
        run = self.file("run", "\n".join(lines))
        bilan = self.json(run, "--qrels", self.file("qrels", qrels))["avant"]
        self.assertEqual(bilan["mrr"], round(sum(1 / (q + 1) for q in range(50)) / 50, 4))

    def mrr(self, run, qrels):
        run, qrels = self.file("run", run), self.file("qrels", qrels)
        return self.json(run, "--qrels", qrels)["avant"]["mrr"]

    def test_le_score_decide_pas_la_colonne_du_rang(self):
        self.assertEqual(self.mrr("q Q0 a 1 1.0 t\nq Q0 b 2 5.0 t\n", "q 0 b 1\n"), 1.0)

    def test_trois_colonnes_un_nombre_a_decimales_est_un_score(self):
        run = "q1 dX 80.02\nq1 dA 82.41\n"
        self.assertEqual(self.mrr(run, "q1 0 dA 1\n"), 1.0)
        self.assertEqual(self.mrr("q a -1.5\nq b 1e1\n", "q 0 b 1\n"), 1.0)
        self.assertEqual(self.mrr("q a 1\nq b 1.5\n", "q 0 b 1\n"), 1.0)  # 1 aussi est un score

    def test_trois_colonnes_des_entiers_croissants_sont_des_rangs(self):
        for rangs in ("012", "123", "149"):
            run = "".join(f"q {name} {rang}\n" for name, rang in zip("abc", rangs))
            self.assertEqual(self.mrr(run, "q 0 b 1\n"), 0.5)

    def test_trois_colonnes_d_autres_entiers_sont_refuses(self):
        qrels = self.file("qrels", "q1 0 a 1\n")
        for nombres in ("321", "234", "113", "132", "5", ["-1", "0"], ["9" * 400]):
            run = "".join(f"q1 {name} {nombre}\n" for name, nombre in zip("abc", nombres))
            err = self.script(self.file("run", run), "--qrels", qrels, code=2)[1]
            self.assertIn("run : question « q1 » : les entiers de la troisième colonne", err)

    def test_le_premier_de_plusieurs_pertinents_trouves_malgre_des_ex_aequo(self):
        # Par score puis nom décroissants : c, puis e d b (ex æquo), puis a.
        run = {"q": {"a": 1.0, "b": 2.0, "c": 3.0, "d": 2.0, "e": 2.0}}
        self.assertEqual(self.mrr(run, {"q": {"b": 1, "d": 1, "a": 1}}), 0.3333)
        self.assertEqual(self.mrr(run, {"q": {"a": 1, "b": 1}}), 0.25)
        self.assertEqual(self.mrr(run, {"q": {"e": 1, "a": 1, "b": 1}}), 0.5)
        self.assertEqual(self.mrr(run, {"q": {"a": 2}}), 0.2)

    def test_plusieurs_pertinents_dans_un_ordre_sans_score(self):
        self.assertEqual(self.mrr("q a 1\nq b 2\nq c 3\n", "q 0 c 1\nq 0 b 1\n"), 0.5)

    def test_ex_aequo_par_identifiant_decroissant(self):
        self.assertEqual(self.mrr({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": {"b": 1}}), 0.5)

    def test_scores_compares_en_simple_precision_comme_trec_eval(self):
        self.assertEqual(self.mrr({"q": {"a": 1.00000001, "b": 1.0}}, {"q": {"a": 1}}), 0.5)

    def test_identifiants_a_virgule_dans_les_predictions(self):
        run = '{"query_id": 1.5, "results": [{"corpus_id": 2.5}]}'
        self.assertEqual(self.mrr(run, "1.5 0 2.5 1\n"), 1.0)

    def test_les_predictions_gardent_leur_ordre(self):
        results = [{"corpus_id": name, "score": 0.5} for name in "abc"]
        run = json.dumps({"query_id": "q", "query": "?", "results": results})
        self.assertEqual(self.mrr(run, {"q": {"b": 1}}), 0.5)  # a, b, c, malgré les ex æquo

    def test_document_repete_compte_a_sa_premiere_ligne(self):
        # b est jugé sur sa première ligne, et sa seconde tient une place devant lui.
        run = "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 b 3 9 t\n"
        self.assertEqual(self.mrr(run, "q 0 b 1\n"), 0.3333)

    def test_identifiants_nombres_ou_textes(self):
        data = {"questions": [1], "resultats": [[7, 12]], "documents_pertinents": {"1": "12"}}
        for attendu in ("12", 12, [12], ["12", 5]):
            data["documents_pertinents"] = {"1": attendu}
            self.assertEqual(self.json(self.file("a.json", data))["avant"]["mrr"], 0.5)
        run = '{"query_id": 1, "results": [{"corpus_id": 7}, {"corpus_id": 12}]}'
        self.assertEqual(self.mrr(run, "1 0 12 1\n"), 0.5)

    def test_un_nombre_est_un_nombre_en_json_entre_guillemets_ou_tres_long(self):
        self.assertEqual(self.mrr({"q": {"a": "9.5", "b": 10}}, {"q": {"a": "1"}}), 0.5)
        long = '{"q": {"a": 1' + "0" * 5000 + ', "b": 10}}'
        self.assertEqual(self.mrr(long, {"q": {"b": 1}}), 0.5)

    def test_identifiants_accentues(self):
        for run in ("é Q0 à 1 2.0 t\né Q0 ù 2 1.0 t\n", {"é": {"à": 2, "ù": 1}}):
            self.assertEqual(self.mrr(run, "é 0 ù 1\n"), 0.5)

    def test_un_fichier_de_l_exercice_sert_aussi_de_jugements(self):
        exercice = json.loads(Path(self.exercice("a.json", [["bon"], ["bon"]])).read_text())
        self.assertEqual(self.mrr("Q1 x 1\nQ1 bon 2\nQ2 x 1\n", exercice), 0.25)

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


def lance(*arguments, **options):
    """Lance le script dans un vrai processus."""
    options = {"capture_output": True, "encoding": "utf-8", **options}
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": ""}
    return subprocess.run([sys.executable, SCRIPT, *arguments], env=env, **options)


# MRR avant : (7/2 + 1) / 8 = 0,5625 ; après : 7/8. Écarts : sept de 1/2, un de -1 ; moyenne 0,3125,
# écart type √((7 × 0,1875² + 1,3125²) / 7) = 0,5303 ; Student à 7 degrés de liberté : 1,96 +
# 2,37/7 + 2,82/49 = 2,3561 ; marge 2,3561 × 0,5303 / √8 = 0,4418. Hits à 1 : sept de +1, un de
# -1 ; moyenne 0,75, écart type 0,7071, marge 0,5890.
ECRAN = """\
                     avant       après       écart
    Hit Rate@1      0.1250      0.8750     +0.7500
    Hit Rate@2      1.0000      0.8750     -0.1250
         MRR@1      0.1250      0.8750     +0.7500
         MRR@2      0.5625      0.8750     +0.3125
           MRR      0.5625      0.8750     +0.3125
     questions           8           8
 sans résultat           0           0
 sans jugement           0           0
rien à trouver           0           0
    profondeur           2           1

Questions en hausse : 7, en baisse : 1, stables : 0
Les plus fortes baisses, à lire d'abord :
  « Q8 » : position 1 → aucune
MRR : écart +0.3125, intervalle à 95 % de -0.1293 à +0.7543 ; il contient 0 : \
on ne sait pas si la recherche ferait mieux sur d'autres questions.
Hit Rate@1 : écart +0.7500, intervalle à 95 % de +0.1610 à +1.3390 ; il exclut 0 : \
la recherche fait mieux, et pas seulement sur ces questions.
"""
TROP_PEU = "sans intervalle, car trop peu de questions ont changé de résultat "
TROP_PEU += "({} ; il en faut au moins 6)."
EGAUX = "sans intervalle, car toutes les questions ont le même écart."
AVERTISSEMENT = """\
retrieval_eval.py : la profondeur est de 2 avant, et de 1 après : au-delà de la position \
1, les mesures ne se comparent pas ; gardez le même nombre de documents dans les deux fichiers
"""


class Comparaison(AvecFichiers):
    def test_ecarts_et_mouvements(self):
        avant = self.exercice("avant.json", [["bon"], ["x", "bon"], ["x"], ["bon"]])
        apres = self.exercice("apres.json", [["x", "bon"], ["bon"], ["bon"], ["bon"]])
        bilan = self.json(avant, apres, "--k", "1")
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.625, 0.875))
        # Écarts : -1/2, +1/2, +1, 0 ; hits : -1, +1, +1, 0. Trop peu pour un intervalle.
        rien = {"difference": 0.25, "interval": None}
        nombres = {"hausse": 2, "baisse": 1, "stable": 1}
        self.assertEqual(bilan["comparaison"], {"mrr": rien, "hit_rate": rien, **nombres})
        self.assertEqual(list(bilan), ["avant", "apres", "comparaison"])

    def positions(self, name, positions):
        return self.exercice(name, [["x"] * (p - 1) + ["bon"] if p else ["x"] for p in positions])

    def phrases(self, avant, apres, *options):
        """Les deux dernières phrases d'une comparaison : celles du MRR et du Hit Rate."""
        paths = self.positions("avant.json", avant), self.positions("apres.json", apres)
        lines = self.script(*paths, *options)[0].splitlines()
        return [line for line in lines if " : écart " in line]

    def test_un_ecran_entier_et_son_code(self):
        """Un vrai processus : sept questions en hausse d'une place, une en baisse."""
        avant = self.positions("avant.json", [2, 2, 2, 2, 2, 2, 2, 1])
        apres = self.positions("apres.json", [1, 1, 1, 1, 1, 1, 1, 0])
        done = lance(avant, apres, "--k", "1", "2")
        self.assertEqual((done.returncode, done.stderr), (0, AVERTISSEMENT))
        self.assertEqual(done.stdout, ECRAN)

    def test_ce_que_dit_l_intervalle(self):
        stables = [1] * 10
        meilleur = self.phrases([2] * 6 + stables, [1] * 6 + stables, "--k", "5")
        # Les nombres sont ceux de test_six_questions_doivent_avoir_change.
        attendu = "MRR : écart +0.1875, intervalle à 95 % de +0.0543 à +0.3207 ; il exclut 0 : "
        attendu += "la recherche fait mieux, et pas seulement sur ces questions."
        trop_peu = "Hit Rate@5 : écart +0.0000, " + TROP_PEU.format("0 sur 16")
        self.assertEqual(meilleur, [attendu, trop_peu])
        pire = self.phrases([1] * 6 + stables, [2] * 6 + stables, "--k", "1")
        # Hits : six de -1 sur seize, le double des écarts de rang.
        fin = "il exclut 0 : la recherche fait moins bien, et pas seulement sur ces questions."
        attendu = [f"MRR : écart -0.1875, intervalle à 95 % de -0.3207 à -0.0543 ; {fin}"]
        attendu += [f"Hit Rate@1 : écart -0.3750, intervalle à 95 % de -0.6413 à -0.1087 ; {fin}"]
        self.assertEqual(pire, attendu)
        indecis = self.phrases([1, 1, 1, 2, 2, 2], [2, 2, 2, 1, 1, 1])
        # Écarts ±1/2 : écart type √(6/4 / 5) = 0,5477 ; marge 2,5468 × 0,5477 / √6 = 0,5695.
        attendu = "MRR : écart +0.0000, intervalle à 95 % de -0.5695 à +0.5695 ; il contient 0 : "
        attendu += "on ne sait pas si la recherche ferait mieux sur d'autres questions."
        self.assertEqual(indecis[0], attendu)
        egaux = self.phrases([2] * 6, [1] * 6, "--k", "1")
        self.assertEqual(egaux[0], "MRR : écart +0.5000, " + EGAUX)
        peu = self.phrases([2] * 4 + [1] * 3, [1] * 4 + [2, 1, 1], "--k", "1")
        self.assertIn(TROP_PEU.format("5 sur 7"), peu[0])  # quatre en hausse, une en baisse

    def test_une_borne_affichee_nulle_n_exclut_pas_0(self):
        for bornes in ([0.0, 0.5], [-0.5, 0.0]):
            self.assertIn("contient 0", retrieval_eval.interval_meaning(bornes, 6, 6))

    def test_une_borne_presque_nulle_s_affiche_sans_signe_moins(self):
        self.assertEqual(f"{retrieval_eval.rounded(-0.00004):+.4f}", "+0.0000")

    def test_les_cinq_plus_fortes_baisses(self):
        avant = self.positions("avant.json", [1, 2, 1, 1, 1, 3, 1])
        apres = self.positions("apres.json", [2, 3, 0, 1, 4, 4, 5])
        out, _ = self.script(avant, apres)
        # Baisses : 1/2, 1/6, 1, 0, 3/4, 1/12, 4/5 ; la sixième, Q6, n'est pas dite.
        attendu = ["« Q3 » : position 1 → aucune", "« Q7 » : position 1 → 5"]
        attendu += ["« Q5 » : position 1 → 4", "« Q1 » : position 1 → 2"]
        attendu += ["« Q2 » : position 2 → 3"]
        lines = out.splitlines()
        start = lines.index("Les plus fortes baisses, à lire d'abord :")
        self.assertEqual(lines[start + 1 : start + 6], ["  " + line for line in attendu])
        self.assertNotIn("Q6", out)
        self.assertNotIn("Q4", out)

    def test_sans_baisse_aucune_n_est_annoncee(self):
        paths = self.positions("avant.json", [2, 1]), self.positions("apres.json", [1, 1])
        self.assertNotIn("baisses", self.script(*paths)[0])

    def test_profondeurs_differentes(self):
        avant = self.exercice("avant.json", [["bon"] + ["x"] * 19, ["bon"]])
        apres = self.exercice("apres.json", [["bon", "x", "y"], ["bon"]])
        out, err = self.script(avant, apres, "--k", "1", "10")
        self.assertIn(
            "la profondeur est de 20 avant, et de 3 après : au-delà de la position 3", err
        )
        self.assertRegex(out, r"\n +profondeur +20 +3\n")
        self.assertEqual(self.script(avant, avant)[1], "")

    def test_memes_questions_exigees(self):
        avant = self.exercice("avant.json", [["bon"], ["bon"]])
        autre = self.exercice("autre.json", [["bon"], ["bon"]], {"Q1": "bon", "Q2": "autre"})
        err = self.script(avant, autre, code=2)[1]
        self.assertIn("avant.json et ", err)
        self.assertIn("autre.json : la question « Q2 » manque à l'un d'eux, ou ses documents", err)
        court = self.exercice("court.json", [["bon"]])
        self.assertIn("« Q2 »", self.script(avant, court, code=2)[1])
        self.assertIn("« Q2 »", self.script(court, avant, code=2)[1])

    def test_deux_formats_et_les_memes_jugements(self):
        qrels = self.file("qrels", QRELS["BEIR"])
        paths = [self.file(name, run) for name, run in RUNS.items()]
        for avant in paths:
            for apres in paths:
                bilan = self.json(avant, apres, "--qrels", qrels)
                self.assertEqual(bilan["comparaison"]["mrr"]["difference"], 0.0)
        data = {"questions": ["q3", "q1"], "resultats": [["d4"], ["d2"]]}
        data["documents_pertinents"] = {"q1": "d2", "q3": "d4"}
        qrels = self.file("qrels2", "q1 0 d2 1\nq3 0 d4 1\n")
        bilan = self.json(paths[0], self.file("ex.json", data), "--qrels", qrels)
        self.assertEqual((bilan["avant"]["mrr"], bilan["apres"]["mrr"]), (0.25, 1.0))
        # Écarts : q1, de 1/2 à 1 ; q3, de 0 à 1, quel que soit l'ordre des fichiers.
        self.assertEqual(bilan["comparaison"]["hausse"], 2)

    def test_une_question_repetee_l_est_des_deux_cotes(self):
        data = {"questions": ["Q", "Q"], "resultats": [["a"], ["b"]]}
        deux = self.file("deux.json", {**data, "documents_pertinents": {"Q": "a"}})
        self.assertEqual(self.json(deux, deux)["comparaison"]["stable"], 2)
        data = {"questions": ["Q"], "resultats": [["a"]], "documents_pertinents": {"Q": "a"}}
        une = self.file("une.json", data)
        self.assertIn(
            "la question « Q » manque à l'un d'eux, ou ses documents",
            self.script(deux, une, code=2)[1],
        )
        self.assertIn(
            "la question « Q » manque à l'un d'eux, ou ses documents",
            self.script(une, deux, code=2)[1],
        )


EXEMPLE = """\
L'exemple de l'exercice :
  Q1 trouve doc_a, doc_b, doc_c ; il fallait doc_b, trouvé en position 2 : 1/2
  Q2 trouve doc_x, doc_y ; il fallait doc_z, absent : 0
Hit Rate@5 : 0.5 (part des questions dont le bon document est en position 5 au plus)
MRR : 0.25 ((1/2 + 0) / 2)
Pour comparer vos fichiers : python3 retrieval_eval.py avant.json apres.json
Pour connaître leurs formats : python3 retrieval_eval.py --help
"""


class Avertissements(AvecFichiers):
    """Une phrase sur la sortie d'erreur ; les valeurs restent celles de trec_eval."""

    def avertit(self, run, qrels):
        run, qrels = self.file("run", run), self.file("qrels", qrels)
        out, err = self.script(run, "--qrels", qrels, "--json")
        return json.loads(out)["avant"], err

    def test_des_distances(self):
        for run in (
            "q1 Q0 dA 1 0.11 t\nq1 Q0 dX 2 0.52 t\nq1 Q0 dY 3 0.93 t\n",
            "q1 dA 0.11\nq1 dX 0.52\nq1 dY 0.93\n",
            {"q1": {"dA": 0.11, "dX": 0.52, "dY": 0.93}},
            {"q1": {"dA": 0.11, "dX": 0.52, "dY": 0.11}},  # ni égaux, ni décroissants
        ):
            bilan, err = self.avertit(run, "q1 0 dA 1\n")
            self.assertIn(
                "run : ces scores sont-ils des distances ? Pour aucune question, le score", err
            )
            self.assertIn("changez leur signe, car un score plus grand doit être meilleur.\n", err)
            self.assertEqual(err.count("\n"), 1)
            self.assertEqual(bilan["hit_rate"]["1"], 0.0)

    def test_scores_tous_egaux(self):
        bilan, err = self.avertit({"q1": {"a": 1, "b": 1}, "q2": {"c": 2, "d": 2}}, "q1 0 a 1\n")
        self.assertIn("tous les scores sont égaux", err)
        self.assertEqual(err.count("\n"), 1)
        self.assertEqual(bilan["mrr"], 0.5)

    def test_aucune_phrase_pour_ce_qui_est_en_ordre(self):
        for run in (
            "q1 Q0 a 0 2.0 t\nq1 Q0 b 0 1.0 t\n",  # rangs tous nuls
            "q1 Q0 a 0 -1.0 t\nq1 Q0 b 0 -2.0 t\n",  # scores négatifs
            "q1 Q0 a 1 1.0 t\nq2 Q0 a 1 1.0 t\n",  # un document par question
            "q1 a 1\nq1 b 2\n",  # des rangs
            {"q1": {"a": 2, "b": 1}, "q2": {"a": 1, "b": 2}},  # une question suffit
        ):
            self.assertEqual(self.avertit(run, "q1 0 a 1\n")[1], "")

    def test_questions_sans_rien_a_trouver(self):
        run = "q1 Q0 a 1 2.0 t\nq2 Q0 a 1 2.0 t\n"
        bilan, err = self.avertit(run, {"q1": {"a": 1}, "q2": {}, "q3": {"a": 0}})
        self.assertEqual((bilan["sans_pertinent"], bilan["questions"]), (2, 3))
        self.assertEqual((bilan["mrr"], err), (0.3333, ""))

    def test_profondeur_celle_des_questions_jugees(self):
        run = "q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 a 1 3 t\nq2 Q0 b 2 2 t\nq2 Q0 c 3 1 t\n"
        self.assertEqual(self.avertit(run, "q1 0 a 1\n")[0]["profondeur"], 2)


class Sorties(AvecFichiers):
    """Ce qui arrive quand la sortie n'est pas une console."""

    def test_la_sortie_d_un_carnet(self):
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            self.assertEqual(retrieval_eval.main([]), 0)
            self.assertEqual(retrieval_eval.main(["--inconnu"]), 2)
        self.assertEqual(out.getvalue(), EXEMPLE)
        dit = "« retrieval_eval.py --inconnu » est refusée, car le script n'attend pas "
        dit += "« --inconnu » ; voyez --help\n"
        self.assertTrue(err.getvalue().endswith(dit))

    def test_main_sans_argument_lit_la_ligne_de_commande(self):
        self.assertEqual(lance("--inconnu").returncode, 2)
        self.assertEqual(lance().stdout, EXEMPLE)

    def test_ctrl_c(self):
        with mock.patch("builtins.open", side_effect=KeyboardInterrupt):
            _, err = self.script("avant.json", code=130)
        self.assertEqual(err, "retrieval_eval.py : interrompu\n")

    @unittest.skipUnless(Path("/dev/full").exists(), "pas de /dev/full")
    def test_disque_plein(self):
        for arguments in ([], ["--help"], ["--json"]):
            with open("/dev/full", "w") as full:
                done = lance(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2)
            dit = "l'affichage est impossible, le disque est plein"
            self.assertEqual(done.stderr, f"retrieval_eval.py : {dit}\n")

    def sous_shell(self, suite):
        commande = f'"{sys.executable}" "{SCRIPT}" {suite}'
        env = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": ""}
        options = {"env": env, "capture_output": True, "encoding": "utf-8"}
        return subprocess.run(["bash", "-c", commande], **options)

    @unittest.skipIf(os.name == "nt", "bash")
    def test_head(self):
        done = self.sous_shell('--help | head -1; exit "${PIPESTATUS[0]}"')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        run = self.file("run", {f"q{n}": {"a": 1} for n in range(2)})
        ks = " ".join(map(str, range(1, 20_000)))  # plus que n'en retient un tube
        done = self.sous_shell(f'{run} --qrels {run} --k {ks} | head -1; exit "${{PIPESTATUS[0]}}"')
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipIf(os.name == "nt", "bash")
    def test_sorties_fermees(self):
        done = self.sous_shell(">&-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.sous_shell("absent.json 2>&-")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = self.sous_shell("2>&-")
        self.assertEqual((done.returncode, done.stdout), (0, EXEMPLE))


class Erreurs(AvecFichiers):
    """Une phrase qui nomme le fichier, la ligne et l'erreur, et le code 2."""

    def refuse(self, dit, *arguments):
        err = self.script(*arguments, code=2)[1]
        self.assertIn(dit, err)
        self.assertEqual(err.count("\n"), 1, err)

    def refuse_run(self, content, dit):
        self.refuse(dit, self.file("run", content), "--qrels", self.file("qrels", QRELS["TREC"]))

    def refuse_qrels(self, content, dit):
        self.refuse(dit, self.file("run", RUNS["TREC"]), "--qrels", self.file("qrels", content))

    def test_fichiers_qu_on_ne_peut_pas_lire(self):
        self.refuse("absent : ce fichier ou son dossier n'existe pas", str(self.folder / "absent"))
        self.refuse(f"{self.folder} : c'est un dossier, un fichier", str(self.folder))
        dit = "run/a : un dossier est attendu, et c'est un fichier"
        self.refuse(dit, self.file("run", RUNS["TREC"]) + "/a")
        self.refuse_run("", "run : le fichier est vide")
        self.refuse_run('[["d1"]]', "run : une liste JSON n'est pas l'un des formats attendus")
        self.refuse_qrels("\n", "qrels : le fichier est vide")
        gz = gzip.compress(RUNS["TREC"].encode())
        self.refuse_run(gz[:40], "run : le fichier gzip est corrompu ou incomplet")
        for damaged in (gz[:-8] + b"\0" * 8, gz[:10] + b"\xff" * 20):
            self.refuse_run(damaged, "run : le fichier gzip est corrompu ou incomplet")

    def test_run_et_jugements_vont_ensemble(self):
        run, qrels = self.file("run", RUNS["TREC"]), self.file("qrels", QRELS["TREC"])
        exercice = self.exercice("exercice.json", [["bon"]])
        self.refuse("run : c'est un run, donnez ses jugements avec --qrels", run)
        self.refuse("--qrels : il y a des jugements, mais rien à juger", "--qrels", qrels)
        dit = "est au format de l'exercice, et contient déjà ses jugements ; retirez"
        self.refuse(dit, exercice, "--qrels", qrels)
        dit = "qrels : --qrels attend des jugements, et non des prédictions"
        self.refuse_qrels(RUNS["sentence-transformers"], dit)

    def test_lignes_d_un_run(self):
        trec, six = RUNS["TREC"], "« question Q0 document rang score nom »"
        court = f"ligne 6 : {six} est attendu, et non « q9 Q0 d1 1 3.0 »"
        self.refuse_run(trec + "q9 Q0 d1 1 3.0\n", court)
        self.refuse_run("a Q0 d 1 1 t\nb Q0 d 1 1 t u\n", f"ligne 2 : {six} est")
        autres = f"ligne 2 : {six} ou « question document nombre » est attendu, et non « a d »"
        self.refuse_run("\na d\n", autres)
        self.refuse_run("\n" + trec + "q9 Q0 d1 1 x t\n", f"ligne 7 : {six} est")
        self.refuse_run(trec + "q9 Q0 d1 1 nan t\n", f"ligne 6 : {six} est")
        self.refuse_run("qid did rank\nq1 d1 1\n", "run : ligne 1 : « question document nombre »")
        self.refuse_run("qid did score\nq1 d1 1\n", "run : ligne 1 : « question document nombre »")

    def test_lignes_de_jugements(self):
        trois = "« question document pertinence »"
        self.refuse_qrels(QRELS["BEIR"].replace("score", "note"), f"qrels : ligne 1 : {trois}")
        quatre = "« question 0 document pertinence »"
        self.refuse_qrels("q1 0 d1 1\nq1 0 d1 nan\n", f"qrels : ligne 2 : {quatre} est")
        self.refuse_qrels("q1 d1\nq1 d1 2\n", "qrels : ligne 2 : « question document » est")
        autres = f"ligne 1 : {quatre} ou {trois} ou « question document » est"
        self.refuse_qrels(RUNS["TREC"], autres)

    def test_texte_qui_n_est_pas_en_utf_8(self):
        dit = "ligne 2 : le fichier n'est pas en UTF-8"
        for ligne in (b"\xff Q0 d1 1 1.0 t", b"b Q0 \xff 1 1.0 t", b"b Q0 d 1 \xff t"):
            self.refuse_run(b"a Q0 d 1 1 t\n" + ligne, dit)
        predictions = RUNS["sentence-transformers"].encode()
        self.refuse_run(predictions + b'{"query_id": "\xff"}', dit.replace("2", "4"))
        self.refuse_run(b'{"q\xff": {}}', "run : le fichier n'est pas en UTF-8")

    def test_une_question_ne_revient_pas(self):
        dit = "run : la question « q1 » est à deux endroits du fichier ; triez-le (sort -s -k1,1)"
        self.refuse_run(RUNS["TREC"] + "q1 Q0 d4 4 0.5 t\n", dit)
        self.refuse_run(RUNS["sentence-transformers"] * 2, dit)
        inconnue = '{"query_id": "x", "results": []}\n'
        self.refuse_run(inconnue * 2, "run : la question « x » est à deux endroits")

    def test_predictions(self):
        bonnes = RUNS["sentence-transformers"]
        attendu = '« {"query_id": …, "results": [{"corpus_id": …}, …]} » est attendu, et non'
        dit = f'run : ligne 5 : {attendu} « {{"query_id": "q1"}} »'
        self.refuse_run(bonnes + '\n{"query_id": "q1"}\n', dit)
        self.refuse_run('{"query_id": null, "results": []}\n', f"run : ligne 1 : {attendu}")
        self.refuse_run(bonnes + '{"query_id": "q4"\n', f"run : ligne 4 : {attendu}")
        mauvais = '{"query_id": "q4", "results": [{"corpus_id": ["d"]}]}'
        self.refuse_run(mauvais, f"run : ligne 1 : {attendu}")
        self.refuse_run('{"query_id": ' + "[" * 100_000, f"run : ligne 1 : {attendu}")

    def test_run_json(self):
        attendu = "question « q1 » : {document: nombre} est attendu, et non"
        self.refuse_run('{"q1": {"d1": NaN}}', f"{attendu} « nan » pour « d1 »")
        self.refuse_run({"q1": {"d1": "nan"}}, f"{attendu} « nan » pour « d1 »")
        self.refuse_run({"q1": {"d1": "douze"}}, f"{attendu} « douze » pour « d1 »")
        self.refuse_run({"q1": {"a": True}}, f"{attendu} « True » pour « a »")
        self.refuse_run({"q1": {"a": None}}, f"{attendu} « None » pour « a »")
        self.refuse_run({"q1": ["a"]}, attendu)
        self.refuse_run('{"a":\n }', "run : le JSON est invalide à la ligne 2, colonne 2")
        # Coupé, il l'est à la fin de sa dernière ligne, et non à la suivante, qui est vide.
        self.refuse_run('{"a": 1\n', "run : le JSON est invalide à la ligne 1, colonne 8")
        self.refuse_run('{"q": {"a": 1}, "q": {"a": 2}}', "run : la clé « q » est répétée")
        self.refuse_run('{"a":' * 100_000, "run : le JSON est trop imbriqué")

    def test_questions_que_les_jugements_ignorent(self):
        dit = "run : aucune question de ce fichier n'est dans les jugements ; comparez « zz » et "
        self.refuse_run(
            "zz Q0 d1 1 1.0 t\n", dit + "« q1 » : les identifiants sont-ils les mêmes ?"
        )
        for rien in ("{}", "query-id corpus-id score\n"):
            self.refuse_qrels(rien, "le fichier n'a aucun jugement")

    def test_fichier_de_l_exercice(self):
        vide = {"questions": [], "resultats": [], "documents_pertinents": {}}
        for cle in ("questions", "resultats", "documents_pertinents"):
            data = {autre: vide[autre] for autre in vide if autre != cle}
            self.refuse(f"ex : la clé « {cle} » manque", self.file("ex", data))
        un, bon = ["Q"], {"Q": "bon"}
        for questions, resultats, pertinents, dit in [
            ([], [], {}, "le fichier n'a aucune question"),
            (un, [], {}, "questions est 1, et celui des listes de résultats est 0"),
            ([], [], [], "documents_pertinents : un dictionnaire"),
            (un, ["abc"], bon, "question « Q » : une liste"),
            (un, None, bon, "questions et resultats : deux listes"),
            ([[]], [["bon"]], bon, "un identifiant doit être un texte ou un nombre, et non « [] »"),
            (un, [[["bon", "x"]]], bon, "un texte ou un nombre, et non « ['bon', 'x'] »"),
            (un, [["bon", None]], bon, "un texte ou un nombre, et non « None »"),
            (un, [["bon"]], {"Q": ["bon", True]}, "un texte ou un nombre, et non « True »"),
        ]:
            data = {"questions": questions, "resultats": resultats}
            self.refuse(dit, self.file("ex", {**data, "documents_pertinents": pertinents}))

    def test_commandes(self):
        exercice = self.exercice("exercice.json", [["bon"]])
        dit = "--k : un nombre entier d'au moins 1 est attendu, et non"
        self.refuse(f"{dit} « 0 »", exercice, "--k", "0")
        self.refuse(
            "(les valeurs se séparent par des espaces, et --k se donne après les fichiers)",
            "--k",
            "5",
            exercice,
        )
        self.refuse(
            "est refusée, car le script n'attend pas « --inconnu a b » ; voyez --help",
            exercice,
            "--inconnu",
            "a b",
        )
        self.refuse("--inconnu 'a b'", exercice, "--inconnu", "a b")
        self.refuse("est refusée, car il manque la valeur de --k ; voyez --help", exercice, "--k")
        self.refuse(
            "est refusée, car une option ou une valeur est de trop ; voyez --help",
            exercice,
            "--json=1",
        )
        self.refuse("est refusée, car le script n'attend pas « --js » ; voyez", exercice, "--js")
        self.refuse("un ou deux fichiers sont attendus, et non 3", *[exercice] * 3)

    def test_identifiants_qui_ne_se_rencontrent_jamais(self):
        run = self.file("run", "q1 Q0 doc1_chunk3 1 2.0 t\n")
        out, err = self.script(run, "--qrels", self.file("qrels", "q1 0 doc1 1\n"))
        self.assertRegex(out, r"MRR +0\.0000")
        self.assertIn(
            "comparez « doc1_chunk3 » et « doc1 » : les identifiants sont-ils les mêmes ?", err
        )
        out, err = self.script(self.exercice("a.json", [["bon_1"]]))
        self.assertIn("comparez « bon_1 » et « bon »", err)

    def test_les_identifiants_cites_sont_un_document_trouve_et_un_attendu(self):
        # q1 n'attend rien, q2 n'a rien trouvé : seule q3 a de quoi citer, le plus petit d'abord.
        run = self.file("run", {"q1": {"x": 1}, "q2": {}, "q3": {"doc3_a": 1}})
        qrels = self.file(
            "qrels", {"q1": {"x": 0}, "q2": {"doc2": 1}, "q3": {"doc4": 1, "doc3": 1}}
        )
        out, err = self.script(run, "--qrels", qrels)
        self.assertRegex(out, r"MRR +0\.0000")
        self.assertIn(
            "comparez « doc3_a » et « doc3 » : les identifiants sont-ils les mêmes ?", err
        )

    def test_sans_fichier_l_exemple(self):
        self.assertEqual(self.script()[0], EXEMPLE)
        example = json.loads(self.script("--json")[0])
        self.assertEqual((example["hit_rate"], example["mrr"]), (0.5, 0.25))
        self.assertEqual(example["details"][1]["position"], 0)
        self.assertEqual(self.json("--k", "1")["hit_rate"], 0.0)

    def test_un_seul_fichier_la_suite_est_dite(self):
        out, err = self.script(self.exercice("a.json", [["bon"]]), "--k", "1")
        self.assertRegex(out, r"^ +Hit Rate@1 +1\.0000\n +MRR@1 +1\.0000\n +MRR +1\.0000\n")
        fin = "Pour comparer, ajoutez à la commande le fichier obtenu après le changement.\n"
        self.assertTrue(out.endswith(fin))
        self.assertEqual(err, "")

    def test_les_fichiers_et_les_options_dans_tout_ordre(self):
        qrels = self.file("qrels", QRELS["TREC"])
        run = self.file("run", RUNS["TREC"])
        attendu = self.json(run, run, "--qrels", qrels, "--k", "1", "2")
        self.assertEqual(list(attendu["apres"]["hit_rate"]), ["1", "2"])
        self.assertEqual(self.json(run, "--qrels", qrels, run, "--k", "1", "2", "1"), attendu)
        self.assertEqual(self.json("--qrels", qrels, run, run, "--k", "1", "2"), attendu)

    def test_l_aide_est_le_texte_du_script(self):
        for option in ("-h", "--help"):
            self.assertEqual(self.script(option)[0], retrieval_eval.__doc__.strip() + "\n")

    def test_les_profondeurs_par_defaut(self):
        bilan = self.json(self.exercice("a.json", [["bon"]]))
        self.assertEqual(list(bilan["avant"]["hit_rate"]), ["1", "5", "10"])
        self.assertEqual(list(bilan["avant"]["mrr_at_k"]), ["1", "5", "10"])
        self.assertEqual((bilan["apres"], bilan["comparaison"]), (None, None))

    def test_un_nom_illisible_est_cite_sur_une_ligne(self):
        self.assertIn("« a\\nb » :", self.script(self.file("q", {"a\nb": 1}), code=2)[1])
        self.assertIn("« a\\nb", self.script(self.file("q", {"a\nb" * 50: 1}), code=2)[1])
        err = self.script(self.file("q", {"é" * 61: 1}), code=2)[1]
        self.assertIn("« " + "é" * 59 + "… »", err)
        self.assertIn("« " + "é" * 60 + " »", self.script(self.file("q", {"é" * 60: 1}), code=2)[1])

    def test_un_run_pris_pour_des_jugements_se_voit_a_ses_decimales(self):
        dit = "a-t-on interverti un run et ses jugements ?"
        run = self.file("run", {"q1": {"a": 9.5, "b": 3}})
        qrels = self.file("qrels", {"q1": {"a": 1, "b": 0}})
        self.assertIn(dit, self.script(qrels, "--qrels", run)[1])
        self.assertNotIn(dit, self.script(run, "--qrels", qrels)[1])

    def test_un_run_et_des_jugements_echanges_ont_un_autre_nombre_de_colonnes(self):
        run, qrels = self.file("run", RUNS["TREC"]), self.file("qrels", QRELS["TREC"])
        colonnes = "« question Q0 document rang score nom » ou « question document nombre »"
        self.refuse(f"qrels : ligne 1 : {colonnes} est attendu", qrels, "--qrels", qrels)
        self.refuse(" ; ce fichier devrait être un run\n", qrels, "--qrels", qrels)
        colonnes = "« question 0 document pertinence » ou « question document pertinence » ou "
        self.refuse(f"run : ligne 1 : {colonnes}", run, "--qrels", run)
        self.refuse(" ; ce fichier devrait être un fichier de jugements\n", run, "--qrels", run)

    def test_un_nom_lisible_est_cite_tel_quel(self):
        err = self.script(self.file("q", {"C:\\l'été": 1}), code=2)[1]
        self.assertIn("« C:\\l'été » :", err)

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


class Copies(unittest.TestCase):
    """Chaque script se copie seul : `interval` y est deux fois."""

    def test_le_meme_intervalle_dans_les_deux_scripts(self):
        import eval_cv

        draw = random.Random(0)
        for n in (0, 1, 5, 6, 7, 30, 200):
            for _ in range(20):
                gaps = [draw.choice([-1, 0, 0.1 + 0.2, 0.3, 1 / 3]) for _ in range(n)]
                self.assertEqual(interval(gaps), eval_cv.interval(gaps))
        self.assertEqual(interval([0.1 + 0.2, 0.3] * 3), eval_cv.interval([0.1 + 0.2, 0.3] * 3))


if __name__ == "__main__":
    unittest.main()
