"""A register that grows over a session: add, list, score."""

from framework.plugins.protocol import ToolResult, ValidationResult

LEVELS = {"low": 1, "medium": 3, "high": 5}
_register = []


class RiskRegister:
    def metadata(self):
        return {"tool_name": "risk_register", "version": "1.0.0"}

    def validate_inputs(self, payload):
        action = payload.get("action")
        if action not in ("add", "list"):
            return ValidationResult(ok=False, errors=["action must be add or list"])
        if action == "add":
            wrong = [f"{key} must be one of {', '.join(LEVELS)}" for key in ("likelihood", "impact") if payload.get(key) not in LEVELS]
            if not payload.get("title"):
                wrong.append("title is required")
            return ValidationResult(ok=not wrong, errors=wrong or None)
        if not _register:
            return ValidationResult(ok=False, errors=["the register is empty"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        if payload["action"] == "add":
            _register.append({"id": f"R{len(_register) + 1}", "title": payload["title"], "score": LEVELS[payload["likelihood"]] * LEVELS[payload["impact"]]})
        ranked = sorted(_register, key=lambda risk: (-risk["score"], risk["id"]))
        return ToolResult(ok=True, result={"risks": ranked, "report": "\n".join(f"{r['id']} {r['score']:>2} {r['title']}" for r in ranked)})

    def summarize_for_llm(self, result):
        risks = result.result["risks"]
        return f"{len(risks)} risks, the highest {risks[0]['title']} ({risks[0]['score']})."
