"""threat_model_builder: what can go wrong with this system?"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .threats import model, tooling
    from .threats.attack import Techniques
    from .threats.stride import threats
    from .threats.system import System
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from threats import model, tooling
    from threats.attack import Techniques
    from threats.stride import threats
    from threats.system import System

FITTING = ("json_events", "text", "risk_model")
NAME = "threat_model_builder"
_MOST_FILE = 8 << 20


class ThreatModelBuilder:
    """Builds one model."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema, and a description in it against its own rules."""
        written = tooling.as_written(payload, self._schema)
        errors = tooling.check(written, self._schema)
        if not errors and "model" in written:
            try:
                System(written["model"])
            except tooling.Refused as err:
                errors = list(err.details["errors"])
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Check the description, apply the rules, leave the model."""
        payload = tooling.as_written(payload, self._schema)
        try:
            described, chosen = _described(payload, context)
            return _built(payload, context, System(described), chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """How many threats of which level, and the gravest."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        c = r["counts"]
        levels = ", ".join("%s %d" % (lv, c["levels"][lv]) for lv in ("critical", "high", "medium", "low") if c["levels"][lv])
        parts = ["%s: %d components, %d flows, %d of them across boundaries; %d threats by STRIDE (%s)" % (
            tooling.shorten(r["name"], 80), c["components"], c["flows"], c["crossing"], c["threats"], levels or "none")]  # fmt: skip
        for one in r["threats"][:4]:
            missing = ", ".join(one["controls_missing"][:3])
            parts.append("%s %s (%s, risk %d): %s%s" % (one["level"], one["id"], one["category"], one["risk"], tooling.shorten(one["why"], 90), "; missing " + missing if missing else ""))
        if r["missing_controls"]:
            parts.append("most wanted controls: " + ", ".join("%s at %d" % (m["control"], m["threats"]) for m in r["missing_controls"][:3]))
        if r["assumptions"]:
            parts.append("%d assumptions" % c["assumptions"])
        return tooling.shorten("; ".join(parts) + ".", 950)


def _described(payload: Dict[str, Any], context: Any) -> Tuple[Any, tooling.Chosen]:
    if "model" in payload:
        return payload["model"], tooling.Chosen("", "the request", None, None, None)
    chosen = tooling.choose(payload, context, FITTING)
    try:
        with open(chosen.path, "rb") as file:
            data = file.read(_MOST_FILE + 1)
        if len(data) > _MOST_FILE:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s has more than %d bytes; a description of a system is smaller" % (chosen.name, _MOST_FILE), file_path=chosen.path)
        described = json.loads(data.decode("utf-8-sig"))
    except OSError as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (chosen.name, err.strerror or err), file_path=chosen.path) from None
    except (ValueError, RecursionError) as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s is no JSON: %s" % (chosen.name, tooling.shorten(str(err), 200)), file_path=chosen.path) from None
    if isinstance(described, dict) and described.get("format") == model.FORMAT:
        described = described.get("system")  # a model that was built before
    return described, chosen


def _built(payload: Dict[str, Any], context: Any, system: System, chosen: tooling.Chosen) -> ToolResult:
    found = threats(system)
    limit = payload.get("limit", 50)
    table = Techniques(context)
    named = {id: (table.resolve(id) or {"name": None, "tactics": []}) for id in sorted({id for t in found for id in t["techniques"]})}
    missing: Dict[str, List[int]] = {}
    for threat in found:
        for control in threat["controls_missing"]:
            entry = missing.setdefault(control, [0, 0])
            entry[0] += 1
            entry[1] += threat["risk"]
    assumed = model.assumptions(system)
    graph = model.graph(system, found)
    notes = [] if table.known else ["There is no reference data of ATT&CK techniques here; names are left out."]
    result = {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "name": system.name,
        "counts": {
            "components": len(system.components), "flows": len(system.flows), "zones": len(system.zones), "crossing": sum(system.crosses(f) for f in system.flows.values()),
            "threats": len(found), "levels": {lv: sum(t["level"] == lv for t in found) for lv in ("critical", "high", "medium", "low")}, "assumptions": len(assumed),
        },
        "threats": found[:limit],
        "matrix": model.matrix(system, found),
        "techniques": [{"id": id, "name": entry["name"] or None, "tactics": entry["tactics"]} for id, entry in named.items()],
        "missing_controls": [{"control": c, "threats": n[0], "risk": n[1]} for c, n in sorted(missing.items(), key=lambda item: (-item[1][1], item[0]))],
        "assumptions": assumed[:limit],
        "entries": [n["id"] for n in graph["nodes"] if n["entry"]],
        "targets": [n["id"] for n in graph["nodes"] if n["target"]],
        "diagram": model.diagram(system, found) if len(system.components) <= 100 else None,
        "notes": notes,
    }  # fmt: skip
    outputs = None
    if tooling.can_register(context):
        path = tooling.new_file(context, NAME, chosen, "json")
        described = {
            "name": system.name, "zones": [z._asdict() for z in system.zones.values()],
            "components": [{"id": c.id, "name": c.name, "type": c.type, "zone": c.zone, "criticality": c.criticality, "data": c.data, "controls": c.controls, "technology": c.technology} for c in system.components.values()],
            "flows": [{"id": f.id, "from": f.source, "to": f.target, "protocol": f.protocol, "data": f.data, "controls": f.controls, "authenticated": f.authenticated, "encrypted": f.encrypted} for f in system.flows.values()],
        }  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"format": model.FORMAT, "name": system.name, "system": described, "threats": found, "graph": graph}, file, ensure_ascii=False)
            file.write("\n")
        outputs = [tooling.register(context, path, "risk_model", NAME, {"source_artifact": chosen.artifact_id, "threats": len(found)})]
    return ToolResult(ok=True, result=result, output_artifacts=outputs)
