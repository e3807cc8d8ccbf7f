"""Les tests d'outils/accord.py : de vrais journaux, de vraies feuilles, et des valeurs refaites à
la main. Les gestes communs sont ceux de test_eval_cv.py.

python3 -m unittest test_accord
"""

import csv
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import unittest
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from test_eval_cv import CRITERIA, HERE, WithApi, eval_cv

sys.path.insert(0, str(HERE / "outils"))

import accord

TEXTS = ["texte du cas", "informations attendues", "résumé à noter"]
TITLES = [  # les trois critères, leur définition et l'échelle
    "exactitude : tout ce que dit le résumé est-il fidèle au CV ? (0 à 10)",
    "concision : trois points, rien de superflu ? (0 à 10)",
    "couverture : l'essentiel y est-il (poste, compétences clés, réalisations) ? (0 à 10)",
]
HEADER = [*TEXTS, *TITLES, "identifiant"]


NOTEZ = "Notez les résumés, enregistrez la feuille, puis relancez cette commande.\n"


class Agreement(unittest.TestCase):
    """Les mesures, sur des triplets (cas, votre note, celle du juge) vérifiables à la main."""

    def agreement(self, *rows, name="exactitude"):
        marked = [
            SimpleNamespace(case_number=case, human={name: yours}, judge={name: judge})
            for case, yours, judge in rows
        ]
        return accord.agreement(marked, name)

    def pairs(self, *pairs, name="exactitude"):
        """Un cas par couple."""
        rows = [(number, *pair) for number, pair in enumerate(pairs)]
        return self.agreement(*rows, name=name)

    def test_trois_resumes(self):
        found = self.pairs((5, 6), (6, 8), (7, 7))  # écarts : 1, 2 et 0
        expected = {"n": 3, "cases": 3, "human": 6, "judge": 7, "bias": 1, "absolute_gap": 1}
        self.assertEqual({key: found[key] for key in expected}, expected)
        self.assertEqual(found["within_one"], 0.67)  # deux sur trois

    def test_un_resume_que_vous_n_avez_pas_note_sur_ce_critere_n_y_compte_pas(self):
        marked = [SimpleNamespace(case_number=0, human={"concision": 1}, judge={"exactitude": 9})]
        for case, yours, judge in ((1, 5, 6), (2, 6, 8), (3, 7, 7)):
            marks = {"human": {"exactitude": yours}, "judge": {"exactitude": judge}}
            marked.append(SimpleNamespace(case_number=case, **marks))
        found = accord.agreement(marked, "exactitude")
        self.assertEqual((found["n"], found["cases"], found["absolute_gap"]), (3, 3, 1))
        # Carré moyen des écarts : (1 + 4 + 0)/3. Au hasard : 1, 9, 4, 0, 4, 1, 1, 1 et 0, soit
        # 21/9. 1 - (5/3)/(7/3) = 2/7.
        self.assertEqual(found["kappa"], 0.29)

    def test_l_ecart_absolu_ne_se_compense_pas(self):
        found = self.pairs((5, 7), (7, 5))  # +2 et -2
        self.assertEqual((found["bias"], found["absolute_gap"], found["within_one"]), (0, 2, 0))

    def test_l_intervalle_du_biais(self):
        # Écarts 1 à 6 : 3,5 ± 1,95, comme dans la docstring d'eval_cv.interval.
        found = self.pairs((4, 5), (4, 6), (4, 7), (4, 8), (4, 9), (4, 10))
        self.assertEqual((found["bias"], found["interval"]), (3.5, [1.55, 5.45]))
        found = self.pairs((9, 8), (9, 7), (9, 6), (9, 5), (9, 4), (9, 3))
        self.assertEqual((found["bias"], found["interval"]), (-3.5, [-5.45, -1.55]))

    def test_deux_resumes_d_un_cas_sont_une_seule_observation(self):
        rows = []
        for gap in range(1, 7):  # chaque cas a pour écarts `gap - 1` et `gap + 1`, de moyenne `gap`
            rows += [(gap, 3, 3 + gap - 1), (gap, 2, 2 + gap + 1)]
        found = self.agreement(*rows)
        self.assertEqual((found["n"], found["cases"]), (12, 6))
        self.assertEqual((found["bias"], found["interval"]), (3.5, [1.55, 5.45]))

    def test_un_cas_pese_autant_quel_que_soit_le_nombre_de_ses_resumes(self):
        found = self.agreement((1, 0, 2), (1, 0, 4), (1, 0, 3), (2, 6, 6))
        self.assertEqual((found["human"], found["judge"]), (3, 4.5))  # (0 + 6)/2, (3 + 6)/2
        self.assertEqual(found["bias"], 1.5)
        self.assertEqual(found["absolute_gap"], 2.25)  # par résumé : (2 + 4 + 3 + 0)/4

    def test_le_biais_est_celui_des_moyennes_affichees(self):
        found = self.pairs((2, 2), (3, 2), (3, 3))  # 2,666… et 2,333…
        self.assertEqual([found[key] for key in ("human", "judge", "bias")], [2.67, 2.33, -0.34])

    def test_pas_d_intervalle_sous_six_cas(self):
        self.assertIsNone(self.pairs((4, 5), (4, 6), (4, 7), (4, 8), (4, 9))["interval"])
        twice = [(1, 4, 5), (1, 4, 6), (2, 4, 7), (2, 4, 8), (3, 4, 9), (3, 4, 10)]
        self.assertIsNone(self.agreement(*twice)["interval"])  # six résumés, mais trois cas

    def test_kappa_quadratique(self):
        self.assertEqual(self.pairs((2, 2), (4, 4))["kappa"], 1)
        # Écarts au carré : 4 et 4. Au hasard : 4, 0, 0 et 4, de moyenne 2. 1 - 4/2 = -1.
        self.assertEqual(self.pairs((2, 4), (4, 2))["kappa"], -1)
        # Écarts : 1 et 0, de moyenne 1/2. Au hasard : 1, 0, 9 et 4, de moyenne 3,5 ; 1 - 1/7.
        self.assertEqual(self.pairs((2, 3), (5, 5))["kappa"], 0.86)

    def test_ce_qui_ne_se_calcule_pas_vaut_none(self):
        self.assertIsNone(self.pairs((2, 5), (4, 5))["kappa"])  # une seule note du juge
        self.assertIsNone(self.pairs((5, 2), (5, 4))["kappa"])  # une seule des vôtres
        self.assertIsNone(self.pairs((2, 2), (4, 4), name="moyenne")["kappa"])
        keys = ["human", "judge", "bias", "interval", "absolute_gap", "within_one", "kappa"]
        self.assertEqual(self.pairs(), {"n": 0, "cases": 0, **dict.fromkeys(keys)})


class Accord(WithApi):
    """Six cas, deux prompts, deux passages aux mêmes réponses : douze résumés. Le juge met 6
    partout à ceux de V1, « Le CV n° 3 », et 8 partout à ceux de V2, « - CV n° 3 »."""

    def setUp(self):
        super().setUp()
        self.path = self.folder / "a_noter.csv"
        self.journal_path = self.evaluate("--passages", "2")

    # Ce que font le modèle et le juge de ces journaux ; un test peut en changer. Une note vaut pour
    # tous les critères ; None, un refus.

    def summary(self, version, name):
        return ("- " if version == "V2" else "Le ") + name

    def marks(self, summary, name):
        return 8 if summary.startswith("- ") else 6

    justification = "Fidèle, un peu long."

    def answer(self, params):
        content = params["messages"][0]["content"]
        name = re.search(r"CV n° \d+", content)[0]
        if "output_config" not in params:
            return self.summary("V2" if content.startswith(eval_cv.PROMPT_V2) else "V1", name)
        marks = self.marks(eval_cv.between("resume", content), name)
        if marks is None:
            raise eval_cv.Impossible("refus")
        if isinstance(marks, int):
            marks = dict.fromkeys(CRITERIA, marks)
        return json.dumps({"justification": self.justification, **marks})

    def evaluate(self, *options, cases=6, text="CV n° {}", code=0):
        """Crée un journal ; rend son chemin."""
        number = len(list(self.folder.glob("*.jsonl")))
        texts = [text.format(n) for n in range(1, cases + 1)]
        path = self.cases([{"input": one, "expected_focus": "l'essentiel"} for one in texts])
        command = partial(eval_cv.command, own_ask=self.answer)
        folder = self.folder / "resultats"
        self.main(command, "--cas", path, "--sortie", str(folder), *options, code=code)
        [journal] = folder.glob("*.jsonl")
        return str(journal.rename(self.folder / f"journal_{number}.jsonl"))

    def accord(self, *arguments, code=0):
        options = [str(self.path), "--journal", self.journal_path, *arguments]
        return self.main(accord.command, *options, code=code)

    def export(self, *arguments):
        """Une feuille neuve ; rend ce qui s'affiche."""
        self.path.unlink(missing_ok=True)
        return self.accord("--exporter", *arguments)[0]

    def remake(self, *options, **how):
        """Un autre journal, d'un passage sauf option, et sa feuille ; rend ce qui s'affiche."""
        self.journal_path = self.evaluate(*(options or ("--passages", "1")), **how)
        return self.export()

    def rows(self, delimiter=";"):
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file, delimiter=delimiter))

    def save(self, rows, delimiter=";", encoding="utf-8-sig"):
        with open(self.path, "w", encoding=encoding, newline="") as file:
            sheet = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
            sheet.writeheader()
            sheet.writerows(rows)

    def fill(self, mark, **how):
        """Remplit la feuille : `mark(résumé)` donne la même note à tous les critères."""
        rows = [{**row, **dict.fromkeys(TITLES, mark(self.text(row)))} for row in self.rows()]
        self.save(rows, **how)

    def text(self, row):
        return row["résumé à noter"].replace("\u200b", "")

    def number(self, text):
        """Le numéro du cas d'un résumé."""
        return int(re.search(r"n° (\d+)", text)[1])

    def report(self):
        return json.loads(self.accord("--json")[0])

    def versions(self):
        """La version de chaque ligne de la feuille, et son cas."""
        texts = map(self.text, self.rows())
        return [("V2" if text.startswith("- ") else "V1", self.number(text)) for text in texts]


class Feuille(Accord):
    """La feuille à remplir."""

    def test_la_feuille_est_aveugle_et_dit_la_grille(self):
        self.export()
        self.assertEqual(self.api.requests, [])
        self.assertTrue(self.path.read_bytes().startswith(b"\xef\xbb\xbftexte du cas;"))
        rows = self.rows()
        self.assertEqual(list(rows[0]), HEADER)
        self.assertEqual({row[title] for row in rows for title in TITLES}, {""})
        self.assertEqual({row["informations attendues"] for row in rows}, {"l'essentiel"})
        content = self.path.read_text(encoding="utf-8-sig")
        for hint in ("V1", "V2", "Fidèle"):
            self.assertNotIn(hint, content)
        for row in rows:
            self.assertEqual(row["texte du cas"], f"CV n° {self.number(self.text(row))}")

    def test_l_identifiant_n_est_ni_un_nombre_ni_une_date_et_ne_dit_pas_la_version(self):
        self.export()
        names = [row["identifiant"] for row in self.rows()]
        self.assertEqual(len(set(names)), 12)
        for name in names:
            self.assertRegex(name, "^id[0-9a-f]{12}$")

    def test_chaque_cas_tire_donne_un_resume_de_chaque_version(self):
        out = self.export("--nombre", "8")
        self.assertIn("résumés à noter : 8 ; cas différents : 4\n", out)
        drawn = self.versions()
        cases = {case for version, case in drawn}
        self.assertEqual(len(cases), 4)
        self.assertCountEqual(drawn, itertools.product(("V1", "V2"), cases))

    def test_un_nombre_impair_ne_coupe_pas_un_cas_en_deux(self):
        self.assertIn("résumés à noter : 8 ;", self.export("--nombre", "9"))
        self.assertIn("résumés à noter : 2 ; cas différents : 1\n", self.export("--nombre", "1"))

    def test_vingt_resumes_de_dix_cas_par_defaut(self):
        self.assertIn(
            "résumés à noter : 20 ; cas différents : 10\n", self.remake("--passages", "2", cases=30)
        )

    def test_vingt_resumes_aussi_avec_un_seul_prompt(self):
        out = self.remake("--passages", "1", "--prompts", "PROMPT_V1", cases=30)
        self.assertIn("résumés à noter : 20 ; cas différents : 20\n", out)

    def test_les_autres_passages_servent_quand_les_cas_manquent(self):
        numbers = itertools.count()
        self.summary = lambda version, name: f"{version} {name} essai {next(numbers)}"
        self.assertIn(
            "résumés à noter : 20 ; cas différents : 4\n", self.remake("--passages", "3", cases=4)
        )
        texts = [self.text(row) for row in self.rows()]
        pairs = [(text[:2], self.number(text)) for text in texts]
        counts = [pairs.count(pair) for pair in itertools.product(("V1", "V2"), range(1, 5))]
        self.assertEqual(sorted(counts), [2] * 4 + [3] * 4)  # deux passages, et deux cas du dernier
        self.assertEqual(len(set(texts)), 20)

    def test_le_texte_qu_une_version_redonne_n_est_a_noter_qu_une_fois(self):
        self.assertIn("résumés à noter : 12 ;", self.export())

    def test_le_meme_texte_dans_deux_versions_est_a_noter_deux_fois(self):
        self.summary = lambda version, name: name
        self.assertIn("résumés à noter : 12 ;", self.remake())
        self.fill(lambda text: "6")
        self.assertEqual(self.report()["comparisons"]["V2"]["cases"], 6)

    def test_un_cas_sans_note_dans_une_version_n_est_pas_tire(self):
        self.marks = lambda summary, name: None if summary == "- CV n° 2" else 5
        self.remake("--passages", "2")
        self.assertEqual({case for version, case in self.versions()}, {1, 3, 4, 5, 6})

    def test_une_version_sans_aucune_note_se_dit(self):
        self.marks = lambda summary, name: None if summary.startswith("- ") else 5
        self.journal_path = self.evaluate("--passages", "1", code=1)
        err = self.accord("--exporter", code=2)[1]
        self.assertIn("aucun cas n'a de résumé noté dans toutes les versions", err)
        self.assertIn(f'eval_cv.py" --reprendre "{self.journal_path}"', err)
        self.assertFalse(self.path.exists())

    def test_trois_versions(self):
        prompt = self.file("p.txt", "Résume autrement.")
        prompts = ("PROMPT_V1", "PROMPT_V2", prompt)
        self.journal_path = self.evaluate("--passages", "1", "--prompts", *prompts)
        self.assertIn("résumés à noter : 15 ; cas différents : 5\n", self.export("--nombre", "16"))
        self.fill(lambda text: "7")
        self.assertEqual(list(self.report()["comparisons"]), ["V2", "V3"])

    def test_sous_six_cas_on_sait_avant_de_noter_qu_on_ne_pourra_pas_conclure(self):
        said = "\nIl faut au moins 6 cas pour conclure : évaluez-en d'autres avant de noter.\n1. "
        self.assertIn(said, self.export("--nombre", "10"))  # 5 cas de deux résumés
        self.assertNotIn(said, self.remake("--passages", "1"))  # 6

    def test_une_seule_version(self):
        out = self.remake("--passages", "1", "--prompts", "PROMPT_V1")
        self.assertIn("résumés à noter : 6 ; cas différents : 6\n", out)
        self.fill(lambda text: "7")
        self.assertEqual(self.report()["comparisons"], {})
        self.assertNotIn("→", self.accord()[0])

    def test_les_resumes_sont_melanges_toujours_de_la_meme_facon(self):
        self.export()
        first = self.path.read_bytes()
        versions = [version for version, case in self.versions()]
        cases = [case for version, case in self.versions()]
        self.assertNotEqual(versions, sorted(versions))
        self.assertNotEqual(versions, ["V1", "V2"] * 6)
        self.assertNotEqual(cases, sorted(cases))
        neighbours = sum(a == b for a, b in zip(cases, cases[1:]))
        self.assertLess(neighbours, 4)  # six s'ils se suivaient deux par deux
        self.export()
        self.assertEqual(self.path.read_bytes(), first)

    def test_les_cas_tires_ne_sont_pas_les_premiers(self):
        self.remake(cases=30)
        self.assertNotEqual({case for version, case in self.versions()}, set(range(1, 11)))

    def test_une_feuille_n_est_jamais_ecrasee(self):
        self.path.write_text("mes notes")
        err = self.accord("--exporter", code=2)[1]
        self.assertIn(f"{self.path} : ce nom est déjà pris, choisissez-en un autre", err)
        self.assertEqual(self.path.read_text(), "mes notes")

    def test_un_dossier_absent_est_une_phrase(self):
        self.path = self.folder / "absent" / "a.csv"
        err = self.accord("--exporter", code=2)[1]
        self.assertIn(f"{self.path} : ce fichier, ou le dossier où il doit être, n'existe pas", err)

    def test_aucun_texte_ne_devient_une_formule_quel_que_soit_le_separateur(self):
        attack = '=1+1\n=A1;=A2,=A3\t=A4\n\n  -B;"=C\n\t@D,\r+E;  ＝F,＋G,－H,＠I\n CV n° {}'
        self.summary = lambda version, name: attack.replace("{}", "1") + version
        self.remake(cases=1, text=attack)
        content = self.path.read_text(encoding="utf-8-sig")
        cells = []
        for separator in ";,\t":
            for row in csv.reader(io.StringIO(content), delimiter=separator):
                cells += [line for cell in row for line in cell.splitlines()]
        self.assertEqual([cell for cell in cells if cell.lstrip(' "')[:1] in [*"=+-@＝＋－＠"]], [])
        [first, _] = self.rows()
        self.assertEqual(first["texte du cas"].replace("\u200b", ""), attack.replace("{}", "1"))

    def test_un_tiret_au_milieu_d_une_ligne_reste_tel_quel(self):
        self.summary = lambda version, name: f"{name} : SEO-SEA = 2+2 @{version}"
        self.remake()
        self.assertIn("CV n° 1 : SEO-SEA = 2+2 @V1", [row["résumé à noter"] for row in self.rows()])

    def test_la_suite_est_dite_et_la_commande_donnee_marche(self):
        arguments = ["a_noter.csv", "--journal", self.journal_path, "--exporter"]
        done = self.tool(*arguments)
        lines = done.stdout.splitlines()
        self.assertEqual(
            lines[0], "a_noter.csv : feuille créée ; résumés à noter : 12 ; cas différents : 6"
        )
        self.assertTrue(lines[1].startswith("1. Dans un tableur, notez chaque résumé de 0 à 10"))
        self.assertIn("au format CSV UTF-8", lines[2])
        self.assertEqual(len(lines), 4)
        self.fill(lambda text: "7")
        command = shlex.split(lines[3].partition(" : ")[2])
        again = subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8")
        self.assertIn("Résumés notés : 12 ; lignes sans note : 0", again.stdout)
        self.assertEqual(again.returncode, 0)

    def tool(self, *arguments):
        """Lance l'outil depuis le dossier temporaire, comme on le fait d'un terminal."""
        command = [sys.executable, str(HERE / "outils" / "accord.py"), *arguments]
        options = {"cwd": self.folder, "capture_output": True, "encoding": "utf-8"}
        changes = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": ""}
        return subprocess.run(command, env={**os.environ, **changes}, **options)

    def test_le_journal_le_plus_recent_par_defaut(self):
        self.assertIn("aucun journal", self.tool("a_noter.csv", "--exporter").stderr)
        journals = [Path(self.evaluate("--passages", "1", cases=number)) for number in (2, 3)]
        old, new = [path.rename(self.folder / "resultats" / path.name) for path in journals]
        empty = self.folder / "resultats" / "vide.jsonl"
        empty.write_bytes(new.read_bytes().split(b"\n")[0])
        for number, path in enumerate((old, new, empty)):
            os.utime(path, (10**9 + number, 10**9 + number))
        done = self.tool("a_noter.csv", "--exporter")
        self.assertIn("cas différents : 3\n", done.stdout)
        self.assertEqual(done.stderr, f"Journal : {Path('resultats') / new.name}\n")

    def test_une_demonstration_que_personne_n_a_choisie_se_dit(self):
        cases = self.cases([{"input": "Poste : juriste", "expected_focus": "Lyon"}])
        folder = self.folder / "resultats"
        self.main(eval_cv.command, "--demo", "--cas", cases, "--sortie", str(folder))
        [journal] = folder.glob("*.jsonl")
        path = f"Journal : {Path('resultats') / journal.name}\n"
        name = Path("resultats") / journal.name
        said = f"{name} est une démonstration, où aucun modèle n'a rien résumé ni noté\n"
        self.assertEqual(self.tool("a.csv", "--exporter").stderr, said + path)
        given = ("--journal", str(Path("resultats") / journal.name))
        self.assertEqual(self.tool("b.csv", "--exporter", *given).stderr, path)

    def test_l_aide_explique_chaque_option(self):
        done = self.tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("Le juge note-t-il comme vous ?"))
        for option in ("FEUILLE", "--journal", "--exporter", "--nombre", "--json"):
            self.assertIn(option, done.stdout)

    def test_une_commande_incorrecte_est_une_phrase(self):
        for arguments, fault in [
            ([], "il manque ceci : FEUILLE"),
            (["a.csv", "b.csv"], "le script n'attend pas « b.csv »"),
            (["a.csv", "--exportez"], "le script n'attend pas « --exportez »"),
            (["a.csv", "--journal"], "il manque la valeur de --journal"),
        ]:
            err = self.main(accord.command, *arguments, code=2)[1]
            self.assertIn(f" » est refusée, car {fault} ; voyez --help", err)
        err = self.accord("--exporter", "--nombre", "0", code=2)[1]
        self.assertIn("--nombre : un nombre entier de 1 à 9999 est attendu, et non « 0 »", err)

    def test_une_autre_grille_est_refusee(self):
        text = Path(self.journal_path).read_text("utf-8").replace("Tu évalues", "Tu juges")
        self.journal_path = self.file("autre.jsonl", text)
        self.assertIn("la grille", self.accord("--exporter", code=2)[1])


class Lecture(Accord):
    """La feuille remplie, et tout ce qu'un tableur ou une personne peut en faire."""

    def setUp(self):
        super().setUp()
        self.export()

    def test_relit_la_feuille(self):
        self.fill(lambda text: "7,5" if text.startswith("- ") else "5")
        report = self.report()
        self.assertEqual(list(report), ["n", "skipped", "criteria", "comparisons"])
        self.assertEqual((report["n"], report["skipped"]), (12, 0))
        self.assertEqual(list(report["criteria"]), ["moyenne", *CRITERIA])
        for found in report["criteria"].values():  # écarts de chaque cas : 1 et 0,5
            self.assertEqual((found["bias"], found["within_one"]), (0.75, 1))
            self.assertEqual((found["n"], found["cases"]), (12, 6))

    def test_un_tiers_pres_est_encore_a_un_point(self):
        self.marks = lambda summary, name: {"exactitude": 6, "concision": 6, "couverture": 7}
        self.remake()
        rows = [{**row, **dict(zip(TITLES, ("7", "7", "8")))} for row in self.rows()]
        self.save(rows)  # 7,333… et 6,333…
        self.assertEqual(self.report()["criteria"]["moyenne"]["within_one"], 1)

    def test_une_feuille_reenregistree_autrement(self):
        self.fill(lambda text: "6")
        rows = [{**row, "remarque": "à revoir, peut-être"} for row in self.rows()][::-1]
        for row in rows:
            row["résumé à noter"] = row["résumé à noter"].replace("\u200b", "").replace(" ", "\xa0")
        for separator in ";,\t":
            for encoding in ("utf-8", "utf-8-sig"):
                self.save(rows, separator, encoding)
                self.assertEqual(self.report()["n"], 12)
        content = self.path.read_bytes()
        for end in (b"\n", b"\r"):
            self.path.write_bytes(content.replace(b"\r\n", end))
            self.assertEqual(self.report()["n"], 12)

    def test_toutes_les_cellules_entre_guillemets(self):
        self.fill(lambda text: "7,5")
        rows = [list(row.values()) for row in self.rows()]
        for separator in ";,\t":
            with open(self.path, "w", encoding="utf-8", newline="") as file:
                sheet = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL)
                sheet.writerows([HEADER, *rows])
            self.assertEqual(self.report()["criteria"]["moyenne"]["human"], 7.5)

    def test_une_colonne_deplacee_ne_trompe_pas_sur_le_separateur(self):
        self.fill(lambda text: "7,5")
        rows = self.rows()
        for first in TITLES:  # certains titres contiennent une virgule
            self.save([{first: row[first], **row} for row in rows])
            self.assertEqual(self.report()["n"], 12)

    def test_l_en_tete_se_passe_des_definitions_et_de_son_ordre(self):
        rows = self.rows()
        names = dict(zip(TITLES, CRITERIA))
        rows = [{names.get(key, key): row[key] for key in reversed(row)} for row in rows]
        self.save([{**row, "concision": "7"} for row in rows])
        self.assertEqual(self.report()["criteria"]["concision"]["human"], 7)

    def test_un_long_cv_coupe_par_le_tableur_est_reconnu(self):
        for length in (36_000, 160_000):
            self.remake(text="CV n° {} " + "x" * length)
            self.fill(lambda text: "6")
            self.assertEqual(self.report()["n"], 12)
            rows = self.rows()
            self.save([{**row, "texte du cas": row["texte du cas"][:32_767]} for row in rows])
            self.assertEqual(self.report()["n"], 12)

    def test_les_lignes_sans_note_sont_comptees(self):
        self.fill(lambda text: "6" if "5" in text else " ")
        report = self.report()
        self.assertEqual((report["n"], report["skipped"]), (2, 10))
        self.assertIn("Résumés notés : 2 ; lignes sans note : 10\n", self.accord()[0])

    def test_les_lignes_vides_ne_comptent_pas_mais_gardent_la_numerotation(self):
        self.fill(lambda text: "")
        rows = self.rows()
        blank = dict.fromkeys(rows[0], "")
        self.save([blank, {**rows[0], TITLES[0]: "7"}, blank, *rows[1:], blank])
        report = self.report()
        self.assertEqual((report["n"], report["skipped"]), (1, 11))
        self.save([blank, {**rows[0], TITLES[0]: "77"}])
        self.assertIn("ligne 3, exactitude : ", self.accord(code=2)[1])

    def test_une_feuille_sans_aucune_note_est_un_code_1(self):
        out, _ = self.accord(code=1)
        self.assertEqual(out, "Résumés notés : 0 ; lignes sans note : 12\n" + NOTEZ)
        report = json.loads(self.accord("--json", code=1)[0])
        self.assertEqual(report["n"], 0)
        nothing = dict.fromkeys(["human", "human_interval", "judge", "judge_interval"])
        self.assertEqual(report["comparisons"], {"V2": {"cases": 0, **nothing}})

    def test_une_ligne_notee_en_partie_compte_ou_elle_est_notee(self):
        self.save([{**row, TITLES[1]: "6"} for row in self.rows()])
        report = self.report()
        counts = [report["criteria"][name]["n"] for name in ("concision", "moyenne", "exactitude")]
        self.assertEqual((report["n"], counts), (12, [12, 0, 0]))
        self.assertEqual(report["comparisons"]["V2"]["cases"], 0)
        self.assertIn(
            "V1 → V2 ; cas que vous avez notés dans les deux versions : 0\n", self.accord()[0]
        )

    def test_une_ligne_plus_courte_que_l_en_tete_est_une_ligne_sans_note(self):
        self.fill(lambda text: "6")
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("relu le 3 mars")
        self.assertEqual((self.report()["n"], self.report()["skipped"]), (12, 1))

    def test_un_resume_note_deux_fois_est_refuse(self):
        self.fill(lambda text: "6")
        self.save([*self.rows(), self.rows()[0]])
        err = self.accord(code=2)[1]
        self.assertIn(
            "lignes 2 et 14 : le même résumé est noté deux fois, ne gardez qu'une ligne", err
        )

    def test_une_copie_sans_note_ne_gene_pas(self):
        blank = self.rows()[0]
        self.fill(lambda text: "6")
        self.save([*self.rows(), blank])
        self.assertEqual((self.report()["n"], self.report()["skipped"]), (12, 1))

    def test_les_lignes_inconnues_sont_nommees_ensemble_et_les_autres_comptent(self):
        self.fill(lambda text: "6")
        rows = self.rows()
        rows[1]["identifiant"] = "id0123456789ab"
        rows[3]["identifiant"] = ""
        self.save(rows)
        out, err = self.accord("--json")
        self.assertEqual(json.loads(out)["n"], 10)
        self.assertIn("lignes ignorées (3, 5) : leur identifiant n'est celui d'aucun résumé", err)
        self.assertIn(f"noté par le juge dans {self.journal_path} ; si la feuille", err)
        self.assertEqual(err.count("ignorées"), 1)

    def test_une_feuille_d_un_autre_journal_n_a_rien_a_comparer(self):
        self.fill(lambda text: "6")
        self.journal_path = self.evaluate("--passages", "1", text="Autre CV n° {}")
        out, err = self.accord(code=1)
        said = "Aucune ligne à comparer : donnez avec --journal le journal dont l'export a "
        said += "affiché le nom.\n"
        self.assertEqual(out, "Résumés notés : 0 ; lignes sans note : 0\n" + said)
        self.assertIn("lignes ignorées (2, 3,", err)
        self.assertIn(f"noté par le juge dans {self.journal_path} ;", err)
        self.assertIn("si la feuille vient d'un autre journal, donnez-le avec --journal", err)

    def test_la_meme_feuille_sert_apres_de_nouvelles_notes_du_juge(self):
        self.fill(lambda text: "6")
        self.marks = lambda summary, name: 3
        self.journal_path = self.evaluate("--passages", "1")  # les mêmes résumés, d'autres notes
        self.assertEqual(self.report()["criteria"]["moyenne"]["judge"], 3)

    def test_une_mauvaise_note_est_une_phrase_avec_sa_ligne(self):
        rows = self.rows()
        wrong = ("11", "-1", "nan", "inf", "bien", "8/10", "1_0", "7.", "10,5", "1e1", "#NAME?")
        for cell in wrong:
            self.save([rows[0], {**rows[1], TITLES[1]: cell}, *rows[2:]])
            err = self.accord(code=2)[1]
            expected = f"ligne 3, concision : une note de 0 à 10 est attendue, et non « {cell} »"
            self.assertIn(expected, err)

    def test_les_bouts_de_l_echelle_et_les_decimales_sont_admis(self):
        for cell, mark in (("0", 0), ("10", 10), (" 10.0 ", 10), ("7,25", 7.25), ("00", 0)):
            self.fill(lambda text, cell=cell: cell)
            self.assertEqual(self.report()["criteria"]["concision"]["human"], mark)

    def test_une_colonne_absente_ou_repetee_est_une_phrase(self):
        rows = self.rows()
        for title in (*TITLES, "identifiant"):
            self.save([{key: row[key] for key in row if key != title} for row in rows])
            name = title.partition(" : ")[0]
            expected = f"{self.path}, ligne 1 : il faut une colonne « {name} », et il y en a 0 ;"
            self.assertIn(expected, self.accord(code=2)[1])
        self.save([{**row, "exactitude": "7"} for row in rows])
        self.assertIn(
            "ligne 1 : il faut une colonne « exactitude », et il y en a 2", self.accord(code=2)[1]
        )
        self.path.write_text(";".join([*HEADER, "identifiant"]), encoding="utf-8")
        self.assertIn(
            "ligne 1 : il faut une colonne « identifiant », et il y en a 2", self.accord(code=2)[1]
        )
        for text in ("", "relu"):
            self.path.write_text(text, encoding="utf-8")
            self.assertIn(
                "il faut une colonne « identifiant », et il y en a 0", self.accord(code=2)[1]
            )

    def test_ce_qui_n_est_pas_un_csv_en_utf_8_est_une_phrase(self):
        content = self.path.read_text(encoding="utf-8-sig")
        damaged = content[: content.rindex("Le CV")] + '"Le CV'  # un guillemet jamais refermé
        for data in (
            content.encode("cp1252", "replace"),
            content.encode("utf-16"),
            damaged.encode(),
        ):
            self.path.write_bytes(data)
            err = self.accord(code=2)[1]
            expected = "ce n'est pas un CSV en UTF-8, enregistrez la feuille au format CSV UTF-8"
            self.assertIn(f"{self.path} : {expected}", err)

    def test_une_feuille_absente_ou_un_dossier_est_une_phrase(self):
        self.path = self.folder / "absente.csv"
        self.assertIn(
            "absente.csv : cette feuille n'existe pas, créez-la avec --exporter",
            self.accord(code=2)[1],
        )
        self.path = self.folder
        self.assertIn(f"{self.folder} : ", self.accord(code=2)[1])


class Conclusions(Accord):
    """Ce que l'on lit à l'écran, et ce que l'on peut en conclure. Le juge met 3 partout à V1, et
    3 + n à V2 pour le cas n : des écarts de 1 à 6, d'intervalle 1,55 à 5,45."""

    def setUp(self):
        super().setUp()
        self.export()

    def marks(self, summary, name):
        return 3 + self.number(name) * summary.startswith("- ")

    def answer_to(self, second="V2"):
        """La dernière phrase de la comparaison d'une version à V1."""
        return self.accord()[0].partition(f"V1 et {second} comme vous ? ")[2].splitlines()[0]

    def fill_by_case(self, first, second):
        """Note V1 et V2, cas par cas : `first(n)` et `second(n)`."""
        self.fill(lambda text: str((second if text.startswith("- ") else first)(self.number(text))))

    def test_une_note_oubliee_se_voit(self):
        self.fill(lambda text: "5")
        rows = self.rows()
        rows[2][TITLES[1]] = ""
        self.save(rows)
        said = (
            "\nIl manque la note d'un critère (lignes du tableur : 4) : ajoutez-la, puis relancez "
        )
        said += "cette commande ; sinon, la moyenne de ces lignes ne compte pas.\n"
        self.assertIn(said, self.accord()[0])

    def test_une_feuille_plus_longue_a_toutes_les_lignes_de_la_premiere(self):
        self.export("--nombre", "4")
        shorter = {row["identifiant"] for row in self.rows()}
        self.export("--nombre", "10")
        longer = {row["identifiant"] for row in self.rows()}
        self.assertEqual((len(shorter), len(longer)), (4, 10))
        self.assertLess(shorter, longer)

    def test_une_feuille_a_un_nom_en_csv(self):
        self.path = self.folder / "notes.xlsx"
        err = self.accord("--exporter", code=2)[1]
        self.assertIn(
            "notes.xlsx : la feuille est un fichier CSV, son nom doit finir par .csv", err
        )
        self.assertFalse(self.path.exists())

    def test_un_ecran_entier(self):
        # Vous : 1 à tout V1, et n à V2 pour le cas n ; écarts de 0 à 5, intervalle 0,55 à 4,45.
        self.fill_by_case(lambda n: 1, lambda n: n)
        out, err = self.accord()
        self.assertEqual(err, f"Journal : {self.journal_path}\n")
        # Moyennes : vous (1 + 3,5)/2, juge (3 + 6,5)/2 = 4,75. Biais de chaque cas : (2 + 3)/2, le
        # même, donc sans intervalle. Écarts : 2 six fois, 3 six fois ; 30/12. Kappa : carré moyen
        # (6 × 4 + 6 × 9)/12 = 6,5. Au hasard : vous, 1 six fois et 1 à 6, de carré moyen 97/12, de
        # variance 97/12 - 2,25² = 3,02 ; le juge, 3 six fois et 4 à 9, de carré moyen 325/12, de
        # variance 325/12 - 4,75² = 4,52 ; 3,02 + 4,52 + 2,5² = 13,79 ; 1 - 6,5/13,79 = 0,53.
        start = """\
Résumés notés : 12 ; lignes sans note : 0

               cas   vous   juge  biais      intervalle  |écart|  à 1 point  kappa
moyenne          6   2.25   4.75  +2.50               -     2.50        0 %      -
exactitude       6   2.25   4.75  +2.50               -     2.50        0 %   0.53
concision        6   2.25   4.75  +2.50               -     2.50        0 %   0.53
couverture       6   2.25   4.75  +2.50               -     2.50        0 %   0.53
Biais établis (ceux dont l'intervalle exclut 0) : aucun.
Pour le sens des colonnes, voyez --help.

V1 → V2 ; cas que vous avez notés dans les deux versions : 6
selon vous    : écart +2.50 ; intervalle à 95 % : +0.55 à +4.45
selon le juge : écart +3.50 ; intervalle à 95 % : +1.55 à +5.45
Le juge classe-t-il V1 et V2 comme vous ? Oui.

Vos plus grands désaccords, et la justification du juge :
"""
        self.assertTrue(out.startswith(start), out)
        comparison = start[start.index("V1 → V2") : start.index("\n\nVos plus")]
        readme = (HERE / "README.md").read_text(encoding="utf-8")
        self.assertIn(f"```text\n{comparison}\n```", readme)

    def test_les_trois_plus_grands_desaccords_avec_leur_justification(self):
        wrong = {"Le CV n° 3": 8, "- CV n° 2": 1, "Le CV n° 5": 0, "- CV n° 1": 5}
        judges = {"Le": lambda n: 3, "- ": lambda n: 3 + n}
        self.fill(lambda text: wrong.get(text, judges[text[:2]](self.number(text))))
        lines = {self.text(row): line for line, row in enumerate(self.rows(), 2)}
        expected = [
            "",
            "Vos plus grands désaccords, et la justification du juge :",
        ]  # écarts : 5, 4 et 3, puis 1
        for text, version, yours, judge in (
            ("Le CV n° 3", "V1", 8, 3),
            ("- CV n° 2", "V2", 1, 5),
            ("Le CV n° 5", "V1", 0, 3),
        ):
            place = f"ligne {lines[text]} ({version}, cas n° {self.number(text)})"
            expected += [
                f"{place} : vous {yours}.00, juge {judge}.00",
                "  « Fidèle, un peu long. »",
            ]
        self.assertEqual(self.accord()[0].splitlines()[-8:], expected)

    def test_un_accord_parfait_n_a_ni_biais_ni_desaccord(self):
        self.fill_by_case(lambda n: 3, lambda n: 3 + n)
        out = self.accord()[0]
        self.assertNotIn("désaccords", out)
        self.assertIn("exclut 0) : aucun.", out)

    def test_une_justification_ne_commande_pas_le_terminal(self):
        self.justification = "Fidèle\u001b[2J\net\u0007 \u202elong."
        self.remake()
        self.fill(lambda text: "1")
        self.assertIn("  « Fidèle [2J et   long. »", self.accord()[0])

    def test_des_biais_qui_se_compensent_dans_la_moyenne_sont_dits(self):
        # Écarts de 1 à 6 en exactitude, de -1 à -6 en concision, aucun en couverture.
        self.marks = lambda summary, name: {"exactitude": 8, "concision": 2, "couverture": 5}
        self.remake()
        rows = self.rows()
        for row in rows:
            gap = self.number(self.text(row))
            row.update(zip(TITLES, (8 - gap, 2 + gap, 5)))
        self.save(rows)
        out = self.accord()[0]
        self.assertIn("+3.50   +1.55 à +5.45", out)
        self.assertIn("-3.50   -5.45 à -1.55", out)
        self.assertIn(
            "\nBiais établis (ceux dont l'intervalle exclut 0) : exactitude, concision.\n", out
        )

    def test_un_biais_dont_l_intervalle_contient_zero_n_est_pas_dit(self):
        self.fill_by_case(lambda n: 3 + (-1) ** n, lambda n: 3 + n + (-1) ** n)  # biais : ±1
        self.assertIn("-1.14 à +1.14", self.accord()[0])  # 0 ± 2,55 × √(6/5)/√6
        self.assertIn("exclut 0) : aucun.", self.accord()[0])

    def test_un_intervalle_etroit_qui_contient_zero_n_est_pas_un_biais(self):
        # Biais : ±0,25 ; 0 ± 2,55 × 0,25 × √(6/5)/√6 = 0 ± 0,28.
        gaps = {n: (-1) ** n / 4 for n in range(1, 7)}
        self.fill_by_case(lambda n: 3 + gaps[n], lambda n: 3 + n + gaps[n])
        self.assertIn("-0.28 à +0.28", self.accord()[0])
        self.assertIn("exclut 0) : aucun.", self.accord()[0])

    def test_un_intervalle_affiche_a_partir_de_zero_ne_l_exclut_pas(self):
        # Biais -0,5, 0, 1,5, 3, 3 et 3 : moyenne 10/6 = 1,667, variance (29,5 - 6 × 1,667²)/5 =
        # 2,567, écart type 1,602 ; 1,667 ± 2,547 × 1,602/√6 = 1,667 ± 1,666.
        gaps = dict(enumerate((-0.5, 0, 1.5, 3, 3, 3), 1))
        self.fill_by_case(lambda n: 3 - gaps[n], lambda n: 3 + n - gaps[n])
        self.assertIn("+0.00 à +3.33", self.accord()[0])
        self.assertIn("exclut 0) : aucun.", self.accord()[0])

    def test_sous_six_cas_on_ne_conclut_pas(self):
        self.fill(lambda text: "1" if self.number(text) < 6 else "")
        self.assertIn("exclut 0) : aucun.", self.accord()[0])
        self.assertIn("selon le juge : écart +3.00 ; intervalle à 95 % : -\n", self.accord()[0])
        expected = (
            "On ne peut pas le dire, car un intervalle manque ou contient 0 : notez d'autres cas "
            "sur tous les critères. Pour une feuille plus longue, donnez un autre nom de fichier, "
            "et ajoutez --exporter et un plus grand --nombre ; elle reprendra les lignes de la "
            "feuille actuelle, mais sans vos notes, à recopier d'après les identifiants."
        )
        self.assertEqual(self.answer_to(), expected)

    def test_l_ecart_selon_vous_et_selon_le_juge_sur_les_memes_resumes(self):
        # Le juge met 2 de plus à V2, sauf 9 de plus au cas n° 7, que vous ne notez pas.
        marks = {"- CV n° 7": 10}
        self.marks = lambda summary, name: marks.get(summary, 3 if summary[0] == "-" else 1)
        self.remake(cases=7)
        self.fill_by_case(lambda n: "" if n == 7 else 1, lambda n: n + 1)
        expected = {"cases": 6, "human": 3.5, "human_interval": [1.55, 5.45]}
        expected |= {"judge": 2.0, "judge_interval": None}
        self.assertEqual(self.report()["comparisons"], {"V2": expected})

    def test_un_cas_note_dans_une_seule_version_ne_compte_pas_dans_l_ecart(self):
        self.fill_by_case(lambda n: "" if n == 2 else 1, lambda n: n + 1)
        found = self.report()["comparisons"]["V2"]
        self.assertEqual((found["cases"], found["human"]), (5, 3.8))  # (1 + 3 + 4 + 5 + 6)/5
        # Et sans le V2 du cas 1, pour le juge : 2, 3, 4, 5 et 6.
        self.fill_by_case(lambda n: 4, lambda n: "" if n == 1 else 4)
        found = self.report()["comparisons"]["V2"]
        self.assertEqual((found["cases"], found["human"], found["judge"]), (5, 0, 4))

    def test_un_ecart_compte_chaque_cas_une_fois(self):
        numbers = itertools.count()
        self.summary = lambda version, name: f"{version} {name} essai {next(numbers)}"
        self.remake("--passages", "2", cases=2)
        rows = self.rows()
        seen = set()
        for row in rows:  # cas n° 1 : 2 à V1, 4 à V2, deux fois ; cas n° 2 : 2 et 8, V1 une fois
            version, case = self.text(row)[:2], self.number(self.text(row))
            mark = 2 if version == "V1" else 4 * case
            if (version, case) == ("V1", 2) and (version, case) in seen:
                mark = ""
            seen.add((version, case))
            row.update(dict.fromkeys(TITLES, mark))
        self.save(rows)
        self.assertEqual(self.report()["n"], 7)
        self.assertEqual(self.report()["comparisons"]["V2"]["human"], 4)  # (2 + 6)/2

    def test_un_ecart_trop_petit_pour_se_voir_n_a_pas_de_signe_moins(self):
        self.fill(lambda text: "4,99" if text == "- CV n° 1" else "5")  # -0,01/6
        self.assertIn(
            "selon vous    : écart +0.00 ; intervalle à 95 % : -0.01 à +0.00\n", self.accord()[0]
        )

    def test_le_meme_sens_a_la_baisse(self):
        self.marks = lambda summary, name: 9 - self.number(name) * summary.startswith("- ")
        self.remake()
        self.fill_by_case(lambda n: 9, lambda n: 9 - n)
        self.assertIn("selon vous    : écart -3.50 ;", self.accord()[0])
        self.assertEqual(self.answer_to(), "Oui.")

    def test_le_sens_inverse(self):
        self.fill_by_case(lambda n: 9, lambda n: 9 - n)
        expected = (
            "Non, il les classe dans l'ordre inverse : précisez la grille avant de le croire."
        )
        self.assertEqual(self.answer_to(), expected)

    def test_on_ne_peut_pas_dire_quand_un_des_deux_ecarts_peut_etre_nul(self):
        self.fill_by_case(lambda n: 5, lambda n: 5 + (-1) ** n)  # le vôtre
        self.assertIn("On ne peut pas le dire", self.answer_to())
        self.marks = lambda summary, name: 5  # celui du juge, toujours nul
        self.remake()
        self.fill_by_case(lambda n: 1, lambda n: n + 1)
        self.assertIn("On ne peut pas le dire", self.answer_to())


del Accord  # ses sous-classes seules ont des tests

if __name__ == "__main__":
    unittest.main()
