import base64
import hashlib
import http.client
import io
import json
import os
import tempfile
import threading
import unittest
from contextlib import redirect_stdout
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from receiver import GMAIL, MESSAGES, SEND, Handler, Store

MAIL = b"From: a@example.edu\r\nTo: b@example.org\r\nSubject: Hello\r\nMessage-ID: <1@example.edu>\r\n\r\nHi\r\n"


class Receiver(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        Handler.store = Store(self.folder.name)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.printed = io.StringIO()

    def ask(self, method, path, body=None, headers={}):
        conn = http.client.HTTPConnection(*self.server.server_address, timeout=10)
        try:
            with redirect_stdout(self.printed):
                conn.request(method, path, None if body is None else json.dumps(body), headers)
                answer = conn.getresponse()
                return answer.status, json.loads(answer.read())
        finally:
            conn.close()

    def send(self, raw=MAIL):
        return self.ask("POST", MESSAGES + "/send", {"raw": base64.urlsafe_b64encode(raw).decode()})

    def find(self, query):
        status, body = self.ask("GET", f"{MESSAGES}?q={quote(query)}")
        self.assertEqual((status, body["resultSizeEstimate"]), (200, len(body.get("messages", []))))
        return [found["id"] for found in body.get("messages", [])]

    def test_a_mail_is_kept_and_found(self):
        status, sent = self.send()
        self.assertEqual(status, 200)
        with open(os.path.join(self.folder.name, sent["id"] + ".eml"), "rb") as file:
            self.assertEqual(file.read(), MAIL)
        self.assertIn("mail 1: to b@example.org: Hello", self.printed.getvalue())
        self.assertEqual(self.find("rfc822msgid:1@example.edu"), [sent["id"]])
        self.assertEqual(self.find('in:sent to:b@example.org subject:"hello"'), [sent["id"]])
        for query in ("rfc822msgid:2@example.edu", 'in:sent to:c@example.org subject:"Hello"', "", "from:a"):
            self.assertEqual(self.find(query), [], query)
        self.assertEqual(Store(self.folder.name).search("rfc822msgid:1@example.edu"), [sent["id"]])

    def test_the_first_mail_is_left_unanswered(self):
        for hang_up, kept in (("unstored", []), ("stored", ["1@example.edu"])):
            with self.subTest(hang_up):
                Handler.hang_up = hang_up
                with self.assertRaises(http.client.RemoteDisconnected):
                    self.send()
                self.assertEqual(len(self.find("rfc822msgid:1@example.edu")), len(kept))
                self.assertIn("I hung up", self.printed.getvalue())
        self.assertEqual(self.send()[0], 200)

    def test_two_mails_are_two(self):
        self.assertNotEqual(self.send()[1]["id"], self.send()[1]["id"])

    def test_what_is_no_mail_is_refused(self):
        for body in ({}, [], {"raw": 1}, {"raw": "%%"}, None):
            status, answer = self.ask("POST", MESSAGES + "/send", body, {} if body is not None else {"Content-Length": "0"})
            self.assertEqual(status, 400, (body, answer))
        self.assertEqual(self.ask("POST", "/elsewhere", {})[0], 404)

    def test_emails_are_put_and_read(self):
        path = "/funding_emails/e-1"
        self.assertEqual(self.ask("GET", path)[0], 404)
        self.assertEqual(self.ask("PUT", path, {"subject": "a", "state": "final"})[0], 201)
        self.assertEqual(self.ask("PUT", path, {"subject": "b", "state": "final"})[0], 200)
        self.assertEqual(self.ask("GET", path), (200, {"subject": "b", "state": "final"}))
        self.assertEqual(self.ask("PUT", "/funding_emails/../x", {})[0], 404)

    def test_a_reply_is_in_the_thread_and_in_the_history(self):
        sent = self.send()[1]
        status, came = self.ask("POST", "/deliver", {"from": "b@example.org", "subject": "Re: Hello", "in_reply_to": "<1@example.edu>", "text": "Could we meet?"})
        self.assertEqual((status, came["threadId"], came["labelIds"]), (200, sent["threadId"], ["INBOX", "UNREAD"]))
        thread = self.ask("GET", GMAIL + "threads/" + sent["threadId"])[1]
        self.assertEqual([mail["labelIds"][0] for mail in thread["messages"]], ["SENT", "INBOX"])
        data = thread["messages"][1]["payload"]["body"]["data"]
        self.assertEqual(base64.urlsafe_b64decode(data), b"Could we meet?\n")
        history = self.ask("GET", GMAIL + "history?startHistoryId=1&labelId=INBOX")[1]
        self.assertEqual([one["messagesAdded"][0]["message"]["id"] for one in history["history"]], [came["id"]])
        self.assertNotIn("history", self.ask("GET", GMAIL + "history?startHistoryId=2")[1])
        again = self.ask("POST", SEND, {"raw": base64.urlsafe_b64encode(MAIL).decode(), "threadId": sent["threadId"]})[1]
        self.assertEqual(again["threadId"], sent["threadId"])
        self.assertEqual(self.ask("POST", SEND, {"raw": base64.urlsafe_b64encode(MAIL).decode(), "threadId": "none"})[0], 400)
        self.assertEqual(Store(self.folder.name).mailbox.sent(), 2)

    def test_who_is_not_signed_in_stays_out(self):
        Handler.account = True
        self.addCleanup(setattr, Handler, "account", False)
        self.assertEqual(self.send()[0], 401)
        self.assertEqual(self.ask("GET", MESSAGES + "?q=x", None, {"Authorization": "Bearer x"})[0], 401)
        accounts = Handler.store.accounts
        proof = base64.urlsafe_b64encode(hashlib.sha256(b"v").digest()).decode().rstrip("=")
        asked = {"response_type": "code", "client_id": "c", "redirect_uri": "http://127.0.0.1:1/callback", "state": "s", "scope": "https://www.googleapis.com/auth/gmail.send"}
        self.assertEqual(accounts.authorize(urlencode(asked))[0], 400)
        asked.update(code_challenge=proof, code_challenge_method="S256")
        self.assertEqual(accounts.authorize(urlencode(dict(asked, redirect_uri="http://evil.example/")))[0], 400)
        status, to = accounts.authorize(urlencode(asked))
        code = parse_qs(urlsplit(to).query)["code"][0]
        exchange = {"grant_type": "authorization_code", "code": code, "redirect_uri": asked["redirect_uri"], "code_verifier": "v"}
        status, given = accounts.token(urlencode(exchange))
        self.assertEqual((status, accounts.token(urlencode(exchange))[0]), (200, 400))
        token = {"Authorization": "Bearer " + given["access_token"]}
        self.assertEqual(self.ask("POST", SEND, {"raw": base64.urlsafe_b64encode(MAIL).decode()}, token)[0], 200)
        self.assertEqual(self.ask("GET", MESSAGES + "?q=x", None, token)[0], 403)
        renewed = accounts.token(urlencode({"grant_type": "refresh_token", "refresh_token": given["refresh_token"]}))[1]
        self.assertNotEqual(renewed["access_token"], given["access_token"])

    def test_professors_and_credits_are_there(self):
        self.assertEqual(self.ask("GET", "/professors/910?source=canspider")[1]["name"], "Marie Curie")
        self.assertEqual(self.ask("GET", "/professors/911")[0], 404)
        self.assertEqual(self.ask("GET", "/credits/t/u"), (200, {"balance": 10}))

    def test_an_outcome_counts_once_under_its_key(self):
        for _ in range(2):
            self.assertEqual(self.ask("POST", "/outcomes", {"a": 1}, {"Idempotency-Key": "k"})[0], 201)
        self.assertEqual(len(Handler.store.outcomes), 1)


if __name__ == "__main__":
    unittest.main()
