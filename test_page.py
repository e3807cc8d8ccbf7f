"""Les tests d'outils/page.py : de vrais journaux, faits face au serveur de test_eval_cv.py, et la
page que l'outil en tire.

python3 -m unittest test_page
"""

import json
import os
import re
import subprocess
import sys
import unittest
from html import unescape
from pathlib import Path
from unittest.mock import patch

from test_eval_cv import CRITERIA, HERE, KEY, WithApi, error, eval_cv, message

sys.path.insert(0, str(HERE / "outils"))

import page

SPACE = "\u00a0"  # l'espace insécable
POINTS = "- un poste\n- deux compétences\n- trois succès"  # passe les deux contrôles par code
PROSE = "Un poste, des compétences, des succès."  # n'en passe aucun


def notes(mark):
    """La réponse du juge : une note, la même pour tous les critères, ou une liste d'une par
    critère."""
    marks = mark if isinstance(mark, list) else [mark] * len(CRITERIA)
    return message(json.dumps({"justification": "Parce que.", **dict(zip(CRITERIA, marks))}))


def texts(pattern, html):
    """Ce que trouve une expression dans la page, sans balises et comme on le tape au clavier."""
    found = re.findall(pattern, html, re.DOTALL)
    typed = str.maketrans({SPACE: " ", "’": "'"})
    return [unescape(re.sub("<.*?>", "", text)).translate(typed) for text in found]


class Page(WithApi):
    def evaluate(self, marks, *options, code=0):
        """Évalue des cas. `marks` donne les notes de chaque CV par version, {"CV un": [9, 5]} ;
        None est un refus du juge. Le résumé dit de quel prompt et de quel CV il vient."""
        count = len(next(iter(marks.values())))
        prompts = [self.file(f"v{n}.txt", f"Consigne {n}") for n in range(1, count + 1)]

        def summary(text):
            number = re.search(r"Consigne (\d)", text)[1]
            return message(f"Version {number}, {re.search('CV [a-z]+', text)[0]}")

        def grade(text):
            number, name = re.search(r"Version (\d), (CV [a-z]+)", text).groups()
            mark = marks[name][int(number) - 1]
            return message("", "refusal") if mark is None else notes(mark)

        self.api.summary = summary
        self.api.grade = grade
        cases = self.cases([{"input": name, "expected_focus": f"focus {name}"} for name in marks])
        arguments = ["--cas", cases, "--passages", "1", "--prompts", *prompts, *options]
        return self.script(*arguments, code=code)

    def one_case(self, summary, grade, *options, code=0):
        """Évalue un seul cas avec un seul prompt."""
        self.api.summary = summary
        self.api.grade = grade
        cases = self.cases([{"input": "CV un", "expected_focus": "focus"}])
        arguments = ["--cas", cases, "--prompts", "PROMPT_V1", "--passages", "1", *options]
        return self.script(*arguments, code=code)

    def page(self, path=None):
        """La page d'un journal, celui de l'évaluation par défaut."""
        path = Path(path or self.journal())
        self.main(page.command, str(path))
        return path.with_suffix(".html").read_text(encoding="utf-8")

    def table(self, html):
        """Les lignes du tableau des cas, en-têtes compris : [["cas", "V1"], ["1", "7,67"]]."""
        rows = re.findall("<tr>(.*?)</tr>", html, re.DOTALL)
        return [texts("<t[hd].*?>(.*?)</t[hd]>", row) for row in rows]

    def tool(self, *arguments, **options):
        """Lance l'outil depuis le dossier temporaire, comme on le fait d'un terminal."""
        command = [sys.executable, str(HERE / "outils" / "page.py"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        given = {"cwd": self.folder, "env": environment, "encoding": "utf-8"}
        return subprocess.run(command, **given, **pipes)


class Tableau(Page):
    def test_la_plus_grande_baisse_vient_en_tete_et_les_cas_sans_note_a_la_fin(self):
        marks = {"CV un": [5, 9, 5], "CV deux": [None, None, None], "CV trois": [8, 7, 2]}
        marks |= {"CV quatre": [None, 3, None], "CV cinq": [4, None, 4], "CV six": [9, 5, None]}
        self.evaluate(marks)
        html = self.page()
        rows = self.table(html)
        [whole] = texts("<table>(.*?)</table>", html)
        self.assertEqual(whole.strip(), "".join(cell for row in rows for cell in row))
        self.assertEqual(rows[0][:6], ["cas", "V1", "V2", "V3", "V2 − V1", "V3 − V1"])
        self.assertEqual(
            rows[1:],  # à la fin, les notes au-dessus de 5 : tous les contrôles échouent
            [
                ["3", "8,00", "7,00", "2,00", "−1,00", "−6,00", "2"],
                ["6", "9,00", "5,00", "–", "−4,00", "–", "1"],
                ["1", "5,00", "9,00", "5,00", "+4,00", "+0,00", "1"],
                ["5", "4,00", "–", "4,00", "–", "+0,00", "0"],
                ["4", "–", "3,00", "–", "–", "–", "0"],
                ["2", "–", "–", "–", "–", "–", "0"],
            ],
        )

    def test_un_cas_sans_note_en_v1_est_range_selon_sa_plus_basse_note(self):
        self.evaluate({"CV un": [5, 5, 5], "CV deux": [None, 4, 6], "CV trois": [None, 3, 9]})
        rows = self.table(self.page())
        self.assertEqual([row[0] for row in rows[1:]], ["1", "3", "2"])  # 3 avant 4

    def test_avec_une_seule_version_les_notes_basses_viennent_en_tete(self):
        self.evaluate({"CV un": [5], "CV deux": [None], "CV trois": [2]})
        html = self.page()
        rows = self.table(html)
        self.assertEqual([row[:2] for row in rows[1:]], [["3", "2,00"], ["1", "5,00"], ["2", "–"]])
        self.assertIn("Les notes les plus basses d’abord", html)

    def test_les_ecarts_sont_ceux_des_notes_affichees(self):
        # 17/3 = 5,67 et 19/3 = 6,33 : l'écart affiché est 0,66, et non 2/3 arrondi à 0,67.
        self.evaluate({"CV un": [[5, 6, 6], [6, 6, 7]]})
        self.assertEqual(self.table(self.page())[1][1:4], ["5,67", "6,33", "+0,66"])

    def test_la_moyenne_d_un_cas_est_celle_de_ses_passages_notes(self):
        answers = iter([notes(4), message("", "refusal"), notes(7)])
        options = ["--passages", "3", "--paralleles", "1"]
        self.one_case(lambda text: message(POINTS), lambda text: next(answers), *options)
        self.assertEqual(self.table(self.page())[1][:2], ["1", "5,50"])  # (4 + 7) / 2

    def test_chaque_numero_mene_a_ses_resumes_et_l_on_en_revient(self):
        self.evaluate({"CV un": [5, 9], "CV deux": [8, 2]})
        html = self.page()
        links = re.findall('href="#(.*?)"', html)
        self.assertEqual(links, ["cas-2", "cas-1", "cas", "cas"])
        self.assertLessEqual(set(links), set(re.findall('id="(.*?)"', html)))
        section = html.partition('id="cas-2"')[2]
        self.assertIn("Version 1, CV deux", section)
        self.assertNotIn("Version 1, CV un", section)

    def test_les_cellules_d_en_tete_disent_ce_qu_elles_nomment(self):
        self.evaluate({"CV un": [5, 9], "CV deux": [8, 2]})
        html = self.page()
        self.assertEqual(html.count('<th scope="col">'), 5)  # cas, V1, V2, écart, juge ≠ code
        self.assertEqual(html.count('<th scope="row">'), 2)
        self.assertEqual(html.count("<th"), 1 + 5 + 2)  # <thead> compris

    def test_le_tableau_vient_avant_les_versions_et_les_cas_dans_l_ordre(self):
        self.evaluate({"CV un": [5, 9], "CV deux": [8, 2]})
        titles = texts("<h[23].*?>(.*?)</h[23]>", self.page())
        expected = ["V1 → V2", "Tous les cas", "Les versions", "V1 (v1.txt)", "V2 (v2.txt)"]
        expected += ["La grille du juge", "Cas par cas", "Cas n° 1", "Cas n° 2"]
        names = [title.replace(str(self.folder) + os.sep, "") for title in titles]
        self.assertEqual(names, expected)


class BeaucoupDeCas(Page):
    def test_le_tableau_range_les_cas_selon_toutes_les_comparaisons(self):
        # Écarts : 0 et +1 ; −5 et 0 (perdu si seule la dernière comparaison comptait) ; 0 et +3.
        self.evaluate({"CV un": [5, 5, 6], "CV deux": [7, 2, 7], "CV trois": [4, 4, 7]})
        html = self.page()
        self.assertEqual([row[0] for row in self.table(html)[1:]], ["2", "1", "3"])
        self.assertEqual(re.findall('href="#(cas-.*?)"', html), ["cas-2", "cas-1", "cas-3"])
        titles = texts("<h3 id=.*?>(.*?)</h3>", html)
        self.assertEqual(titles, ["Cas n° 1", "Cas n° 2", "Cas n° 3"])

    def test_tous_les_cas_sont_detailles_et_dessines(self):
        cases = [{"input": f"CV n° {n}", "expected_focus": "x"} for n in range(302)]
        self.script("--demo", "--passages", "1", "--cas", self.cases(cases))
        html = self.page()
        self.assertEqual(html.count("<h3 id="), 302)
        self.assertEqual(html.count('<a href="#cas-'), 302)
        self.assertEqual(len(self.table(html)), 1 + 302)
        self.assertEqual(html.count('<line class="mean"'), 4)
        self.assertEqual(html.count("<line"), 4 * (302 + 1))


class Comparaisons(Page):
    def test_chaque_cas_est_un_trait_de_sa_note_avant_a_sa_note_apres(self):
        # En hauteur, 0 est à 150 et 10 à 10 : 14 par point. La moyenne va de 5 (15/3) à 6 (18/3).
        self.evaluate({"CV un": [0, 10], "CV deux": [10, 3], "CV trois": [5, 5]})
        lines = re.findall(
            '<line class="(.*?)" x1="30" y1="(.*?)" x2="140" y2="(.*?)"/>', self.page()
        )
        expected = [("up", "150.0", "10.0"), ("down", "10.0", "108.0"), ("flat", "80.0", "80.0")]
        expected.append(("mean", "80.0", "66.0"))
        self.assertEqual(lines, expected * 4)  # la moyenne et les trois critères

    def test_la_legende_compte_les_hausses_les_baisses_et_les_stables(self):
        marks = {"CV un": [0, 10], "CV deux": [10, 3], "CV trois": [5, 5], "CV quatre": [1, 2]}
        self.evaluate({**marks, "CV cinq": [7, 7], "CV six": [1, 3], "CV sept": [8, None]})
        # V1 : (0+10+5+1+7+1)/6 = 4 ; V2 : (10+3+5+2+7+3)/6 = 5 ; le septième n'est pas comparé.
        legend = "4,00 → 5,00 (+1,00) ; cas en hausse : 3, en baisse : 1, stables : 2"
        html = self.page()
        captions = texts("<figcaption>(.*?)</figcaption>", html)
        names = ["moyenne", "exactitude", "concision", "couverture"]
        self.assertEqual(captions, [name + legend for name in names])
        labels = texts('aria-label="(.*?)"', html)
        self.assertEqual(labels[:4], [f"{name} : {legend}" for name in names])
        self.assertEqual(html.count("<line"), 4 * (6 + 1))

    def test_chaque_critere_a_son_dessin(self):
        self.evaluate({"CV un": [[0, 5, 10], [10, 5, 0]]})
        kinds = re.findall('<line class="(up|down|flat)"', self.page())
        self.assertEqual(kinds, ["flat", "up", "flat", "down"])

    def test_une_baisse_se_voit_sans_les_couleurs(self):
        self.evaluate({"CV un": [5, 4]})
        html = self.page()
        self.assertRegex(html, r"svg \.down {[^}]*stroke-dasharray")
        self.assertIn("pointillé si elle baisse", html)

    def test_la_page_dit_les_phrases_de_l_ecran(self):
        # Écarts 0, 1, 1, 1, 1, 2 : moyenne 1, écart type √0,4 = 0,632 ; Student à 5 degrés, 2,571 :
        # 1 ± 2,571 × 0,632 / √6, soit 1 ± 0,66.
        marks = {"CV un": [5, 5], "CV deux": [5, 6], "CV trois": [5, 6], "CV quatre": [5, 6]}
        screen = self.evaluate({**marks, "CV cinq": [5, 6], "CV six": [5, 7]})[0]
        said = texts("<p>(.*?)</p>", self.page().partition("<h2>V1")[2])
        self.assertEqual(said[0], "V1 : 5,00/10 → V2 : 6,00/10 (+1,00)")
        for sentence in said[:3]:
            self.assertIn(re.sub(r"(?<=\d),(?=\d)", ".", sentence) + "\n", screen)
        self.assertRegex(said[2], r"écart \+1,00, intervalle à 95 % de \+0,34 à \+1,66")

    def test_chaque_version_est_comparee_a_la_premiere(self):
        self.evaluate({"CV un": [5, 6, 3]})
        said = texts("<p>(.*?)</p>", self.page())
        self.assertIn("V1 : 5,00/10 → V2 : 6,00/10 (+1,00)", said)
        self.assertIn("V1 : 5,00/10 → V3 : 3,00/10 (−2,00)", said)

    def test_sans_cas_commun_il_n_y_a_qu_une_phrase(self):
        self.evaluate({"CV un": [5, None], "CV deux": [None, 5]}, code=1)
        html = self.page()
        self.assertIn(f"V1{SPACE}→ V2{SPACE}: aucun cas n’est noté dans les deux versions.", html)
        self.assertNotIn("<svg", html)
        self.assertNotIn("objectif", html)

    def test_une_seule_version_n_est_comparee_a_rien(self):
        self.evaluate({"CV un": [5]})
        html = self.page()
        self.assertNotIn("→", html)
        self.assertNotIn("<svg", html)


class Contexte(Page):
    def test_le_titre_donne_la_moyenne_de_chaque_version(self):
        self.evaluate({"CV un": [[9, 6, 8], None]}, code=1)  # (9 + 6 + 8) / 3 = 7,67
        html = self.page()
        title = "Évaluation de prompts, moyennes sur 10 : V1 7,67 ; V2 indisponible"
        self.assertEqual(texts("<title>(.*?)</title>", html), [title])
        self.assertEqual(texts("<h1>(.*?)</h1>", html), [title])

    def test_les_modeles_demandes_et_ceux_qui_ont_repondu(self):
        models = ["--modele", "claude-3.5", "--juge", "claude-3.7"]
        self.one_case(
            lambda text: {**message(POINTS), "model": "petit-2.1"},
            lambda text: {**notes(5), "model": "claude-3.7"},
            *models,
        )
        html = self.page()
        soft = texts('<p class="soft">(.*?)</p>', html)
        self.assertEqual(soft[0], "Résumés : claude-3.5 ; notes : claude-3.7")
        self.assertEqual(soft[1], "Modèle demandé : claude-3.5 ; modèle qui a répondu : petit-2.1")
        self.assertEqual(html.count("a répondu"), 1)
        journal = self.journal().name
        self.assertEqual(soft[2], f"Cas : 1 ; passages : 1 ; journal : {journal}")

    def test_chaque_version_a_son_bilan_et_son_prompt(self):
        answers = iter([notes(4), notes(7), message("", "refusal"), notes(8)])
        self.api.grade = lambda text: next(answers)
        self.api.summary = lambda text: message(POINTS)
        cases = [
            {"input": "CV un", "expected_focus": "x"},
            {"input": "CV deux", "expected_focus": "x"},
        ]
        prompts = ["--prompts", self.file("p.txt", "Résume en v1.5 !")]
        options = ["--cas", self.cases(cases), *prompts, "--passages", "2", "--paralleles", "1"]
        self.script(*options)
        # Ordre des appels : passage 1, cas 1 et 2 (4 et 7) ; passage 2, cas 1 et 2 (refus et 8).
        # Moyennes par cas 4 et 7,5, d'où 5,75. Passages : 5,5 et 8. La note qui manque à 0 donne
        # (2 + 7,5)/2, soit 4,75 ; à 10, (7 + 7,5)/2, soit 7,25.
        html = self.page()
        lines = texts("<h3>.*?<pre>(.*?)</pre>", html)[0].split("\n")
        self.assertEqual(
            lines,
            [
                "Moyenne : 5,75/10 | exactitude : 5,75 | concision : 5,75 | couverture : 5,75"
                " | notations impossibles : 1",
                "  1 × notation : le modèle a refusé de répondre",
                "  moyenne entre 4,75 (notes manquantes à 0) et 7,25 (à 10)",
                "Moyenne de chaque passage : 5,50 ; 8,00",
                "Résumés qui satisfont aux contrôles par code (faits par un programme, non par le "
                "juge) : trois points, 4 sur 4 ; 25 mots au plus, 4 sur 4",
            ],
        )
        self.assertIn("<summary>Le prompt</summary><pre>Résume en v1.5 !</pre>", html)

    def test_chaque_version_a_le_prompt_qui_est_le_sien(self):
        self.evaluate({"CV un": [5, 5]})
        prompts = texts("<summary>Le prompt</summary><pre>(.*?)</pre>", self.page())
        self.assertEqual(prompts, ["Consigne 1", "Consigne 2"])

    def test_un_journal_dont_un_modele_n_est_pas_un_texte_se_lit(self):
        self.evaluate({"CV un": [5]})
        for model in (None, ""):
            records = [json.loads(line) for line in self.journal().read_text("utf-8").splitlines()]
            for record in records:
                if "request" in record:
                    record["request"]["model"] = model
            damaged = self.file("abime.jsonl", "\n".join(map(json.dumps, records)))
            self.assertEqual(self.tool(damaged).returncode, 0)

    def test_la_grille_y_est(self):
        self.evaluate({"CV un": [5]})
        grid = texts("<li>(.*?)</li>", self.page())
        self.assertEqual(grid, [f"{name} : {text}" for name, text in CRITERIA.items()])


class Cas(Page):
    def test_le_cv_est_replie_et_l_attendu_visible(self):
        self.evaluate({"CV un": [5]})
        html = self.page()
        self.assertIn("<details><summary>Le texte du cas</summary><pre>CV un</pre></details>", html)
        self.assertIn("Informations attendues : focus CV un", texts('"soft">(.*?)</p>', html))

    def test_un_resume_identique_est_montre_une_fois_avec_les_notes_de_chaque_passage(self):
        summaries = iter([POINTS, PROSE, POINTS])
        answers = iter([notes(4), notes(3), notes([9, 6, 8])])
        self.one_case(
            lambda text: message(next(summaries)),
            lambda text: next(answers),
            *["--passages", "3", "--paralleles", "1"],
        )
        html = self.page()
        [first, second] = texts("<article>(.*?)</article>", html)
        self.assertEqual(html.count("un poste\n"), 1)
        self.assertIn("</article><article>", html)
        passed = "Contrôles par code : trois points, oui ; 25 mots au plus, oui"
        failed = "Contrôles par code : trois points, non ; 25 mots au plus, non"
        marks = "Passage 1 : moyenne 4 · exactitude 4 · concision 4 · couverture 4Parce que."
        again = "Passage 3 : moyenne 7,67 · exactitude 9 · concision 6 · couverture 8Parce que."
        low = "Désaccord : la moyenne est inférieure à 5, mais le résumé satisfait aux contrôles."
        self.assertEqual(first, POINTS + passed + marks + low + again)
        marks = "Passage 2 : moyenne 3 · exactitude 3 · concision 3 · couverture 3Parce que."
        self.assertEqual(second, PROSE + failed + marks)

    def test_les_versions_sont_cote_a_cote(self):
        self.evaluate({"CV un": [5, 6]})
        section = self.page().partition('id="cas-1"')[2]
        columns = texts("<h4>(.*?)<article>", section.replace("</h4>", ""))
        self.assertEqual(columns, ["V1", "V2"])
        self.assertLess(section.index("Version 1, CV un"), section.index("Version 2, CV un"))

    def test_une_cause_remplace_les_notes(self):
        self.evaluate({"CV un": [5], "CV deux": [None]})
        [good, bad] = texts("<article>(.*?)</article>", self.page())
        self.assertNotIn("pas de note", good)
        self.assertRegex(
            bad, "^Version 1, CV deux.*Passage 1 : pas de notenotation : le modèle a refusé"
        )

    def test_un_resume_manquant_dit_sa_cause(self):
        self.one_case(lambda text: message("", "refusal"), lambda text: notes(5), code=1)
        [article] = texts("<article>(.*?)</article>", self.page())
        self.assertEqual(article, "Passage 1 : pas de noterésumé : le modèle a refusé de répondre")

    def test_ce_qui_n_a_pas_ete_demande_n_est_pas_une_notation_impossible(self):
        self.evaluate({"CV un": [5], "CV deux": [6]})
        plan, *answers = self.journal().read_text("utf-8").splitlines()
        summaries = [line for line in answers if "output_config" not in line]
        html = self.page(self.file("resumes.jsonl", "\n".join([plan, *summaries])))
        self.assertEqual(html.count("note pas encore demandée"), 2)
        self.assertNotIn("pas de note<", html)
        self.assertIn(f"notations impossibles{SPACE}: 0", html)
        html = self.page(self.file("vide.jsonl", plan))
        self.assertEqual(html.count("résumé pas encore demandé<"), 2)
        self.assertIn(f"notations impossibles{SPACE}: 0", html)

    def test_une_evaluation_limitee_se_dit_partielle(self):
        self.evaluate({"CV un": [5], "CV deux": [6], "CV trois": [7]}, "--limite", "2")
        html = self.page()
        self.assertIn("Résultat partiel : 2 cas sur 3", texts('"soft">(.*?)</p>', html))
        self.assertEqual([row[0] for row in self.table(html)[1:]], ["1", "2"])
        self.assertIn(f"notations impossibles{SPACE}: 0", html)


class Controles(Page):
    def disagreements(self, summary, mark):
        """Ce que dit le tableau, et ce que disent les cas, d'un résumé et de sa note."""
        for old in self.folder.glob("resultats/*"):
            old.unlink()
        self.one_case(lambda text: message(summary), lambda text: notes(mark))
        html = self.page()
        return self.table(html)[1][-1], texts("<b>(Désaccord.*?)</b>", html)

    def test_une_bonne_note_et_un_controle_echoue_se_contredisent(self):
        said = "Désaccord : la moyenne dépasse 5, mais le résumé échoue à un contrôle."
        self.assertEqual(self.disagreements(PROSE, 6), ("1", [said]))
        one_of_two = "- " + "mot " * 26 + "\n- deux\n- trois"  # trois points, dont un de 26 mots
        self.assertEqual(self.disagreements(one_of_two, [5, 5, 6]), ("1", [said]))

    def test_une_mauvaise_note_et_des_controles_reussis_se_contredisent(self):
        said = "Désaccord : la moyenne est inférieure à 5, mais le résumé satisfait aux contrôles."
        self.assertEqual(self.disagreements(POINTS, [5, 5, 4]), ("1", [said]))

    def test_autrement_ils_ne_se_contredisent_pas(self):
        for summary, mark in [(PROSE, 5), (PROSE, 4), (POINTS, 5), (POINTS, 6)]:
            self.assertEqual(self.disagreements(summary, mark), ("0", []), (summary, mark))

    def test_le_tableau_compte_les_desaccords_de_tous_les_passages_et_versions(self):
        self.api.summary = lambda text: message(POINTS if "Règles" in text else PROSE)
        self.api.grade = lambda text: notes(9 if PROSE in text else 1)
        cases = self.cases([{"input": "CV un", "expected_focus": "x"}])
        self.script("--cas", cases, "--passages", "2")
        self.assertEqual(self.table(self.page())[1][-1], "4")

    def test_sans_controle_ni_colonne_ni_mention(self):
        with patch.object(eval_cv, "CHECKS", {}), patch.object(page, "CHECKS", {}):
            self.evaluate({"CV un": [9]})
            html = self.page()
        self.assertEqual(self.table(html), [["cas", "V1"], ["1", "9,00"]])
        self.assertNotIn("code", html.partition("</style>")[2])


class PageEntiere(Page):
    def test_tout_ce_qui_se_lit_dans_une_petite_page(self):
        self.evaluate({"CV un": [6, 4], "CV deux": [4, 7]})
        html = self.page().partition("</style>")[2].replace(str(self.folder) + os.sep, "")
        read = re.sub(r"(<[^>]*>|\s)+", " ", unescape(html)).strip().replace("’", "'")
        comparison = self.json("--reprendre", str(self.journal()))["comparisons"]["V2"]
        panel = "10 0 V1 V2 {} 5,00 → 5,50 (+0,50) ; cas en hausse : 1, en baisse : 1, stables : 0"
        checks = "Contrôles par code : trois points, non ; 25 mots au plus, non"
        grading = (
            "Passage 1 : moyenne {0} · exactitude {0} · concision {0} · couverture {0} Parce que."
        )
        high = " Désaccord : la moyenne dépasse 5, mais le résumé échoue à un contrôle."
        shares = "Résumés qui satisfont aux contrôles par code (faits par un programme, non par le "
        shares += "juge) : trois points, 0 sur 2 ; 25 mots au plus, 0 sur 2 Le prompt Consigne"
        means = "Moyenne : {0}/10 | exactitude : {0} | concision : {0} | couverture : {0} | "
        means += "notations impossibles : 0 Moyenne de chaque passage : {0} " + shares
        expected = [
            "Évaluation de prompts, moyennes sur 10 : V1 5,00 ; V2 5,50",
            page.INTRODUCTION,
            "Résumés : claude-sonnet-5-5 ; notes : claude-sonnet-5-5",
            f"Cas : 2 ; passages : 1 ; journal : {self.journal().name}",
            "V1 → V2 V1 : 5,00/10 → V2 : 5,50/10 (+0,50)",
            eval_cv.goal_sentence(comparison).replace("+0.50", "+0,50"),
            eval_cv.beyond_sentence("V1", "V2", comparison),
            page.HOW_TO_READ,
            *[panel.format(name) for name in ("moyenne", *CRITERIA)],
            "Tous les cas Les plus grandes baisses d'abord ; un tiret remplace une note ou un "
            "écart qui manque. La colonne « juge ≠ code » compte les résumés que le juge note "
            "au-dessus de 5 alors qu'ils échouent à un contrôle par code, ou au-dessous de 5 alors "
            "qu'ils satisfont à tous les contrôles.",
            "cas V1 V2 V2 − V1 juge ≠ code 1 6,00 4,00 −2,00 1 2 4,00 7,00 +3,00 1",
            f"Les versions V1 (v1.txt) {means.format('5,00')} 1",
            f"V2 (v2.txt) {means.format('5,50')} 2",
            "La grille du juge",
            *[f"{name} : {text}" for name, text in CRITERIA.items()],
            "Cas par cas Cas n° 1 Le texte du cas CV un Informations attendues : focus CV un",
            f"V1 Version 1, CV un {checks} {grading.format(6)}{high}",
            f"V2 Version 2, CV un {checks} {grading.format(4)} Retour au tableau",
            "Cas n° 2 Le texte du cas CV deux Informations attendues : focus CV deux",
            f"V1 Version 1, CV deux {checks} {grading.format(4)}",
            f"V2 Version 2, CV deux {checks} {grading.format(7)}{high} Retour au tableau",
        ]
        self.assertEqual(read, " ".join(expected))


class AutreEchelle(Page):
    def test_une_echelle_de_1_a_5_est_dessinee_entiere_et_son_milieu_est_3(self):
        source = (HERE / "eval_cv.py").read_text("utf-8")
        self.assertIn("SCALE = range(11)", source)
        script = self.file("eval_cv.py", source.replace("SCALE = range(11)", "SCALE = range(1, 6)"))
        (self.folder / "outils").mkdir()
        tool = self.file("outils/page.py", (HERE / "outils" / "page.py").read_bytes())
        # La démonstration : tout est fidèle (5), aucun tiret dans V1 (1), trois dans V2 (5), et ce
        # qui est attendu y est (5) ; la moyenne de V1 est 11/3, au-dessus de 3.
        case = {
            "input": "Poste : juriste\nVille : Lyon\nLangue : anglais",
            "expected_focus": "Lyon",
        }
        options = ["--demo", "--passages", "1", "--cas", self.cases([case])]
        for command in ([script, *options], [tool]):
            subprocess.run(
                [sys.executable, *command], cwd=self.folder, check=True, capture_output=True
            )
        html = next(self.folder.glob("resultats/*.html")).read_text("utf-8")
        self.assertEqual(self.table(html)[1], ["1", "3,67", "5,00", "+1,33", "1"])
        self.assertIn("la moyenne dépasse 3, mais le résumé échoue à un contrôle", html)
        heights = re.findall(
            '<line class="(?:up|flat)" x1="30" y1="(.*?)" x2="140" y2="(.*?)"', html
        )
        # De 150 (1) à 10 (5) : 35 par point ; 11/3 est à 150 - 35 × 8/3 = 56,7.
        expected = [("56.7", "10.0"), ("10.0", "10.0"), ("150.0", "10.0"), ("10.0", "10.0")]
        self.assertEqual(heights, expected)
        self.assertIn('<text x="24" y="14" text-anchor="end">5</text>', html)
        self.assertIn('<text x="24" y="154" text-anchor="end">1</text>', html)


class Securite(Page):
    ATTACK = '</pre><script>alert(1)</script><img src=x onerror="alert(1)"> \' & <cv>'

    def test_rien_de_ce_qui_vient_d_ailleurs_n_est_du_html(self):
        self.api.summary = lambda text: {**message(self.ATTACK), "model": self.ATTACK + "bis"}
        answer = {"justification": self.ATTACK, **dict.fromkeys(CRITERIA, 5)}
        self.api.grade = lambda text: message(json.dumps(answer))
        cases = self.cases([{"input": "CV" + self.ATTACK, "expected_focus": self.ATTACK}])
        prompt = self.file("p.txt", "Résume " + self.ATTACK)
        options = ["--cas", cases, "--prompts", prompt, prompt, "--passages", "1"]
        self.script(*options, "--modele", self.ATTACK, "--juge", "j")
        html = self.page()
        self.assertNotIn("<script", html)
        self.assertNotIn("<img", html)
        # Le CV, l'attendu, deux prompts, deux résumés, deux justifications ; le modèle, deux fois ;
        # celui qui a répondu.
        self.assertEqual(html.count("&lt;script&gt;"), 11)

    def test_un_nom_de_prompt_et_une_cause_ne_sont_pas_du_html(self):
        bad = (400, error("invalid_request_error", "<script>3.5</script>"))
        self.one_case(lambda text: bad, lambda text: notes(5), code=1)
        lines = self.journal().read_text("utf-8").replace('"names": ["', '"names": ["<img>')
        html = self.page(self.file("autre.jsonl", lines))
        self.assertIn("V1 (&lt;img&gt;PROMPT_V1)", html)
        self.assertEqual(html.count("&lt;script&gt;3.5&lt;/script&gt;"), 2)  # bilan, puis cas
        self.assertNotIn("<img", html)
        self.assertNotIn("<script", html)

    def test_la_page_ne_charge_rien_et_ne_contient_pas_la_cle(self):
        self.evaluate({"CV un": [5, 6]})
        html = self.page()
        self.assertIn("content=\"default-src 'none'; style-src 'unsafe-inline'\"", html)
        self.assertNotRegex(html, r"(?:src=|url\(|@import|<link|https?://)")
        self.assertNotIn(KEY, html)

    def test_l_api_n_est_jamais_appelee(self):
        self.evaluate({"CV un": [5], "CV deux": [None]})
        self.api.requests.clear()
        plan = self.journal().read_text("utf-8").splitlines()[0]
        self.page()
        self.page(self.file("vide.jsonl", plan))
        self.assertEqual(self.api.requests, [])

    @unittest.skipIf(os.name == "nt", "Windows n'a pas ces droits")
    def test_la_page_n_est_pas_plus_lisible_que_le_journal(self):
        self.evaluate({"CV un": [5]})
        self.journal().chmod(0o600)
        self.page()
        self.assertEqual(self.journal().with_suffix(".html").stat().st_mode & 0o777, 0o600)

    @unittest.skipIf(os.name == "nt", "sans objet")
    def test_son_brouillon_n_est_lisible_de_personne_d_autre_meme_un_instant(self):
        self.evaluate({"CV un": [5]})
        modes = []

        def copymode(source, draft):  # appelé une fois le brouillon écrit
            modes.append(draft.stat().st_mode & 0o777)

        with patch.object(page.shutil, "copymode", copymode):
            self.page()
        self.assertEqual(modes, [0o600])


class Francais(Page):
    def test_les_nombres_et_la_ponctuation_sont_ceux_du_francais(self):
        for sentence, expected in [
            ("V1 : 6.89/10 → V2 : 5.34/10 (-1.55)", "V1~: 6,89/10~→ V2~: 5,34/10 (−1,55)"),
            ("à 95 % de -0.40 à +2.70 ; oui !", "à 95~% de −0,40 à +2,70~; oui~!"),
            ("Sur 12 cas, 25 mots, n° 3 ?", "Sur 12~cas, 25~mots, n°~3~?"),
            ("2 × résumé : refus", "2~× résumé~: refus"),
            ("HTTP 400 : « v1.5 : non ! -2 »", "HTTP 400~: «~v1.5 : non ! -2~»"),
            ("« a » et 1.5 « b »", "«~a~» et 1,5 «~b~»"),
            ("peut-être 3-4", "peut-être 3-4"),
        ]:
            self.assertEqual(page.french(sentence), expected.replace("~", SPACE))

    def test_un_nom_cite_garde_ses_points_et_ses_espaces(self):
        sentence = "Résumés : claude-3.5 : a ; notes : b ! 1.5 ; 1.5"
        expected = "Résumés~: claude-3.5 : a~; notes~: b ! 1.5~; 1,5".replace("~", SPACE)
        self.assertEqual(page.french(sentence, "claude-3.5 : a", "b ! 1.5", ""), expected)

    def test_ni_un_texte_d_utilisateur_ni_un_nom_de_fichier_ne_changent(self):
        text = "Python 3.12 : 45 % ; « sûr » ! -1.5"
        cases = self.cases([{"input": "CV " + text, "expected_focus": text}])
        self.api.summary = lambda sent: message(text)
        answer = {"justification": text, **dict.fromkeys(CRITERIA, 5)}
        self.api.grade = lambda sent: message(json.dumps(answer))
        prompt = self.file("v2.5 % bis.txt", "Résume. " + text)
        self.script("--cas", cases, "--prompts", prompt, "--passages", "1")
        html = self.page()
        self.assertEqual(html.count(text), 5)  # CV, attendu, prompt, résumé, justification
        self.assertIn("v2.5 % bis.txt)</h3>", html)

    def test_un_emoji_coupe_n_arrete_rien(self):
        self.one_case(lambda text: message("résumé \ud83d coupé"), lambda text: notes(5), code=1)
        self.assertIn("réponse illisible, un emoji y est coupé en deux", self.page())
        line = self.journal().read_text("utf-8").replace("PROMPT_V1", "p\\ud83d")
        self.assertIn("V1 (p?)", self.page(self.file("autre.jsonl", line)))


class Fichiers(Page):
    def test_un_journal_deplace_suffit(self):
        self.evaluate({"CV un": [5]})
        moved = self.folder / "ailleurs.jsonl"
        self.journal().rename(moved)
        for name in ("cas.json", "v1.txt"):
            (self.folder / name).unlink()
        self.assertIn("Version 1, CV un", self.page(moved))

    def test_une_erreur_n_efface_pas_la_page_precedente(self):
        self.evaluate({"CV un": [5]})
        before = self.page()
        path = self.journal()
        path.write_text(path.read_text("utf-8").replace("Tu évalues", "Tu juges"), "utf-8")
        self.main(page.command, str(path), code=2)
        self.assertEqual(path.with_suffix(".html").read_text("utf-8"), before)

    def test_une_ecriture_impossible_n_efface_pas_la_page_precedente(self):
        self.evaluate({"CV un": [5]})
        before = self.page()
        path = self.journal()
        path.with_suffix(".html.tmp").mkdir()
        err = self.main(page.command, str(path), code=2)[1]
        self.assertIn(".html.tmp : ", err)
        self.assertEqual(path.with_suffix(".html").read_text("utf-8"), before)

    def test_une_page_refaite_remplace_la_precedente_sans_rien_laisser(self):
        self.evaluate({"CV un": [5]})
        target = self.journal().with_suffix(".html")
        target.write_text("ancienne page", "utf-8")
        self.assertNotIn("ancienne page", self.page())
        names = {path.suffix for path in target.parent.iterdir()} - {""}
        self.assertEqual(names, {".jsonl", ".html"})

    def test_un_journal_nomme_comme_une_page_n_est_pas_ecrase(self):
        self.evaluate({"CV un": [5]})
        path = self.journal().rename(self.folder / "journal.html")
        before = path.read_bytes()
        err = self.main(page.command, str(path), code=2)[1]
        self.assertIn("journal.html : la page prendrait ce nom, renommez le journal en .jsonl", err)
        self.assertEqual(path.read_bytes(), before)

    def test_une_autre_grille_est_refusee(self):
        self.evaluate({"CV un": [5]})
        text = self.journal().read_text("utf-8")
        for old, new in [("Tu évalues", "Tu juges"), ('"couverture"', '"fond"')]:
            path = self.file("autre.jsonl", text.replace(old, new))
            err = self.main(page.command, path, code=2)[1]
            other = "la grille d'eval_cv.py n'est pas celle de la dernière évaluation de ce journal"
            self.assertIn(f"{path} : {other} ; remettez celle-ci, ou reprenez le journal", err)
            self.assertIn(f'grille actuelle) : "{sys.executable}"', err)
            self.assertIn(f'eval_cv.py" --reprendre "{path}"', err)

    def test_un_ancien_journal_se_lit_encore(self):
        self.evaluate({"CV un": [5, 9]})
        first, *answers = self.journal().read_text("utf-8").splitlines()
        settings = json.loads(first)
        names = ("cases", "prompts", "passages", "paralleles", "model", "judge")
        settings["run"] = {name: settings["run"][name] for name in names}
        lines = [json.dumps(settings), *answers]
        html = self.page(self.file("ancien.jsonl", "\n".join(lines)))
        self.assertEqual(self.table(html)[1][:4], ["1", "5,00", "9,00", "+4,00"])
        self.assertIn("V2 (prompt 2)", html)

    def test_ce_qui_n_est_pas_un_journal_est_refuse_par_une_phrase(self):
        for name, said in [
            (self.file("cas.json", "[]"), "ce n'est pas un journal d'eval_cv.py"),
            (
                str(self.folder / "absent.jsonl"),
                "ce fichier, ou le dossier où il doit être, n'existe pas",
            ),
        ]:
            self.assertIn(f"{name} : {said}", self.main(page.command, name, code=2)[1])
        self.assertIn(". : ", self.main(page.command, ".", code=2)[1])


class Commande(Page):
    def test_par_defaut_le_journal_modifie_en_dernier_qui_a_des_reponses(self):
        folder = self.folder / "resultats"
        for _ in range(2):
            self.script("--demo", "--passages", "1")
        first, second = folder.glob("*.jsonl")
        plan = first.read_text("utf-8").splitlines()[0]
        quoted = plan.replace(
            "Marketing digital", '\\"message\\": '
        )  # un texte n'est pas une réponse
        (folder / "vide.jsonl").write_text(quoted, "utf-8")
        (folder / "dossier.jsonl").mkdir()
        for age, name in enumerate([folder / "vide.jsonl", first, second]):
            os.utime(name, (10**9 - age, 10**9 - age))
        done = self.tool()
        self.assertEqual(
            done.stdout,
            f"Page à ouvrir dans un navigateur : {Path('resultats') / first.stem}.html\n",
        )
        os.utime(second, (2 * 10**9, 2 * 10**9))
        done = self.tool()
        self.assertEqual(
            done.stdout,
            f"Page à ouvrir dans un navigateur : {Path('resultats') / second.stem}.html\n",
        )

    def test_une_demonstration_le_dit_et_a_l_ecran_aussi_si_personne_ne_l_a_choisie(self):
        said = "une démonstration, où aucun modèle n'a rien résumé ni noté"
        self.script("--demo", "--passages", "1")
        name = Path("resultats") / self.journal().name
        self.assertEqual(self.tool().stderr, f"{name} est {said}\n")
        self.assertEqual(self.tool(str(self.journal())).stderr, "")
        html = self.journal().with_suffix(".html").read_text("utf-8")
        self.assertIn(f"Mais ceci est {said}.", texts("<p>(.*?)</p>", html))

    def test_une_vraie_evaluation_ne_se_dit_pas_une_demonstration(self):
        self.evaluate({"CV un": [5]})
        self.assertEqual(self.tool().stderr, "")
        self.assertNotIn("démonstration", self.page())

    def test_sans_journal_une_phrase_dit_quoi_faire(self):
        done = self.tool()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(
            done.stderr,
            "page.py : resultats/ : aucun journal n'y contient de réponse ; allez dans le dossier "
            "d'où vous avez lancé eval_cv.py, ou donnez le chemin d'un journal\n",
        )

    def test_la_commande_que_donne_eval_cv_fait_la_page(self):
        err = self.script("--demo")[1]
        command = re.search("Pour lire cette évaluation en une page : (.*)", err)[1]
        path = HERE / "outils" / "page.py"
        self.assertEqual(command, f'"{sys.executable}" "{path}" "{self.journal()}"')
        done = self.tool(str(self.journal()))
        target = self.journal().with_suffix(".html")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"Page à ouvrir dans un navigateur : {target}\n")
        self.assertTrue(target.exists())

    def test_l_aide_est_la_docstring(self):
        for option in ("-h", "--help"):
            done = self.tool(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout.strip(), page.__doc__.strip())

    def test_une_option_inconnue_est_refusee(self):
        done = self.tool("--couleur", "x.jsonl")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(
            " » est refusée, car le script n'attend pas « --couleur » ; voyez --help", done.stderr
        )

    @unittest.skipUnless(os.path.exists("/dev/full"), "propre à Linux")
    def test_une_sortie_pleine_est_une_phrase_et_la_page_est_ecrite(self):
        self.evaluate({"CV un": [5]})
        with open("/dev/full", "w") as full:
            done = self.tool(str(self.journal()), stdout=full)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^page.py : la sortie standard : .*\n$")
        self.assertTrue(self.journal().with_suffix(".html").exists())


if __name__ == "__main__":
    unittest.main()
