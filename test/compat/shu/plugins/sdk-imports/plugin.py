from shu_plugin_sdk import (
    HttpRequestFailed,
    IngestionResult,
    NonRetryableError,
    PluginResult,
    RetryableError,
    RetryConfig,
    Skip,
    SkipReason,
    contracts,
    testing,
    with_retry,
)


class Plugin:
    tries = 0

    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["results", "retry", "give_up", "error"]}}}

    async def execute(self, params, context, host):
        return await getattr(self, params["op"])()

    async def results(self):
        ingested = IngestionResult.ok({"chunks": 2}, [Skip("f1", SkipReason.UNSUPPORTED_FORMAT)])
        data = {**ingested.data, "fake": testing.FakeHost is not None, "problems": contracts.check(self)}
        return PluginResult.ok(data).with_skips(ingested.skips)

    async def retry(self):
        @with_retry(RetryConfig(3, 0, 60, 2))
        async def flaky():
            self.tries += 1
            if self.tries < 3:
                raise RetryableError("not yet")
            return self.tries

        return PluginResult.ok({"tries": await flaky()})

    async def give_up(self):
        @with_retry(RetryConfig())
        async def hopeless():
            self.tries += 1
            raise NonRetryableError("never")

        try:
            await hopeless()
        except NonRetryableError:
            return PluginResult.ok({"tries": self.tries, "category": HttpRequestFailed(410, "u").error_category})

    async def error(self):
        return PluginResult.err("no access", code="no_access")
