"""Lines in, lines out: the codec and the two descriptors."""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

from ._errors import PluginError
from ._start import leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MAX_LINE = 16 << 20  # what an administrator may allow at most
MAX_DEPTH = 64


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _plain(value: Any) -> Any:
    """Return what JSON can say for a value it cannot: dataclasses and enums."""
    if hasattr(type(value), "__dataclass_fields__"):
        return {field.name: getattr(value, field.name) for field in sys.modules["dataclasses"].fields(value)}
    enum = sys.modules.get("enum")
    if enum and isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


def _short_int(digits: str) -> int | None:
    """Return the integer, or None where it has more digits than Python cares to read."""
    try:
        return int(digits)
    except ValueError:
        return None


_scan: Callable[[str, int], tuple[Any, int]]
_scan_short: Callable[[str, int], tuple[Any, int]]

try:
    # The C parts of module json, without the module: its import takes 6 ms, a
    # third of a plugin's start, and its front costs 2 us a call.
    from _json import encode_basestring, make_encoder, make_scanner  # type: ignore[attr-defined]

    class _Reading:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int: Any = int
        parse_constant = _refuse_constant

    class _ReadingShort(_Reading):
        parse_int = _short_int

    _scan = make_scanner(_Reading)  # type: ignore[arg-type]
    _scan_short = make_scanner(_ReadingShort)  # type: ignore[arg-type]
    _encode: Callable[..., Any] = make_encoder(None, _plain, encode_basestring, None, ":", ",", False, False, False)

except ImportError:  # an interpreter without them
    import json

    _encoder = json.JSONEncoder(default=_plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    _scan = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
    _scan_short = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_short_int).raw_decode
    _encode = lambda value, _: _encoder.encode(value)  # noqa: E731


def dumps(value: Any) -> str:
    """Return value as JSON text, of keys that spell alike the last; raises TypeError, ValueError or RecursionError."""
    text = "".join(_encode(value, 0))
    if '":' in text and _odd_keys(text) and _may_repeat(value):
        text = "".join(_encode(_spelled(value), 0))
    return text


_DIGITS_ALIKE = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))


def _odd_keys(text: str) -> bool:
    """Report whether a key in JSON text may have been None, a bool or a number: what is cheap to see of it is how it ends."""
    data = text.encode("utf-8", "replace").translate(_DIGITS_ALIKE)
    return b'0":' in data or b'null":' in data or b'true":' in data or b'false":' in data


def _may_repeat(value: Any) -> bool:
    """Report whether a dict in value may have keys that spell alike: it goes through a level of depth at a time."""
    level = [value]
    while level:
        dicts: list[Any] = []
        inner: list[Any] = []
        for one in () if _LEAVES.issuperset(map(type, level)) else level:
            if isinstance(one, dict):
                dicts.append(one)
                inner.extend(one.values())
            elif isinstance(one, (list, tuple)):
                inner.extend(one)
            elif type(one) not in _LEAVES:
                return True  # who knows what is inside
        keys: set[Any] = set().union(*dicts)
        if any(_key(key) in keys for key in keys if type(key) is not str):
            return True
        level = inner
    return False


_LEAVES = frozenset((str, int, float, bool, type(None)))


def _spelled(value: Any) -> Any:
    """Return what has JSON text with its keys as text."""
    if isinstance(value, dict):
        return {_key(key): _spelled(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(one) for one in value]
    return value if value is None or isinstance(value, (str, int, float)) else _spelled(_plain(value))


def _key(key: Any) -> str:
    return str.__str__(key) if isinstance(key, str) else "".join(_encode(key, 0))


def loads(line: bytes, short: bool = False) -> dict[str, Any]:
    """Return the object on a line; raises ValueError. With short, overlong integers become None."""
    text = str(line, "utf-8").strip(" \t\r\n")
    try:
        value, end = (_scan_short if short else _scan)(text, 0)
    except StopIteration as exc:
        raise ValueError(f"no JSON at character {exc.value}") from None
    except SystemError:  # the scanner at a loss for the error class of module json, which is not loaded
        raise ValueError("not JSON") from None
    if end != len(text) or type(value) is not dict:
        raise ValueError("not one JSON object")
    return value


def pack(text: str, limit: int) -> bytes:
    """Return a frame's bytes; raises PluginError for what the host would take for a broken frame."""
    if too_deep(text):
        raise PluginError(f"nested deeper than {MAX_DEPTH}", code="INVALID_RESULT")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise PluginError("text with half a surrogate pair is not UTF-8", code="INVALID_RESULT") from None
    if len(data) > limit:
        raise PluginError(f"a frame of {len(data)} bytes; the limit is {limit}", code="limit_exceeded", details={"size": len(data), "limit": limit})
    return data


_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def too_deep(text: str) -> bool:
    """Report whether JSON text nests deeper than MAX_DEPTH, by peeling the innermost brackets."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False

    def peel(text: str) -> bool:
        brackets = text.encode("utf-8", "replace").translate(None, _NOT_BRACKETS)
        for _ in range(MAX_DEPTH):
            if not brackets:
                return True
            brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        return not brackets

    if peel(text):
        return False
    import re  # brackets inside of strings may have misled us

    return not peel(re.sub(r'"(?:[^"\\]|\\.)*"', "", text))


class Wire:
    """The two descriptors of the protocol.

    write is safe from any thread. read_line and readable belong to one thread
    at a time. All of it belongs to the process that made it: in a child that
    the plugin forks the descriptors lead nowhere.
    """

    def __init__(self, read: int, write: int) -> None:
        self.fd = read
        self._out = write
        self._lines: list[bytes] = []  # complete, last first
        self._parts: list[bytes] = []  # of a line whose end has not come
        self._size = 0
        self._writing = allocate_lock()
        self.ours = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.ours = False
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in (self.fd, self._out):  # closed they would be the next file's
            os.dup2(null, fd, inheritable=False)
        os.close(null)

    def read_line(self) -> bytes | None:
        """Return the next line without its end, None when the host has closed its side."""
        lines = self._lines
        while not lines:
            try:
                chunk = os.read(self.fd, 65536)
            except BlockingIOError:
                _wait(self.fd, "POLLIN")
                continue
            if not chunk:
                rest, self._parts = b"".join(self._parts), []
                return rest or None
            self._take(chunk)
        return lines.pop()

    def _take(self, chunk: bytes) -> None:
        if b"\n" not in chunk:
            self._parts.append(chunk)
            self._size += len(chunk)
            if self._size > MAX_LINE:
                leave(1, f"mortise: the host wrote a line of more than {MAX_LINE} bytes")
            return
        if self._parts:
            self._parts.append(chunk)
            chunk = b"".join(self._parts)
        lines = chunk.split(b"\n")
        tail = lines.pop()
        self._parts = [tail] if tail else []
        self._size = len(tail)
        lines.reverse()
        self._lines.extend(lines)  # it was empty, or there would have been no read

    def readable(self) -> bool:
        """Report, without waiting, whether a line may be there; True as well at the end of input."""
        return bool(self._lines) or _wait(self.fd, "POLLIN", 0)

    def write(self, data: bytes) -> None:
        """Write whole frames. A host that has gone ends the process, and so does an answer in a child: a call has one."""
        if not self.ours:
            os._exit(0)
        with self._writing:
            try:
                done = os.write(self._out, data)
                while done < len(data):
                    done += self._write_more(memoryview(data)[done:])
            except BlockingIOError:
                rest = memoryview(data)
                while rest:
                    rest = rest[self._write_more(rest) :]
            except BrokenPipeError:
                leave(0)

    def _write_more(self, rest: memoryview) -> int:
        try:
            return os.write(self._out, rest)
        except BlockingIOError:
            _wait(self._out, "POLLOUT")
            return 0


def _wait(fd: int, event: str, timeout_ms: int | None = None) -> bool:
    import select

    poll = select.poll()
    poll.register(fd, getattr(select, event))
    return bool(poll.poll(timeout_ms))
