"""The contract tests of a tool: a good one passes all, each broken one fails its own and no other."""

from __future__ import annotations

import json
import os
import unittest

from mill import contract, tree, write, write_tool

GOOD = """
import sys
from dataclasses import dataclass
from framework.plugins.protocol import ToolResult, ValidationResult

print("printed at import")

class Tool:
    def metadata(self):
        return {"tool_name": "TOOL_NAME", "version": "1.0.0"}

    def validate_inputs(self, payload):
        print("printed by validate_inputs")
        errors = []
        if not isinstance(payload.get("text"), str): errors.append("text is required")
        if not isinstance(payload.get("top", 5), int): errors.append("top is a number")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        raise AssertionError("the contract tests do no work")

    def summarize_for_llm(self, result):
        return f"{len(result.result['words'])} words."
"""
REQUEST = {"text": "to be", "top": 3}
RESPONSE = {"ok": True, "result": {"words": ["to", "be"]}}


class Contract(unittest.TestCase):
    def report(self, source: str = GOOD, request: object = REQUEST, response: object = RESPONSE, **manifest: object) -> dict[int, dict[str, object]]:
        """Return the tests of a tool by their numbers; what is None is not written."""
        root = tree()
        directory = write_tool(root, "words", source, **manifest)
        for name, example in (("request", request), ("response", response)):
            if example is not None:
                text = example if isinstance(example, str) else json.dumps(example)
                write(os.path.join(directory, "examples", f"{name}.example.json"), text)
        self.whole = contract(root, "words")
        self.assertEqual([test["n"] for test in self.whole["tests"]], list(range(1, 11)))
        return {test["n"]: test for test in self.whole["tests"]}

    def check(self, failed: dict[int, str], pointer: str = "", **options: object) -> None:
        """Check that these tests fail, with these words, and no others."""
        tests = self.report(**options)
        self.assertEqual([n for n, test in tests.items() if test["ok"] is False], sorted(failed), tests)
        self.assertEqual([n for n, test in tests.items() if test["ok"] is None], [1, 2, 7, 8])
        for n, said in failed.items():
            self.assertIn(said, tests[n]["message"])
            if pointer:
                self.assertEqual(tests[n]["pointer"], pointer)

    def test_a_good_tool_passes(self) -> None:
        self.check({})
        self.assertEqual((self.whole["tool"], self.whole["summary"], self.whole["summary_length"]), ("words", "2 words.", 8))

    def test_a_tool_with_results_of_its_own_passes(self) -> None:
        own = GOOD.replace(
            "from framework.plugins.protocol import ToolResult, ValidationResult",
            "@dataclass\nclass ToolResult:\n    ok: bool\n    result: dict = None\n"
            "@dataclass\nclass ValidationResult:\n    ok: bool\n    errors: list = None",
        ).replace("result.result['words']", "(result.result if type(result) is ToolResult else {})['words']")
        self.check({}, source=own)

    def test_a_response_without_its_envelope_and_a_request_within_one(self) -> None:
        self.check({}, response=RESPONSE["result"])
        tests = self.report(request={"tool": "words", "payload": REQUEST})
        self.assertEqual((tests[5]["ok"], tests[5]["message"]), (True, "the request is its member 'payload'"))

    def test_3_an_entry_point_that_does_not_import(self) -> None:
        rest = dict.fromkeys((4, 5, 6, 9, 10), "")
        pointer = "manifest.json#/entry_point"
        for source, said in [
            ("raise RuntimeError('no')", "RuntimeError: no"),
            ("import sys; sys.exit(0)", "SystemExit"),
            ("import no_such_package_x", "DEPENDENCY_MISSING"),
            ("def (", "SyntaxError"),
        ]:
            tests = self.report(source)
            self.assertEqual((tests[3]["ok"], tests[3]["pointer"]), (False, pointer))
            self.assertIn(said, tests[3]["message"])
            self.assertEqual([n for n in rest if tests[n]["ok"]], [])
        self.assertIn("is not there", self.report(entry_point="gone.py")[3]["message"])

    def test_4_a_class_that_cannot_be_made(self) -> None:
        tests = self.report(GOOD.replace("class Tool:", "class Tool:\n    def __init__(self): raise ValueError('no')\n"))
        self.assertEqual((tests[3]["ok"], tests[4]["ok"], tests[4]["pointer"]), (True, False, "manifest.json#/class_name"))
        self.assertIn("ValueError: no", tests[4]["message"])
        tests = self.report(class_name="Other")
        self.assertIn("no class 'Other', which manifest.json names; it has Tool", tests[4]["message"])

    def test_5_an_example_that_is_refused(self) -> None:
        self.check({5: "text is required"}, "examples/request.example.json", request={"words": 1})
        self.check({5: "is not there", 6: "is not there"}, request=None)
        self.check({5: "cannot be read", 6: "cannot be read"}, request="[1]")
        self.check({5: "returned None in place", 6: "raised, which is no answer"}, source=GOOD.replace("return ValidationResult", "return None; ValidationResult"))

    def test_6_a_validation_that_accepts_everything(self) -> None:
        self.check({6: "rejects none of"}, "examples/request.example.json", source=GOOD.replace("ok=not errors", "ok=True"))
        one = GOOD.replace("ok=not errors", "ok='text' in payload")
        self.check({}, source=one)
        raises = GOOD.replace("errors = []", "errors = [payload['text'] + '']").replace("ok=not errors", "ok=True")
        self.check({6: "raised, which is no answer"}, source=raises)

    def test_9_a_summary_that_is_empty_long_or_none(self) -> None:
        pointer = "examples/response.example.json"
        for new, said in [("'  '", "is empty"), ("'x' * 2000", "has 2000 characters"), ("None", "type NoneType"), ("1 / 0", "ZeroDivisionError")]:
            self.check({9: said}, pointer, source=GOOD.replace("f\"{len(result.result['words'])} words.\"", new))
        self.check({}, source=GOOD.replace("f\"{len(result.result['words'])} words.\"", "'x' * 1999"))
        self.assertEqual(self.whole["summary_length"], 1999)
        self.check({9: "is not there"}, response=None)

    def test_10_metadata_without_its_members(self) -> None:
        said = '{"tool_name": "TOOL_NAME", "version": "1.0.0"}'
        self.check({10: "lacks version"}, "manifest.json#/version", source=GOOD.replace(said, '{"tool_name": "words"}'))
        self.check({10: "in place of a dict"}, source=GOOD.replace(said, "None"))
        tests = self.report(GOOD.replace("1.0.0", "2.0.0"))
        self.assertEqual((tests[10]["ok"], tests[10]["message"]), (True, "version is '2.0.0' and in manifest.json '1.0.0'"))

    def test_a_test_leaves_nothing_for_the_next(self) -> None:
        source = GOOD.replace("errors = []", "errors = []; payload['text'] = payload.pop('text', None); payload.clear() if len(payload) > 5 else None")
        self.check({}, source=source.replace("print(\"printed by validate_inputs\")", "sys.stdout.close() if not sys.stdout.closed else None"))

    def test_a_tool_that_is_not_there(self) -> None:
        report = contract(tree(), "words")
        self.assertEqual([test["ok"] for test in report["tests"]], [None, None, False, False, False, False, None, None, False, False])


if __name__ == "__main__":
    unittest.main()
