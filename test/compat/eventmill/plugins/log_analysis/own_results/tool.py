"""Brings its own result classes, with fewer members than the framework's."""

from dataclasses import dataclass


@dataclass
class Verdict:
    ok: bool
    errors: list = None


@dataclass
class Outcome:
    ok: bool
    result: dict = None
    error_code: str = None
    message: str = None


class OwnResults:
    def metadata(self):
        return {"tool_name": "own_results", "version": "1.0.0"}

    def validate_inputs(self, payload):
        return Verdict(ok=payload.get("kind") != "bad", errors=["kind is bad"])

    def execute(self, payload, context):
        kind = payload.get("kind")
        if kind == "none":
            return None
        if kind == "own":
            return Outcome(ok=False, error_code="NO_MITRE_MAPPINGS", message="there are none")
        if kind == "raise":
            raise KeyError("the_key")
        return Outcome(ok=True, result={"kind": kind or "good"})

    def summarize_for_llm(self, result):
        return f"kind {result.result['kind']}"
