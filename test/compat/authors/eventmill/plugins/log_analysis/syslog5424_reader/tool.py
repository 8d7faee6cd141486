from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult

# the helper is loaded by path: its name is too common for sys.path
_spec = importlib.util.spec_from_file_location("syslog5424_reader_parser", Path(__file__).with_name("parser.py"))
parser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(parser)


class Syslog5424Reader:
    """Turns RFC 5424 text into registered JSON events."""

    def metadata(self):
        return {"tool_name": "syslog5424_reader", "version": "2.1.0", "rfc": 5424}

    def validate_inputs(self, payload):
        errs = []
        if not payload.get("file_path"):
            errs.append("file_path is required")
        sev = payload.get("min_severity")
        if sev is not None and sev not in parser.SEVERITIES:
            errs.append("min_severity must be one of " + ", ".join(parser.SEVERITIES))
        return ValidationResult(ok=not errs, errors=errs or None)

    def execute(self, payload, context):
        src = Path(payload["file_path"])
        if not src.is_file():
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"{src} is not a file")
        limit = parser.SEVERITIES.index(payload.get("min_severity", "debug"))
        events, rejected = [], []
        for n, line in enumerate(src.read_text(errors="replace").splitlines(), 1):
            if not line:
                continue
            try:
                ev = parser.parse_line(line)
            except parser.SyntaxProblem as exc:
                rejected.append({"line": n, "reason": str(exc)})
                continue
            if parser.SEVERITIES.index(ev["severity"]) <= limit:
                events.append(ev)
        if rejected and not events and len(rejected) == n:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="no RFC 5424 lines", details={"first": rejected[0]})
        out = Path(os.environ.get("EVENTMILL_WORKSPACE", "workspace")) / "artifacts"
        out.mkdir(parents=True, exist_ok=True)
        target = out / f"{src.stem}_events.json"
        target.write_text(json.dumps(events, indent=1))
        context.register_artifact(artifact_type="json_events", file_path=str(target), source_tool="syslog5424_reader", metadata={"events": len(events), "from": src.name})
        return ToolResult(ok=True, result={"events": len(events), "rejected": rejected[:50], "rejected_count": len(rejected),
                                           "by_severity": dict(Counter(e["severity"] for e in events)), "by_app": dict(Counter(e["app"] for e in events)),
                                           "first": events[0] if events else None})

    def summarize_for_llm(self, result):
        r = result.result
        sev = ", ".join(f"{k}: {v}" for k, v in r["by_severity"].items())
        return f"{r['events']} syslog events ({sev or 'none'}), {r['rejected_count']} lines rejected."
