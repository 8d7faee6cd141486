"""Touches of the context what published plugins touch."""

import os

from framework.plugins.protocol import ToolResult, ValidationResult


class ContextUser:
    def metadata(self):
        return {"tool_name": "context_user", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        context.logger.info("looking at %d artifacts", len(context.artifacts))
        workspace = context.config.get("workspace_dir", "workspace")
        os.makedirs(os.path.join(workspace, "artifacts"), exist_ok=True)
        path = os.path.join(workspace, "artifacts", "seen.json")
        with open(path, "w") as out:
            out.write('{"seen": %d}' % len(context.artifacts))
        ref = context.register_artifact(artifact_type="json_events", file_path=path, source_tool="context_user", metadata={"n": 1})
        first = context.artifacts[0]
        with open(first.file_path) as evidence:
            head = evidence.readline().strip()
        try:
            first.file_path = "elsewhere"
            frozen = False
        except Exception:
            frozen = True
        return ToolResult(
            ok=True,
            result={
                "types": [a.artifact_type for a in context.artifacts],
                "head": head,
                "orange": context.config.get("condition_orange", False),
                "bucket": context.config.get("EVENTMILL_BUCKET_PREFIX"),
                "registry": hasattr(context, "artifact_registry") and context.artifact_registry is not None,
                "missing": context.reference_data.get("mitre_attack_enterprise") is None,
                "own_data": context.reference_data.get("ports"),
                "made": [ref.artifact_type, ref.artifact_id[:4], os.path.exists(ref.file_path)],
                "frozen": frozen,
                "timeout": context.limits["timeout"],
                "llm": [context.llm_enabled, context.llm_query is None],
                "session": context.session_id[:5],
                "pillar": context.selected_pillar,
            },
        )

    def summarize_for_llm(self, result):
        return "touched"
