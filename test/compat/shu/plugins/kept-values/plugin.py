class Plugin:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["storage", "again", "cursor", "cache", "identity", "log", "utils", "rate", "audit", "much"]}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": await getattr(self, params["op"])(host)}

    async def storage(self, host):
        missing = await host.storage.get("count")
        await host.storage.put("count", {"n": 1})
        await host.storage.put("count", "other", namespace="ns")
        found = [missing, await host.storage.get("count"), await host.storage.get("count", namespace="ns")]
        await host.storage.delete("count", namespace="ns")
        return [*found, await host.storage.get("count", namespace="ns")]

    async def again(self, host):
        return [await host.storage.get("count"), await host.cache.get("left")]

    async def cursor(self, host):
        first = await host.cursor.get("kb-1")
        done = [await host.cursor.set_safe("kb-1", "2026-01-02"), await host.cursor.get("kb-1"), await host.cursor.get("kb-2")]
        await host.cursor.set("kb-2", {"page": 3})
        await host.cursor.delete("kb-1")
        return [first, *done, await host.cursor.get("kb-1"), await host.cursor.get("kb-2"), await host.cursor.delete_safe("kb-2")]

    async def cache(self, host):
        await host.cache.set("k", [1, 2], ttl_seconds=60)
        found = await host.cache.get("k")
        await host.cache.set("left", "for the next call")
        return [found, await host.cache.set_safe("k", 2), await host.cache.delete_safe("k"), await host.cache.get("k")]

    async def identity(self, host):
        who = await host.identity.get_current_user_identity()
        return [who["user_id"], host.identity.user_email, await host.identity.get_primary_email("google")]

    async def log(self, host):
        host.log.info("plain", extra={"n": 1})
        await host.log.warning("awaited")
        host.logger.error("the same service")
        return None

    async def utils(self, host):
        def half(n):
            if n % 2:
                raise ValueError(f"{n} is odd")
            return n // 2

        async def later(n):
            return half(n)

        results, errors = await host.utils.map_safe([2, 3, 4], later, max_errors=5)
        kept, lost = await host.utils.filter_safe([0, 1, 2], later)
        return [results, [[item, str(exc)] for item, exc in errors], kept, [item for item, _ in lost]]

    async def rate(self, host):
        return bool(await host.rate.limit("mail", 1)) and bool(await host.rate_limit.limit("mail", 1))

    async def audit(self, host):
        await host.audit.log("looked", {"n": 1})
        return True

    async def much(self, host):
        said = []
        for size in (60 << 10, 70 << 10):
            try:
                await host.storage.put("much", "x" * size)
                said.append("kept")
            except Exception as exc:
                said.append(f"{type(exc).__name__}: {exc}")
        return said
