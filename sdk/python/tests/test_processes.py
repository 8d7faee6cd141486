"""Processes that plugins start: forked they leave the protocol alone, spawned they find the plugin's code."""

from __future__ import annotations

import os
import textwrap
import unittest

from mill import Mill, tree, write_tool
from peer import Peer, write_plugin
from shu import Shu, execute, package
from test_eventmill import tool

FORKS = """
    from __future__ import annotations
    import concurrent.futures, multiprocessing, os, threading, time
    from mortise import *
    plugin = Plugin("test.plugin", version="1.0.0", concurrency={concurrency})

    def work(n: int) -> list:
        said = []
        held.log.warning("said in a child: " + "x" * 5000)
        for _ in range(30):
            held.emit(n); held.progress("p", n)
        for act in (lambda: held.cache.get("k"), lambda: held.call("a.b/c", 1)):
            started = time.monotonic()
            try: act()
            except ServiceError as exc:
                said.append([exc.code, "by the process that has the call" in exc.message, time.monotonic() - started < 1])
        return [said, held.cancelled]

    @plugin.tool
    def pool(ctx: Context) -> list:
        global held
        held = ctx
        stop = threading.Event()
        def speak() -> None:  # and holds the locks now and then
            while not stop.wait(0.0005): ctx.emit("x" * 100)
        thread = threading.Thread(target=speak)
        thread.start()
        with concurrent.futures.ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
            said = list(pool.map(work, range(8)))
        stop.set(); thread.join()
        ctx.cache.get("k")
        return said

    @plugin.tool
    def both(how: str) -> str:
        child = os.fork()
        if child: os.waitpid(child, 0)
        elif how == "raise": raise ValueError("from the child")
        return "child" if child == 0 else "parent"

    plugin.run()
"""
SPAWNS = """
    import concurrent.futures, multiprocessing, os
    from mortise import Plugin
    plugin = Plugin("test.plugin", version="1.0.0")

    def square(n):
        return [n * n, os.path.basename(__file__), __name__, callable(quit)]

    @plugin.tool
    def pool(how: str) -> list:
        context = multiprocessing.get_context("spawn")
        if how == "executor":
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool: return list(pool.map(square, [3]))
        with context.Pool(1) as pool: return pool.map_async(square, [3]).get(20)

    @plugin.tool
    def default() -> str:
        return multiprocessing.get_start_method()

    plugin.run()
"""
MILL_POOL = "import concurrent.futures, multiprocessing, os\ndef square(n): return [n * n, __name__, callable(quit)]\n" + tool(
    """
    def execute(self, payload, context):
        context_ = multiprocessing.get_context("spawn")
        if payload.get("no_file"):
            import __main__
            vars(__main__).pop("__file__")
        if payload.get("executor"):
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context_) as pool: found = list(pool.map(square, [3]))
        else:
            with context_.Pool(1) as pool: found = pool.map_async(square, [3]).get(20)
        return ToolResult(ok=True, result=found)
    """
)


class Forked(unittest.TestCase):
    def test_a_forked_process_neither_writes_to_the_host_nor_reads_from_it(self) -> None:
        for concurrency in (1, 2):
            with self.subTest(concurrency=concurrency), Peer(write_plugin(FORKS.format(concurrency=concurrency))) as peer:
                peer.initialize()
                id, logs, asked = peer.execute("pool", {}), 0, []
                while True:
                    frame = peer.receive(30)
                    if frame.get("id") == id:
                        break
                    logs += frame["method"] == "log"
                    if "id" in frame:
                        asked.append(frame["method"])
                        peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": {"found": False}})
                self.assertEqual(frame["result"]["data"], [[[["unavailable", True, True]] * 2, False]] * 8)
                self.assertEqual((logs, asked), (0, ["cache.get"]))

    def test_a_child_that_comes_back_answers_nothing(self) -> None:
        for concurrency in (1, 2):
            for how in ("return", "raise"):
                with self.subTest(concurrency=concurrency, how=how), Peer(write_plugin(FORKS.format(concurrency=concurrency))) as peer:
                    peer.initialize()
                    self.assertEqual([peer.call("both", how=how) for _ in range(3)], ["parent"] * 3)
                    self.assertEqual(peer.end()[0], 0)

    def test_log_records_of_a_child_go_to_standard_error(self) -> None:
        with Peer(write_plugin(FORKS.format(concurrency=1))) as peer:
            peer.initialize()
            id = peer.execute("pool", {})
            frame = peer.receive()
            while frame.get("id") != id:
                if "id" in frame:
                    peer.send({"jsonrpc": "2.0", "id": frame["id"], "result": {"found": False}})
                frame = peer.receive()
            self.assertEqual(peer.end()[1].count("said in a child"), 8)

    def test_tools_that_fork(self) -> None:
        head = """
            import concurrent.futures, multiprocessing

            def work(n):
                held.logger.warning("x" * 5000)
                try: 1 / 0
                except ZeroDivisionError: held.logger.exception("at %d", n)
                data = held.reference_data
                return [data.get("known"), data.get("unknown", "default"), held.llm_query.query_text("hi").ok, "known" in list(data)]
            """
        source = textwrap.dedent(head) + tool(
            """
            def execute(self, payload, context):
                global held
                held = context
                context.reference_data.get("known")
                with concurrent.futures.ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
                    return ToolResult(ok=True, result=list(pool.map(work, range(8))))
            """
        )
        with Mill(tree(t=source), llm_enabled=True) as mill:
            mill.reference["known"] = {"a": 1}
            result = mill.run("t")
            self.assertEqual(result["data"], [[{"a": 1}, "default", False, True]] * 8)
            self.assertEqual([method for method, _ in mill.requests], ["reference_data.get", "artifacts.register"])
            self.assertEqual(mill.logs, [])
            errors = mill.end()[1]
            self.assertIn("reference data unknown is not used", errors)
            self.assertIn("ZeroDivisionError", errors)
            lines = [line for line in errors.splitlines() if "xxx" in line]
            self.assertEqual({line.strip("x") for line in lines}, {"warning: eventmill.plugin.t: "}, "and lines stay whole")

    def test_a_shu_plugin_that_forks(self) -> None:
        source = execute(
            """
            global held
            held = host
            with multiprocessing.get_context("fork").Pool(2) as pool:
                said = pool.map_async(work, range(4)).get(20)
            return {"status": "success", "data": [said, await host.cache.get("k", "none")]}
            """,
            """
            import asyncio, multiprocessing
            def work(n):
                held.log.warning("x" * 5000)
                try: asyncio.run(ask())
                except Exception as exc: return "by the process that has the call" in str(exc)
            async def ask():
                return await held.cache.get("k")
            """,
        )
        with Shu(package(source)) as shu:
            shu.services["cache.get"] = lambda args: {"found": False}
            for _ in range(2):
                self.assertEqual(shu.run()["data"], [[None] * 4, "none"])  # a cache that cannot be asked has nothing, and raises nothing
            self.assertEqual((len(shu.requests), shu.logs), (2, []))


class Spawned(unittest.TestCase):
    def test_a_plugin_that_spawns_needs_no_guard(self) -> None:
        with Peer(write_plugin(SPAWNS)) as peer:
            peer.initialize()
            for how in ("pool", "executor"):
                id = peer.execute("pool", {"how": how})
                self.assertEqual(peer.receive(30)["result"]["data"], [[9, "plugin.py", "__mp_main__", True]], id)
            self.assertEqual(peer.end()[0], 0)

    def test_tools_that_spawn(self) -> None:
        for name in ("plugins", "0a1b2c"):  # as it stands, and as a registered copy is called
            root = tree(name, t=MILL_POOL)
            with self.subTest(name), Mill(root) as mill:
                for payload in ({}, {"executor": True}, {"no_file": True}):
                    frame = mill.finish(mill.begin("t", payload), 30)
                    self.assertEqual(frame["result"].get("data"), [[9, "plugins.log_analysis.t.tool", True]], (payload, frame))
            self.assertEqual(sorted(os.listdir(os.path.join(root, "log_analysis", "t"))), ["manifest.json", "tool.py"])

    def test_a_single_tool_that_spawns(self) -> None:
        root = tree("0a1b2c")
        write_tool(root, "t", MILL_POOL, inside=root)
        with Mill(root) as mill:
            frame = mill.finish(mill.begin("t", {}), 30)
            self.assertEqual(frame["result"].get("data"), [[9, "plugins.log_analysis.t.tool", True]])

    def test_a_shu_plugin_that_spawns(self) -> None:
        source = execute(
            """
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return {"status": "success", "data": pool.map_async(work, [3]).get(20)}
            """,
            """
            import multiprocessing
            from .words import WORD
            def work(n):
                try:
                    import urllib.request
                except ImportError:
                    return [n * n, WORD, __name__]
            """,
        )
        root = package(source, words="WORD = 'w'")
        with Shu(root) as shu:
            frame = shu.finish(shu.begin("execute", {}), 30)
            self.assertEqual(frame["result"].get("data"), [[9, "w", "plugins.notes.plugin"]], frame)
        self.assertEqual(sorted(os.listdir(root)), ["plugin.py", "words.py"])

    def test_where_python_would_start_a_fork_server_processes_are_forked(self) -> None:
        as_new = """from multiprocessing import context  # as from Python 3.14 on
context._default_context._default_context = context._concrete_contexts['forkserver']
"""
        with Peer(write_plugin(as_new + textwrap.dedent(SPAWNS))) as peer:
            peer.initialize()
            self.assertEqual(peer.call("default"), "fork")
        source = as_new + "import multiprocessing\n" + tool(
            "def execute(self, payload, context): return ToolResult(ok=True, result=multiprocessing.get_start_method())"
        )
        with Mill(tree(t=source)) as mill:
            self.assertEqual(mill.run("t")["data"], "fork")
        source = execute("return {'status': 'success', 'data': multiprocessing.get_start_method()}", as_new + "import multiprocessing")
        with Shu(package(source)) as shu:
            self.assertEqual(shu.run()["data"], "fork")

    def test_what_was_said_about_the_start_stays(self) -> None:
        said = "import multiprocessing\nmultiprocessing.set_start_method('forkserver')\n"
        with Peer(write_plugin(said + textwrap.dedent(SPAWNS))) as peer:
            peer.initialize()
            self.assertEqual(peer.call("default"), "forkserver")


if __name__ == "__main__":
    unittest.main()
