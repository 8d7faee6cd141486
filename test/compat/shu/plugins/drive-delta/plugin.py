import asyncio
import mimetypes
import os.path
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = "http://api.provider.example/v1.0/me/drive"
MAX = 1 << 20
TYPES = {".txt", ".md", ".html", ".csv", ".bin"}
SEEN = {}


def extension(name):
    return os.path.splitext(name)[1].lower()


class DrivePlugin:
    @staticmethod
    def get_schema():
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["ingest", "look"]},
                "kb_id": {"type": "string"},
                "recursive": {"type": "boolean", "default": True},
            },
            "required": ["op"],
        }

    @classmethod
    def get_output_schema(cls):
        return None

    async def execute(self, params, context, host, **unused):
        started = time.monotonic()
        if params["op"] == "look":
            return {"status": "success", "data": await self.look(host)}
        kb = getattr(host, "kb", None)
        items, link, fresh = await self.changes(host, await host.cursor.get(params["kb_id"]))
        skips, counts = [], {"ingested": 0, "unchanged": 0, "deleted": 0}
        wanted = []
        for item in items:
            if "deleted" in item:
                try:
                    await kb.delete_ko(external_id=item["id"])
                    counts["deleted"] += 1
                except Exception as exc:  # only a feed deletes
                    await host.log.warning("not deleted: %s", exc, extra={"id": item["id"]})
            elif extension(item["name"]) not in TYPES:
                skips.append({"id": item["id"], "name": item["name"], "reason": "ext_filtered", "details": {"ext": extension(item["name"]), "allowed": sorted(TYPES)}})
            elif item["size"] > MAX:
                skips.append({"id": item["id"], "name": item["name"], "reason": "too_large", "details": {"size": item["size"], "max": MAX}})
            else:
                wanted.append(item)
        answers = await asyncio.gather(*(self.take(host, params["kb_id"], item) for item in wanted), return_exceptions=True)
        for item, answer in zip(wanted, answers):
            if isinstance(answer, BaseException):
                status = getattr(answer, "status_code", None)
                skips.append({"id": item["id"], "name": item["name"], "reason": "auth" if status in (401, 403) else "network" if status else "unsupported_format", "details": {"status": status}})
            elif answer.get("skipped"):
                counts["unchanged"] += 1
            else:
                counts["ingested"] += 1
        await host.cursor.set(params["kb_id"], {"link": link})
        SEEN[params["kb_id"]] = SEEN.get(params["kb_id"], 0) + 1
        assert time.monotonic() >= started
        return {"status": "success", "data": {**counts, "fresh": fresh}, "skips": sorted(skips, key=lambda s: s["id"])}

    async def changes(self, host, cursor):
        url, fresh, items = (cursor or {}).get("link") or ROOT + "/root/delta", cursor is None, []
        while True:
            try:
                answer = await host.http.fetch("GET", url, headers={"Prefer": "odata.maxpagesize=200"})
            except Exception as exc:
                if getattr(exc, "error_category", "") != "gone" or fresh:
                    raise
                url, fresh, items = ROOT + "/root/delta", True, []
                continue
            items.extend(answer["body"]["value"])
            if "@odata.nextLink" not in answer["body"]:
                return items, answer["body"]["@odata.deltaLink"], fresh
            url = answer["body"]["@odata.nextLink"]

    async def take(self, host, kb_id, item):
        blob = await host.http.fetch_bytes("GET", f"{ROOT}/items/{item['id']}/content")
        content = blob["content"]
        kind = mimetypes.guess_type(item["name"])[0] or "application/octet-stream"
        return await host.kb.ingest_document(
            kb_id, file_bytes=content, filename=item["name"], mime_type=kind, source_id=item["id"], source_url=item.get("webUrl"),
            attributes={"modified_at": item.get("lastModifiedDateTime"), "source_hash": item.get("eTag"), "folder": ["a", {"b": None}]},
        )

    async def look(self, host):
        said = {}
        extracted = await host.ocr.extract_text(file_bytes=b"plain words", mime_type="text/plain")
        said["text"], said["metadata"] = extracted["text"].strip(), sorted(extracted.metadata)
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(2) as pool:
            said["threads"] = await asyncio.gather(*(loop.run_in_executor(pool, extension, name) for name in ("a.TXT", "b")))
        said["timed"] = await asyncio.wait_for(host.storage.get("nothing", "absent"), timeout=5)
        try:
            await asyncio.wait_for(asyncio.sleep(30), timeout=0.01)
        except asyncio.TimeoutError:
            said["gave_up"] = True
        for name in ("secrets", "scheduler", "database"):
            try:
                said[name] = getattr(host, name, "default") is not None
            except Exception as exc:
                said[name] = f"{type(exc).__name__} {isinstance(exc, AttributeError)}"
        try:
            host.http.fetch = None
        except AttributeError:
            said["fixed"] = True
        return said
