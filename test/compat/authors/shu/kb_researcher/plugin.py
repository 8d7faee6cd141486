from __future__ import annotations

import re
from typing import Any, Dict, List

from shu_plugin_sdk import PluginResult

OPS = ("find", "outline", "quote", "topics")


def sentences_with(text: str, needle: str, width: int = 240) -> List[str]:
    out = []
    for s in re.split(r"(?<=[.!?])\s+|\n+", text or ""):
        if needle.lower() in s.lower():
            out.append(s.strip()[:width])
    return out


def failed(answer: Any):
    if isinstance(answer, dict) and answer.get("status") == "error":
        e = answer.get("error") or {}
        return PluginResult.err(e.get("message", "search failed"), code=e.get("code", "search_error"))
    return None


class KbResearcher:
    name = "kb_researcher"
    version = "0.6.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": list(OPS), "x-ui": {"enum_labels": {"find": "Find documents", "outline": "Outline by size", "quote": "Quote sentences", "topics": "Count topics"}}},
            "text": {"type": "string"},
            "field": {"type": "string", "x-ui": {"help": "title, content or synopsis"}},
            "operator": {"type": "string", "x-ui": {"placeholder": "icontains"}},
            "page": {"type": "integer"}, "document_id": {"type": "string"}}, "required": ["op", "text"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"total": {"type": "integer"}, "titles": {"type": "array"}, "quotes": {"type": "array"}}}

    async def execute(self, params: Dict[str, Any], context, host):
        if params["op"] == "find":
            got = await host.kb.search_documents(params.get("field") or "title", params.get("operator") or "icontains", params["text"], page=params.get("page") or 1)
            bad = failed(got)
            if bad:
                return bad
            rows = got["results"]
            return PluginResult.ok({"total": got["total_results"], "titles": [r["title"] for r in rows], "page": got["page"]},
                                   citations=[{"type": "document", "ref": r["id"], "label": r["title"]} for r in rows])
        if params["op"] == "topics":
            got = await host.kb.search_chunks(params.get("field") or "summary", params.get("operator") or "icontains", params["text"])
            bad = failed(got)
            if bad:
                return bad
            tally: Dict[str, int] = {}
            for row in got["results"]:
                for t in row.get("topics") or []:
                    tally[t] = tally.get(t, 0) + 1
            return PluginResult.ok({"total": got["total_results"], "topics": tally, "page_size": got["page_size"]})
        if params["op"] == "outline":
            got = await host.kb.search_documents("content", "icontains", params["text"], sort_order="desc")
            bad = failed(got)
            if bad:
                return bad
            rows = sorted(got["results"], key=lambda r: -(r.get("word_count") or 0))
            return PluginResult.ok({"total": got["total_results"], "titles": [r["title"] for r in rows],
                                    "words": sum(r.get("word_count") or 0 for r in rows)})
        ids = [params["document_id"]] if params.get("document_id") else None
        if ids is None:
            hits = await host.kb.search_documents("content", "icontains", params["text"])
            bad = failed(hits)
            if bad:
                return bad
            ids = [r["id"] for r in hits["results"][:5]]
        quotes, cites = [], []
        for doc_id in ids:
            doc = await host.kb.get_document(doc_id)
            bad = failed(doc)
            if bad:
                return bad
            doc = doc.get("document", doc) if isinstance(doc.get("document"), dict) else doc
            found = sentences_with(doc.get("content") or "", params["text"])
            if found:
                quotes.append({"title": doc.get("title"), "sentences": found})
                cites.append({"type": "document", "ref": doc_id, "label": doc.get("title") or ""})
        return PluginResult.ok({"total": sum(len(q["sentences"]) for q in quotes), "quotes": quotes}, citations=cites)
