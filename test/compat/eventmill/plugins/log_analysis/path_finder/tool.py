from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult


class PathFinder:
    def metadata(self):
        return {"tool_name": "path_finder", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        path = payload.get("file_path")
        if not path or not Path(path).exists():
            return ToolResult(ok=False, error_code="FILE_NOT_FOUND", message=f"no {path}")
        return ToolResult(ok=True, result={"name": Path(path).name, "path": payload.get("path") == path, "size": Path(path).stat().st_size})

    def summarize_for_llm(self, result):
        return result.result["name"]
