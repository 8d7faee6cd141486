"""Narrates a list of findings with the connected model."""
from __future__ import annotations
import json
from typing import Any
from framework.plugins.protocol import QueryHints, ToolResult, ValidationResult
from framework.logging.structured import log_llm_interaction

SYSTEM = "You are an incident reporter. Use only the findings given. Answer with one JSON object: {\"title\":..., \"narrative\":..., \"next_steps\":[...]}"


class LlmIncidentNarrator:
    def metadata(self) -> dict[str, Any]:
        return {"tool_name": "llm_incident_narrator", "version": "1.0.0", "requires_llm": True}

    def validate_inputs(self, payload: dict) -> ValidationResult:
        f = payload.get("findings")
        if isinstance(f, str) and f.strip():
            return ValidationResult(ok=True)
        if isinstance(f, list) and f and all(isinstance(x, (str, dict)) for x in f):
            return ValidationResult(ok=True)
        return ValidationResult(ok=False, errors=["findings: text, or a non-empty list of texts or objects"])

    def execute(self, payload: dict, context) -> ToolResult:
        if not context.llm_enabled or context.llm_query is None:
            return ToolResult(ok=False, error_code="LLM_UNAVAILABLE", message="connect a model first")
        findings = payload["findings"]
        lines = findings.splitlines() if isinstance(findings, str) else [x if isinstance(x, str) else json.dumps(x) for x in findings]
        prompt = "Findings:\n" + "\n".join(f"{i}. {l}" for i, l in enumerate(lines, 1))
        kwargs: dict[str, Any] = dict(prompt=prompt, system_context=SYSTEM, max_tokens=2048)
        if not hasattr(context.llm_query, "single_model"):
            kwargs["hints"] = QueryHints(tier="heavy", needs_structured_output=True)
        mitre = context.reference_data.get("mitre_techniques") or {}
        ground = [f"{k}: {v['name']}" for k, v in mitre.items() if k in prompt]
        if ground:
            kwargs["grounding_data"] = ground
        resp = context.llm_query.query_text(**kwargs)
        log_llm_interaction(prompt, resp.text or "", model_id=resp.model_used, session_id=context.session_id, error=resp.error)
        if not resp.ok:
            return ToolResult(ok=False, error_code="LLM_QUERY_FAILED", message=resp.error or "model error")
        text = (resp.text or "").strip()
        text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        try:
            doc = json.loads(text)
            title, story = doc["title"], doc["narrative"]
        except (ValueError, KeyError, TypeError):
            return ToolResult(ok=False, error_code="LLM_QUERY_FAILED", message="unparseable response", details={"start": text[:80]})
        return ToolResult(ok=True, result={"title": title, "report": f"# {title}\n\n{story}", "next_steps": doc.get("next_steps", []), "finding_count": len(lines)})

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result or {}
        return f"Narrative '{r.get('title')}' written from {r.get('finding_count')} findings; {len(r.get('next_steps') or [])} next steps."
