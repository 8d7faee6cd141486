"""shu_plugin_sdk: results, retries, exceptions, the fake host and the checks of the contract."""

from __future__ import annotations

import asyncio
import os
import sys
import unittest
from unittest import mock

from peer import SDK

sys.path.insert(0, os.path.join(SDK, "shu"))

import shu_plugin_sdk  # noqa: E402
from shu_plugin_sdk import (  # noqa: E402
    HttpRequestFailed,
    IngestionResult,
    NonRetryableError,
    PluginResult,
    RetryableError,
    RetryConfig,
    Skip,
    SkipReason,
    assert_plugin_contract,
    contracts,
    testing,
    with_retry,
)
from shu_plugin_sdk.testing import CapabilityDenied, FakeHost, run  # noqa: E402


class Results(unittest.TestCase):
    def test_a_result_says_only_what_it_has(self) -> None:
        self.assertEqual(PluginResult.ok({"a": 1}).to_dict(), {"status": "success", "data": {"a": 1}})
        self.assertEqual(PluginResult("error").data, {})
        want = {"status": "error", "data": {}, "error": {"code": "c", "message": "m", "details": {"d": 1}}}
        self.assertEqual(PluginResult.err("m", code="c", details={"d": 1}).to_dict(), want)
        self.assertEqual(PluginResult.err("m").error, {"code": "tool_error", "message": "m"})
        self.assertEqual(PluginResult.timed_out().status, "timeout")
        ok = PluginResult.ok({}, {"tokens": 1}, ["d"], [{"type": "web"}])
        self.assertEqual((ok.cost, ok.diagnostics, ok.citations), ({"tokens": 1}, ["d"], [{"type": "web"}]))
        self.assertIs(ok.with_skips([Skip("i", "auth")]), ok)
        self.assertEqual(len(ok.skips), 1)
        self.assertFalse(hasattr(ok, "model_dump") or hasattr(ok, "warnings"))

    def test_skips_have_one_of_the_seven_reasons(self) -> None:
        want = ["auth", "empty_extraction", "ext_filtered", "network", "other", "too_large", "unsupported_format"]
        self.assertEqual(sorted(str(reason) for reason in SkipReason), want)
        self.assertEqual(Skip("i", SkipReason.TOO_LARGE, "n", {"size": 1}).to_dict(), {"id": "i", "name": "n", "reason": "too_large", "details": {"size": 1}})
        self.assertEqual(Skip("i", "network").to_dict(), {"id": "i", "reason": "network"})
        with self.assertRaises(TypeError):
            Skip("i")  # a skip has a reason

    def test_the_result_of_an_ingestion_has_its_skips_after_its_data(self) -> None:
        got = IngestionResult.ok({"n": 1}, [Skip("i", "auth")], {"api_calls": 2}, ["d"], [])
        self.assertEqual((got.status, got.data, len(got.skips), got.cost, got.diagnostics, got.citations), ("success", {"n": 1}, 1, {"api_calls": 2}, ["d"], []))
        self.assertIsInstance(IngestionResult.err("m"), IngestionResult)

    def test_everything_named_is_there(self) -> None:
        for name in shu_plugin_sdk.__all__:
            self.assertIsNotNone(getattr(shu_plugin_sdk, name))
        with self.assertRaises(AttributeError):
            shu_plugin_sdk.nothing


class Failed(unittest.TestCase):
    def test_categories(self) -> None:
        want = {400: "client_error", 401: "auth_error", 403: "forbidden", 404: "not_found", 410: "gone", 418: "client_error", 429: "rate_limited"}
        want.update({500: "server_error", 503: "server_error"})
        for status, category in want.items():
            exc = HttpRequestFailed(status, "https://x/y")
            self.assertEqual((exc.error_category, exc.is_retryable), (category, status == 429 or status >= 500))
            self.assertEqual(str(exc), f"HTTP {status} calling https://x/y")

    def test_what_providers_say(self) -> None:
        cases = [
            ({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}, "m", "429"),
            ({"error": {"message": "m", "status": "NOT_FOUND"}}, "m", "NOT_FOUND"),
            ({"error": "invalid_grant", "error_description": "expired"}, "expired", None),
            ({"error": "invalid_grant"}, "invalid_grant", None),
            ({"message": "Not Found", "code": 7}, "Not Found", "7"),
            ({"detail": "d"}, "d", None),
            ({"other": 1}, "{'other': 1}", None),
            ("text" * 200, ("text" * 200)[:500], None),
            (None, "", None),
            ([1], "[1]", None),
        ]
        for body, message, code in cases:
            exc = HttpRequestFailed(400, "u", body)
            self.assertEqual((exc.provider_message, exc.provider_error_code), (message, code), body)

    def test_when_to_come_back(self) -> None:
        after = lambda value: HttpRequestFailed(429, "u", None, {"RETRY-after": value}).retry_after_seconds  # noqa: E731
        self.assertEqual([after("7"), after("0.5"), after("soon"), after("-1"), after("Wed, 21 Oct 2037 07:28:00 GMT")], [7, None, None, None, None])
        self.assertIsNone(HttpRequestFailed(429, "u").retry_after_seconds)


class Retry(unittest.TestCase):
    def slept(self, fn: object, *args: object) -> tuple[object, list[float]]:
        """Run a function that is retried, and return what it gave or raised, and the pauses."""
        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)

        async def main() -> object:
            try:
                return await fn(*args)
            except Exception as exc:
                return exc

        with mock.patch("asyncio.sleep", sleep):
            return asyncio.run(main()), pauses

    def failing(self, *faults: Exception, config: RetryConfig | None = None) -> object:
        left = list(faults)

        @with_retry(config or RetryConfig())
        async def work(value: object) -> object:
            """Works."""
            if left:
                raise left.pop(0)
            return value

        return work

    def test_the_defaults(self) -> None:
        config = RetryConfig()
        self.assertEqual((config.max_retries, config.base_delay, config.max_delay, config.backoff_factor), (3, 1, 60, 2))
        self.assertEqual(RetryConfig(3, 1, 60, 2), config)
        self.assertEqual([config.delay_for(n) for n in (0, 1, 2, 6, 5000)], [1, 2, 4, 60, 60])

    def test_what_no_configuration_may_say(self) -> None:
        for wrong in ({"max_retries": -1}, {"base_delay": -0.1}, {"max_delay": -1}, {"backoff_factor": 0}, {"backoff_factor": -2}):
            with self.assertRaises(ValueError, msg=str(wrong)):
                RetryConfig(**wrong)

    def test_three_retries_are_four_calls(self) -> None:
        self.assertEqual(self.slept(self.failing(*(RetryableError(str(n)) for n in range(3))), 5), (5, [1, 2, 4]))
        got, pauses = self.slept(self.failing(*(RetryableError(str(n)) for n in range(9))), 5)
        self.assertEqual((str(got), pauses), ("3", [1, 2, 4]))
        self.assertEqual(str(self.slept(self.failing(RetryableError("a"), config=RetryConfig(0)), 5)[0]), "a")

    def test_only_retryable_error_is_retried(self) -> None:
        for fault in (NonRetryableError("n"), ValueError("v"), HttpRequestFailed(404, "u"), HttpRequestFailed(503, "u")):
            self.assertEqual(self.slept(self.failing(fault), 5), (fault, []))

    def test_it_takes_a_configuration(self) -> None:
        made = self.failing()
        self.assertEqual((made.__doc__, made.__name__, asyncio.iscoroutinefunction(made)), ("Works.", "work", True))
        for wrong in ((), (lambda: None,)):
            with self.assertRaises(TypeError):
                with_retry(*wrong)

    def test_sleeping_is_patched(self) -> None:
        with shu_plugin_sdk.patch_retry_sleep() as sleep:
            self.assertEqual(asyncio.run(self.failing(RetryableError("a"))(5)), 5)
        sleep.assert_awaited_once_with(1.0)

    def test_a_cancel_is_no_failure(self) -> None:
        @with_retry(RetryConfig())
        async def work() -> None:
            raise asyncio.CancelledError

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(work())


class Sync:
    """Copies notes into a knowledge base."""

    def get_schema(self) -> object:
        return {"type": "object", "properties": {"kb_id": {"type": "string"}}}

    async def execute(self, params: dict, context: object, host: object) -> PluginResult:
        since = await host.cursor.get(params["kb_id"])
        token, target = await host.auth.resolve_token_and_target("notes")
        answer = await host.http.fetch("GET", "https://api.example.com/notes", params={"since": since}, headers={"Authorization": f"Bearer {token}"})
        for note in answer.body:
            await host.kb.ingest_text(params["kb_id"], title=note["title"], content=note["text"], source_id=note["id"])
        await host.cursor.set_safe(params["kb_id"], answer.body[-1]["id"])
        host.log.info("synced", extra={"n": len(answer.body)})
        return PluginResult.ok({"count": len(answer.body), "user": context.user_id, "target": target})


class Fakes(unittest.TestCase):
    def test_a_plugin_runs_without_a_host(self) -> None:
        host = FakeHost(["http", "kb", "auth"], plugin="notes", tokens={"notes": ("t", "me")})
        host.respond("GET", "https://api.example.com/notes*", json=[{"id": "n1", "title": "A", "text": "a b"}])
        result = run(Sync().execute({"kb_id": "kb"}, host.context, host))
        self.assertEqual(result.data, {"count": 1, "user": "user-1", "target": "me"})
        self.assertEqual([(d["kb_id"], d["title"]) for d in host.documents], [("kb", "A")])
        self.assertEqual(run(host.cursor.get("kb")), "n1")
        headers = host.requests[0]["headers"]
        self.assertEqual((headers["Authorization"], headers["User-Agent"]), ("Bearer t", "Shu-Tool/notes"))
        self.assertEqual(host.kept.logs, [{"level": "info", "message": "synced", "fields": {"n": 1}}])

    def test_it_is_as_strict_as_the_real_one(self) -> None:
        host = FakeHost(["http"])
        with self.assertRaises(CapabilityDenied):
            host.secrets
        with self.assertRaises(AttributeError):
            host.http = None
        host.respond("*", "*", status=404, json={"message": "no"})
        with self.assertRaises(HttpRequestFailed) as raised:
            run(host.http.fetch("GET", "https://x"))
        self.assertEqual(raised.exception.provider_message, "no")
        self.assertIsNone(run(host.http.fetch_or_none("GET", "https://x")))
        host.respond("GET", "https://x/b", body=b"\x00\x01")
        self.assertEqual(run(host.http.fetch_bytes("GET", "https://x/b")).content, b"\x00\x01")

    def test_kept_values_secrets_and_identity(self) -> None:
        host = FakeHost(secrets={"key": "v"}, user={"user_id": "u", "email": "u@x", "identities": {"google": {"email": "g@x"}}})

        async def work() -> list[object]:
            await host.storage.put("k", [1], namespace="n")
            first = await host.kb.ingest_text("kb", title="t", content="c", source_id="s")
            second = await host.kb.ingest_text("kb", title="t", content="c", source_id="s")
            return [
                await host.storage.get("k"),
                await host.storage.get("k", namespace="n"),
                await host.secrets.get("key"),
                host.identity.user_email,
                await host.identity.get_primary_email("google"),
                first["ko_id"] == second["ko_id"],
                second.get("skip_reason"),
                (await host.kb.delete_ko(external_id="s"))["deleted"],
                bool(await host.rate.limit("b", 1)),
            ]

        self.assertEqual(run(work()), [None, [1], "v", "u@x", "g@x", True, "hash_match", True, True])

    def test_a_request_nobody_set_an_answer_for(self) -> None:
        with self.assertRaisesRegex(LookupError, "no response is set for GET https://x"):
            run(FakeHost().http.fetch("GET", "https://x"))


class Contracts(unittest.TestCase):
    def test_a_plugin_that_keeps_to_it(self) -> None:
        self.assertEqual(contracts.check(Sync()), [])
        contracts.must(Sync())
        self.assertIsInstance(Sync(), contracts.Plugin)

    def test_a_plugin_that_does_not(self) -> None:
        class Odd:
            def execute(self, params: object) -> object: ...
            def get_schema(self) -> object:
                return {"properties": {"user_email": {}}}

            def get_output_schema(self) -> object:
                return "a schema"

            def list_actions(self) -> object: ...

        problems = contracts.check(Odd())
        self.assertEqual(len(problems), 4, problems)
        for part in ("(params, context, host)", "come together", "user_email", "returns a str"):
            self.assertTrue(any(part in problem for problem in problems), part)
        with self.assertRaises(AssertionError):
            contracts.must(Odd())
        self.assertEqual(contracts.check(object()), ["there is neither execute nor perform_action"])

    def test_what_the_check_of_a_class_and_its_manifest_finds(self) -> None:
        class Good:
            name, version = "good", "1"

            async def execute(self, params: object, context: object, host: object) -> object: ...
            def get_schema(self) -> object:
                return {"type": "object", "properties": {"op": {"enum": ["list"]}}, "required": ["op"]}

            def get_output_schema(self) -> object:
                return {"type": "object", "properties": {"n": {}}}

            def get_schema_for_op(self, op: str) -> object:
                return {"type": "object"} if op == "list" else None

        manifest = {"name": "good", "version": "1", "module": "plugins.good.plugin:Good", "capabilities": [], "chat_callable_ops": ["list"]}
        assert_plugin_contract(Good)
        assert_plugin_contract(Good, manifest)

        def fails(part: str, cls: type = Good, **members: object) -> None:
            with self.subTest(part), self.assertRaisesRegex(AssertionError, part):
                assert_plugin_contract(cls, {name: value for name, value in {**manifest, **members}.items() if value is not ...})

        for name in ("name", "version", "module", "capabilities"):
            fails(f"has no {name}", **{name: ...})
        fails("has no capabilities", capabilities="kb")
        fails("'telepathy' is no capability", capabilities=["telepathy"])
        fails("not of the form", module="plugins.good.plugin")
        fails("name is 'good' in the class", name="other")
        fails("version is '1' in the class", version="2")
        fails("op.enum does not have", allowed_feed_ops=["sync"])

        def odd(**members: object) -> type:
            return type("Odd", (Good,), members)

        fails("not an async", odd(execute=lambda self, params, context, host: None))
        fails("no property op", odd(get_schema=lambda self: {"type": "object", "properties": {"op": {}}}))
        fails("does not describe", odd(get_output_schema=lambda self: {"type": "object"}))
        fails("requires x", odd(get_schema=lambda self: {"properties": {"op": {"enum": ["list"]}}, "required": ["x"]}))
        fails("requires n", odd(get_output_schema=lambda self: {"oneOf": [{}], "required": ["n"]}))
        fails("that there is not", odd(get_schema_for_op=lambda self, op: {}))
        fails("get_schema_for_op.* raises KeyError", odd(get_schema_for_op=lambda self, op: {}[op]))
        fails("get_output_schema.* raises", odd(get_output_schema=lambda self: {}["x"]))

    def test_modules_have_what_belongs_to_them(self) -> None:
        from shu_plugin_sdk import retry

        for name in ("RetryConfig", "RetryableError", "NonRetryableError", "with_retry"):
            self.assertIs(getattr(retry, name), getattr(shu_plugin_sdk, name))
        skips = [{"id": "1", "reason": "too_large"}]
        self.assertEqual(PluginResult.ok({"n": 1}, skips=skips).skips, skips)

    def test_results(self) -> None:
        self.assertEqual(contracts.check_result(PluginResult.ok(1)), [])
        self.assertEqual(contracts.check_result({"status": "error", "error": {"code": "c"}}), [])
        self.assertEqual(len(contracts.check_result({"status": "fine"})), 1)
        self.assertEqual(len(contracts.check_result({"status": "error"})), 1)
        self.assertEqual(len(contracts.check_result({"status": "success", "error": {"code": "c"}})), 1)
        self.assertIs(testing.FakeHost, FakeHost)


class Modules(unittest.TestCase):
    def test_one_class_of_failed_requests_by_each_name(self) -> None:
        import shu_plugin_sdk
        from shu_plugin_sdk import retry, testing

        self.assertTrue(shu_plugin_sdk.HttpRequestFailed is retry.HttpRequestFailed is testing.HttpRequestFailed)


if __name__ == "__main__":
    unittest.main()
