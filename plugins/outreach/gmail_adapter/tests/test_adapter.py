import base64
import json
import unittest

from mortise import InvalidInput, PluginError
from mortise.testing import call
from plugin import plugin


def push(said):
    return {"data": base64.b64encode(json.dumps(said).encode()).decode(), "messageId": "1"}


def message(id, labels, day, text="", **headers):
    parts = [{"mimeType": "text/html", "body": {"data": "PGI-"}}, {"mimeType": "text/plain", "body": {"data": base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")}}]
    listed = [{"name": name.replace("_", "-").title(), "value": value} for name, value in headers.items()]
    return {"id": id, "threadId": "t1", "labelIds": labels, "internalDate": str(1772442000000 + day * 86400000), "payload": {"mimeType": "multipart/alternative", "headers": listed, "parts": parts}}


SENT = message("m1", ["SENT"], 0, "Dear", to="Marie Curie <m@example.org>", **{"from": "Ada <ada@example.edu>"}, subject="Question", message_id="<1@example.edu>")
REPLY = message("m2", ["INBOX", "UNREAD"], 2, "Could we meet?", **{"from": "m@example.org"}, message_id="<2@example.org>")
NOTICE = {"message": push({"emailAddress": "Ada@example.edu", "historyId": 77}), "start_history_id": "70"}


class Gmail:
    def __init__(self, messages=(SENT, REPLY), added=(REPLY,), status=200):
        self.messages, self.added, self.status, self.asked = list(messages), added, status, []

    def __call__(self, args):
        self.asked.append(args)
        if args["url"].endswith("/history"):
            body = {"history": [{"id": "71", "messagesAdded": [{"message": {k: m[k] for k in ("id", "threadId", "labelIds")}} for m in self.added]}], "historyId": "77"}
        else:
            body = {"id": "t1", "messages": self.messages}
        return {"status_code": self.status, "json": body}


def ask(operation, event, gmail=None):
    return call(plugin, operation, event, services={"http.fetch": gmail or Gmail()})


class Adapter(unittest.TestCase):
    def test_a_reply_is_a_request_to_follow_up(self):
        gmail = Gmail()
        request = ask("notified", NOTICE, gmail).data
        self.assertEqual(request["principal"], {"provider": "google", "external_id": "ada@example.edu"})
        self.assertEqual(request["intent"], {"type": "Funding.Outreach.FollowUp", "payload": {
            "reply": {"text": "Could we meet?", "received_at": "2026-03-04T09:00:00Z", "message_id": "<2@example.org>"}, "now": "2026-03-04T09:00:00Z"}})  # fmt: skip
        self.assertEqual(request["context"]["outreach"]["sent"], {
            "to": "Marie Curie <m@example.org>", "from": "Ada <ada@example.edu>", "subject": "Question", "message_id": "<1@example.edu>",
            "thread_id": "t1", "sent_at": "2026-03-02T09:00:00Z", "follow_ups": 0})  # fmt: skip
        self.assertEqual(request, ask("notified", NOTICE).data)
        self.assertTrue(all(args.get("method", "GET") == "GET" for args in gmail.asked))
        self.assertEqual(gmail.asked[0]["params"]["startHistoryId"], "70")

    def test_silence_is_a_request_too_and_each_look_is_one(self):
        look = {"email": "ada@example.edu", "thread_id": "t1", "now": "2026-03-12T09:00:00Z"}
        request = ask("checked", look, Gmail([SENT])).data
        self.assertEqual(request["intent"]["payload"], {"now": "2026-03-12T09:00:00Z"})
        later = ask("checked", dict(look, now="2026-03-13T09:00:00Z"), Gmail([SENT])).data
        self.assertNotEqual(request["idempotency_key"], later["idempotency_key"])
        second = message("m3", ["SENT"], 3, "again")
        self.assertEqual(ask("checked", look, Gmail([SENT, REPLY, second])).data["context"]["outreach"]["sent"]["follow_ups"], 1)
        self.assertNotIn("reply", ask("checked", look, Gmail([SENT, REPLY, second])).data["intent"]["payload"])

    def test_what_is_no_reply_asks_for_nothing(self):
        for gmail in (Gmail([REPLY]), Gmail([SENT], added=[]), Gmail([SENT], added=[SENT]), Gmail([SENT, message("m0", ["INBOX"], -1)])):
            with self.assertRaises(InvalidInput):
                ask("notified", NOTICE, gmail)

    def test_what_is_no_notification_asks_gmail_for_nothing(self):
        for said in ([], {"emailAddress": "a@b"}, {"emailAddress": 1, "historyId": 1}, {"emailAddress": "a@b", "historyId": "x"}):
            gmail = Gmail()
            with self.assertRaises(InvalidInput):
                ask("notified", dict(NOTICE, message=push(said)), gmail)
            self.assertEqual(gmail.asked, [])

    def test_the_callback_passes_no_code_on(self):
        event = {"state": "n", "code": "4/secret", "scope": "openid https://www.googleapis.com/auth/gmail.send", "email": "Ada@example.edu"}
        request = ask("connected", event).data
        self.assertEqual((request["intent"]["type"], request["intent"]["payload"]["can_send"], request["intent"]["payload"]["can_read"]), ("Mailbox.Connected", True, False))
        self.assertNotIn("4/secret", json.dumps(request))
        refused = ask("connected", dict(event, error="access_denied")).data
        self.assertEqual(refused["intent"], {"type": "Mailbox.Refused", "payload": {"provider": "google", "error": "access_denied"}})

    def test_every_status_has_its_code(self):
        for status, code in ((401, "GMAIL_NOT_AUTHORISED"), (404, "GMAIL_GONE"), (500, "GMAIL_FAILED")):
            with self.assertRaises(PluginError) as caught:
                ask("notified", NOTICE, Gmail(status=status))
            self.assertEqual(caught.exception.code, code)


if __name__ == "__main__":
    unittest.main()
