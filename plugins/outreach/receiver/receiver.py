"""A stand-in for Gmail and for a backend, for trying the outreach plugins.

It listens on this machine alone and speaks as much of their wire formats as the
plugins do: it takes mails as the Gmail API does, finds them again by their
Message-ID, and keeps funding emails and outcomes. Each mail is stored as a file
and printed in a line; nothing is ever sent on.

    python3 receiver.py [--port 8025] [--folder mails] [--hang-up stored|unstored]

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
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MAX_BODY = 4 << 20
MAX_KEPT = 1000

MESSAGES = "/gmail/v1/users/me/messages"
EMAIL = re.compile(r"/funding_emails/([A-Za-z0-9][A-Za-z0-9._-]{0,127})\Z")


class Store:
    """What was received: mails as files of the folder, emails and outcomes in memory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.mails: dict[str, tuple[str, str, str]] = {}  # by id: Message-ID, To, Subject
        self.emails: dict[str, object] = {}
        self.outcomes: dict[str, object] = {}  # by idempotency key
        os.makedirs(folder, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".eml"):
                with open(os.path.join(folder, name), "rb") as file:
                    self._remember(name[:-4], file.read())

    def take(self, raw: bytes) -> tuple[str, int]:
        """Store a mail; return its id and how many there are now."""
        with self.lock:
            if len(self.mails) >= MAX_KEPT:
                raise ValueError(f"{MAX_KEPT} mails are enough")
            id = f"{len(self.mails) + 1:04d}-{hashlib.sha256(raw).hexdigest()[:12]}"
            with open(os.path.join(self.folder, id + ".eml"), "xb") as file:
                file.write(raw)
            self._remember(id, raw)
            return id, len(self.mails)

    def _remember(self, id: str, raw: bytes) -> None:
        mail = message_from_bytes(raw, policy=default)
        self.mails[id] = (str(mail["message-id"] or ""), str(mail["to"] or ""), str(mail["subject"] or ""))

    def search(self, query: str) -> list[str]:
        """Find mails by rfc822msgid:, or by to: and subject:"", as far as the plugins use it."""
        wanted = re.search(r"rfc822msgid:(\S+)", query)
        to = re.search(r"\bto:(\S+)", query)
        subject = re.search(r'\bsubject:"([^"]*)"', query)
        with self.lock:
            return [
                id
                for id, (message_id, at, about) in self.mails.items()
                if (wanted or to or subject)
                and (not wanted or message_id.strip("<>") == wanted[1].strip("<>"))
                and (not to or to[1].lower() in at.lower())
                and (not subject or subject[1].lower() in about.lower().replace('"', " "))
            ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    store: Store
    hang_up = ""  # at the next mail, once

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == MESSAGES:
            found = self.store.search(parse_qs(url.query).get("q", [""])[0])
            listed = [{"id": id, "threadId": id} for id in found]
            return self.answer(200, dict({"messages": listed} if listed else {}, resultSizeEstimate=len(listed)))
        email = EMAIL.match(url.path)
        if email and email[1] in self.store.emails:
            return self.answer(200, self.store.emails[email[1]])
        self.fail(404, "there is nothing here")

    def do_POST(self) -> None:
        body = self.body()
        if body is None:
            return
        if self.path == MESSAGES + "/send":
            try:
                raw = base64.b64decode(body["raw"], altchars=b"-_", validate=True)
                hang_up, Handler.hang_up = Handler.hang_up, ""
                if hang_up == "unstored":
                    return self.leave("a mail came, and I hung up before storing it")
                id, count = self.store.take(raw)
            except (KeyError, TypeError, ValueError, binascii.Error) as err:
                return self.fail(400, f"not a message: {err}")
            message_id, to, subject = self.store.mails[id]
            print(f"mail {count}: to {to}: {subject}", flush=True)
            if hang_up:
                return self.leave(f"mail {count} is stored, and I hung up instead of saying so")
            return self.answer(200, {"id": id, "threadId": id, "labelIds": ["SENT"]})
        if self.path == "/outcomes":
            key = self.headers.get("Idempotency-Key") or f"#{len(self.store.outcomes)}"
            if key not in self.store.outcomes and len(self.store.outcomes) < MAX_KEPT:
                self.store.outcomes[key] = body
                print(f"outcome {len(self.store.outcomes)}: {json.dumps(body)[:200]}", flush=True)
            return self.answer(201, {"stored": key in self.store.outcomes})
        self.fail(404, "there is nothing here")

    def do_PUT(self) -> None:
        body = self.body()
        email = EMAIL.match(self.path)
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

    def body(self) -> object | None:
        """The request's JSON; None once an error was answered."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            self.fail(413, f"a body has a length, of at most {MAX_BODY} bytes")
            return None
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError:
            self.fail(400, "not JSON")
            return None

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

    def fail(self, status: int, message: str) -> None:
        self.answer(status, {"error": {"code": status, "message": message}})

    def log_message(self, format: str, *args: object) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes mails, funding emails and outcomes, and keeps them.")
    parser.add_argument("--port", type=int, default=8025, help="where to listen on 127.0.0.1; 0 for any free port")
    parser.add_argument("--folder", default="mails", help="where mails are stored")
    parser.add_argument("--hang-up", choices=("stored", "unstored"), default="", help="leave the first mail unanswered")
    options = parser.parse_args()
    Handler.store, Handler.hang_up = Store(options.folder), options.hang_up
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    print(f"listening on 127.0.0.1:{server.server_address[1]}; mails go to {options.folder}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
