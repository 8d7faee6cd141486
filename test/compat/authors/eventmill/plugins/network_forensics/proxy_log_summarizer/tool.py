"""W3C extended log (proxy) summary. Registers a CSV of denied requests."""
import csv
import os
import shlex
from collections import Counter
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit


class ToolResult(NamedTuple):
    ok: bool
    result: Optional[dict] = None
    error_code: Optional[str] = None
    message: Optional[str] = None
    details: Optional[dict] = None
    output_artifacts: Optional[list] = None


class ValidationResult(NamedTuple):
    ok: bool
    errors: Optional[list] = None


def _rows(path):
    fields = []
    with open(path, encoding="latin-1") as fh:
        for raw in fh:
            raw = raw.strip()
            if raw.startswith("#Fields:"):
                fields = raw[8:].split()
            elif raw and not raw.startswith("#"):
                if not fields:
                    raise ValueError("missing #Fields directive")
                lex = shlex.shlex(raw, posix=True)
                lex.whitespace_split = True
                lex.commenters = ""
                parts = list(lex)
                if len(parts) == len(fields):
                    yield dict(zip(fields, parts))


class ProxyLogSummarizer:
    """Plugin class; stateless."""

    def metadata(self) -> dict[str, Any]:
        return {"tool_name": "proxy_log_summarizer", "version": "1.0.3", "author": "SOC West"}

    def validate_inputs(self, payload):
        if not payload.get("file_path"):
            return ValidationResult(False, ["file_path missing"])
        if payload.get("export") not in (None, True, False, "true", "false", "True", "False"):
            return ValidationResult(False, ["export must be a boolean"])
        return ValidationResult(True)

    def execute(self, payload, context):
        path = payload["file_path"]
        if not os.path.isfile(path):
            return ToolResult(False, error_code="ARTIFACT_NOT_FOUND", message="file not found")
        hosts, status, denied, sent = Counter(), Counter(), [], 0
        try:
            for r in _rows(path):
                host = r.get("cs-host") or urlsplit(r.get("cs-uri", "")).hostname or "-"
                hosts[host] += 1
                status[r.get("sc-status", "-")] += 1
                sent += int(r.get("cs-bytes", "0")) if r.get("cs-bytes", "0").isdigit() else 0
                if r.get("sc-filter-result", "").upper() == "DENIED" or r.get("sc-status") == "403":
                    denied.append(r)
        except ValueError as exc:
            return ToolResult(False, None, "ARTIFACT_UNREADABLE", str(exc))
        out = None
        if denied and str(payload.get("export", "false")).lower() == "true":
            base = os.environ.get("EVENTMILL_WORKSPACE", os.path.join(os.getcwd(), "workspace"))
            os.makedirs(os.path.join(base, "artifacts"), exist_ok=True)
            target = os.path.join(base, "artifacts", "proxy_denied.csv")
            with open(target, "w", newline="") as fh:
                w = csv.DictWriter(fh, list(denied[0]))
                w.writeheader()
                w.writerows(denied)
            ref = context.register_artifact("text", target, "proxy_log_summarizer", {"rows": len(denied)})
            out = [{"artifact_id": ref.artifact_id, "file_path": target, "artifact_type": "text"}]
        return ToolResult(True, {"requests": sum(hosts.values()), "denied": len(denied), "bytes_sent": sent,
                                 "status": dict(status), "top_hosts": [list(x) for x in hosts.most_common(5)]}, output_artifacts=out)

    def summarize_for_llm(self, result):
        r = result.result
        tops = ", ".join(f"{h} ({n})" for h, n in r["top_hosts"][:3])
        return f"Proxy log: {r['requests']} requests, {r['denied']} denied, {r['bytes_sent']} bytes sent. Busiest: {tops}."
