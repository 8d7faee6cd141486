"""Search a ticket tracker; close tickets once a person agrees."""

from shu_plugin_sdk import PluginResult

BASE = "http://api.provider.example/tickets"


class TicketPlugin:
    def get_schema(self):
        return {
            "type": "object",
            "title": "Tickets",
            "description": "Search tickets by text.",
            "properties": {
                "op": {"type": "string", "enum": ["search"], "x-ui": {"enum_labels": {"search": "Search"}}},
                "query": {"type": "string"},
                "limit": {"type": ["integer", "null"], "default": 10},
            },
            "required": ["query"],
        }

    def get_output_schema(self):
        return {"type": "object", "properties": {"tickets": {"type": "array"}, "cached": {"type": "boolean"}}}

    async def execute(self, params, context, host):
        key = f"search:{params['query']}"
        cached = await host.cache.get(key)
        if cached is not None:
            return PluginResult.ok({"tickets": cached, "cached": True})
        answer = await host.http.fetch("GET", BASE, params={"q": params["query"], "open": True, "limit": params.get("limit", 10)})
        tickets = [{"id": one["key"], "title": one["fields"]["summary"]} for one in answer["body"]["issues"]]
        await host.cache.set_safe(key, tickets, ttl_seconds=120)
        citations = [{"type": "web", "ref": f"{BASE}/{one['id']}", "label": one["title"]} for one in tickets]
        return PluginResult.ok({"tickets": tickets, "cached": False}, citations=citations, cost={"api_calls": 1})

    async def list_actions(self):
        schema = {"type": "object", "properties": {"id": {"type": "string"}, "note": {"type": "string"}}, "required": ["id"]}
        return [{"name": "close", "description": "Close a ticket.", "params_schema": schema, "required_scopes": ["tickets.write"], "requires_approval": True}]

    async def perform_action(self, name, args, context, host):
        preview = {"ticket": args["id"], "becomes": "closed"}
        if not context.get("approved"):
            return {"status": "pending_approval", "action_id": args["id"], "preview": preview}
        headers = {"Idempotency-Key": context["idempotency_key"] or ""}
        answer = await host.http.fetch("POST", f"{BASE}/{args['id']}/close", json={"note": args.get("note", "")}, headers=headers)
        return {"status": "ok", "action_id": args["id"], "result": answer["body"]}
