"""Keep a copy of a list: page after page, from where the last run came to."""

URL = "http://api.provider.example/items"


class PageSync:
    def get_schema(self):
        return {
            "type": "object",
            "title": "Sync",
            "description": "Copy what is new.",
            "properties": {"op": {"enum": ["sync"]}, "kb_id": {"type": "string"}, "__schedule_id": {"type": "string"}},
            "required": ["kb_id"],
            "additionalProperties": False,
        }

    async def execute(self, params, context, host):
        kb = params["kb_id"]
        at, taken = await host.cursor.get(kb) or "0", 0
        while True:
            page = (await host.http.fetch("GET", URL, params={"list": kb, "cursor": at}))["body"]
            for item in page["items"]:
                await host.kb.ingest_text(kb, title=item["title"], content=item["text"], source_id=item["id"])
                taken += 1
            if page["next"] is not None:
                at = page["next"]
                await host.cursor.set(kb, at)
            else:
                return {"status": "success", "data": {"taken": taken, "at": at, "op": params["op"], "schedule": params.get("__schedule_id")}}
