"""STRIDE per element; writes Markdown and registers it as risk_model."""
from pathlib import Path
import os
from framework.plugins.protocol import ToolResult, ValidationResult

STRIDE = dict(S="Spoofing", T="Tampering", R="Repudiation", I="Information disclosure", D="Denial of service", E="Elevation of privilege")
APPLIES = {"external": "SR", "process": "STRIDE", "store": "TRID", "flow": "TID"}


class StrideMatrixBuilder:
    def __init__(self):
        self.last = None        # kept between calls: `append` extends the former model

    def metadata(self):
        return {"tool_name": "stride_matrix_builder", "version": "1.1.0", "has_model": self.last is not None}

    def validate_inputs(self, payload):
        errors = []
        els = payload.get("elements")
        if not isinstance(els, list) or not els:
            return ValidationResult(ok=False, errors=["elements must be a non-empty list"])
        names = set()
        for i, e in enumerate(els):
            if not isinstance(e, dict) or not e.get("name"):
                errors.append(f"elements[{i}]: name missing"); continue
            if e.get("kind") not in APPLIES:
                errors.append(f"elements[{i}]: kind must be one of {', '.join(APPLIES)}")
            if e["name"] in names:
                errors.append(f"elements[{i}]: duplicate name {e['name']}")
            names.add(e["name"])
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        base = list(self.last) if payload.get("append") and self.last else []
        threats = base
        for e in payload["elements"]:
            mitigated = set(e.get("mitigated", []))
            for letter in APPLIES[e["kind"]]:
                threats.append({"element": e["name"], "category": STRIDE[letter], "open": letter not in mitigated, "crosses_boundary": bool(e.get("crosses_boundary"))})
        self.last = threats
        md = ["# STRIDE matrix", "", "| element | category | state |", "|---|---|---|"]
        md += [f"| {t['element']} | {t['category']} | {'open' if t['open'] else 'mitigated'} |" for t in threats]
        out = {"threats": threats, "open": sum(t["open"] for t in threats), "total": len(threats),
               "priority": [f"{t['element']}: {t['category']}" for t in threats if t["open"] and t["crosses_boundary"]], "content": "\n".join(md)}
        if payload.get("save"):
            d = Path(os.environ.get("EVENTMILL_WORKSPACE", "workspace"), "artifacts"); d.mkdir(parents=True, exist_ok=True)
            f = d / "stride.md"; f.write_text(out["content"])
            ref = context.register_artifact(artifact_type="risk_model", file_path=str(f), source_tool="stride_matrix_builder", metadata={})
            out["artifact_id"] = ref.artifact_id
        return ToolResult(ok=True, result=out)

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['total']} STRIDE threats, {r['open']} open. Across trust boundaries: {'; '.join(r['priority'][:6]) or 'none'}."
