from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List

from shu_plugin_sdk import PluginResult

from .client import DeskClient

DEFAULT = "https://desk.example.com/api"


def _action_id(name: str, key: str) -> str:
    return "act_" + hashlib.sha256(("%s|%s" % (name, key)).encode()).hexdigest()[:16]


class TicketDesk:
    name = "ticket_desk"
    version = "1.1.0"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["search", "show"]},
                "text": {"type": "string", "x-ui": {"show_when": {"field": "op", "equals": "search"}}},
                "status": {"type": ["string", "null"], "enum": ["open", "waiting", "closed", None]},
                "include_closed": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "ticket_id": {"type": "integer", "minimum": 1, "x-ui": {"show_when": {"field": "op", "equals": "show"}}},
                "base_url": {"type": "string", "x-ui": {"hidden": True}},
            },
            "required": ["op"],
        }

    def get_output_schema(self):
        return {"type": "object"}

    async def _client(self, host, base):
        key = await host.secrets.get("desk_key")
        if not key:
            raise LookupError("desk_key is not configured")
        return DeskClient(host, base or DEFAULT, key)

    async def execute(self, params: Dict[str, Any], context, host):
        desk = await self._client(host, params.get("base_url"))
        if params["op"] == "search":
            if not params.get("text"):
                return PluginResult.err("text is required", code="missing_text")
            rows = await desk.search(params["text"], params.get("status"), params.get("include_closed", False), params.get("tags"))
            return PluginResult.ok({"count": len(rows), "tickets": rows},
                                   citations=[{"type": "ticket", "ref": str(r["id"]), "label": r.get("title", "")} for r in rows])
        ticket = await desk.get(params.get("ticket_id") or 0)
        if ticket is None:
            return PluginResult.err("no such ticket", code="ticket_not_found")
        return PluginResult.ok({"ticket": ticket})

    # ---- Actions API -----------------------------------------------------------------------------------------
    async def list_actions(self) -> List[Dict[str, Any]]:
        ticket = {"type": "integer", "minimum": 1}
        return [
            {"name": "comment", "description": "Adds a comment to a ticket", "required_scopes": ["tickets:write"], "requires_approval": False,
             "params_schema": {"type": "object", "required": ["ticket_id", "text"], "properties": {
                 "ticket_id": ticket, "text": {"type": "string", "minLength": 1}, "base_url": {"type": "string"}}}},
            {"name": "close_ticket", "description": "Closes a ticket with a resolution", "required_scopes": ["tickets:write"], "requires_approval": True,
             "params_schema": {"type": "object", "required": ["ticket_id", "resolution"], "properties": {
                 "ticket_id": ticket, "resolution": {"type": "string", "enum": ["fixed", "wontfix", "duplicate"]}, "base_url": {"type": "string"}}}},
        ]

    async def perform_action(self, name: str, args: Dict[str, Any], context: Any, host) -> Dict[str, Any]:
        ctx = context if isinstance(context, dict) else vars(context)
        key = ctx.get("idempotency_key") or hashlib.sha256(json.dumps([name, args], sort_keys=True).encode()).hexdigest()
        action_id = _action_id(name, key)
        if name not in ("comment", "close_ticket"):
            return {"status": "error", "action_id": action_id, "error": {"code": "unknown_action", "message": name}}
        if name == "close_ticket" and not (ctx.get("approved") or ctx.get("approval_token")):
            return {"status": "pending_approval", "action_id": action_id,
                    "preview": {"summary": "Close ticket %d as %s" % (args["ticket_id"], args["resolution"])}}
        done = await host.cache.get("act:" + action_id)
        if done is not None:
            return {"status": "ok", "action_id": action_id, "result": done, "diagnostics": ["repeated idempotency key"]}
        desk = await self._client(host, args.get("base_url"))
        if name == "comment":
            result = await desk.comment(args["ticket_id"], args["text"], key)
        else:
            result = await desk.close(args["ticket_id"], args["resolution"], key)
        await host.cache.set("act:" + action_id, result, ttl_seconds=86400)
        return {"status": "ok", "action_id": action_id, "result": result}
