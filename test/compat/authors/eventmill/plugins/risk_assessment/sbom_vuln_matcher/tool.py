"""CycloneDX components against a bundled advisory list."""
from __future__ import annotations
import json, os, re
from pathlib import Path
from typing import Any
try:
    import packaging.version as pv
except Exception:  # optional
    pv = None
from framework.plugins.protocol import ToolResult, ValidationResult

DATA = Path(__file__).resolve().parent / "data" / "advisories.json"
SEV = {"critical": 4, "high": 3, "medium": 2, "low": 1}


def key(v: str):
    if pv is not None:
        try:
            return (0, pv.Version(v))
        except pv.InvalidVersion:
            pass
    return (1, [int(x) for x in re.findall(r"\d+", v)])


def older(a: str, b: str) -> bool:
    ka, kb = key(a), key(b)
    if ka[0] != kb[0]:
        ka, kb = (1, [int(x) for x in re.findall(r"\d+", a)]), (1, [int(x) for x in re.findall(r"\d+", b)])
    return ka[1] < kb[1]


class SbomVulnMatcher:
    def metadata(self):
        return {"tool_name": "sbom_vuln_matcher", "version": "1.0.0", "packaging": pv is not None}

    def validate_inputs(self, payload: dict[str, Any]):
        if not any(payload.get(k) for k in ("sbom", "file_path", "artifact_id")):
            return ValidationResult(ok=False, errors=["sbom, file_path or artifact_id is required"])
        if payload.get("fail_on", "none") not in (*SEV, "none"):
            return ValidationResult(ok=False, errors=["fail_on: critical, high, medium, low or none"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        sbom = payload.get("sbom")
        if sbom is None:
            path = payload.get("file_path") or next((a.file_path for a in context.artifacts if a.artifact_id == payload.get("artifact_id")), "")
            if not os.path.isfile(path):
                return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="SBOM not found")
            try:
                sbom = json.loads(Path(path).read_text())
            except ValueError as exc:
                return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=str(exc))
        if not isinstance(sbom, dict) or sbom.get("bomFormat") != "CycloneDX":
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="bomFormat is not CycloneDX")
        advisories = (context.reference_data.get("advisories") if context.reference_data else None) or json.loads(DATA.read_text())
        comps, hits = sbom.get("components", []), []
        for c in comps:
            name, _, ver = c.get("purl", "").partition("@")
            ver = ver.split("?")[0] or c.get("version", "0")
            for a in advisories:
                if a["package"] == name and older(ver, a["fixed"]):
                    hits.append({"advisory": a["id"], "component": name, "version": ver, "fixed": a["fixed"], "severity": a["severity"]})
        hits.sort(key=lambda h: -SEV[h["severity"]])
        gate = payload.get("fail_on", "none")
        return ToolResult(ok=True, message="gate failed" if gate != "none" and any(SEV[h["severity"]] >= SEV[gate] for h in hits) else None,
                          result={"components": len(comps), "vulnerable": hits, "gate": "none" if gate == "none" else "failed" if any(SEV[h["severity"]] >= SEV[gate] for h in hits) else "passed"})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['components']} components, {len(r['vulnerable'])} vulnerable: " + (", ".join(f"{h['component']}@{h['version']} ({h['severity']})" for h in r["vulnerable"][:8]) or "none")
