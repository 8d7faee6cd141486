"""What a plugin does about the events of an agent. Loaded by the first hook that is declared."""

from __future__ import annotations

from ._errors import PluginError
from ._events import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

    from ._context import Context

MODES = ("skip", "fail")
LONGEST_MS = 600_000  # the longest deadline that a host takes
MOST_NEIGHBOURS = 32
_VARARGS, _VARKEYWORDS, _GENERATOR, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x200


class Hook:
    """One function that hears of an event, as a session sees it."""

    question = "hook"
    wants_context = True  # by which it is cancelled

    def __init__(
        self,
        func: Callable[..., Any],
        event: str,
        priority: float | None,
        failure_mode: str | None,
        deadline_ms: int | None,
        before: Sequence[str],
        after: Sequence[str],
    ) -> None:
        self.event = event
        self.shape = shape_of(event)
        if priority is not None and not _is_priority(priority):
            raise TypeError(f"the hook of {event}: priority is a finite number, not {priority!r}")
        if failure_mode not in (None, *MODES):
            raise ValueError(f"the hook of {event}: failure_mode is skip or fail, not {failure_mode!r}")
        if deadline_ms is not None and (type(deadline_ms) is not int or not 1 <= deadline_ms <= LONGEST_MS):
            raise ValueError(f"the hook of {event}: deadline_ms is 1 to {LONGEST_MS}, not {deadline_ms!r}")
        neighbours = {"before": before, "after": after}
        for which, plugins in neighbours.items():
            if isinstance(plugins, str) or len(plugins) > MOST_NEIGHBOURS:
                raise ValueError(f"the hook of {event}: {which} is a list of at most {MOST_NEIGHBOURS} plugins")
        said = {"priority": priority, "failure_mode": failure_mode, "deadline_ms": deadline_ms}
        self.members: dict[str, Any] = {"event": event}
        self.members.update((name, value) for name, value in said.items() if value is not None)
        self.members.update((name, list(plugins)) for name, plugins in neighbours.items() if plugins)
        self.func = func
        self._parameters(func)

    def _parameters(self, func: Callable[..., Any]) -> None:
        """Find the names of the payload and of the context among the parameters."""
        from ._plugin import _is_context

        inner: Any = func
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        code = getattr(inner, "__code__", None)
        if code is None:
            raise TypeError(f"the hook of {self.event}: not a function")
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        contexts = [name for name in names if _is_context(inner.__annotations__.get(name), inner.__globals__)]
        others = [name for name in names if name not in contexts]
        odd = code.co_flags & (_VARARGS | _VARKEYWORDS | _GENERATOR | _ASYNC_GENERATOR)
        if odd or getattr(code, "co_posonlyargcount", 0) or len(others) != 1 or len(contexts) > 1:
            raise TypeError(f"the hook of {self.event}: a hook takes the payload, and a Context if it wants one")
        self.payload = others[0]
        self.context = contexts[0] if contexts else None

    def answer(self, params: Mapping[str, Any], ctx: Context | None) -> dict[str, Any]:
        """Return the members to send; raises what the function raises, and PluginError for what is no answer."""
        arguments: dict[str, Any] = {self.payload: params.get("payload")}
        if self.context is not None:
            arguments[self.context] = ctx
        said = self.func(**arguments)
        if hasattr(said, "__await__"):
            from ._coroutine import run

            assert ctx is not None
            said = run(said, ctx)
        if self.shape == "listener":
            if said is not None:
                raise self._misfit(f"a listener hook answers nothing, not {type(said).__name__}")
            return {}
        if self.shape == "transform":
            return {} if said is None else {"payload": self._payload(said)}
        return self._verdict(said)

    def _payload(self, said: Any) -> dict[str, Any]:
        if not isinstance(said, dict):
            raise self._misfit(f"a {self.shape} hook answers the whole payload, a dict, not {type(said).__name__}")
        return said

    def _verdict(self, said: Any) -> dict[str, Any]:
        if not isinstance(said, dict) or type(said.get("allow")) is not bool or said.keys() - {"allow", "reason", "payload"}:
            form = '{"allow": True}, with a payload or without, or {"allow": False, "reason": ...}'
            raise self._misfit(f"a veto hook answers {form}")
        answer: dict[str, Any] = {"allow": said["allow"]}
        if said.get("reason") is not None:
            answer["reason"] = str(said["reason"])
        if said.get("payload") is not None:
            answer["payload"] = self._payload(said["payload"])
        return answer

    def _misfit(self, message: str) -> PluginError:
        return PluginError(f"{self.event}: {message}", code="INVALID_RESULT")


def _is_priority(given: object) -> bool:
    return type(given) is int or (type(given) is float and given - given == 0)


def shape_of(event: str) -> str:
    """Return what the hooks of an event may do; raises ValueError where there is no such event."""
    shape = EVENTS.get(event)
    if shape is None:
        hint = f"say {event}@v1" if f"{event}@v1" in EVENTS else "there are " + ", ".join(EVENTS)
        raise ValueError(f"there is no event {event!r}: {hint}")
    return shape
