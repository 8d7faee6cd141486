"""Finds sections and fields in a text, and says where each stands.

No model reads it. A heading is a short line that looks like one: numbered,
after #, in capitals, or one of the usual names. A field is a line
"Name: value", or the first address of a mail. What the text says is data and
is never followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right

MOST_TEXT = 200_000
MOST = 500

_USUAL = frozenset(
    """abstract awards career conclusion contact education experience hobbies interests introduction languages objective personal
    profile projects publications qualifications references results skills summary teaching theses thesis work""".split()
    + ["research interests", "work experience", "curriculum vitae", "personal data", "about me"]
)
_MARKED = re.compile(r"(?:#{1,6}\s+|(?:\d{1,2}|[IVX]{1,4})(?:\.\d{1,2})*[.)]?\s+)(?=\S)")
_FIELD = re.compile(r"^[ \t•*–-]*(?P<name>[^\W\d_][\w /()-]{0,39}?)[ \t]*:[ \t]+(?P<value>\S[^\n]*?)[ \t]*$", re.MULTILINE)
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\b")
_PERSON = re.compile(r"[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){1,4}\Z")
_NAMES = {
    "name": ("name", "full_name", "student", "applicant"),
    "degree": ("degree", "current_degree", "qualification", "highest_degree", "programme", "program"),
    "interests": ("interests", "research_interests", "fields_of_interest", "research_interest"),
}


class Text:
    """A text with its lines and pages."""

    def __init__(self, text: str, page_starts: list) -> None:
        self.truncated = len(text) > MOST_TEXT
        self.text = text[:MOST_TEXT]
        self.pages = len(page_starts)
        self._pages = [start for start in page_starts if start <= len(self.text)]
        self._lines = [0] + [at.end() for at in re.finditer(r"\n", self.text)]

    def place(self, start: int, end: int) -> dict:
        """Where a piece of the text stands."""
        at = {"start": start, "end": end, "line": bisect_right(self._lines, start)}
        if self._pages:
            at["page"] = max(1, bisect_right(self._pages, start))
        return at

    def lines(self):
        """The lines, each with where it begins."""
        for i, start in enumerate(self._lines):
            end = self._lines[i + 1] - 1 if i + 1 < len(self._lines) else len(self.text)
            yield start, self.text[start:end]


def sections(text: Text) -> list:
    """Return the sections, from a heading to the next one."""
    heads = [(start, _title(line)) for start, line in text.lines() if _title(line)][: MOST - 1]
    if not heads or text.text[: heads[0][0]].strip():
        heads.insert(0, (0, ""))
    ends = [start for start, _ in heads[1:]] + [len(text.text)]
    return [{"title": title, "at": text.place(start, end)} for (start, title), end in zip(heads, ends)]


def fields(text: Text) -> list:
    """Return the fields, in their order; a name that comes again is a field again."""
    found = []
    for at in _FIELD.finditer(text.text):
        name = _name(at["name"])
        if name and not at["value"].startswith("//"):
            start = at.start("value")
            value = at["value"][:2000]
            found.append({"name": name, "value": value, "at": text.place(start, start + len(value))})
    if not any(field["name"] in ("email", "e_mail", "mail") for field in found):
        at = _EMAIL.search(text.text)
        if at:
            found.append({"name": "email", "value": at.group(), "at": text.place(*at.span())})
    if not any(field["name"] in _NAMES["name"] for field in found):
        found[:0] = _heading_name(text)
    return sorted(found, key=lambda field: field["at"]["start"])[:MOST]


def profile(found: list, parts: list, text: Text) -> dict:
    """Return what the fields say of a person; interests may be a section of their own."""
    told = {}
    for member, names in _NAMES.items():
        values = [field["value"] for field in found if field["name"] in names]
        if not values:
            continue
        told[member] = _listed(values[0]) if member == "interests" else values[0][:200]
    if "interests" not in told:
        for part in parts:
            if _name(part["title"]) in _NAMES["interests"]:
                body = text.text[part["at"]["start"] : part["at"]["end"]].split("\n", 1)[1:]
                told["interests"] = _listed(body[0] if body else "")
    if not told.get("interests"):
        told.pop("interests", None)
    return told


def _title(line: str) -> str:
    bare = _MARKED.sub("", line.strip(), count=1).rstrip(":").strip()
    if not 2 <= len(bare) <= 80 or len(bare.split()) > 8 or bare[-1] in ".,;!?":
        return ""
    marked = bool(_MARKED.match(line.strip()))
    letters = [c for c in bare if c.isalpha()]
    capitals = len(letters) >= 4 and all(c.isupper() for c in letters)
    return bare if bare.lower() in _USUAL or capitals or marked and letters and bare[0].isupper() else ""


def _heading_name(text: Text) -> list:
    """The first line of a curriculum is often its person's name, and nothing else."""
    for start, line in text.lines():
        bare = line.strip()
        if not bare or bare.lower() in _USUAL:
            continue
        if _PERSON.match(bare) and len(bare) <= 100 and all(word[0].isupper() for word in bare.split()):
            start += line.index(bare)
            return [{"name": "name", "value": bare, "at": text.place(start, start + len(bare))}]
        return []
    return []


def _listed(text: str) -> list:
    items = [" ".join(item.split()).strip(" .•*–-") for item in re.split(r"[,;•\n]", text)]
    return [item[:200] for item in dict.fromkeys(items) if item][:50]


def _name(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name[:64] if name and name[0].isalpha() and name.isascii() else ""
