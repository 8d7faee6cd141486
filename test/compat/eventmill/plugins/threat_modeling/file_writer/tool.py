"""Writes where published plugins write: relative to the working directory."""

import os
from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult


class FileWriter:
    def metadata(self):
        return {"tool_name": "file_writer", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        out = Path("workspace/artifacts")
        out.mkdir(parents=True, exist_ok=True)
        (out / "model.md").write_text("# a model\n")
        other = Path(os.environ["EVENTMILL_WORKSPACE"]) / "artifacts" / "model.md"
        return ToolResult(
            ok=True,
            result={"agree": other.read_text() == "# a model\n", "cloud": "K_SERVICE" in os.environ},
            output_artifacts=[{"artifact_type": "markdown", "file_path": "workspace/artifacts/model.md"}],
        )

    def summarize_for_llm(self, result):
        return "one file"
