"""FollowUp.Suggest: what to do about a mail that was sent.

Silence for long enough is a reminder, at most two of them; a reply that asks
for something is an answer; both are proposals that a person agrees to. A no is
the end of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from email.utils import parseaddr

from judging import AFTER_DAYS, MOST, answer, due, reminder, reply_means, time
from mortise import InvalidInput, Plugin, PluginError

NAME, VERSION = "FollowUp.Suggest", "1.0.0"
NEEDED = ("to", "from", "subject", "sent_at", "message_id")

plugin = Plugin(NAME, version=VERSION)


@plugin.agent(name=NAME)
def followup_suggest(
    intent: dict,
    context: dict = {},
    policy_snapshot: dict = {},
    tool_registry: list = [],
    constraints: dict = {},
    runtime: dict = {},
) -> dict:
    """Say what to do about a mail that was sent."""
    payload = intent["payload"]
    sent, scope = _sent(context, payload), _find(context, payload, "request", "scope")
    scope = str(scope.get("id") or "request") if isinstance(scope, dict) else str(scope or "request")
    signals = [f"intent_type:{intent['type']}", f"fact:now={payload['now']}"]
    signals += [f"context:{path}" for path in ("outreach.sent", "request.scope") if _find(context, {}, *path.split(".")) is not None]
    try:
        sent_at, now = time(sent["sent_at"]), time(payload["now"])
        passed = now >= sent_at
    except (TypeError, ValueError) as err:
        raise InvalidInput(f"outreach.sent.sent_at and now are times of RFC 3339 with a zone: {err}") from None
    if not passed:
        raise InvalidInput("outreach.sent.sent_at is later than now")
    count = sent.get("follow_ups") if type(sent.get("follow_ups")) is int and sent["follow_ups"] >= 0 else 0
    if isinstance(payload.get("reply"), dict):
        signals.append("has_reply")
        means = reply_means(payload["reply"]["text"])
        told = {
            "away": ("The reply is an automatic one.", "wait", "Ask again once they are back."),
            "decline": ("The reply is a no.", "stop", "Write no more to this address. A short word of thanks is yours to write."),
            "other": ("A person has to read the reply.", "read", "Read the reply; no rule says what it means."),
        }
        if means in told:
            short, kind, text = told[means]
            return _answer("next_step_suggestions", 0.8 if means != "other" else 0.4, short, signals, [(kind, text)])
        return _proposal(sent, payload, scope, count, answer(sent, means), f"The reply asks for something: {means}.", signals, tool_registry)
    state, at = due(sent_at, now, count, constraints.get("after_days", AFTER_DAYS), constraints.get("most", MOST))
    if state == "wait":
        return _answer("next_step_suggestions", 0.9, "It is too early to remind.", signals, [("wait", f"Ask again at {at.isoformat()}.")])
    if state == "stop":
        return _answer("next_step_suggestions", 0.9, f"{count} reminders were enough.", signals, [("stop", "Write no more to this address.")])
    return _proposal(sent, payload, scope, count, reminder(sent, sent_at), "There was no reply for long enough.", signals, tool_registry)


def _proposal(sent: dict, payload: dict, scope: str, count: int, body: str, short: str, signals: list, tool_registry: list) -> dict:
    """Review, make final, send: the last two wait for a person."""
    steps = [("f1", "Email.ReviewDraft", "none"), ("f2", "Apply.EmailDraft", "human_apply"), ("f3", "Gmail.Send", "human_apply")]
    proposable = {tool["name"] for tool in tool_registry}
    denied = [operation for _, operation, _ in steps if tool_registry and operation not in proposable]
    if denied:
        text = f"{', '.join(denied)} may not be proposed for you: policy denies it, or it is not installed."
        return _answer("next_step_suggestions", 0.4, "Not every step of the plan may happen.", signals, [("policy", text)])
    subject = sent["subject"] if re.match(r"re:", sent["subject"], re.IGNORECASE) else f"Re: {sent['subject']}"[:500]
    draft = {"subject": subject, "body": body, "to": sent["to"], "from": sent["from"]}
    reply = payload.get("reply") if isinstance(payload.get("reply"), dict) else {}
    send = dict(draft, in_reply_to=reply.get("message_id") or sent["message_id"])
    if isinstance(sent.get("thread_id"), str) and sent["thread_id"]:
        send["thread_id"] = sent["thread_id"]
    apply = {"id": _id(scope, sent, count), "draft": draft}
    if "backend" in payload:
        apply["backend"] = payload["backend"]
    if "gmail" in payload:
        send["base"] = payload["gmail"]
    given = {"Email.ReviewDraft": {"draft": draft}, "Apply.EmailDraft": apply, "Gmail.Send": send}
    tags = {"Email.ReviewDraft": ["draft_only"], "Apply.EmailDraft": ["writes_final"], "Gmail.Send": ["external_send"]}
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]
    actions = [
        {"operator": name, "payload": given[name], "policy_tags": tags[name], "idempotency_hint": f"{name}:{apply['id']}:{digest}"}
        for _, name, _ in steps
    ]
    proposal = _answer("plan_proposal", 0.8, short, signals, [])
    return dict(proposal, required_actions=actions, proposed_plan={"steps": [{"step_id": id, "action": name, "gate": gate} for id, name, gate in steps]})


def _sent(context: dict, payload: dict) -> dict:
    """The mail that was sent, as far as a follow-up needs it."""
    sent = _find(context, payload, "outreach", "sent")
    sent = dict(sent) if isinstance(sent, dict) else {}
    missing = [f"outreach.sent.{name}" for name in NEEDED if not isinstance(sent.get(name), str) or not sent[name].strip()]
    if missing:
        raise PluginError(f"a follow-up needs {', '.join(missing)}", code="needs_context", details={"missing": missing})
    name, address = parseaddr(sent["from"])
    sent["name"] = name or address or sent["from"]
    other, _ = parseaddr(sent["to"])
    sent["greeting"] = f"Professor {other.split()[-1]}" if other else ""
    return sent


def _id(scope: str, sent: dict, count: int) -> str:
    """Which email of the backend this is: one for each mail and reminder."""
    mail = hashlib.sha256(sent["message_id"].encode()).hexdigest()[:12]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{scope[:80]}-{mail}-f{count + 1}").lstrip("._-")


def _find(context: dict, payload: dict, above: str, below: str) -> object:
    for tree in (context, payload):
        inside = tree.get(above)
        if isinstance(inside, dict) and inside.get(below) is not None:
            return inside[below]
    return None


def _answer(kind: str, confidence: float, short: str, signals: list, suggestions: list) -> dict:
    return {
        "agent_name": NAME,
        "agent_version": VERSION,
        "kind": kind,
        "confidence": confidence,
        "rationale": {"short": short, "signals": signals},
        "suggestions": [{"type": type, "text": text} for type, text in suggestions],
    }


if __name__ == "__main__":
    plugin.run()
