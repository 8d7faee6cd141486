"""Values that a tool returns and JSON does not know.

    sets                        sorted lists
    tuples, deques, dict views  lists
    mappings                    objects; keys that are no text as json.dumps has them
    dataclasses                 objects of their fields
    enums                       their values
    dates and times             ISO 8601; a timedelta its seconds
    paths, UUIDs, addresses     their text
    decimals                    numbers
    bytes                       {"$bytes": base64}
    arrays and scalars of numpy what tolist() says
    NaN and infinities          null
    half a surrogate pair       U+FFFD

Anything else is no result, and NotJSON says where it stands.
"""

from __future__ import annotations

import os
import sys
from _collections_abc import Mapping, Sequence, Set, ValuesView

from mortise._wire import dumps, too_deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 56  # the frame around it has some of the 64
MAX_INT_BITS = 14_000  # about what Python writes as decimal digits


class NotJSON(ValueError):
    """A value has no form in JSON; the message names the place."""


def text_of(value: Any, where: str) -> str:
    """Return value as JSON text; where begins the place that NotJSON names."""
    try:
        text = dumps(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return dumps(plain(value, where))
    if too_deep(text):
        plain(value, where)  # raises, with the place
    return text


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return what JSON says for value: None, bool, int, float, str, list and dict all the way down."""
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        raise NotJSON(f"{_short(where)} is nested deeper than {MAX_DEPTH}, or holds itself")
    if _is(value, "enum", "Enum"):
        return plain(value.value, where, depth + 1)
    if isinstance(value, str):
        return str.__str__(value).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, int):
        if value.bit_length() > MAX_INT_BITS:
            raise NotJSON(f"{_short(where)} is an integer of {value.bit_length()} bits")
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, Mapping):
        return {_key(key, where): plain(one, f"{where}/{key}", depth + 1) for key, one in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        from binascii import b2a_base64

        return {"$bytes": b2a_base64(bytes(value), newline=False).decode()}
    if isinstance(value, Set):
        return sorted((plain(one, f"{where}/-", depth + 1) for one in value), key=_order)
    if isinstance(value, (Sequence, ValuesView)) or _is(value, "collections", "deque"):
        return [plain(one, f"{where}/{n}", depth + 1) for n, one in enumerate(value)]
    if hasattr(type(value), "__dataclass_fields__"):
        names = [field.name for field in sys.modules["dataclasses"].fields(value)]
        return {name: plain(getattr(value, name), f"{where}/{name}", depth + 1) for name in names}
    if isinstance(value, os.PathLike):
        return plain(os.fsdecode(value), where, depth)
    if _is(value, "datetime", "date") or _is(value, "datetime", "time"):
        return value.isoformat()
    if _is(value, "datetime", "timedelta"):
        return value.total_seconds()
    if _is(value, "decimal", "Decimal"):
        return plain(int(value) if value.is_finite() and value == value.to_integral_value() else float(value), where, depth)
    if _is(value, "uuid", "UUID") or type(value).__module__ == "ipaddress":
        return str(value)
    if callable(getattr(value, "tolist", None)) and not isinstance(value, type):
        return plain(value.tolist(), where, depth + 1)
    raise NotJSON(f"{_short(where)} is a {type(value).__name__}, which JSON does not have")


def _is(value: Any, module: str, name: str) -> bool:
    """Report whether value is of a class of a module that need not be loaded for that."""
    loaded = sys.modules.get(module)
    kind = getattr(loaded, name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _key(key: Any, where: str) -> str:
    said = plain(key, f"{where}: a key")
    if isinstance(said, str):
        return said
    if said is None or isinstance(said, (bool, int, float)):
        return dumps(said)
    raise NotJSON(f"{_short(where)} has a key of type {type(key).__name__}")


def _order(value: Any) -> tuple[str, Any, str]:
    """Sort numbers by size, texts by letters and the rest by what they look like."""
    if isinstance(value, (int, float)):
        return "a", value, ""
    return "b", 0, value if isinstance(value, str) else dumps(value)


def _short(where: str) -> str:
    return where if len(where) <= 200 else where[:120] + "..." + where[-60:]
