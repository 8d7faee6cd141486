"""Version 2 against plugins of all sorts, each a process of its own."""

from __future__ import annotations

import os
import signal
import time
import unittest

from peer import SDK, Peer, write_plugin

HEAD = """
    from __future__ import annotations
    import os, subprocess, sys, threading, time
    from mortise import *
    plugin = Plugin("test.plugin", version="1.0.0", concurrency={concurrency})
"""
MISC = HEAD.format(concurrency=1) + """
    @plugin.tool
    def echo(value: object) -> object: return value

    @plugin.tool
    def text(size: int) -> str: return "x" * size

    @plugin.tool
    def odd(what: str) -> object:
        deep = []
        for _ in range(100): deep = [deep]
        return {"nan": float("nan"), "inf": [float("inf")], "set": {1}, "bytes": b"x", "surrogate": "a\\ud800",
                "deep": deep, "key": {(1, 2): 3}, "brackets": ["[{" * 200] * 70, "huge": 10 ** 5000}[what]

    @plugin.tool
    def prints() -> bool:
        print("from print"); sys.stdout.write("no newline")
        os.write(1, b"from os.write\\n")
        subprocess.run(["echo", "from a child"], check=True)
        return sys.stdin.read() == ""

    @plugin.tool
    def failing(how: str, ctx: Context) -> None:
        if how == "long": raise ValueError("x" * 10000)
        if how == "surrogate": raise ValueError("a\\ud800")
        if how == "exit": sys.exit(3)
        if how == "builtin": exit(3)
        if how == "quit": quit()
        if how == "details": raise PluginError("m", code="C", details={"a": {1}}, retryable=True, retry_after_ms=7)
        if how == "spoken": raise PluginError("later", code="rate_limited", retry_after_ms=5)
        if how == "type": len(1)
        if how == "service": ctx.service("cache.get", {})
        if how == "emit": ctx.emit({1})

    @plugin.tool
    def logs(ctx: Context) -> None:
        ctx.log.warning("a\\ud800" + "x" * 9000, bad={1}, nan=float("nan"))

    @plugin.tool
    def spin(ctx: Context, n: int = 0) -> int:
        for i in range(n): ctx.progress("spin", done=i + 1, total=n)
        return n

    @plugin.tool
    async def nap(seconds: float) -> str:
        import asyncio
        await asyncio.sleep(seconds)
        return "slept"

    @plugin.tool
    def ask(ctx: Context) -> dict:
        return ctx.call("a.b/c", {"x": 1})

    @plugin.tool
    def about(c: Context) -> list:
        return [c.auth, c.trace, c.key, c.session, c.deadline_ms, c.scratch, c.artifacts_dir, c.cancelled]

    @plugin.tool
    def full() -> object:
        return Result(1, summary="s", metrics={"tokens_in": 2}, diagnostics=["d"], next_cursor="n")

    @plugin.tool
    def leave(ctx: Context) -> int:
        threading.Thread(target=lambda: ctx.cache.get("never"), daemon=True).start()
        time.sleep(0.1)
        return 1

    @plugin.tool
    def fan(ctx: Context) -> list:
        found = [None] * 3
        def one(i): found[i] = ctx.cache.get(str(i))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        return found

    plugin.run()
"""


class Serial(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.path = write_plugin(MISC)

    def setUp(self) -> None:
        self.plugin = Peer(self.path).__enter__()
        self.addCleanup(self.plugin.__exit__)
        self.plugin.initialize(paths={"scratch": "/s", "artifacts": "/a"})

    def test_results_that_are_not_json_fail_the_call_alone(self) -> None:
        for what in ["nan", "inf", "set", "bytes", "surrogate", "deep", "key"]:
            with self.subTest(what):
                error = self.plugin.call("odd", what=what)
                codes = error["data"]["code"], error["data"]["plugin_code"]
                self.assertEqual(codes, ("plugin_error", "INVALID_RESULT"))
        self.assertEqual(self.plugin.call("odd", what="brackets"), ["[{" * 200] * 70, "brackets in text are no nesting")

    def test_a_result_over_the_limit_fails_and_huge_frames_under_it_pass(self) -> None:
        self.assertEqual(self.plugin.call("text", size=5 << 20)["data"]["code"], "limit_exceeded")
        big = ["é" * 1000] * 1500
        self.assertEqual(self.plugin.call("echo", value=big), big)
        self.assertEqual(len(self.plugin.call("text", size=3 << 20)), 3 << 20)

    def test_frames_may_come_in_any_pieces(self) -> None:
        params = b'{"call":"1","operation":"a/echo","input":{"value":"\xc3\xa9"}}'
        frame = b'{"jsonrpc":"2.0","id":%d,"method":"execute","params":' + params + b"}\n"
        for byte in frame.replace(b"%d", b"7"):
            self.plugin.send_bytes(bytes([byte]))
        self.assertEqual(self.plugin.receive()["result"]["data"], "é")
        both = frame.replace(b"%d", b"8") + frame.replace(b"%d", b"9")
        self.plugin.send_bytes(both[:200])
        self.plugin.send_bytes(both[200:])
        self.assertEqual([self.plugin.receive()["id"], self.plugin.receive()["id"]], [8, 9])

    def test_integers_are_exact_and_overlong_ones_fail_the_call_alone(self) -> None:
        self.assertEqual(self.plugin.call("echo", value=[2**64 + 1, -(10**30)]), [2**64 + 1, -(10**30)])
        start = '{"jsonrpc":"2.0","id":77,"method":"execute","params":{"operation":"a/echo","input":{"value":%s}}}\n'
        self.plugin.send_bytes((start % ("1" * 5000)).encode())
        self.assertEqual(self.plugin.receive()["id"], 77)
        self.assertEqual(self.plugin.call("echo", value=1), 1)

    def test_stray_output_goes_to_stderr(self) -> None:
        self.assertIs(self.plugin.call("prints"), True, "standard input is empty")
        errors = self.plugin.end()[1]
        for text in ["from print", "no newline", "from os.write", "from a child"]:
            self.assertIn(text, errors)

    def test_failures(self) -> None:
        cases = {
            "long": ("plugin_error", "ValueError"),
            "surrogate": ("plugin_error", "ValueError"),
            "exit": ("plugin_error", "SystemExit"),
            "builtin": ("plugin_error", "SystemExit"),
            "quit": ("plugin_error", "SystemExit"),
            "details": ("plugin_error", "C"),
            "spoken": ("rate_limited", ""),
            "type": ("plugin_error", "TypeError"),
            "emit": ("plugin_error", "INVALID_RESULT"),
        }
        for how, codes in cases.items():
            with self.subTest(how):
                error = self.plugin.call("failing", how=how)
                self.assertEqual((error["data"]["code"], error["data"]["plugin_code"]), codes)
                self.assertLessEqual(len(error["message"]), 2048)
                if how == "details":
                    self.assertEqual((error["data"]["retryable"], error["data"]["retry_after_ms"]), (True, 7))
        status, errors = self.plugin.end()
        self.assertEqual(status, 0)
        self.assertIn("plugin.py", errors, "a traceback names the plugin's file")

    def test_arguments_that_do_not_fit_are_invalid_input(self) -> None:
        for input in [{}, {"value": 1, "other": 2}, [], "x"]:
            self.plugin.execute("echo", input)
            self.assertEqual(self.plugin.receive()["error"]["data"]["code"], "invalid_input", input)
        self.plugin.execute("spin", {"ctx": 1})
        self.assertEqual(self.plugin.receive()["error"]["data"]["code"], "invalid_input")

    def test_the_context_knows_the_call(self) -> None:
        want = [{"tenant_id": "local"}, {"correlation_id": "c1"}, "k1", None, 30000, "/s", "/a", False]
        self.assertEqual(self.plugin.call("about"), want)

    def test_a_result_carries_its_members(self) -> None:
        self.plugin.execute("full", {})
        want = {"status": "succeeded", "data": 1, "summary": "s", "metrics": {"tokens_in": 2}}
        want.update(diagnostics=["d"], next_cursor="n")
        self.assertEqual(self.plugin.receive()["result"], want)

    def test_logging_never_raises(self) -> None:
        self.plugin.execute("logs", {})
        record = self.plugin.receive()["params"]
        self.assertEqual(record["fields"], {"bad": "{1}", "nan": "nan"})
        self.assertEqual(len(record["message"]), 8192)
        self.assertIsNone(self.plugin.receive()["result"]["data"])

    def test_progress_is_thinned_out_and_its_end_is_sent(self) -> None:
        id = self.plugin.execute("spin", {"n": 20000})
        frames = []
        while not frames or frames[-1].get("id") != id:
            frames.append(self.plugin.receive())
        seen = [frame["params"] for frame in frames[:-1]]
        self.assertLess(len(seen), 200)
        self.assertEqual([one["seq"] for one in seen], list(range(1, len(seen) + 1)))
        self.assertEqual(seen[-1]["data"], {"message": "spin", "done": 20000, "total": 20000})

    def test_a_service_call_is_cancelled_and_late_answers_are_passed_over(self) -> None:
        id = self.plugin.execute("ask", {}, call="t")
        asked = self.plugin.receive()
        want = {"call": "t", "operation": "a.b/c", "input": {"x": 1}, "key": ""}
        self.assertEqual((asked["method"], asked["params"]), ("operations.call", want))
        self.plugin.cancel("t")
        answer = self.plugin.receive()
        self.assertEqual((answer["id"], answer["error"]["data"]["code"]), (id, "cancelled"))
        self.plugin.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"late": True}})
        self.assertEqual(self.plugin.call("echo", value=1), 1)

    def test_requests_that_come_during_a_call_wait_and_can_be_cancelled(self) -> None:
        first = self.plugin.execute("ask", {}, call="a")
        asked = self.plugin.receive()
        second = self.plugin.execute("echo", {"value": 2}, call="b")
        third = self.plugin.execute("echo", {"value": 3}, call="c")
        self.plugin.cancel("b")
        answer = self.plugin.receive()
        self.assertEqual((answer["id"], answer["error"]["data"]["code"]), (second, "cancelled"))
        self.plugin.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": 1}})
        self.assertEqual([self.plugin.receive()["id"], self.plugin.receive()["id"]], [first, third])

    def test_a_service_error_is_the_plugins_failure_not_the_callers(self) -> None:
        self.plugin.execute("failing", {"how": "service"})
        asked = self.plugin.receive()
        error = {"code": -32602, "message": "key is missing"}
        self.plugin.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        data = self.plugin.receive()["error"]["data"]
        self.assertEqual((data["code"], data["plugin_code"]), ("plugin_error", "invalid_input"))

    def test_threads_of_a_call_may_ask_at_once(self) -> None:
        id = self.plugin.execute("fan", {})
        asked = [self.plugin.receive() for _ in range(3)]
        for one in reversed(asked):
            result = {"found": True, "value": one["params"]["args"]["key"]}
            self.plugin.send({"jsonrpc": "2.0", "id": one["id"], "result": result})
        answer = self.plugin.receive()
        self.assertEqual((answer["id"], answer["result"]["data"]), (id, ["0", "1", "2"]))

    def test_a_thread_that_waits_for_an_answer_does_not_hold_up_the_next_call(self) -> None:
        id = self.plugin.execute("leave", {})
        self.assertEqual(self.plugin.receive()["method"], "cache.get")  # never answered
        self.assertEqual(self.plugin.receive()["id"], id)
        for n in range(3):
            self.assertEqual(self.plugin.call("echo", value=n), n)

    def test_coroutines_run_and_are_cancelled(self) -> None:
        self.assertEqual(self.plugin.call("nap", seconds=0), "slept")
        self.plugin.execute("nap", {"seconds": 60}, call="t")
        time.sleep(0.05)
        self.plugin.cancel("t")
        self.assertEqual(self.plugin.receive(1)["error"]["data"]["code"], "cancelled")
        # A cancel that was read together with its call is not lost.
        params = b'{"call":"u","operation":"a/nap","input":{"seconds":60}}'
        execute = b'{"jsonrpc":"2.0","id":50,"method":"execute","params":' + params + b"}"
        cancel = b'{"jsonrpc":"2.0","method":"$/cancel","params":{"call":"u","reason":"timeout"}}'
        self.plugin.send_bytes(execute + b"\n" + cancel + b"\n")
        self.assertEqual(self.plugin.receive(1)["error"]["data"]["code"], "cancelled")
        self.assertEqual(self.plugin.call("nap", seconds=0), "slept")

    def test_the_end_of_input_ends_a_call_in_flight(self) -> None:
        self.plugin.execute("ask", {})
        self.plugin.receive()
        self.assertEqual(self.plugin.end(1)[0], 0)

    def test_no_frame_ends_the_process_with_a_message(self) -> None:
        self.plugin.send_bytes(b"not json\n")
        status, errors = self.plugin.wait()
        self.assertEqual(status, 1)
        self.assertIn("no frame", errors)

    def test_signals(self) -> None:
        self.plugin.process.send_signal(signal.SIGINT)
        self.assertEqual(self.plugin.call("echo", value=1), 1)
        self.plugin.process.terminate()
        self.assertEqual(self.plugin.wait(1)[0], -signal.SIGTERM)


class Threaded(unittest.TestCase):
    SOURCE = HEAD.format(concurrency=4) + """
    barrier = threading.Barrier(3)

    @plugin.tool
    def meet() -> int: return barrier.wait(5)

    @plugin.tool
    def get(key: str, ctx: Context) -> object: return ctx.cache.get(key)

    @plugin.tool
    def loop(ctx: Context) -> None:
        while not ctx.cancelled: time.sleep(0.001)
        ctx.check()

    @plugin.tool
    async def nap(ctx: Context) -> None:
        import asyncio
        ctx.progress("napping")
        await asyncio.sleep(60)

    @plugin.tool
    def talk(n: int, ctx: Context) -> int:
        for i in range(n): ctx.emit("x" * 3000)
        return n

    @plugin.tool
    def stuck() -> None:
        threading.Thread(target=time.sleep, args=(60,)).start()
        time.sleep(60)

    plugin.run()
    """

    @classmethod
    def setUpClass(cls) -> None:
        cls.path = write_plugin(cls.SOURCE)

    def setUp(self) -> None:
        self.plugin = Peer(self.path).__enter__()
        self.addCleanup(self.plugin.__exit__)
        self.assertEqual(self.plugin.initialize()["concurrency"], 4)

    def test_calls_run_side_by_side(self) -> None:
        for _ in range(3):
            self.plugin.execute("meet", {})
        self.assertEqual(sorted(self.plugin.receive()["result"]["data"] for _ in range(3)), [0, 1, 2])

    def test_services_answer_in_any_order(self) -> None:
        for key in "abc":
            self.plugin.execute("get", {"key": key}, call=key)
        asked = [self.plugin.receive() for _ in range(3)]
        self.assertEqual(sorted(one["id"] for one in asked), ["s1", "s2", "s3"])
        for one in reversed(asked):
            result = {"found": True, "value": one["params"]["call"]}
            self.plugin.send({"jsonrpc": "2.0", "id": one["id"], "result": result})
        answers = {frame["id"]: frame["result"]["data"] for frame in (self.plugin.receive() for _ in range(3))}
        self.assertEqual(answers, {1: "a", 2: "b", 3: "c"})

    def test_cancels_reach_loops_services_and_coroutines(self) -> None:
        ids = {self.plugin.execute("loop", {}, call="a"), self.plugin.execute("get", {"key": "k"}, call="b")}
        self.plugin.receive()
        ids.add(self.plugin.execute("nap", {}, call="c"))
        self.plugin.receive()
        for call in "abc":
            self.plugin.cancel(call)
        answers = [self.plugin.receive(1) for _ in range(3)]
        self.assertEqual({frame["id"] for frame in answers}, ids)
        self.assertEqual({frame["error"]["data"]["code"] for frame in answers}, {"cancelled"})

    def test_frames_of_many_threads_stay_whole(self) -> None:
        ids = {self.plugin.execute("talk", {"n": 100}) for _ in range(4)}
        time.sleep(0.1)  # until the pipe is full
        frames = [self.plugin.receive() for _ in range(404)]
        self.assertEqual({frame["id"] for frame in frames if "id" in frame}, ids)

    def test_stuck_threads_hold_up_neither_the_end_nor_a_shutdown(self) -> None:
        self.plugin.execute("stuck", {})
        self.plugin.send({"jsonrpc": "2.0", "id": 99, "method": "shutdown", "params": {}})
        self.assertEqual(self.plugin.receive(), {"jsonrpc": "2.0", "id": 99, "result": {}})
        self.assertEqual(self.plugin.wait(1)[0], 0)


class Starting(unittest.TestCase):
    def test_a_start_imports_next_to_nothing(self) -> None:
        path = write_plugin("""
            from __future__ import annotations
            import sys
            from mortise import Context, Plugin
            plugin = Plugin("test.plugin", version="1.0.0")
            @plugin.tool
            def modules(ctx: Context, text: str = "") -> list[str]: return sorted(sys.modules)
            plugin.run()
        """)
        bare = write_plugin("""
            import sys
            print(*sorted(sys.modules), file=sys.stderr)
        """)
        with Peer(bare) as plugin:  # what an interpreter loads by itself, site packages and all
            before = set(plugin.wait()[1].split())
        with Peer(path) as plugin:
            plugin.initialize()
            loaded = set(plugin.call("modules")) - before
        heavy = {"typing", "dataclasses", "inspect", "asyncio", "logging"}
        heavy |= {"json", "re", "enum", "threading", "traceback", "functools"}
        self.assertEqual(loaded & heavy, set())

    def test_a_module_beside_the_plugin_may_have_any_name(self) -> None:
        path = write_plugin("""
            import json, helper
            from mortise import Plugin
            plugin = Plugin("test.plugin", version="1.0.0")
            @plugin.tool
            def where() -> list: return [json.WORD, __name__, __file__]
            if __name__ == "__main__": plugin.run()
        """)
        folder = os.path.dirname(path)
        for name, text in [("json", "WORD = 'ours'"), ("helper", "import mortise")]:
            with open(os.path.join(folder, name + ".py"), "w") as file:
                file.write(text)
        with Peer(path) as plugin:
            plugin.initialize()
            self.assertEqual(plugin.call("where"), ["ours", "__main__", path])
        self.assertEqual(sorted(os.listdir(folder)), ["helper.py", "json.py", "plugin.py"], "no bytecode beside it")

    def test_what_goes_wrong_at_a_start_is_said(self) -> None:
        cases = {
            "import mortise\n": "make plugin.run() its last line",
            "def f(:\n": "SyntaxError",
            "raise ValueError('at import')\n": 'plugin.py", line 1',
            "import sys; sys.exit('no licence')\n": "no licence",
        }
        for source, message in cases.items():
            with self.subTest(source), Peer(write_plugin(source)) as plugin:
                status, errors = plugin.wait()
                self.assertEqual(status, 1)
                self.assertIn(message, errors)

    def test_prints_while_loading_go_astray(self) -> None:
        source = 'print("loading")\n' + "from mortise import Plugin\nPlugin('a.b', version='1').run()\n"
        with Peer(write_plugin(source)) as plugin:
            self.assertEqual(plugin.initialize()["plugins"], [{"name": "a.b", "version": "1"}])
            self.assertEqual(plugin.end(), (0, "loading\n"))

    def test_a_plugin_serves_without_the_boot(self) -> None:
        source = "from mortise import Plugin\nPlugin('a.b', version='1').run()\nprint('after')\n"
        with Peer(write_plugin(source), boot=False) as plugin:
            plugin.initialize()
            self.assertEqual(plugin.end(), (0, "after\n"))

    def test_at_a_terminal_it_explains_itself(self) -> None:
        import pty
        import subprocess
        import sys

        path = write_plugin("from mortise import Plugin\nPlugin('a.b', version='1').run()\n")
        ours, theirs = pty.openpty()
        done = subprocess.run([sys.executable, "-B", path], stdin=theirs, capture_output=True, env={"PYTHONPATH": SDK})
        os.close(ours)
        os.close(theirs)
        self.assertIn(f"mortise run {path}", done.stdout.decode())
