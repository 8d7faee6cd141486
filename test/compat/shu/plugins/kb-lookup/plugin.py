"""Searches knowledge bases by field. Its schema knows no list of operations."""


class KbLookup:
    def get_schema(self):
        return {
            "type": "object",
            "title": "Search",
            "description": "Search by field.",
            "properties": {"op": {"type": "string", "pattern": "^(fill|chunks|documents|get)$"}, "field": {}, "operator": {}, "value": {}, "page": {"type": "integer"}, "sort_order": {}, "document_id": {}, "n": {"type": "integer"}},
            "required": ["op"],
        }

    def get_schema_for_op(self, op):
        raise NotImplementedError("one schema for all")

    async def execute(self, params, context, host):
        op = params["op"]
        if op == "fill":
            for n in range(params["n"]):
                about = {"synopsis": f"About {n}", "topics": ["lamp", f"n{n}"], "capability_manifest": {"answers": {"who": n}}}
                await host.kb.ingest_text("kb", title=f"Note {n:02}", content=f"Lamp {n} is BROKEN in room 10{n}%.", source_id=f"s{n}", attributes=about)
            return {"status": "success", "data": {"filled": params["n"]}}
        if op == "get":
            found = await host.kb.search_documents("title", "eq", "Note 03")
            return {"status": "success", "data": await host.kb.get_document(params.get("document_id") or found["results"][0]["id"])}
        search = host.kb.search_chunks if op == "chunks" else host.kb.search_documents
        extra = {name: params[name] for name in ("page", "sort_order") if name in params}
        got = await search(params["field"], params["operator"], params["value"], **extra)
        if got.get("status") == "error":
            return {"status": "success", "data": {"code": got["error"]["code"]}}
        first = got["results"][0] if got["results"] else {}
        return {"status": "success", "data": {"total": got["total_results"], "page": got["page"], "size": got["page_size"], "n": len(got["results"]), "first": first.get("title"), "members": sorted(first)}}
