"""The adapter of LangChain and LangGraph, against a host that serves, and against the published interface of the frameworks."""

from __future__ import annotations

import asyncio
import unittest
import uuid
from typing import Any, Callable

from host import Host, the_host
from langgraph.graph import ToolGraph
from langgraph.types import Command
from mortise_client import ApprovalPending, ArgumentsChanged, Pending
from mortise_client.langchain import mortise_tools, pending_approvals, resumption


def setUpModule() -> None:
    print("LangChain: tested against the published interface of langchain-core 1.8 and langgraph 1.2, not the packages")


class Graphs(unittest.TestCase):
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        cls.host = the_host()

    def setUp(self) -> None:
        self.config: dict[str, Any] = {"configurable": {"thread_id": str(uuid.uuid4())}}

    def graph(self) -> ToolGraph:
        return ToolGraph(mortise_tools(self.host.client, only=["mail/*"]))

    def both(self, test: Callable[[Callable[[ToolGraph, Any], dict[str, Any]]], None]) -> None:
        """Run a test with graphs that are invoked, and with graphs that are awaited."""
        for name, invoke in (
            ("invoke", lambda graph, input: graph.invoke(input, self.config)),
            ("ainvoke", lambda graph, input: asyncio.run(graph.ainvoke(input, self.config))),
        ):
            with self.subTest(name):
                self.setUp()
                test(invoke)

    def call(self, name: str = "mail__send", id: str = "call-1", **arguments: str) -> dict[str, Any]:
        return {"messages": [{"name": name, "id": id, "args": arguments}]}

    def test_an_operation_that_policy_allows_runs_at_once_and_once(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            before = self.host.calls("mail/upper")
            (message,) = invoke(self.graph(), self.call("mail__upper", text="hello", config="!"))["messages"]
            self.assertEqual((message.content, message.status), ("HELLO!", "success"))
            self.assertEqual(self.host.calls("mail/upper"), before + 1)

        self.both(test)

    def test_what_the_host_refuses_the_model_reads_with_its_code(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            (message,) = invoke(self.graph(), self.call("mail__secret"))["messages"]
            self.assertIn("policy_denied", message.content)
            self.assertEqual(message.status, "error")

        self.both(test)

    def test_a_pending_approval_interrupts_with_ids_alone(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            graph = self.graph()
            result = invoke(graph, self.call(to="ann"))
            self.assertEqual(
                sorted(result["__interrupt__"][0].value), ["approval_id", "call_id", "expires_at", "operation", "type", "url"]
            )
            (pending,) = pending_approvals(result["__interrupt__"])
            before = self.host.calls("mail/send")
            for _ in range(2):  # what the framework is told is no approval
                result = invoke(graph, Command(resume={"type": "approve"}))
                self.assertEqual([p.call_id for p in pending_approvals(result["__interrupt__"])], [pending.call_id])
            self.host.approve(pending)
            (message,) = invoke(graph, Command(resume=resumption(result["__interrupt__"])))["messages"]
            self.assertIn('"to": "ann"', message.content)
            self.assertEqual(self.host.calls("mail/send"), before)

        self.both(test)

    def test_a_denial_at_the_host_is_a_denial_here(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            graph = self.graph()
            (pending,) = pending_approvals(invoke(graph, self.call(to="cid"))["__interrupt__"])
            self.host.deny(pending)
            (message,) = invoke(graph, Command(resume="approved"))["messages"]
            self.assertIn("approval_denied", message.content)

        self.both(test)

    def test_arguments_that_changed_after_the_approval_are_refused(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            for remembers in (True, False):
                self.setUp()
                graph = self.graph()
                (pending,) = pending_approvals(invoke(graph, self.call(to="eve"))["__interrupt__"])
                self.host.approve(pending)
                self.host.client.call(pending.call_id, wait=20)
                before = self.host.calls("mail/send")
                if not remembers:  # another process goes on from the checkpoint
                    later = self.graph()
                    later.tool_calls, later.tasks = graph.tool_calls, graph.tasks
                    graph = later
                graph.tool_calls[0]["args"] = {"to": "mallory"}
                with self.assertRaises(ArgumentsChanged):
                    invoke(graph, Command(resume=True))
                self.assertEqual(self.host.calls("mail/send"), before)
                graph.tool_calls[0]["args"] = {"to": "eve"}  # and what was approved can still be had
                self.assertIn('"to": "eve"', invoke(graph, Command(resume=True))["messages"][0].content)

        self.both(test)

    def test_the_same_arguments_in_another_tool_call_ask_again(self) -> None:
        graph = self.graph()
        calls = [call for id in ("call-1", "call-2") for call in self.call(id=id, to="fay")["messages"]]
        result = graph.invoke({"messages": calls}, self.config)
        one, two = pending_approvals(result["__interrupt__"])
        self.assertNotEqual(one.call_id, two.call_id)
        self.host.approve(one)
        result = graph.invoke(Command(resume=resumption(result["__interrupt__"])), self.config)
        self.assertEqual([pending.call_id for pending in pending_approvals(result["__interrupt__"])], [two.call_id])

    def test_threads_do_not_share_calls(self) -> None:
        found: list[Pending] = []
        for _ in range(2):
            self.setUp()
            found += pending_approvals(self.graph().invoke(self.call(to="ida"), self.config)["__interrupt__"])
        self.assertNotEqual(found[0].call_id, found[1].call_id)

    def test_what_waits_can_be_withdrawn(self) -> None:
        def test(invoke: Callable[[ToolGraph, Any], dict[str, Any]]) -> None:
            graph = self.graph()
            interrupts = invoke(graph, self.call(to="gus"))["__interrupt__"]
            (pending,) = pending_approvals(interrupts)
            (message,) = invoke(graph, Command(resume=resumption(interrupts, withdraw="the user left")))["messages"]
            self.assertIn("cancelled", message.content)
            self.assertEqual(self.host.client.call(pending.call_id).status, "failed")

        self.both(test)

    def test_outside_a_graph_a_tool_that_waits_raises(self) -> None:
        (tool,) = mortise_tools(self.host.client, only=["mail/send"])
        with self.assertRaises(ApprovalPending) as raised:
            tool.invoke({"to": "hal"})
        self.assertEqual(self.host.client.call(raised.exception.pending.call_id).status, "pending_approval")


if __name__ == "__main__":
    unittest.main()
