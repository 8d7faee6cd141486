from mortise import Context, Plugin

plugin = Plugin("Desk", version="1.0.0")

STEPS = {
    "Support.QA.Answer": "Desk/answer",
    "Support.Ticket.Resolve": "Desk/resolve",
    "Admission.Application.StatusUpdate": "Desk/update",
    "Desk.Tell": "Desk/tell",
    "Desk.Translate": "Desk/says",
}


@plugin.agent
def triage(intent: dict, context: dict, policy_snapshot: dict, tool_registry: list, constraints: dict, runtime: dict) -> dict:
    """Propose what to do about an intent."""
    answer = {
        "agent_name": "Desk",
        "agent_version": "1.0.0",
        "confidence": 0.9,
        "rationale": {"short": "It is on the list.", "signals": ["intent_type:" + intent["type"]]},
    }
    if intent["type"] not in STEPS:
        return dict(answer, kind="next_step_suggestions", suggestions=[{"type": "question", "text": "What is meant?"}])
    step = {"step_id": "s1", "action": STEPS[intent["type"]], "gate": "none", "payload": intent["payload"]}
    return dict(answer, kind="plan_proposal", required_actions=[], proposed_plan={"steps": [step]})


@plugin.tool
def answer(question: str) -> dict:
    """Answer a question."""
    return {"answer": "About " + question}


@plugin.operator
def resolve(ticket_id: str, **others) -> dict:
    """Resolve a ticket."""
    return {"resolved": ticket_id}


@plugin.operator
def update(application_id: str, status: str, **others) -> dict:
    """Take note of a status."""
    return {"application": application_id, "status": status}


@plugin.operator(effects=["desk_write"])
def tell(text: str) -> dict:
    """Put something up for all to read."""
    return {"told": text}


@plugin.adapter
def says(says: dict) -> dict:
    """Say what the event has under says."""
    return says


@plugin.adapter
def asks(operation: str, input: dict, ctx: Context) -> dict:
    """Ask for the operation that the event names."""
    return ctx.call(operation, input)


if __name__ == "__main__":
    plugin.run()
