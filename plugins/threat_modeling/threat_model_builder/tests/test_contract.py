"""The ten contract tests of an Event Mill plugin, for the package that this file is in."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import unittest
from typing import Any, Dict, Iterator, List

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

try:
    import framework.plugins.protocol  # noqa: F401
except ImportError as err:
    raise ImportError(
        "the contract test needs the host's module framework: run it with `mortise test`, or with sdk/python/eventmill of the host's sources in PYTHONPATH"
    ) from err

PILLARS = ("network_forensics", "cloud_investigation", "log_analysis", "risk_assessment", "threat_modeling")
TYPES = ("pcap", "json_events", "log_stream", "risk_model", "cloud_audit_log", "pdf_report", "html_report", "image", "text", "none")
REQUIRED = (
    "tool_name version pillar display_name description_short description_long author entry_point class_name artifacts_consumed artifacts_produced "
    "capabilities input_schema output_schema timeout_class safe_for_auto_invoke stability tags"
).split()
OPTIONAL = (
    "owner_team license homepage repository cost_hint requires_auth requires_llm external_connectivity minimum_framework_version python_version dependencies "
    "reference_data_overrides result_summary_fields chains_to chains_from"
).split()


def load(*parts: str) -> Any:
    with open(os.path.join(HERE, *parts), encoding="utf-8") as file:
        return json.load(file)


def tool_class() -> Any:
    """The plugin's class, loaded by its path as a host does."""
    manifest = load("manifest.json")
    name = "contract_of_" + manifest["tool_name"]
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, manifest["entry_point"]))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return getattr(sys.modules[name], manifest["class_name"])


def errors(value: Any, schema: Dict[str, Any]) -> List[str]:
    """What is wrong with a value, as the plugin itself judges its input."""
    return list(sys.modules[tool_class().__module__].tooling.check(value, schema))


def objects(schema: Any, at: str = "") -> Iterator[Any]:
    """Every schema within a schema, with its place."""
    yield at, schema
    for name, inner in schema.get("properties", {}).items():
        yield from objects(inner, at + "/properties/" + name)
    if isinstance(schema.get("items"), dict):
        yield from objects(schema["items"], at + "/items")


class Contract(unittest.TestCase):
    def test_01_manifest(self) -> None:
        manifest = load("manifest.json")
        self.assertEqual([k for k in REQUIRED if k not in manifest], [])
        self.assertEqual([k for k in manifest if k not in REQUIRED + OPTIONAL], [])
        self.assertRegex(manifest["tool_name"], r"^[a-z0-9_]+$")
        self.assertEqual(manifest["tool_name"], os.path.basename(HERE))
        self.assertRegex(manifest["version"], r"^\d+\.\d+\.\d+$")
        self.assertIn(manifest["pillar"], PILLARS)
        self.assertLessEqual(len(manifest["description_short"]), 240)
        for kind in manifest["artifacts_consumed"] + manifest["artifacts_produced"]:
            self.assertIn(kind, TYPES)
        for capability in manifest["capabilities"]:
            self.assertRegex(capability, r"^(artifact|operation|entity|domain|output):[A-Za-z0-9_.-]+$")
        self.assertIn(manifest["timeout_class"], ("fast", "medium", "slow"))
        self.assertIn(manifest["cost_hint"], ("low", "moderate", "high"))
        self.assertIn(manifest["stability"], ("experimental", "verified", "core", "deprecated"))

    def test_02_schemas(self) -> None:
        for name in ("input_schema", "output_schema"):
            schema = load(load("manifest.json")[name])
            self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
            for at, inner in objects(schema):
                kinds = inner.get("type", [])
                for kind in kinds if isinstance(kinds, list) else [kinds]:
                    self.assertIn(kind, ("object", "array", "string", "integer", "number", "boolean", "null"), at)
                for required in inner.get("required", []):
                    self.assertIn(required, inner["properties"], at)
                    self.assertTrue(inner["properties"][required].get("description"), "%s/%s has no description" % (at, required))
        self.assertEqual(
            sorted(load("schemas", "output.schema.json")["properties"]), ["details", "error_code", "message", "ok", "output_artifacts", "result"]
        )

    def test_03_entry_point_imports(self) -> None:
        self.assertTrue(callable(tool_class()))

    def test_04_class_instantiates(self) -> None:
        tool = tool_class()()
        for method in ("metadata", "validate_inputs", "execute", "summarize_for_llm"):
            self.assertTrue(callable(getattr(tool, method)), method)

    def test_05_example_request_is_accepted(self) -> None:
        answer = tool_class()().validate_inputs(load("examples", "request.example.json"))
        self.assertTrue(answer.ok, answer.errors)

    def test_06_malformed_requests_are_rejected(self) -> None:
        tool = tool_class()()
        for request in ({"limit": "many"}, {"limit": 0}, {"artifact_id": 7}, {"no_such_member": 1}, [], None, "text"):
            answer = tool.validate_inputs(request)
            self.assertFalse(answer.ok, request)
            self.assertTrue(answer.errors and all(isinstance(e, str) for e in answer.errors), request)

    def test_07_example_request_fits_its_schema(self) -> None:
        self.assertEqual(errors(load("examples", "request.example.json"), load("schemas", "input.schema.json")), [])

    def test_08_example_response_fits_its_schema(self) -> None:
        response = load("examples", "response.example.json")
        self.assertEqual(errors(response, load("schemas", "output.schema.json")), [])
        self.assertTrue(response["ok"])
        self.assertIsNotNone(response["result"])

    def test_09_summary(self) -> None:
        tool = tool_class()()
        response = load("examples", "response.example.json")
        from framework.plugins.protocol import ToolResult

        for form in (response, ToolResult(**response)):
            summary = tool.summarize_for_llm(form)
            self.assertIsInstance(summary, str)
            self.assertTrue(0 < len(summary) < 1000, len(summary))
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
            self.assertIn(summary, re.sub(r"\n> ?", " ", file.read()).replace("  ", " "), "the README's sample summary is not what the example gives")

    def test_10_metadata(self) -> None:
        metadata, manifest = tool_class()().metadata(), load("manifest.json")
        self.assertEqual((metadata["tool_name"], metadata["version"]), (manifest["tool_name"], manifest["version"]))

    def test_example_response_is_what_the_example_request_gives(self) -> None:
        request = load("examples", "request.example.json")
        request["file_path"] = os.path.join(HERE, request["file_path"])
        result = tool_class()().execute(request, None)
        got = {name: getattr(result, name) for name in ("ok", "result", "error_code", "message", "details", "output_artifacts")}
        self.assertEqual(json.loads(json.dumps(got)), load("examples", "response.example.json"))


if __name__ == "__main__":
    unittest.main()
