"""Markdown into blocks: headings, fenced code, lists and paragraphs."""
import re
from typing import Iterator, List, NamedTuple, Tuple

HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
FENCE = re.compile(r"^(```+|~~~+)(.*)$")


class Block(NamedTuple):
    kind: str
    text: str
    path: Tuple[str, ...]
    line: int


def blocks(md: str) -> Iterator[Block]:
    path: List[Tuple[int, str]] = []
    buf: List[str] = []
    start, fence = 0, None

    def crumbs():
        return tuple(t for _l, t in path)

    def flush(kind):
        text = "\n".join(buf).strip("\n")
        buf.clear()
        return Block(kind, text, crumbs(), start) if text else None

    for no, line in enumerate(md.splitlines(), 1):
        f = FENCE.match(line)
        if fence:
            buf.append(line)
            if f and f.group(1).startswith(fence) and not f.group(2).strip():
                fence = None
                b = flush("code")
                if b:
                    yield b
            continue
        if f:
            b = flush("text")
            if b:
                yield b
            fence, start = f.group(1), no
            buf.append(line)
            continue
        h = HEADING.match(line)
        if h:
            b = flush("text")
            if b:
                yield b
            level = len(h.group(1))
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, h.group(2)))
            continue
        if not line.strip():
            b = flush("text")
            if b:
                yield b
            continue
        if not buf:
            start = no
        buf.append(line)
    b = flush("code" if fence else "text")
    if b:
        yield b
