"""Bytes on their way to the host: in the frame while they are few, else as a file in the scratch directory."""

from __future__ import annotations

import os
from binascii import b2a_base64
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from .host import Line

_made = 0


@contextmanager
def spelled(line: Line, data: Any) -> Iterator[dict[str, str]]:
    """Give what stands for data on the wire; a file is there until the block ends. Text goes as UTF-8."""
    global _made
    raw = data.encode() if isinstance(data, str) else bytes(data)
    if len(raw) <= line.inline_bytes:
        yield {"$bytes": b2a_base64(raw, newline=False).decode()}
        return
    _made += 1
    name = f"upload-{os.getpid()}-{_made}"
    path = os.path.join(line.scratch, name)
    with open(path, "wb") as file:
        file.write(raw)
    try:
        yield {"$file": name}
    finally:
        os.unlink(path)
