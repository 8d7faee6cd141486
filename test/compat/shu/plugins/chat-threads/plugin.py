"""Tell what was said in a channel, thread by thread, while it is being read."""

from shu_plugin_sdk import HttpRequestFailed, RetryableError, RetryConfig, with_retry

BASE = "http://api.provider.example/chat"


class ChatThreads:
    def get_schema_for_op(self, op):
        return {"type": "object", "title": "Summary", "description": "The threads of a channel.", "properties": {"channel": {"type": "string"}}, "required": ["channel"]}

    def get_schema(self):
        return self.get_schema_for_op("summary")

    async def execute(self, params, context, host):
        @with_retry(RetryConfig(3, 0, 1, 2))
        async def fetch(path):
            try:
                return (await host.http.fetch("POST", BASE + path, json={}))["body"]
            except HttpRequestFailed as exc:
                if exc.is_retryable:
                    raise RetryableError(str(exc)) from exc
                raise

        threads = (await fetch(f"/channels/{params['channel']}"))["threads"]
        said = 0
        for n, thread in enumerate(threads):
            messages = (await fetch(f"/threads/{thread}"))["messages"]
            said += len(messages)
            yield {"type": "progress", "message": f"read {thread}", "done": n + 1, "total": len(threads)}
            yield {"type": "content", "data": {"thread": thread, "first": messages[0]["text"]}}
        yield {"status": "success", "data": {"threads": len(threads), "messages": said}}
