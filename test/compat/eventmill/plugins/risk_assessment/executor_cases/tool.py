import time

from framework.plugins.protocol import ToolResult, ValidationResult


class ExecutorCases:
    def metadata(self):
        return {"tool_name": "executor_cases", "version": "1.0.0"}

    def validate_inputs(self, payload):
        if payload.get("case") == "validate raises":
            raise ValueError("cannot validate")
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        case = payload.get("case")
        if case == "raises":
            raise ValueError("broke on purpose")
        if case == "none":
            return None
        if case == "sleeps":
            time.sleep(3600)
        if case == "exits":
            raise SystemExit(3)
        print("stray output")
        return ToolResult(ok=True, result={"case": case})

    def summarize_for_llm(self, result):
        case = result.result["case"]
        if case == "summary raises":
            raise RuntimeError("no words")
        if case == "long summary":
            return "s" * 5000
        return f"case {case}"
