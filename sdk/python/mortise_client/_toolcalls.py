"""What the adapters have in common: which operations become tools, and how a framework's tool call becomes one call at the host.

A tool call is submitted under a key that is made of the scope, the operation and the framework's id of the tool call. So the
adapter keeps no state that matters: a second submission, in this process or another, joins the call that waits or gets its
result, and with other arguments the host refuses it. The host's record decides; what the framework was told does not count.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Sequence

from ._client import Client, Operation, Outcome, failure_of
from ._errors import ApprovalPending, ArgumentsChanged, MortiseError

_REMEMBERED = 1000

# The codes with which the host says that no person will let a call run any more.
_REFUSALS = frozenset(("approval_denied", "approval_expired", "approval_void", "cancelled"))


@dataclass(frozen=True)
class HostTool:
    """An operation under a name that models accept."""

    name: str
    description: str
    operation: Operation

    @property
    def schema(self) -> dict[str, Any]:
        return {"properties": {}, **(self.operation.input_schema or {}), "type": "object"}


def tools_of(client: Client, only: Sequence[str] | None = None, limit: int = 40) -> list[HostTool]:
    """The operations that are offered, with their schemas.

    only has plugin/operation or plugin/*; by default these are all tools and operators that the token may know of. More than
    limit are an error, because a model chooses badly among many.
    """
    names: list[str] = []
    if only is not None and not any(pattern.endswith("/*") for pattern in only):
        names = list(dict.fromkeys(only))
    else:
        for found in client.operations():
            if found.kind in ("tool", "operator") and (only is None or any(_fits(found.name, pattern) for pattern in only)):
                names.append(found.name)
            if len(names) > limit:
                break
    if len(names) > limit:
        raise MortiseError(
            "too_many_operations", f"there are more than {limit} operations: name those to offer with only, or raise limit"
        )
    operations = [client.operation(name) for name in names]
    plain = [re.sub(r"[^A-Za-z0-9_-]", "_", operation.name.replace("/", "__")) for operation in operations]
    tools = []
    for name, operation in zip(plain, operations):
        if len(name) > 64 or plain.count(name) > 1:
            name = f"{name[:55]}_{_sha256(operation.name)[:8]}"
        tools.append(HostTool(name, operation.description or operation.name, operation))
    return tools


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("/*") else name == pattern


class ToolCalls:
    """Submits tool calls. May be used by several threads."""

    def __init__(self, client: Client, scope: str | None = None, wait: float = 60.0) -> None:
        """scope is what ids of tool calls are unique in, such as the id of the conversation. A program that goes on with a
        conversation that another process began needs the same; by default each of these has one of its own."""
        self.client = client
        self.scope = scope if scope is not None else str(uuid.uuid4())
        self.wait = wait
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, str] = OrderedDict()  # the hash of the arguments, by key

    def submit(
        self, operation: str, tool_call_id: str, input: Any, *, wait: float | None = None, scope: str | None = None
    ) -> Outcome:
        """Make the call, join the one that waits, or get the result of the one that ended."""
        key = "tool-" + _sha256(json.dumps([self.scope if scope is None else scope, operation, tool_call_id]))
        digest = digest_of(input)
        with self._lock:
            if self._seen.get(key, digest) != digest:
                raise ArgumentsChanged(operation, tool_call_id)
        try:
            outcome = self.client.execute(operation, input, key=key, wait=self.wait if wait is None else wait)
        except MortiseError as error:
            if error.code == "key_conflict":
                raise ArgumentsChanged(operation, tool_call_id) from error
            raise
        with self._lock:
            self._seen[key] = digest
            self._seen.move_to_end(key)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return outcome

    def result(self, operation: str, tool_call_id: str, input: Any, *, scope: str | None = None) -> Any:
        """The data of the tool call's result."""
        outcome = self.submit(operation, tool_call_id, input, scope=scope)
        return data_of(outcome)


def data_of(outcome: Outcome) -> Any:
    """The data of an outcome, or its error, raised."""
    if outcome.pending is not None:
        raise ApprovalPending(outcome.pending)
    failure = failure_of(outcome)
    if failure is not None:
        raise failure
    return outcome.data


def is_refusal(error: MortiseError) -> bool:
    """Tells whether a call can no longer be approved."""
    return error.code in _REFUSALS


def is_answer(error: MortiseError) -> bool:
    """Tells whether an error is the host's answer to a call, and not trouble in reaching the host. The tool meets it too."""
    return error.status not in (None, 401) and not error.retryable


def text_of(data: Any) -> str:
    """A result as a model reads it."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def told(error: MortiseError) -> str:
    """What a model is told of a failure."""
    about: dict[str, Any] = {"code": error.code, "message": error.message, "retryable": error.retryable}
    if error.plugin_code:
        about["plugin_code"] = error.plugin_code
    return json.dumps({"error": about, **({"call_id": error.call_id} if error.call_id else {})}, ensure_ascii=False)


def digest_of(input: Any) -> str:
    """One text for each JSON value, whatever the order of its members."""
    try:
        return _sha256(json.dumps(input, sort_keys=True, separators=(",", ":"), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise MortiseError("invalid_input", f"the arguments cannot be written as JSON: {error}") from error


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
