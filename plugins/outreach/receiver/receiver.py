"""A stand-in for Gmail and for a backend, for trying the outreach plugins.

It listens on this machine alone and speaks as much of their wire formats as the
plugins do: it takes mails as the Gmail API does, finds them again by their
Message-ID, thread and history, has professors and credits, and keeps funding
emails and outcomes. Each mail is stored as a file and printed in a line; nothing
is ever sent on. It signs people in as Google does; with --account Gmail is
closed to who is not.

    python3 receiver.py [--port 8025] [--folder mails] [--hang-up stored|unstored] [--account]

With --hang-up the first mail gets no answer: the connection ends, before the
mail is stored or after.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import os
import re
import sys
import threading
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from accounts import EMAIL, Accounts
from mailstore import MAX_KEPT, Mailbox

MAX_BODY = 4 << 20

GMAIL = "/gmail/v1/users/me/"
MESSAGES = GMAIL + "messages"
SEND = MESSAGES + "/send"
EMAILS = re.compile(r"/funding_emails/([A-Za-z0-9][A-Za-z0-9._-]{0,127})\Z")
PROFESSORS = re.compile(r"/professors/([A-Za-z0-9][A-Za-z0-9._-]{0,63})\Z")
CREDITS = re.compile(r"/credits/[A-Za-z0-9_-]{1,64}/[A-Za-z0-9_-]{1,64}\Z")


class Store:
    """What was received: mails as files of the folder, emails and outcomes in memory."""

    def __init__(self, folder: str) -> None:
        self.lock = threading.Lock()
        self.mailbox = Mailbox(folder)
        self.accounts = Accounts()
        self.emails: dict[str, object] = {}
        self.outcomes: dict[str, object] = {}  # by idempotency key
        self.balance = 10  # credits of every user

    def search(self, query: str) -> list[str]:
        return [mail.id for mail in self.mailbox.search(query)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    store: Store
    hang_up = ""  # at the next mail, once
    account = False  # whether Gmail asks for a token

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/o/oauth2/v2/auth":
            return self.redirect(*self.store.accounts.authorize(url.query))
        if url.path == "/oauth2/userinfo":
            known = self.store.accounts.scopes(self.headers.get("Authorization", "")) is not None
            return self.answer(200, {"sub": "ada", "email": EMAIL, "email_verified": True}) if known else self.fail(401, "sign in")
        if url.path.startswith(GMAIL):
            return self.read_gmail(url.path, asked) if self.signed_in("gmail.readonly") else None
        email, professor = EMAILS.match(url.path), PROFESSORS.match(url.path)
        if email and email[1] in self.store.emails:
            return self.answer(200, self.store.emails[email[1]])
        if professor and professor[1] in self.professors():
            return self.answer(200, self.professors()[professor[1]])
        if CREDITS.match(url.path):
            return self.answer(200, {"balance": self.store.balance})
        self.fail(404, "there is nothing here")

    def read_gmail(self, path: str, asked: dict) -> None:
        box, rest = self.store.mailbox, path.removeprefix(GMAIL)
        kind, _, id = rest.partition("/")
        if rest == "messages":
            found = box.search(asked.get("q", ""))
            listed = [{"id": mail.id, "threadId": mail.thread} for mail in found]
            return self.answer(200, dict({"messages": listed} if listed else {}, resultSizeEstimate=len(listed)))
        if kind == "messages" and id in box.mails:
            return self.answer(200, box.mails[id].full())
        if kind == "threads" and box.thread(id):
            return self.answer(200, {"id": id, "messages": [mail.full() for mail in box.thread(id)]})
        if rest == "history" and asked.get("startHistoryId", "").isdigit():
            return self.answer(200, box.history(int(asked["startHistoryId"]), asked.get("labelId", "")))
        if rest == "profile":
            return self.answer(200, {"emailAddress": EMAIL, "messagesTotal": len(box.mails), "threadsTotal": len(box.mails), "historyId": str(len(box.mails))})
        self.fail(404, "Requested entity was not found.")

    def professors(self) -> dict:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "professors.json"), encoding="utf-8") as file:
            return json.load(file)

    def signed_in(self, needed: str) -> bool:
        """Whether Gmail may be asked; answers the request where it may not."""
        if not self.account:
            return True
        scopes = self.store.accounts.scopes(self.headers.get("Authorization", ""))
        if scopes is None:
            self.fail(401, "Request had invalid authentication credentials.", "UNAUTHENTICATED")
        elif not scopes & {needed, "gmail.modify", "mail.google.com"}:
            self.fail(403, "Request had insufficient authentication scopes.", "PERMISSION_DENIED")
        else:
            return True
        return False

    def do_POST(self) -> None:
        if self.path == "/token":
            raw = self.raw()
            return None if raw is None else self.answer(*self.store.accounts.token(raw.decode("utf-8", "replace")))
        body = self.body()
        if body is None:
            return
        path = urlsplit(self.path).path
        if path == SEND:
            return self.take(body) if self.signed_in("gmail.send") else None
        if path == "/deliver":
            return self.deliver(body)
        if path == "/outcomes":
            key = self.headers.get("Idempotency-Key") or f"#{len(self.store.outcomes)}"
            if key not in self.store.outcomes and len(self.store.outcomes) < MAX_KEPT:
                self.store.outcomes[key] = body
                print(f"outcome {len(self.store.outcomes)}: {json.dumps(body)[:200]}", flush=True)
            return self.answer(201, {"stored": key in self.store.outcomes})
        self.fail(404, "there is nothing here")

    def take(self, body: object) -> None:
        """A mail is sent."""
        try:
            text = body["raw"]
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)  # clients may leave the padding out
            hang_up, Handler.hang_up = Handler.hang_up, ""
            if hang_up == "unstored":
                return self.leave("a mail came, and I hung up before storing it")
            mail = self.store.mailbox.take(raw, str(body.get("threadId") or ""))
        except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as err:
            return self.fail(400, f"not a message: {err}", "INVALID_ARGUMENT")
        count = self.store.mailbox.sent()
        print(f"mail {count}: to {mail.to}: {mail.subject}", flush=True)
        if hang_up:
            return self.leave(f"mail {count} is stored, and I hung up instead of saying so")
        self.answer(200, mail.listed())

    def deliver(self, body: object) -> None:
        """A reply comes in: {"in_reply_to", "from", "text"}. Gmail has no such thing; it stands for another's mail server."""
        try:
            text = EmailMessage()
            for name, member in (("From", "from"), ("Subject", "subject"), ("In-Reply-To", "in_reply_to"), ("References", "in_reply_to")):
                text[name] = str(body.get(member) or "none")
            text["Message-ID"] = f"<{hashlib.sha256(json.dumps(body).encode()).hexdigest()[:20]}@elsewhere.example>"
            text["To"] = EMAIL
            text.set_content(str(body["text"]))
            mail = self.store.mailbox.take(text.as_bytes(), came=True)
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            return self.fail(400, f"not a reply: {err}")
        print(f"reply: {mail.subject}", flush=True)
        self.answer(200, mail.listed())

    def do_PUT(self) -> None:
        body = self.body()
        email = EMAILS.match(self.path)
        if body is None:
            return
        if not email or not isinstance(body, dict):
            return self.fail(404, "there is nothing here")
        with self.store.lock:
            known = email[1] in self.store.emails
            if not known and len(self.store.emails) >= MAX_KEPT:
                return self.fail(400, f"{MAX_KEPT} emails are enough")
            self.store.emails[email[1]] = body
        print(f"email {email[1]}: {body.get('state')}: {body.get('subject')}", flush=True)
        self.answer(200 if known else 201, body)

    def raw(self) -> bytes | None:
        """The request's body; None once an error was answered."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            self.fail(413, f"a body has a length, of at most {MAX_BODY} bytes")
            return None
        return self.rfile.read(int(length))

    def body(self) -> object | None:
        """The request's JSON; None once an error was answered."""
        raw = self.raw()
        try:
            return None if raw is None else json.loads(raw)
        except ValueError:
            self.fail(400, "not JSON")
            return None

    def redirect(self, status: int, to: str) -> None:
        if status != 302:
            return self.fail(status, to)
        self.send_response(302)
        self.send_header("Location", to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def leave(self, why: str) -> None:
        """End the connection without an answer."""
        print(why, flush=True)
        self.close_connection = True

    def fail(self, status: int, message: str, reason: str = "NOT_FOUND") -> None:
        """Answer an error as Google's APIs do."""
        self.answer(status, {"error": {"code": status, "message": message, "status": reason, "errors": [{"message": message, "domain": "global", "reason": reason}]}})

    def log_message(self, format: str, *args: object) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes mails, funding emails and outcomes, and keeps them.")
    parser.add_argument("--port", type=int, default=8025, help="where to listen on 127.0.0.1; 0 for any free port")
    parser.add_argument("--folder", default="mails", help="where mails are stored")
    parser.add_argument("--hang-up", choices=("stored", "unstored"), default="", help="leave the first mail unanswered")
    parser.add_argument("--account", action="store_true", help="ask for a token of the account where Gmail does")
    options = parser.parse_args()
    Handler.store, Handler.hang_up, Handler.account = Store(options.folder), options.hang_up, options.account
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    print(f"listening on 127.0.0.1:{server.server_address[1]}; mails go to {options.folder}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
