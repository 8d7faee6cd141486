"""Event Mill tools as they are served: layout, imports, state, the order of a call, failures of all sorts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from mill import TOOL, Mill, tree, write, write_tool

HEAD = """
import logging, os, sys, threading, time
from framework.plugins.protocol import ToolResult, ValidationResult

class Base:
    def metadata(self): return {"tool_name": "TOOL_NAME", "version": "1.0.0"}
    def validate_inputs(self, payload): return ValidationResult(ok=True)
    def summarize_for_llm(self, result): return "done"
"""


def code(text: str) -> str:
    """Return the source of a tool: Base, and what is given."""
    return HEAD + textwrap.dedent(text)


def tool(body: str) -> str:
    """Return the source of a tool whose class is Base and what is given."""
    return HEAD + "\nclass Tool(Base):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


class Served(unittest.TestCase):
    def mill(self, root: str, **options: object) -> Mill:
        mill = Mill(root, **options).__enter__()
        self.addCleanup(mill.__exit__)
        return mill

    def failure(self, result: object) -> tuple[str, str]:
        """Return the code and the message of a failed call."""
        self.assertEqual(result["status"], "failed", result)
        self.assertEqual(result["error"]["code"], "plugin_error")
        return result["error"]["plugin_code"], result["error"]["message"]


class Layout(Served):
    def test_the_handshake_names_no_plugins_and_a_call_names_the_tool(self) -> None:
        mill = self.mill(tree(one=TOOL, two=TOOL))
        self.assertEqual(mill.handshake, {"protocol": "2", "plugins": [], "concurrency": 1, "features": ["cancel"]})
        for name in ("one", "two"):
            result = mill.run(name, x=1)
            self.assertEqual(result, {"status": "succeeded", "data": {"said": "done"}, "summary": "It was done."})

    def test_a_tool_nobody_has_is_refused_and_found_once_it_is_there(self) -> None:
        root = tree(one=TOOL)
        mill = self.mill(root)
        self.assertEqual(mill.run("late")["code"], -32602)
        write_tool(root, "late")
        self.assertEqual(mill.run("late")["status"], "succeeded")

    def test_directories_that_begin_with_an_underscore_are_passed_over(self) -> None:
        root = tree(one=TOOL)
        write_tool(root, "hidden", inside=os.path.join(root, "log_analysis", "_hidden"))
        self.assertEqual(self.mill(root).run("hidden")["code"], -32602)

    def test_broken_manifests_hide_no_other_tool(self) -> None:
        root = tree(one=TOOL)
        write(os.path.join(root, "log_analysis", "bad", "manifest.json"), "{")
        write(os.path.join(root, "log_analysis", "list", "manifest.json"), "[]")
        mill = self.mill(root)
        self.assertEqual(mill.run("one")["status"], "succeeded")

    def test_the_directory_need_not_be_called_as_the_tool_or_as_a_module(self) -> None:
        root = tree()
        for name, directory in [("dashed", "dashed-tool"), ("dotted", "dotted.v1")]:
            write_tool(root, name, inside=os.path.join(root, "log_analysis", directory))
        mill = self.mill(root)
        for name in ("dashed", "dotted"):
            self.assertEqual(mill.run(name)["status"], "succeeded")

    def test_a_package_that_is_one_tool(self) -> None:
        root = os.path.join(tree("shelf"), "0a1b")
        source = "from .helper import WORD\nfrom plugins.log_analysis.alone.helper import WORD as same\n" + tool(
            'def execute(self, payload, context): return ToolResult(ok=True, result={"word": WORD, "same": same})'
        )
        write_tool(root, "alone", source, inside=root)
        write(os.path.join(root, "helper.py"), "WORD = 'helped'\n")
        self.assertEqual(self.mill(root).run("alone")["data"], {"word": "helped", "same": "helped"})

    def test_plugins_is_a_package_over_the_tree_whatever_its_name(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                import plugins, plugins.log_analysis.other.tool as other
                parent = os.path.dirname(plugins.__path__[0])
                return ToolResult(ok=True, result={
                    "file": plugins.__file__, "mark": getattr(plugins, "MARK", None), "parent": parent in sys.path,
                    "other": other.Tool().execute(payload, None).result})
            """
        )
        for name, marked in [("plugins", True), ("sha256-0011", False)]:
            with self.subTest(name):
                root = tree(name, asker=source, other=TOOL)
                if marked:
                    write(os.path.join(root, "__init__.py"), "MARK = 'ran'\n")
                data = self.mill(root).run("asker")["data"]
                want = {"file": os.path.join(root, "__init__.py"), "mark": "ran" if marked else None, "parent": name == "plugins"}
                self.assertEqual(data, {**want, "other": {"said": "done"}})

    def test_a_broken_init_py_breaks_no_tool(self) -> None:
        root = tree(one=TOOL)
        for place in ("", "log_analysis", os.path.join("log_analysis", "one")):
            write(os.path.join(root, place, "__init__.py"), "raise RuntimeError('broken')\n")
        self.assertEqual(self.mill(root).run("one")["status"], "succeeded")

    def test_one_file_loaded_by_path_and_by_name(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                import importlib.util
                spec = importlib.util.spec_from_file_location("by_path", __file__)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return ToolResult(ok=True, result={"other": module.Tool is not Tool, "name": __name__})
            """
        )
        self.assertEqual(self.mill(tree(twice=source)).run("twice")["data"], {"other": True, "name": "plugins.log_analysis.twice.tool"})

    def test_nothing_of_the_host_hides_what_tools_import(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                import framework
                return ToolResult(ok=True, result=[os.path.basename(os.path.dirname(os.path.dirname(framework.__file__))), sys.argv])
            """
        )
        root = tree(ask=source)
        write(os.path.join(os.path.dirname(root), "framework", "__init__.py"), "raise RuntimeError\n")
        self.assertEqual(self.mill(root).run("ask")["data"], ["eventmill", ["eventmill"]])


class State(Served):
    def test_globals_instances_and_attributes_on_sys_live_from_call_to_call(self) -> None:
        source = """
            SEEN = []
            class Tool(Base):
                def __init__(self): self.calls = 0
                def validate_inputs(self, payload):
                    ready = not payload.get("second") or bool(SEEN)
                    return ValidationResult(ok=ready, errors=None if ready else ["call me first"])
                def execute(self, payload, context):
                    self.calls += 1
                    SEEN.append(payload["n"])
                    sys._mill_state = list(SEEN)
                    return ToolResult(ok=True, result={"calls": self.calls, "seen": SEEN})
        """
        reader = tool(
            """
            def execute(self, payload, context):
                from plugins.log_analysis.writer.tool import SEEN
                return ToolResult(ok=True, result={"imported": SEEN, "sys": sys._mill_state})
            """
        )
        mill = self.mill(tree(writer=code(source), reader=reader))
        self.assertEqual(self.failure(mill.run("writer", n=0, second=True))[0], "INPUT_VALIDATION_FAILED")
        self.assertEqual(mill.run("writer", n=1)["data"], {"calls": 1, "seen": [1]})
        self.assertEqual(mill.run("writer", n=2, second=True)["data"], {"calls": 2, "seen": [1, 2]})
        self.assertEqual(mill.run("reader")["data"], {"imported": [1, 2], "sys": [1, 2]})

    def test_a_tool_runs_the_class_of_another(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                from plugins.threat_modeling.other.tool import Tool as Other
                return Other().execute(payload, None)
            """
        )
        root = tree(asker=source)
        write_tool(root, "other", pillar="threat_modeling")
        self.assertEqual(self.mill(root).run("asker")["data"], {"said": "done"})

    def test_the_working_directory_and_the_workspace_agree(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                with open("workspace/artifacts/a.txt", "w") as file: file.write("a")
                with open(os.path.join(os.environ["EVENTMILL_WORKSPACE"], "artifacts", "a.txt")) as file: text = file.read()
                inside = os.path.join(context.config.get("workspace_dir", "workspace"), "artifacts", "a.txt")
                here, exists = os.getcwd(), os.path.exists(inside)
                os.chdir("/")
                return ToolResult(ok=True, result={"text": text, "same": exists, "here": here,
                    "workspace": os.environ["EVENTMILL_WORKSPACE"], "cloud": "K_SERVICE" in os.environ})
            """
        )
        mill = self.mill(tree(w=source))
        place = os.path.join(mill.scratch, "workspace")
        for _ in range(2):  # the second time although the first left for another directory
            want = {"text": "a", "same": True, "here": place, "workspace": os.path.join(place, "workspace"), "cloud": False}
            self.assertEqual(mill.run("w")["data"], want)

    def test_a_thread_that_goes_on_speaks_for_no_later_call(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                if payload["n"] == 2:
                    time.sleep(0.3)
                    return ToolResult(ok=True, result={"late": sys._late})
                sys._late = []
                def late():
                    time.sleep(0.1)
                    context.logger.warning("from the thread")
                    for ask in (lambda: context.reference_data.get("k", "none"), lambda: context.llm_query.query_text("q").ok):
                        try: sys._late.append(ask())
                        except Exception as exc: sys._late.append(type(exc).__name__)
                    try: context.register_artifact("text", __file__, "t", {})
                    except Exception as exc: sys._late.append(type(exc).__name__)
                threading.Thread(target=late).start()
                return ToolResult(ok=True, result={})
            """
        )
        mill = self.mill(tree(t=source), llm_enabled=True)
        mill.run("t", n=1)
        self.assertEqual(mill.run("t", n=2)["data"]["late"], ["none", False, "ServiceError"])
        self.assertEqual([method for method, _ in mill.requests], ["artifacts.register"] * 2, "the saved results")
        self.assertEqual(mill.logs, [])
        self.assertIn("from the thread", mill.end()[1])

    def test_a_thread_that_waits_for_an_answer_does_not_hold_up_the_next_call(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                if payload["n"] == 1:
                    threading.Thread(target=lambda: context.reference_data.get("never"), daemon=True).start()
                    time.sleep(0.2)
                return ToolResult(ok=True, result=payload["n"])
            """
        )
        mill = self.mill(tree(t=source))
        id = mill.begin("t", {"n": 1})
        while True:  # everything is answered but the thread's question
            frame = mill.receive()
            if frame.get("id") == id and "method" not in frame:
                break
            if frame.get("method") != "reference_data.get":
                mill.serve(frame)
        for n in (2, 3):
            self.assertEqual(mill.run("t", n=n)["data"], n)

    def test_a_forked_child_that_comes_back_gives_no_second_answer(self) -> None:
        source = tool('def execute(self, payload, context): return ToolResult(ok=True, result={"child": os.fork() == 0})')
        mill = self.mill(tree(t=source))
        for _ in range(3):
            self.assertEqual(mill.run("t")["data"], {"child": False})


class Order(Served):
    def test_validate_then_model_then_execute_then_summary(self) -> None:
        source = """
            class Tool(Base):
                def validate_inputs(self, payload):
                    sys._order = ["validate"]
                    return ValidationResult(ok="bad" not in payload, errors=["bad is not good", "really"])
                def execute(self, payload, context):
                    sys._order.append("execute")
                    return ToolResult(ok=True, result={"order": list(sys._order)})
                def summarize_for_llm(self, result): return ", ".join(sys._order + ["summary"])
        """
        root = tree()
        write_tool(root, "plain", code(source))
        write_tool(root, "needy", code(source), requires_llm=True)
        mill = self.mill(root)
        result = mill.run("plain")
        self.assertEqual((result["data"]["order"], result["summary"]), (["validate", "execute"], "validate, execute, summary"))
        refused = mill.run("needy", bad=1)
        self.assertEqual(self.failure(refused)[0], "INPUT_VALIDATION_FAILED")
        self.assertEqual(refused["error"]["details"], {"errors": ["bad is not good", "really"]})
        self.assertEqual(mill.run("needy")["data"]["order"], ["validate", "execute"])
        mill.opened["llm_required"] = "refuse"
        self.assertEqual(self.failure(mill.run("needy"))[0], "LLM_UNAVAILABLE")
        mill.opened["llm_enabled"] = True
        self.assertEqual(mill.run("needy")["status"], "succeeded")

    def test_input_that_is_no_object(self) -> None:
        mill = self.mill(tree(one=TOOL))
        for input in ([], "x", None):
            frame = mill.finish(mill.begin("one", input))
            self.assertEqual(self.failure(frame["result"])[0], "INPUT_VALIDATION_FAILED")

    def test_summaries(self) -> None:
        cases = {
            "return 'x' * 3000": "x" * 3000,
            "return 'x' * 2000": "x" * 2000,
            "return 'x' * (1 << 20)": "x" * (65536 - 3) + "...",
            "return ''": "",
            "return '  \\n'": "  \n",
            "return None": "s completed successfully.",
            "return 7": "s completed successfully.",
            "raise ValueError('no')": "s completed successfully.",
            "sys.exit(0)": "s completed successfully.",
            "raise KeyboardInterrupt": "s completed successfully.",
            "return 'half a pair \\ud800'": "half a pair \ufffd",
        }
        source = """
            class Tool(Base):
                def execute(self, payload, context): return ToolResult(ok=True, result=payload)
                def summarize_for_llm(self, result):
                    SCOPE = {"sys": sys}
                    exec("def summary():\\n    " + result.result["how"], SCOPE)
                    return SCOPE["summary"]()
        """
        mill = self.mill(tree(s=code(source)))
        for how, want in cases.items():
            with self.subTest(how):
                self.assertEqual(mill.run("s", how=how)["summary"], want)

    def test_a_failed_result_has_no_summary_and_passes_its_code_through(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                return ToolResult(ok=False, error_code="NO_MITRE_MAPPINGS", message="none found", details={"looked": 3}, result={"partial": 1})
            def summarize_for_llm(self, result): raise AssertionError
            """
        )
        mill = self.mill(tree(f=source))
        want = {"code": "plugin_error", "plugin_code": "NO_MITRE_MAPPINGS", "message": "none found", "details": {"looked": 3}}
        self.assertEqual(mill.run("f"), {"status": "failed", "error": want, "data": {"partial": 1}})
        self.assertEqual(mill.requests, [], "a failure saves nothing")


class Failures(Served):
    def test_whatever_a_tool_does_the_session_goes_on(self) -> None:
        hows = {
            "raise ValueError('x' * 10000)": "ValueError",
            "raise ValueError('half \\ud800')": "ValueError",
            "sys.exit(3)": "SystemExit",
            "exit(3)": "SystemExit: 3",
            "quit()": "SystemExit",
            "raise KeyboardInterrupt": "KeyboardInterrupt",
            "raise GeneratorExit": "GeneratorExit",
            "raise MemoryError": "MemoryError",
            "f = lambda: f(); f()": "RecursionError",
            "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})": "Mute",
            "sys.excepthook = None; raise ValueError('no hook')": "no hook",
            "return None": "returned None",
            "return 7": "type int",
            "return {'findings': []}": "type dict",
            "return ToolResult": "type type",
        }
        source = """
            class Tool(Base):
                def do(self, stage, payload):
                    if payload.get("stage") != stage: return False
                    SCOPE = {"sys": sys, "ToolResult": ToolResult}
                    exec("def act():\\n    global f\\n    " + payload["how"], SCOPE)
                    return SCOPE["act"]()
                def validate_inputs(self, payload):
                    return self.do("validate_inputs", payload) or ValidationResult(ok=True)
                def execute(self, payload, context):
                    return ToolResult(ok=True, result=1) if payload["stage"] != "execute" else self.do("execute", payload)
        """
        mill = self.mill(tree(t=code(source)))
        for how, said in hows.items():
            for stage in ("validate_inputs", "execute"):
                if stage == "validate_inputs" and how.startswith(("return None", "return ToolResult")):
                    continue  # there it is the tool above that makes something of it
                with self.subTest(how, stage=stage):
                    result = mill.run("t", how=how, stage=stage)
                    word, message = self.failure(result)
                    self.assertEqual(word, "INTERNAL_ERROR")
                    self.assertIn(said, message)
                    self.assertLessEqual(len(message), 4096)
        self.assertEqual(mill.run("t", stage="none")["data"], 1)

    def test_a_validation_that_is_none(self) -> None:
        mill = self.mill(tree(t=TOOL.replace("return ValidationResult(ok=True)", "pass")))
        self.assertIn("returned None in place of a ValidationResult", self.failure(mill.run("t"))[1])

    def test_what_fails_while_it_is_loaded_can_be_mended(self) -> None:
        cases = {
            "raise RuntimeError('at import')": "RuntimeError: at import",
            "import sys; sys.exit(1)": "SystemExit",
            "def broken(:": "SyntaxError",
            "class Other: pass": "no class 'Tool', which manifest.json names; it has Other",
            "class Tool:\n    def __init__(self): raise ValueError('not made')": "ValueError: not made",
        }
        for source, said in cases.items():
            with self.subTest(source):
                root = tree(t=source)
                mill = self.mill(root)
                for _ in range(2):
                    word, message = self.failure(mill.run("t"))
                    self.assertEqual(word, "INTERNAL_ERROR")
                    self.assertIn(said, message)
        self.assertEqual(mill.end()[0], 0)

    def test_an_entry_point_that_leads_out_or_is_not_there(self) -> None:
        root = tree(good=TOOL)
        write_tool(root, "out", entry_point="../good/tool.py")
        write_tool(root, "gone", entry_point="other.py")
        mill = self.mill(root)
        self.assertIn("is not inside", self.failure(mill.run("out"))[1])
        self.assertIn("is not there", self.failure(mill.run("gone"))[1])

    def test_a_missing_package_is_named_with_the_way_to_get_it(self) -> None:
        at_import = "import no_such_package_x.sub\n"
        guarded = "try: import no_such_package_x\nexcept ImportError: pass\n"
        lazily = tool("def execute(self, payload, context): import no_such_package_x")
        by_hand = tool("def execute(self, payload, context): raise ImportError('please install no_such_package_x')")
        beside = "import helper\n"
        root = tree(at_import=at_import, guarded=guarded, lazily=lazily, by_hand=by_hand, beside=beside)
        with open(os.path.join(root, "log_analysis", "guarded", "tool.py"), "a", encoding="utf-8") as file:
            file.write(textwrap.dedent(TOOL))
        write(os.path.join(root, "log_analysis", "beside", "helper.py"), "")
        mill = self.mill(root)
        self.assertEqual(mill.run("guarded")["status"], "succeeded")
        for which in ("at_import", "lazily", "by_hand"):
            word, message = self.failure(mill.run(which))
            self.assertEqual(word, "DEPENDENCY_MISSING", which)
            self.assertIn("install no_such_package_x", message)
            self.assertEqual("a module of your own has to stand below plugins/" in message, which != "by_hand")
        self.assertEqual(mill.run("lazily")["error"]["details"]["package"], "no_such_package_x")
        word, message = self.failure(mill.run("beside"))
        self.assertEqual(word, "INTERNAL_ERROR")
        self.assertIn("from . import helper", message)

    def test_where_pip_refuses_the_way_is_another(self) -> None:
        from eventmill._shim.missing import _way_to

        with tempfile.TemporaryDirectory() as folder:
            python = os.path.join(folder, "bin", "python3")
            self.assertEqual(_way_to("dpkt", python, folder), (f"{python} -m pip install dpkt", ""))
            write(os.path.join(folder, "EXTERNALLY-MANAGED"), "")
            command, besides = _way_to("dpkt", python, folder)
            self.assertIn("ENV/bin/python3 -m pip install dpkt", command)
            self.assertIn("interpreters.python", besides)
            write(os.path.join(folder, "pyvenv.cfg"), "")
            self.assertEqual(_way_to("dpkt", python, folder), (f"{python} -m pip install dpkt", ""))

    def test_prints_get_between_no_frames(self) -> None:
        source = "import os, sys\nprint('at import')\nos.write(1, b'raw\\n')\n" + tool(
            """
            def execute(self, payload, context):
                print("in execute"); sys.stdout.write("{}\\n"); os.system("echo from a child")
                return ToolResult(ok=True, result=sys.stdin.read())
            """
        )
        mill = self.mill(tree(p=source))
        self.assertEqual(mill.run("p")["data"], "")
        errors = mill.end()[1]
        for text in ("at import", "raw", "in execute", "from a child"):
            self.assertIn(text, errors)

    def test_a_session_that_the_host_does_not_open(self) -> None:
        mill = self.mill(tree(one=TOOL))
        answer = mill.answer
        mill.answer = lambda method, args: mill.refuse() if method == "session.open" else answer(method, args)

        def refuse() -> None:
            raise LookupError("not granted")

        mill.refuse = refuse
        word, message = self.failure(mill.run("one"))
        self.assertEqual(word, "INTERNAL_ERROR")
        self.assertIn("not granted", message)

    def test_a_cancelled_call_ends_and_the_next_one_runs(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                if payload.get("wait"): context.llm_query.query_text("never answered")
                return ToolResult(ok=True, result=1)
            """
        )
        mill = self.mill(tree(c=source), llm_enabled=True)
        id = mill.begin("c", {"wait": True})
        mill.serve(mill.receive())  # session.open
        self.assertEqual(mill.receive()["method"], "llm.query_text")
        mill.cancel(f"{id:032x}")
        self.assertEqual(mill.receive()["error"]["data"]["code"], "cancelled")
        self.assertEqual(mill.run("c")["data"], 1)

    def test_other_questions_are_refused(self) -> None:
        mill = self.mill(tree(one=TOOL))
        for method in ("preview", "reconcile"):
            mill.send({"jsonrpc": "2.0", "id": 9, "method": method, "params": {"operation": "one/one", "input": {}}})
            self.assertEqual(mill.receive()["error"]["code"], -32601)
        mill.send({"jsonrpc": "2.0", "id": 10, "method": "describe", "params": {}})
        self.assertEqual(mill.receive()["result"], {"plugins": []})

    def test_a_package_that_is_not_there(self) -> None:
        root = tree(one=TOOL)
        shutil.rmtree(root)
        command = [sys.executable, os.path.join(os.path.dirname(os.path.dirname(__file__)), "eventmill", "_boot.py"), root]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    unittest.main()
