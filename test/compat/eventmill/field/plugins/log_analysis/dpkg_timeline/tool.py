"""Package timeline of a Debian host."""

from __future__ import annotations

import csv
import logging
import os
import sys
from collections import Counter, OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

from framework.plugins.protocol import ToolResult, ValidationResult

try:
    from plugins.log_analysis.dpkg_timeline.parsing import Parsed, parse
except ImportError:  # run by hand from the directory
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from parsing import Parsed, parse  # type: ignore

log = logging.getLogger("eventmill.plugin.dpkg_timeline")

VERSION = "2.3.1"
# Packages that deserve a second look whenever they appear.
INTERESTING = ("netcat", "nmap", "tcpdump", "socat", "openssh-server", "docker", "gcc", "python3-pip", "cron", "sudo", "proxychains")
OUT_NAME = "dpkg_timeline.csv"

LAST_RUN: Dict[str, Any] = {}


def _interesting(name: str) -> bool:
    return any(name == word or name.startswith(word + "-") or name.startswith(word + ":") for word in INTERESTING)


class DpkgTimelineTool:
    """One row per change."""

    def metadata(self) -> dict:
        return {"tool_name": "dpkg_timeline", "version": VERSION, "pillar": "log_analysis"}

    # -- validation ---------------------------------------------------------

    def validate_inputs(self, payload: dict) -> ValidationResult:
        errors: List[str] = []
        if not any(payload.get(k) for k in ("file_path", "path", "artifact_id")):
            errors.append("one of artifact_id, file_path or path is required")
        try:
            if int(payload.get("limit", 0)) < 0:
                errors.append("limit must not be negative")
        except (TypeError, ValueError):
            errors.append(f"limit must be a number, not {payload.get('limit')!r}")
        if payload.get("group_by", "day") not in ("day", "hour", "package"):
            errors.append("group_by must be day, hour or package")
        return ValidationResult(ok=not errors, errors=errors)

    # -- work ---------------------------------------------------------------

    def _path(self, payload: dict, context: Any) -> str:
        path = payload.get("file_path") or payload.get("path")
        if path:
            return path
        for ref in getattr(context, "artifacts", None) or []:
            if ref.artifact_id == payload.get("artifact_id"):
                return ref.file_path
        return ""

    def _groups(self, parsed: Parsed, how: str) -> "OrderedDict[str, int]":
        counted: Counter = Counter()
        for change in parsed.changes:
            key = {"day": change.when[:10], "hour": change.when[:13], "package": change.package}[how]
            counted[key] += 1
        if how == "package":
            return OrderedDict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:25])
        return OrderedDict(sorted(counted.items()))

    def _write_csv(self, parsed: Parsed) -> str:
        target = os.path.join("workspace", "artifacts", OUT_NAME)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, fieldnames=["when", "verb", "package", "before", "after", "line_no"])
            writer.writeheader()
            for change in parsed.changes:
                writer.writerow(asdict(change))
        return target

    def execute(self, payload: dict, context: Any) -> ToolResult:
        path = self._path(payload, context)
        if not path or not os.path.exists(path):
            return ToolResult(
                ok=False,
                error_code="FILE_NOT_FOUND",
                message=f"no log at {os.path.basename(path) or '(nothing)'}",
                details={"looked_for": os.path.basename(path), "known": len(getattr(context, "artifacts", None) or [])},
            )
        try:
            parsed = parse(path, int(payload.get("limit", 0)))
        except OSError as exc:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=f"cannot read log: {exc.strerror}")
        if not parsed.changes:
            log.warning("nothing of dpkg in %s (%d lines)", path, parsed.lines)
            return ToolResult(
                ok=False, error_code="PARSE_FAILED", message="no dpkg lines found", details={"lines": parsed.lines, "skipped": parsed.skipped}
            )
        log.info("%d changes in %d lines", len(parsed.changes), parsed.lines)
        verbs = Counter(change.verb for change in parsed.changes)
        flagged = [asdict(c) for c in parsed.changes if _interesting(c.package)]
        result = {
            "source": os.path.basename(path),
            "lines": parsed.lines,
            "skipped_lines": parsed.skipped,
            "startups": parsed.startups,
            "first": parsed.changes[0].when,
            "last": parsed.changes[-1].when,
            "verbs": dict(sorted(verbs.items())),
            "groups": self._groups(parsed, payload.get("group_by", "day")),
            "flagged": flagged[:40],
            "flagged_total": len(flagged),
            "packages": len({c.package for c in parsed.changes}),
        }
        # The burst detector picks this up.
        sys.eventmill_dpkg = {"moments": [c.when for c in parsed.changes], "source": result["source"]}  # type: ignore[attr-defined]
        LAST_RUN.clear()
        LAST_RUN.update(result=result, changes=parsed.changes)
        outputs = None
        if context is not None:
            target = self._write_csv(parsed)
            outputs = [{"artifact_type": "csv", "file_path": target, "source_tool": "dpkg_timeline", "metadata": {"rows": len(parsed.changes)}}]
        return ToolResult(ok=True, result=result, output_artifacts=outputs)

    # -- for the model ------------------------------------------------------

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result or {}
        parts = [f"{sum(r['verbs'].values())} package changes to {r['packages']} packages between {r['first']} and {r['last']}."]
        parts.append("By kind: " + ", ".join(f"{k} {v}" for k, v in r["verbs"].items()) + ".")
        if r["flagged_total"]:
            names = sorted({f["package"] for f in r["flagged"]})
            parts.append(f"{r['flagged_total']} concern packages worth a look: {', '.join(names[:10])}.")
        busiest = max(r["groups"].items(), key=lambda item: (item[1], item[0]))
        parts.append(f"Busiest: {busiest[0]} ({busiest[1]}).")
        return " ".join(parts)
