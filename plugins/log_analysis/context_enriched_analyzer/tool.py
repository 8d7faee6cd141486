"""context_enriched_analyzer: what does this log say, given what we know?"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .enriched import narrative, tooling
    from .enriched.analysis import Analysis, Finding, shown
    from .enriched.attack import Techniques
    from .enriched.known import MOST_ASSETS, MOST_INDICATORS, Asset, Indicator, Known, assets_in, indicators_in, type_of
    from .enriched.rules import RULES
    from .enriched.textlines import Text, Unreadable
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from enriched import narrative, tooling
    from enriched.analysis import Analysis, Finding, shown
    from enriched.attack import Techniques
    from enriched.known import MOST_ASSETS, MOST_INDICATORS, Asset, Indicator, Known, assets_in, indicators_in, type_of
    from enriched.rules import RULES
    from enriched.textlines import Text, Unreadable

FITTING = ("log_stream", "cloud_audit_log", "json_events", "text")
NAME = "context_enriched_analyzer"


class ContextEnrichedAnalyzer:
    """Analyses one log."""

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
        """Gather what is known, read the log once, weigh what was found."""
        payload = tooling.as_written(payload, self._schema)
        try:
            return _analysed(payload, context, tooling.choose(payload, context, FITTING))
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)
        except Unreadable as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details={})

    def summarize_for_llm(self, result: Any) -> str:
        """The findings with the highest scores, each with lines."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        c = r["counts"]
        parts = ["%s: %d of %d lines say something, against %d indicators, %d assets and %d rules" % (
            tooling.shorten(r["artifact"]["name"], 80), c["matched"], c["lines"], c["indicators"], c["assets"], c["rules"])]  # fmt: skip
        if not r["findings"]:
            parts.append("no findings")
        for one in r["findings"][:4]:
            techniques = ", ".join(t["id"] for t in one["techniques"])
            assets = ", ".join("%s (%s)" % (a["name"], a["criticality"]) for a in one["assets"][:2])
            parts.append("%s: %s, %d times, lines %d to %d%s%s" % (
                one["kind"], tooling.shorten(one["why"], 120), one["count"], one["first_line"], one["last_line"],
                ", " + techniques if techniques else "", ", touches " + tooling.shorten(assets, 80) if assets else ""))  # fmt: skip
        if c["findings"] > 4:
            parts.append("%d more findings" % (c["findings"] - 4))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _analysed(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen) -> ToolResult:
    notes: List[str] = []
    indicators = _indicators(payload, context, notes)
    assets = _assets(payload, context, notes)
    known = Known(indicators, assets)
    if known.unused:
        notes.append("%d indicators that are paths or phrases were not searched for: too many." % known.unused)
    analysis = Analysis(known, payload.get("rules", True), payload.get("login_threshold", 5), payload.get("year"))
    rows = payload.get("max_rows", 250000) if payload.get("write_table", True) and tooling.can_register(context) else 0
    most = int((getattr(context, "limits", None) or {}).get("max_artifact_size") or 128 << 20)
    limit = payload.get("limit", 20)
    timeline: List[Dict[str, Any]] = []
    path = tooling.new_file(context, NAME, chosen, "jsonl") if rows else os.devnull
    outputs: Optional[List[Dict[str, Any]]] = None
    try:
        with Text(chosen.path, told=lambda done, size: tooling.tell(context, "reading " + chosen.name, done, size)) as text, open(path, "w", encoding="utf-8") as table:
            analysis.clock.anchor(text.head())
            written = 0
            for lines in text.batches():
                for entry in analysis.read(lines):
                    if len(timeline) < limit:
                        timeline.append(entry)
                    if written < rows:
                        row = json.dumps(entry, ensure_ascii=False) + "\n"
                        if len(row) <= most:
                            most -= table.write(row)
                            written += 1
            tooling.tell(context, "reading " + chosen.name, text.size, text.size)
        if written > limit:
            metadata = {"source_artifact": chosen.artifact_id, "rows": written, "complete": written == analysis.matched}
            outputs = [tooling.register(context, path, "json_events", NAME, metadata)]
        elif rows:
            os.unlink(path)
    except BaseException:
        if rows and os.path.exists(path):
            os.unlink(path)
        raise
    for problem in (text.damage, text.truncated_lines and "%d lines are longer than 256 KiB; what comes after was not read." % text.truncated_lines):
        if problem:
            notes.append(str(problem))
    return ToolResult(ok=True, result=_answer(payload, context, chosen, analysis, known, timeline, written if outputs else 0, notes), output_artifacts=outputs)


def _answer(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen, analysis: Analysis, known: Known, timeline: List[Dict[str, Any]], rows: int,
            notes: List[str]) -> Dict[str, Any]:  # fmt: skip
    limit = payload.get("limit", 20)
    found = analysis.findings()
    table = Techniques(context)
    if any(one.techniques for one in found) and not table.known:
        notes.append("There is no reference data of ATT&CK techniques here; names are left out.")
    if analysis.beyond:
        notes.append("%d more lines were not kept apart: too many different findings." % analysis.beyond)
    listed = [shown(one, analysis.clock, table) for one in found[:limit]]
    model = None
    llm = getattr(context, "llm_query", None) if payload.get("use_llm", False) and getattr(context, "llm_enabled", False) else None
    if llm is not None and listed:
        model, note = narrative.ask(llm, listed, payload.get("question"), _hints())
        notes += [note] if note else []
    series = analysis.series.shown()
    if not analysis.clock.knows_year:
        notes.append("The log's times have no year; `year` says it.")
        for point in series["points"]:
            point["time"] = point["time"][5:].rstrip("Z")
    return {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "counts": {
            "lines": analysis.lines, "matched": analysis.matched, "findings": len(found), "indicators": len(known.indicators), "assets": len(known.assets),
            "rules": len({rule.id for rule in RULES}) if payload.get("rules", True) else 0, "failed_logins": analysis.failed_logins(),
        },
        "findings": listed,
        "techniques": _techniques(found, table),
        "assets": [
            {"name": a.name, "criticality": a.criticality, "owner": a.owner, "role": a.role, "lines": n, "first_line": first, "last_line": last, "matched_lines": m}
            for a, n, first, last, m in sorted(analysis.assets.values(), key=lambda seen: (-seen[4], -seen[1], seen[0].name))[:limit]
        ],
        "timeline": timeline,
        "series": series,
        "model": model,
        "table_rows": rows,
        "notes": notes,
    }  # fmt: skip


def _techniques(found: List[Finding], table: Techniques) -> List[Dict[str, Any]]:
    """The techniques of all findings, each with how often and since which line."""
    seen: Dict[str, List[int]] = {}
    for one in found:
        for id in one.techniques:
            entry = seen.setdefault(id, [0, one.first])
            entry[0] += one.count
            entry[1] = min(entry[1], one.first)
    listed = []
    for id, (count, first) in sorted(seen.items(), key=lambda item: item[1][1]):
        entry = table.resolve(id) or {"name": "", "tactics": []}
        listed.append({"id": id, "name": entry["name"] or None, "tactics": entry["tactics"], "count": count, "first_line": first})
    return listed


def _indicators(payload: Dict[str, Any], context: Any, notes: List[str]) -> List[Indicator]:
    """Those that the request names; where it names no source, what threat_intel_ingester left in the session."""
    found: Dict[Tuple[str, str], Indicator] = {}
    for value in payload.get("iocs") or []:
        found[type_of(value), value.lower()] = Indicator(type_of(value), value.strip(), "the request")
    sources = [_source(payload["indicators"], context)] if payload.get("indicators") else []
    if not payload.get("indicators"):
        refs = [ref for ref in getattr(context, "artifacts", None) or [] if getattr(ref, "source_tool", None) == "threat_intel_ingester"]
        sources = [(ref.file_path, os.path.basename(ref.file_path)) for ref in refs]
    for path, name in sources:
        for one in indicators_in(path, name):
            if len(found) >= MOST_INDICATORS:
                notes.append("There are more than %d indicators; the rest of %s was not used." % (MOST_INDICATORS, name))
                break
            found.setdefault((one.type, one.value.lower()), one)
    return list(found.values())


def _assets(payload: Dict[str, Any], context: Any, notes: List[str]) -> List[Asset]:
    found: List[Asset] = []
    if payload.get("assets"):
        path, name = _source(payload["assets"], context)
        for one in assets_in(path, name):
            if len(found) >= MOST_ASSETS:
                notes.append("There are more than %d assets; the rest was not used." % MOST_ASSETS)
                break
            found.append(one)
        if not found:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s has no assets: a table needs a column such as name, host, ip or network" % name, file_path=path)
    return found


def _source(name: str, context: Any) -> Tuple[str, str]:
    known = any(ref.artifact_id == name for ref in getattr(context, "artifacts", None) or [])
    chosen = tooling.choose({"artifact_id" if known else "file_path": name}, context, ())
    return chosen.path, chosen.name


def _hints() -> Dict[str, Any]:
    """Hints that the answer must be JSON and that it needs thought."""
    try:
        from framework.plugins.protocol import QueryHints
    except ImportError:
        return {}
    return {"hints": QueryHints(needs_structured_output=True, needs_reasoning=True)}
