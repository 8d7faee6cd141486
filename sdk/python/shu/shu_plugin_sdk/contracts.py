"""What a plugin is made of, as types, and whether a class keeps to it.

    problems = contracts.check(MyPlugin())
    contracts.must(MyPlugin())   # AssertionError with the list
    contracts.assert_plugin_contract(MyPlugin, PLUGIN_MANIFEST)   # likewise, of the class and its manifest
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Mapping, Protocol, runtime_checkable

STATUSES = ("success", "error", "timeout")
CAPABILITIES = ("http", "identity", "auth", "kb", "secrets", "storage", "cursor", "cache", "ocr", "log", "utils")
EXTRA_CAPABILITIES = ("rate_limit", "scheduler", "query", "audit")
UNKNOWN_OP = "__no_such_operation__"
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
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


def assert_plugin_contract(cls: Any, manifest: Mapping[str, Any] | None = None) -> None:
    """Raise AssertionError naming everything in which a plugin's class, and its manifest, depart from the contract."""
    problems = [*_class(cls), *([] if manifest is None else _manifest(cls, manifest))]
    if problems:
        raise AssertionError(f"{getattr(cls, '__name__', cls)}: " + "; ".join(problems))


def _class(cls: Any) -> list[str]:
    problems = []
    if not inspect.iscoroutinefunction(getattr(cls, "execute", None)):
        problems.append("execute is not an async method")
    plugin = cls()
    schema, output = _told(plugin, "get_schema", problems), _told(plugin, "get_output_schema", problems)
    if not _ops(schema):
        problems.append("get_schema() has no property op with an enum")
    if not (isinstance(output, dict) and (output.get("properties") or output.get("$ref") or output.get("oneOf") or output.get("anyOf"))):
        problems.append("get_output_schema() does not describe the data")
    for where, one in (("get_schema()", schema), ("get_output_schema()", output)):
        if isinstance(one, dict):
            known = one.get("properties")
            outside = [name for name in one.get("required") or [] if not isinstance(known, dict) or name not in known]
            if outside:
                problems.append(f"{where} requires {', '.join(map(str, outside))}, which is none of its properties")
    if _told(plugin, "get_schema_for_op", problems, UNKNOWN_OP) is not None:
        problems.append("get_schema_for_op() has a schema for an operation that there is not; return None")
    return problems


def _told(plugin: Any, method: str, problems: list[str], *args: Any) -> Any:
    """Return the schema that a method says, None where there is none; that it raises is a problem."""
    ask = getattr(plugin, method, None)
    if not callable(ask):
        return None
    try:
        return ask(*args)
    except Exception as exc:
        problems.append(f"{method}({', '.join(map(repr, args))}) raises {type(exc).__name__}: {exc}")
        return None


def _manifest(cls: Any, manifest: Mapping[str, Any]) -> list[str]:
    problems = [f"the manifest has no {name}" for name in ("name", "version", "module") if not manifest.get(name)]
    capabilities = manifest.get("capabilities")
    if not isinstance(capabilities, (list, tuple, set, frozenset)):
        problems.append("the manifest has no capabilities, which are a list")
        capabilities = ()
    problems += [f"{name!r} is no capability" for name in capabilities if name not in CAPABILITIES + EXTRA_CAPABILITIES]
    if manifest.get("module") and not _MODULE.fullmatch(str(manifest["module"])):
        problems.append(f"module is {manifest['module']!r}, not of the form path.to.module:Class")
    for name in ("name", "version"):
        own = getattr(cls, name, None)
        if own is not None and name in manifest and own != manifest[name]:
            problems.append(f"{name} is {own!r} in the class and {manifest[name]!r} in the manifest")
    ops = _ops(_told(cls(), "get_schema", []))
    listed = [*(manifest.get("chat_callable_ops") or []), *(manifest.get("allowed_feed_ops") or [])]
    listed += [manifest["default_feed_op"]] if manifest.get("default_feed_op") else []
    outside = [op for op in dict.fromkeys(listed) if op not in ops]
    if outside:
        problems.append(f"the manifest lists {', '.join(map(str, outside))}, which op.enum does not have")
    return problems


def _ops(schema: Any) -> list[Any]:
    """Return the enum of a schema's property op."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    op = properties.get("op") if isinstance(properties, dict) else None
    enum = op.get("enum") if isinstance(op, dict) else None
    return list(enum) if isinstance(enum, (list, tuple)) else []
