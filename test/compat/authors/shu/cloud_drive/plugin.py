from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional
from urllib.parse import quote

DEFAULT_BASE = "https://www.googleapis.com/drive/v3"
EXPORTS = {
    "application/vnd.google-apps.document": ("text/plain", ".txt"),
    "application/vnd.google-apps.spreadsheet": ("text/csv", ".csv"),
}
TEXTISH = ("text/", "application/pdf", "application/json", "image/")


@dataclass
class _Result:
    status: str
    data: Optional[Dict[str, Any]] = None
    error: Optional[Dict[str, Any]] = None
    skips: List[Dict[str, Any]] = field(default_factory=list)


class CloudDrivePlugin:
    name = "cloud_drive"
    version = "3.1"

    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["ingest", "list"], "default": "ingest"},
                "kb_id": {"type": ["string", "null"], "x-ui": {"hidden": True}},
                "folder_id": {"type": "string"},
                "max_bytes": {"type": "integer", "default": 5000000, "minimum": 1},
                "extensions": {"type": ["array", "null"], "items": {"type": "string"}, "x-ui": {"show_when": {"field": "op", "equals": "ingest"}}},
                "endpoint": {"type": ["string", "null"], "x-ui": {"hidden": True}},
            },
            "required": ["op", "folder_id"],
        }

    def get_output_schema(self):
        return {"type": "object", "properties": {"files": {"type": "array"}, "stored": {"type": "integer"}, "target": {"type": ["string", "null"]}}}

    async def execute(self, params, context, host):
        token, target = await host.auth.resolve_token_and_target("google")
        if not token:
            return _Result("error", error={"code": "auth_required", "message": "connect a Google account first"})
        base = (params.get("endpoint") or DEFAULT_BASE).rstrip("/")
        hdr = {"Authorization": "Bearer " + token}
        files = await self._list(host, base, hdr, params["folder_id"])
        if params["op"] == "list":
            return _Result("success", {"files": [{"id": f["id"], "name": f["name"], "mime": f["mimeType"]} for f in files], "target": target})
        if not params.get("kb_id"):
            return _Result("error", error={"code": "missing_kb", "message": "kb_id missing"})
        stored, skips = 0, []
        for f in files:
            why = self._refuse(f, params)
            if why:
                skips.append({"id": f["id"], "name": f["name"], **why})
                continue
            mime, name, url = f["mimeType"], f["name"], "%s/files/%s" % (base, quote(f["id"]))
            if mime in EXPORTS:
                mime, ext = EXPORTS[mime]
                name += ext
                blob = await host.http.fetch_bytes_or_none("GET", url + "/export", headers=hdr, params={"mimeType": mime})
            else:
                blob = await host.http.fetch_bytes_or_none("GET", url, headers=hdr, params={"alt": "media"})
            if blob is None:
                skips.append({"id": f["id"], "name": f["name"], "reason": "network"})
                continue
            res = await host.kb.ingest_document(params["kb_id"], file_bytes=blob["content"], filename=name, mime_type=mime,
                                                source_id=f["id"], source_url=f.get("webViewLink"),
                                                attributes={"source_hash": f.get("md5Checksum"), "modified_at": f.get("modifiedTime")})
            stored += 0 if res.get("skipped") else 1
        return _Result("success", {"stored": stored, "skipped": len(skips), "reasons": [s["reason"] for s in skips]}, skips=skips)

    @staticmethod
    def _refuse(f, params):
        size = int(f.get("size") or 0)
        if size > (params.get("max_bytes") or 5000000):
            return {"reason": "too_large", "details": {"size": size}}
        exts = params.get("extensions")
        if exts and f["mimeType"] not in EXPORTS and not any(f["name"].lower().endswith(e.lower()) for e in exts):
            return {"reason": "ext_filtered", "details": {"allowed": exts}}
        if f["mimeType"] not in EXPORTS and not f["mimeType"].startswith(TEXTISH):
            return {"reason": "unsupported_format", "details": {"mime": f["mimeType"]}}
        return None

    async def _list(self, host, base, hdr, folder):
        out, token = [], None
        for _ in range(50):
            q = {"folder": folder}
            if token:
                q["pageToken"] = token
            r = await host.http.fetch("GET", base + "/files", headers=hdr, params=q)
            out.extend(r["body"].get("files", []))
            token = r["body"].get("nextPageToken")
            if not token:
                break
        return out
