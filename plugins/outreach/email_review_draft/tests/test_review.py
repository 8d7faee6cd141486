import unittest

from mortise.testing import call
from plugin import plugin
from rules import review

GOOD = {"subject": "Your work on uranium", "body": "Dear Professor Curie,\n\nI read your paper. Could we talk next week?\n\nKind regards,\nAda\n"}


def ask(draft, names=(), score=80):
    scored = {"status": "succeeded", "data": {"score": score, "findings": [{"rule": "length"}]}}
    return call(plugin, "Email.ReviewDraft", {"draft": draft, "names": list(names)}, services={"operations.call": scored})


def body(text):
    return dict(GOOD, body=GOOD["body"].replace("I read your paper.", text))


class Review(unittest.TestCase):
    def test_a_good_draft_is_ready(self):
        data = ask(GOOD, ["Curie"]).data
        self.assertEqual((data["verdict"], data["issues"], data["score"]), ("ready", [], 80))

    def test_each_rule_finds_its_own_matter_where_it_stands(self):
        cases = [
            ("placeholder", body("I am {student}."), "{student}", None),
            ("placeholder", body("Hello [Your name]."), "[Your name]", None),
            ("card_number", body("It is 4111 1111 1111 1111."), "4111 1111 1111 1111", None),
            ("repeated_word", body("I read the The paper."), "the The", "the"),
            ("shouting", body("It is great!!"), "!!", "!"),
            ("spaces", body("I  read."), "  ", " "),
            ("spaces", body("I read ."), " ", ""),
            ("wordy", body("In order to learn."), "In order to", "To"),
            ("long_sentence", body("word " * 41 + "end."), "word " * 41 + "end.", None),
            ("long_paragraph", body("Few words here. " * 50), None, None),
            ("long_subject", dict(GOOD, subject="s" * 90), "s" * 12, None),
            ("capitals", dict(GOOD, subject="GREAT OFFER"), "GREAT OFFER", None),
            ("no_greeting", dict(GOOD, body=GOOD["body"].split("\n", 2)[2]), "", None),
            ("no_closing", dict(GOOD, body=GOOD["body"].split("Kind")[0]), "", None),
            ("no_request", dict(GOOD, body=GOOD["body"].replace("Could we talk next week?", "")), "", None),
        ]
        for rule, draft, found, replacement in cases:
            with self.subTest(rule, found=found):
                issues = [issue for issue in review(draft, []) if issue["rule"] == rule]
                self.assertTrue(issues)
                at = issues[0]["at"]
                self.assertEqual(draft[at["part"]][at["start"] : at["end"]][:500], issues[0]["found"])
                self.assertEqual(at["line"], draft[at["part"]][: at["start"]].count("\n") + 1)
                if found is not None:
                    self.assertEqual(issues[0]["found"], found)
                self.assertEqual(issues[0].get("replacement"), replacement)

    def test_a_name_that_is_missing_is_named(self):
        [issue] = ask(GOOD, ["Curie", "polonium"]).data["issues"]
        self.assertEqual((issue["rule"], "polonium" in issue["text"]), ("not_personal", True))

    def test_one_error_or_a_low_score_is_enough_to_revise(self):
        self.assertEqual(ask(body("TODO")).data["verdict"], "revise")
        self.assertEqual(ask(GOOD, score=69).data["verdict"], "revise")

    def test_errors_come_first_and_there_is_an_end(self):
        issues = review(body("a  b " * 200 + "TODO"), [])
        self.assertEqual((issues[0]["rule"], len(issues)), ("placeholder", 100))

    def test_what_is_right_twice_is_left_alone(self):
        self.assertEqual([i for i in review(body("I had had that that."), []) if i["rule"] == "repeated_word"], [])

    def test_no_text_makes_it_slow(self):
        for text in ("a " * 30_000, "{" * 60_000, "[your " * 10_000, "1 " * 30_000, "\n \n" * 20_000, "!" * 60_000, "A" * 60_000, "x." * 30_000, " \t" * 30_000):
            self.assertLessEqual(len(review(dict(GOOD, body=text), [])), 100)

    def test_only_the_tool_is_asked(self):
        self.assertEqual({(method, args["operation"]) for method, args in ask(GOOD).requests}, {("operations.call", "Text.Score")})


if __name__ == "__main__":
    unittest.main()
