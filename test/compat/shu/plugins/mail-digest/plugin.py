"""Summarise the mail that came since the last time, page by page."""

from collections import Counter

BASE = "http://api.provider.example/mail"


class MailDigest:
    def get_schema(self):
        properties = {
            "op": {"type": "string", "enum": ["digest"]},
            "kb_id": {"type": "string"},
            "reset_cursor": {"type": ["boolean", "null"]},
        }
        return {"type": "object", "title": "Digest", "description": "Who wrote how often.", "properties": properties, "required": ["kb_id"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"messages": {"type": "integer"}, "senders": {"type": "object"}}, "required": ["messages"]}

    async def execute(self, params, context, host):
        kb = params["kb_id"]
        if params.get("reset_cursor"):
            await host.cursor.delete_safe(kb)
        since = await host.cursor.get(kb)
        ids, page = [], None
        while True:
            listed = await host.http.fetch("GET", BASE + "/messages", params={"since": since, "page": page})
            ids += [one["id"] for one in listed["body"]["messages"]]
            page = listed["body"].get("next")
            if page is None:
                break

        async def sender(id):
            return (await host.http.fetch("GET", f"{BASE}/messages/{id}"))["body"]["from"]

        senders, errors = await host.utils.map_safe(ids, sender, max_errors=10)
        if ids and not errors:
            await host.cursor.set_safe(kb, listed["body"]["watermark"])
        skips = [{"id": id, "reason": "network", "details": {"status": getattr(exc, "status_code", None)}} for id, exc in errors]
        return {
            "status": "success",
            "data": {"messages": len(senders), "senders": dict(sorted(Counter(senders).items())), "since": since},
            "skips": skips,
            "diagnostics": [f"{len(ids)} listed"],
        }
