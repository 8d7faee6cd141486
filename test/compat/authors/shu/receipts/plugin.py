from .parse import parse


class Outcome:
    """dict-like own result with model_dump, pydantic spelled by hand"""

    def __init__(self, status, data=None, error=None, skips=None):
        self.__dict__.update(status=status, data=data, error=error, skips=skips or [])

    def model_dump(self, **_kw):
        return {k: v for k, v in self.__dict__.items()}


class ReceiptBox:
    name = "receipt_box"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["collect", "summary"]},
            "urls": {"type": "array", "items": {"type": "string"}, "maxItems": 50, "x-ui": {"show_when": {"op": "collect"}}},
            "kb_id": {"type": "string"}}, "required": ["op"]}

    def get_output_schema(self):
        return None

    async def _one(self, url, params, host):
        blob = await host.http.fetch_bytes("GET", url)
        mime = (blob["headers"].get("content-type") or "application/octet-stream").split(";")[0]
        text = await host.ocr.extract_text(file_bytes=blob["content"], mime_type=mime)
        r = parse(text["text"])
        if r["total"] is None:
            raise ValueError("no total on %s" % url)
        listed = sum(n for _w, n in r["items"])
        doc = await host.kb.ingest_document(params["kb_id"], file_bytes=blob["content"], filename=url.rsplit("/", 1)[-1], mime_type=mime,
                                            source_id=url, source_url=url, attributes={"extraction_metadata": text.get("metadata")})
        return {"url": url, "shop": r["shop"], "total": str(r["total"]), "currency": r["currency"], "balanced": not r["items"] or listed == r["total"],
                "created": doc.get("created")}

    async def execute(self, params, context, host):
        box = await host.storage.get("box") or {}
        if params["op"] == "summary":
            per = {}
            for r in box.values():
                per.setdefault(r["currency"], []).append(float(r["total"]))
            return Outcome("success", {"currencies": {c: {"receipts": len(v), "sum": round(sum(v), 2)} for c, v in per.items()}})
        if not params.get("urls") or not params.get("kb_id"):
            return Outcome("error", error={"code": "bad_request", "message": "urls and kb_id are needed"})

        async def work(url):
            return await self._one(url, params, host)

        done, failed = await host.utils.map_safe(list(dict.fromkeys(params["urls"])), work, max_errors=20)
        for r in done:
            box[r["url"]] = {"total": r["total"], "currency": r["currency"]}
        await host.storage.put("box", box)
        skips = [{"id": u, "reason": "network" if hasattr(e, "status_code") else "empty_extraction", "details": {"error": str(e)}} for u, e in failed]
        return Outcome("success", {"receipts": done, "failed": [s["id"] for s in skips], "messages": [s["details"]["error"] for s in skips]}, skips=skips)
