"""Email.DraftAgent: a draft as an agent's own output.

It decides on the tone and leaves the writing to the operator
Email.GenerateDraft, which has no effects. Nothing is written or sent. There is
no model in here, so there is no randomness to disclose.
"""

from __future__ import annotations

from mortise import Context, Plugin, PluginError

NAME, VERSION = "Email.DraftAgent", "1.0.0"
TONES = ("formal", "warm", "brief")  # the longest first

plugin = Plugin(NAME, version=VERSION)


@plugin.agent(name=NAME)
def email_draft_agent(
    intent: dict,
    ctx: Context,
    context: dict = {},
    policy_snapshot: dict = {},
    tool_registry: list = [],
    constraints: dict = {},
    runtime: dict = {},
) -> dict:
    """Write an outreach draft from what is known of student and professor."""
    payload = intent.get("payload") or {}
    professor = _entity(context, payload, "professor", "entity", ("name", "field"), "papers")
    student = _entity(context, payload, "student", "profile", ("name", "degree"), "interests")
    asked = payload.get("tone") or constraints.get("tone") or "formal"
    given = {"professor": professor, "student": student}
    given.update({name: payload[name] for name in ("to", "from", "subject") if name in payload})
    most = constraints.get("max_words") or 2000
    tones = [asked] if payload.get("tone") else [asked, *(tone for tone in TONES if TONES.index(tone) > TONES.index(asked))]
    for tone in tones:  # a shorter one where the first has too many words
        made = ctx.call("Email.GenerateDraft", dict(given, tone=tone))["data"]
        if made["words"] <= most:
            break
    fits = made["words"] <= most
    confidence = 0.9 - (0 if professor["papers"] else 0.2) - (0 if student["interests"] else 0.1) - (0 if fits else 0.3)
    suggestions = [] if fits else [("constraint", f"{made['words']} words are more than {most}: no tone is shorter.")]
    if not professor["papers"]:
        suggestions.append(("context", "With a paper of the professor the draft would be more personal."))
    signals = [f"intent_type:{intent['type']}"] + [f"has_{name}" for name in ("tone", "to", "from", "subject") if name in payload]
    for above, below in (("student", "profile"), ("professor", "entity")):
        if isinstance((context.get(above) or {}).get(below), dict):
            signals.append(f"context:{above}.{below}")
    return {
        "agent_name": NAME,
        "agent_version": VERSION,
        "kind": "step_output",
        "confidence": round(confidence, 2),
        "rationale": {"short": f"A draft of {made['words']} words in a {tone} tone.", "signals": signals},
        "step_output": {"schema_version": "1", "draft": made["draft"], "words": made["words"], "tone": tone},
        "suggestions": [{"type": type, "text": text} for type, text in suggestions],
    }


def _entity(context: dict, payload: dict, above: str, below: str, texts: tuple, listed: str) -> dict:
    """The members that a draft is made of, and nothing else of what is known."""
    entity = (context.get(above) or {}).get(below) or (payload.get(above) or {}).get(below)
    entity = entity if isinstance(entity, dict) else {}
    missing = [f"{above}.{below}.{name}" for name in texts if not isinstance(entity.get(name), str) or not entity[name].strip()]
    if missing:
        raise PluginError(f"a draft needs {', '.join(missing)}", code="needs_context", details={"missing": missing})
    some = entity.get(listed) if isinstance(entity.get(listed), list) else []
    return dict({name: entity[name][:200] for name in texts}, **{listed: [s[:200] for s in some if isinstance(s, str) and s.strip()][:20]})


if __name__ == "__main__":
    plugin.run()
