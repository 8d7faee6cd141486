"""The host object of Shu plugins: what is on it, how it is asked, and the smaller services."""

from __future__ import annotations

import base64
import json
import unittest

from shu import ALL, Hosted


class Capabilities(Hosted):
    DENIED = ["auth", "cache", "cursor", "http", "identity", "kb", "ocr", "secrets", "storage"]
    NAMES = "[audit, auth, cache, cursor, http, identity, kb, ocr, query, rate, rate_limit, scheduler, secrets, storage]".strip("[]").split(", ")

    def test_what_is_not_declared_is_denied_through_hasattr_too(self) -> None:
        body = """
            said = {}
            for name in NAMES:
                try:
                    hasattr(host, name)
                except Exception as exc:
                    said[name] = [type(exc).__name__, isinstance(exc, AttributeError), str(exc)]
            return {"said": said}
        """
        said = self.said(self.shu(body.replace("NAMES", repr(self.NAMES)), capabilities=[]))
        self.assertEqual(sorted(said), sorted(self.DENIED))
        for name, (kind, attribute, message) in said.items():
            self.assertEqual((kind, attribute, message), ("CapabilityDenied", False, f"Host capability '{name}' not declared in plugin manifest"))

    def test_declared_ones_are_there_and_log_and_utils_always(self) -> None:
        body = "return {'said': [name for name in dir(host) if getattr(host, name) is not None]}"
        self.assertEqual(self.said(self.shu(body, capabilities=["cache"])), ["cache", "log", "logger", "utils"])
        self.assertEqual(self.said(self.shu(body, capabilities=ALL)), sorted([*self.NAMES, "log", "logger", "utils"]))

    def test_kb_implies_cursor(self) -> None:
        shu = self.shu("return {'said': await host.cursor.get('k')}", capabilities=["kb"], cursor__get={"found": True, "value": 7})
        self.assertEqual(self.said(shu), "7")

    def test_a_service_that_no_host_has(self) -> None:
        body = "try: host.database\nexcept Exception as exc: return {'said': [type(exc).__name__, str(exc)]}"
        self.assertEqual(self.said(self.shu(body)), ["AttributeError", "the host has no attribute 'database'"])

    def test_a_denial_that_escapes_fails_the_call(self) -> None:
        error = self.shu("await host.http.fetch('GET', 'http://x')", capabilities=[]).run("list")["error"]
        self.assertEqual((error["plugin_code"], error["details"]["exception"]), ("plugin_execute_error", "CapabilityDenied"))

    def test_the_host_and_its_services_cannot_be_changed(self) -> None:
        body = """
            said = []
            for thing in [host] + [getattr(host, name) for name in dir(host)]:
                for change in (lambda: setattr(thing, "x", 1), lambda: setattr(thing, "fetch", 1), lambda: delattr(thing, "log"),
                               lambda: setattr(thing, "_line", None)):
                    try:
                        change()
                        said.append(f"{thing} was changed")
                    except AttributeError:
                        pass
            return {"said": said}
        """
        self.assertEqual(self.said(self.shu(body)), [])

    def test_services_are_the_same_each_time(self) -> None:
        self.assertIs(self.said(self.shu("return {'said': host.log is host.log and type(host.log) is type(host.logger)}")), True)


class Concurrency(Hosted):
    def test_requests_that_are_gathered_are_all_asked_before_one_is_answered(self) -> None:
        body = "return {'said': await asyncio.gather(*(host.cache.get(str(n)) for n in range(8)))}"
        shu = self.shu(body)
        id = shu.begin("list", {})
        frames = [shu.receive() for _ in range(8)]
        for frame in reversed(frames):  # answered in the other order
            shu.send({"jsonrpc": "2.0", "id": frame["id"], "result": {"found": True, "value": frame["params"]["args"]["key"]}})
        self.assertEqual(shu.finish(id)["result"]["data"]["said"], [str(n) for n in range(8)])

    def test_no_more_requests_are_open_than_the_host_takes(self) -> None:
        body = "return {'said': len(await asyncio.gather(*(host.cache.get(str(n)) for n in range(300))))}"
        shu = self.shu(body)
        id = shu.begin("list", {})
        frames = [shu.receive() for _ in range(16)]
        with self.assertRaises(AssertionError):
            shu.receive(0.2)
        for frame in frames:
            shu.send({"jsonrpc": "2.0", "id": frame["id"], "result": {"found": False}})
        shu.services["cache.get"] = lambda args: {"found": False}
        self.assertEqual(shu.finish(id)["result"]["data"]["said"], 300)

    def test_a_request_that_waits_while_another_blocks(self) -> None:
        """identity.user_email reads the host's lines itself; what comes along with its answer is not lost."""
        body = """
            waiting = asyncio.ensure_future(host.cache.get("a"))
            await asyncio.sleep(0)
            mail = host.identity.user_email
            return {"said": [mail, await asyncio.wait_for(waiting, 5)]}
        """
        shu = self.shu(body)
        id = shu.begin("list", {})
        first, second = shu.receive(), shu.receive()
        self.assertEqual((first["method"], second["method"]), ("cache.get", "identity.current"))
        answers = [{"id": second["id"], "result": {"email": "e"}}, {"id": first["id"], "result": {"found": True, "value": 1}}]
        shu.send_bytes(b"".join(json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n" for answer in answers))
        self.assertEqual(shu.finish(id)["result"]["data"]["said"], ["e", 1])

    def test_what_the_host_refuses_is_an_exception_and_tells_its_code(self) -> None:
        error = self.shu("await host.storage.get('a')").run("list")["error"]
        self.assertEqual((error["plugin_code"], error["details"]["code"]), ("plugin_execute_error", "service_denied"))


class Small(Hosted):
    def test_cache(self) -> None:
        body = """
            await host.cache.set("k", {"a": 1})
            await host.cache.set("k", 2, ttl_seconds=9)
            await host.cache.delete("k")
            return {"said": [await host.cache.get("k"), await host.cache.get("k", 5), await host.cache.set_safe("k", 1), await host.cache.delete_safe("k")]}
        """
        kept: list[object] = []
        shu = self.shu(body, cache__get={"found": False}, cache__set=lambda args: kept.append(args) or {})
        deleted: list[object] = []

        def delete(args: dict[str, object]) -> object:
            if deleted:
                raise LookupError("refused")
            deleted.append(args["key"])
            return {}

        shu.services["cache.delete"] = delete
        self.assertEqual(self.said(shu), [None, 5, True, False])
        self.assertEqual(kept[0], {"key": "k", "value": {"a": 1}, "ttl_seconds": 300})
        self.assertEqual(kept[1], {"key": "k", "value": 2, "ttl_seconds": 9})
        self.assertEqual([log["level"] for log in shu.logs], ["warning"])

    def test_a_cache_that_fails_raises_nothing_and_warns(self) -> None:
        body = "return {'said': [await host.cache.set('k' * 9, 1), await host.cache.get('k', 5), await host.cache.delete('k')]}"
        shu = self.shu(body)
        self.assertEqual(self.said(shu), [None, 5, None])
        self.assertEqual([log["level"] for log in shu.logs], ["warning"] * 3)

    def test_a_cursor_is_text(self) -> None:
        body = "await host.cursor.set('kb', 7)\nawait host.cursor.set('kb', {'page': 3})\nreturn {'said': await host.cursor.get('kb')}"
        shu = self.shu(body, cursor__set={}, cursor__get={"found": True, "value": 12})
        self.assertEqual(self.said(shu), "12")
        self.assertEqual([args["value"] for name, args in shu.requests if name == "cursor.set"], ["7", {"page": 3}])

    def test_storage(self) -> None:
        body = """
            await host.storage.put("k", [1], namespace="n")
            return {"said": [await host.storage.get("k"), await host.storage.get("k", namespace="n"), await host.storage.delete("k")]}
        """
        shu = self.shu(body, storage__put={}, storage__delete={"deleted": True})
        shu.services["storage.get"] = lambda args: {"found": "namespace" in args, "value": args.get("namespace")}
        self.assertEqual(self.said(shu), [None, "n", None])
        self.assertEqual(shu.requests[0], ("storage.put", {"key": "k", "namespace": "n", "value": [1]}))

    def test_cursor(self) -> None:
        body = """
            await host.cursor.set("kb", "2026-01-01")
            return {"said": [await host.cursor.get("kb"), await host.cursor.set_safe("kb", 1), await host.cursor.delete("kb"), await host.cursor.delete_safe("kb")]}
        """
        shu = self.shu(body, cursor__set={}, cursor__get={"found": True, "value": "w"}, cursor__delete={"deleted": False})
        self.assertEqual(self.said(shu), ["w", True, False, True])
        self.assertEqual(shu.requests[0], ("cursor.set", {"kb_id": "kb", "value": "2026-01-01"}))

    def test_secrets(self) -> None:
        body = "await host.secrets.set('t', 'v')\nreturn {'said': [await host.secrets.get('a'), await host.secrets.get('b')]}"
        shu = self.shu(body, secrets__set={})
        shu.services["secrets.get"] = lambda args: {"found": args["name"] == "a", "value": "s3cret"}
        self.assertEqual(self.said(shu), ["s3cret", None])
        self.assertEqual(shu.requests[0], ("secrets.set", {"name": "t", "value": "v"}))

    def test_the_watermark_is_in_the_context(self) -> None:
        shu = self.shu("return {'said': context.get('watermark', 'none')}", cursor__get=lambda args: {"found": args["kb_id"] == "k1", "value": {"page": 3}})
        self.assertEqual(self.said(shu, kb_id="k1"), {"page": 3})
        self.assertIsNone(self.said(shu, kb_id="k2"))
        self.assertIsNone(self.said(shu))
        self.assertEqual(shu.requests, [("cursor.get", {"kb_id": "k1"}), ("cursor.get", {"kb_id": "k2"})])
        refused = self.shu("return {'said': context['watermark']}", capabilities=["cursor"])
        self.assertIsNone(self.said(refused, kb_id="x" * 900))
        without = self.shu("return {'said': context.get('watermark', 'none')}", capabilities=["cache"])
        self.assertEqual((self.said(without, kb_id="k1"), without.requests), ("none", []))

    def test_identity_has_the_address_at_a_provider_as_bindings_name_it(self) -> None:
        body = """
            said = [host.identity.google_email, host.identity.github_email, getattr(host.identity, "phone", "none"), hasattr(host.identity, "_email")]
            return {"said": said}
        """
        shu = self.shu(body, identity__current={"user_id": "u-7", "identities": {"google": {"email": "a@x", "subject": "1"}}})
        self.assertEqual(self.said(shu), ["a@x", None, "none", False])

    def test_identity(self) -> None:
        body = """
            now, later = host.identity.get_current_user_identity(), await host.identity.get_current_user_identity()
            return {"said": [now["email"], later.user_id, host.identity.user_email, await host.identity.get_primary_email("google"),
                await host.identity.lookup("google_directory", "ada"), host.identity.user_id]}
        """
        shu = self.shu(body, identity__current={"user_id": "u-7", "email": "e@x", "name": None, "identities": {}})
        shu.services["identity.primary_email"] = lambda args: {"email": args["provider"] + "@x"}
        shu.services["identity.lookup"] = lambda args: {"found": True, "value": args}
        want = ["e@x", "u-7", "e@x", "google@x", {"kind": "google_directory", "value": "ada"}, "u-7"]
        self.assertEqual(self.said(shu), want)

    def test_auth_answers_with_a_tuple(self) -> None:
        body = """
            pair = await host.auth.resolve_token_and_target("google", scopes=["s"])
            none = await host.auth.resolve_token_and_target("none")
            token = await host.auth.provider_user_token("google", required_scopes=["s"])
            service = await host.auth.provider_service_account_token("google", ["s"], subject="ada@x")
            return {"said": [isinstance(pair, tuple), *pair, *none, token, service]}
        """
        shu = self.shu(body)
        shu.services["auth.resolve"] = lambda a: {"token": None, "target": None} if a["provider"] == "none" else {"token": a.get("mode", "t"), "target": "me"}
        self.assertEqual(self.said(shu), [True, "t", "me", None, None, "user", "domain_delegate"])
        self.assertEqual(shu.requests[0][1], {"provider": "google", "scopes": ["s"]})
        self.assertEqual(shu.requests[3][1], {"provider": "google", "scopes": ["s"], "mode": "domain_delegate", "subject": "ada@x"})

    def test_rate_limits(self) -> None:
        body = """
            said = []
            for service in (host.rate, host.rate_limit):
                taken = await service.limit("mail", 2)
                said += [bool(taken), taken["retry_after_ms"]]
            return {"said": said + [bool(await host.rate_limit.take("mail"))]}
        """
        shu = self.shu(body, rate_limit__take=lambda args: {"allowed": args["cost"] == 1, "retry_after_ms": 50})
        self.assertEqual(self.said(shu), [False, 50, False, 50, True])
        self.assertEqual(shu.requests[0], ("rate_limit.take", {"bucket": "mail", "cost": 2}))

    def test_scheduler_audit_query_and_ocr(self) -> None:
        body = """
            await host.audit.log("synced", {"n": 1})
            first = await host.scheduler.enqueue("sync", run_at=datetime.datetime(2026, 1, 2, 3, 4, 5), params={"x": 1})
            await host.scheduler.enqueue({"op": "sync", "params": {"y": 2}})
            text = await host.ocr.extract_text(file_bytes=b"%PDF", mime_type="application/pdf", mode="always")
            listed, one = await host.query.list(kb_id="k", limit=3), await host.query.get("d")
            return {"said": [first["id"], text.text, text["metadata"]["method"], listed["documents"], one]}
        """
        services = {"audit__log": {}, "scheduler__enqueue": {"id": "t1"}, "query__list": {"documents": [1]}, "query__get": {"id": "d"}}
        shu = self.shu(body, "import datetime", ocr__extract_text={"text": "t", "metadata": {"method": "ocr"}}, **services)
        self.assertEqual(self.said(shu), ["t1", "t", "ocr", [1], {"id": "d"}])
        asked = dict(shu.requests[:2])
        self.assertEqual(asked["audit.log"], {"event": "synced", "details": {"n": 1}})
        self.assertEqual(asked["scheduler.enqueue"], {"operation": "sync", "params": {"x": 1}, "run_at": "2026-01-02T03:04:05"})
        self.assertEqual(shu.requests[2][1], {"operation": "sync", "params": {"y": 2}})
        file = {"$bytes": base64.b64encode(b"%PDF").decode()}
        self.assertEqual(shu.requests[3][1], {"file": file, "mime_type": "application/pdf", "mode": "always"})

    def test_log_takes_what_loggers_take_and_may_be_awaited(self) -> None:
        body = """
            host.log.debug("a %s", 1)
            await host.log.info("b", extra={"n": 2, "odd": object()})
            host.logger.warning("c %d", "no number")
            try: raise ValueError("v")
            except ValueError: await host.log.exception("d")
            host.log.error("e", exc_info=True, n=3)
            return {"said": None}
        """
        shu = self.shu(body)
        self.said(shu)
        self.assertEqual([log["level"] for log in shu.logs], ["debug", "info", "warning", "error", "error"])
        self.assertEqual([log["message"] for log in shu.logs], ["a 1", "b", "c %d 'no number'", "d", "e"])
        self.assertEqual(shu.logs[3]["fields"], {"exception": "ValueError: v"})
        self.assertEqual((shu.logs[4]["fields"], shu.logs[1]["fields"]["n"]), ({"n": 3}, "2"))

    def test_map_safe_and_filter_safe(self) -> None:
        body = """
            def half(n):
                if n % 2: raise ValueError(n)
                return n // 2
            async def later(n):
                await asyncio.sleep(0)
                return half(n)
            plain = host.utils.map_safe([2, 3, 4], half)
            awaited, failed = await host.utils.map_safe([2, 3, 4], half)
            both, errors = await host.utils.map_safe(iter([2, 3, 4, 5, 6]), later, max_errors=2)
            kept, lost = await host.utils.filter_safe([0, 1, 2, 4], later)
            empty = await host.utils.map_safe([], later)
            return {"said": [plain[0], awaited, [(item, type(exc).__name__) for item, exc in failed], both, [item for item, _ in errors],
                kept, [item for item, _ in lost], empty]}
        """
        want = [[1, 2], [1, 2], [[3, "ValueError"]], [1, 2], [3, 5], [2, 4], [1], [[], []]]
        self.assertEqual(self.said(self.shu(body)), want)


if __name__ == "__main__":
    unittest.main()
