import json
import unittest

from improving import INSTRUCTIONS, by_rules
from mortise import ServiceError
from mortise.testing import call
from plugin import plugin

DRAFT = {"subject": "Your work", "body": "Dear Professor Curie,\n\nI write in order to ask the the question 7.\n\nBest,\nAda\n", "to": "m@example.org"}


def issue(rule, found, replacement=None, part="body"):
    start = DRAFT[part].index(found)
    made = {"rule": rule, "severity": "style", "text": "x", "at": {"part": part, "start": start, "end": start + len(found), "line": 1}, "found": found}
    return made if replacement is None else dict(made, replacement=replacement)


ISSUES = [issue("repeated_word", "the the", "the"), issue("wordy", "in order to", "to")]
OPEN = [*ISSUES, issue("long_sentence", "I write in order")]


def ask(answer, issues=OPEN, **changes):
    if isinstance(answer, dict) and "subject" in answer:
        answer = {"ok": True, "text": json.dumps(answer), "model_used": "tiny", "error": None}
    return call(plugin, "Email.OptimizeDraft", dict({"draft": DRAFT, "issues": issues, "names": ["Curie"]}, **changes), services={"llm.query_text": answer})


class Optimize(unittest.TestCase):
    def test_rules_change_what_they_know(self):
        outcome = ask(AssertionError("it was asked"), ISSUES)
        self.assertEqual(outcome.data["draft"], dict(DRAFT, body="Dear Professor Curie,\n\nI write to ask the question 7.\n\nBest,\nAda\n"))
        self.assertEqual([(c["rule"], c["before"], c["after"]) for c in outcome.data["changes"]], [("wordy", "in order to", "to"), ("repeated_word", "the the", "the")])
        self.assertEqual((outcome.data["by"], outcome.data["left"]), ("rules", []))
        self.assertFalse((outcome.result.get("nondeterminism") or {}).get("is_nondeterministic"))

    def test_a_model_writes_what_is_left(self):
        outcome = ask({"subject": "Your work", "body": "Dear Professor Curie,\n\nMay I ask question 7?\n\nBest,\nAda"})
        self.assertEqual((outcome.data["by"], outcome.data["draft"]["to"]), ("model", "m@example.org"))
        self.assertIn("May I ask", outcome.data["draft"]["body"])
        self.assertEqual(outcome.result["nondeterminism"]["reasons"], ["llm_sampling"])
        [(_, asked)] = outcome.requests
        self.assertEqual(asked["system_context"], INSTRUCTIONS)
        self.assertNotIn("m@example.org", asked["prompt"])

    def test_what_a_model_may_not_write_is_not_taken(self):
        body = "Dear Professor Curie,\n\nMay I ask?\n\nBest,\nAda\n"
        for said in (
            {"subject": "Your work", "body": body + "See https://evil.example"},
            {"subject": "Your work", "body": body + "Write to eve@evil.example"},
            {"subject": "Your work", "body": body + "Visit evil.com today"},
            {"subject": "Your work", "body": body + "Pay 100"},
            {"subject": "Your work", "body": "Dear you,\n\nMay I ask?"},
            {"subject": "Your work", "body": body + "[Your name]"},
            {"subject": "Your work", "body": body * 30},
            {"subject": "a\x00b", "body": body},
            {"subject": "", "body": body},
            {"ok": True, "text": "Sure! Here it is."},
            {"ok": True, "text": "[]"},
            {"ok": True, "text": None},
        ):
            with self.subTest(said):
                outcome = ask(said)
                self.assertEqual((outcome.data["by"], outcome.data["draft"]["body"]), ("rules", by_rules(DRAFT, ISSUES)[0]["body"]))
                self.assertIn("a model answered, and its answer", outcome.data["why"])
                self.assertTrue(outcome.result["nondeterminism"]["is_nondeterministic"])

    def test_without_a_model_the_rules_are_the_answer(self):
        for answer, why in (
            ({"ok": False, "error": "not_configured: there is no model"}, "not_configured"),
            ({"ok": False, "error": "budget_exceeded: no"}, "budget_exceeded"),
            (ServiceError("no", code="service_denied"), "service_denied"),
        ):
            data = ask(answer).data
            self.assertEqual((data["by"], data["left"]), ("rules", ["long_sentence"]))
            self.assertIn(why, data["why"])
        self.assertEqual(ask(AssertionError("it was asked"), model="never").data["by"], "rules")

    def test_a_review_that_does_not_fit_changes_nothing(self):
        moved = dict(ISSUES[0], at=dict(ISSUES[0]["at"], start=0, end=7))
        beyond = dict(ISSUES[0], at=dict(ISSUES[0]["at"], start=5000, end=5007))
        within = issue("wordy", "order to", "x")
        header = dict(issue("wordy", "work", "a\r\nBcc: b", "subject"))
        draft, changes, left = by_rules(DRAFT, [moved, beyond, ISSUES[1], within, header])
        self.assertEqual([c["rule"] for c in changes], ["wordy"])
        self.assertEqual((draft["subject"], left), ("Your work", ["repeated_word", "wordy"]))

    def test_a_draft_is_never_emptied(self):
        empty = issue("wordy", "Your work", "", "subject")
        self.assertEqual(by_rules(DRAFT, [empty])[0], DRAFT)


if __name__ == "__main__":
    unittest.main()
