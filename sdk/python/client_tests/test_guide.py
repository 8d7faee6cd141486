"""docs/guides/agent-frameworks.md: its blocks in Python run, against a host that serves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import unittest
from typing import Any
from unittest import mock

from agents import Agent
from host import SDK, Host, the_host
from langgraph.graph import ToolGraph

PAGE = os.path.join(os.path.dirname(os.path.dirname(SDK)), "docs", "guides", "agent-frameworks.md")


def blocks() -> dict[str, str]:
    with open(PAGE, encoding="utf-8") as file:
        return dict(re.findall(r"^```python (\S+)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL))


class Guide(unittest.TestCase):
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        cls.host = the_host()

    def run_block(self, name: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        with mock.patch.dict(os.environ, {"MORTISE_URL": self.host.url, "MORTISE_TOKEN": self.host.token}):
            exec(compile(blocks()[name], name, "exec"), names)
        return names

    def test_the_page_has_these_blocks(self) -> None:
        self.assertEqual(sorted(blocks()), ["desk.py", "graph.py", "mail.py"])

    def test_langgraph(self) -> None:
        names = self.run_block("graph.py")
        graph = ToolGraph(names["tools"])
        result, waits = names["turn"](graph, "t1", [{"name": "mail__send", "id": "call-1", "args": {"to": "ann", "text": "hi"}}])
        result, waits = names["turn"](graph, "t1", interrupts=result["__interrupt__"])
        self.assertEqual(len(waits), 1)
        self.host.approve(waits[0])
        result, waits = names["turn"](graph, "t1", interrupts=result["__interrupt__"])
        self.assertEqual(waits, [])
        self.assertIn("ann", result["messages"][0].content)

    def test_openai_agents(self) -> None:
        names = self.run_block("desk.py")
        arguments = json.dumps({"to": "bea", "text": "hi"})
        with mock.patch.dict(os.environ, {"MORTISE_URL": self.host.url, "MORTISE_TOKEN": self.host.token}):
            mortise = names["tools_for"]("c1")
        agent = Agent("desk", mortise.tools, [{"type": "function_call", "name": "mail__send", "call_id": "1", "arguments": arguments}])
        state, waits = asyncio.run(names["turn"](mortise, agent, "Go."))
        state, waits = asyncio.run(names["turn"](mortise, agent, state))
        self.assertEqual(len(waits), 1)
        self.host.approve(waits[0].pending)
        state, waits = asyncio.run(names["turn"](mortise, agent, state))
        self.assertEqual(waits, [])
        self.assertIn("bea", state.outputs["1"])


if __name__ == "__main__":
    unittest.main()
