"""What the tests share: the tool, a host's context, files to read."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import types
import unittest
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

try:
    from framework.plugins.protocol import ArtifactRef
except ImportError as err:
    raise ImportError(
        "the tests need the host's module framework: run them with `mortise test`, or with sdk/python/eventmill of the host's sources in PYTHONPATH"
    ) from err

sys.path[:0] = [HERE]


class ToolCase(unittest.TestCase):
    """Runs the tool on files in a workspace that ends with the test."""

    tool: Any

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        self.registered: List[Dict[str, Any]] = []
        self.artifacts: List[ArtifactRef] = []
        before = os.environ.get("EVENTMILL_WORKSPACE")
        os.environ["EVENTMILL_WORKSPACE"] = self.dir
        self.addCleanup(lambda: os.environ.pop("EVENTMILL_WORKSPACE") if before is None else os.environ.__setitem__("EVENTMILL_WORKSPACE", before))

    def file(self, content: "str | bytes", name: str = "sample.log") -> str:
        """A file with that content."""
        path = os.path.join(self.dir, name)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def artifact(self, content: "str | bytes", type: str, name: str = "sample.log") -> ArtifactRef:
        """A registered artifact with that content."""
        ref = ArtifactRef("art_%08x" % (len(self.artifacts) + 1), type, self.file(content, name))
        self.artifacts.append(ref)
        return ref

    def context(self, llm: Any = None, reference: Optional[Dict[str, Any]] = None) -> Any:
        """What a host gives to execute."""
        return types.SimpleNamespace(
            session_id="sess_000000000001", selected_pillar="", artifacts=self.artifacts, config={"workspace_dir": self.dir}, limits={"timeout": 60},
            llm_enabled=llm is not None, llm_query=llm, reference_data=reference or {}, register_artifact=self._register,
        )  # fmt: skip

    def _register(self, artifact_type: str, file_path: str, source_tool: str, metadata: Dict[str, Any]) -> ArtifactRef:
        with open(file_path, encoding="utf-8") as file:
            self.registered.append({"type": artifact_type, "tool": source_tool, "metadata": metadata, "lines": [json.loads(line) for line in file]})
        return ArtifactRef("art_%08x" % (100 + len(self.registered)), artifact_type, file_path, None, source_tool, metadata)

    def run_on(self, content: "str | bytes", **payload: Any) -> Dict[str, Any]:
        """The tool's result on that content."""
        result = self.tool.execute(dict(payload, file_path=self.file(content)), self.context())
        self.assertTrue(result.ok, result.message)
        json.dumps(result.result, allow_nan=False)
        self.assertLess(len(self.tool.summarize_for_llm(result)), 1000)
        return dict(result.result)

    def refused(self, code: str, payload: Dict[str, Any], context: Any = None) -> Any:
        """The refusal that the tool answers with."""
        result = self.tool.execute(payload, context or self.context())
        self.assertFalse(result.ok)
        self.assertEqual(result.error_code, code, result.message)
        self.assertTrue(result.message)
        self.assertTrue(self.tool.summarize_for_llm(result))
        return result
