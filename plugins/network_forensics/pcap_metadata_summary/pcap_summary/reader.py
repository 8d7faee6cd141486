"""The program that reads captures, which stands in bin/ beside this package."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .tooling import Refused

PROGRAM = os.path.join("bin", "pcapsum")
MAX_REPORT = 32 << 20  # bytes; a report with lists of a thousand entries has less than one MiB
_LOOK = 0.5  # seconds between two looks at how far it is
_HOW = "build it with `make build` in the sources of Mortise, and register the package again"


def read(package: str, capture: str, limit: int, max_flows: Optional[int] = None, table: Optional[str] = None,
         table_bytes: Optional[int] = None, timeout: Optional[float] = None, told: Callable[[int, int], None] = lambda done, size: None) -> Dict[str, Any]:  # fmt: skip
    """The program's report on a capture; Refused with the contract's code where there is none.

    told hears how many bytes of the file were read, of how many.
    """
    program = os.path.join(package, PROGRAM)
    command: List[str] = [program, "-stdin", "-limit", str(limit)]
    for flag, value in (("-max-flows", max_flows), ("-table", table), ("-table-bytes", table_bytes)):
        if value is not None:
            command += [flag, str(value)]
    command += ["--", capture]
    if not os.path.isfile(program):
        raise Refused("DEPENDENCY_MISSING", "the reader of captures, %s, is not in this package; %s" % (PROGRAM, _HOW), program=program)
    try:
        file = os.open(capture, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise Refused("ARTIFACT_NOT_FOUND", "there is no file %s" % capture, file_path=capture) from None
    except OSError as err:
        raise Refused("ARTIFACT_UNREADABLE", "%s cannot be opened: %s" % (capture, err.strerror), file_path=capture) from None
    try:
        out, words, status = _run(command, file, program, timeout, told)
    except subprocess.TimeoutExpired:
        raise Refused("TIMEOUT", "reading the capture took longer than %s seconds" % timeout, file_path=capture) from None
    finally:
        os.close(file)
    return _report(out, words, status, capture)


def _run(command: List[str], file: int, program: str, timeout: Optional[float], told: Callable[[int, int], None]) -> Tuple[bytes, bytes, int]:
    """What the program wrote of the open file, and its status. The two share the file's offset, which is how far it is."""
    try:
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"GOTRACEBACK": "none"})
    except OSError as err:
        message = "the reader of captures, %s, cannot be started here (%s); %s" % (PROGRAM, err.strerror, _HOW)
        raise Refused("DEPENDENCY_MISSING", message, program=program) from None
    size = os.fstat(file).st_size
    end = None if timeout is None else time.monotonic() + timeout
    try:
        while True:
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            try:
                out, words = process.communicate(timeout=max(left, 0))
                break
            except subprocess.TimeoutExpired:
                if end is not None and time.monotonic() >= end:
                    raise
                told(min(os.lseek(file, 0, os.SEEK_CUR), size), size)
    finally:  # whatever ends this call ends the program
        if process.poll() is None:
            process.kill()
            process.communicate()
    told(size, size)
    return out, words, process.returncode


def _report(out: bytes, words: bytes, status: int, capture: str) -> Dict[str, Any]:
    said = words[:500].decode("utf-8", "replace").strip()
    if status < 0:
        message = "the reader of captures was ended by signal %d, as it is where memory runs out" % -status
        raise Refused("INTERNAL_ERROR", message, file_path=capture, stderr=said)
    try:
        if len(out) > MAX_REPORT:
            raise ValueError("it has %d bytes" % len(out))
        report = json.loads(out)
    except ValueError as err:
        raise Refused("INTERNAL_ERROR", "the reader of captures gave no report: %s" % err, status=status, stderr=said) from None
    if "error" in report:
        raise Refused(report["error"]["code"], report["error"]["message"], file_path=capture)
    return dict(report)
