import random
import unittest

from matching import match, places, stem
from mortise.testing import call
from plugin import plugin

WANTED = ["uranium minerals", "computing engines"]
OFFERED = ["On a new substance in pitchblende", "Rays emitted by compounds of uranium", "Radioactive uranium minerals"]


class Matching(unittest.TestCase):
    def test_what_is_alike_comes_first_and_says_why(self):
        answer = call(plugin, "Similarity.Match", {"wanted": WANTED, "offered": OFFERED}).data
        best = answer["pairs"][0]
        self.assertEqual((best["wanted"], best["offered"]), (0, 2))
        self.assertEqual({term["term"] for term in best["terms"]}, {"uranium", "minerals", "uranium minerals"})
        self.assertEqual(answer["ranked"]["offered"], [OFFERED[2], OFFERED[1], OFFERED[0]])
        self.assertEqual(answer["ranked"]["wanted"], WANTED)
        self.assertEqual(len(answer["pairs"]), 2)

    def test_every_term_stands_where_it_is_said_to(self):
        for pair in match(WANTED, OFFERED, 10)["pairs"]:
            for term in pair["terms"]:
                for text, member in ((WANTED[pair["wanted"]], "in_wanted"), (OFFERED[pair["offered"]], "in_offered")):
                    for at in term[member]:
                        words = text[at["start"] : at["end"]].split()
                        self.assertEqual([stem(w) for w in words], [stem(w) for w in term["term"].split()])

    def test_the_shares_of_a_pair_are_its_score(self):
        for pair in match(WANTED, OFFERED, 10)["pairs"]:
            self.assertAlmostEqual(sum(term["share"] for term in pair["terms"]), 1, places=3)

    def test_equal_texts_are_one_and_strangers_nothing(self):
        self.assertEqual(match(["rare earth magnets"], ["Rare earth magnets"], 1)["score"], 1)
        stranger = match(["rare earth magnets"], ["medieval poetry"], 1)
        self.assertEqual((stranger["score"], stranger["pairs"]), (0, []))

    def test_it_does_not_matter_which_list_is_which(self):
        there, back = match(WANTED, OFFERED, 100)["pairs"], match(OFFERED, WANTED, 100)["pairs"]
        self.assertEqual({(p["wanted"], p["offered"]): p["score"] for p in there}, {(p["offered"], p["wanted"]): p["score"] for p in back})

    def test_a_rare_term_counts_more_than_a_common_one(self):
        offered = ["model of cells", "model of stars", "model of tides", "pulsars of the south"]
        best = match(["model pulsars"], offered, 1)["pairs"][0]
        self.assertEqual(best["offered"], 3)

    def test_no_term_reaches_over_a_full_stop(self):
        self.assertNotIn("rock music", places("We cut rock. Music helps."))
        self.assertIn("rock music", places("We hear rock music."))

    def test_scores_stay_in_bounds_whatever_the_words(self):
        words = ["cell", "cells", "the", "ß", "é", "地质", "x1", "-", "'", "ing", "a" * 300]
        pick = random.Random(7)
        for _ in range(200):
            lists = [[" ".join(pick.choices(words, k=pick.randint(1, 9))) for _ in range(pick.randint(1, 5))] for _ in range(2)]
            answer = match(*lists, 100)
            self.assertEqual(answer, match(*lists, 100))
            self.assertTrue(0 <= answer["score"] <= 1)
            self.assertTrue(all(0 < pair["score"] <= 1 and pair["terms"] for pair in answer["pairs"]))
            self.assertEqual(sorted(answer["ranked"]["offered"]), sorted(lists[1]))


if __name__ == "__main__":
    unittest.main()
