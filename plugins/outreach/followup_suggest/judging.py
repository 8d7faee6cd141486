"""Judges how an outreach stands: by the time that has passed, and by what a reply says.

Fixed rules and no model. A reply comes from a stranger: it chooses among four
things to do, each of which a person has to agree to, and none of its words go
into a mail.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

AFTER_DAYS, MOST = 7, 2

_AWAY = re.compile(r"\b(?:out of (?:the )?office|on (?:annual |parental |sick )?(?:leave|vacation|holiday)|automatic reply|auto-?reply|abwesen|currently (?:away|travell?ing))", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:unfortunately|no (?:open |free )?(?:positions?|places?|funding|capacity|openings?)|not (?:taking|accepting|looking for|able to|hiring)|can(?:no|')t (?:take|accept|offer)"
    r"|(?:do not|don't|stop) (?:contact|writ|mail|email)\w*|unsubscribe|regret|leider)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(?:send|forward|share|attach)\b[^.?!]{0,60}\b(?:cv|c\.v\.|resume|résumé|transcripts?|documents?|curriculum|papers?|thesis)", re.IGNORECASE)
_MEETS = re.compile(r"\b(?:meet|meeting|call|zoom|talk|interview|chat|speak)\b", re.IGNORECASE)
_QUOTED = re.compile(r"^(?:>.*|On .{0,200} wrote:.*|-----Original Message-----.*)$", re.MULTILINE | re.IGNORECASE)


def time(text: str) -> datetime:
    """Read a time of RFC 3339; ValueError where it is none."""
    return datetime.fromisoformat(re.sub(r"\.(\d{1,6})\d*", r".\1", text).replace("Z", "+00:00"))


def reply_means(text: str) -> str:
    """Return what a reply is: away, decline, documents, meeting or other. What it quotes does not count."""
    first = _QUOTED.split(text[:65536])[0] if _QUOTED.search(text) else text
    for kind, pattern in (("away", _AWAY), ("decline", _NO), ("documents", _ASKS), ("meeting", _MEETS)):
        if pattern.search(first):
            return kind
    return "other"


def due(sent_at: datetime, now: datetime, follow_ups: int, after_days: int, most: int) -> tuple[str, datetime]:
    """Return what silence means: wait, remind or stop, and from when on a reminder is due.

    Each reminder waits twice as long as the one before.
    """
    at = sent_at + timedelta(days=after_days * 2**follow_ups)
    if follow_ups >= most:
        return "stop", at
    return ("remind" if now >= at else "wait"), at


def reminder(sent: dict, when: datetime) -> str:
    """Return the text of a mail that reminds of another."""
    return _letter(
        sent,
        f"I wrote to you on {when.day} {when:%B %Y} and know how full your days are. May I ask once more whether you could spare me a few minutes?",
        "If you do not expect to take on students, please let me know in a word, and I will not write again.",
    )


def answer(sent: dict, means: str) -> str:
    """Return the text of a mail that answers a reply."""
    said = {
        "documents": "I will send you the documents that you ask for with my next mail. Is there anything else that you would like to see?",
        "meeting": "I would be glad to talk, and will fit in with your times. Which day would suit you?",
    }[means]
    return _letter(sent, "Thank you very much for your answer.", said)


def _letter(sent: dict, *paragraphs: str) -> str:
    greeting = f"Dear {sent['greeting']}," if sent.get("greeting") else "Hello,"
    return "\n\n".join([greeting, *paragraphs, f"Yours sincerely,\n{sent['name']}"]) + "\n"
