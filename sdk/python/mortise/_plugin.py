"""A plugin and its operations.

Nothing here looks at annotations harder than it must: a start pays for every
import, so the schema machinery is loaded by `describe`, or by the first call
of an operation whose parameters need converting.
"""

from __future__ import annotations

import os

from . import _start
from ._context import Context
from ._errors import InvalidInput
from ._wire import Wire, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generic, Sequence, TypeVar, overload

    from typing_extensions import ParamSpec

    from ._hook import Hook

    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class Operating(Generic[P, R]):
        """An operator's function: called as before, and with decorators for what may stand beside it."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        def preview(self, func: F) -> F:
            """Make a function the preview: it takes what the operator takes and shows what would be done."""
            ...

        def reconcile(self, func: F) -> F:
            """Make a function find out how an earlier run ended: it takes what the operator takes, and `effects`."""
            ...

else:

    def overload(func):
        return func


_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200
_AS_IS = frozenset(("str", "float", "bool", "None", "dict", "list", "object", "Any"))


class Operation:
    """One typed function, as the protocol sees it."""

    def __init__(self, func: Callable[..., Any], kind: str, name: str | None, members: dict[str, Any]) -> None:
        self.func = func
        self.kind = kind
        self.name = name or str(getattr(func, "__name__", ""))
        self.members = members  # effects, policy_tags, ...: what describe says beside the schemas
        self.produces: Any = None  # of an agent: the type of its step_output
        self.preview: Operation | None = None  # of an operator
        self.reconcile: Operation | None = None  # likewise; its parameter `effects` is no part of the input
        self.question = ""  # of these two: preview or reconcile
        self.inner: Any = func  # what was decorated by others, for its signature
        while hasattr(self.inner, "__wrapped__"):
            self.inner = self.inner.__wrapped__
        code = getattr(self.inner, "__code__", None)
        if code is None:
            raise TypeError(f"operation {self.name!r}: not a function")
        if code.co_flags & (_VARARGS | _GENERATOR | _ASYNC_GENERATOR) or getattr(code, "co_posonlyargcount", 0):
            raise TypeError(
                f"operation {self.name!r}: parameters need names, and results come by return; "
                "write it without *args, positional-only parameters and yield"
            )
        self.is_async = bool(code.co_flags & _COROUTINE)
        self.takes_any = bool(code.co_flags & _VARKEYWORDS)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        annotations = self.inner.__annotations__
        scope = self.inner.__globals__

        found = [name for name in names if _is_context(annotations.get(name), scope)]
        if len(found) > 1:
            raise TypeError(f"operation {self.name!r}: one Context is enough")
        self.context: str | None = found[0] if found else None
        self.wants_context = self.is_async or bool(found)
        self.parameters = [name for name in names if name != self.context]
        self.defaults: dict[str, Any] = dict(self.inner.__kwdefaults__ or {})
        given = self.inner.__defaults__ or ()
        self.defaults.update(zip(code.co_varnames[code.co_argcount - len(given) : code.co_argcount], given))
        self.defaults.pop(self.context or "", None)
        as_is = all(_as_is(annotations.get(name)) for name in self.parameters)
        self._converters: dict[str, Callable[[Any], Any]] | None = {} if as_is else None

    def call(self, input: Any, ctx: Context | None) -> Any:
        """Run the function; raises InvalidInput for arguments it does not take, and whatever it raises."""
        args: Any = {} if input is None else input
        if self.kind == "agent" and not self.takes_any and isinstance(args, dict):
            args = {name: value for name, value in args.items() if name in self.parameters}  # it need not take all it is told
        converters = self._converters
        if converters is None:
            from ._schema import converters_of

            converters = self._converters = converters_of(self)
        if converters:
            args = self._convert(args, converters)
        try:
            if self.context is None:
                value = self.func(**args)
            else:
                value = self.func(**args, **{self.context: ctx})
        except TypeError:
            self._check(args)  # looked into only now, so that a good call pays nothing
            raise
        if self.is_async and hasattr(value, "__await__"):
            from ._coroutine import run

            assert ctx is not None
            return run(value, ctx)
        return value

    def beside(self, question: str) -> Callable[[F], F]:
        """Return the decorator of what answers a question about this operation: preview or reconcile."""

        def add(func: F) -> F:
            if getattr(self, question) is not None:
                raise ValueError(f"operation {self.name!r} has two functions for {question}")
            other = Operation(func, self.kind, self.name, {})
            other.question = question
            setattr(self, question, other)
            self.members[question] = True
            return func

        return add

    def _convert(self, args: Any, converters: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
        self._check(args)
        converted: dict[str, Any] = dict(args)
        for name, convert in converters.items():
            if name in converted:
                try:
                    converted[name] = convert(converted[name])
                except (TypeError, ValueError, KeyError, AttributeError) as exc:
                    raise InvalidInput(f"{self.name}: {name}: {exc}") from exc
        return converted

    def _check(self, args: Any) -> None:
        if not isinstance(args, dict):
            raise InvalidInput(f"{self.name}: the input must be an object")
        missing = [name for name in self.parameters if name not in args and name not in self.defaults]
        unknown = [] if self.takes_any else [name for name in args if name not in self.parameters]
        if self.context in args:
            unknown.append(self.context)
        if missing:
            raise InvalidInput(f"{self.name}: missing {', '.join(missing)}")
        if unknown:
            raise InvalidInput(f"{self.name}: unknown {', '.join(map(str, unknown))}")


class Plugin:
    """A plugin: a name, a version, and the operations and hooks that its decorators collect.

    Args:
        name: as the manifest has it, such as "text.word_count".
        version: a semantic version.
        description: a sentence for people who look for plugins.
        capabilities: the host services it asks for, such as "cache".
        concurrency: how many calls it runs at a time; above 1 they run on threads.
    """

    def __init__(
        self,
        name: str,
        version: str,
        description: str = "",
        capabilities: Sequence[str] = (),
        concurrency: int = 1,
    ) -> None:
        if not 1 <= concurrency <= 1024:
            raise ValueError(f"concurrency is 1 to 1024, not {concurrency}")
        self.name = name
        self.version = version
        self.description = description
        self.capabilities = list(capabilities)
        self.concurrency = concurrency
        self.operations: dict[str, Operation] = {}
        self.hooks: dict[str, Hook] = {}  # by event

    @overload
    def tool(self, func: F) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        effects: Sequence[str] = (),
        policy_tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        timeout: str | None = None,
        labels: Sequence[str] = (),
    ) -> Callable[[F], F]: ...
    def tool(self, func: Any = None, **options: Any) -> Any:
        """Make a function a tool: it computes.

        Use it bare or with name, effects, policy_tags, permissions, timeout, and labels, which say what its answers
        are tainted with: untrusted, private.
        """
        return self._decorate("tool", func, **options)

    @overload
    def operator(self, func: Callable[P, R]) -> Operating[P, R]: ...
    @overload
    def operator(
        self,
        *,
        name: str | None = None,
        effects: Sequence[str] = (),
        policy_tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        timeout: str | None = None,
        labels: Sequence[str] = (),
        brokered: bool = False,
    ) -> Callable[[Callable[P, R]], Operating[P, R]]: ...
    def operator(self, func: Any = None, **options: Any) -> Any:
        """Make a function an operator: it does something, and `effects` says what.

        Options as for tool; `brokered` says that all its effects go through host services. What comes back is the
        function, with two decorators for what may stand beside it:

            @plugin.operator(effects=["http_write"])
            def send(to: str, ctx: Context) -> str: ...

            @send.preview
            def show(to: str) -> dict: ...

            @send.reconcile
            def find_out(to: str, effects: list, ctx: Context) -> Reconciled: ...
        """
        return self._decorate("operator", func, **options)

    @overload
    def agent(self, func: F) -> F: ...
    @overload
    def agent(
        self,
        *,
        name: str | None = None,
        allowed_actions: Sequence[str] = (),
        context_fields: Sequence[str] = (),
        produces: Any = None,
        policy_tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        timeout: str | None = None,
        labels: Sequence[str] = (),
    ) -> Callable[[F], F]: ...
    def agent(self, func: Any = None, **options: Any) -> Any:
        """Make a function an agent: it decides, and answers a Proposal, of which nothing happens by itself.

        Of intent, context, policy_snapshot, tool_registry, constraints and runtime it takes those it has parameters
        for. `allowed_actions` are the operations it may propose, `context_fields` what it needs of the context,
        `produces` the type of its step_output. Further options as for tool, without effects.
        """
        return self._decorate("agent", func, **options)

    @overload
    def adapter(self, func: F) -> F: ...
    @overload
    def adapter(
        self,
        *,
        name: str | None = None,
        policy_tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        timeout: str | None = None,
        labels: Sequence[str] = (),
    ) -> Callable[[F], F]: ...
    def adapter(self, func: Any = None, **options: Any) -> Any:
        """Make a function an adapter: it translates, such as an event into a SubmitRequest. Options as for tool, without effects."""
        return self._decorate("adapter", func, **options)

    def hook(
        self,
        event: str,
        *,
        priority: float | None = None,
        failure_mode: str | None = None,
        deadline_ms: int | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> Callable[[F], F]:
        """Make a function hear of an event of the agents that have this plugin: one function for an event.

        It takes the payload, a dict, and a Context if it wants one. Of a listener nothing is expected; a transform
        returns the whole payload that the event shall carry from here on, or None; a veto returns {"allow": True},
        with a payload or without, or {"allow": False, "reason": ...}. The events are in docs/events.md.

            @plugin.hook("tool.before@v1", priority=50, failure_mode="fail")
            def guard(payload: dict) -> dict:
                return {"allow": payload["toolName"] != "shell", "reason": "no shell here"}

        Lower `priority` comes first, 100 unless given; `before` and `after` name plugins of the same priority.
        `failure_mode` is "skip" or "fail": whether a failure of the function ends what it was to hear of.
        Host services are not available in a hook. Raises ValueError for an event that there is not.
        """

        def add(func: F) -> F:
            from ._hook import Hook

            if event in self.hooks:
                raise ValueError(f"{self.name} has two hooks of {event!r}")
            self.hooks[event] = Hook(func, event, priority, failure_mode, deadline_ms, before, after)
            return func

        return add

    def _decorate(
        self,
        kind: str,
        func: Any,
        name: str | None = None,
        effects: Sequence[str] = (),
        policy_tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        timeout: str | None = None,
        labels: Sequence[str] = (),
        brokered: bool = False,
        allowed_actions: Sequence[str] = (),
        context_fields: Sequence[str] = (),
        produces: Any = None,
    ) -> Any:
        members: dict[str, Any] = {"effects": list(effects)}
        if brokered and kind != "operator":
            raise TypeError(f"only an operator is brokered, not one of kind {kind}")
        if (allowed_actions or context_fields or produces is not None) and kind != "agent":
            raise TypeError(f"only an agent has allowed_actions, context_fields and produces, not one of kind {kind}")
        if policy_tags:
            members["policy_tags"] = list(policy_tags)
        if permissions:
            members["permissions"] = list(permissions)
        if timeout:
            members["timeout"] = timeout
        if labels:
            members["labels"] = list(labels)
        if brokered:
            members["brokered"] = True
        if allowed_actions:
            members["allowed_actions"] = list(allowed_actions)
        if context_fields:
            members["context_fields"] = list(context_fields)

        def add(func: Any) -> Any:
            op = Operation(func, kind, name, members)
            if op.name in self.operations:
                raise ValueError(f"{self.name} has two operations named {op.name!r}")
            self.operations[op.name] = op
            op.produces = produces
            if kind == "operator":
                func.preview = op.beside("preview")
                func.reconcile = op.beside("reconcile")
            return func

        return add if func is None else add(func)

    def describe(self) -> dict[str, Any]:
        """Return the plugin and its operations with their schemas; raises TypeError for a type without one."""
        from ._schema import describe_operation

        about: dict[str, Any] = {"name": self.name, "version": self.version, "description": self.description}
        if self.capabilities:
            about["capabilities"] = self.capabilities
        about["operations"] = {op.name: describe_operation(op) for op in self.operations.values()}
        if self.hooks:
            about["hooks"] = [hook.members for hook in self.hooks.values()]
        return about

    def run(self) -> None:
        """Serve the host until it is done with this process. The last line of a plugin.

        In a process that multiprocessing spawns for the plugin, which runs its file again, it does nothing.
        """
        if _start.spawned():
            return
        _start.prefer_fork()
        _start.served = True
        if not _start.claimed() and os.isatty(0):
            self._explain()
            return
        wire = Wire(*_start.claim())
        line = wire.read_line()
        if line is None:
            return
        # The first line decides which version of the protocol this is.
        try:
            first = loads(line)
        except (ValueError, RecursionError) as exc:
            _start.leave(1, f"mortise: the host wrote something that is no frame: {exc}")
        if first.get("type") == "handshake":
            from ._v1 import serve

            serve(self, wire, first)
        elif self.concurrency > 1:
            from ._threads import ThreadedSession

            ThreadedSession(self, wire).serve(line)
        else:
            from ._session import Session

            Session(self, wire).serve(line)

    def _explain(self) -> None:
        path = getattr(__import__("__main__"), "__file__", None) or "PATH"
        print(f"{self.name} {self.version} is a Mortise plugin. The host starts it; try:\n\n    mortise run {path}\n")
        print("Operations: " + ", ".join(self.operations))
        if self.hooks:
            print("Events: " + ", ".join(self.hooks))


def _is_context(annotation: Any, scope: dict[str, Any]) -> bool:
    if annotation is Context:
        return True
    if not isinstance(annotation, str):
        return False
    head, *rest = annotation.strip("'\" ").split(".")
    if head not in scope:  # imported for type checkers only
        return (rest or [head])[-1] == "Context"
    value = scope[head]
    for name in rest:
        value = getattr(value, name, None)
    return value is Context


def _as_is(annotation: Any) -> bool:
    """Report whether JSON values already are what the annotation says, for those that can be told at a glance."""
    if annotation is None or isinstance(annotation, str):
        return annotation is None or annotation in _AS_IS
    return annotation in (str, float, bool, dict, list, object)
