import asyncio

from shu_plugin_sdk import HttpRequestFailed

BASE = "http://api.provider.example"


class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["get", "headers", "params", "post", "bytes", "none", "failed", "escapes", "together", "elsewhere"]}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": await getattr(self, params["op"])(host)}

    async def get(self, host):
        got = await host.http.fetch("GET", BASE + "/thing")
        text = await host.http.fetch("GET", BASE + "/text")
        return {"status": got["status_code"], "body": got["body"], "page": got["headers"]["x-page"], "text": text["body"]}

    async def headers(self, host):
        seen = (await host.http.fetch("GET", BASE + "/echo"))["body"]["headers"]
        own = (await host.http.fetch("GET", BASE + "/echo", headers={"User-Agent": "own/1", "X-Shu-User": "mallory"}))["body"]["headers"]
        return [seen["User-Agent"], seen["X-Shu-User"], own["User-Agent"], own["X-Shu-User"]]

    async def params(self, host):
        got = await host.http.fetch("GET", BASE + "/echo", params={"deep": True, "label": ["a", "b"], "limit": 5, "none": None})
        return got["body"]["query"]

    async def post(self, host):
        got = await host.http.fetch("POST", BASE + "/echo", json={"title": "hello", "tags": [1]})
        return [got["body"]["method"], got["body"]["body"]]

    async def bytes(self, host):
        got = await host.http.fetch_bytes("GET", BASE + "/file")
        return [got["status_code"], type(got["content"]).__name__, got["content"].hex()]

    async def none(self, host):
        found = await host.http.fetch_or_none("GET", BASE + "/thing")
        return [found["body"], await host.http.fetch_or_none("GET", BASE + "/gone")]

    async def failed(self, host):
        try:
            await host.http.fetch("GET", BASE + "/slow-down")
        except HttpRequestFailed as exc:
            return {
                "text": str(exc), "status_code": exc.status_code, "url": exc.url, "body": exc.body, "category": exc.error_category,
                "retryable": exc.is_retryable, "after": exc.retry_after_seconds, "message": exc.provider_message, "code": exc.provider_error_code,
            }

    async def escapes(self, host):
        await host.http.fetch("DELETE", BASE + "/forbidden")

    async def together(self, host):
        got = await asyncio.gather(*(host.http.fetch("GET", BASE + "/echo", params={"n": n}) for n in range(5)))
        return [one["body"]["query"] for one in got]

    async def elsewhere(self, host):
        await host.http.fetch("GET", "http://" + "elsewhere.example" + "/x")
