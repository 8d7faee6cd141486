"""What a plugin's code would do wrong on this host: its operations run against a host that is none.

The host object is the real one; behind it stand answers in memory. Code that no
run gets to is read: attributes of `host`, calls of its services and of
shu_plugin_sdk. What a plugin catches itself is no finding.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import re
import sys
import warnings

from eventmill._shim.plain import NotJSON
from shu_plugin_sdk.errors import HttpRequestFailed
from shu_plugin_sdk.testing import Kept

from . import guard
from .answer import answer_of, is_result
from .describe import ONE, asked, ops, schema_of, schema_told, unlisted
from .host import NAMED, NEEDS, CapabilityDenied, Fixed, Host, service
from .records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from .load import Package

SECONDS = 2.0  # of one operation
MAX_FINDINGS = 100
MAX_FILES = 200
MAX_BYTES = 1 << 20
_TOKEN = "rehearsal"


async def rehearse(package: Package) -> list[dict[str, Any]]:
    """Return what is wrong: {rule, file, line, message}, each once, by file and line; warn where nothing fails by it."""
    found = Findings(package.root)
    says(package, found)
    for path in _files(package.root):
        Reader(package, found, path).read()
    await Run(package, found).all()
    return found.sorted()


class Findings:
    """What was found, each place and rule once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._by: dict[tuple[str, str, int], dict[str, Any]] = {}

    def add(self, rule: str, file: str, line: int, message: str, warn: bool = False) -> None:
        key = (rule, file, line)
        if key not in self._by and len(self._by) < MAX_FINDINGS:
            self._by[key] = {"rule": rule, "file": file, "line": line, "message": message[:500], "warn": warn}

    def sorted(self) -> list[dict[str, Any]]:
        return sorted(self._by.values(), key=lambda one: (one["file"], one["line"], one["rule"]))


def says(package: Package, found: Findings) -> None:
    """Hold the class's own name and version against the manifest's, which count."""
    about, instance = package.about, package.instance()
    for member, told in (("name", about.name), ("version", about.version_text)):
        own = getattr(instance, member, None)
        if own is not None and not callable(own) and str(own) not in (told, getattr(about, member)):
            message = f"the class {about.class_name} says {member} {own!r}, and the manifest {told!r}, which counts"
            found.add(f"class-{member}", *_place(package, member), message, warn=True)


def _place(package: Package, member: str) -> tuple[str, int]:
    """Return where the class sets a member, else where the class begins."""
    entry = package.about.entry
    with open(os.path.join(package.root, entry), "rb") as file:
        tree = ast.parse(file.read(), entry)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == package.about.class_name:
            for one in ast.walk(node):
                targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
                if any(getattr(target, "id", getattr(target, "attr", None)) == member for target in targets):
                    return entry, one.lineno
            return entry, node.lineno
    return entry, 1


def _files(root: str) -> Iterator[str]:
    count = 0
    for place, dirs, names in os.walk(root):
        dirs[:] = sorted(name for name in dirs if not name.startswith(".") and name not in ("vendor", "_environment", "tests", "__pycache__"))
        for name in sorted(names):
            path = os.path.join(place, name)
            if name.endswith(".py") and os.path.isfile(path) and os.path.getsize(path) <= MAX_BYTES:
                count += 1
                if count > MAX_FILES:
                    return
                yield path


# Reading.


class Reader:
    """Looks through one module."""

    def __init__(self, package: Package, found: Findings, path: str) -> None:
        self.found = found
        self.path = path
        self.file = os.path.relpath(path, package.root)
        self.host = Host(Line(package.about.name), package.about.capabilities)
        self.known: dict[str, Any] = {}  # names imported from shu_plugin_sdk
        self.parents: dict[ast.AST, ast.AST] = {}

    def read(self) -> None:
        with open(self.path, "rb") as file:
            tree = ast.parse(file.read(), self.path)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "shu_plugin_sdk" and not node.level:
                self.imported(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.attribute(node)
            elif isinstance(node, ast.Call):
                self.call(node)

    def add(self, rule: str, node: ast.AST, message: str) -> None:
        self.found.add(rule, self.file, getattr(node, "lineno", 0), message)

    def imported(self, node: ast.ImportFrom) -> None:
        try:
            module = __import__(str(node.module), fromlist=["*"])
        except ImportError as exc:
            if not self.caught(node, ImportError):
                self.add("sdk", node, str(exc))
            return
        for name in node.names:
            if name.name == "*":
                continue
            value = getattr(module, name.name, None)
            if value is not None:
                self.known[name.asname or name.name] = value
            elif not self.caught(node, ImportError):
                self.add("sdk", node, f"{node.module} has no {name.name}")

    def attribute(self, node: ast.Attribute) -> None:
        if self.is_host(node.value):
            if not self.caught(node, AttributeError if node.attr not in NAMED else CapabilityDenied) and not self.asked(node):
                self.service(node)
            return
        of = self.service_of(node.value)
        if of and not self.caught(node, AttributeError) and not _has(of, node.attr):
            self.add("host-method", node, f"host.{node.value.attr} has no {node.attr}")  # type: ignore[attr-defined]

    def service(self, node: ast.Attribute) -> None:
        try:
            getattr(self.host, node.attr)
        except CapabilityDenied as exc:
            self.add("capability", node, str(exc))
        except AttributeError as exc:
            self.add("host-attribute", node, str(exc))

    def call(self, node: ast.Call) -> None:
        target = self.target(node.func)
        if target is None:
            return
        if not any(isinstance(one, ast.Starred) for one in node.args) and all(one.arg for one in node.keywords):
            try:
                inspect.signature(target).bind(*node.args, **{str(one.arg): one.value for one in node.keywords})
            except TypeError as exc:
                if not self.caught(node, TypeError):
                    self.add("arguments", node, f"{ast.unparse(node.func)}: {exc}")
            except ValueError:
                pass
        self.values(node, target)
        parent = self.parents.get(node)
        if inspect.iscoroutinefunction(target) and isinstance(parent, (ast.Expr, ast.Attribute, ast.Subscript, ast.Compare, ast.For)):
            self.add("await", node, f"{ast.unparse(node.func)} is a coroutine function: await it")

    def values(self, node: ast.Call, target: Any) -> None:
        """Look at arguments that are written down."""
        name = getattr(target, "__name__", "")
        given = {str(one.arg): one.value for one in node.keywords}
        for position, parameter in enumerate(("field", "operator")):
            if position < len(node.args):
                given.setdefault(parameter, node.args[position])
        fields = FIELDS.get(name)
        if fields and isinstance(given.get("field"), ast.Constant):
            field = given["field"].value  # type: ignore[attr-defined]
            operator = given.get("operator")
            if field not in fields:
                self.add("kb-search", node, f"host.kb.{name}: invalid_field {field!r}; there are {', '.join(fields)}")
            elif isinstance(operator, ast.Constant) and operator.value not in OPERATORS[fields[field]]:
                self.add("kb-search", node, f"host.kb.{name}: invalid_operator {operator.value!r}; of {field} there are {', '.join(OPERATORS[fields[field]])}")
        most = given.get("max_errors")
        if name in ("map_safe", "filter_safe") and isinstance(most, ast.Constant) and isinstance(most.value, int) and most.value < 1:
            self.add("arguments", node, f"host.utils.{name}: max_errors must be at least 1, not {most.value}")

    def is_host(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == "host" or isinstance(node, ast.Attribute) and node.attr in ("host", "_host")

    def service_of(self, node: ast.AST) -> Any:
        """Return the service that an expression like host.kb stands for, None where it stands for none."""
        if not (isinstance(node, ast.Attribute) and self.is_host(node.value)) or node.attr not in NEEDS:
            return None
        return service(node.attr, self.host._line)

    def target(self, node: ast.AST) -> Any:
        """Return what a call calls: a method of a service, or something of the SDK."""
        if isinstance(node, ast.Name):
            value = self.known.get(node.id)
            return value if callable(value) else None
        if isinstance(node, ast.Attribute):
            of = self.service_of(node.value)
            if of is None and isinstance(node.value, ast.Name):
                of = self.known.get(node.value.id)
            value = getattr(of, node.attr, None) if of is not None and _has(of, node.attr) else None
            return value if callable(value) else None
        return None

    def asked(self, node: ast.Attribute) -> bool:
        """Report whether hasattr was asked before."""
        at: ast.AST = node
        while at in self.parents:
            at = self.parents[at]
            if isinstance(at, (ast.If, ast.IfExp, ast.BoolOp)) and re.search(rf"hasattr\([^()]*, '{node.attr}'\)", ast.unparse(at.test if not isinstance(at, ast.BoolOp) else at)):
                return True
        return False

    def caught(self, node: ast.AST, fault: type[BaseException]) -> bool:
        """Report whether a place is in a try that catches such a fault."""
        while node in self.parents:
            child, node = node, self.parents[node]
            if isinstance(node, ast.Try) and child in node.body and any(_catches(one.type, fault) for one in node.handlers):
                return True
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
        return False


FIELDS: dict[str, dict[str, str]] = {
    "search_chunks": {"content": "text", "summary": "text", "topics": "array"},
    "search_documents": {"title": "text", "content": "text", "synopsis": "text", "capability_manifest": "object"},
}
OPERATORS = {"text": ("eq", "contains", "icontains"), "array": ("contains", "has_key", "has_any"), "object": ("contains", "has_key", "path_contains")}


def _catches(kinds: ast.AST | None, fault: type[BaseException]) -> bool:
    names = {one.id if isinstance(one, ast.Name) else one.attr for one in ast.walk(kinds) if isinstance(one, (ast.Name, ast.Attribute))} if kinds else {"BaseException"}
    return bool(names & {kind.__name__ for kind in fault.__mro__})


def _has(of: Any, name: str) -> bool:
    """Report whether a service has an attribute, without asking it for a value."""
    if hasattr(type(of), name) or inspect.isclass(of) and hasattr(of, name):
        return True
    return type(of).__name__ == "Identity" and name.endswith("_email")


# Running.


class Line(Kept):
    """Answers services as a host would that has everything."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin, {"user_id": "rehearsal", "email": "rehearsal@example.com"})

    def ask_now(self, method: str, args: dict[str, Any]) -> Any:
        try:
            return super().ask_now(method, args)
        except LookupError:
            return ANSWERS.get(method, {})

    def _http_fetch(self, args: dict[str, Any]) -> Any:
        told: dict[str, Any] = {"status_code": 200, "headers": {"content-type": "application/json"}}
        return {**told, "body_base64": "e30="} if args.get("as") == "bytes" else {**told, "json": {}}

    def _secrets_get(self, args: dict[str, Any]) -> Any:
        return {"found": True, "value": self.secrets.get(args["name"], _TOKEN)}

    def _auth_resolve(self, args: dict[str, Any]) -> Any:
        return {"token": _TOKEN, "target": "rehearsal@example.com", "mode": args.get("mode") or "user"}


_NOTHING = {"results": [], "total_results": 0, "page": 1, "page_size": 20}
ANSWERS: dict[str, Any] = {
    "kb.find_chunks": _NOTHING,
    "kb.find_documents": _NOTHING,
    "kb.find_document": {"status": "error", "error": {"code": "not_found", "message": "there is no such document"}},
    "ocr.extract_text": {"text": "", "metadata": {}},
    "query.list": {"documents": []},
}


class Run:
    """Runs the operations of a plugin."""

    def __init__(self, package: Package, found: Findings) -> None:
        self.package = package
        self.found = found
        self.entry = package.about.entry

    async def all(self) -> None:
        instance = self.package.instance()
        if not callable(getattr(instance, "execute", None)):
            return
        for method, what in (("get_schema", "the schema of its parameters is taken for none"), ("get_output_schema", "what it returns is not checked")):
            try:
                await asked(instance, method)
            except (Exception, SystemExit) as exc:
                self.raised("schema", exc, f"{method}() raises {type(exc).__name__}: {exc}; {what}", warn=True)
        known = ops(await schema_told(instance))
        names = list(dict.fromkeys([*known, *(name for name in self.package.about.operations if name != ONE)])) or [ONE]
        listed: list[Any] = []
        if callable(getattr(instance, "list_actions", None)):
            listed = [one.get("name") if isinstance(one, dict) else getattr(one, "name", None) for one in await asked(instance, "list_actions") or []]
            names = [name for name in names if name in known or name not in listed]
        names += await unlisted(self.package, instance, {*names, *map(str, listed), ONE})
        for name in names:
            await self.schema(instance, name)
            schema = await schema_of(instance, name)
            for whole in (False, True):
                value = example(schema, whole)
                params = dict(value) if isinstance(value, dict) else {}
                if name != ONE or name in known:
                    params["op"] = name
                await self.once(name, params)

    async def schema(self, instance: Any, name: str) -> None:
        """Look at what get_schema_for_op raises: get_schema() stands for it, unless that has nothing for the operation."""
        try:
            await asked(instance, "get_schema_for_op", name)
        except (Exception, SystemExit) as exc:
            whole = await schema_told(instance)
            why = f"get_schema_for_op({name!r}) raises {type(exc).__name__}: {exc}"
            if name == ONE:
                return  # there is no such operation of the plugin's to have a schema
            if not isinstance(whole, dict):
                self.raised("schema", exc, f"{why}; get_schema() has none either, so no parameter is checked")
            elif name not in (ops(whole) or [name]):
                self.raised("schema", exc, f"{why}; the schema of get_schema() has no operation {name!r}, so that no call of it passes")

    async def once(self, name: str, params: dict[str, Any]) -> None:
        instance = self.package.instance()
        line = Line(self.package.about.name)
        line.params = params
        context = Record(user_id=line.user_id, agent_key=None, tenant_id="local", permissions=[], idempotency_key="rehearsal", correlation_id=None, watermark=None)
        depth = sys.get_coroutine_origin_tracking_depth()
        sys.set_coroutine_origin_tracking_depth(8)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                await self.execute(instance, name, params, context, Host(line, self.package.about.capabilities))
                gc.collect()
            for one in warned:
                self.unawaited(str(one.message))
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)

    async def execute(self, instance: Any, name: str, params: Any, context: Any, host: Host) -> None:
        try:
            result = instance.execute(params, context, host)
            if inspect.isawaitable(result):
                result = await asyncio.wait_for(_exits(result), SECONDS)
            if hasattr(result, "__aiter__"):
                return
            if result is not None and not isinstance(result, dict) and not is_result(result) and not callable(getattr(result, "model_dump", None)):
                self.found.add("result", *self.of_execute(instance), f"{name}: execute returned a value of type {type(result).__name__}, which is no result")
                return
            answer_of(result, verbatim=True)
        except NotJSON as exc:
            self.found.add("result", *self.of_execute(instance), f"{name}: the result is not JSON: {exc}")
        except (HttpRequestFailed, asyncio.TimeoutError):
            pass  # the answers here are made up
        except BaseException as exc:
            exc = exc.cause if isinstance(exc, Exits) else exc
            if isinstance(exc, SystemExit):
                self.raised("exit", exc, f"{name}: SystemExit: {exc}: return an error or raise another exception")
                return
            rule = rule_of(exc)
            if rule:
                self.raised(rule, exc, f"{name}: {type(exc).__name__}: {exc}")

    def of_execute(self, instance: Any) -> tuple[str, int]:
        code = getattr(inspect.unwrap(type(instance).execute), "__code__", None)
        if code is None or not code.co_filename.startswith(self.package.root + os.sep):
            return self.entry, 0
        return os.path.relpath(code.co_filename, self.package.root), code.co_firstlineno

    def raised(self, rule: str, exc: BaseException, message: str, warn: bool = False) -> None:
        file, line, trace = self.entry, 0, exc.__traceback__
        while trace is not None:
            path = trace.tb_frame.f_code.co_filename
            if path.startswith(self.package.root + os.sep):
                file, line = os.path.relpath(path, self.package.root), trace.tb_lineno
            trace = trace.tb_next
        if not line:
            file, line = self.of_execute(self.package.instance())
        self.found.add(rule, file, line, message, warn)

    def unawaited(self, message: str) -> None:
        if "was never awaited" not in message:
            return
        for path, line in reversed(re.findall(r'File "([^"]+)", line (\d+)', message)):
            if path.startswith(self.package.root + os.sep):
                what = message.partition("\n")[0]
                self.found.add("await", os.path.relpath(path, self.package.root), int(line), what)
                return


class Exits(Exception):
    """An operation raised SystemExit, which would end the loop that it runs on."""

    def __init__(self, cause: SystemExit) -> None:
        self.cause = cause


async def _exits(work: Any) -> Any:
    try:
        return await work
    except SystemExit as exc:
        raise Exits(exc) from exc


def rule_of(exc: BaseException) -> str:
    """Return the rule that an exception breaks, "" where it may be that the answers here are none."""
    text = str(exc)
    if isinstance(exc, CapabilityDenied):
        return "capability"
    if isinstance(exc, ImportError):
        name = exc.name or ""
        return "import" if guard.rule(name) else "sdk" if name.startswith("shu_plugin_sdk") else "import"
    if isinstance(exc, AttributeError) and (text.startswith(("the host has no attribute", "host services cannot be changed", "host.")) or isinstance(exc.obj, Fixed)):
        return "host-attribute" if text.startswith("the host has") else "host-method"
    if isinstance(exc, (TypeError, AttributeError)) and ("coroutine" in text or "'await' expression" in text):
        return "await"
    if isinstance(exc, TypeError) and (".execute()" in text or _in_shim(exc)):
        return "arguments"
    if isinstance(exc, ValueError) and _in_shim(exc):
        return "arguments"
    return "name" if isinstance(exc, NameError) else ""


def _in_shim(exc: BaseException) -> bool:
    """Report whether a call of the host object went wrong, by where it was raised or what it names."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    here = os.path.dirname(os.path.abspath(__file__))
    if trace is not None and trace.tb_frame.f_code.co_filename.startswith(here + os.sep) and not trace.tb_frame.f_code.co_filename.endswith("rehearse.py"):
        return True
    names = "KB|Http|Cache|Storage|Cursor|Secrets|Identity|Auth|OCR|Utils|Log|PluginResult|IngestionResult|Skip|RetryConfig|with_retry"
    return bool(re.match(rf"(?:{names})(?:\.\w+)?(?:\(\)| takes)", str(exc)))


# Input.


def example(schema: Any, whole: bool, depth: int = 0) -> Any:
    """Return a value that a schema may take: with what it requires, or with everything it knows."""
    if not isinstance(schema, dict) or depth > 8:
        return {}
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("oneOf", "anyOf", "allOf"):
        if isinstance(schema.get(name), list) and schema[name] and "properties" not in schema:
            return example(schema[name][0], whole, depth + 1)
    kind = schema.get("type")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    if kind == "object" or kind is None and "properties" in schema:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        wanted = properties if whole else [name for name in schema.get("required") or [] if name in properties]
        return {name: example(properties[name], whole, depth + 1) for name in wanted}
    if kind == "array":
        return [example(schema.get("items"), whole, depth + 1)] if whole or schema.get("minItems") else []
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    return {"boolean": False, "null": None}.get(str(kind), "x" * max(1, min(int(schema.get("minLength") or 1), 1000)))
