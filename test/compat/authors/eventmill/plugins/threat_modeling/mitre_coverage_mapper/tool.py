# Maps detections to ATT&CK tactics. Works with the framework's table, else with what the caller gives.
import re
from collections import defaultdict
from framework.plugins.protocol import ToolResult, ValidationResult
try:
    from framework.reference_data.mitre_attack import get_mitre_db
except ImportError:
    get_mitre_db = None

TID = re.compile(r"^T\d{4}(\.\d{3})?$")


class MitreCoverageMapper:
    def metadata(self):
        return {"tool_name": "mitre_coverage_mapper", "version": "1.0.0", "db": get_mitre_db is not None}

    def validate_inputs(self, payload):
        det = payload.get("detections")
        if not isinstance(det, dict) or not det:
            return ValidationResult(ok=False, errors=["detections: object, rule name -> list of technique ids"])
        bad = [t for ts in det.values() for t in (ts if isinstance(ts, list) else [ts]) if not TID.match(str(t))]
        return ValidationResult(ok=not bad, errors=[f"not a technique id: {b}" for b in bad] or None)

    def _table(self, payload, context):
        if payload.get("techniques"):
            return payload["techniques"]
        ref = context.reference_data
        table = ref.get("mitre_attack_enterprise") if ref else None
        if not table:
            table = (ref.get("mitre_techniques") if ref else None) or (get_mitre_db() if get_mitre_db else None)
        return table or {}

    def execute(self, payload, context):
        table = self._table(payload, context)
        covered = defaultdict(list)
        for rule, ts in payload["detections"].items():
            for t in ts if isinstance(ts, list) else [ts]:
                covered[t].append(rule)
        if not table:
            return ToolResult(ok=False, error_code="NO_MITRE_MAPPINGS", message="no technique table", details={"techniques": sorted(covered)})
        tactics, unknown = defaultdict(lambda: {"covered": 0, "of": 0}), []
        for tid, t in table.items():
            for tac in t.get("tactics", []):
                tactics[tac]["of"] += 1
                tactics[tac]["covered"] += tid in covered
        unknown = sorted(t for t in covered if t not in table)
        want = payload.get("must_have") or []
        return ToolResult(ok=True, result={"rules": len(payload["detections"]), "techniques": len(covered), "unknown": unknown,
                                           "tactics": {k: dict(v) for k, v in sorted(tactics.items())}, "gaps": [t for t in want if t not in covered],
                                           "redundant": {t: r for t, r in covered.items() if len(r) > 1}})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['rules']} rules cover {r['techniques']} techniques; gaps: {', '.join(r['gaps']) or 'none'}; unknown ids: {', '.join(r['unknown']) or 'none'}."
