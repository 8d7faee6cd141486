"""Copy notes into a knowledge base, and find them there."""

BASE = "http://api.provider.example/notes"


class TeamNotes:
    def get_schema(self):
        properties = {"op": {"type": "string", "enum": ["ingest", "ask"]}, "kb_id": {"type": "string"}, "query": {"type": "string"}}
        return {"type": "object", "properties": properties, "required": ["kb_id"]}

    async def execute(self, params, context, host):
        kb = params["kb_id"]
        if params["op"] == "ask":
            found = await host.kb.search_chunks("content", "icontains", params["query"])
            return {"status": "success", "data": {"results": len(found["results"])}}
        since = await host.cursor.get(kb)
        answer = await host.http.fetch("GET", BASE, params={"since": since})
        counts = {"ingested": 0, "skipped": 0}
        ids = []
        for note in answer["body"]["notes"]:
            if note.get("deleted"):
                continue
            got = await host.kb.ingest_text(kb, title=note["title"], content=note["text"], source_id=note["id"], source_url=f"{BASE}/{note['id']}",
                                            attributes={"modified_at": note["modified"]})
            ids.append(got["ko_id"])
            counts["skipped" if got.get("skipped") else "ingested"] += 1
        await host.cursor.set_safe(kb, answer["body"]["watermark"])
        return {"status": "success", "data": {**counts, "since": since, "ko_ids": ids}}
