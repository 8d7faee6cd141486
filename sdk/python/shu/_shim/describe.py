"""What a plugin's class says of itself: the schemas of its operations, and its actions."""

from __future__ import annotations

import inspect
import os
import re
import sys

from eventmill._shim.plain import plain

from .load import NotAPlugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .load import Package

ONE = "execute"  # the operation of a plugin whose schema knows no op
MAX_ACTIONS = 256
MAX_WORDS = 2000  # that stand in the code and are tried as names of operations
UNCHECKED = "unchecked"  # the comment of a schema that says no more than which op there is: the plugin has none, and null stays
NO_OPERATION = "no_operation_is_called_this"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


async def describe(package: Package) -> dict[str, Any]:
    """Return the plugin as `describe` has it; raises what the plugin's code raises."""
    instance = package.instance()
    acts = await actions(instance)
    if not callable(getattr(instance, "execute", None)) and not (acts and callable(getattr(instance, "perform_action", None))):
        raise NotAPlugin(f"the class {package.about.class_name} has no execute: no operation can run")
    schema = await schema_told(instance)
    output = await schema_told(instance, "get_output_schema")
    needed = await asked(instance, "requires_permission") or []
    permissions = [needed] if isinstance(needed, str) else [str(key) for key in needed]
    known = ops(schema)
    names = [*known, *(name for name in package.about.operations if name not in known and name != ONE and name not in acts)]
    names += await unlisted(package, instance, {*names, *acts, ONE})
    operations: dict[str, Any] = {}
    for name in names:
        operations[name] = _operation(await schema_of(instance, name), output, permissions)
    if not known and (not acts or isinstance(schema, dict)):  # no list says which operations there are: this one stands for every other op
        operations[ONE] = _operation(_others(schema, [*names, *acts]), output, permissions)
    for name, action in acts.items():
        operations.setdefault(name, _action(action, permissions))
    about = package.about
    described: dict[str, Any] = plain({"name": about.name, "version": about.version, "operations": operations}, "/describe")
    return described


def ops(schema: Any) -> list[str]:
    """Return the operations that a schema has: the enum of its property op."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    op = properties.get("op") if isinstance(properties, dict) else None
    enum = op.get("enum") if isinstance(op, dict) else None
    if enum is None and isinstance(op, dict) and isinstance(op.get("const"), str):
        enum = [op["const"]]
    return [name for name in enum if isinstance(name, str) and name] if isinstance(enum, (list, tuple)) else []


async def schema_of(instance: Any, name: str) -> Any:
    """Return the schema of an operation: its own, or where there is none the plugin's."""
    return await own_schema(instance, name) or await schema_told(instance)


async def own_schema(instance: Any, name: str) -> Any:
    """Return what get_schema_for_op says."""
    return await schema_told(instance, "get_schema_for_op", name)


async def schema_told(instance: Any, method: str = "get_schema", *args: Any) -> Any:
    """Return the schema that a method says. One that raises has none: published hosts go on without, and check warns."""
    try:
        return await asked(instance, method, *args)
    except (Exception, SystemExit):
        return None


async def unlisted(package: Package, instance: Any, listed: set[str]) -> list[str]:
    """Return the operations that only get_schema_for_op knows, those of the entry first.

    Nothing lists them, so the words that stand in the plugin's code are tried. A method that has a schema for
    every name tells nothing.
    """
    if not callable(getattr(instance, "get_schema_for_op", None)) or await own_schema(instance, NO_OPERATION):
        return []
    found: list[str] = []
    taken = {name.casefold() for name in listed}
    for word in _words(package):
        if word.casefold() not in taken:
            schema = await own_schema(instance, word)
            if isinstance(schema, dict) and (schema.get("type") == "object" or "properties" in schema) and word in (ops(schema) or [word]):
                taken.add(word.casefold())
                found.append(word)
    return found


def _words(package: Package) -> list[str]:
    """Return the texts in the plugin's modules that may be names, each once."""
    import ast

    words: dict[str, None] = {}
    others = tuple(os.path.join(package.root, folder, "") for folder in ("vendor", "_environment"))
    own, entry = package.root + os.sep, os.path.join(package.root, package.about.entry)
    paths = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    for path in sorted(paths, key=lambda path: (path != entry, path)):
        if not path.startswith(own) or path.startswith(others) or not path.endswith(".py"):
            continue
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(), path)
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
                words[node.value] = None
                if len(words) >= MAX_WORDS:
                    return list(words)
    return list(words)


def _others(schema: Any, names: list[str]) -> Any:
    """Return the schema of the operation that stands for all that no list names. Those with names are called by them."""
    if not names:
        return schema
    shape = dict(schema) if isinstance(schema, dict) else {"$comment": UNCHECKED, "type": "object"}
    properties = shape.get("properties")
    properties = dict(properties) if isinstance(properties, dict) else {}
    op = properties.get("op")
    properties["op"] = {**(op if isinstance(op, dict) else {}), "type": "string", "not": {"enum": names}}
    return {**shape, "properties": properties, "required": [*(name for name in shape.get("required") or [] if name != "op"), "op"]}


async def actions(instance: Any) -> dict[str, Any]:
    """Return the actions of a plugin by name, none where it lists none."""
    listed = await asked(instance, "list_actions") or []
    return {str(_of(action, "name")): action for action in list(listed)[:MAX_ACTIONS] if _of(action, "name")}


def _operation(schema: Any, output: Any, permissions: list[str]) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": "operator"}
    if permissions:
        described["permissions"] = permissions
    if isinstance(schema, dict):
        described["input"] = schema
        for name in ("title", "description"):
            if isinstance(schema.get(name), str):
                described[name] = schema[name]
    if isinstance(output, dict):
        described["output"] = output
    return described


def _action(action: Any, permissions: list[str]) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": "operator", "preview": True, "policy_tags": ["action"]}
    if _of(action, "requires_approval"):
        described["policy_tags"].append("requires_approval")
    risk = _of(action, "risk_level") or _of(action, "risk")
    if isinstance(risk, str) and risk:
        described["policy_tags"].append(f"risk_{risk}")
    scopes = [*permissions, *(str(scope) for scope in _of(action, "required_scopes") or [])]
    if scopes:
        described["permissions"] = list(dict.fromkeys(scopes))
    schema = _of(action, "params_schema")
    if isinstance(schema, dict):
        described["input"] = schema
    if isinstance(_of(action, "description"), str):
        described["description"] = _of(action, "description")
    return described


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


async def asked(instance: Any, method: str, *args: Any) -> Any:
    """Return what a method says, None where the class has none; it may be a coroutine."""
    ask = getattr(instance, method, None)
    if not callable(ask):
        return None
    said = ask(*args)
    return await said if inspect.isawaitable(said) else said
