"""Builds mails: RFC 5322 with headers of RFC 2047 and a body of RFC 2045.

The same input under the same key is the same message, byte for byte: the host
tells a repeated request from a second one by its content, and a mail is found
again by its Message-ID.
"""

from __future__ import annotations

import hashlib
import quopri
import re
from datetime import datetime, timezone
from email.header import Header
from email.utils import format_datetime

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MAILBOX = re.compile(
    r"""(?:(?P<name>"(?:[^"\\]|\\.)*"|[^"<>@,;:()\[\]\\]*?)\s*<(?P<addr>[^<>\s]+)>|(?P<bare>[^<>\s]+))\Z"""
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*\Z")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*\Z")  # needs no quotes
_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,400}@[!-;=?-~]{1,400}>\Z")
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class BadMail(ValueError):
    """A mail that cannot be written; the text names the member and says why."""


class Mailbox:
    """An address with the name before it, if there is one."""

    def __init__(self, text: str, member: str) -> None:
        refuse_control(text, member)
        found = _MAILBOX.match(text.strip())
        if found is None:
            raise BadMail(f"{member}: {text[:80]!r} is no address; write ada@example.com or Ada <ada@example.com>")
        name = (found["name"] or "").strip()
        if name.startswith('"'):
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
        self.name = name
        self.address = _address(found["addr"] or found["bare"], member)

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]

    def header(self) -> str:
        """The mailbox as a header has it."""
        if not self.name:
            return self.address
        if not self.name.isascii() or "=?" in self.name:
            return f"{_encoded(self.name, 12)} <{self.address}>"
        if _PLAIN_NAME.match(self.name):
            return f"{self.name} <{self.address}>"
        quoted = re.sub(r'(["\\])', r"\\\1", self.name)
        return f'"{quoted}" <{self.address}>'


def build(sender: Mailbox, to: list[Mailbox], subject: str, body: str, message_id: str, date: datetime, in_reply_to: str = "") -> bytes:
    """Return the mail, its lines ended by CRLF. With in_reply_to it answers the mail of that Message-ID."""
    refuse_control(subject, "subject")
    plain = subject.isascii() and "=?" not in subject and _foldable(subject)
    headers = [
        ("Date", format_datetime(date)),
        ("From", sender.header()),
        ("To", ",\r\n ".join(mailbox.header() for mailbox in to)),
        ("Subject", _folded(subject) if plain else _encoded(subject, len("Subject: "))),
        ("Message-ID", message_id),
        *([("In-Reply-To", in_reply_to), ("References", in_reply_to)] if in_reply_to else []),
        ("MIME-Version", "1.0"),
        ("Content-Type", 'text/plain; charset="utf-8"'),
        ("Content-Transfer-Encoding", "quoted-printable"),
    ]
    text = re.sub(r"\r\n|\r", "\n", body)
    lines = quopri.encodestring(text.encode("utf-8")).replace(b"\n", b"\r\n")
    if not lines.endswith(b"\r\n"):
        lines += b"\r\n"
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("ascii") + b"\r\n" + lines


def message_id(tenant: str, key: str, domain: str) -> str:
    """Return the Message-ID of the mail that is sent under a key: always the same one."""
    digest = hashlib.sha256(f"{tenant}\0{key}".encode()).hexdigest()
    return f"<{digest[:40]}@{domain}>"


def date_of(*identities: str) -> datetime:
    """Return when the first UUIDv7 in the identities was made, now where there is none.

    A mail that is built again after a crash keeps its date that way.
    """
    for identity in identities:
        found = _UUID7.search(identity)
        if found:
            return datetime.fromtimestamp(int(found[1] + found[2], 16) // 1000, timezone.utc)
    return datetime.now(timezone.utc)


def reference(text: str, member: str) -> str:
    """Return the Message-ID of another mail, or refuse what is none."""
    if not _MESSAGE_ID.match(text):
        raise BadMail(f"{member}: {text[:80]!r} is no Message-ID of the form <id@example.com>")
    return text


def refuse_control(text: str, member: str) -> None:
    """Refuse what could end a header and begin another."""
    found = _CONTROL.search(text)
    if found:
        raise BadMail(f"{member}: the character U+{ord(found.group()):04X} at {found.start()} cannot stand in a header")


def _address(text: str, member: str) -> str:
    local, at, domain = text.rpartition("@")
    try:
        domain = domain.encode("idna").decode("ascii").lower()
    except UnicodeError:
        domain = ""
    labels = domain.split(".")
    good = at and _LOCAL.match(local) and len(local) <= 64 and len(domain) <= 253
    if not good or not all(_LABEL.match(label) for label in labels):
        raise BadMail(f"{member}: {text[:80]!r} is no address of the form name@example.com")
    return f"{local}@{domain}"


def _encoded(text: str, taken: int) -> str:
    """Encoded words of RFC 2047, folded; `taken` is what stands before them on their line."""
    return Header(text, "utf-8", maxlinelen=76 - taken).encode(linesep="\r\n")


def _foldable(text: str) -> bool:
    """Whether folding at spaces loses nothing and leaves no line of more than 78."""
    return text == " ".join(text.split()) and all(len(word) <= 60 for word in text.split(" "))


def _folded(text: str) -> str:
    lines, length = [""], len("Subject: ")
    for word in text.split(" "):
        if lines[-1] and length + 1 + len(word) > 76:
            lines.append(word)
            length = 1 + len(word)
        else:
            lines[-1] += (" " if lines[-1] else "") + word
            length += 1 + len(word)
    return "\r\n ".join(lines)
