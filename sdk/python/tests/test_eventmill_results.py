"""What Event Mill tools return: foreign classes, values that JSON does not have, sizes; and the files they leave."""

from __future__ import annotations

import json
import os
import unittest

from mill import TOOL, tree, write_tool
from test_eventmill import Served, code, tool

ANY = code(
    """
    import collections, dataclasses, datetime, decimal, enum, ipaddress, pathlib, types, uuid

    class Color(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Point:
        x: int
        tags: set

    class Odd: pass

    def deep(n):
        value = []
        for _ in range(n): value = [value]
        return value

    def cycle():
        value = {}
        value["self"] = value
        return value

    class Tool(Base):
        def execute(self, payload, context):
            return eval(payload["how"])
    """
)


class Values(Served):
    def test_what_json_does_not_have_is_spelled(self) -> None:
        cases = {
            "{'b', 'a', 'c'}": ["a", "b", "c"],
            "{3, 'x', 1, (2, 1)}": [1, 3, [2, 1], "x"],
            "frozenset([2, 10, 1])": [1, 2, 10],
            "(1, 2)": [1, 2],
            "collections.deque([1])": [1],
            "{1: 2}.values()": [2],
            "{'b': 1}.keys()": ["b"],
            "collections.Counter('aab')": {"a": 2, "b": 1},
            "types.MappingProxyType({'a': {1}})": {"a": [1]},
            "{1: 1, True: 2, None: 3, 2.5: 4}": {"1": 2, "null": 3, "2.5": 4},
            "{Color.RED: {1}, datetime.date(2024, 1, 2): {2}}": {"red": [1], "2024-01-02": [2]},
            "datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)": "2024-01-02T03:04:05+00:00",
            "datetime.timedelta(minutes=1)": 60.0,
            "pathlib.Path('/a/b')": "/a/b",
            "b'\\xff\\x00'": {"$bytes": "/wA="},
            "float('nan')": None,
            "[float('inf'), 1.5]": [None, 1.5],
            "Point(1, {2})": {"x": 1, "tags": [2]},
            "decimal.Decimal('1.5')": 1.5,
            "[decimal.Decimal(7), decimal.Decimal('NaN')]": [7, None],
            "uuid.UUID(int=1)": "00000000-0000-0000-0000-000000000001",
            "ipaddress.ip_address('192.0.2.1')": "192.0.2.1",
            "'half \\ud800 pair'": "half \ufffd pair",
            "{'k\\ud800': '\\U0001f600'}": {"k\ufffd": "\U0001f600"},
            "2 ** 64 + 1": 2**64 + 1,
        }
        mill = self.mill(tree(t=ANY))
        for how, want in cases.items():
            with self.subTest(how):
                result = mill.run("t", how=f"ToolResult(ok=True, result={{'value': {how}}})")
                self.assertEqual(result.get("data"), {"value": want}, result)

    def test_what_has_no_form_is_named_with_its_place(self) -> None:
        cases = {
            "Odd()": "/result/a/0/b is a Odd",
            "lambda: 1": "/result/a/0/b is a function",
            "(n for n in [1])": "/result/a/0/b is a generator",
            "cycle()": "nested deeper than 56, or holds itself",
            "deep(5000)": "nested deeper than 56",
            "{(1, 2): 3}": "/result/a/0/b has a key of type tuple",
            "10 ** 6000": "/result/a/0/b is an integer of",
            "Point": "/result/a/0/b is a type",
        }
        mill = self.mill(tree(t=ANY))
        for how, said in cases.items():
            with self.subTest(how):
                word, message = self.failure(mill.run("t", how=f"ToolResult(ok=True, result={{'a': [{{'b': {how}}}]}})"))
                self.assertEqual(word, "INTERNAL_ERROR")
                self.assertIn(said, message)
                self.assertLess(len(message), 500)
        self.assertEqual(mill.run("t", how="ToolResult(ok=True, result=1)")["data"], 1)

    def test_a_result_of_the_tools_own_making(self) -> None:
        cases = {
            "types.SimpleNamespace(ok=True, result={'n': 1})": {"n": 1},
            "types.SimpleNamespace(ok=True)": None,
            "dataclasses.make_dataclass('R', ['ok', 'result'])(True, {'n': 1})": {"n": 1},
            "collections.namedtuple('R', 'ok result')(1, {'n': 1})": {"n": 1},
        }
        mill = self.mill(tree(t=ANY))
        for how, want in cases.items():
            with self.subTest(how):
                self.assertEqual(mill.run("t", how=how)["data"], want)
        for how in ["types.SimpleNamespace(ok=False)", "types.SimpleNamespace(ok=None, message=None)"]:
            self.assertEqual(self.failure(mill.run("t", how=how)), ("INTERNAL_ERROR", "t failed and gave no reason"))

    def test_a_validation_of_the_tools_own_making(self) -> None:
        cases = {
            "types.SimpleNamespace(ok=False, errors=['a'])": ["a"],
            "types.SimpleNamespace(ok=False)": ["the input was refused without a reason"],
            "types.SimpleNamespace(ok=False, errors='one text')": ["one text"],
            "types.SimpleNamespace(ok=False, errors=[1, 'x' * 1000] + ['e'] * 1000)": ["1", "x" * 500] + ["e"] * 98,
            "types.SimpleNamespace(ok=False, errors=[{'why': 'bad'}, ('a', 1), {'at': {2}}])": [{"why": "bad"}, ["a", 1], {"at": [2]}],
        }
        source = code(
            """
            import types
            class Tool(Base):
                def validate_inputs(self, payload): return eval(payload["how"])
                def execute(self, payload, context): return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        for how, want in cases.items():
            with self.subTest(how):
                result = mill.run("t", how=how)
                self.assertEqual(self.failure(result)[0], "INPUT_VALIDATION_FAILED")
                self.assertEqual(result["error"]["details"], {"errors": want})
        self.assertEqual(mill.run("t", how="types.SimpleNamespace(ok=1)")["status"], "succeeded")

    def test_what_has_no_attribute_ok_is_no_result_whatever_it_holds(self) -> None:
        source = code(
            """
            class Tool(Base):
                def validate_inputs(self, payload): return eval(payload.get("valid", "ValidationResult(ok=True)"))
                def execute(self, payload, context): return eval(payload["how"])
            """
        )
        mill = self.mill(tree(t=source))
        for how, kind in {"{'ok': True, 'result': {'n': 1}}": "dict", "{'ok': False, 'errors': ['a']}": "dict", "{}": "dict", "True": "bool", "False": "bool", "[True]": "list", "'ok'": "str"}.items():
            with self.subTest(how):
                self.assertEqual(self.failure(mill.run("t", how=how)), ("INTERNAL_ERROR", f"execute returned a value of type {kind} in place of a ToolResult"))
                word, message = self.failure(mill.run("t", valid=how, how="ToolResult(ok=True)"))
                self.assertEqual(word, "INTERNAL_ERROR")
                self.assertIn(f"validate_inputs returned a value of type {kind} in place of a ValidationResult", message)
        self.assertEqual(mill.run("t", how="ToolResult(ok=True, result=1)")["data"], 1)

    def test_errors_with_members_are_read_out_in_the_message(self) -> None:
        source = code(
            """
            class Tool(Base):
                def validate_inputs(self, payload): return ValidationResult(ok=False, errors=payload["errors"])
            """
        )
        mill = self.mill(tree(t=source))
        errors = [{"field": "how", "why": "bad"}, ["a", 1], {"loc": ["b", 0], "msg": "no"}, {"code": 7, "msg": "m"}, {"x": "y" * 1000}]
        result = mill.run("t", errors=errors)
        message = self.failure(result)[1]
        self.assertTrue(message.startswith("t: field how, why bad; [\"a\",1]; loc [\"b\",0], msg no; code 7, msg m; {'x': 'yyy"), message)
        self.assertEqual(result["error"]["details"]["errors"], [*errors[:4], ("{'x': '" + "y" * 1000)[:500]])

    def test_keys_that_spell_alike_fail_nothing(self) -> None:
        mill = self.mill(tree(t=ANY))
        odd = "{200: 5, '200': 6, None: {1}}"
        result = mill.run("t", how=f"ToolResult(ok=True, result={odd}, details={odd}, output_artifacts=[{odd}])")
        said = {"200": 6, "null": [1]}
        self.assertEqual((result["data"], result["details"], result["output_artifacts"]), (said, said, [said]))
        result = mill.run("t", how="ToolResult(ok=True, result={200: 5, '200': 6, 'n': {None: 1, 'null': 2}})")
        self.assertEqual(result["data"], {"200": 6, "n": {"null": 2}})

    def test_message_details_and_outputs_travel_as_they_are(self) -> None:
        mill = self.mill(tree(t=ANY))
        how = "ToolResult(ok=True, result=1, message='m', details={'d': {1}}, output_artifacts=[{'path': 'gone.txt'}])"
        result = mill.run("t", how=how)
        self.assertEqual((result["message"], result["details"]), ("m", {"d": [1]}))
        self.assertEqual(result["output_artifacts"], [{"path": "gone.txt"}])

    def test_everything_is_bounded(self) -> None:
        mill = self.mill(tree(t=ANY))
        how = "ToolResult(ok=False, error_code='C' * 1000, message='m' * 9999, details={'d': 'x' * 99999}, output_artifacts=['y' * 2000000])"
        result = mill.run("t", how=how)
        error = result["error"]
        self.assertEqual((len(error["plugin_code"]), len(error["message"])), (128, 4096))
        self.assertEqual(error["details"]["bytes"], 99999 + 8)
        self.assertNotIn("output_artifacts", result)
        result = mill.run("t", how="ToolResult(ok=False, error_code='C', message='m', details=['no', 'object'])")
        self.assertEqual(result["error"]["details"], {"details": ["no", "object"]})

    def test_a_result_over_the_frame_limit_is_an_error_that_says_what_to_do(self) -> None:
        mill = self.mill(tree(t=ANY), frame_bytes=64 << 10)
        word, message = self.failure(mill.run("t", how="ToolResult(ok=True, result={'x': 'y' * 100000})"))
        self.assertEqual(word, "INTERNAL_ERROR")
        self.assertRegex(message, r"the limit is 65536; write it to a file.*\(it was saved as artifact art_00000000\)")
        self.assertEqual(len(mill.registered[0]["data"]), len(json.dumps({"x": "y" * 100000}, indent=2)) + 1)
        self.assertEqual(mill.run("t", how="ToolResult(ok=True, result=1)")["data"], 1)


class Files(Served):
    def test_a_payload_that_names_an_artifact_gets_its_paths(self) -> None:
        mill = self.mill(tree(t=tool("def execute(self, payload, context): return ToolResult(ok=True, result=payload)")), session_id="")
        path = mill.load("auth.log", b"x")["file_path"]
        here = os.path.join(mill.root, "log_analysis", "t", "tool.py")
        cases = [
            ({"artifact_id": "art_00000000"}, {"artifact_id": "art_00000000", "file_path": path, "path": path}),
            ({"artifact_id": "art_00000000", "path": here}, {"artifact_id": "art_00000000", "file_path": path, "path": here}),
            ({"artifact_id": ["odd"]}, {"artifact_id": ["odd"]}),
            ({"file_path": "/home/ada/auth.log"}, {"file_path": path}),
            ({"log_path": "auth.log", "file": "auth.log"}, {"log_path": path, "file": path}),
            ({"file_path": here}, {"file_path": here}),
            ({"file_path": "other.log", "path": "a\0b"}, {"file_path": "other.log", "path": "a\0b"}),
            ({"file_paths": ["auth.log", 7]}, {"file_paths": [path, 7]}),
            ({"output_path": "auth.log", "name": "auth.log"}, {"output_path": "auth.log", "name": "auth.log"}),
        ]
        for payload, want in cases:
            with self.subTest(payload):
                self.assertEqual(mill.run("t", **payload)["data"], want)
        mill.load("auth.log", b"y")
        self.assertEqual(mill.run("t", path="auth.log")["error"]["plugin_code"], "ARTIFACT_NOT_FOUND", "of two neither is meant")

    def test_validation_sees_the_paths_as_well(self) -> None:
        source = code(
            """
            class Tool(Base):
                def validate_inputs(self, payload):
                    found = os.path.exists(payload.get("file_path", ""))
                    return ValidationResult(ok=found, errors=None if found else ["file_path does not exist"])
                def execute(self, payload, context): return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        mill.load("a.log", b"x")
        self.assertEqual(mill.run("t", file_path="/elsewhere/a.log")["status"], "succeeded")
        self.assertEqual(self.failure(mill.run("t", file_path="b.log"))[0], "INPUT_VALIDATION_FAILED")

    def test_artifacts_are_registered_by_position_and_by_keyword(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                with open("workspace/artifacts/one.txt", "w") as file: file.write("one")
                with open("two.json", "w") as file: file.write("2")
                one = context.register_artifact("text", "workspace/artifacts/one.txt", "t", {"n": {1}})
                two = context.register_artifact(artifact_type="json_events", file_path=os.path.abspath("two.json"), source_tool="t", metadata=None)
                try: one.artifact_id = "other"; frozen = False
                except AttributeError: frozen = True
                return ToolResult(ok=True, result={"one": vars(one), "ids": [ref.artifact_id for ref in context.artifacts], "frozen": frozen})
            """
        )
        mill = self.mill(tree(t=source))
        data = mill.run("t")["data"]
        self.assertEqual(data["one"]["metadata"], {"n": [1]})
        self.assertEqual((data["one"]["artifact_type"], data["one"]["source_tool"], data["one"]["storage_uri"]), ("text", "t", None))
        self.assertEqual((data["ids"], data["frozen"]), ([], True), "the context shows what was there when the call began")
        self.assertEqual([one["asked"]["file_path"] for one in mill.registered], ["workspace/workspace/artifacts/one.txt", "workspace/two.json"])
        self.assertEqual([one["data"] for one in mill.registered], [b"one", b"2"], "and the result is not saved besides")

    def test_types_that_are_none_of_the_ten(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                with open("a.md", "w") as file: file.write("a")
                for kind in payload["kinds"]: context.register_artifact(kind, "a.md", "t", {})
                return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        mill.run("t", kinds=["markdown", "pdf", "log_file", "risk_model", "something", "none", "", None])
        asked = [one["asked"].get("artifact_type") for one in mill.registered]
        self.assertEqual(asked, ["text", "pdf_report", "log_stream", "risk_model", None, None, None, None], "None: the host looks at the file")

    def test_what_is_no_file_is_kept_by_nothing_but_its_reference(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                ref = context.register_artifact("text", payload["path"], "t", {})
                return ToolResult(ok=True, result=ref.file_path)
            """
        )
        mill = self.mill(tree(t=source), session_id="")
        for path in ("gone", "", "workspace/artifacts"):
            self.assertEqual(mill.run("t", path=path)["data"], path)
            self.assertIn("nothing was kept", mill.logs[-1]["message"])
        self.assertEqual(mill.registered, [])

    def test_files_from_elsewhere_are_copied_to_where_the_host_looks(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                context.register_artifact("text", payload["path"], "t", {})
                return ToolResult(ok=True)
            """
        )
        mill = self.mill(tree(t=source))
        loaded = mill.load("mine.log", b"loaded")["file_path"]
        mill.run("t", path=loaded)
        self.assertEqual(mill.registered[0]["asked"]["file_path"], loaded, "an artifact is registered as it is")
        elsewhere = os.path.join(os.path.dirname(mill.root), "elsewhere.txt")
        with open(elsewhere, "w", encoding="utf-8") as file:
            file.write("elsewhere")
        mill.run("t", path=elsewhere)
        self.assertEqual((mill.registered[1]["data"], os.path.basename(mill.registered[1]["file_path"])), (b"elsewhere", "elsewhere.txt"))

    def test_a_link_is_registered_by_its_own_name(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                with open("report-1.md", "w") as file: file.write("x" * payload["size"])
                for name in ("report-latest.md", "other.md"):
                    if not os.path.lexists(name): os.symlink("report-1.md", name)
                    context.register_artifact("text", name, "t", {})
                os.makedirs("named", exist_ok=True)
                if not os.path.lexists("named/report-1.md"): os.symlink("../report-1.md", "named/report-1.md")
                context.register_artifact("text", "named/report-1.md", "t", {})
                links = os.stat("report-1.md").st_nlink
                with open("report-1.md") as file: whole = len(file.read())
                return ToolResult(ok=True, result=[links > 1, whole])
            """
        )
        mill = self.mill(tree(t=source))
        names = ["report-latest.md", "other.md", "report-1.md"]
        for size, linked in {10: False, 2 << 20: True, 20: True}.items():  # the last finds the link of the call before it
            self.assertEqual(mill.run("t", size=size)["data"], [linked, size])
            told = [(os.path.basename(one["file_path"]), len(one["data"])) for one in mill.registered[-3:]]
            self.assertEqual(told, [(name, size) for name in names])

    def test_output_artifacts_that_exist_are_registered_where_the_result_is_good(self) -> None:
        source = tool(
            """
            def execute(self, payload, context):
                for name in ("a.txt", "b.json", "c.txt"):
                    with open(name, "w") as file: file.write(name)
                context.register_artifact("text", "a.txt", "t", {})
                listed = [{"path": "a.txt"}, {"file_path": "b.json", "artifact_type": "json_events", "metadata": {"k": 1}},
                          {"path": os.path.abspath("b.json")}, "c.txt", {"path": "gone.txt"}, {"path": "artifacts"}, {}, 7, {"path": "a\\0b"}]
                return ToolResult(ok=not payload.get("fail"), result={"x": 1}, output_artifacts=listed)
            """
        )
        for fail in (False, True):
            mill = self.mill(tree(t=source))
            result = mill.run("t", fail=fail)
            self.assertEqual(len(result["output_artifacts"]), 9)
            listed = [] if fail else [b"a.txt", b"b.json", b"b.json", b"c.txt"]
            self.assertEqual([one["data"] for one in mill.registered], [b"a.txt", *listed])
            self.assertEqual([one["asked"].get("metadata") for one in mill.registered[1:]], [None] * len(listed))

    def test_a_result_that_left_no_file_is_saved(self) -> None:
        cases = [
            ({"content": "# c"}, ".md", "text", b"# c"),
            ({"summary": "s", "content": "# c", "n": 1}, ".json", "json_events", None),  # of which a text would lose the rest
            ({"visualization": "v", "content": "c"}, ".json", "json_events", None),
            ({"report": "", "output": "o"}, ".json", "json_events", None),
            ({"content": {"no": "text"}}, ".json", "json_events", None),
            ({"n": [1, "é"]}, ".json", "json_events", '{\n  "n": [\n    1,\n    "é"\n  ]\n}\n'.encode()),
        ]
        mill = self.mill(tree(t=tool('def execute(self, payload, context): return ToolResult(ok=True, result=payload["give"])')))
        for give, ending, kind, data in cases:
            with self.subTest(give):
                mill.registered.clear()
                mill.run("t", give=give)
                saved = mill.registered[0]
                self.assertEqual((os.path.splitext(saved["file_path"])[1], saved["artifact_type"], saved["source_tool"]), (ending, kind, "t"))
                if data is not None:
                    self.assertEqual(saved["data"], data)
                if ending == ".json":
                    self.assertEqual(json.loads(saved["data"]), give)
        mill.registered.clear()
        mill.run("t", give=None)
        mill.opened["session_id"] = ""
        mill.run("t", give={"n": 1})
        self.assertEqual(mill.registered, [], "nothing to save, and outside of a session nowhere")

    def test_a_host_that_takes_no_file_fails_no_call(self) -> None:
        mill = self.mill(tree(t=TOOL))

        def refuse(args: object) -> None:
            raise LookupError("full")

        mill._register = refuse
        self.assertEqual(mill.run("t")["status"], "succeeded")
        self.assertIn("was not saved", mill.logs[0]["message"])


if __name__ == "__main__":
    unittest.main()
