"""What the kernel contracts ask of each kind, as assertions of a plugin's own tests.

The host and `mortise check` hold every plugin to its kind from outside. These hold
the code to it from within, with services and inputs of the test's choosing:

    from mortise import contract

    contract.tool(plugin, "word_count", {"text": "to be"})

Each takes what `mortise.testing.call` takes, returns its Outcome, and raises
AssertionError with what was not kept.
"""

from __future__ import annotations

import copy
import re

from ._errors import PluginError
from .testing import Outcome, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from ._plugin import Plugin

# Services that write, by the effect that the host counts them as; beside them http.fetch, unless it is GET or HEAD.
_WRITES = {
    "cursor_write": ("cursor.set", "cursor.delete"),
    "kb_write": (
        "kb.ingest_document",
        "kb.ingest_email",
        "kb.ingest_thread",
        "kb.ingest_text",
        "kb.upsert_knowledge_object",
        "kb.delete",
    ),
    "schedule_write": ("scheduler.enqueue",),
    "secret_write": ("secrets.set", "secrets.delete"),
    "storage_write": ("storage.put", "storage.delete"),
}
_EFFECTS = {method: effect for effect, methods in _WRITES.items() for method in methods}
_INTENT = re.compile(r"[A-Z][A-Za-z0-9]*(\.[A-Z][A-Za-z0-9]*)+\Z")
_KINDS = {"plan_proposal": "proposed_plan", "step_output": "step_output", "next_step_suggestions": "suggestions"}


def agent(
    plugin: Plugin,
    operation: str,
    request: Mapping[str, Any],
    *,
    allowed: Sequence[str] | None = None,
    needs: Sequence[str] | None = None,
    services: Mapping[str, Any] | None = None,
) -> Outcome:
    """Hold an agent to its contract and return what it answered.

    Its answer has the shape of one; it proposes nothing but `allowed`; without any one field of `needs`, such as
    "student.profile", it fails with needs_context in place of guessing. Both are what its decorator says, unless given.
    """
    members = _members(plugin, operation)
    outcome = call(plugin, operation, request, services=services)
    _proposal(plugin, outcome.data)
    may = {_bare(name) for name in (members.get("allowed_actions", ()) if allowed is None else allowed)}
    for place, name in _proposed(outcome.data):
        _hold(_bare(name) in may, f"{place}: {name} is not among its allowed actions {sorted(may)}")
    _no_effects(outcome, "an agent")
    for field in members.get("context_fields", ()) if needs is None else needs:
        less = copy.deepcopy(dict(request))
        _hold(_remove(less.get("context"), field.split(".")), f"the request has no {field}, so leaving it out shows nothing")
        _refused(plugin, operation, less, "needs_context", f"without {field}", services, None)
    return outcome


def operator(
    plugin: Plugin,
    operation: str,
    input: Mapping[str, Any],
    *,
    key: str = "held-1",
    services: Mapping[str, Any] | None = None,
    scopes: Sequence[str] | None = None,
    effects: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
) -> Outcome:
    """Hold an operator to its contract and return what its first run left behind.

    Two runs under one key ask services for the same, to the byte; two results that differ say is_nondeterministic; a
    service that writes is among its declared `effects`; a caller without its `scopes` is refused before any service is
    asked. Effects and scopes are what its decorator says, unless given.
    """
    members = _members(plugin, operation)
    asks = list(members.get("permissions", ()) if scopes is None else scopes)
    given = dict(context or {})
    given.update(key=key, auth=dict(given.get("auth") or {}, scopes=asks))
    first = call(plugin, operation, input, services=services, context=given)
    again = call(plugin, operation, input, services=services, context=given)
    _hold(first.requests == again.requests, f"two runs under the key {key!r} ask for different things")
    if first.data != again.data:
        told = [one.result.get("nondeterminism") or {} for one in (first, again)]
        _hold(any(t.get("is_nondeterministic") for t in told), "two results differ, and neither says is_nondeterministic")
    declared = set(members.get("effects", ()) if effects is None else effects)
    for method, args in first.requests:
        effect = _effect(method, args)
        _hold(effect is None or effect in declared, f"{method} is {effect}, which it does not declare: {sorted(declared)}")
    if asks:
        bare = dict(given, auth=dict(given["auth"], scopes=[]))
        _refused(plugin, operation, input, "scope_denied", "without its scopes", services, bare)
    return first


def tool(
    plugin: Plugin,
    operation: str,
    input: Mapping[str, Any],
    *,
    between: Iterable[Mapping[str, Any]] = (),
    services: Mapping[str, Any] | None = None,
) -> Outcome:
    """Hold a tool to its contract and return what it answered.

    It asks for no service that writes; one input has one answer, so that the host may keep it: also after it was asked
    about the inputs of `between`, whose answers it must not mix up with this one.
    """
    _members(plugin, operation)
    first = call(plugin, operation, input, services=services)
    _no_effects(first, "a tool")
    for other in between:
        _no_effects(call(plugin, operation, other, services=services), "a tool")
    again = call(plugin, operation, input, services=services)
    _hold(first.data == again.data, f"one input has two answers, {first.data!r} and {again.data!r}")
    return first


def adapter(
    plugin: Plugin,
    operation: str,
    event: Mapping[str, Any],
    *,
    intent: str | None = None,
    through: Sequence[str] = (),
    services: Mapping[str, Any] | None = None,
) -> Outcome:
    """Hold an adapter to its contract and return what it made of the event.

    Inward, it answers a request to the kernel: an intent, of the type `intent` if given, and who it is from, with no way
    to name rights; delivered twice, the event has one key. Outward, it acts by the operators of `through` and by no
    service that writes.
    """
    _members(plugin, operation)
    first = call(plugin, operation, event, services=services)
    asked = [args["operation"] for method, args in first.requests if method == "operations.call"]
    _no_effects(first, "an adapter")
    for name in asked:
        _hold(_bare(name) in {_bare(t) for t in through}, f"it goes through {name}, which is not among {sorted(through)}")
    if through:
        _hold(asked, f"it asked for none of {sorted(through)}")
    else:
        _submits(first.data, intent)
    again = call(plugin, operation, event, services=services)
    _hold(first.data == again.data and first.requests == again.requests, "the event was delivered twice, and became two things")
    return first


def _submits(data: Any, intent: str | None) -> None:
    _shape(data, "the request", {"intent": dict, "principal": dict}, {"context": dict, "constraints": dict, "idempotency_key": str, "metadata": dict})
    _shape(data["intent"], "intent", {"type": str, "payload": dict}, {})
    said = data["intent"]["type"]
    _hold(_INTENT.match(said), f"intent: {said!r} is no type of an intent, such as Support.Ticket.Resolve")
    _hold(intent in (None, said), f"intent: it is {said}, not {intent}")
    _shape(data["principal"], "principal", {"provider": str, "external_id": str}, {})
    key = data.get("idempotency_key", "k")
    _hold(re.match(r"[ -~]{1,255}\Z", key), f"idempotency_key: {key!r} is not 1 to 255 printable characters")


def _proposal(plugin: Plugin, data: Any) -> None:
    _shape(
        data,
        "the answer",
        {"agent_name": str, "agent_version": str, "kind": str, "confidence": (int, float), "rationale": dict},
        {"required_actions": list, "proposed_plan": dict, "step_output": object, "suggestions": list, "randomness_disclosure": object},
    )
    names = (data["agent_name"], data["agent_version"])
    _hold(names == (plugin.name, plugin.version), f"it says that it is {names}, and is {(plugin.name, plugin.version)}")
    _hold(data["kind"] in _KINDS, f"kind: {data['kind']!r} is none of {sorted(_KINDS)}")
    _hold(_KINDS[data["kind"]] in data, f"{data['kind']} without {_KINDS[data['kind']]}")
    sure = data["confidence"]
    _hold(not isinstance(sure, bool) and 0 <= sure <= 1, f"confidence: {sure!r} is not from 0 to 1")
    _shape(data["rationale"], "rationale", {"short": str, "signals": list}, {})
    for action in data.get("required_actions", ()):
        _shape(action, "required_actions", {"operator": str}, {"payload": dict, "policy_tags": list, "idempotency_hint": str})
    plan = data.get("proposed_plan")
    if plan is not None:
        _shape(plan, "proposed_plan", {"steps": list}, {})
        _hold(plan["steps"] or data["kind"] != "plan_proposal", "proposed_plan: a plan has a step")
        for step in plan["steps"]:
            _shape(step, "steps", {"step_id": str, "action": str}, {"gate": str, "payload": dict, "needs": list})
    for suggestion in data.get("suggestions", ()):
        _shape(suggestion, "suggestions", {"type": str, "text": str}, {})


def _proposed(data: Any) -> list[tuple[str, str]]:
    named = [("required_actions", action["operator"]) for action in data.get("required_actions", ())]
    return named + [("proposed_plan", step["action"]) for step in data.get("proposed_plan", {}).get("steps", ())]


def _shape(value: Any, place: str, required: Mapping[str, Any], optional: Mapping[str, Any]) -> None:
    _hold(isinstance(value, dict), f"{place}: {value!r} is no object")
    for name, type in required.items():
        _hold(name in value, f"{place}: {name} is missing")
        _hold(isinstance(value[name], type), f"{place}: {name} cannot be {value[name]!r}")
    for name, member in value.items():
        _hold(name in required or name in optional, f"{place}: there is no member {name}")
        _hold(isinstance(member, required.get(name) or optional[name]), f"{place}: {name} cannot be {member!r}")


def _refused(
    plugin: Plugin, operation: str, input: Any, code: str, when: str, services: Mapping[str, Any] | None, context: Mapping[str, Any] | None
) -> None:
    asked: list[str] = []

    def noted(method: str, service: Any) -> Any:
        def answer(args: Any) -> Any:
            asked.append(method)
            if isinstance(service, Exception):
                raise service
            return service(args) if callable(service) else service

        return answer

    try:
        call(plugin, operation, input, services={name: noted(name, it) for name, it in (services or {}).items()}, context=context)
    except PluginError as err:
        _hold(str(err.code).lower() == code, f"{when} it fails with {err.code}, not {code}")
    else:
        _hold(False, f"{when} it runs, and should fail with {code}")
    _hold(not asked, f"{when} it asks for {', '.join(asked)} before it fails")


def _no_effects(outcome: Outcome, who: str) -> None:
    for method, args in outcome.requests:
        _hold(_effect(method, args) is None, f"{who} has no effects, and this one asks for {method}, which is {_effect(method, args)}")


def _effect(method: str, args: Any) -> str | None:
    if method == "http.fetch":
        return None if str(args.get("method", "GET")).upper() in ("GET", "HEAD") else "http_write"
    return _EFFECTS.get(method)


def _bare(name: str) -> str:
    """An operation without its range, and under its short name if that is its plugin's."""
    plugin, _, op = name.partition("@")[0].partition("/")
    return plugin if op in ("", plugin) else f"{plugin}/{op}"


def _remove(value: Any, path: list[str]) -> bool:
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, dict) and value.pop(path[-1], None) is not None


def _members(plugin: Plugin, operation: str) -> Mapping[str, Any]:
    op = plugin.operations.get(operation.rpartition("/")[2])
    _hold(op is not None, f"{plugin.name} has no operation {operation!r}")
    assert op is not None
    return op.members


def _hold(ok: object, why: str) -> None:
    if not ok:
        raise AssertionError(why)
