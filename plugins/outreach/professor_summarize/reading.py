"""Reads what a backend has of a professor: a record, which is JSON, or a page.

Whatever it says is data: it is cut to what is asked for, and nothing in it is
followed. Places in it are told in characters, so that each sentence of a
summary can be looked up.
"""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser

MOST_TEXT = 200_000
MOST_PAPERS = 100

_SENTENCE = re.compile(r"[^\s.!?\n][^\n]*?(?:[.!?]+(?=[\"'”’)\]]*(?:\s|$))|(?=\n|$))")
_FIELD = re.compile(r"^\s*(?:field|research(?: interests| areas?)?|interests|arbeitsgebiet)\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\b")
_TITLES = re.compile(r"^(?:(?:prof(?:essor)?|dr)\b\.?\s*)+", re.IGNORECASE)
_BLOCKS = frozenset("address article br dd div dl dt footer h1 h2 h3 h4 h5 h6 header li main ol p section table td th tr ul".split())
_UNSEEN = frozenset("script style template noscript svg head".split())


class Unreadable(ValueError):
    """What came says too little; the text says what is missing."""


class Source:
    """What was read: who it is about, and its texts, each with its place."""

    def __init__(self, form: str, professor: dict, email: str, texts: list, whole: str) -> None:
        self.form, self.professor, self.email, self.texts = form, professor, email, texts
        self.digest = "sha256:" + hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def of_record(record: object) -> Source:
    """Read a record: name, field, email, about, and papers with title and abstract."""
    if not isinstance(record, dict):
        raise Unreadable("the record is no object")
    papers = [p for p in (record.get("papers") or []) if isinstance(p, (dict, str))] if isinstance(record.get("papers"), list) else []
    titles, texts = [], []
    for name in ("about", "research", "biography"):
        if _text(record.get(name)):
            texts.append((f"/{name}", record[name][:MOST_TEXT]))
    for i, paper in enumerate(record.get("papers") if papers else []):
        title = paper if isinstance(paper, str) else paper.get("title") if isinstance(paper, dict) else None
        if _text(title) and len(titles) < MOST_PAPERS:
            titles.append(_line(title, 500))
        if isinstance(paper, dict) and _text(paper.get("abstract")):
            texts.append((f"/papers/{i}/abstract", paper["abstract"][:MOST_TEXT]))
    email = record.get("email") if _text(record.get("email")) and _EMAIL.fullmatch(record["email"].strip()) else ""
    whole = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return Source("record", _professor(record.get("name"), record.get("field"), titles), email.strip(), texts, whole)


def of_page(page: str) -> Source:
    """Read a page: its text without markup; who it is from its first heading, the field from a line that names it."""
    reader = _Page()
    reader.feed(page[:4_000_000])
    reader.close()
    text = re.sub(r"[ \t\r\f\v]+", " ", "".join(reader.parts))
    text = re.sub(r" ?\n[ \n]*", "\n", text).strip()[:MOST_TEXT]
    heading = " ".join("".join(reader.heading).split())
    field = _FIELD.search(text)
    email = _EMAIL.search(text)
    papers = [_line(t, 500) for t in ("".join(parts) for parts in reader.cited) if t.strip()][:MOST_PAPERS]
    who = _professor(_TITLES.sub("", heading), field and field[1].strip().rstrip("."), papers)
    return Source("page", who, email.group() if email else "", [("", text)], text)


def summarize(source: Source, most: int) -> list:
    """Return the sentences that say most about the professor's field and papers, in their order.

    A sentence counts for the words that it shares with them, less for each of
    its own words beyond thirty; of equal ones the first.
    """
    about = _words(" ".join([source.professor["field"], *source.professor["papers"]]))
    found = []
    for pointer, text in source.texts:
        for at in _SENTENCE.finditer(text):
            words = _words(at.group())
            if 4 <= len(at.group().split()) <= 80 and words & about:
                worth = len(words & about) / (1 + max(0, len(words) - 30) / 10)
                found.append((-worth, len(found), at.group().strip(), {"pointer": pointer, "start": at.start(), "end": at.start() + len(at.group().strip())}))
    best = sorted(found)[:most]
    return [{"text": text, "cites": cites} for _, _, text, cites in sorted(best, key=lambda one: one[1])]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list = []
        self.heading: list = []
        self.cited: list = []
        self._unseen = 0
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        if tag in _BLOCKS:
            self.parts.append("\n")
        if tag == "h1" and not self.heading or tag == "cite":
            self._in = tag
            if tag == "cite":
                self.cited.append([])

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        if tag in _BLOCKS:
            self.parts.append("\n")
        if tag == self._in:
            self._in = ""

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        self.parts.append(data)
        if self._in == "h1":
            self.heading.append(data)
        elif self._in == "cite":
            self.cited[-1].append(data)


def _professor(name: object, field: object, papers: list) -> dict:
    missing = [member for member, value in (("name", name), ("field", field)) if not _text(value)]
    if missing:
        raise Unreadable(f"it says nothing about {' and '.join(missing)}")
    return {"name": _line(name, 200), "field": _line(field, 200), "papers": papers}


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _line(text: str, most: int) -> str:
    return " ".join(text.split())[:most].strip()


def _words(text: str) -> set:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
