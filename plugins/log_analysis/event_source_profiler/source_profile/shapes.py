"""The shapes of values: what a value looks like, whatever its field is called."""

from __future__ import annotations

import re
from typing import Any, Optional, Pattern, Tuple

_SHAPES: Tuple[Tuple[str, Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("ipv4", r"(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?:/\d{1,2}|:\d{1,5})?"),
        ("timestamp", r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"),
        ("time", r"\d\d:\d\d:\d\d(?:\.\d+)?"),
        ("mac", r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}"),
        ("uuid", r"\{?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\}?"),
        ("ipv6", r"(?=[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:)[0-9A-Fa-f:]{2,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?:%\w+|/\d{1,3})?"),
        ("md5", r"[0-9A-Fa-f]{32}"),
        ("sha1", r"[0-9A-Fa-f]{40}"),
        ("sha256", r"[0-9A-Fa-f]{64}"),
        ("hex", r"0x[0-9A-Fa-f]+|(?=[0-9A-Fa-f]*[A-Fa-f])(?=[0-9A-Fa-f]*\d)[0-9A-Fa-f]{8,}"),
        ("sid", r"S-1-\d+(?:-\d+)+"),
        ("url", r"[a-z][a-z0-9+.-]{1,15}://\S+"),
        ("email", r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
        ("arn", r"arn:aws[\w-]*:\S+"),
        ("version", r"v?\d+\.\d+\.\d+(?:[.+~:-][\w.+~:-]*)?"),
        ("domain", r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)+[A-Za-z]{2,24}\.?"),
        ("path", r"(?:/|[A-Za-z]:\\|\\\\|\\)\S.*|/"),
        ("identifier", r"[A-Za-z_][\w.:@$-]*"),
        ("token", r"\S+"),
    )
)
_INTEGER = re.compile(r"[+-]?\d+$")
_DECIMAL = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?$")
_BOOLEANS = {"true", "false", "yes", "no"}


def shape(value: Any) -> str:
    """The shape of one value."""
    if value is None or value == "" or value == "-":
        return "empty"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "decimal"
    if isinstance(value, (list, dict)):
        return "structure"
    text = value if len(value) <= 512 else value[:512]
    if _INTEGER.match(text):
        return "integer"
    if _DECIMAL.match(text):
        return "decimal"
    if text.lower() in _BOOLEANS:
        return "boolean"
    for name, pattern in _SHAPES:
        if pattern.fullmatch(text):
            return name
    return "text"


def number(value: Any) -> Optional[float]:
    """The number that a value is, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e300 else None
    if isinstance(value, str) and len(value) < 40 and (_INTEGER.match(value) or _DECIMAL.match(value)):
        return float(value)
    return None
