import base64
import unittest
from email import message_from_bytes
from email.policy import default

from mortise import InvalidInput, PluginError, ServiceError
from mortise.testing import call, preview, reconcile
from plugin import plugin

MAIL = {"from": "Ada <ada@example.edu>", "to": ["b@example.org"], "subject": "Grüße", "body": "Hi\nthere\n"}
WHO = {
    "auth": {"tenant_id": "local", "scopes": ["email:send"]},
    "key": "p:019b76da-a800-7000-8000-000000000000/s4",
    "trace": {"correlation_id": "c"},
}


class Mailbox:
    """The http of a question: it has answers, one for each request, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, args):
        self.asked.append(args)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def found(*ids):
    body = {"messages": [{"id": i, "threadId": "t" + i} for i in ids], "resultSizeEstimate": len(ids)} if ids else {"resultSizeEstimate": 0}
    return {"status_code": 200, "json": body}


def send(answer, mail=None, context=None):
    return call(plugin, "Gmail.Send", mail or MAIL, services={"http.fetch": answer}, context=context or WHO)


class Send(unittest.TestCase):
    def test_one_request_with_the_whole_mail(self):
        outcome = send({"status_code": 200, "json": {"id": "m1", "threadId": "t1"}})
        [(method, args)] = outcome.requests
        self.assertEqual((method, args["method"], args["url"]), ("http.fetch", "POST", "https://gmail.googleapis.com/gmail/v1/users/me/messages/send"))
        mail = message_from_bytes(base64.urlsafe_b64decode(args["json"]["raw"]), policy=default)
        self.assertEqual((mail["subject"], mail["to"], mail["message-id"]), ("Grüße", "b@example.org", outcome.data["message_id"]))
        self.assertEqual(outcome.data["id"], "m1")
        again = send({"status_code": 200, "json": {"id": "m1", "threadId": "t1"}})
        self.assertEqual(again.requests, outcome.requests)

    def test_a_mail_that_follows_another_stays_in_its_thread(self):
        outcome = send({"status_code": 200, "json": {"id": "m2", "threadId": "t1"}}, dict(MAIL, in_reply_to="<1@example.edu>", thread_id="t1"))
        asked = outcome.requests[0][1]["json"]
        mail = message_from_bytes(base64.urlsafe_b64decode(asked["raw"]), policy=default)
        self.assertEqual((mail["in-reply-to"], mail["references"], asked["threadId"]), ("<1@example.edu>", "<1@example.edu>", "t1"))
        for bad in ("1@example.edu", "<a@b>\r\nBcc: eve@example.org", "<a b@c>", "<a@b> <c@d>"):
            with self.assertRaises(InvalidInput):
                send(AssertionError("it was asked"), dict(MAIL, in_reply_to=bad))

    def test_every_status_has_its_code(self):
        for status, code in [(400, "GMAIL_REFUSED"), (401, "GMAIL_NOT_AUTHORISED"), (403, "GMAIL_NOT_AUTHORISED"), (429, "rate_limited"), (500, "GMAIL_FAILED"), (302, "GMAIL_FAILED")]:
            with self.subTest(status), self.assertRaises(PluginError) as caught:
                send({"status_code": status, "json": {"error": {"message": "no"}}})
            self.assertEqual(caught.exception.code, code)
        with self.assertRaises(PluginError):
            send({"status_code": 200, "body": "ok"})

    def test_nothing_is_asked_without_the_scope(self):
        for scopes in ([], ["email:read"]):
            with self.assertRaises(PluginError) as caught:
                send(AssertionError("it was asked"), context=dict(WHO, auth={"scopes": scopes}))
            self.assertEqual(caught.exception.code, "SCOPE_DENIED")

    def test_nothing_is_asked_for_a_bad_mail(self):
        with self.assertRaises(InvalidInput):
            send(AssertionError("it was asked"), dict(MAIL, subject="x\r\nBcc: eve@example.org"))

    def test_the_preview_shows_what_would_be_sent(self):
        shown = preview(plugin, "Gmail.Send", dict(MAIL, body="line\n" * 20), context=WHO)
        self.assertEqual((shown["from"], shown["to"], shown["subject"]), ("Ada <ada@example.edu>", ["b@example.org"], "Grüße"))
        self.assertEqual((len(shown["first_lines"]), shown["more_lines"]), (12, 8))
        self.assertGreater(shown["bytes"], 100)

    def test_reconcile_tells_what_the_mailbox_shows(self):
        sent = [{"method": "http.fetch", "effect": "http_write", "state": "intent"}]
        lost = ServiceError("no connection", code="unavailable")
        cases = [
            ([], [], "not_done"),
            (sent, [found("m7")], "succeeded"),
            (sent, [found(), found()], "not_done"),
            (sent, [found(), found("m8")], "unknown"),
            (sent, [lost], "unknown"),
            (sent, [found(), lost], "unknown"),
            (sent, [{"status_code": 500}], "unknown"),
            (sent, [{"status_code": 200, "json": {"messages": "?"}}], "unknown"),
        ]
        for effects, answers, outcome in cases:
            with self.subTest(outcome=outcome, answers=len(answers)):
                box = Mailbox(*answers)
                told = reconcile(plugin, "Gmail.Send", MAIL, effects, services={"http.fetch": box}, context=WHO)
                self.assertEqual(told["outcome"], outcome)
                self.assertEqual(box.answers, [])
                self.assertTrue(all(args.get("method", "GET") == "GET" for args in box.asked))
                if outcome == "succeeded":
                    self.assertEqual(told["data"]["id"], "m7")
                    self.assertTrue(box.asked[0]["params"]["q"].startswith("rfc822msgid:"))


if __name__ == "__main__":
    unittest.main()
