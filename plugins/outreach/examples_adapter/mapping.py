"""From an external event to a request to the kernel, for three systems.

Each mapping takes what it needs and leaves the rest: tokens, signatures and
whatever else an event carries go no further. The principal is who the other
system says it was; whose rights that gives is for the host to know.
"""

from __future__ import annotations

import hashlib
import re

_MENTION = re.compile(r"<@[A-Z0-9]+(?:\|[^>]*)?>")


class NotMapped(ValueError):
    """An event that is not a request."""


def salesforce_case(payload: dict) -> dict:
    """Salesforce case created -> Support.Ticket.Resolve."""
    header = payload["ChangeEventHeader"]
    if header["changeType"] != "CREATE":
        raise NotMapped(f"the case was not created: its changeType is {header['changeType']}")
    case = header["recordIds"][0]
    given = {"subject": "Subject", "description": "Description", "priority": "Priority", "case_number": "CaseNumber"}
    ticket = {name: payload[field] for name, field in given.items() if payload.get(field)}
    return _request(
        "Support.Ticket.Resolve",
        dict(ticket, ticket_id=case),
        ("salesforce", header["commitUser"]),
        ("salesforce", header["transactionKey"], case),
        {"source": "salesforce", "case_id": case, "origin": payload.get("Origin") or ""},
    )


def university_portal(id: str, university: str, application: dict, applicant: dict, occurred_at: str) -> dict:
    """University portal webhook -> Admission.Application.StatusUpdate."""
    update = {"application_id": application["id"], "status": application["status"], "university": university}
    if application.get("previous_status"):
        update["previous_status"] = application["previous_status"]
    return _request(
        "Admission.Application.StatusUpdate",
        update,
        ("university_portal", f"{university}/{applicant['id']}"),
        ("university_portal", university, id),
        {"source": "university_portal", "delivery": id, "occurred_at": occurred_at},
    )


def slack_mention(team_id: str, event_id: str, event: dict) -> dict:
    """Slack mention in an enterprise workspace -> Support.QA.Answer."""
    question = " ".join(_MENTION.sub(" ", event["text"]).split())
    if not question:
        raise NotMapped("the message mentions a user and says nothing")
    thread = event.get("thread_ts") or event["ts"]
    return _request(
        "Support.QA.Answer",
        {"question": question},
        ("slack", f"{team_id}/{event['user']}"),
        ("slack", team_id, event_id),
        {"source": "slack", "workspace": team_id, "channel": event["channel"], "thread": thread},
    )


def _request(intent: str, payload: dict, who: tuple, event: tuple, metadata: dict) -> dict:
    """A request to the kernel; `event` is what tells this event from every other."""
    digest = hashlib.sha256("\0".join(event).encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "intent": {"type": intent, "payload": payload},
        "principal": {"provider": who[0], "external_id": who[1]},
        "context": {"request": {"scope": event[0]}},
        "constraints": {},
        "idempotency_key": f"{event[0]}:{digest}",
        "metadata": metadata,
    }
