from shu_plugin_sdk import PluginResult

from .lib.pack import pack


class Chunker:
    name = "md_chunker"
    version = "1.10"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["split", "store"]},
                "markdown": {"type": "string"},
                "limit": {"type": "integer", "minimum": 16, "maximum": 4096},
                "overlap": {"type": "integer", "minimum": 0, "maximum": 3},
                "doc_id": {"type": "string", "x-ui": {"show_when": {"field": "op", "equals": "store"}}},
                "kb_id": {"type": "string", "x-ui": {"show_when": {"field": "op", "equals": "store"}}},
            },
            "required": ["op", "markdown"],
        }

    def get_output_schema(self):
        return {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer", "minimum": 1}, "chunks": {"type": "array"}}}

    async def execute(self, params, context, host):
        chunks = pack(params["markdown"], params.get("limit") or 400, params.get("overlap") or 0)
        if params["op"] == "split":
            return PluginResult.ok({"count": len(chunks), "chunks": chunks})
        if not params.get("kb_id") or not params.get("doc_id"):
            return PluginResult.err("store needs kb_id and doc_id")
        ids = []
        for i, c in enumerate(chunks):
            r = await host.kb.ingest_text(params["kb_id"], title=" > ".join(c["path"]) or params["doc_id"], content=c["text"],
                                          source_id="%s#%d" % (params["doc_id"], i), attributes={"force_reingest": True, "extraction_metadata": {"line": c["line"]}})
            ids.append(r["ko_id"])
        return PluginResult.ok({"count": len(chunks), "distinct_ids": len(set(ids))})
