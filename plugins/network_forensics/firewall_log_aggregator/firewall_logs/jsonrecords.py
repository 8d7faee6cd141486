"""The records of a JSON document too large to be held: those of an array, of a
wrapping object ({"Records": [...]}), or objects one after another."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, List

_MEMBER = r'"(?:[^"\\]|\\.){0,200}"\s*:\s*(?:"(?:[^"\\]|\\.){0,2000}"|[\w.+-]{1,64})'
_WRAPPER = re.compile(
    r"\{\s*(?:" + _MEMBER + r'\s*,\s*){0,16}"(?:Records|records|Events|events|logEvents|value|values|entries|items|data|results|rows)"\s*:\s*\[(?=\s*[\{\]])'
)
_WRAPPER_END = re.compile(r"\s*(?:,\s*" + _MEMBER + r"\s*)*\}")
_SPACE = re.compile(r"[\s,]*")
_ARRAY = re.compile(r"\s*\[\s*(?:\{|\])")
_LONGEST = 8 << 20  # characters of one record

_decoder = json.JSONDecoder()


def is_document(head: str) -> bool:
    """Whether text that starts so is a JSON document rather than one object a line."""
    if _ARRAY.match(head) or _WRAPPER.match(head.lstrip()[:40000]):
        return True
    if not head.lstrip().startswith("{"):
        return False
    line = head.lstrip().split("\n", 1)[0]
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return line.strip() == "{" or _pretty(line)
    return False


def _pretty(line: str) -> bool:
    """Whether a line is the start of an object that goes on in the next."""
    return re.match(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:.*[,\[\{]\s*$', line) is not None


def records(blocks: Iterator[str], damage: List[str]) -> Iterator[Any]:
    """Yield the records one by one; where the text is no longer JSON, say so in damage and end."""
    buffer, at, ended, count = "", 0, False, 0
    arrays: List[bool] = []  # whether each open array is that of a wrapping object
    while True:
        at = _SPACE.match(buffer, at).end()  # type: ignore[union-attr]
        if at >= len(buffer) - 4096 and not ended:
            more = next(blocks, None)
            if more is None:
                ended = True
            else:
                buffer, at = buffer[at:] + more, 0
            continue
        if at >= len(buffer):
            if arrays:
                damage.append("the document ends inside an array, after record %d" % count)
            return
        here = buffer[at]
        if here == "[" and not arrays:
            arrays.append(False)
            at += 1
            continue
        if here == "]" and arrays:
            at += 1
            if arrays.pop():
                end = _WRAPPER_END.match(buffer, at)
                at = end.end() if end else len(buffer)
            continue
        if here == "{" and not arrays:
            wrapper = _WRAPPER.match(buffer, at)
            if wrapper:
                arrays.append(True)
                at = wrapper.end()
                continue
        try:
            value, at = _decoder.raw_decode(buffer, at)
        except (ValueError, RecursionError) as err:
            held = len(buffer) - at
            if ended or held > _LONGEST or isinstance(err, RecursionError):
                damage.append("what follows record %d is not JSON that can be read" % count)
                return
            parts = [buffer[at:]]
            grown = 0
            while grown < held:  # at least twice as much each time, so that the work stays linear
                more = next(blocks, None)
                if more is None:
                    ended = True
                    break
                parts.append(more)
                grown += len(more)
            buffer, at = "".join(parts), 0
            continue
        count += 1
        yield value
