"""Salesforce adapter. Inbound: case events -> Support.Ticket.Resolve; outbound: outcomes -> a request for ExternalSystem.WriteOutcome.

No business rules here, and no writes."""
from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field, asdict
from typing import Any

NAME, VERSION = "Salesforce.Adapter", "1.1.0"
TOOLS = [NAME, "map_external_event_to_intent", "map_outcome_to_operator_request"]
# what an external user may do at most; the Kernel intersects this with its own model
ROLE_SCOPES = {"Agent": ["ticket:read", "ticket:resolve"], "Customer": ["ticket:read"]}


class Rejected(Exception):
    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


@dataclass
class SubmitRequest:
    intent: dict[str, Any]
    principal: dict[str, Any]
    scopes: list[str]
    tenant_id: Any
    source: dict[str, Any]
    idempotency_key: str
    context_refs: list[dict] = field(default_factory=list)


def inbound(event: Any, mapping: dict) -> dict:
    if not isinstance(event, dict) or event.get("type") not in ("case.created", "case.updated"):
        raise Rejected("VALIDATION_ERROR", "external_event.type must be case.created or case.updated")
    case = event.get("case") or {}
    for k in ("Id", "Subject", "OwnerId"):
        if not case.get(k):
            raise Rejected("VALIDATION_ERROR", f"case.{k} is required")
    org = event.get("organizationId")
    tenant = (mapping.get("tenants") or {}).get(org)
    if tenant is None:
        raise Rejected("POLICY_DENIED", f"organization {org} is not mapped to a tenant")
    user = (mapping.get("users") or {}).get(case["OwnerId"])
    if user is None:
        raise Rejected("POLICY_DENIED", f"user {case['OwnerId']} is unknown")
    req = SubmitRequest(
        intent={"type": "Support.Ticket.Resolve", "payload": {"ticket_ref": case["Id"], "subject": case["Subject"], "priority": str(case.get("Priority", "Medium")).lower()}},
        principal={"type": "user", "id": user["principal_id"]},
        scopes=ROLE_SCOPES.get(user.get("role"), []),
        tenant_id=tenant, source={"system": "salesforce", "event_id": event.get("eventId")},
        idempotency_key=hashlib.sha256(f"{org}|{case['Id']}|{event.get('eventId')}".encode()).hexdigest()[:32])
    return asdict(req)


def outbound(outcome: Any) -> dict:
    if not isinstance(outcome, dict) or "schema_version" not in outcome or "ticket_ref" not in outcome:
        raise Rejected("VALIDATION_ERROR", "outcome needs schema_version and ticket_ref")
    return {"operator": "ExternalSystem.WriteOutcome", "payload": {"system": "salesforce", "object": "Case", "id": outcome["ticket_ref"], "fields": {"Status": "Solved" if outcome.get("resolved") else "In progress", "Comment": outcome.get("text", "")}},
            "idempotency_hint": f"sf:{outcome['ticket_ref']}:{outcome['schema_version']}", "policy_tags": ["external_send"]}


def dispatch(tool: str, inp: dict) -> dict:
    inp = inp.get("payload", inp)
    if tool == "map_outcome_to_operator_request" or (tool == NAME and "outcome" in inp):
        return {"operator_request": outbound(inp.get("outcome"))}
    return {"kernel_submit_request": inbound(inp.get("external_event"), inp.get("mapping") or {})}


def main() -> None:
    for raw in iter(sys.stdin.readline, ""):
        m = json.loads(raw)
        if m["type"] == "handshake":
            out = {"type": "handshake", "manifest": {"plugin_id": NAME, "plugin_version": VERSION, "protocol_version": "rterm.plugin.v1", "exposed_tools": TOOLS, "capabilities": []}}
        else:
            try:
                out = {"type": "response", "request_id": m["request_id"], "status": "ok", "output": dispatch(m["tool_name"], m.get("input") or {})}
            except Rejected as exc:
                out = {"type": "response", "request_id": m["request_id"], "status": "error", "error": {"code": exc.code, "message": str(exc)}}
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
