"""Files of a drive: pages, providers' errors, and reasons that stand in the diagnostics alone."""

from shu_plugin_sdk import HttpRequestFailed, PluginResult

BASE = "http://api.provider.example/drive"


class CloudDrive:
    def get_schema(self):
        return {"type": "object", "title": "Drive", "description": "Files.", "properties": {"op": {"type": "string", "enum": ["walk", "read", "fail", "raise_", "denied"]}, "folder": {"type": "string"}}, "required": ["op"]}

    async def execute(self, params, context, host):
        return await getattr(self, params["op"])(params, host)

    async def read(self, params, host):
        token, target = await host.auth.resolve_token_and_target("google")
        return {"status": "success", "data": {"token": token, "target": target}}

    async def walk(self, params, host):
        token, target = await host.auth.resolve_token_and_target("google")
        return PluginResult.ok({"target": target})

    async def fail(self, params, host):
        pages, token = 0, None
        while True:
            try:
                answer = await host.http.fetch("GET", f"{BASE}/users/me/files", params={"pageToken": token, "supportsAllDrives": True})
            except HttpRequestFailed as e:
                result = PluginResult("error", {"pages": pages})
                result.diagnostics = [f"stopped at page {pages + 1}: {e.provider_message}"]
                return result
            pages, token = pages + 1, answer["body"].get("next")

    async def raise_(self, params, host):
        await host.http.fetch_bytes("GET", f"{BASE}/blob")

    async def denied(self, params, host):
        try:
            await host.http.fetch("GET", "https://" + "elsewhere" + ".example.org/")
        except Exception as e:
            return {"status": "success", "data": {"kind": type(e).__name__, "missing": await host.http.fetch_or_none("GET", f"{BASE}/limited")}}
