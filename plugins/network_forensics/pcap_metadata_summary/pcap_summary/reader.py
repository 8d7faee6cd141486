"""The program that reads captures, which stands in bin/ beside this package."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, List, Optional

from .tooling import Refused

PROGRAM = os.path.join("bin", "pcapsum")
MAX_REPORT = 32 << 20  # bytes; a report with lists of a thousand entries has less than one MiB
_HOW = "build it with `make build` in the sources of Mortise, and register the package again"


def read(package: str, capture: str, limit: int, max_flows: Optional[int] = None, table: Optional[str] = None,
         table_bytes: Optional[int] = None, timeout: Optional[float] = None) -> Dict[str, Any]:  # fmt: skip
    """The program's report on a capture; Refused with the contract's code where there is none."""
    program = os.path.join(package, PROGRAM)
    command: List[str] = [program, "-limit", str(limit)]
    for flag, value in (("-max-flows", max_flows), ("-table", table), ("-table-bytes", table_bytes)):
        if value is not None:
            command += [flag, str(value)]
    command += ["--", capture]
    if not os.path.isfile(program):
        raise Refused("DEPENDENCY_MISSING", "the reader of captures, %s, is not in this package; %s" % (PROGRAM, _HOW), program=program)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"GOTRACEBACK": "none"})
    except OSError as err:
        message = "the reader of captures, %s, cannot be started here (%s); %s" % (PROGRAM, err.strerror, _HOW)
        raise Refused("DEPENDENCY_MISSING", message, program=program) from None
    try:
        out, words = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Refused("TIMEOUT", "reading the capture took longer than %s seconds" % timeout, file_path=capture) from None
    finally:  # whatever ends this call ends the program
        if process.poll() is None:
            process.kill()
            process.communicate()
    return _report(out, words, process.returncode, capture)


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
