import json
import re
import unicodedata
from datetime import datetime, timezone


def key_for(title):
    flat = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", flat).strip("-")[:80]


class Notes:
    name = "notes_locker"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "title": "Notes", "description": "Keeps short notes of one user",
                "properties": {"op": {"type": "string", "enum": ["write", "read", "list", "remove"]},
                               "title": {"type": "string"}, "text": {"type": "string"},
                               "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                               "notebook": {"type": ["string", "null"], "x-ui": {"placeholder": "default"}}},
                "required": ["op"]}

    def get_output_schema(self):
        return None

    async def execute(self, params, context, host):
        handler = getattr(self, "op_" + params["op"])
        ns = "nb:" + (params.get("notebook") or "default")
        index = await host.storage.get("index", namespace=ns)
        index = json.loads(index) if isinstance(index, str) else (index or {})
        try:
            data = await handler(params, host, ns, index)
        except KeyError as exc:
            return {"status": "error", "error": {"code": "note_not_found", "message": str(exc.args[0])}}
        except ValueError as exc:
            return {"status": "error", "error": {"code": "note_too_large" if "too large" in str(exc) else "bad_note", "message": str(exc)}}
        return {"status": "success", "data": data}

    async def op_write(self, params, host, ns, index):
        title = (params.get("title") or "").strip()
        key = key_for(title)
        if not key:
            raise ValueError("a title with letters or digits is needed")
        note = {"title": title, "text": params.get("text") or "", "tags": params.get("tags") or [],
                "changed": datetime.now(timezone.utc).isoformat(timespec="seconds")}
        await host.storage.put(key, note, namespace=ns)
        known = key in index
        index[key] = {"title": title, "tags": note["tags"]}
        await host.storage.put("index", json.dumps(index), namespace=ns)
        return {"key": key, "replaced": known, "notes": len(index)}

    async def op_read(self, params, host, ns, index):
        key = key_for(params.get("title") or "")
        note = await host.storage.get(key, namespace=ns) if key else None
        if note is None:
            raise KeyError(key)
        return note

    async def op_list(self, params, host, ns, index):
        want = set(params.get("tags") or [])
        rows = [dict(v, key=k) for k, v in sorted(index.items()) if want <= set(v["tags"])]
        return {"notes": rows, "count": len(rows)}

    async def op_remove(self, params, host, ns, index):
        key = key_for(params.get("title") or "")
        if key not in index:
            raise KeyError(key)
        await host.storage.delete(key, namespace=ns)
        del index[key]
        await host.storage.put("index", json.dumps(index), namespace=ns)
        return {"removed": key, "notes": len(index)}
