"""What operators answer beside their result, agents, adapters, and requests of the host."""

from __future__ import annotations

import unittest
from typing import Any

import peer  # noqa: F401  puts the package on the path

from mortise import Context, InvalidInput, MortiseError, Plugin, PluginError, Reconciled
from mortise.testing import call, preview, reconcile

EFFECT = {"method": "http.fetch", "effect": "http_write", "request_hash": "h", "occurrence": 0, "state": "done", "provider_key": ""}


def mail() -> Plugin:
    plugin = Plugin("mail", version="1.0.0", capabilities=["http"])

    @plugin.operator(effects=["http_write"], brokered=True, labels=["untrusted"])
    def send(to: str, ctx: Context, subject: str = "hello") -> dict:
        """Send a mail."""
        answer = ctx.http.post("https://mail.example/send", {"to": to, "subject": subject}, timeout_seconds=5)
        return {"status": answer["status_code"], "attempt": ctx.attempt, "policy": ctx.policy}

    @send.preview
    def show(to: str, subject: str = "hello") -> dict:
        return {"to": to, "subject": subject}

    @send.reconcile
    def find_out(ctx: Context, effects: list, **mail: Any) -> Any:
        if mail["to"] == "dict":
            return {"outcome": "unknown", "evidence": effects}
        if mail["to"] == "wrong":
            return {"outcome": "done"}
        if mail["to"] == "bare":
            return "succeeded"
        if mail["to"] == "failed":
            return Reconciled("failed", error=PluginError("bounced", code="BOUNCED", retryable=True))
        found = ctx.http.get("https://mail.example/sent", params={"to": mail["to"]})
        return Reconciled("succeeded" if found["json"] else "not_done", data=found["json"], evidence=len(effects))

    assert send.__name__ == "send" and find_out.__name__ == "find_out", "functions stay what they are"
    return plugin


class Operators(unittest.TestCase):
    def test_describe_says_what_stands_beside_an_operator(self) -> None:
        about = mail().describe()["operations"]["send"]
        self.assertEqual({name: about[name] for name in ("preview", "reconcile", "brokered", "labels")},
                         {"preview": True, "reconcile": True, "brokered": True, "labels": ["untrusted"]})
        self.assertEqual(list(about["input"]["properties"]), ["to", "subject"])

    def test_a_preview_takes_what_the_operator_takes(self) -> None:
        self.assertEqual(preview(mail(), "send", {"to": "ann"}), {"to": "ann", "subject": "hello"})
        with self.assertRaises(InvalidInput):
            preview(mail(), "send", {"to": "ann", "colour": "red"})

    def test_reconcile_says_what_it_found_out(self) -> None:
        for to, answer, want in [
            ("ann", {"json": {"id": 1}}, {"outcome": "succeeded", "data": {"id": 1}, "evidence": 1}),
            ("ann", {"json": None}, {"outcome": "not_done", "evidence": 1}),
            ("dict", None, {"outcome": "unknown", "evidence": [EFFECT]}),
        ]:
            self.assertEqual(reconcile(mail(), "send", {"to": to}, [EFFECT], services={"http.fetch": answer}), want)
        failed = reconcile(mail(), "send", {"to": "failed"})
        self.assertEqual(failed, {"outcome": "failed", "error": {
            "code": "plugin_error", "plugin_code": "BOUNCED", "message": "bounced", "details": {}, "retryable": True, "retry_after_ms": 0}})
        for to in ("wrong", "bare"):
            with self.assertRaises(PluginError) as caught:
                reconcile(mail(), "send", {"to": to})
            self.assertEqual(caught.exception.code, "INVALID_RESULT")

    def test_the_host_makes_the_requests(self) -> None:
        asked: list = []
        context = {"attempt": 3, "policy": {"version": "v", "verdict": "allow", "reasons": []}}
        outcome = call(mail(), "send", {"to": "ann"}, context=context,
                       services={"http.fetch": lambda args: asked.append(args) or {"status_code": 201}})
        self.assertEqual(outcome.data, {"status": 201, "attempt": 3, "policy": context["policy"]})
        self.assertEqual(asked, [{"method": "POST", "url": "https://mail.example/send", "json": {"to": "ann", "subject": "hello"}, "timeout_seconds": 5}])

    def test_what_cannot_be_right_is_refused(self) -> None:
        plugin = mail()
        with self.assertRaises(TypeError):
            plugin.agent(brokered=True)(lambda intent: {})
        with self.assertRaises(TypeError):
            plugin.tool(allowed_actions=["x"])(lambda text: text)

        @plugin.operator
        def again() -> None: ...

        again.preview(lambda: {})
        with self.assertRaises(ValueError):
            again.preview(lambda: {})
        with self.assertRaises(MortiseError) as caught:
            reconcile(plugin, "again")
        self.assertEqual(caught.exception.code, "tool_not_exposed")


class AgentsAndAdapters(unittest.TestCase):
    def test_an_agent_takes_of_its_input_what_it_has_parameters_for(self) -> None:
        plugin = Plugin("p", version="1.0.0")

        @plugin.agent(allowed_actions=["Mail.Send@1.x"], context_fields=["student.profile"], produces=str)
        def decide(intent: dict, tool_registry: list = []) -> dict:
            """Decide."""
            return {"agent_name": "p", "kind": "step_output", "step_output": intent["type"], "n": len(tool_registry)}

        outcome = call(plugin, "decide", {"intent": {"type": "A.B"}, "context": {}, "policy_snapshot": {}, "tool_registry": [1], "later": 1})
        self.assertEqual(outcome.data, {"agent_name": "p", "kind": "step_output", "step_output": "A.B", "n": 1})
        about = plugin.describe()["operations"]["decide"]
        self.assertEqual((about["kind"], about["allowed_actions"], about["context_fields"]), ("agent", ["Mail.Send@1.x"], ["student.profile"]))
        self.assertEqual(about["output"]["type"], "string", "the schema is that of step_output")
        self.assertTrue(about["input"]["additionalProperties"], "a later host may tell it more")
        with self.assertRaises(InvalidInput):
            call(plugin, "decide", {})

    def test_an_adapter_is_one(self) -> None:
        plugin = Plugin("p", version="1.0.0")

        @plugin.adapter
        def inbound(case: str) -> SubmitRequest:
            """Translate."""
            return {"intent": {"type": "Support.Ticket.Resolve", "payload": {"case": case}}, "principal": {"provider": "crm", "external_id": "u"}}

        self.assertEqual(call(plugin, "inbound", {"case": "1"}).data["principal"]["provider"], "crm")
        about = plugin.describe()["operations"]["inbound"]
        self.assertEqual(about["kind"], "adapter")
        self.assertEqual(about["output"]["required"], ["intent", "principal"])

    def test_the_types_of_the_contracts_have_schemas(self) -> None:
        from mortise import AgentInput, Intent, Proposal

        plugin = Plugin("p", version="1.0.0")

        @plugin.tool
        def echo(input: AgentInput, intent: Intent, proposal: Proposal) -> Proposal:
            return proposal

        plugin.operations["echo"].inner.__globals__.update(AgentInput=AgentInput, Intent=Intent, Proposal=Proposal)
        output = plugin.describe()["operations"]["echo"]["output"]
        self.assertEqual(sorted(output["required"]), ["agent_name", "agent_version", "confidence", "kind", "rationale"])


from mortise import SubmitRequest  # noqa: E402  named in an annotation above

if __name__ == "__main__":
    unittest.main()
