"""The mailbox of the stand-in: mails as files of a folder, their threads and their history."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
import time
from email import message_from_bytes
from email.policy import default

MAX_KEPT = 1000


class Mail:
    """A mail that was sent, or came in."""

    def __init__(self, id: str, raw: bytes, thread: str, labels: list, at: int) -> None:
        read = message_from_bytes(raw, policy=default)
        self.id, self.thread, self.labels, self.at = id, thread, labels, at
        self.headers = [{"name": name, "value": str(value)} for name, value in read.items()]
        self.message_id, self.to, self.subject = (str(read[name] or "") for name in ("message-id", "to", "subject"))
        self.references = str(read["references"] or "").split() + str(read["in-reply-to"] or "").split()
        part = read.get_body(("plain",))
        self.text = part.get_content() if part else ""

    def listed(self) -> dict:
        return {"id": self.id, "threadId": self.thread, "labelIds": self.labels}

    def full(self) -> dict:
        """The mail as messages.get gives it in the format full."""
        data = base64.urlsafe_b64encode(self.text.encode()).decode()
        body = {"size": len(self.text.encode()), "data": data}
        return dict(
            self.listed(),
            internalDate=str(self.at),
            snippet=self.text[:100],
            payload={"mimeType": "text/plain", "headers": self.headers, "body": body},
        )


class Mailbox:
    """The mails of one account, the oldest first. Its methods may be called by several threads."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.mails: dict[str, Mail] = {}
        os.makedirs(folder, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".eml"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    self._keep(name[:-4], file.read(), "", ["INBOX"] if "-in-" in name else ["SENT"], int(os.path.getmtime(path) * 1000))

    def take(self, raw: bytes, thread: str = "", came: bool = False) -> Mail:
        """Store a mail that is sent, or came in, and return it."""
        with self.lock:
            if len(self.mails) >= MAX_KEPT:
                raise ValueError(f"{MAX_KEPT} mails are enough")
            if thread and all(mail.thread != thread for mail in self.mails.values()):
                raise ValueError(f"there is no thread {thread[:80]}")
            id = f"{len(self.mails) + 1:04d}{'-in' if came else ''}-{hashlib.sha256(raw).hexdigest()[:12]}"
            with open(os.path.join(self.folder, id + ".eml"), "xb") as file:
                file.write(raw)
            return self._keep(id, raw, thread, ["INBOX", "UNREAD"] if came else ["SENT"], time.time_ns() // 1_000_000)

    def _keep(self, id: str, raw: bytes, thread: str, labels: list, at: int) -> Mail:
        mail = Mail(id, raw, thread or id, labels, at)
        for other in self.mails.values():
            if not thread and other.message_id and other.message_id in mail.references:
                mail.thread = other.thread
        self.mails[id] = mail
        return mail

    def sent(self) -> int:
        """How many mails were sent."""
        return sum("SENT" in mail.labels for mail in self.mails.values())

    def search(self, query: str) -> list:
        """Find mails by rfc822msgid:, or by to: and subject:"", as far as the plugins use it."""
        wanted = re.search(r"rfc822msgid:(\S+)", query)
        to = re.search(r"\bto:(\S+)", query)
        subject = re.search(r'\bsubject:"([^"]*)"', query)
        with self.lock:
            return [
                mail
                for mail in self.mails.values()
                if (wanted or to or subject)
                and ("in:sent" not in query or "SENT" in mail.labels)
                and (not wanted or mail.message_id.strip("<>") == wanted[1].strip("<>"))
                and (not to or to[1].lower() in mail.to.lower())
                and (not subject or subject[1].lower() in mail.subject.lower().replace('"', " "))
            ]

    def thread(self, id: str) -> list:
        with self.lock:
            return [mail for mail in self.mails.values() if mail.thread == id]

    def history(self, start: int, label: str) -> dict:
        """What was added since: the history id is the number of mails."""
        with self.lock:
            new = [(n, mail) for n, mail in enumerate(self.mails.values(), 1) if n > start and (not label or label in mail.labels)]
            records = [{"id": str(n), "messagesAdded": [{"message": mail.listed()}]} for n, mail in new]
            return dict({"history": records} if records else {}, historyId=str(len(self.mails)))
