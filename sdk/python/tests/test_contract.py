"""The contracts of the kinds: what keeps one passes, and each broken promise is named."""

from __future__ import annotations

import copy
import itertools
import json
import os
import unittest
from typing import Any

from peer import SDK

from mortise import Context, Plugin, PluginError, Result, contract

kept = Plugin("kept", version="1.0.0", capabilities=["http"])
broken = Plugin("broken", version="1.0.0", capabilities=["http"])
SENT = {"http.fetch": {"status_code": 201}}
counter = itertools.count()
seen: list[str] = []


def propose(name: str, context: dict[str, Any], **changes: Any) -> dict[str, Any]:
    if "friend" not in context:
        raise PluginError("who to?", code="NEEDS_CONTEXT")
    answer = {
        "agent_name": name,
        "agent_version": "1.0.0",
        "kind": "plan_proposal",
        "confidence": 0.5,
        "rationale": {"short": "They asked.", "signals": []},
        "required_actions": [{"operator": "kept/send@1.x"}],
        "proposed_plan": {"steps": [{"step_id": "s1", "action": "kept/send"}]},
    }
    answer.update(changes)
    return answer


@kept.agent(allowed_actions=["kept/send"], context_fields=["friend"])
def plan(intent: dict, context: dict = {}) -> dict:
    return propose("kept", context)


@kept.operator(effects=["http_write"], permissions=["mail"])
def send(to: str, ctx: Context) -> object:
    if "mail" not in ctx.auth["scopes"]:
        raise PluginError("no", code="scope_denied")
    ctx.service("http.fetch", {"method": "POST", "url": "https://a.example/" + to, "key": ctx.key})
    return Result({"n": next(counter)}, nondeterminism={"is_nondeterministic": True, "reasons": ["count"], "stability": "low"})


@kept.tool
def upper(text: str) -> str:
    return text.upper()


@kept.adapter
def inbound(user: str) -> dict:
    return {
        "intent": {"type": "Mail.Send", "payload": {}},
        "principal": {"provider": "p", "external_id": user},
        "idempotency_key": user,
    }


@kept.adapter
def outbound(user: str, ctx: Context) -> dict:
    return dict(ctx.call("kept/send", {"to": user}))


@broken.agent(allowed_actions=["broken/send"], context_fields=["friend"])
def guesses(intent: dict, context: dict = {}) -> dict:
    return propose("broken", {"friend": 1}, **intent["payload"])


@broken.operator(effects=["kb_write"])
def sends(to: str, ctx: Context) -> object:
    if to == "fresh":
        ctx.service("http.fetch", {"method": "GET", "url": f"https://a.example/{next(counter)}"})
    if to == "kb":
        ctx.service("storage.put", {"key": "k", "value": 1})
    return next(counter) if to == "odd" else 1


@broken.tool
def remembers(text: str, ctx: Context) -> object:
    seen.append(text)
    if text == "write":
        ctx.service("http.fetch", {"method": "post", "url": "https://a.example"})
    return len(set(seen))


@broken.adapter
def admin(change: dict, ctx: Context) -> dict:
    if "fetch" in change:
        ctx.service("http.fetch", {"method": "PUT", "url": "https://a.example"})
    if "call" in change:
        return dict(ctx.call(change["call"], {}))
    request = inbound("u")
    request.update(change)
    if "now" in change:
        request = inbound(str(next(counter)))
    return request


class Contracts(unittest.TestCase):
    def broken(self, why: str, check: Any, *args: Any, **options: Any) -> None:
        with self.subTest(why), self.assertRaises(AssertionError) as caught:
            check(broken, *args, **options)
        self.assertIn(why, str(caught.exception))

    def test_what_keeps_its_contract_passes(self) -> None:
        contract.agent(kept, "plan", {"intent": {}, "context": {"friend": {}}})
        contract.operator(kept, "send", {"to": "ann"}, services=SENT)
        self.assertEqual(contract.tool(kept, "upper", {"text": "a"}, between=[{"text": "b"}]).data, "A")
        contract.adapter(kept, "inbound", {"user": "u"}, intent="Mail.Send")
        contract.adapter(kept, "outbound", {"user": "u"}, through=["kept/send@1.x"], services={"operations.call": {"status": "succeeded"}})

    def test_an_agent_that_breaks_it_is_named(self) -> None:
        def ask(**payload: Any) -> tuple[str, dict[str, Any]]:
            return "guesses", {"intent": {"payload": payload}, "context": {"friend": {}}}

        allowed = {"allowed": ["kept/send"]}
        self.broken("without friend it runs", contract.agent, *ask(), **allowed)
        self.broken("kept/send@1.x is not among its allowed actions", contract.agent, *ask())
        self.broken("confidence: 2 is not from 0 to 1", contract.agent, *ask(confidence=2), **allowed)
        self.broken("there is no member mood", contract.agent, *ask(mood="good"), **allowed)
        self.broken("a plan has a step", contract.agent, *ask(proposed_plan={"steps": []}), **allowed)
        self.broken("step_output without step_output", contract.agent, *ask(kind="step_output"), **allowed)
        self.broken("and is ('broken', '1.0.0')", contract.agent, *ask(agent_name="kept"), **allowed)
        self.broken("the request has no enemy.name", contract.agent, *ask(), needs=["enemy.name"], **allowed)

    def test_an_operator_that_breaks_it_is_named(self) -> None:
        services = {"http.fetch": {"status_code": 200}, "storage.put": {}}
        self.broken("ask for different things", contract.operator, "sends", {"to": "fresh"}, services=services)
        self.broken("neither says is_nondeterministic", contract.operator, "sends", {"to": "odd"}, services=services)
        self.broken("storage.put is storage_write, which it does not declare", contract.operator, "sends", {"to": "kb"}, services=services)
        self.broken("without its scopes it runs", contract.operator, "sends", {"to": "ann"}, scopes=["mail"])
        contract.operator(broken, "sends", {"to": "kb"}, services=services, effects=["storage_write"])

    def test_a_tool_that_breaks_it_is_named(self) -> None:
        self.broken("one input has two answers", contract.tool, "remembers", {"text": "a"}, between=[{"text": "b"}])
        self.broken("asks for http.fetch, which is http_write", contract.tool, "remembers", {"text": "write"}, services=SENT)

    def test_an_adapter_that_breaks_it_is_named(self) -> None:
        def say(**change: Any) -> tuple[str, dict[str, Any]]:
            return "admin", {"change": change}

        self.broken("there is no member scopes", contract.adapter, *say(principal={"provider": "p", "external_id": "u", "scopes": ["*"]}))
        self.broken("there is no member tenant", contract.adapter, *say(tenant="t"))
        self.broken("'send' is no type of an intent", contract.adapter, *say(intent={"type": "send", "payload": {}}))
        self.broken("it is Mail.Send, not Mail.Read", contract.adapter, *say(), intent="Mail.Read")
        self.broken("delivered twice", contract.adapter, *say(now=1))
        self.broken("an adapter has no effects", contract.adapter, *say(fetch=1), services=SENT)
        called = {"operations.call": {"status": "succeeded"}}
        self.broken("it goes through a/b", contract.adapter, *say(call="a/b"), through=["kept/send"], services=called)
        self.broken("it asked for none of", contract.adapter, *say(), through=["kept/send"])


class Shapes(unittest.TestCase):
    """The shapes here are those of the protocol's schemas."""

    def members(self, name: str) -> dict[str, Any]:
        with open(os.path.join(SDK, "..", "..", "protocol", "schemas", name), encoding="utf-8") as file:
            return dict(json.load(file)["properties"])

    def test_every_member_of_a_schema_may_stand_there(self) -> None:
        filler: dict[str, Any] = {"string": "x", "number": 0.5, "object": {}, "array": []}
        answer = {name: filler[m.get("type", "object")] for name, m in self.members("agent_output.schema.json").items() if "enum" not in m}
        answer.update(agent_name="kept", agent_version="1.0.0", kind="step_output", rationale={"short": "", "signals": []}, proposed_plan={"steps": []})
        contract._proposal(kept, copy.deepcopy(answer))
        request = {name: filler[m["type"]] for name, m in self.members("kernel_submit_request.schema.json").items()}
        request.update(inbound("u"))
        contract._submits(request, None)


if __name__ == "__main__":
    unittest.main()
