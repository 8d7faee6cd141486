"""Look through a folder of files, read those that are text, say why the others were left out."""

import asyncio
import hashlib

from shu_plugin_sdk import HttpRequestFailed, PluginResult, Skip, SkipReason

BASE = "http://api.provider.example/drive"
LARGEST = 1000


class FileDrive:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["scan"]}, "folder": {"type": "string"}}, "required": ["folder"]}

    async def execute(self, params, context, host):
        listed = await host.http.fetch("GET", BASE + "/files", params={"folder": params["folder"]})
        files, skips = [], []

        async def read(file):
            if file["size"] > LARGEST:
                skips.append(Skip(file["id"], SkipReason.TOO_LARGE, file["name"], {"size": file["size"], "max": LARGEST}))
                return
            if not file["name"].endswith((".txt", ".md")):
                skips.append(Skip(file["id"], SkipReason.EXT_FILTERED, file["name"]))
                return
            try:
                content = (await host.http.fetch_bytes("GET", f"{BASE}/files/{file['id']}/content"))["content"]
            except HttpRequestFailed as exc:
                reason = SkipReason.AUTH if exc.error_category in ("auth_error", "forbidden") else SkipReason.NETWORK
                skips.append(Skip(file["id"], reason, file["name"], {"status": exc.status_code}))
                return
            files.append({"id": file["id"], "words": len(content.split()), "sha256": hashlib.sha256(content).hexdigest()})

        await asyncio.gather(*(read(file) for file in listed["body"]["files"]))
        return PluginResult.ok({"files": sorted(files, key=lambda file: file["id"])}, skips=sorted(skips, key=lambda skip: skip.id))
