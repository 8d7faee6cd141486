"""The rules that a draft is held to, each with the place of what it found.

Fixed rules for English, and no model: the same draft always has the same
issues. Where a rule knows what would be right, it says so as a replacement.
"""

from __future__ import annotations

import re

MOST = 100
LONG_SENTENCE = 40  # words
LONG_PARAGRAPH = 130
LONG_SUBJECT = 78  # characters, as a line of a mail

_PLACEHOLDER = re.compile(r"\{[A-Za-z_][\w. ]*\}|\[(?:your|insert|name|date|title|professor|student)[^\]\n]{0,60}\]|<[A-Z][A-Z_ ]{2,40}>|\b(?:TODO|TBD|XXX+|FIXME)\b|lorem ipsum", re.IGNORECASE)
_REPEATED = re.compile(r"\b([^\W\d_]+)([ \t]+)(\1)\b", re.IGNORECASE)
_TWICE_RIGHT = frozenset({"had", "that", "her"})
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)|(?<![ \t])[ \t]+(?=\n|\Z)|(?<=\w)[ \t]+(?=[,.;!?](?:\s|\Z))")
_SHOUT = re.compile(r"[!?]{2,}")
_CAPITALS = re.compile(r"\b[A-Z]{5,}(?:[ \t]+[A-Z]{2,})*\b")
_GREETING = re.compile(r"\A\s*(?:dear|hello|hi|good (?:morning|afternoon|day|evening))\b[^\n]{0,120}[,:]?[ \t]*\n", re.IGNORECASE)
_CLOSING = re.compile(r"\n\s*(?:yours|sincerely|(?:with )?(?:kind|best|warm|many)|regards|thank)[^\n]{0,60},?[ \t]*\n\s*\S", re.IGNORECASE)
_ASKING = re.compile(r"\?|\b(?:please|let me know|i would (?:like|be (?:glad|happy|grateful))|look forward)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"\S[^.!?\n]*(?:[.!?](?!\s|\Z)[^.!?\n]*)*(?:[.!?]+|\n|\Z)")
_NUMBER = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
_WORDY = {
    "in order to": "to",
    "due to the fact that": "because",
    "at this point in time": "now",
    "in the event that": "if",
    "a large number of": "many",
    "i am writing to you in order to": "I would like to",
    "utilize": "use",
    "very unique": "unique",
    "absolutely essential": "essential",
    "please do not hesitate to": "please",
}
_WORDS = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, _WORDY), key=len, reverse=True)) + r")\b", re.IGNORECASE)


def review(draft: dict, names: list) -> list:
    """Return the issues: errors first, then in the order of the text."""
    found = [*_everywhere(draft["subject"], "subject"), *_everywhere(draft["body"], "body"), *_subject(draft["subject"]), *_body(draft["body"], names)]
    rank = {"error": 0, "warning": 1, "style": 2}
    found.sort(key=lambda issue: (rank[issue["severity"]], issue["at"]["part"] == "body", issue["at"]["start"], issue["rule"]))
    return found[:MOST]


def _everywhere(text: str, part: str):
    for at in _PLACEHOLDER.finditer(text):
        yield _issue("placeholder", "error", "a placeholder was left", text, part, at.span())
    for at in _NUMBER.finditer(text):
        if _luhn(re.sub(r"\D", "", at.group())):
            yield _issue("card_number", "error", "this reads as the number of a card", text, part, at.span())
    for at in _REPEATED.finditer(text):
        if at[1].lower() not in _TWICE_RIGHT:
            yield _issue("repeated_word", "warning", "a word stands there twice", text, part, at.span(), at[1])
    for at in _SHOUT.finditer(text):
        yield _issue("shouting", "warning", "one mark is enough", text, part, at.span(), "?" if "?" in at.group() else "!")
    for at in _SPACES.finditer(text):
        yield _issue("spaces", "style", "white space that is not needed", text, part, at.span(), " " if _between(text, at) else "")
    for at in _WORDS.finditer(text):
        better = _WORDY[at.group().lower()]
        yield _issue("wordy", "style", "it can be said more briefly", text, part, at.span(), better.capitalize() if at.group()[0].isupper() else better)


def _subject(subject: str):
    if len(subject) > LONG_SUBJECT:
        yield _issue("long_subject", "warning", f"{len(subject)} characters: {LONG_SUBJECT} are read whole", subject, "subject", (LONG_SUBJECT, len(subject)))
    for at in _CAPITALS.finditer(subject):
        yield _issue("capitals", "warning", "capitals look like advertising", subject, "subject", at.span())


def _body(body: str, names: list):
    if not _GREETING.match(body):
        yield _issue("no_greeting", "warning", "it greets its reader with no word", body, "body", (0, 0))
    if not _CLOSING.search(body.rstrip()[-300:]):
        yield _issue("no_closing", "warning", "it ends without a closing and a name", body, "body", (len(body), len(body)))
    if not _ASKING.search(body):
        yield _issue("no_request", "warning", "it asks for nothing", body, "body", (len(body), len(body)))
    folded = body.casefold()
    for name in names:
        if name.casefold() not in folded:
            yield _issue("not_personal", "warning", f"it does not mention {name[:200]}", body, "body", (0, 0))
    for at in _SENTENCE.finditer(body):
        words = len(at.group().split())
        if words > LONG_SENTENCE:
            yield _issue("long_sentence", "warning", f"a sentence of {words} words; two would be easier to follow", body, "body", at.span())
    start = 0
    for paragraph in re.split(r"(\n\s*\n)", body):
        words = len(paragraph.split())
        if words > LONG_PARAGRAPH:
            yield _issue("long_paragraph", "style", f"a paragraph of {words} words", body, "body", (start, start + len(paragraph)))
        start += len(paragraph)


def _issue(rule: str, severity: str, text: str, whole: str, part: str, span: tuple, replacement: str | None = None) -> dict:
    start, end = span
    at = {"part": part, "start": start, "end": end, "line": whole.count("\n", 0, start) + 1}
    issue = {"rule": rule, "severity": severity, "text": text, "at": at, "found": whole[start:end][:500]}
    return issue if replacement is None else dict(issue, replacement=replacement)


def _between(text: str, at: re.Match) -> bool:
    """Whether white space stands between two words of a line."""
    after = text[at.end() : at.end() + 1]
    return bool(after) and after not in "\n,.;!?"


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    total = sum(int(d) if i % 2 == 0 else sum(divmod(2 * int(d), 10)) for i, d in enumerate(reversed(digits)))
    return total % 10 == 0 and digits.strip("0") != ""
