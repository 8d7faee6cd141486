"""Templates: text with {placeholders}.

A placeholder is a name and nothing else. There is no attribute, no index, no
format and no expression, so that a template can say nothing but where a value
goes, and what is in a value is never read as a template.
"""

from __future__ import annotations

import json
import re

MAX_TEXT = 262144  # characters of a filled template

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


class BadTemplate(ValueError):
    """A template that cannot be filled; `missing` names the placeholders without a value."""

    def __init__(self, message: str, missing: list | None = None) -> None:
        super().__init__(message)
        self.missing = missing or []


def fill(template: str, values: dict) -> tuple[str, list[str]]:
    """Return the filled template and the names of the values that it did not use."""
    pieces, missing, used, end, length = [], [], set(), 0, 0
    for token in _TOKEN.finditer(template):
        name = token.group(1)
        if token.group() in ("{{", "}}"):
            text = token.group()[0]
        elif name is None or not _NAME.match(name):
            line = template.count("\n", 0, token.start()) + 1
            raise BadTemplate(f"line {line}: {token.group()[:40]} is no placeholder; write {{{{ and }}}} for braces")
        elif name in values:
            used.add(name)
            text = _text(values[name])
        else:
            if name not in missing:
                missing.append(name)
            text = ""
        pieces += [template[end : token.start()], text]
        length += len(pieces[-1]) + len(pieces[-2])
        if length > MAX_TEXT:
            raise BadTemplate(f"the filled template is longer than {MAX_TEXT} characters")
        end = token.end()
    if missing:
        raise BadTemplate(f"no value for {', '.join(missing)}", missing)
    pieces.append(template[end:])
    text = "".join(pieces)
    if len(text) > MAX_TEXT:
        raise BadTemplate(f"the filled template is longer than {MAX_TEXT} characters")
    return text, sorted(set(values) - used)


def _text(value: object) -> str:
    """A value as it stands in the text: numbers and truths as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value)
