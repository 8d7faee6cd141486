"""Aggregates an audit trail by actor and action and registers the sensitive events."""

import json
import os
from collections import Counter

from framework.plugins.protocol import ToolResult, ValidationResult

SENSITIVE = ("Delete", "Put", "Attach", "CreateAccessKey", "StopLogging")


class TrailActions:
    def metadata(self):
        return {"tool_name": "trail_actions", "version": "2.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        trails = [a for a in context.artifacts if a.artifact_type in ("cloud_audit_log", "json_events")]
        if not trails:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="no audit log is loaded")
        try:
            with open(trails[0].file_path) as source:
                records = json.load(source)["Records"]
        except (ValueError, KeyError) as exc:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=f"not an audit trail: {exc}")
        actions = Counter((r["userIdentity"].get("userName", "?"), r["eventName"]) for r in records)
        sensitive = [r for r in records if r["eventName"].startswith(SENSITIVE)]
        folder = os.path.join(context.config.get("workspace_dir", "workspace"), "artifacts")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "sensitive_events.json")
        with open(path, "w") as out:
            json.dump(sensitive, out, sort_keys=True)
        ref = context.register_artifact("json_events", path, "trail_actions", {"records": len(sensitive)})
        return ToolResult(
            ok=True,
            result={
                "records": len(records),
                "actions": [{"actor": actor, "action": action, "count": n} for (actor, action), n in sorted(actions.items())],
                "sensitive": [r["eventName"] for r in sensitive],
                "artifact": ref.artifact_type,
            },
            output_artifacts=[{"artifact_id": ref.artifact_id, "artifact_type": ref.artifact_type, "file_path": ref.file_path}],
        )

    def summarize_for_llm(self, result):
        return f"{result.result['records']} records; sensitive: {', '.join(result.result['sensitive']) or 'none'}."
