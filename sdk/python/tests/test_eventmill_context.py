"""What Event Mill tools get: the context, reference data, language models, logging, the framework's modules."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import unittest

from mill import KIT, tree, write
from test_eventmill import Served, code, tool


class Context(Served):
    def test_the_fields_of_the_context(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                from framework.plugins.protocol import ArtifactRef, ExecutionContext
                ref = context.artifacts[0]
                return ToolResult(ok=True, result={
                    "kind": isinstance(context, ExecutionContext) and isinstance(ref, ArtifactRef) and type(context.artifacts) is list,
                    "session": context.session_id, "pillar": context.selected_pillar, "config": context.config,
                    "bucket": context.config.get("EVENTMILL_BUCKET_PREFIX"), "logger": context.logger.name,
                    "llm": [context.llm_enabled, context.llm_query], "limits": context.limits, "registry": hasattr(context, "artifact_registry"),
                    "artifact": [ref.artifact_id, ref.artifact_type, open(ref.file_path).read(), ref.storage_uri, ref.source_tool, ref.metadata]})
            """
        )
        mill = self.mill(tree(t=source), pillar="threat_modeling", config={"EVENTMILL_BUCKET_COMMON": "c", "workspace_dir": "/no"})
        mill.load("a.log", b"text")
        data = mill.run("t")["data"]
        want = {"EVENTMILL_BUCKET_COMMON": "c", "workspace_dir": "/no"}
        self.assertEqual((data["kind"], data["config"], data["bucket"]), (True, want, None))
        self.assertEqual((data["session"], data["pillar"], data["logger"]), ("sess_0123456789ab", "threat_modeling", "eventmill.plugin.t"))
        self.assertEqual((data["llm"], data["registry"]), ([False, None], False))
        self.assertEqual(data["limits"], mill.opened["limits"])
        self.assertEqual(data["artifact"], ["art_00000000", "log_stream", "text", None, None, {}])

    def test_the_context_is_read_only_and_no_call_sees_what_another_did_to_it(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                faults = []
                for act in (lambda: setattr(context, "llm_enabled", True), lambda: setattr(context, "new", 1), lambda: delattr(context, "config")):
                    try: act()
                    except AttributeError as exc: faults.append(type(exc).__name__)
                before = [len(context.artifacts), len(context.config), len(context.limits)]
                context.artifacts.clear(); context.config.clear(); context.limits.clear()
                return ToolResult(ok=True, result={"faults": faults, "before": before})
            """
        )
        mill = self.mill(tree(t=source), session_id="")
        mill.load("a.log", b"text")
        for _ in range(2):
            self.assertEqual(mill.run("t")["data"], {"faults": ["FrozenInstanceError"] * 3, "before": [1, 0, 3]})

    def test_progress_reaches_the_host(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                getattr(context, "progress")("reading a.log", 5, 20, "bytes")
                return ToolResult(ok=True, result=sorted(vars(context)))
            """
        )
        mill = self.mill(tree(t=source))
        members = mill.run("t")["data"]
        self.assertEqual([told["data"] for told in mill.told], [{"message": "reading a.log", "done": 5, "total": 20, "unit": "bytes"}])
        self.assertNotIn("progress", members)

    def test_outside_a_session_there_is_no_session_id(self) -> None:
        source = tool("def execute(self, payload, context): return ToolResult(ok=True, result=[context.session_id, context.selected_pillar])")
        self.assertEqual(self.mill(tree(t=source), session_id="", pillar="").run("t")["data"], ["", ""])


ASK = tool(
    """
    def execute(self, payload, context):
        data = context.reference_data
        return ToolResult(ok=True, result=[data.get(key, "none") for key in payload["keys"]] + [payload["keys"][0] in data, data.keys()])
    """
)


class ReferenceData(Served):
    def test_the_tools_own_data_wins_over_the_hosts(self) -> None:
        root = tree(ask=ASK, other=ASK)
        data = os.path.join(root, "log_analysis", "ask", "data")
        for name, text in {"both.json": '{"own": 1}', "words.txt": "a\nb\n", "table.csv": "x,y\n1,2\n", "bad.json": "{", "both.txt": "second"}.items():
            write(os.path.join(data, name), text)
        mill = self.mill(root)
        mill.reference = {"both": "host", "common": {"h": [1]}, "bad": "host"}
        got = mill.run("ask", keys=["both", "words", "table", "common", "bad", "gone", "", "../ask/tool"])["data"]
        want = [{"own": 1}, "a\nb\n", "x,y\n1,2\n", {"h": [1]}, "host", "none", "none", "none"]
        self.assertEqual(got[:8], want)
        self.assertEqual(got[8:], [True, ["bad", "both", "common", "table", "words"]])
        self.assertEqual([record["level"] for record in mill.logs], ["warning"])
        self.assertEqual(mill.run("other", keys=["both"])["data"][0], "host")

    def test_it_is_gone_through_as_a_dict_is(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                data = context.reference_data
                before = [bool(data), len(data)]
                data.get("common"), data.get("gone")
                return ToolResult(ok=True, result=[before, [key for key in data], len(data), {key: data.get(key) for key in data.keys()}, dict(data.items()), data.values()])
            """
        )
        root = tree(t=source, bare=source)
        for name, text in {"a.txt": "1", "bad.json": "{"}.items():
            write(os.path.join(root, "log_analysis", "t", "data", name), text)
        mill = self.mill(root)
        mill.reference = {"common": [2], "bad": 3}
        found = {"a": "1", "bad": 3, "common": [2]}
        self.assertEqual(mill.run("t")["data"], [[True, 2], list(found), 3, found, found, list(found.values())])
        self.assertEqual(mill.run("bare")["data"][0], [True, 0], "what was not asked for may be there")

    def test_the_host_is_asked_once_a_call_and_may_refuse(self) -> None:
        mill = self.mill(tree(ask=ASK))
        mill.reference = {"k": 1}
        mill.run("ask", keys=["k", "k"])
        mill.reference = {"k": 2}
        self.assertEqual(mill.run("ask", keys=["k"])["data"][0], 2)
        self.assertEqual(len([args for method, args in mill.requests if method == "reference_data.get" and args["key"] == "k"]), 2)
        mill.answer = lambda method, args: mill.opened if method == "session.open" else [][1]
        self.assertEqual(mill.run("ask", keys=["k"])["data"][0], "none")

    def test_techniques_of_attack(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                from framework.reference_data.mitre_attack import get_mitre_db
                return ToolResult(ok=True, result=[get_mitre_db(), get_mitre_db(), context.reference_data.get("mitre_techniques"), context.reference_data.get("mitre_attack_enterprise")])
            """
        )
        mill = self.mill(tree(t=source))
        self.assertEqual(mill.run("t")["data"], [{}, {}, None, None])
        self.assertEqual(len([record for record in mill.logs if "mitre_techniques" in record["message"]]), 1)
        table = {"T1059": {"name": "Command and Scripting Interpreter", "tactics": ["Execution"], "url": "u", "matrix": "enterprise"}}
        mill.reference = {"mitre_techniques": table}
        self.assertEqual(mill.run("t")["data"], [table, table, table, None])


MODEL = code(
    """
    from framework.plugins.protocol import LLMResponse, QueryHints
    class Tool(Base):
        def execute(self, payload, context):
            answer = eval(payload["ask"], {**globals(), "llm": context.llm_query, "context": context})
            if isinstance(answer, LLMResponse): answer = vars(answer)
            return ToolResult(ok=True, result={"answer": answer})
    """
)


class Models(Served):
    def ask(self, text: str) -> tuple[object, object]:
        """Return what a tool hears of a question, and what the host was asked."""
        mill = self.mill(tree(t=MODEL), llm_enabled=True)
        mill.load("r.pdf", b"%PDF")
        mill.model = self.model
        self.asked = None
        answer = mill.run("t", ask=text)["data"]["answer"]
        return answer, self.asked

    def model(self, method: str, args: dict[str, object]) -> object:
        self.asked = (method, args)
        if method == "llm.supports_native_document":
            return {"supported": args["mime_type"] == "application/pdf"}
        return {"ok": True, "text": "t", "token_usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, "model_used": "m", "transport_path": "text", "future": 1}

    def test_query_text(self) -> None:
        answer, asked = self.ask("llm.query_text(prompt='p')")
        want = {"ok": True, "text": "t", "error": None, "token_usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, "model_used": "m", "transport_path": "text"}
        self.assertEqual(answer, {**want, "fallback_reason": None})
        self.assertEqual(asked, ("llm.query_text", {"prompt": "p", "max_tokens": 4096}))
        hints = "QueryHints(tier='heavy', needs_reasoning=True)"
        asked = self.ask(f"llm.query_text('p', 's', 16384, ['g', 'h'], {hints})")[1]
        spelled = {"tier": "heavy", "needs_reasoning": True, "needs_structured_output": False, "prefers_native_file": False}
        want = {"prompt": "p", "max_tokens": 16384, "system_context": "s", "grounding_data": ["g", "h"], "hints": spelled}
        self.assertEqual(asked, ("llm.query_text", want))
        self.assertEqual(self.ask("llm.query_text('p', hints={'tier': 'light'})")[1][1]["hints"], {"tier": "light"})

    def test_query_with_document(self) -> None:
        for artifact in ("context.artifacts[0]", "vars(context.artifacts[0])", "'art_00000000'", "{'artifact_id': 'art_00000000'}"):
            asked = self.ask(f"llm.query_with_document(prompt='p', artifact={artifact}, max_tokens=8192)")[1]
            self.assertEqual(asked, ("llm.query_with_document", {"prompt": "p", "max_tokens": 8192, "artifact_id": "art_00000000"}))
        self.assertEqual(self.ask("llm.query_with_document('p', context.artifacts[0])")[1][1]["max_tokens"], 8192)
        self.assertEqual(self.ask("[llm.supports_native_document('application/pdf'), llm.supports_native_document('x/y')]")[0], [True, False])

    def test_small_images_are_in_the_question_and_large_ones_in_a_file(self) -> None:
        self.ask("llm.query_multimodal('p', b'\\x89PNG', 'png')")
        self.assertEqual(self.asked[1]["image"], {"$bytes": base64.b64encode(b"\x89PNG").decode()})
        seen = []

        def model(method: str, args: dict[str, object]) -> object:
            with open(os.path.join(self.served.scratch, args["image"]["$file"]), "rb") as file:
                seen.append((args["image_format"], len(file.read())))
            return {"ok": False, "error": "no model sees"}

        self.served = self.mill(tree(t=MODEL), llm_enabled=True)
        self.served.model = model
        data = self.served.run("t", ask="llm.query_multimodal('p', b'x' * 300000, 'image/png', max_tokens=1)")["data"]
        self.assertEqual((data["answer"]["ok"], data["answer"]["error"], seen), (False, "no model sees", [("image/png", 300000)]))
        self.assertEqual(os.listdir(os.path.join(self.served.scratch, "images")), [], "the file is gone with the question")

    def test_a_model_that_fails_is_an_answer(self) -> None:
        for error, said in [("budget_exceeded", "budget_exceeded: 5 of 5 cents are used"), ("service_denied", "service_denied: ")]:
            mill = self.mill(tree(t=MODEL), llm_enabled=True)
            id = mill.begin("t", {"ask": "llm.query_text('p')"})
            mill.serve(mill.receive())
            asked = mill.receive()
            frame = {"code": -32000, "message": "5 of 5 cents are used", "data": {"code": error}}
            mill.send({"jsonrpc": "2.0", "id": asked["id"], "error": frame})
            answer = mill.finish(id)["result"]["data"]["answer"]
            self.assertFalse(answer["ok"])
            self.assertTrue(answer["error"].startswith(said), answer)

    def test_a_question_that_fits_in_no_frame_and_an_answer_that_is_none(self) -> None:
        answer = self.ask("llm.query_text('x' * (5 << 20))")[0]
        self.assertEqual((answer["ok"], answer["error"].partition(":")[0]), (False, "limit_exceeded"))
        self.assertIsNone(self.asked)
        self.model = lambda method, args: []
        self.assertFalse(self.ask("llm.query_text('p')")[0]["ok"])


class Logging(Served):
    def test_records_go_to_the_host(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                context.logger.debug("not this")
                context.logger.info("opened %d", 7)
                context.logger.warning("bad arguments %d", "x")
                logging.getLogger("some.library").error("from a library")
                try: 1 / 0
                except ZeroDivisionError: context.logger.exception("divided")
                logging.basicConfig(force=True)
                context.logger.info("y" * 10000)
                return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        mill.run("t")
        said = [(record["level"], record["message"], record["fields"]["logger"]) for record in mill.logs]
        self.assertEqual(said[0], ("info", "opened 7", "eventmill.plugin.t"))
        self.assertEqual(said[1][:2], ("warning", "bad arguments %d ('x',)"))
        self.assertEqual(said[2], ("error", "from a library", "some.library"))
        self.assertEqual(said[3][:2], ("error", "divided"))
        self.assertIn("ZeroDivisionError", mill.logs[3]["fields"]["exception"])
        self.assertEqual(len(said[4][1]), 8192)
        self.assertEqual(mill.logs[0]["call"], f"{1:032x}")

    def test_a_flood_of_records_is_cut(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                for n in range(5000): context.logger.info("n %d", n)
                return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        for _ in range(2):
            mill.logs.clear()
            mill.run("t")
            self.assertEqual(len(mill.logs), 1001)
            self.assertIn("are dropped", mill.logs[-1]["message"])

    def test_log_llm_interaction(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                from framework.logging.structured import log_llm_interaction
                log_llm_interaction("p" * 9999, "r", model_id="m", history_turns=2, session_id="s")
                log_llm_interaction(prompt="p", response_text=None, error="quota")
                return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        mill.run("t")
        self.assertEqual(mill.logs, [], "the host has the exchange itself; no console shows it")
        with open(os.path.join(mill.scratch, "workspace", "workspace", "logs", "activity.log"), encoding="utf-8") as file:
            first, second = map(json.loads, file)
        self.assertEqual((first["model"], first["session"], first["history_turns"], len(first["prompt"]), first["response"]), ("m", "s", 2, 9999, "r"))
        self.assertEqual((second["response"], second["error"]), (None, "quota"))


ALONE = """
import dataclasses, json
from framework.plugins.protocol import *
from framework.plugins.protocol import QueryHints
from framework.logging.structured import log_llm_interaction
from framework.reference_data.mitre_attack import get_mitre_db
log_llm_interaction("p", "r")
ref = ArtifactRef("a", "text", "/f")
try: ref.file_path = "other"
except dataclasses.FrozenInstanceError: frozen = True
class Tool:
    def metadata(self): ...
    def validate_inputs(self, payload): ...
    def execute(self, payload, context): ...
    def summarize_for_llm(self, result): ...
context = ExecutionContext(session_id="s", selected_pillar="log_analysis")
print(json.dumps([dataclasses.asdict(x) for x in (ToolResult(True), ValidationResult(False), ref, QueryHints(), LLMResponse(True))]
    + [frozen, get_mitre_db(), isinstance(Tool(), EventMillToolProtocol), isinstance(object(), EventMillToolProtocol), context.llm_query]))
"""


class Framework(unittest.TestCase):
    def test_it_works_without_a_host(self) -> None:
        done = subprocess.run([sys.executable, "-B", "-c", ALONE], capture_output=True, text=True, env={"PYTHONPATH": KIT}, check=True)
        result = {"result": None, "error_code": None, "message": None, "details": None, "output_artifacts": None}
        hints = {"tier": "light", "needs_reasoning": False, "needs_structured_output": False, "prefers_native_file": False}
        answer = {"text": None, "error": None, "token_usage": None, "model_used": None, "transport_path": None, "fallback_reason": None}
        want = [
            {"ok": True, **result},
            {"ok": False, "errors": None},
            {"artifact_id": "a", "artifact_type": "text", "file_path": "/f", "storage_uri": None, "source_tool": None, "metadata": {}},
            {**hints, "max_budget_cents": None},
            {"ok": True, **answer},
            *[True, {}, True, False, None],
        ]
        self.assertEqual(json.loads(done.stdout), want)
        self.assertIn("there is no reference data", done.stderr)


class Start(Served):
    def test_nothing_is_loaded_before_the_first_call(self) -> None:
        code = "import sys; sys.path[:0] = [sys.argv[1]]; import eventmill._shim.server; print(*sorted(sys.modules))"
        done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code, os.path.dirname(KIT)], capture_output=True, text=True, check=True)
        loaded = set(done.stdout.split())
        self.assertIn("eventmill._shim.server", loaded)
        slow = {"dataclasses", "inspect", "typing", "json", "logging", "importlib", "re", "threading", "eventmill._shim.execute", "framework"}
        self.assertEqual(loaded & slow, set())


if __name__ == "__main__":
    unittest.main()
