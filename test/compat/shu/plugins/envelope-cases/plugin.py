"""Every way in which a call may end."""

import asyncio

OPS = ["fine", "own", "raises", "provider", "slow", "gave_up", "lies", "large", "huge", "lacks", "status", "keyed", "account", "guarded", "bare", "nothing", "dumps", "diagnosed", "lies_object", "extra", "extra_model"]


class Result:
    def __init__(self, status, data):
        self.status, self.data, self.error = status, data, None


class Model:
    def model_dump(self):
        return {"status": "success", "data": {"n": 5}, "error": None}


class Extra:
    def model_dump(self):
        return {"status": "success", "data": {"n": 6}, "warnings": ["w"]}


class Cases:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": OPS}, "n": {"type": "integer"}}, "required": ["op"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def execute(self, params, context, host):
        return await getattr(self, params["op"])(params, host)

    async def fine(self, params, host):
        return {"status": "success", "data": {"n": params.get("n", 0)}, "diagnostics": ["looked"], "cost": {"tokens": 3}, "next_cursor": "c2"}

    async def own(self, params, host):
        return {"status": "error", "error": {"code": "label_missing", "message": "no such label", "details": {"label": "x"}}, "data": {"n": "partial"}, "diagnostics": ["looked"]}

    async def raises(self, params, host):
        raise ValueError("not today")

    async def provider(self, params, host):
        await host.http.fetch("GET", "http://api.provider.example/full")

    async def slow(self, params, host):
        await asyncio.sleep(60)

    async def gave_up(self, params, host):
        return {"status": "timeout", "error": {"code": "timeout", "message": "the provider slept"}}

    async def lies(self, params, host):
        return {"status": "success", "data": {"n": "one"}}

    async def lies_object(self, params, host):
        return Result("success", {"n": "one"})

    async def extra(self, params, host):
        return {"status": "ok", "data": {"n": 1}, "warnings": ["w"], "page": {"next": 2}}

    async def extra_model(self, params, host):
        return Extra()

    async def bare(self, params, host):
        return {"rows": [1]}

    async def nothing(self, params, host):
        return None

    async def dumps(self, params, host):
        return Model()

    async def diagnosed(self, params, host):
        return {"status": "error", "diagnostics": ["the folder is gone"]}

    async def large(self, params, host):
        return {"status": "success", "data": {"text": "x" * (2 << 20)}}

    async def huge(self, params, host):
        return {"status": "success", "data": {"text": "x" * (100 << 20)}}

    async def lacks(self, params, host):
        import library_of_nobody

        return {"status": "success", "data": {"n": len(library_of_nobody.__name__)}}

    async def status(self, params, host):
        return {"status": "success", "data": {"n": {1, 2} and object()}}

    keyed = account = guarded = fine

    async def account(self, params, host):
        return {"status": "success", "data": {"n": 7}}
