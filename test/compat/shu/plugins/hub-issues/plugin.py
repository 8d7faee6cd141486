"""Issues of a code hub, which retries by itself, and closes its parameters."""

from shu_plugin_sdk import HttpRequestFailed, IngestionResult, NonRetryableError, PluginResult, RetryableError, RetryConfig, Skip, SkipReason, with_retry

BASE = "http://api.provider.example/hub"


class HubIssues:
    name = "hub_issues"
    version = "0"

    def get_schema(self):
        return {
            "type": "object",
            "title": "Issues",
            "description": "The issues of a repository.",
            "properties": {
                "op": {"type": "string", "enum": ["sync", "list", "whoami", "limits"], "x-ui": {"enum_labels": {"limits": "What is left"}}},
                "repo": {"type": "string"},
                "kb_id": {"type": "string"},
                "reset_cursor": {"type": ["boolean", "null"]},
            },
            "required": ["op"],
            "additionalProperties": False,
        }

    def get_schema_for_op(self, op):
        return self.get_schema() if op in ("sync", "list", "whoami", "limits") else None

    def get_output_schema(self):
        return {"type": "object", "properties": {"count": {"type": "integer"}}}

    async def execute(self, params, context, host):
        debug = getattr(host, "settings", None)
        assert debug is None and not hasattr(host, "rate") and not hasattr(host, "scheduler")
        return await getattr(self, params["op"])(params, host)

    async def _get(self, host, path, **params):
        token = await host.secrets.get("hub_token")

        @with_retry(RetryConfig(max_retries=2, base_delay=0.0, backoff_factor=1.0))
        async def fetch():
            try:
                return await host.http.fetch("GET", BASE + path, headers={"Authorization": f"token {token}"}, params=params)
            except HttpRequestFailed as e:
                if e.is_retryable:
                    raise RetryableError(str(e)) from e
                if e.status_code == 410 and "HTTP 410" in str(e):
                    raise NonRetryableError(e.provider_message) from e
                raise

        return await fetch()

    async def sync(self, params, host):
        kb_id = params["kb_id"]
        since = None if params.get("reset_cursor") else await host.cursor.get(kb_id)
        answer = await self._get(host, "/issues", since=since, all=True)
        skips, count = [], 0
        for issue in answer["body"]:
            if not issue["body"]:
                skips.append(Skip(str(issue["id"]), SkipReason.EMPTY_EXTRACTION, name=issue["title"]))
                continue
            got = await host.kb.ingest_text(kb_id, title=issue["title"], content=issue["body"], source_id=str(issue["id"]), attributes={"source_hash": issue["etag"]})
            count += not got["skipped"]
        await host.cursor.set_safe(kb_id, answer["body"][-1]["updated"])
        await host.storage.put("last", {"seen": {1}, "count": count}, namespace=params.get("repo"))
        ko = {"type": "digest", "source": {"plugin": "hub_issues", "account": None}, "external_id": "d1", "content": "Two issues."}
        ko_id = await host.kb.upsert_knowledge_object(kb_id, ko)
        host.log.info("synced", extra={"count": count})
        return IngestionResult.ok({"count": count, "since": since, "ko": ko_id[:8], "status": got["status"]}, skips)

    async def list(self, params, host):
        try:
            await self._get(host, "/gone")
        except NonRetryableError as e:
            return PluginResult.err(str(e), code="gone", details={"repo": params.get("repo")})

    async def whoami(self, params, host):
        user = host.identity.get_current_user_identity()
        email = host.identity.get_primary_email("hub")
        again = await host.identity.get_primary_email("hub")
        return PluginResult.ok({"user": user["user_id"], "email": email, "again": again, "accounts": len(host.identity.providers.get("hub", [])), "token": await host.secrets.get("hub_token") is not None, "other": await host.secrets.get("shared")})

    async def limits(self, params, host):
        try:
            await host.http.fetch("GET", BASE + "/limited")
        except HttpRequestFailed as e:
            return {"status": "error", "data": {"seen": 2}, "error": {"code": e.provider_error_code, "message": e.provider_message, "after": e.retry_after_seconds}}
