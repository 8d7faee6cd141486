# Oldest plugin we have; from before schemas. Kept as it is.
import time


class AttrResult(object):
    status = "success"
    error = None

    def __init__(self, data):
        self.data = data


class Plugin(object):
    name = "legacy_counter"
    version = "0"

    def get_schema(self):
        return None

    def get_output_schema(self):
        return None

    async def execute(self, parameters, user_context, host):
        op = parameters.get("op") or "bump"
        if op == "noop":
            return None
        if op == "explode":
            raise RuntimeError("legacy failure")
        if op == "nulls":
            return {"status": "success", "data": {"keys": sorted(parameters), "nulls": [k for k, v in parameters.items() if v is None]}}
        if op == "probe":
            out = {}
            for cap in ("settings", "scheduler", "query", "audit", "rate"):
                out[cap] = hasattr(host, cap)
            try:
                host.storage
                out["storage"] = "there"
            except Exception as e:      # CapabilityDenied
                out["storage"] = type(e).__name__
            try:
                host.http = object()
                out["immutable"] = False
            except AttributeError:
                out["immutable"] = True
            cursor = host.cursor      # comes with kb
            out["cursor"] = cursor is not None
            return AttrResult(out)
        if op == "http":
            await host.http.fetch("GET", "http://127.0.0.1:1/")
        name = parameters.get("counter", "default")
        n = (await host.cache.get("count:" + name)) or 0
        n += int(parameters.get("by", 1))
        await host.cache.set("count:" + name, n, ttl_seconds=3600)
        if n > 1000000:
            await host.cache.delete_safe("count:" + name)
            return {"status": "timeout", "data": None, "error": {"code": "overflow", "message": "counter reset"}}
        await host.log.info("bumped", extra={"counter": name})
        return AttrResult({"counter": name, "value": n, "at": int(time.time())})
