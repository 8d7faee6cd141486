"""shu_plugin_sdk: results, retries, exceptions, the fake host and the checks of the contract."""

from __future__ import annotations

import asyncio
import email.utils
import os
import sys
import time
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
    contracts,
    testing,
    with_retry,
)
from shu_plugin_sdk.testing import CapabilityDenied, FakeHost, run  # noqa: E402


class Results(unittest.TestCase):
    def test_a_result_says_only_what_it_has(self) -> None:
        self.assertEqual(PluginResult.ok({"a": 1}).to_dict(), {"status": "success", "data": {"a": 1}})
        want = {"status": "error", "error": {"code": "c", "message": "m", "details": {"d": 1}}}
        self.assertEqual(PluginResult.err("m", code="c", details={"d": 1}).to_dict(), want)
        self.assertEqual(PluginResult.err("m").error["code"], "plugin_error")
        self.assertEqual(PluginResult.timed_out().status, "timeout")

    def test_skips_have_one_of_the_seven_reasons(self) -> None:
        want = ["auth", "empty_extraction", "ext_filtered", "network", "other", "too_large", "unsupported_format"]
        self.assertEqual(sorted(str(reason) for reason in SkipReason), want)
        self.assertEqual(Skip("i", SkipReason.TOO_LARGE, "n", {"size": 1}).to_dict(), {"id": "i", "name": "n", "reason": "too_large", "details": {"size": 1}})
        self.assertEqual(Skip("i", "network").to_dict(), {"id": "i", "reason": "network"})
        self.assertEqual(Skip("i", "a mood").to_dict(), {"id": "i", "reason": "other"})
        self.assertEqual(PluginResult.ok(skips=[Skip("i")]).to_dict()["skips"], [{"id": "i", "reason": "other"}])

    def test_an_ingestion_is_read_from_what_the_host_says(self) -> None:
        got = IngestionResult.from_dict({"ko_id": "k", "chunk_count": 2, "skipped": True, "skip_reason": "hash_match", "more": 1})
        self.assertEqual((got.ko_id, got.chunk_count, got.skipped, got.skip_reason, got.word_count), ("k", 2, True, "hash_match", 0))
        self.assertEqual(IngestionResult.from_dict(got.to_dict()), got)

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
            ({"error": {"code": 404, "message": "m", "status": "NOT_FOUND"}}, "m", "NOT_FOUND"),
            ({"error": "invalid_grant", "error_description": "expired"}, "expired", "invalid_grant"),
            ({"error": "invalid_grant"}, "invalid_grant", "invalid_grant"),
            ({"message": "Not Found", "status": "404"}, "Not Found", "404"),
            ({"errors": [{"detail": "d", "code": "c"}]}, "d", "c"),
            ({"other": 1}, None, None),
            ("text", None, None),
            (None, None, None),
            ([1], None, None),
        ]
        for body, message, code in cases:
            exc = HttpRequestFailed(400, "u", body)
            self.assertEqual((exc.provider_message, exc.provider_error_code), (message, code), body)

    def test_when_to_come_back(self) -> None:
        after = lambda value: HttpRequestFailed(429, "u", None, {"RETRY-after": value}).retry_after_seconds  # noqa: E731
        self.assertEqual([after("7"), after("0.5"), after("soon"), after("-1"), after("inf")], [7, 0.5, None, None, None])
        self.assertAlmostEqual(after(email.utils.formatdate(time.time() + 100, usegmt=True)), 100, delta=3)
        self.assertEqual(after("Wed, 21 Oct 2015 07:28:00 GMT"), 0)
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

    def failing(self, *faults: Exception, config: object = None) -> object:
        left = list(faults)

        @with_retry(config=config)
        async def work(value: object) -> object:
            if left:
                raise left.pop(0)
            return value

        return work

    def test_the_defaults(self) -> None:
        config = RetryConfig()
        self.assertEqual((config.max_attempts, config.base_delay, config.max_delay, config.factor), (3, 1, 60, 2))
        self.assertEqual(RetryConfig(3, 1, 60, 2), config)
        self.assertEqual([config.delay(n) for n in (1, 2, 3, 7, 5000)], [1, 2, 4, 60, 60])

    def test_it_is_tried_three_times(self) -> None:
        self.assertEqual(self.slept(self.failing(RetryableError("a"), RetryableError("b")), 5), (5, [1, 2]))
        got, pauses = self.slept(self.failing(*(RetryableError(str(n)) for n in range(4))), 5)
        self.assertEqual((str(got), pauses), ("2", [1, 2]))

    def test_what_is_not_tried_again(self) -> None:
        for fault in (NonRetryableError("n"), ValueError("v"), HttpRequestFailed(404, "u")):
            self.assertEqual(self.slept(self.failing(fault), 5), (fault, []))

    def test_providers_are_waited_for(self) -> None:
        slow = HttpRequestFailed(429, "u", None, {"Retry-After": "30"})
        self.assertEqual(self.slept(self.failing(slow, HttpRequestFailed(503, "u")), 5), (5, [30, 2]))
        late = HttpRequestFailed(429, "u", None, {"Retry-After": "3000"})
        self.assertEqual(self.slept(self.failing(late), 5), (5, [60]))
        self.assertEqual(self.slept(self.failing(RetryableError("r", retry_after=9)), 5), (5, [9]))

    def test_all_ways_to_say_it(self) -> None:
        async def work(value: int) -> int:
            """Doubles."""
            return 2 * value

        for made in (with_retry(work), with_retry()(work), with_retry(RetryConfig(5))(work), with_retry(config=RetryConfig(5))(work), with_retry(work, RetryConfig(1))):
            self.assertEqual((self.slept(made, 4), made.__doc__, made.__name__), ((8, []), "Doubles.", "work"))
            self.assertTrue(asyncio.iscoroutinefunction(made))

    def test_a_cancel_is_no_failure(self) -> None:
        @with_retry
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

    def test_results(self) -> None:
        self.assertEqual(contracts.check_result(PluginResult.ok(1)), [])
        self.assertEqual(contracts.check_result({"status": "error", "error": {"code": "c"}}), [])
        self.assertEqual(len(contracts.check_result({"status": "fine"})), 1)
        self.assertEqual(len(contracts.check_result({"status": "error"})), 1)
        self.assertEqual(len(contracts.check_result({"status": "success", "error": {"code": "c"}})), 1)
        self.assertIs(testing.FakeHost, FakeHost)


if __name__ == "__main__":
    unittest.main()
