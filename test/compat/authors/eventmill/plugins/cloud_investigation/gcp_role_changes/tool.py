"""Role bindings added and removed in Google Cloud audit logs; uses MITRE reference data when present."""
from __future__ import annotations
import json
import pathlib
from framework.plugins.protocol import ArtifactRef, ToolResult, ValidationResult

POWERFUL = ("roles/owner", "roles/editor", "roles/iam.serviceAccountTokenCreator", "roles/iam.securityAdmin")
TECHNIQUE = "T1098"


class GcpRoleChanges:
    def metadata(self) -> dict:
        return {"tool_name": "gcp_role_changes", "version": "1.0.1", "technique": TECHNIQUE}

    def validate_inputs(self, payload: dict) -> ValidationResult:
        problems = [f"{k} must be text" for k in ("artifact_id", "file_path") if k in payload and not isinstance(payload[k], str)]
        if not payload.get("artifact_id") and not payload.get("file_path"):
            problems.append("artifact_id or file_path needed")
        return ValidationResult(ok=not problems, errors=problems or None)

    def _source(self, payload, context) -> ArtifactRef | None:
        for ref in context.artifacts:
            if ref.artifact_id == payload.get("artifact_id"):
                return ref
        if payload.get("file_path"):
            return ArtifactRef(artifact_id="adhoc", artifact_type="cloud_audit_log", file_path=payload["file_path"])
        return None

    def execute(self, payload: dict, context) -> ToolResult:
        ref = self._source(payload, context)
        if ref is None or not pathlib.Path(ref.file_path).exists():
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="audit log not found")
        try:
            data = json.loads(pathlib.Path(ref.file_path).read_text(encoding="utf-8"))
        except ValueError as exc:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=str(exc))
        entries = data if isinstance(data, list) else data.get("entries", [])
        changes = []
        for e in entries:
            pp = e.get("protoPayload", {})
            if pp.get("methodName", "").rsplit(".", 1)[-1] != "SetIamPolicy":
                continue
            for d in pp.get("serviceData", {}).get("policyDelta", {}).get("bindingDeltas", []):
                changes.append({"time": e.get("timestamp"), "by": pp.get("authenticationInfo", {}).get("principalEmail"),
                                "action": d.get("action"), "role": d.get("role"), "member": d.get("member"),
                                "powerful": d.get("role") in POWERFUL})
        mitre = context.reference_data.get("mitre_techniques") or {}
        tech = mitre.get(TECHNIQUE)
        external = [c for c in changes if c["action"] == "ADD" and (c["member"] or "").endswith("@gmail.com")]
        return ToolResult(ok=True, result={
            "entries": len(entries), "changes": changes, "added": sum(c["action"] == "ADD" for c in changes),
            "removed": sum(c["action"] == "REMOVE" for c in changes), "powerful_added": sum(c["action"] == "ADD" and c["powerful"] for c in changes),
            "external_members": [c["member"] for c in external],
            "technique": {"id": TECHNIQUE, "name": tech["name"] if tech else None}})

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result
        return f"{r['added']} role bindings added ({r['powerful_added']} powerful), {r['removed']} removed in {r['entries']} entries; external members: {', '.join(r['external_members']) or 'none'}."
