"""What published Event Mill tools rely on, each fact with a tool that relies on it."""

from __future__ import annotations

import json
import os
import time
import unittest
from typing import Any

from mill import Mill, tree, write_tool

HEAD = """
    import json, os
    from framework.plugins.protocol import ArtifactRef, QueryHints, ToolResult, ValidationResult

    class Tool:
        def metadata(self): return {"tool_name": "TOOL_NAME", "version": "1.0.0"}
        def validate_inputs(self, payload): return ValidationResult(ok=True)
        def summarize_for_llm(self, result): return "done"
        def execute(self, payload, context):
"""


def tool(body: str) -> str:
    """Return a tool whose execute is body."""
    return HEAD + "\n".join("            " + line for line in body.strip("\n").splitlines())


def ran(body: str, payload: dict[str, Any] | None = None, manifest: dict[str, Any] | None = None, **session: Any) -> tuple[Any, Mill]:
    """Run a tool once; return its answer and the host's side, which has ended."""
    root = tree()
    write_tool(root, "one", tool(body), **(manifest or {}))
    with Mill(root, **session) as mill:
        return mill.run("one", **(payload or {})), mill


class Directories(unittest.TestCase):
    BODY = """
out = {"there": os.path.isdir(payload["path"]), "names": sorted(os.listdir(payload["path"])), "refs": []}
out["read"] = open(os.path.join(payload["path"], "sub", "b.log")).read()
out["time"] = int(os.stat(os.path.join(payload["path"], "a.log")).st_mtime)
for ref in context.artifacts:
    out["refs"].append([ref.artifact_id, os.path.basename(ref.file_path), os.path.isdir(ref.file_path), ref.artifact_type, ref.metadata])
return ToolResult(ok=True, result=out)
"""

    def loaded(self, mill: Mill, files: Any) -> dict[str, Any]:
        listing = mill.load("logs", json.dumps({"files": files}).encode(), **{})
        listing.update(artifact_type="text", metadata={"original_filename": "logs", "directory": True})
        return listing

    def test_a_directory_is_one_whose_files_have_their_names_and_times(self) -> None:
        root = tree()
        write_tool(root, "one", tool(self.BODY))
        with Mill(root) as mill:
            a, b = mill.load("a.log", b"first"), mill.load("b.log", b"second")
            os.utime(a["file_path"], (1_500_000_000, 1_500_000_000))
            listing = self.loaded(mill, [{"path": "a.log", "artifact_id": a["artifact_id"]}, {"path": "sub/b.log", "artifact_id": b["artifact_id"]}])
            for payload in ({"path": listing["file_path"]}, {"artifact_id": listing["artifact_id"]}, {"path": "logs"}):
                with self.subTest(payload):
                    data = mill.run("one", **payload)["data"]
                    self.assertEqual((data["there"], data["names"], data["read"], data["time"]), (True, ["a.log", "sub"], "second", 1_500_000_000))
                    self.assertIn([listing["artifact_id"], "logs", True, "text", {"original_filename": "logs"}], data["refs"])

    def test_a_listing_that_leads_elsewhere_is_a_text(self) -> None:
        root = tree()
        body = "return ToolResult(ok=True, result=[os.path.isdir(ref.file_path) for ref in context.artifacts])"
        write_tool(root, "one", tool(body))
        for files in ([{"path": "../x", "artifact_id": "art_00000000"}], [{"path": "/etc/x", "artifact_id": "art_00000000"}], [{"path": "x", "artifact_id": "art_none"}], "x", None):
            with self.subTest(files), Mill(root) as mill:
                mill.load("a.log", b"first")
                self.loaded(mill, files)
                self.assertEqual(mill.run("one")["data"], [False, False])


class Models(unittest.TestCase):
    NEEDS = {"requires_llm": True}

    def test_a_tool_that_asks_for_a_model_runs_without_one(self) -> None:
        answer, _ = ran("return ToolResult(ok=True, result={'model': context.llm_enabled, 'query': context.llm_query is None})", manifest=self.NEEDS)
        self.assertEqual(answer["data"], {"model": False, "query": True})

    def test_where_it_then_fails_the_code_is_that_of_a_missing_model(self) -> None:
        for body, code in (
            ("return ToolResult(ok=False, error_code='LLM_UNAVAILABLE', message='no model')", "LLM_UNAVAILABLE"),
            ("return ToolResult(ok=context.llm_enabled, message='cannot go on')", "LLM_UNAVAILABLE"),
            ("return ToolResult(ok=False, error_code='ANALYSIS_FAILED', message='no language model')", "LLM_UNAVAILABLE"),
            ("return ToolResult(ok=context.llm_query is not None, error_code='EXECUTION_ERROR', message='cannot go on')", "LLM_UNAVAILABLE"),
            ("return context.llm_query.query_text('hello')", "LLM_UNAVAILABLE"),
            ("ask = context.llm_query\ntry: ask.query_text('hello')\nexcept Exception as exc: raise RuntimeError('broken') from exc", "LLM_UNAVAILABLE"),
            ("raise RuntimeError('it was run without a model')", "LLM_UNAVAILABLE"),
            ("raise ValueError('the risk model has no rows')", "INTERNAL_ERROR"),
            # What has nothing to do with a model is what it is.
            ("raise ValueError('bad line 7')", "INTERNAL_ERROR"),
            ("if not context.llm_enabled: raise ValueError('bad line 7')", "INTERNAL_ERROR"),
            ("raise AttributeError('no such member')", "INTERNAL_ERROR"),
            ("None.append(1)", "INTERNAL_ERROR"),
            ("return ToolResult(ok=False, error_code='ANALYSIS_FAILED', message='cannot go on')", "ANALYSIS_FAILED"),
            ("return ToolResult(ok=False, message='cannot go on')", "INTERNAL_ERROR"),
            ("return None", "INTERNAL_ERROR"),
            ("raise SystemExit(3)", "INTERNAL_ERROR"),
            ("return ToolResult(ok=False, error_code='FILE_NOT_FOUND', message='no capture')", "FILE_NOT_FOUND"),
            ("return ToolResult(ok=False, error_code='MISSING_PARAM', message='which?')", "MISSING_PARAM"),
            ("import nowhere_to_be_found", "DEPENDENCY_MISSING"),
        ):
            with self.subTest(body):
                answer, _ = ran(body, manifest=self.NEEDS)
                self.assertEqual((answer["status"], answer["error"]["plugin_code"]), ("failed", code))
                self.assertNotIn("wants_model", answer["error"]["details"])
                if "bad line" in body:
                    self.assertTrue(answer["error"]["message"].endswith("ValueError: bad line 7"))

    def test_with_a_model_or_without_the_need_of_one_codes_stay(self) -> None:
        body = "return ToolResult(ok=False, error_code='ANALYSIS_FAILED', message='cannot go on')"
        for manifest, session in ((self.NEEDS, {"llm_enabled": True}), ({}, {})):
            answer, _ = ran(body, manifest=manifest, **session)
            self.assertEqual(answer["error"]["plugin_code"], "ANALYSIS_FAILED")

    def test_a_host_that_is_told_to_refuses_before_the_tool_runs(self) -> None:
        answer, mill = ran("context.register_artifact('text', __file__, 'x', {})", manifest=self.NEEDS, llm_required="refuse")
        self.assertEqual(answer["error"]["plugin_code"], "LLM_UNAVAILABLE")
        self.assertIn("models.required", answer["error"]["message"])
        self.assertEqual(mill.requests, [])

    def test_a_document_is_opened_by_what_the_reference_points_at(self) -> None:
        said: list[Any] = []

        def model(method: str, args: dict[str, Any]) -> Any:
            said.append({**args, "data": _scratch(mill, args)})
            return {"ok": True, "text": "read"}

        body = """
open("mine.pdf", "wb").write(b"%PDF-mine")
ref = ArtifactRef("art_made_up", "pdf_report", os.path.abspath("mine.pdf"), None, None, payload.get("metadata") or {})
answer = context.llm_query.query_with_document("what?", ref)
given = context.artifacts[0]
context.llm_query.query_with_document("and?", given, hints=QueryHints(tier="light"))
context.llm_query.query_with_document("and?", ArtifactRef(given.artifact_id, "text", os.path.abspath("mine.pdf")))
none = context.llm_query.query_with_document("gone?", ArtifactRef(given.artifact_id, "text", "/nowhere/at/all.pdf"))
return ToolResult(ok=True, result={"text": answer.text, "gone": [none.ok, none.fallback_reason is not None]})
"""
        root = tree()
        write_tool(root, "one", tool(body))
        with Mill(root, llm_enabled=True) as mill:
            mill.model = model
            id = mill.load("given.log", b"a line\n")["artifact_id"]
            answer = mill.run("one", metadata={"mime_type": "text/html"})
        self.assertEqual(answer["data"], {"text": "read", "gone": [False, True]})
        self.assertEqual([one.get("mime_type") for one in said], ["text/html", None, "application/pdf"])
        self.assertEqual([one["data"] for one in said], [b"%PDF-mine", None, b"%PDF-mine"])
        self.assertEqual([one.get("artifact_id") for one in said], [None, id, None])


def _scratch(mill: Mill, args: dict[str, Any]) -> bytes | None:
    name = (args.get("document") or {}).get("$file")
    if name is None:
        return None
    with open(os.path.join(mill.scratch, name), "rb") as file:
        return file.read()


class Context(unittest.TestCase):
    def test_config_is_what_the_host_says_and_empty_where_it_says_nothing(self) -> None:
        body = "return ToolResult(ok=True, result={'config': context.config, 'pillar': context.selected_pillar})"
        self.assertEqual(ran(body, pillar="")[0]["data"], {"config": {}, "pillar": ""})
        config = {"condition_orange": True, "EVENTMILL_BUCKET_PREFIX": "case7"}
        self.assertEqual(ran(body, config=config, pillar="risk_assessment")[0]["data"], {"config": config, "pillar": "risk_assessment"})

    def test_all_ways_to_the_workspace_lead_to_one_directory(self) -> None:
        body = """
space = os.environ["EVENTMILL_WORKSPACE"]
same = os.path.samefile(space, os.path.join(os.getcwd(), "workspace")) and os.path.samefile(space, context.config.get("workspace_dir", "workspace"))
inside = os.path.realpath(os.path.join(space, "x")).startswith(space + os.sep)
folders = [os.path.isdir("workspace/storage/" + name) for name in ("case7-common", "case7-log-analysis")]
return ToolResult(ok=True, result={"absolute": os.path.isabs(space), "same": same, "inside": inside, "folders": folders, "artifacts": os.path.isdir("workspace/artifacts")})
"""
        answer, _ = ran(body, config={"EVENTMILL_BUCKET_PREFIX": "case7"})
        self.assertEqual(answer["data"], {"absolute": True, "same": True, "inside": True, "folders": [True, True], "artifacts": True})

    def test_reference_data_has_get_keys_and_in_and_no_subscript(self) -> None:
        body = """
data = context.reference_data
try:
    data["mitre_techniques"]
    subscript = True
except TypeError:
    subscript = False
said = {"get": sorted(data.get("mitre_techniques", {})), "none": data.get("mitre_attack_enterprise"), "default": data.get("x", 7)}
said.update({"keys": data.keys(), "in": ["mitre_techniques" in data, "mitre_attack_enterprise" in data], "subscript": subscript})
return ToolResult(ok=True, result=said)
"""
        root = tree()
        write_tool(root, "one", tool(body))
        with Mill(root) as mill:
            mill.reference["mitre_techniques"] = {"T0800": {}}
            said = mill.run("one")["data"]
        wanted = {"get": ["T0800"], "none": None, "default": 7, "keys": ["mitre_techniques"], "in": [True, False], "subscript": False}
        self.assertEqual(said, wanted)

    def test_techniques_that_are_no_object_are_none_at_all(self) -> None:
        for wrong in ([1], "text", 7, None):
            root = tree()
            write_tool(root, "one", tool("return ToolResult(ok=True, result={'got': context.reference_data.get('mitre_techniques')})"))
            with Mill(root) as mill:
                mill.reference["mitre_techniques"] = wrong
                self.assertEqual(mill.run("one")["data"], {"got": {}})

    def test_the_module_of_techniques(self) -> None:
        body = """
from framework.reference_data import mitre_attack as m
known = [m.validate_technique_id(id) for id in ("T0800", "t0800", "T9999", "nonsense", None)]
return ToolResult(ok=True, result={"n": m.technique_count(), "known": known, "one": m.enrich_technique("T0800"), "none": m.enrich_technique("T9999")})
"""
        root = tree()
        write_tool(root, "one", tool(body))
        row = {"name": "Activate Firmware Update Mode", "tactics": ["Inhibit Response Function"], "url": "https://x/T0800", "matrix": "ics"}
        with Mill(root) as mill:
            mill.reference["mitre_techniques"] = {"T0800": row}
            said = mill.run("one")["data"]
        self.assertEqual(said, {"n": 1, "known": [True, False, False, False, False], "one": {"technique_id": "T0800", **row}, "none": None})
        with Mill(root) as mill:  # without data nothing can be said to be wrong
            said = mill.run("one")["data"]
        self.assertEqual((said["n"], said["known"][0], said["known"][2]), (0, True, True))

    def test_what_a_tool_tells_of_models_goes_to_the_activity_log_and_to_no_console(self) -> None:
        body = """
from framework.logging.structured import log_llm_interaction
log_llm_interaction("p" * 3000, "r" * 3000, model_id="m", error="it broke")
path = os.path.join(os.environ["EVENTMILL_WORKSPACE"], "logs", "activity.log")
lines = [json.loads(line) for line in open(path, encoding="utf-8")]
return ToolResult(ok=True, result={"n": len(lines), "prompt": len(lines[0]["prompt"]), "response": len(lines[0]["response"])})
"""
        answer, mill = ran(body)
        self.assertEqual(answer["data"], {"n": 1, "prompt": 3000, "response": 500})
        self.assertEqual([one for one in mill.logs if one["level"] != "debug"], [])


class Files(unittest.TestCase):
    def test_a_path_that_is_not_there_is_the_one_artifact_of_its_name_and_never_one_of_several(self) -> None:
        root = tree()
        write_tool(root, "one", tool("return ToolResult(ok=True, result={'text': open(payload['file_path']).read()})"))
        with Mill(root) as mill:
            mill.load("auth.log", b"first")
            self.assertEqual(mill.run("one", file_path="/elsewhere/auth.log")["data"], {"text": "first"})
            mill.load("auth.log", b"second")
            answer = mill.run("one", file_path="/elsewhere/auth.log")
            self.assertEqual(answer["error"]["plugin_code"], "ARTIFACT_NOT_FOUND")
            self.assertIn("several artifacts", answer["error"]["message"])

    def test_an_argument_that_names_an_artifact_to_write_gets_a_copy_of_it(self) -> None:
        body = """
with open(payload["output_path"], payload["how"]) as file: file.write("four")
return ToolResult(ok=True, result=None)
"""
        for how, had, wanted in (("a", b"keep", b"keepfour"), ("w", b"keep", b"four"), ("r+", b"keepme", b"fourme")):
            root = tree()
            write_tool(root, "one", tool(body))
            with Mill(root) as mill:
                path = mill.load("mine.txt", had)["file_path"]
                self.assertEqual(mill.run("one", output_path=path, how=how)["status"], "succeeded")
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), had)
            self.assertEqual([(one["data"], one["metadata"]) for one in mill.registered], [(wanted, {"exported_as": "output_path"})])

    def test_an_artifact_that_is_not_in_the_session_is_refused_before_the_tool_sees_it(self) -> None:
        source = HEAD.replace("return ValidationResult(ok=True)", "raise RuntimeError('validated')") + "            return None\n"
        root = tree(one=source)
        with Mill(root) as mill:
            id = mill.load("a.log", b"x")["artifact_id"]
            self.assertEqual(mill.run("one", artifact_id="art_ffffffff")["error"]["plugin_code"], "ARTIFACT_NOT_FOUND")
            self.assertIn("validated", mill.run("one", artifact_id=id)["error"]["message"])
            self.assertIn("validated", mill.run("one", artifact_id=7)["error"]["message"])

    def test_what_a_tool_registers_is_not_judged(self) -> None:
        body = """
open("note.xyz", "w").write("x")
refs = [
    context.register_artifact("markdown", "note.xyz", "other_tool"),
    context.register_artifact("no such type", "/nowhere/report.pdf", "one", None),
]
said = [[r.artifact_type, r.file_path, r.source_tool, r.metadata, bool(r.artifact_id)] for r in refs]
return ToolResult(ok=True, result={"refs": said, "ids": refs[0].artifact_id != refs[1].artifact_id})
"""
        answer, mill = ran(body)
        wanted = [["markdown", "note.xyz", "other_tool", {}, True], ["no such type", "/nowhere/report.pdf", "one", {}, True]]
        self.assertEqual(answer["data"], {"refs": wanted, "ids": True})
        self.assertEqual([one["data"] for one in mill.registered], [b"x"])

    def test_an_id_is_of_the_file_as_it_is_when_the_tool_has_ended(self) -> None:
        body = """
refs = []
for name, early, late in (("later", None, "late"), ("grows", "a", "ab"), ("swapped", "a", "b"), ("gone", "a", ""), ("same", "a", "a"), ("never", None, None)):
    if early: open(name, "w").write(early)
    refs += [context.register_artifact("text", name, "one", {"n": name}).artifact_id for _ in range(2)]
    if late == "": os.unlink(name)
    elif name == "swapped": open("new", "w").write(late); os.replace("new", name)
    elif late: open(name, "w").write(late)
os.mkdir("folder")
context.register_artifact("text", "folder")
if payload.get("raises"): raise ValueError("at the end")
return ToolResult(ok=payload.get("ok", True), result=refs, message=json.dumps(refs))
"""
        for payload in ({}, {"ok": False}, {"raises": True}):
            answer, mill = ran(body, payload)
            kept = [(one["metadata"]["n"], one["data"]) for one in mill.registered]
            wanted = [(name, data) for name, data in (("later", b"late"), ("grows", b"ab"), ("swapped", b"b"), ("gone", b"a"), ("same", b"a")) for _ in range(2)]
            self.assertEqual(kept, wanted)
            ids = [one["asked"]["artifact_id"] for one in mill.registered]
            self.assertEqual(len(set(ids)), 10)
            if not payload:
                self.assertEqual(answer["data"][:10], ids)
            said = [one["message"] for one in mill.logs if "is no file: nothing was kept" in one["message"]]
            self.assertEqual((len(said), "it is a directory" in said[-1]), (3, True))

    def test_output_artifacts_of_what_went_well_are_registered_as_they_are_listed(self) -> None:
        body = """
open("a.csv", "w").write("a")
open("b.log", "w").write("b")
os.makedirs("folder")
ref = context.register_artifact("text", "a.csv", "one", {"own": 1})
listed = [
    {"file_path": "a.csv", "artifact_id": "art_own_1", "artifact_type": "text", "metadata": {"dropped": True}},
    {"file_path": "b.log", "metadata": {"dropped": True}}, {"file_path": "gone.txt"}, {"file_path": "folder"}, {"other": 1},
]
return ToolResult(ok=payload.get("ok", True), result={}, output_artifacts=listed, message="m")
"""
        answer, mill = ran(body)
        self.assertEqual(answer["status"], "succeeded")
        said = [[one["asked"].get("artifact_type"), os.path.basename(one["file_path"]), one["asked"].get("metadata", {})] for one in mill.registered]
        wanted = [["text", "a.csv", {"own": 1}], ["text", "a.csv", {"plugin_artifact_id": "art_own_1"}], ["text", "b.log", {}]]
        self.assertEqual(said, wanted)
        _, mill = ran(body, {"ok": False})
        self.assertEqual(len(mill.registered), 1)  # its own: what failed lists nothing

    def test_a_saved_result_is_named_and_typed_as_analysts_know_it(self) -> None:
        for result, produced, ending, kind, text in (
            ({"n": 1}, ["risk_model", "text"], ".json", "risk_model", None),
            ({}, [], ".json", "json_events", "{}"),
            ({"report": "# R"}, ["text"], ".md", "text", "# R"),
            ({"report": "# R"}, [], ".md", "text", "# R"),
            ({"report": "# R", "n": 1}, [], ".json", "json_events", None),
            ({"report": "# R"}, ["json_events"], ".json", "json_events", None),
            ({"report": "# R", "n": 1}, ["text"], ".md", "text", '# R\n\n```json\n{\n  "n": 1\n}\n```'),
            ({"summary": "s", "analysis": "a", "rows": [1]}, ["risk_model"], ".json", "risk_model", None),
            ({"n": 1}, ["markdown"], ".json", "text", None),
            ({"analysis": "a"}, ["pdf_report"], ".md", "text", "a"),
            ({"n": 1}, ["image"], ".json", "json_events", None),
            ("words", [], ".md", "text", "words"),
            ("words", ["json_events"], ".json", "json_events", '"words"'),
        ):
            with self.subTest(result):
                before = int(time.time())
                answer, mill = ran(f"return ToolResult(ok=True, result={result!r})", manifest={"artifacts_produced": produced})
                self.assertEqual(answer["status"], "succeeded")
                saved = mill.registered[0]
                stem, end = os.path.splitext(os.path.basename(saved["file_path"]))
                made = time.mktime(time.strptime(stem, "one_%Y%m%d_%H%M%S"))
                self.assertTrue(before - 1 <= made <= time.time() + 1, stem)
                self.assertEqual((end, saved["artifact_type"], saved["metadata"]), (ending, kind, {"auto_persisted": True}))
                if text is not None:
                    self.assertEqual(saved["data"].decode().strip(), text)
                if end == ".json":
                    self.assertEqual(json.loads(saved["data"]), result)
        self.assertEqual(ran("return ToolResult(ok=True, result=None)")[1].registered, [])

    def test_a_file_that_a_tool_exports_comes_back_as_an_artifact_that_says_which_argument_named_it(self) -> None:
        body = """
path = payload["output_path"]
os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
open(path, "w").write(json.dumps({"n": payload["n"]}))
return ToolResult(ok=True, result={"path": path})
"""
        for n, path in enumerate(("/home/analyst/case/model.json", "out/model.json", "../model.json", "model.json")):
            with self.subTest(path):
                answer, mill = ran(body, {"output_path": path, "n": n})
                self.assertEqual(answer["status"], "succeeded", answer)
                exported = [one for one in mill.registered if one["metadata"].get("exported_as") == "output_path"]
                self.assertEqual([json.loads(one["data"]) for one in exported], [{"n": n}])
                self.assertEqual(os.path.basename(exported[0]["file_path"]), "model.json")
                self.assertFalse(os.path.exists("/home/analyst/case"))

    def test_a_file_of_an_earlier_call_is_not_exported_by_a_later_one(self) -> None:
        body = """
if payload.get("write"):
    open(payload["output_path"], "w").write("first")
return ToolResult(ok=True, result=None)
"""
        root = tree()
        write_tool(root, "one", tool(body))
        with Mill(root) as mill:
            mill.run("one", output_path="/x/y.txt", write=True)
            mill.run("one", output_path="/x/y.txt")
        self.assertEqual([one["data"] for one in mill.registered], [b"first"])


class Answers(unittest.TestCase):
    def test_messages_and_summaries_are_as_the_tool_said_them(self) -> None:
        message = "  two\nlines \u00e4 and " + "m" * 3000
        answer, _ = ran(f"return ToolResult(ok=False, error_code='NO_MITRE_MAPPINGS', message={message!r})")
        self.assertEqual(answer["error"]["message"], message)
        for summary in ("  spaces \n", "", "s" * 2000, "s" * 5000):
            root = tree(one=tool("return ToolResult(ok=True, result={})").replace("return \"done\"", f"return {summary!r}"))
            with Mill(root) as mill:
                self.assertEqual(mill.run("one")["summary"], summary)

    def test_a_manifest_that_cannot_be_read_is_told_of_where_a_tool_is_not_found_and_nowhere_else(self) -> None:
        root = tree(one=tool("return ToolResult(ok=True)"))
        for name, text in (("bad", "{bad"), ("list", "[]"), ("large", " " * (1 << 20) + "{}")):
            os.mkdir(os.path.join(root, "log_analysis", name))
            with open(os.path.join(root, "log_analysis", name, "manifest.json"), "w") as file:
                file.write(text)
        for asked, told in (("one", 0), ("two", 3)):
            with Mill(root) as mill:
                mill.run(asked)
                _, said = mill.end()
            self.assertEqual(said.count("is passed over: "), told, said)

    def test_a_dot_folder_loads_and_the_last_of_two_tools_of_a_name_wins(self) -> None:
        root = tree(one=tool("return ToolResult(ok=True, result='first')"))
        write_tool(root, "one", tool("return ToolResult(ok=True, result='last')"), inside=os.path.join(root, "log_analysis", "z_again"))
        write_tool(root, "dotted", inside=os.path.join(root, "log_analysis", ".dotted"))
        with Mill(root) as mill:
            self.assertEqual(mill.run("one")["data"], "last")
            self.assertEqual(mill.run("dotted")["status"], "succeeded")


if __name__ == "__main__":
    unittest.main()
