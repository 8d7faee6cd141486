"""CloudTrail timeline builder.

Accepts a file as AWS delivers it ({"Records": [...]}, also gzip) or JSON lines.
"""
from __future__ import annotations
import gzip
import json
import logging
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from framework.plugins.protocol import ToolResult, ValidationResult

if TYPE_CHECKING:
    from framework.plugins.protocol import ExecutionContext

logger = logging.getLogger("eventmill.plugins.cloudtrail_timeline")

SENSITIVE = {
    "ConsoleLogin": "login", "CreateAccessKey": "persistence", "CreateUser": "persistence",
    "AttachUserPolicy": "privilege", "PutBucketPolicy": "exposure", "StopLogging": "evasion",
    "DeleteTrail": "evasion", "GetSecretValue": "credential", "AssumeRole": "lateral",
}


class Unreadable(Exception):
    """File is not CloudTrail."""


def _parse_time(text: str | None) -> datetime | None:
    if not text:
        return None
    t = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return t if t.tzinfo else t.replace(tzinfo=timezone.utc)


def records(path: Path) -> Iterator[dict[str, Any]]:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    text = raw.decode("utf-8", "replace").strip()
    try:
        doc = json.loads(text)
        if isinstance(doc, dict) and "Records" in doc:
            yield from doc["Records"]
        elif isinstance(doc, list):
            yield from doc
        elif isinstance(doc, dict) and "eventName" in doc:
            yield doc
        else:
            raise Unreadable("JSON without Records")
        return
    except json.JSONDecodeError:
        pass
    for n, line in enumerate(text.splitlines(), 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as exc:
            raise Unreadable(f"line {n} is not JSON: {exc.msg}") from None


class CloudTrailTimeline:
    def metadata(self) -> dict:
        return {"tool_name": "cloudtrail_timeline", "version": "1.4.0", "sensitive_events": sorted(SENSITIVE)}

    def validate_inputs(self, payload: dict) -> ValidationResult:
        errors: list[str] = []
        if not any(payload.get(k) for k in ("file_path", "path", "artifact_id")):
            errors.append("file_path or artifact_id is required")
        for key in ("since", "until"):
            try:
                _parse_time(payload.get(key))
            except (ValueError, AttributeError):
                errors.append(f"{key} is not an ISO 8601 time")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: dict, context: ExecutionContext) -> ToolResult:
        name = payload.get("file_path") or payload.get("path")
        if not name:
            ref = next((a for a in context.artifacts if a.artifact_id == payload["artifact_id"]), None)
            if ref is None:
                return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"artifact {payload['artifact_id']} is unknown")
            name = ref.file_path
        path = Path(name)
        if not path.exists():
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"{path.name} not found")
        since, until = _parse_time(payload.get("since")), _parse_time(payload.get("until"))
        events, actors, failures, total = [], Counter(), 0, 0
        try:
            for rec in records(path):
                when = _parse_time(rec.get("eventTime"))
                if (since and when and when < since) or (until and when and when > until):
                    continue
                total += 1
                ident = rec.get("userIdentity") or {}
                actor = ident.get("arn") or ident.get("userName") or ident.get("type", "unknown")
                actors[actor] += 1
                failures += 1 if rec.get("errorCode") else 0
                tag = SENSITIVE.get(rec.get("eventName"))
                if tag or str(payload.get("all_events", "")).lower() == "true":
                    events.append({"time": rec.get("eventTime"), "event": rec.get("eventName"), "actor": actor,
                                   "source_ip": rec.get("sourceIPAddress"), "tag": tag, "error": rec.get("errorCode")})
        except Unreadable as exc:
            logger.warning("unreadable: %s", exc)
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=str(exc), details={"file": path.name})
        events.sort(key=lambda e: e["time"] or "")
        return ToolResult(ok=True, result={"total": total, "failed_calls": failures, "actors": dict(actors.most_common(20)), "timeline": events})

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result or {}
        lines = [f"{r.get('total', 0)} CloudTrail events, {r.get('failed_calls', 0)} failed, {len(r.get('timeline', []))} notable."]
        lines += [f"- {e['time']} {e['event']} by {e['actor']} [{e['tag']}]" for e in r.get("timeline", [])[:8]]
        return "\n".join(lines)
