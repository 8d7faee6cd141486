"""Lines of dpkg.log."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Iterator, List, Optional

LINE = re.compile(
    r"^(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<verb>install|upgrade|remove|purge|trigproc|configure|status|startup)(?: (?P<rest>.*))?$"
)
# Verbs that change what is on the disk.
CHANGES = ("install", "upgrade", "remove", "purge")


@dataclass
class Change:
    when: str
    verb: str
    package: str
    before: Optional[str] = None
    after: Optional[str] = None
    line_no: int = 0

    @property
    def moment(self) -> datetime:
        return datetime.strptime(self.when, "%Y-%m-%d %H:%M:%S")


@dataclass
class Parsed:
    changes: List[Change] = field(default_factory=list)
    skipped: int = 0
    lines: int = 0
    startups: int = 0


def _version(text: str) -> Optional[str]:
    return None if text in ("<none>", "") else text


def read_lines(path: str) -> Iterator[str]:
    """Rotated logs may be compressed."""
    if str(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as handle:
            yield from handle
        return
    with open(path, "r", encoding="utf-8", errors="replace") as handle:
        yield from handle


def parse(path: str, limit: int = 0) -> Parsed:
    out = Parsed()
    for number, line in enumerate(read_lines(path), 1):
        out.lines += 1
        match = LINE.match(line.rstrip("\r\n"))
        if match is None:
            out.skipped += 1
            continue
        verb, rest = match["verb"], (match["rest"] or "").split(" ")
        if verb == "startup":
            out.startups += 1
            continue
        if verb not in CHANGES:
            continue
        rest += [""] * (3 - len(rest))
        out.changes.append(Change(match["when"], verb, rest[0], _version(rest[1]), _version(rest[2]), number))
        if limit and len(out.changes) >= limit:
            break
    return out
