from __future__ import annotations
import hashlib
import re
from typing import Iterator, NamedTuple


class Chunk(NamedTuple):
    index: int
    heading: str | None
    text: str

    def as_dict(self) -> dict:
        return {**self._asdict(), "id": hashlib.sha1(self.text.encode()).hexdigest()[:12], "chars": len(self.text)}


def blocks(text: str) -> Iterator[tuple[str | None, str]]:
    heading = None
    for para in re.split(r"\n\s*\n", text.strip()):
        m = re.match(r"^#{1,6}\s+(.*)$", para.strip())
        if m:
            heading = m.group(1).strip()
        elif para.strip():
            yield heading, " ".join(para.split())


def chunk(text: str, size: int, overlap: int) -> list[Chunk]:
    out: list[Chunk] = []
    current: list[str] = []
    where: str | None = None

    def flush() -> None:
        nonlocal current
        if current:
            out.append(Chunk(len(out), where, " ".join(current)))
            current = current[-overlap:] if overlap else []

    for heading, para in blocks(text):
        if heading != where:
            flush()
            current = []
            where = heading
        for word in para.split():
            if len(current) >= size:
                flush()
            current.append(word)
    if current and (not out or len(current) > overlap or out[-1].heading != where):
        out.append(Chunk(len(out), where, " ".join(current)))
    return out
