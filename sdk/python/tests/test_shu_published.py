"""What published Shu plugins rely on beyond the contract's text, method by method."""

from __future__ import annotations

import unittest
from hashlib import sha256

from shu import Hosted, Web


class Values(Hosted):
    def test_what_json_does_not_know_becomes_text(self) -> None:
        body = """
            day = datetime.date(2026, 1, 2)
            await host.storage.put("k", {"day": day, "path": pathlib.PurePosixPath("/a")})
            return {"said": [await host.cache.set_safe("k", {1}), await host.cache.set_safe("k", day, ttl_seconds=0), await host.cache.set_safe("k", 1, ttl=-5)]}
        """
        shu = self.shu(body, "import datetime, pathlib", storage__put={}, cache__set={})
        self.assertEqual(self.said(shu), [True, True, True])
        self.assertEqual(shu.requests[0][1]["value"], {"day": "2026-01-02", "path": "/a"})
        self.assertEqual([(args["value"], args["ttl_seconds"]) for name, args in shu.requests if name == "cache.set"], [("{1}", 300), ("2026-01-02", 1), (1, 1)])

    def test_an_object_that_is_too_large_is_a_value_error_and_none_at_the_limit(self) -> None:
        body = """
            await host.storage.put("k", "x" * (65536 - 2))
            try:
                await host.storage.put("k", "x" * (65537 - 2))
            except ValueError as exc:
                return {"said": str(exc)}
        """
        shu = self.shu(body, storage__put={})
        self.assertEqual((self.said(shu), len(shu.requests)), ("storage object too large (65537 > 65536)", 1))

    def test_max_errors_below_one_is_a_value_error(self) -> None:
        body = """
            said = []
            for most in (0, -1):
                for do in (host.utils.map_safe, host.utils.filter_safe):
                    try:
                        await do([1], str, max_errors=most)
                    except ValueError:
                        said.append(most)
            return {"said": said}
        """
        self.assertEqual(self.said(self.shu(body)), [0, 0, -1, -1])

    def test_a_cursor_in_a_value_is_read_and_getting_one_never_raises_while_moving_one_may(self) -> None:
        body = """
            said = [await host.cursor.get("kb")]
            for do in (host.cursor.set("kb", "1"), host.cursor.delete("kb")):
                try:
                    await do
                except Exception as exc:
                    said.append(type(exc).__name__)
            return {"said": said}
        """
        self.assertEqual(self.said(self.shu(body, cursor__get={"found": True, "value": {"value": "page-2"}})), ["page-2", "ServiceError", "ServiceError"])
        self.assertEqual(self.said(self.shu(body))[0], None)

    def test_secrets_of_any_name_are_asked_for_and_deleted(self) -> None:
        body = "await host.secrets.delete('a')\nreturn {'said': await host.secrets.get('never declared')}"
        shu = self.shu(body, secrets__get={"found": False}, secrets__delete={"deleted": True})
        self.assertIsNone(self.said(shu))
        self.assertEqual(shu.requests, [("secrets.delete", {"name": "a"}), ("secrets.get", {"name": "never declared"})])

    def test_a_mode_of_ocr_that_there_is_not_is_auto(self) -> None:
        body = "for mode in (None, 'auto', 'fallback', 'odd', 'never'): await host.ocr.extract_text(file_bytes=b'', mode=mode)\nreturn {'said': 1}"
        shu = self.shu(body, ocr__extract_text={"text": "", "metadata": {}})
        self.said(shu)
        self.assertEqual([args.get("mode") for _, args in shu.requests], [None, None, None, None, "never"])


class Accounts(Hosted):
    def test_providers_are_accounts_by_name(self) -> None:
        account = {"account_id": "1", "primary_email": "a@x", "display_name": "A", "scopes": ["s"]}
        body = "[one] = host.identity.providers['google']\nreturn {'said': [one.primary_email, one['scopes'], host.identity.providers.get('none')]}"
        self.assertEqual(self.said(self.shu(body, identity__current={"providers": {"google": [account]}})), ["a@x", ["s"], None])

    def test_an_address_that_is_not_known_is_none_awaited_or_not(self) -> None:
        body = "return {'said': [host.identity.get_primary_email('google'), await host.identity.get_primary_email('google')]}"
        self.assertEqual(self.said(self.shu(body, identity__primary_email={"email": None})), [None, None])

    def test_whose_address_a_call_is_about(self) -> None:
        shu = self.shu("return {'said': host.identity.user_email}", identity__current={"email": "own@x"})
        for params, want in (
            ({}, "own@x"),
            ({"user_email": "other@x"}, "own@x"),
            ({"auth_mode": "domain_delegate", "impersonate_email": "boss@x"}, "boss@x"),
            ({"auth_mode": "user", "impersonate_email": "boss@x"}, "own@x"),
            ({"__schedule_id": "s", "user_email": "feed@x"}, "feed@x"),
            ({"__schedule_id": "s"}, None),
        ):
            with self.subTest(params):
                self.assertEqual(self.said(shu, **params), want)

    def test_the_target_of_a_token_and_what_lacks_one(self) -> None:
        body = """
            try:
                return {"said": list(await host.auth.resolve_token_and_target("google"))}
            except RuntimeError as exc:
                return {"said": "RuntimeError"}
        """
        for answer, want in (
            ({"token": "t", "mode": "user", "target": "ada@x"}, ["t", "me"]),
            ({"token": "t", "mode": "domain_delegate", "target": "boss@x"}, ["t", "boss@x"]),
            ({"token": "t", "mode": "service_account"}, ["t", None]),
        ):
            self.assertEqual(self.said(self.shu(body, auth__resolve=answer)), want)
        for mode, code, want in (
            ("user", "missing_identity", [None, None]),
            ("user", "service_denied", [None, None]),  # a scope that is not granted
            ("domain_delegate", "missing_identity", "RuntimeError"),
            ("service_account", "missing_identity", "RuntimeError"),
        ):
            shu = self.shu(body)
            id = shu.begin("list", {})
            asked = shu.receive()
            data = {"code": code, "details": {"mode": mode, "scopes": ["s"]}, "retryable": False, "retry_after_ms": 0}
            shu.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "no account", "data": data}})
            self.assertEqual(shu.finish(id)["result"]["data"]["said"], want, mode)

    def test_a_provider_that_there_is_not_is_not_implemented(self) -> None:
        for call in ("provider_user_token('nowhere')", "provider_service_account_token('nowhere', scopes=['s'])"):
            shu = self.shu(f"""
                try:
                    return {{"said": await host.auth.{call}}}
                except NotImplementedError as exc:
                    return {{"said": str(exc)}}
            """)
            id = shu.begin("list", {})
            asked = shu.receive()
            data = {"code": "missing_identity", "details": {"mode": "user", "unsupported": True}, "retryable": False, "retry_after_ms": 0}
            shu.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "no provider is called that", "data": data}})
            self.assertEqual(shu.finish(id)["result"]["data"]["said"], "no provider is called that")


class Knowledge(Hosted):
    INGESTED = {"ko_id": "k", "document_id": "d", "word_count": 1, "character_count": 2, "chunk_count": 3, "created": True, "extraction": {"method": "text"}}

    def test_what_ingesting_answers(self) -> None:
        body = """
            mail = dict(subject="s", sender="a", recipients={}, date=None, message_id="m", thread_id=None, body_text="b")
            answers = [
                await host.kb.ingest_document("kb", file_bytes=b"x", filename="f", mime_type="text/plain", source_id="s"),
                await host.kb.ingest_text("kb", title="t", content="c", source_id="s"),
                await host.kb.ingest_thread("kb", title="t", content="c", thread_id="s"),
                await host.kb.ingest_email("kb", **mail),
            ]
            return {"said": [[one["status"], one["skipped"], one.get("skip_reason"), one["chunk_count"], one["ko_id"], one["document_id"]] for one in answers]}
        """
        names = ("document", "text", "thread", "email")
        fresh = self.shu(body, **{f"kb__ingest_{name}": self.INGESTED for name in names})
        want = [[status, False, None, 3, "k", "d"] for status in ("pending", "embedding", "embedding", "embedding")]
        self.assertEqual(self.said(fresh), want)
        same = self.shu(body, **{f"kb__ingest_{name}": {**self.INGESTED, "skipped": True, "skip_reason": "hash_match"} for name in names})
        self.assertEqual(self.said(same), [["skipped", True, "hash_match", 3, "k", "d"]] * 4)

    def test_the_id_of_a_knowledge_object_is_text(self) -> None:
        objects = [{"id": 7}, {"source": {"plugin": "p", "account": "a"}, "external_id": "e"}, {"source": {"plugin": "p"}, "external_id": None}]
        shu = self.shu(f"return {{'said': [await host.kb.upsert_knowledge_object('kb', ko) for ko in {objects!r}]}}", kb__upsert_knowledge_object=self.INGESTED)
        self.assertEqual(self.said(shu), ["7", sha256(b"p:a|e").hexdigest(), sha256(b"p:None|None").hexdigest()])

    def test_deleting(self) -> None:
        def delete(args: dict[str, object]) -> object:
            if args["external_id"] == "bad":
                raise LookupError("refused")
            return {"deleted": True, "ko_id": "d1", "chunk_count": 2} if args["external_id"] == "there" else {"deleted": False}

        body = """
            return {"said": [await host.kb.delete_ko(external_id="there"), await host.kb.delete_ko(external_id="gone"),
                await host.kb.delete_kos_batch(external_ids=["there", "gone", "bad"])]}
        """
        want = [{"deleted": True, "ko_id": "d1", "chunk_count": 2}, {"deleted": False}, {"deleted_count": 1, "failed": ["bad"]}]
        self.assertEqual(self.said(self.shu(body, kb__delete=delete)), want)

    def test_deleting_outside_a_feed_is_a_permission_error(self) -> None:
        body = """
            said = []
            for do in (host.kb.delete_ko(external_id="a"), host.kb.delete_kos_batch(external_ids=["a"])):
                try:
                    await do
                except PermissionError as exc:
                    said.append(str(exc))
            return {"said": said}
        """
        shu = self.shu(body)
        id = shu.begin("list", {})
        data = {"code": "service_denied", "details": {"reason": "kb_delete_not_allowed_outside_feed"}, "retryable": False, "retry_after_ms": 0}
        for _ in range(2):
            shu.send({"jsonrpc": "2.0", "id": shu.receive()["id"], "error": {"code": -32000, "message": "only a feed deletes", "data": data}})
        self.assertEqual(shu.finish(id)["result"]["data"]["said"], ["kb_delete_not_allowed_outside_feed"] * 2)

    def test_a_search_that_the_host_refuses_is_an_answer(self) -> None:
        body = """
            return {"said": [(await host.kb.search_chunks("content", "eq", "a"))["error"]["code"], (await host.kb.search_documents("title", "eq", "a")).error["code"],
                (await host.kb.get_document("d"))["status"], (await host.kb.get_document("d"))["error"]["code"]]}
        """
        self.assertEqual(self.said(self.shu(body)), ["search_chunks_error", "search_documents_error", "error", "get_document_error"])

    def test_the_catch_all_of_the_contract_is_there(self) -> None:
        self.assertTrue(self.said(self.shu("return {'said': hasattr(host.kb, 'ingest')}")))


class Requests(Hosted):
    def test_content_and_a_timeout_are_passed_on(self) -> None:
        asked: list[dict[str, object]] = []

        def fetch(args: dict[str, object]) -> dict[str, object]:
            asked.append(args)
            return {"status_code": 200, "headers": {}, "body": ""}

        body = "await host.http.fetch('POST', 'https://x/y', content=b'ab', timeout=7)\nawait host.http.fetch('GET', 'https://x/y')\nreturn {'said': 1}"
        self.said(self.shu(body, http__fetch=fetch))
        self.assertEqual((asked[0]["body_base64"], asked[0]["timeout_seconds"]), ("YWI=", 7))
        self.assertEqual([name for name in ("timeout_seconds", "retries") if name in asked[1]], [])

    def test_a_host_that_may_not_be_reached_is_egress_denied(self) -> None:
        shu = self.shu("try: await host.http.fetch('GET', 'https://x')\nexcept Exception as exc: return {'said': type(exc).__name__}")
        id = shu.begin("list", {})
        data = {"code": "egress_denied", "details": {}, "retryable": False, "retry_after_ms": 0}
        shu.send({"jsonrpc": "2.0", "id": shu.receive()["id"], "error": {"code": -32000, "message": "not declared", "data": data}})
        self.assertEqual(shu.finish(id)["result"]["data"]["said"], "EgressDenied")

    def test_too_many_requests_are_none_where_that_is_asked_for(self) -> None:
        web = Web()
        self.addCleanup(web.close)
        web.answers["/a"] = 429, {"Retry-After": "3"}, b"later"
        body = f"return {{'said': [await host.http.fetch_or_none('GET', {web.url!r} + '/a'), await host.http.fetch_bytes_or_none('GET', {web.url!r} + '/a')]}}"
        self.assertEqual(self.said(self.shu(body, http__fetch=web.fetch)), [None, None])
        self.assertEqual(len(web.seen), 2)


if __name__ == "__main__":
    unittest.main()
