"""Switchboard: turns a funding outreach intent into a plan, and does nothing else."""

from __future__ import annotations

from mortise import Plugin, PluginError
from plan import ASKED, SEND, START, STEPS, Missing, Request, actions, confidence, steps

NAME, VERSION = "Switchboard", "1.1.0"

plugin = Plugin(NAME, version=VERSION)


@plugin.agent(name=NAME)
def switchboard(
    intent: dict,
    context: dict = {},
    policy_snapshot: dict = {},
    tool_registry: list = [],
    constraints: dict = {},
    runtime: dict = {},
) -> dict:
    """Turn a funding outreach intent into a plan."""
    if intent["type"] not in STEPS:
        known = " or ".join(sorted(STEPS))
        if intent["type"] == "Funding.Outreach.FollowUp":
            return _suggest(intent["type"], 0.9, "Another agent knows this.", [("intent", "Ask the agent FollowUp.Suggest.")])
        return _suggest(intent["type"], 0.2, "No plan is known for this intent.", [("intent", f"Ask for {known}.")])
    try:
        request = Request(intent, context, constraints)
    except Missing as err:
        raise PluginError(f"a draft needs {err}", code="needs_context", details={"missing": err.fields}) from None

    whats = {"document": "document is it", "professor_id": "professor is it", "to": "address does it go to", "from": "address does it come from"}
    open_questions = [
        ("question", f"Which {whats[name]}? Give it as {name} in the payload.") for name in ASKED[request.type] if name not in request.payload
    ]
    if open_questions:
        return _suggest(request.type, 0.4, "Something is missing that only the caller knows.", open_questions, request)
    proposable = {tool["name"] for tool in tool_registry}
    denied = [operation for _, operation, _ in STEPS[request.type] if tool_registry and operation not in proposable]
    if denied:
        text = f"{', '.join(denied)} may not be proposed for you: policy denies it, or it is not installed."
        return _suggest(request.type, 0.4, "Not every step of the plan may happen.", [("policy", text)], request)

    suggestions = [("followup", f"To have it sent once it is read, ask for {SEND}.")] if request.type not in (SEND, START) else []
    if not request.professor["papers"] and request.type != START:
        suggestions.append(("context", "With a paper of the professor the draft would be more personal."))
    answer = _answer("plan_proposal", confidence(request), ("A draft is written from a document and reviewed" if request.type == START else "A draft is generated and scored") + (
        "; once a person agrees it becomes final and is sent." if request.type in (SEND, START) else "."
    ), request.signals(), suggestions)  # fmt: skip
    return dict(answer, required_actions=actions(request), proposed_plan={"steps": steps(request)})


def _suggest(intent_type: str, confidence: float, short: str, suggestions: list, request: Request | None = None) -> dict:
    signals = request.signals() if request else [f"intent_type:{intent_type}"]
    return _answer("next_step_suggestions", confidence, short, signals, suggestions)


def _answer(kind: str, confidence: float, short: str, signals: list, suggestions: list) -> dict:
    return {
        "agent_name": NAME,
        "agent_version": VERSION,
        "kind": kind,
        "confidence": round(confidence, 2),
        "rationale": {"short": short, "signals": signals},
        "suggestions": [{"type": type, "text": text} for type, text in suggestions],
    }


if __name__ == "__main__":
    plugin.run()
