import unittest

from mortise import PluginError, ServiceError, contract
from mortise.testing import call, preview, reconcile
from plugin import plugin

DRAFT = {"subject": "Hello", "body": "Hi\n", "to": "b@example.org", "from": "a@example.edu"}
WHO = {"auth": {"tenant_id": "local", "scopes": ["email:apply"]}}


EMAIL = {"id": "e-1", "draft": DRAFT}


def apply(answer, context=WHO):
    return call(plugin, "Apply.EmailDraft", EMAIL, services={"http.fetch": answer}, context=context)


def reading(answer):
    """The http of a question: it answers what only reads."""

    def fetch(args):
        assert args.get("method", "GET") == "GET", args
        if isinstance(answer, Exception):
            raise answer
        return answer

    return {"http.fetch": fetch}


class Apply(unittest.TestCase):
    def test_the_whole_email_is_put(self):
        outcome = apply({"status_code": 201})
        [(_, args)] = outcome.requests
        self.assertEqual((args["method"], args["url"]), ("PUT", "http://127.0.0.1:8025/funding_emails/e-1"))
        self.assertEqual(args["json"], dict(DRAFT, state="final"))
        self.assertEqual((outcome.data["id"], len(outcome.data["digest"])), ("e-1", 71))

    def test_it_keeps_the_contract_of_an_operator(self):
        outcome = contract.operator(plugin, "Apply.EmailDraft", EMAIL, services={"http.fetch": {"status_code": 201}})
        self.assertEqual([method for method, _ in outcome.requests], ["http.fetch"])

    def test_another_answer_is_a_failure(self):
        for status in (302, 400, 404, 409, 500):
            with self.subTest(status), self.assertRaises(PluginError) as caught:
                apply({"status_code": status})
            self.assertEqual(caught.exception.details, {"status": status})

    def test_nothing_is_asked_without_the_scope(self):
        with self.assertRaises(PluginError) as caught:
            apply(AssertionError("it was asked"), {"auth": {"scopes": ["email:send"]}})
        self.assertEqual(caught.exception.code, "SCOPE_DENIED")

    def test_preview_and_reconcile_read_what_stands_there(self):
        there = dict(DRAFT, state="final")
        cases = [
            ({"status_code": 200, "json": there}, "the email that is there", "succeeded"),
            ({"status_code": 200, "json": dict(there, subject="Other")}, "the email that is there", "unknown"),
            ({"status_code": 404}, "nothing", "not_done"),
            ({"status_code": 500}, "not known", "unknown"),
            ({"status_code": 200, "body": "?"}, "not known", "unknown"),
            (ServiceError("no connection", code="unavailable"), "not known", "unknown"),
        ]
        for answer, replaces, outcome in cases:
            with self.subTest(answer=answer):
                shown = preview(plugin, "Apply.EmailDraft", EMAIL, services=reading(answer), context=WHO)
                self.assertEqual(shown["replaces"], replaces)
                found = reconcile(plugin, "Apply.EmailDraft", EMAIL, services=reading(answer), context=WHO)
                self.assertEqual(found["outcome"], outcome)
                self.assertEqual(found.get("data"), apply({"status_code": 201}).data if outcome == "succeeded" else None)


if __name__ == "__main__":
    unittest.main()
