"""The host object of Shu plugins: what is on it, and what each service asks and gives back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import unittest

from shu import ALL, Shu, Web, execute, package


class Hosted(unittest.TestCase):
    def shu(self, body: str, head: str = "import asyncio", capabilities: list[str] | None = None, **services: object) -> Shu:
        """Serve a plugin whose execute ends in `return <what is wanted>`; services by name with _ for the dot."""
        shu = Shu(package(execute(body, head)), capabilities).__enter__()
        self.addCleanup(shu.__exit__)
        for name, answer in services.items():
            shu.services[name.replace("__", ".")] = answer if callable(answer) else lambda args, answer=answer: answer
        return shu

    def said(self, shu: Shu, **params: object) -> object:
        result = shu.run("list", **params)
        self.assertEqual(result["status"], "succeeded", result)
        return result["data"]["said"]


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


class Knowledge(Hosted):
    ANSWER = {"ko_id": "k", "document_id": "d", "word_count": 1, "character_count": 2, "chunk_count": 3, "extraction": {"method": "text"}}

    def asked(self, body: str) -> list[tuple[str, object]]:
        shu = self.shu(body + "\nreturn {'said': None}")
        for name in ("ingest_document", "ingest_email", "ingest_thread", "ingest_text", "upsert_knowledge_object", "delete"):
            shu.services[f"kb.{name}"] = lambda args: self.ANSWER
        for name in ("find_chunks", "find_documents", "find_document"):
            shu.services[f"kb.{name}"] = lambda args: {"results": []}
        self.said(shu)
        return shu.requests

    def test_ingest_text_and_thread(self) -> None:
        asked = self.asked(
            "await host.kb.ingest_text('kb', title='T', content='C', source_id='s', source_url='u', attributes={'a': 1})\n"
            "await host.kb.ingest_thread('kb', title='T', content='C', thread_id='t')"
        )
        text = {"kb_id": "kb", "title": "T", "content": "C", "source_id": "s", "source_url": "u", "attributes": {"a": 1}}
        self.assertEqual(asked, [("kb.ingest_text", text), ("kb.ingest_thread", {"kb_id": "kb", "title": "T", "content": "C", "thread_id": "t"})])

    def test_ingest_email(self) -> None:
        body = """await host.kb.ingest_email('kb', subject='S', sender='a@x', recipients={'to': ['b@x'], 'cc': [], 'bcc': []},
    date=datetime.datetime(2026, 1, 2), message_id='m', thread_id='t', body_text='B', labels=['INBOX'])"""
        [(method, args)] = self.asked("import datetime\n" + body)
        want = {"kb_id": "kb", "subject": "S", "sender": "a@x", "recipients": {"to": ["b@x"], "cc": [], "bcc": []}}
        want.update(date="2026-01-02T00:00:00", message_id="m", thread_id="t", body_text="B", labels=["INBOX"])
        self.assertEqual((method, args), ("kb.ingest_email", want))

    def test_a_document_travels_in_the_frame_or_as_a_file(self) -> None:
        sent: list[object] = []

        def take(args: dict[str, object]) -> object:
            file = args["file"]
            if "$bytes" in file:
                data = base64.b64decode(file["$bytes"])
            else:
                with open(os.path.join(shu.scratch, file["$file"]), "rb") as opened:
                    data = opened.read()
            sent.append((sorted(file), hashlib.sha256(data).hexdigest(), args["filename"]))
            return self.ANSWER

        body = """
            for n in (10, 300_000):
                got = await host.kb.ingest_document("kb", file_bytes=b"x" * n, filename=f"{n}.pdf", mime_type="application/pdf", source_id="s")
            return {"said": [got.ko_id, got["extraction"], got.chunk_count]}
        """
        shu = self.shu(body, kb__ingest_document=take)
        self.assertEqual(self.said(shu), ["k", {"method": "text"}, 3])
        hashes = [hashlib.sha256(b"x" * n).hexdigest() for n in (10, 300_000)]
        self.assertEqual(sent, [(["$bytes"], hashes[0], "10.pdf"), (["$file"], hashes[1], "300000.pdf")])
        self.assertEqual(os.listdir(shu.scratch), [])

    def test_ingest_finds_the_right_one(self) -> None:
        asked = self.asked(
            "await host.kb.ingest('kb', file_bytes=b'x', filename='f', mime_type='m', source_id='s')\n"
            "await host.kb.ingest('kb', message_id='m', subject='s')\n"
            "await host.kb.ingest('kb', thread_id='t', title='x', content='c')\n"
            "await host.kb.ingest('kb', title='x', content='c', source_id='s')\n"
            "await host.kb.ingest('kb', ko={'source': 's'})"
        )
        names = ["ingest_document", "ingest_email", "ingest_thread", "ingest_text", "upsert_knowledge_object"]
        self.assertEqual([method for method, _ in asked], [f"kb.{name}" for name in names])

    def test_knowledge_objects_in_all_spellings(self) -> None:
        asked = self.asked(
            "await host.kb.upsert_knowledge_object('kb', {'source': 's'})\n"
            "await host.kb.upsert_knowledge_object(knowledge_base_id='kb', ko={'source': 's'})\n"
            "await host.kb.upsert_knowledge_object({'source': 's'})\n"
            "await host.kb.delete_ko(external_id='x')"
        )
        both = ("kb.upsert_knowledge_object", {"kb_id": "kb", "ko": {"source": "s"}})
        self.assertEqual(asked, [both, both, ("kb.upsert_knowledge_object", {"ko": {"source": "s"}}), ("kb.delete", {"external_id": "x"})])

    def test_searching(self) -> None:
        asked = self.asked(
            "await host.kb.search_chunks('topics', 'has_any', ['a'], page=2, sort_order='desc')\n"
            "await host.kb.search_documents('title', operator='eq', value='a')\n"
            "await host.kb.get_document('d')"
        )
        want = [
            ("kb.find_chunks", {"field": "topics", "operator": "has_any", "value": ["a"], "page": 2, "sort_order": "desc"}),
            ("kb.find_documents", {"field": "title", "operator": "eq", "value": "a", "page": 1, "sort_order": "asc"}),
            ("kb.find_document", {"document_id": "d"}),
        ]
        self.assertEqual(asked, want)


class Http(Hosted):
    def setUp(self) -> None:
        self.web = Web()
        self.addCleanup(self.web.close)

    def fetch(self, body: str) -> object:
        return self.said(self.shu(body.replace("URL", repr(self.web.url)), http__fetch=self.web.fetch))

    def test_a_json_answer_is_its_value_and_headers_are_found_in_any_case(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "application/json", "X-Page": "2"}, b'{"n": [1]}'
        body = """
            got = await host.http.fetch("GET", URL + "/a")
            return {"said": [got["status_code"], got.body, got["headers"]["X-Page"], got.headers.get("x-page"), "X-PAGE" in got.headers]}
        """
        self.assertEqual(self.fetch(body), [200, {"n": [1]}, "2", "2", True])

    def test_types_with_json_in_them_are_parsed_and_text_is_not(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "text/x-json"}, b'{"n": 1}'
        self.web.answers["/b"] = 200, {"Content-Type": "text/x-json"}, b"{broken"
        self.web.answers["/c"] = 200, {"Content-Type": "text/plain"}, b'{"n": 1}'
        body = "return {'said': [(await host.http.fetch('GET', URL + p))['body'] for p in ('/a', '/b', '/c')]}"
        self.assertEqual(self.fetch(body), [{"n": 1}, "{broken", '{"n": 1}'])

    def test_a_name_and_a_password(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = "await host.http.fetch('GET', URL + '/a', auth=('ada', 'p:w'))\nawait host.http.fetch('GET', URL + '/a', auth=('x', 'y'), headers={'authorization': 'mine'})\nreturn {'said': 1}"
        self.fetch(body)
        self.assertEqual([seen["headers"]["authorization"] for seen in self.web.seen], ["Basic " + base64.b64encode(b"ada:p:w").decode(), "mine"])

    def test_who_asks_is_told_unless_the_plugin_says(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = "await host.http.fetch('GET', URL + '/a')\nawait host.http.fetch('GET', URL + '/a', headers={'user-agent': 'mine', 'X-SHU-USER': 'me'})\nreturn {'said': 1}"
        self.fetch(body)
        told = [(seen["headers"]["user-agent"], seen["headers"]["x-shu-user"]) for seen in self.web.seen]
        self.assertEqual(told, [("Shu-Tool/notes", "u-7"), ("mine", "me")])

    def test_parameters_are_spelled_as_on_the_web(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = """
            params = {"flag": True, "off": False, "n": 3, "list": ["a", True, 2], "none": None, "day": datetime.date(2026, 1, 2), "text": "a b"}
            await host.http.fetch("GET", URL + "/a", params=params)
            await host.http.fetch("GET", URL + "/a", params=[("x", 1), ("x", 2)])
            return {"said": 1}
        """
        self.fetch("import datetime\n" + "\n".join(line[12:] for line in body.splitlines()))
        want = "/a?flag=true&off=false&n=3&list=a&list=true&list=2&day=2026-01-02&text=a+b"
        self.assertEqual([seen["path"] for seen in self.web.seen], [want, "/a?x=1&x=2"])

    def test_bodies(self) -> None:
        self.web.answers["/a"] = 200, {}, b"ok"
        body = """
            await host.http.fetch("POST", URL + "/a", json={"a": [1]})
            await host.http.fetch("post", URL + "/a", data={"a": 1, "b": [2, 3]})
            await host.http.fetch("PUT", URL + "/a", body="text")
            await host.http.fetch({"method": "DELETE", "url": URL + "/a"})
            return {"said": 1}
        """
        self.fetch(body)
        said = [(seen["method"], seen["body"], seen["headers"].get("content-type")) for seen in self.web.seen]
        form = "application/x-www-form-urlencoded"
        self.assertEqual(said[0], ("POST", '{"a": [1]}', "application/json"))
        self.assertEqual(said[1], ("POST", "a=1&b=2&b=3", form))
        self.assertEqual([one[:2] for one in said[2:]], [("PUT", "text"), ("DELETE", "")])

    def test_bytes(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "application/octet-stream"}, bytes(range(256))
        body = "got = await host.http.fetch_bytes('GET', URL + '/a')\nreturn {'said': [type(got.content).__name__, got['content'].hex(), got.status_code]}"
        self.assertEqual(self.fetch(body), ["bytes", bytes(range(256)).hex(), 200])

    def test_a_failure_has_everything_about_it(self) -> None:
        self.web.answers["/a"] = 429, {"Content-Type": "application/json", "Retry-After": "3"}, b'{"error": {"message": "slow", "code": "q"}}'
        body = """
            from shu_plugin_sdk import HttpRequestFailed
            said = []
            for fetch in (host.http.fetch, host.http.fetch_bytes):
                try:
                    await fetch("GET", URL + "/a")
                except HttpRequestFailed as exc:
                    said.append([exc.status_code, exc.url == URL + "/a", str(exc) == "HTTP 429 calling " + URL + "/a", exc.body, exc.headers["Retry-After"],
                        exc.error_category, exc.is_retryable, exc.retry_after_seconds, exc.provider_message, exc.provider_error_code])
            return {"said": said}
        """
        one = [429, True, True, {"error": {"message": "slow", "code": "q"}}, "3", "rate_limited", True, 3, "slow", "q"]
        self.assertEqual(self.fetch(body), [one, [*one[:3], None, *one[4:8], "", None]])

    def test_a_header_that_the_host_fills_in(self) -> None:
        asked: list[dict[str, object]] = []

        def fetch(args: dict[str, object]) -> dict[str, object]:
            asked.append(args)
            return {"status_code": 200, "headers": {}, "body": "ok", "url": "https://x/y", "truncated": False}

        body = "await host.http.fetch('GET', 'https://x/y', headers={'X-Key': {'$secret': 'k', 'format': 'Bearer {}'}, 'X-N': 7})\nreturn {'said': 1}"
        self.shu(body, http__fetch=fetch).run("list")
        headers = asked[0]["headers"]
        assert isinstance(headers, dict)
        self.assertEqual((headers["X-Key"], headers["X-N"]), ({"$secret": "k", "format": "Bearer {}"}, "7"))

    def test_or_none_is_none_for_4xx_only(self) -> None:
        self.web.answers["/down"] = 503, {}, b"down"
        self.web.answers["/a"] = 200, {}, b"ok"
        body = """
            said = [await host.http.fetch_or_none("GET", URL + "/gone"), (await host.http.fetch_or_none("GET", URL + "/a")).body,
                await host.http.fetch_bytes_or_none("GET", URL + "/gone")]
            try:
                await host.http.fetch_or_none("GET", URL + "/down")
            except Exception as exc:
                said.append(type(exc).__name__)
            return {"said": said}
        """
        self.assertEqual(self.fetch(body), [None, "ok", None, "HttpRequestFailed"])

    def test_a_failure_that_escapes_is_told_as_the_providers(self) -> None:
        shu = self.shu(f"await host.http.fetch('GET', {self.web.url!r} + '/gone')", http__fetch=self.web.fetch)
        error = shu.run("list")["error"]
        self.assertEqual((error["plugin_code"], error["message"]), ("not_found", f"Provider HTTP error (404): nothing here"))

    def test_an_option_nobody_knows(self) -> None:
        shu = self.shu("await host.http.fetch('GET', 'http://x', verify=False)")
        self.assertIn("host.http takes no verify", shu.run("list")["error"]["message"])


if __name__ == "__main__":
    unittest.main()
