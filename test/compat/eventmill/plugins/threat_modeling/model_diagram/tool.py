"""Draws what risk_register has gathered, as a graph."""

import sys

from framework.plugins.protocol import ToolResult, ValidationResult


class ModelDiagram:
    def metadata(self):
        return {"tool_name": "model_diagram", "version": "1.0.0"}

    def validate_inputs(self, payload):
        nodes = payload.get("nodes")
        if isinstance(nodes, list) and nodes:
            return ValidationResult(ok=True)
        return ValidationResult(ok=False, errors=["nodes must be a list with something in it"])

    def execute(self, payload, context):
        drawn = sys.__dict__.setdefault("_compat_drawn", 0) + 1
        sys._compat_drawn = drawn
        lines = ["graph TD"] + [f"  n{i}[{name}]" for i, name in enumerate(payload["nodes"])]
        lines += [f"  n{i} --> n{i + 1}" for i in range(len(payload["nodes"]) - 1)]
        return ToolResult(ok=True, result={"visualization": "\n".join(lines), "nodes": len(payload["nodes"]), "drawn": drawn})

    def summarize_for_llm(self, result):
        return f"A graph of {result.result['nodes']} nodes."
