"""Third-party packages are optional: what is absent is found out when it is needed."""

from framework.plugins.protocol import ToolResult, ValidationResult

try:
    import no_such_capture_library as capture
except ImportError:
    capture = None


class GuardedImports:
    def metadata(self):
        return {"tool_name": "guarded_imports", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if payload.get("needs") == "library":
            import no_such_capture_library  # noqa: F401
        if capture is None and payload.get("needs") == "answer":
            return ToolResult(ok=False, error_code="DEPENDENCY_MISSING", message="no_such_capture_library is not installed")
        return ToolResult(ok=True, result={"capture": capture is not None})

    def summarize_for_llm(self, result):
        return "done"
