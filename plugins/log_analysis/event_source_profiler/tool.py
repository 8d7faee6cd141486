"""event_source_profiler: what is in this log?"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .source_profile import tooling
    from .source_profile.profile import Profile
    from .source_profile.textlines import Text, Unreadable
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from source_profile import tooling
    from source_profile.profile import Profile
    from source_profile.textlines import Text, Unreadable

FITTING = ("log_stream", "json_events", "cloud_audit_log", "text")
_LISTS = ("hosts", "sources", "fields", "templates", "gaps")
_MOST_BUCKETS = 168  # a week of hours


class EventSourceProfiler:
    """Profiles one log artifact."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema."""
        errors = tooling.check(tooling.as_written(payload, self._schema), self._schema)
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Read the log once and say what it holds."""
        payload = tooling.as_written(payload, self._schema)
        try:
            chosen = tooling.choose(payload, context, FITTING)
            with Text(chosen.path, told=lambda done, size: tooling.tell(context, "reading " + chosen.name, done, size)) as text:
                profile = Profile(text, payload.get("year"), payload.get("gap_seconds"), payload.get("max_records"))
                profile.read()
            whole = profile.answer()
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)
        except Unreadable as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details={"file_path": chosen.path, "artifact_id": chosen.artifact_id})
        limit = payload.get("limit", 20)
        answer = dict(whole)
        answer["artifact"] = {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name}
        answer["counts"] = {name: len(whole[name]) for name in _LISTS}
        answer["rate"] = dict(whole["rate"])
        cut = len(answer["rate"]["buckets"]) > _MOST_BUCKETS
        if cut:
            busiest = sorted(answer["rate"]["buckets"], key=lambda b: (-b["records"], b["start"]))[:_MOST_BUCKETS]
            answer["rate"]["buckets"] = sorted(busiest, key=lambda b: b["start"])
            answer["notes"] = answer["notes"] + ["The %d busiest of %d buckets are listed." % (_MOST_BUCKETS, len(whole["rate"]["buckets"]))]
        for name in _LISTS:
            cut = cut or len(whole[name]) > limit
            answer[name] = whole[name][:limit]
        outputs = None
        if cut and tooling.can_register(context):
            path = tooling.new_file(context, "event_source_profiler", chosen, "jsonl")
            count = tooling.write_lines(path, _all_of(whole))
            metadata = {"source_artifact": chosen.artifact_id, "entries": count}
            outputs = [tooling.register(context, path, "json_events", "event_source_profiler", metadata)]
        return ToolResult(ok=True, result=answer, output_artifacts=outputs)

    def summarize_for_llm(self, result: Any) -> str:
        """The most important facts in a few sentences."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "event_source_profiler: " + str(tooling.member(result, "message") or "no result")
        totals, time = r["totals"], r["time"]
        parts = ["%s: %d records of %s (%.0f%%)" % (r["artifact"]["name"][:80], totals["records"], r["format"]["description"], 100 * r["format"]["share"])]
        if len(r["formats"]) > 1:
            parts.append("also " + ", ".join("%s (%d)" % (f["name"], f["records"]) for f in r["formats"][1:4]))
        if time["first"]:
            parts.append("from %s to %s, zone %s" % (time["first"], time["last"], time["zone"]))
        if r["rate"]["per_hour"] is not None:
            parts.append("%s records an hour" % r["rate"]["per_hour"])
        for name in ("hosts", "sources"):
            if r[name]:
                shown = ", ".join("%s (%d)" % (tooling.shorten(h["name"], 40), h["records"]) for h in r[name][:3])
                parts.append("%d %s, first %s" % (r["counts"][name], name, shown))
        bad = [s for s in r["severities"] if s["name"] in ("emergency", "alert", "critical", "error")]
        if bad:
            parts.append("severities: " + ", ".join("%s %d" % (s["name"], s["records"]) for s in bad))
        if r["gaps"]:
            gap = r["gaps"][0]
            parts.append("%d gaps, the longest %d s from %s" % (r["counts"]["gaps"], gap["seconds"], gap["from"]))
        if r["encoding"]["name"] not in ("ascii", "utf-8"):
            parts.append("encoding " + r["encoding"]["name"])
        if totals["malformed"] or not totals["complete"]:
            parts.append("%d malformed, %s" % (totals["malformed"], "complete" if totals["complete"] else "incomplete"))
        if r["templates"]:
            parts.append("%d templates, most frequent (%d): %s" % (r["counts"]["templates"], r["templates"][0]["count"], tooling.shorten(r["templates"][0]["template"], 120)))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _all_of(whole: Dict[str, Any]) -> Any:
    """The complete lists of a profile, one item a line."""
    for name in _LISTS:
        for item in whole[name]:
            yield dict(item, kind=name[:-1])
    for item in whole["rate"]["buckets"]:
        yield dict(item, kind="bucket")
