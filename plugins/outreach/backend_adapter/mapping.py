"""From a webhook event of the platform's backend to a request to the kernel, and back.

A pipe that holds back what is not paid for: how many credits a user has is
asked of the backend itself, and what an event says of them does not count.
Nothing is taken off here; the backend does that when it hears of the outcome.
"""

from __future__ import annotations

import hashlib

# By type of event: the intent, and what it costs.
INTENTS = {
    "outreach.draft_requested": ("Funding.Outreach.Email.Generate", 1),
    "outreach.requested": ("Funding.Outreach.Email.Send", 2),
    "outreach.started": ("Funding.Outreach.Start", 3),
    "outreach.follow_up_due": ("Funding.Outreach.FollowUp", 1),
}
COSTS = dict(INTENTS.values())


def cost(event: dict) -> int:
    """Return how many credits an event costs."""
    return INTENTS[event["type"]][1]


def to_request(event: dict) -> dict:
    """Return the request of an event; the same event is always the same request, key included."""
    intent, _ = INTENTS[event["type"]]
    context = event["context"] if isinstance(event.get("context"), dict) else {}
    if "scope" not in (context.get("request") if isinstance(context.get("request"), dict) else {}):
        context = dict(context, request={"scope": f"platform-{event['tenant']}"})
    return {
        "intent": {"type": intent, "payload": event["payload"]},
        "principal": {"provider": "platform", "external_id": f"{event['tenant']}/{event['user']['id']}"},
        "context": context,
        "constraints": {},
        "idempotency_key": f"platform:{digest('platform', event['tenant'], event['id'])}",
        "metadata": {"source": "platform", "event": event["id"], "type": event["type"]},
    }


def outcome(reference: str, status: str, text: str, intent: str) -> dict:
    """Return what the backend is told: a success costs what its intent costs, everything else nothing."""
    told = {"reference": reference, "status": status, "text": text}
    if status == "succeeded" and intent in COSTS:
        told["data"] = {"credits_used": COSTS[intent]}
    return told


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
