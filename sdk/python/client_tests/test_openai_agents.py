"""The adapter of OpenAI Agents, against a host that serves, and against the published interface of the framework."""

from __future__ import annotations

import json
import logging
import unittest
import uuid
from typing import Any

from agents import Agent, Runner
from agents.run_state import RunState
from host import Host, the_host
from mortise_client import ApprovalPending, ArgumentsChanged, mortise_error_of
from mortise_client.openai_agents import MortiseTools, Waiting


def setUpModule() -> None:
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # which would name each test that waits for its host
    print("OpenAI Agents: tested against the published interface of openai-agents 0.24, not the package")


class Runs(unittest.IsolatedAsyncioTestCase):
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        cls.host = the_host()

    def adapter(self, scope: str | None = None) -> MortiseTools:
        return MortiseTools(self.host.client, only=["mail/*"], scope=scope)

    async def begin(self, adapter: MortiseTools, name: str, arguments: Any) -> RunState[Any, Any]:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls = [{"type": "function_call", "name": name, "call_id": "call-1", "arguments": text}]
        return (await Runner.run(Agent("desk", adapter.tools, calls), "Go.")).to_state()

    async def go_on(self, adapter: MortiseTools, state: RunState[Any, Any]) -> str:
        return (await Runner.run(Agent("desk", adapter.tools, []), state)).final_output

    async def waiting(self, adapter: MortiseTools, to: str) -> tuple[RunState[Any, Any], Waiting]:
        state = await self.begin(adapter, "mail__send", {"to": to})
        (waiting,) = await adapter.resolve(state)
        return state, waiting

    async def test_an_operation_that_policy_allows_runs_at_once_and_once(self) -> None:
        before = self.host.calls("mail/upper")
        state = await self.begin(self.adapter(), "mail__upper", {"text": "hello"})
        self.assertEqual(state.outputs, {"call-1": "HELLO"})
        self.assertEqual(self.host.calls("mail/upper"), before + 1)

    async def test_what_the_host_refuses_the_model_reads_with_its_code(self) -> None:
        for name, arguments, code in (("mail__secret", {}, "policy_denied"), ("mail__send", {"tu": "ann"}, "invalid_input")):
            adapter = self.adapter()
            state = await self.begin(adapter, name, arguments)
            self.assertEqual(await adapter.resolve(state), [])  # of mail/secret, which has no arguments
            self.assertEqual(json.loads(await self.go_on(adapter, state))["error"]["code"], code)

    async def test_a_pending_approval_interrupts_with_ids_alone(self) -> None:
        state, waiting = await self.waiting(self.adapter(), "ann")
        self.assertEqual(len(state.get_interruptions()), 1)
        self.assertEqual(sorted(waiting.pending.to_dict()), ["approval_id", "call_id", "expires_at", "operation", "url"])

    async def test_an_approval_at_the_host_lets_the_call_run_once(self) -> None:
        scope = str(uuid.uuid4())
        state, waiting = await self.waiting(self.adapter(scope), "bea")
        self.host.approve(waiting.pending)
        before = self.host.calls("mail/send")
        adapter, state = self.adapter(scope), RunState.from_string(None, state.to_string())  # in another process
        self.assertEqual(await adapter.resolve(state), [])
        self.assertEqual(json.loads(await self.go_on(adapter, state))["to"], "bea")
        self.assertEqual(self.host.calls("mail/send"), before)

    async def test_a_denial_at_the_host_is_a_denial_here(self) -> None:
        adapter = self.adapter()
        state, waiting = await self.waiting(adapter, "cid")
        self.host.deny(waiting.pending)
        self.assertEqual(await adapter.resolve(state), [])
        self.assertIn("approval_denied", str(state.decisions["call-1"]))  # a rejection, with its reason
        self.assertIn("approval_denied", await self.go_on(adapter, state))

    async def test_an_approval_that_the_framework_alone_was_given_changes_nothing(self) -> None:
        adapter = self.adapter()
        state, waiting = await self.waiting(adapter, "dan")
        state.approve(state.get_interruptions()[0])
        with self.assertRaises(Exception) as raised:
            await self.go_on(adapter, state)
        self.assertIsInstance(mortise_error_of(raised.exception), ApprovalPending)
        self.assertEqual(self.host.client.call(waiting.pending.call_id).status, "pending_approval")
        self.host.approve(waiting.pending)  # the run goes on from where it waited
        self.assertIn("receipt", await self.go_on(adapter, state))

    async def test_arguments_that_changed_after_the_approval_are_refused(self) -> None:
        for remembers in (True, False):
            with self.subTest(remembers=remembers):
                scope = str(uuid.uuid4())
                adapter = self.adapter(scope)
                state, waiting = await self.waiting(adapter, "eve")
                self.host.approve(waiting.pending)
                self.host.client.call(waiting.pending.call_id, wait=20)
                before = self.host.calls("mail/send")
                if not remembers:
                    adapter = self.adapter(scope)
                state = RunState.from_string(None, state.to_string().replace("eve", "mallory"))
                with self.assertRaises(ArgumentsChanged):
                    await adapter.resolve(state)
                state.approve(state.get_interruptions()[0])
                with self.assertRaises(Exception) as raised:
                    await self.go_on(adapter, state)
                self.assertIsInstance(mortise_error_of(raised.exception), ArgumentsChanged)
                self.assertEqual(self.host.calls("mail/send"), before)

    async def test_what_waits_can_be_withdrawn(self) -> None:
        adapter = self.adapter()
        state, waiting = await self.waiting(adapter, "gus")
        await adapter.withdraw(state, "the user left")
        self.assertEqual(await self.go_on(adapter, state), "the user left")
        self.assertEqual(self.host.client.call(waiting.pending.call_id).outcome.error["code"], "cancelled")

    async def test_arguments_that_are_no_json_make_no_call(self) -> None:
        adapter, before = self.adapter(), self.host.calls("mail/ping")
        state = await self.begin(adapter, "mail__send", "{to")  # {} would be refused
        self.assertIn("invalid_input", state.outputs["call-1"])
        state = await self.begin(adapter, "mail__ping", "{to")  # {} would run
        self.assertEqual(await adapter.resolve(state), [])
        self.assertIn("invalid_input", await self.go_on(adapter, state))
        self.assertEqual(self.host.calls("mail/ping"), before)
        state = await self.begin(adapter, "mail__ping", {})
        self.assertEqual(await adapter.resolve(state), [])
        self.assertEqual(await self.go_on(adapter, state), "pinged")
        self.assertEqual(self.host.calls("mail/ping"), before + 1)


if __name__ == "__main__":
    unittest.main()
