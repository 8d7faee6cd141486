"""Shu plugins as they are served: loading, calls of all shapes, results, streams, actions, cancellation."""

from __future__ import annotations

import unittest

from shu import Shu, execute, package, until


REASONS = ("too_large", "ext_filtered", "unsupported_format", "empty_extraction", "auth", "network", "other")


class Served(unittest.TestCase):
    def shu(self, root: str, **options: object) -> Shu:
        shu = Shu(root, **options).__enter__()
        self.addCleanup(shu.__exit__)
        return shu

    def failure(self, result: object) -> tuple[str, str]:
        """Return the plugin's code and the message of a failed call."""
        self.assertEqual(result["status"], "failed", result)
        self.assertEqual(result["error"]["code"], "plugin_error", result)
        return result["error"]["plugin_code"], result["error"]["message"]

    def data(self, result: object) -> object:
        self.assertEqual(result["status"], "succeeded", result)
        return result["data"]


class Layout(Served):
    def test_the_handshake_names_the_plugin(self) -> None:
        shu = self.shu(package(execute("return {'status': 'success'}")))
        want = {"protocol": "2", "plugins": [{"name": "notes", "version": "1.2.3"}], "concurrency": 1, "features": ["cancel", "emit"]}
        self.assertEqual(shu.handshake, want)

    def test_the_package_answers_to_the_name_in_its_manifest_whatever_its_directory_is_called(self) -> None:
        source = execute(
            "return {'status': 'success', 'data': [one, two, __name__, getattr(plugins, '__file__', None)]}",
            "import plugins\nfrom plugins.notes.words import one\nfrom .words import two",
        )
        shu = self.shu(package(source, words="one, two = 1, 2"))
        self.assertEqual(self.data(shu.run()), [1, 2, "plugins.notes.plugin", None])

    def test_an_entrypoint_is_imported_with_the_package_on_the_path(self) -> None:
        root = package("", notes_plugin____init__="", notes_plugin__main=execute("return {'status': 'success', 'data': __name__}"))
        shu = self.shu(root, module="notes_plugin.main", entry="notes_plugin/main.py")
        self.assertEqual(self.data(shu.run()), "notes_plugin.main")

    def test_vendor_comes_before_everything_else(self) -> None:
        root = package(execute("import colorsys\nreturn {'status': 'success', 'data': colorsys.MINE}"), vendor__colorsys="MINE = True")
        self.assertIs(self.data(self.shu(root).run()), True)

    def test_an_init_of_the_package_runs(self) -> None:
        root = package(execute("from plugins.notes import WORD\nreturn {'status': 'success', 'data': WORD}"), __init__="WORD = 'w'")
        self.assertEqual(self.data(self.shu(root).run()), "w")

    def test_a_module_that_fails_fails_the_call_and_says_where(self) -> None:
        shu = self.shu(package("x = 1\nraise ValueError('broken')"))
        result = shu.run()
        self.assertEqual(self.failure(result), ("plugin_execute_error", "ValueError: broken"))
        self.assertEqual(result["error"]["details"]["at"], "plugin.py:2")

    def test_a_class_that_is_not_there(self) -> None:
        code, message = self.failure(self.shu(package("class Other: ...")).run())
        self.assertIn("plugin.py has no class Plugin", message)

    def test_a_package_that_is_not_installed_is_a_missing_dependency(self) -> None:
        error = self.shu(package("import no_such_package_here\nclass Plugin: ...")).run()["error"]
        self.assertEqual(error["code"], "dependency_missing")
        self.assertIn("no_such_package_here", error["message"])

    def test_a_module_in_another_file_is_refused_at_the_start(self) -> None:
        with self.assertRaisesRegex(AssertionError, "the module other is not in the file plugin.py"):
            Shu(package(""), module="other").__enter__()

    def test_a_call_has_an_instance_of_its_own(self) -> None:
        shu = self.shu(
            package(
                """
                class Plugin:
                    seen = None
                    async def execute(self, params, context, host):
                        before, self.seen = self.seen, params["x"]
                        return {"status": "success", "data": before}
                """
            )
        )
        self.assertEqual([self.data(shu.run(x=1)), self.data(shu.run(x=2))], [None, None])


class Calls(Served):
    def test_execute_is_called_positionally(self) -> None:
        shu = self.shu(package("class Plugin:\n    async def execute(self, a, b, c):\n        return {'status': 'success', 'data': [a, b['user_id']]}"))
        self.assertEqual(self.data(shu.run("list", n=1)), [{"n": 1, "op": "list"}, "u-7"])

    def test_execute_that_is_no_coroutine(self) -> None:
        shu = self.shu(package("class Plugin:\n    def execute(self, p, c, h):\n        return {'status': 'success', 'data': 'sync'}"))
        self.assertEqual(self.data(shu.run()), "sync")

    def test_execute_that_is_no_coroutine_may_run_a_loop_of_its_own_and_reach_services(self) -> None:
        source = """
            import asyncio
            class Plugin:
                def execute(self, params, context, host):
                    return asyncio.run(self.work(host))
                async def work(self, host):
                    found = await asyncio.gather(host.cache.get("a"), host.cache.get("b"))
                    return {"status": "success", "data": [*found, host.identity.user_email]}
        """
        shu = self.shu(package(source))
        shu.services = {"cache.get": lambda a: {"found": True, "value": a["key"]}, "identity.current": lambda a: {"email": "e"}}
        self.assertEqual(self.data(shu.run()), ["a", "b", "e"])

    def test_the_operation_is_put_into_op_and_the_hosts_part_is_left_out_and_nulls_where_there_is_a_schema(self) -> None:
        shu = self.shu(package(execute("return {'status': 'success', 'data': params}")))
        got = self.data(shu.run("list", op="other", a=None, b={"c": None}, __host={"x": 1}, __schedule_id="s"))
        self.assertEqual(got, {"op": "list", "a": None, "b": {"c": None}, "__schedule_id": "s"})
        shu = self.shu(package(execute("return {'status': 'success', 'data': params}") + "\n    def get_schema(self): return {'type': 'object'}\n"))
        got = self.data(shu.run("list", op="other", a=None, b={"c": None}, __host={"x": 1}, __schedule_id="s"))
        self.assertEqual(got, {"op": "list", "b": {"c": None}, "__schedule_id": "s"})

    def test_a_plugin_without_operations_gets_no_op(self) -> None:
        shu = self.shu(package(execute("return {'status': 'success', 'data': params}")))
        self.assertEqual(self.data(shu.run(q=1)), {"q": 1})

    def test_an_operation_that_is_called_execute_gets_its_op(self) -> None:
        schema = "\n    def get_schema(self): return {'properties': {'op': {'enum': ['execute', 'list']}}}\n"
        shu = self.shu(package(execute("return {'status': 'success', 'data': params}") + schema))
        self.assertEqual(self.data(shu.run()), {"op": "execute"})

    def test_the_context_is_read_as_a_dict_and_by_attributes(self) -> None:
        body = "return {'status': 'success', 'data': [context.user_id, context['user_id'], context.get('agent_key'), context.agent_key, context.idempotency_key]}"
        shu = self.shu(package(execute(body)))
        self.assertEqual(self.data(shu.run()), ["u-7", "u-7", None, None, "k1"])
        shu.context["auth"] = {"principal_id": "bot", "principal": {"type": "agent", "id": "bot"}}
        self.assertEqual(self.data(shu.run()), ["bot", "bot", "bot", "bot", "k1"])
        shu.context.update(key="", call_id="0199")
        self.assertEqual(self.data(shu.run())[-1], "0199")

    def test_one_loop_lives_as_long_as_the_process(self) -> None:
        shu = self.shu(package(execute("LOOPS.append(asyncio.get_running_loop())\nreturn {'status': 'success', 'data': len(set(map(id, LOOPS)))}", "import asyncio\nLOOPS = []")))
        self.assertEqual([self.data(shu.run()), self.data(shu.run())], [1, 1])

    def test_input_that_is_no_object(self) -> None:
        shu = self.shu(package(execute("return {'status': 'success'}")))
        frame = shu.finish(shu.begin("list", [1]))
        self.assertEqual(frame["result"]["error"]["code"], "invalid_input")

    def test_prints_go_to_standard_error(self) -> None:
        shu = self.shu(package(execute("print('hello')\nreturn {'status': 'success'}")))
        shu.run()
        self.assertIn("hello", shu.end()[1])


class Results(Served):
    def run_(self, body: str, head: str = "", **params: object) -> object:
        return self.shu(package(execute(body, head))).run("list", **params)

    def test_a_plugin_result_with_all_its_members(self) -> None:
        body = """
            return PluginResult.ok({"n": 1}, cost={"tokens": 5, "api_calls": 2, "note": "x", "deep": [1]}, diagnostics=["d"],
                skips=[Skip("f1", SkipReason.TOO_LARGE, "big.pdf", {"size": 9})], citations=[{"type": "web", "ref": "r", "label": "l"}],
                next_cursor="c2")
        """
        result = self.run_(body, "from shu_plugin_sdk import PluginResult, Skip, SkipReason")
        want = {
            "status": "succeeded",
            "data": {"n": 1},
            "metrics": {"tokens": 5, "api_calls": 2, "note": "x"},
            "diagnostics": ["d"],
            "skips": [{"id": "f1", "name": "big.pdf", "reason": "too_large", "details": {"size": 9}}],
            "citations": [{"type": "web", "ref": "r", "label": "l"}],
            "next_cursor": "c2",
        }
        self.assertEqual(result, want)

    def test_a_plugins_own_class_is_a_result(self) -> None:
        head = "class Mine:\n    def __init__(self): self.status, self.data, self.error = 'success', {'a': (1, 2)}, None"
        self.assertEqual(self.data(self.run_("return Mine()", head)), {"a": [1, 2]})

    def test_skips_of_any_class_and_of_the_sdk_say_what_they_have(self) -> None:
        head = "from shu_plugin_sdk import Skip\nclass Mine:\n    def __init__(self): self.id, self.reason = 'b', 'auth'"
        result = self.run_("return {'status': 'success', 'skips': [Skip('a', 'network'), Mine(), {'id': 'c'}]}", head)
        self.assertEqual(result["skips"], [{"id": "a", "reason": "network"}, {"id": "b", "reason": "auth"}, {"id": "c"}])

    def test_a_skip_has_a_reason_of_the_contract(self) -> None:
        skips = [{"id": n, "reason": reason} for n, reason in enumerate(REASONS)]
        self.assertEqual(self.run_(f"return {{'status': 'success', 'skips': {skips!r}}}")["skips"], skips)
        made = "[{'id': 'a', 'reason': 'cursed', 'details': {'n': 1}}, {'id': 'b', 'reason': 'lost', 'details': 'x'}, Skip('c', 'cursed')]"
        result = self.run_(f"return {{'status': 'success', 'skips': {made}}}", "from shu_plugin_sdk import Skip")
        want = [{"id": "a", "reason": "other", "details": {"n": 1, "reason": "cursed"}}, {"id": "b", "reason": "other", "details": {"details": "x", "reason": "lost"}}]
        self.assertEqual(result["skips"], [*want, {"id": "c", "reason": "other", "details": {"reason": "cursed"}}])

    def test_a_status_that_is_an_enum(self) -> None:
        head = "import enum\nclass S(str, enum.Enum):\n    OK = 'success'"
        self.assertEqual(self.data(self.run_("return {'status': S.OK, 'data': 1}", head)), 1)

    def test_a_dict_without_status_is_the_data(self) -> None:
        self.assertEqual(self.data(self.run_("return {'items': [1]}")), {"items": [1]})
        self.assertEqual(self.data(self.run_("return {'status': 'open', 'id': 1}")), {"status": "open", "id": 1})

    def test_an_error_keeps_its_code_message_and_details(self) -> None:
        result = self.run_("return {'status': 'error', 'error': {'code': 'no_label', 'message': 'no such label', 'label': 'x'}, 'data': {'done': 3}}")
        self.assertEqual(self.failure(result), ("no_label", "no such label"))
        self.assertEqual((result["error"]["details"], result["data"]), ({"label": "x"}, {"done": 3}))

    def test_an_error_of_an_object_is_kept_as_it_is(self) -> None:
        for made in ("PluginResult('error', {'done': 3}, {'code': 'c', 'message': 'm', 'label': [1]})", "type('R', (), {'status': 'error', 'data': {'done': 3}, 'error': {'code': 'c', 'message': 'm', 'label': [1]}})()"):
            with self.subTest(made):
                result = self.run_(f"from shu_plugin_sdk import PluginResult; return {made}")
                self.assertEqual(self.failure(result), ("c", "m"))
                self.assertEqual(result["members"], {"error": {"code": "c", "message": "m", "label": [1]}})

    def test_errors_that_are_text_or_missing(self) -> None:
        self.assertEqual(self.failure(self.run_("return {'status': 'error', 'error': 'went wrong'}")), ("plugin_execute_error", "went wrong"))
        code, message = self.failure(self.run_("return {'status': 'error'}"))
        self.assertEqual((code, message), ("plugin_execute_error", "the plugin failed and gave no reason"))

    def test_a_timeout_is_one(self) -> None:
        result = self.run_("return {'status': 'timeout', 'error': {'message': 'provider was slow'}, 'diagnostics': ['d']}")
        self.assertEqual(result["error"]["code"], "timeout")
        self.assertEqual((result["error"]["message"], result["diagnostics"]), ("provider was slow", ["d"]))

    def test_what_is_no_result(self) -> None:
        result = self.run_("return None")
        self.assertEqual((result["status"], result["data"], result["returned"]), ("succeeded", None, "none"))
        for value, named in (("3", "a value of type int"), ("[1]", "a value of type list")):
            code, message = self.failure(self.run_(f"return {value}"))
            self.assertEqual(code, "plugin_execute_error")
            self.assertIn(f"execute returned {named}", message)

    def test_data_that_is_no_json_names_its_place(self) -> None:
        code, message = self.failure(self.run_("return {'status': 'success', 'data': {'a': [object()]}}"))
        self.assertEqual(code, "plugin_execute_error")
        self.assertIn("/data/a/0 is a object", message)

    def test_dates_and_bytes_in_data(self) -> None:
        head = "import datetime"
        got = self.data(self.run_("return {'status': 'success', 'data': {'d': datetime.date(2026, 1, 2), 'b': b'x'}}", head))
        self.assertEqual(got, {"d": "2026-01-02", "b": {"$bytes": "eA=="}})

    def test_exceptions_become_plugin_execute_error_and_the_process_goes_on(self) -> None:
        shu = self.shu(package(execute("if 'exit' in params: raise SystemExit(3)\nif 'rec' in params:\n    def f(): f()\n    f()\nif 'x' in params: raise KeyError('k')\nreturn {'status': 'success', 'data': 1}")))
        self.assertEqual(self.failure(shu.run(x=1)), ("plugin_execute_error", "KeyError: 'k'"))
        self.assertEqual(self.failure(shu.run(exit=1)), ("plugin_execute_error", "SystemExit: 3"))
        self.assertIn("RecursionError", self.failure(shu.run(rec=1))[1])
        self.assertEqual(self.data(shu.run()), 1)

    def test_an_exit_in_a_task_ends_the_call_and_not_the_process(self) -> None:
        body = "if 'x' in params:\n    async def leave(): raise SystemExit(1)\n    await asyncio.gather(leave())\nreturn {'status': 'success', 'data': 1}"
        shu = self.shu(package(execute(body, "import asyncio")))
        self.assertEqual(self.failure(shu.run(x=1))[0], "plugin_execute_error")
        self.assertEqual(self.data(shu.run()), 1)

    def test_a_result_that_is_too_long_for_the_wire(self) -> None:
        result = self.run_("return {'status': 'success', 'data': 'x' * (5 << 20)}")
        self.assertEqual((result["error"]["code"], result["error"]["plugin_code"]), ("limit_exceeded", "output_too_large"))
        details = result["error"]["details"]
        self.assertGreater(details["size"], details["limit"])
        own = self.run_("return {'status': 'error', 'error': {'code': 'output_too_large', 'message': 'm'}}")
        self.assertEqual(self.failure(own), ("output_too_large", "m"))

    def test_a_failed_request_of_a_provider(self) -> None:
        body = "raise HttpRequestFailed(429, 'https://api.example.com/x', {'error': {'message': 'slow down', 'code': 'quota'}}, {'Retry-After': '7'})"
        result = self.run_(body, "from shu_plugin_sdk import HttpRequestFailed")
        self.assertEqual(self.failure(result), ("rate_limited", "Provider HTTP error (429): slow down"))
        error = result["error"]
        self.assertEqual((error["retryable"], error["retry_after_ms"]), (True, 7000))
        self.assertEqual(error["details"]["provider_error_code"], "quota")


class Classes(Served):
    def test_a_class_that_can_run_nothing_is_refused_when_it_is_described(self) -> None:
        actions = "async def list_actions(self): return [{'name': 'send'}]"
        performs = "async def perform_action(self, name, args, context, host): return {'status': 'ok'}"
        for body, works in (
            ("pass", False),
            ("execute = None", False),
            ("execute = 'text'", False),
            (actions, False),
            (performs, False),
            (f"{actions}\n    {performs}", True),
            ("def execute(self, params, context, host): return {}", True),
        ):
            with self.subTest(body):
                said = self.shu(package(f"class Plugin:\n    {body}\n")).describe()
                self.assertEqual("the class Plugin has no execute: no operation can run" in str(said), not works)


class Streams(Served):
    SOURCE = """
        class Plugin:
            async def execute(self, params, context, host):
                yield {"type": "progress", "message": "half", "done": 1, "total": 2}
                yield {"type": "content", "data": {"text": "a"}}
                yield "b"
                if params.get("end"):
                    yield {"status": "success", "data": {"n": 2}, "next_cursor": "c"}
                if params.get("final"):
                    yield {"type": "result", "data": {"n": 3}}
                if params.get("fail"):
                    raise ValueError("mid stream")
    """

    def test_events_are_passed_on_in_order_and_the_result_comes_last(self) -> None:
        shu = self.shu(package(self.SOURCE))
        result = shu.run("list", end=True)
        self.assertEqual((result["data"], result["next_cursor"]), ({"n": 2}, "c"))
        said = [(event["seq"], event["kind"], event["data"]) for event in shu.events]
        self.assertEqual(said, [(1, "progress", {"message": "half", "done": 1, "total": 2}), (2, "content", {"text": "a"}), (3, "content", "b")])

    def test_a_result_event_and_no_result_at_all(self) -> None:
        shu = self.shu(package(self.SOURCE))
        self.assertEqual(self.data(shu.run("list", final=True)), {"n": 3})
        self.assertIsNone(self.data(shu.run("list")))

    def test_a_stream_that_fails(self) -> None:
        shu = self.shu(package(self.SOURCE))
        self.assertEqual(self.failure(shu.run("list", fail=True)), ("plugin_execute_error", "ValueError: mid stream"))
        self.assertEqual(len(shu.events), 3)

    def test_execute_may_return_an_iterator(self) -> None:
        source = """
            class Plugin:
                async def execute(self, params, context, host):
                    async def events():
                        yield {"type": "content", "content": "x"}
                        yield {"status": "error", "error": {"code": "e", "message": "m"}}
                    return events()
        """
        shu = self.shu(package(source))
        self.assertEqual(self.failure(shu.run()), ("e", "m"))
        self.assertEqual([event["data"] for event in shu.events], ["x"])


class Cancelling(Served):
    def test_a_cancel_cancels_the_task_and_the_process_goes_on(self) -> None:
        body = """
            if "x" not in params: return {"status": "success", "data": SEEN}
            try:
                host.log.info("waiting")
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                SEEN.append("cancelled")
                raise
        """
        shu = self.shu(package(execute(body, "import asyncio\nSEEN = []")))
        id = shu.begin("list", {"x": 1})
        shu.take(shu.receive())
        shu.cancel(f"{id:032x}")
        self.assertEqual(shu.finish(id)["error"]["data"]["code"], "cancelled")
        self.assertEqual(self.data(shu.run("list")), ["cancelled"])

    def test_a_cancel_ends_requests_that_nobody_answers(self) -> None:
        body = "await asyncio.gather(host.cache.get('a'), host.cache.get('b'), asyncio.to_thread(lambda: host.identity.user_email))"
        shu = self.shu(package(execute(body, "import asyncio")))
        id = shu.begin("list", {})
        asked = {shu.receive()["method"] for _ in range(3)}
        self.assertEqual(asked, {"cache.get", "identity.current"})
        shu.cancel(f"{id:032x}")
        self.assertEqual(shu.finish(id)["error"]["data"]["code"], "cancelled")

    def test_a_cancel_reaches_a_plugin_that_is_no_coroutine_at_its_next_service(self) -> None:
        source = """
            class Plugin:
                def execute(self, params, context, host):
                    while True:
                        host.identity.user_email
        """
        shu = self.shu(package(source))
        id = shu.begin("list", {})
        shu.receive()
        shu.cancel(f"{id:032x}")
        self.assertEqual(shu.finish(id)["error"]["data"]["code"], "cancelled")

    def test_tasks_that_are_left_behind_are_ended(self) -> None:
        body = """
            async def later():
                try: await asyncio.sleep(30)
                finally: ENDED.append(1)
            if params.get("x"):
                asyncio.ensure_future(later())
                await asyncio.sleep(0)
            return {"status": "success", "data": len(ENDED)}
        """
        shu = self.shu(package(execute(body, "import asyncio\nENDED = []")))
        self.assertEqual(self.data(shu.run(x=1)), 0)
        self.assertEqual(self.data(shu.run()), 1)

    def test_shutdown_ends_the_process(self) -> None:
        shu = self.shu(package(execute("return {'status': 'success'}")))
        shu.run()
        shu.send({"jsonrpc": "2.0", "id": 99, "method": "shutdown", "params": {}})
        self.assertTrue(until(lambda: shu.process.poll() is not None))
        self.assertEqual(shu.wait()[0], 0)


ACTIONS = """
    class Plugin:
        def get_schema(self):
            return {"type": "object", "title": "Notes", "description": "Notes of a team.", "properties": {"op": {"enum": ["list", "sync"]}}}
        def get_schema_for_op(self, op):
            return {"type": "object", "title": op, "properties": {"limit": {"type": "integer"}}} if op == "list" else None
        def get_output_schema(self):
            return {"type": "object"}
        async def execute(self, params, context, host):
            return {"status": "success", "data": {"op": params["op"]}}
        async def list_actions(self):
            return [{"name": "send", "description": "Send a note.", "params_schema": {"type": "object"}, "required_scopes": ["notes.send"],
                     "requires_approval": True, "risk_level": "high"}, {"name": "mark", "params_schema": {"type": "object"}}]
        async def perform_action(self, name, args, context, host):
            if not context.approved and name == "send":
                return {"status": "pending_approval", "action_id": "a1", "preview": {"to": args["to"]}}
            if name == "mark" and not context.approved:
                await host.storage.put("marked", True)
            if args.get("stubborn"):
                return {"status": "pending_approval", "action_id": "a2", "preview": None}
            return {"status": "ok", "action_id": "a1", "result": {"sent": args["to"], "key": context.idempotency_key}}
"""


class Describe(Served):
    def test_operations_with_their_schemas_and_actions(self) -> None:
        said = self.shu(package(ACTIONS), operations=["archive", "list"]).describe()
        self.assertEqual(sorted(said["operations"]), ["archive", "list", "mark", "send", "sync"])
        self.assertEqual((said["name"], said["version"]), ("notes", "1.2.3"))
        self.assertEqual(said["operations"]["list"]["input"], {"type": "object", "title": "list", "properties": {"limit": {"type": "integer"}}})
        sync = said["operations"]["sync"]
        self.assertEqual((sync["title"], sync["description"], sync["output"], sync["kind"]), ("Notes", "Notes of a team.", {"type": "object"}, "operator"))
        want = {
            "kind": "operator",
            "preview": True,
            "policy_tags": ["action", "requires_approval", "risk_high"],
            "permissions": ["notes.send"],
            "input": {"type": "object"},
            "description": "Send a note.",
        }
        self.assertEqual(said["operations"]["send"], want)
        self.assertEqual(said["operations"]["mark"]["policy_tags"], ["action"])

    def test_a_plugin_without_operations_has_one(self) -> None:
        source = execute("return {}") + "\n    def get_schema(self): return None\n"
        self.assertEqual(self.shu(package(source)).describe()["operations"], {"execute": {"kind": "operator"}})

    def test_the_permissions_a_plugin_asks_for_hold_for_all_it_does(self) -> None:
        operations = self.shu(package(ACTIONS + "        def requires_permission(self): return 'plugin:notes'\n")).describe()["operations"]
        self.assertEqual(operations["list"]["permissions"], ["plugin:notes"])
        self.assertEqual(operations["send"]["permissions"], ["plugin:notes", "notes.send"])

    def test_operations_that_only_get_schema_for_op_knows(self) -> None:
        source = """
            from .more import MORE
            SCHEMAS = {"list": {"type": "object", "title": "L"}, "purge": {"type": "object", "title": "P"}}
            class Plugin:
                def get_schema(self): return {"type": "object", "properties": {"op": {"enum": ["list"]}, "limit": {"type": "integer"}}}
                def get_schema_for_op(self, op):
                    return {**SCHEMAS, **MORE}[op]  # of any other it raises
                async def execute(self, params, context, host):
                    return {"status": "success", "data": params}
        """
        more = "MORE = {'merge': {'properties': {'op': {'enum': ['merge']}}}, 'of_another': {'properties': {'op': {'enum': ['list']}}}, 'number': {'type': 'integer'}, 'Purge': {'type': 'object'}}"
        shu = self.shu(package(source, more=more, vendor__dep="X = 'vendored'"), operations=["archive"])
        said = shu.describe()["operations"]
        self.assertEqual(sorted(said), ["archive", "list", "merge", "purge"])
        self.assertEqual((said["list"]["title"], said["purge"]["input"]), ("L", {"type": "object", "title": "P"}))
        self.assertEqual(said["archive"]["input"]["properties"]["op"], {"enum": ["list"]})
        self.assertEqual(self.data(shu.run("purge", n=1)), {"op": "purge", "n": 1})

    def test_a_schema_for_every_name_names_no_operation(self) -> None:
        source = execute("return {}") + "\n    def get_schema_for_op(self, op): return {'type': 'object', 'title': 'word'}\n"
        self.assertEqual(sorted(self.shu(package(source), operations=["list"]).describe()["operations"]), ["execute", "list"])

    def test_a_schema_of_an_operation_that_raises_is_that_of_the_plugin(self) -> None:
        for raised in ("ValueError('x')", "SystemExit(3)", "KeyError(op)"):
            methods = f"\n    def get_schema(self): return {{'title': 'T'}}\n    def get_schema_for_op(self, op): raise {raised}\n"
            shu = self.shu(package(execute("return {'data': params}") + methods), operations=["list"])
            said = shu.describe()["operations"]
            self.assertEqual((said["list"]["input"], sorted(said)), ({"title": "T"}, ["execute", "list"]))
            self.assertEqual(self.data(shu.run("list", a=None, b=1)), {"data": {"op": "list", "b": 1}})

    def test_execute_stands_beside_actions_where_it_has_parameters(self) -> None:
        actions = "\n    def list_actions(self): return [{'name': 'send'}]\n    def perform_action(self, *_): return {'status': 'ok'}\n"
        schema = "    def get_schema(self): return {'type': 'object', 'properties': {'q': {'type': 'string'}}}\n"
        self.assertEqual(sorted(self.shu(package(execute("return {}") + actions)).describe()["operations"]), ["send"])
        said = self.shu(package(execute("return {}") + actions + schema)).describe()["operations"]
        self.assertEqual((sorted(said), said["execute"]["input"]["properties"]["op"]["not"]), (["execute", "send"], {"enum": ["send"]}))

    def test_a_schema_that_raises_is_none(self) -> None:
        for raised in ("ValueError('x')", "SystemExit(3)"):
            methods = f"\n    def get_schema(self): raise {raised}\n    async def get_output_schema(self): raise {raised}\n"
            actions = "    def list_actions(self): return [{'name': 'send'}]\n    def perform_action(self, *_): return {'status': 'ok', 'result': 1}\n"
            shu = self.shu(package(execute("return {'data': params}") + methods + actions), operations=["list"])
            said = shu.describe()["operations"]
            self.assertEqual((sorted(said), said["list"]), (["list", "send"], {"kind": "operator"}))
            self.assertEqual(self.data(shu.run("list", a=None, b=1)), {"data": {"op": "list", "a": None, "b": 1}})
            self.assertEqual(shu.run("send")["data"], 1)

    def test_permissions_and_actions_that_cannot_be_had_are_an_error(self) -> None:
        for method in ("requires_permission", "list_actions"):
            error = self.shu(package(execute("return {}") + f"\n    def {method}(self): raise ValueError('not today')\n")).describe()
            self.assertEqual(error["message"], "describe: plugin.py:6: not today")

    def test_operations_without_any_schema_keep_what_is_none(self) -> None:
        schema = "\n    def get_schema_for_op(self, op): return {'type': 'object'} if op == 'one' else None\n"
        shu = self.shu(package(execute("return {'data': params}") + schema), operations=["two"])
        said = shu.describe()["operations"]
        self.assertEqual((sorted(said), said["two"]), (["execute", "one", "two"], {"kind": "operator"}))
        self.assertEqual((said["execute"]["input"]["$comment"], said["execute"]["input"]["properties"]["op"]["not"]), ("unchecked", {"enum": ["two", "one"]}))
        for name, params, want in (
            ("one", {"x": None}, {"op": "one"}),
            ("two", {"x": None}, {"op": "two", "x": None}),
            ("execute", {"op": "four", "x": None}, {"op": "four", "x": None}),
        ):
            self.assertEqual(self.data(shu.run(name, **params)), {"data": want})


class Actions(Served):
    def test_an_approved_action_is_performed_with_the_key(self) -> None:
        result = self.shu(package(ACTIONS)).run("send", to="ada")
        self.assertEqual(result["data"], {"sent": "ada", "key": "k1"})
        self.assertEqual(result["details"], {"action_id": "a1"})

    def test_a_preview_is_what_the_action_says_before_it_is_approved(self) -> None:
        result = self.shu(package(ACTIONS)).run("send", method="preview", to="ada")
        self.assertEqual(result["preview"], {"action": "send", "params": {"to": "ada"}, "preview": {"to": "ada"}})

    def test_a_preview_stops_before_the_first_effect(self) -> None:
        shown = self.shu(package(ACTIONS)).run("mark", method="preview", to="ada")["preview"]
        self.assertEqual((shown["action"], shown["stopped_at"]), ("mark", "no storage.put"))

    def test_an_operation_that_is_no_action_has_no_preview(self) -> None:
        self.assertEqual(self.shu(package(ACTIONS)).run("list", method="preview")["code"], -32601)

    def test_an_action_that_asks_again_has_failed(self) -> None:
        result = self.shu(package(ACTIONS)).run("send", to="ada", stubborn=True)
        self.assertEqual(self.failure(result)[0], "pending_approval")
        self.assertEqual(result["error"]["details"]["action_id"], "a2")

    def test_operations_beside_actions_are_executed(self) -> None:
        self.assertEqual(self.data(self.shu(package(ACTIONS)).run("list")), {"op": "list"})


if __name__ == "__main__":
    unittest.main()
