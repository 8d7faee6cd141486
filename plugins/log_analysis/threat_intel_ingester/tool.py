"""threat_intel_ingester: which indicators and techniques does this report name?"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .threat_intel import enrich, tooling
    from .threat_intel.attack import Techniques
    from .threat_intel.document import Document
    from .threat_intel.indicators import FILTERS, MOST_INDICATORS, TYPES, Collection
    from .threat_intel.textlines import Unreadable
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from threat_intel import enrich, tooling
    from threat_intel.attack import Techniques
    from threat_intel.document import Document
    from threat_intel.indicators import FILTERS, MOST_INDICATORS, TYPES, Collection
    from threat_intel.textlines import Unreadable

FITTING = ("html_report", "pdf_report", "text")


class ThreatIntelIngester:
    """Ingests one report."""

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
        """Read the report, find its indicators, let a model add what the report bears out."""
        payload = tooling.as_written(payload, self._schema)
        try:
            return self._ingest(payload, context)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)
        except Unreadable as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details={})

    def _ingest(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        chosen = tooling.choose(payload, context, FITTING)
        if not os.path.exists(chosen.path):
            raise tooling.Refused("ARTIFACT_NOT_FOUND", "there is no file %s" % chosen.path, file_path=chosen.path)
        document = Document(chosen.path, chosen.artifact_type or "", lambda done, size: tooling.tell(context, "reading " + chosen.name, done, size))
        types = frozenset(payload.get("types") or TYPES)
        collection = Collection(types, frozenset(payload["filters"] if "filters" in payload else FILTERS))
        llm = getattr(context, "llm_query", None) if getattr(context, "llm_enabled", False) and payload.get("use_llm", True) else None
        start: List[str] = []
        size = 0
        missing: Optional[tooling.Refused] = None
        try:
            for line in document.lines():
                collection.add_line(line)
                if size < enrich.MOST_TEXT:
                    start.append(line[: enrich.MOST_TEXT - size])
                    size += len(line) + 1
        except tooling.Refused as err:
            if err.code != "DEPENDENCY_MISSING" or llm is None or chosen.ref is None:
                raise
            missing = err
        notes = list(document.notes)
        model = None
        if llm is not None:
            model = self._ask(llm, chosen, document, collection, "\n".join(start), missing, types, notes)
            if model is None and missing is not None:
                raise missing
        return self._answer(payload, context, chosen, document, collection, model, missing, notes)

    def _ask(
        self, llm: Any, chosen: Any, document: Document, collection: Collection, text: str, missing: Any, types: Any, notes: List[str]
    ) -> Optional[Dict[str, Any]]:
        """What a model says of the report, as far as the report bears it out; None and a note if it says nothing usable."""
        response = None
        if document.kind == "pdf" and chosen.ref is not None:
            response = llm.query_with_document(
                prompt=enrich.PROMPT, artifact=chosen.ref, system_context=enrich.SYSTEM, max_tokens=8192, **_hints(prefers_native_file=True)
            )
            if not response.ok and missing is not None:
                notes.append("No model could read the PDF: %s" % tooling.shorten(str(response.error), 300))
                return None
        if response is None or not response.ok:
            if not text.strip():
                return None
            if len(text) >= enrich.MOST_TEXT:
                notes.append("The model was given the first %d characters of the report." % enrich.MOST_TEXT)
            response = llm.query_text(prompt=enrich.PROMPT, system_context=enrich.SYSTEM, max_tokens=8192, grounding_data=[text], **_hints())
        if not response.ok:
            notes.append("The model gave no answer: %s" % tooling.shorten(str(response.error), 300))
            return None
        try:
            answer = enrich.Answer(response.text or "")
        except ValueError as err:
            notes.append("The model's answer was not used: %s." % tooling.shorten(str(err), 200))
            return None
        known = frozenset(found.value.lower() for found in collection.indicators() + collection.filtered())
        present = None if missing is not None else enrich.borne_out(answer.claims() | answer.indicators_of_summary(), document.lines())
        kept = enrich.checked(answer, known, present, types)
        if kept["dropped"]:
            notes.append("%d things the model named do not stand in the report and were dropped." % kept["dropped"])
        if kept.pop("summary_dropped"):
            notes.append("The model's summary named indicators that do not stand in the report and was dropped.")
        if missing is not None:
            notes.append("The PDF's text could not be read here (pypdf is not installed): what the model named is unverified.")
        kept["model_used"] = getattr(response, "model_used", None)
        kept["transport_path"] = getattr(response, "transport_path", None)
        return kept

    def _answer(
        self, payload: Dict[str, Any], context: Any, chosen: Any, document: Document, collection: Collection, model: Any, missing: Any, notes: List[str]
    ) -> ToolResult:
        limit = payload.get("limit", 200)
        found = [i.shown() for i in collection.indicators()]
        filtered = [i.shown(reason=True) for i in collection.filtered()]
        confirmed = model.pop("confirmed") if model else []
        known = {i["value"].lower() for i in found + filtered}
        for claim in confirmed:  # stands in the report, in a form that the patterns do not know
            if claim["value"].lower() not in known:
                known.add(claim["value"].lower())
                found.append(dict(claim, count=1, first_line=None, defanged=False, contexts=[], source="model"))
        techniques, resolved = _techniques(found, context)
        if techniques and not resolved:
            notes.append("There is no reference data of ATT&CK techniques here; names are left out.")
        if collection.overflow:
            notes.append("More than %d different indicators: %d more were not kept." % (MOST_INDICATORS, collection.overflow))
        if not found and missing is None:
            notes.append("The report names no indicators of the types asked for.")
        counts = {kind: n for kind in TYPES for n in [sum(1 for i in found if i["type"] == kind)] if n}
        result = {
            "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name, "format": document.kind, "lines": collection.lines},
            "counts": counts,
            "total": len(found),
            "indicators": found[:limit],
            "filtered_total": len(filtered),
            "filtered": filtered[: min(limit, 50)],
            "techniques": techniques[:limit],
            "model": dict(model, confirmed=len(confirmed)) if model else None,
            "notes": notes,
        }
        outputs = None
        if (len(found) > limit or len(filtered) > 50) and tooling.can_register(context):
            path = tooling.new_file(context, "threat_intel_ingester", chosen, "jsonl")
            lines = [dict(i, kind="indicator") for i in found] + [dict(i, kind="filtered") for i in filtered] + [dict(t, kind="technique") for t in techniques]
            count = tooling.write_lines(path, lines)
            outputs = [tooling.register(context, path, "json_events", "threat_intel_ingester", {"source_artifact": chosen.artifact_id, "entries": count})]
        return ToolResult(ok=True, result=result, output_artifacts=outputs)

    def summarize_for_llm(self, result: Any) -> str:
        """Counts, the first indicators of each type, techniques."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "threat_intel_ingester: " + str(tooling.member(result, "message") or "no result")
        parts = ["%s: %d indicators (%s)" % (r["artifact"]["name"][:80], r["total"], ", ".join("%s %d" % item for item in r["counts"].items()) or "none")]
        for kind in ("ipv4", "domain", "url", "sha256", "cve"):
            values = [tooling.shorten(i["value"], 70) for i in r["indicators"] if i["type"] == kind]
            if values:
                parts.append("%s: %s" % (kind, ", ".join(values[:2])))
        if r["techniques"]:
            shown = ["%s%s" % (t["id"], " " + t["name"] if t["name"] else "") for t in r["techniques"][:5]]
            parts.append("ATT&CK: " + ", ".join(tooling.shorten(s, 50) for s in shown))
        if r["filtered_total"]:
            parts.append("%d more taken for harmless" % r["filtered_total"])
        model = r.get("model")
        if model and model["threat_actors"]:
            parts.append("actors named: " + ", ".join(tooling.shorten(n, 40) for n in model["threat_actors"][:3]))
        if model and model["malware"]:
            parts.append("malware named: " + ", ".join(tooling.shorten(n, 40) for n in model["malware"][:3]))
        if model and model["unverified"]:
            parts.append("%d from a model only, unverified" % len(model["unverified"]))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _techniques(found: List[Dict[str, Any]], context: Any) -> Tuple[List[Dict[str, Any]], bool]:
    """The techniques among the indicators with their names, and whether there was reference data to name them."""
    ids = sorted(i["value"] for i in found if i["type"] == "technique")
    if not ids:
        return [], False
    table = Techniques(context)
    counts = {i["value"]: i["count"] for i in found if i["type"] == "technique"}
    listed = []
    for id in ids:
        entry = table.resolve(id) or {"name": "", "tactics": [], "url": ""}
        listed.append(dict(entry, id=id, count=counts[id], resolved=bool(entry["name"])))
    return listed, table.known


def _hints(**more: Any) -> Dict[str, Any]:
    """Hints that the answer must be JSON."""
    try:
        from framework.plugins.protocol import QueryHints
    except ImportError:
        return {}
    return {"hints": QueryHints(needs_structured_output=True, **more)}
