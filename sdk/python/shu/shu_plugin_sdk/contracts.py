"""What a plugin is made of, as types, and whether a class keeps to it.

    problems = contracts.check(MyPlugin())
    contracts.must(MyPlugin())   # AssertionError with the list
"""

from __future__ import annotations

import inspect
from typing import Any, Mapping, Protocol, runtime_checkable

STATUSES = ("success", "error", "timeout")
AUTH_FIELDS = ("auth_mode", "user_email", "impersonate_email")


@runtime_checkable
class Plugin(Protocol):
    """A plugin that does something on demand or on a schedule."""

    async def execute(self, params: dict[str, Any], context: Any, host: Any) -> Any: ...


@runtime_checkable
class ActionPlugin(Protocol):
    """A plugin whose writes are shown and approved before they happen."""

    async def list_actions(self) -> list[Mapping[str, Any]]: ...
    async def perform_action(self, name: str, args: dict[str, Any], context: Any, host: Any) -> Any: ...


def must(plugin: Any) -> None:
    """Raise AssertionError naming everything that check finds."""
    problems = check(plugin)
    if problems:
        raise AssertionError("; ".join(problems))


def check(plugin: Any) -> list[str]:
    """Return what is wrong with a plugin, nothing where it keeps to the contract."""
    problems = []
    execute = getattr(plugin, "execute", None)
    if not callable(execute) and not callable(getattr(plugin, "perform_action", None)):
        problems.append("there is neither execute nor perform_action")
    if callable(execute) and not _takes(execute, 3):
        problems.append("execute does not take (params, context, host)")
    if callable(getattr(plugin, "list_actions", None)) != callable(getattr(plugin, "perform_action", None)):
        problems.append("list_actions and perform_action come together")
    for name in ("get_schema", "get_output_schema"):
        get = getattr(plugin, name, None)
        if callable(get) and not inspect.iscoroutinefunction(get):
            problems += _schema(name, get())
    return problems


def check_result(result: Any) -> list[str]:
    """Return what is wrong with what execute returned."""
    get = result.get if isinstance(result, dict) else lambda name: getattr(result, name, None)
    status, error = get("status"), get("error")
    problems = []
    if status not in STATUSES:
        problems.append(f"status is {status!r}; it is one of {', '.join(STATUSES)}")
    if status == "error" and not error:
        problems.append("status is error and error is empty")
    if status == "success" and error:
        problems.append("status is success and there is an error")
    return problems


def _schema(name: str, schema: Any) -> list[str]:
    if schema is None:
        return []
    if not isinstance(schema, dict):
        return [f"{name} returns a {type(schema).__name__}, not a dict or None"]
    properties = schema.get("properties")
    names = properties if isinstance(properties, dict) else {}
    if name == "get_schema":
        return [f"the parameter {field} is the host's to decide; declare op_auth in the manifest" for field in AUTH_FIELDS if field in names]
    return []


def _takes(method: Any, count: int) -> bool:
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # no signature to be had
        return True
    return True
