"""Types are the schema: annotations read once into nodes that know three things.

    schema    the JSON Schema 2020-12 of the type
    convert   a function from the JSON value to the Python value, None where they are the same
    fits      whether a JSON value looks like the type, to choose between the members of a union

Names are compared rather than imported: `typing`, `enum` and `dataclasses` are
loaded only if the plugin loads them, which it did if it uses them.
"""

from __future__ import annotations

import sys

from ._docstring import parse_docstring
from ._names import resolve, scope_of
from ._wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Mapping, Sequence

    from ._plugin import Operation

    Convert = Callable[[Any], Any] | None

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ABSENT: Any = object()
_LISTS = ("list", "Sequence", "MutableSequence", "Iterable", "Collection")
_MAPS = ("dict", "Mapping", "MutableMapping")


def describe_operation(op: Operation) -> dict[str, Any]:
    """Return an operation as `describe` has it; raises TypeError for a type without a schema."""
    summary, texts = parse_docstring(op.inner.__doc__)
    about: dict[str, Any] = {"kind": op.kind}
    if summary:
        about["description"] = summary
    annotations = _annotations_of(op)
    fields = {name: _read(annotations, name, op) for name in op.parameters}
    schema = Schema()
    about["input"] = schema.document(
        schema.record(
            fields,
            required=[name for name in op.parameters if name not in op.defaults],
            defaults=op.defaults,
            texts=texts,
            closed=not op.takes_any and op.kind != "agent",
        )
    )
    if op.kind == "agent":  # it returns a proposal; the schema is that of what it produces itself
        annotations = {} if op.produces is None else {"return": op.produces}
    if "return" in annotations:
        schema = Schema(output=True)
        about["output"] = schema.document(schema.of(_read(annotations, "return", op)))
    about.update(op.members)
    return about


def converters_of(op: Operation) -> dict[str, Callable[[Any], Any]]:
    """Return, by parameter, how JSON becomes what the annotation says; those that need nothing are left out."""
    annotations = _annotations_of(op)
    found = {name: _read(annotations, name, op).convert() for name in op.parameters}
    return {name: convert for name, convert in found.items() if convert is not None}


def _annotations_of(op: Operation) -> dict[str, Any]:
    return {name: value for name, value in op.inner.__annotations__.items() if name != op.context}


def _read(annotations: Mapping[str, Any], name: str, op: Operation) -> Node:
    if name not in annotations:
        return Anything()
    try:
        return read(annotations[name], op.inner.__globals__)
    except (TypeError, NameError) as exc:
        raise TypeError(f"operation {op.name!r}, {name}: {exc}") from exc


# Nodes.


class Schema:
    """Schemas of one document: types that contain themselves end up in its $defs."""

    def __init__(self, output: bool = False) -> None:
        self.output = output
        self._defs: dict[str, Any] = {}
        self._open: list[Record] = []
        self._recursive: set[str] = set()

    def document(self, schema: dict[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = {"$schema": DIALECT, **schema}
        if self._defs:
            document["$defs"] = self._defs
        return document

    def of(self, node: Node) -> dict[str, Any]:
        """Return the schema of a node."""
        if not isinstance(node, Record):
            return node.schema(self)
        name = node.cls.__name__
        if any(record.cls is node.cls for record in self._open):
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}"}
        self._open.append(node)
        schema = node.schema(self)
        self._open.pop()
        if name not in self._recursive:
            return schema
        self._defs[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def record(
        self,
        fields: Mapping[str, Node],
        required: Sequence[str],
        defaults: Mapping[str, Any],
        texts: Mapping[str, str],
        closed: bool = True,
    ) -> dict[str, Any]:
        """Return the schema of an object with these members."""
        properties: dict[str, Any] = {}
        for name, node in fields.items():
            schema = self.of(node)
            if name in texts and "description" not in schema:
                schema["description"] = texts[name]
            if name in defaults:
                default = _json(defaults[name])
                if default is not _ABSENT:
                    schema["default"] = default
            properties[name] = schema
        found: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            found["required"] = list(required)
        found["additionalProperties"] = not closed
        return found


class Node:
    """A type."""

    def schema(self, to: Schema) -> dict[str, Any]:
        raise NotImplementedError

    def convert(self) -> Convert:
        return None

    def fits(self, value: Any) -> bool:
        raise NotImplementedError


class Anything(Node):
    def schema(self, to: Schema) -> dict[str, Any]:
        return {}

    def fits(self, value: Any) -> bool:
        return True


class Scalar(Node):
    """str, bool, float, None; their JSON values are the Python values."""

    def __init__(self, name: str, *types: type) -> None:
        self.name, self.types = name, types

    def schema(self, to: Schema) -> dict[str, Any]:
        return {"type": self.name}

    def fits(self, value: Any) -> bool:
        return type(value) in self.types


class Integer(Scalar):
    """int; 2.0 is an integer to JSON Schema."""

    def convert(self) -> Convert:
        return lambda value: int(value) if type(value) is float else value

    def fits(self, value: Any) -> bool:
        return type(value) is int or type(value) is float and value.is_integer()


class Items(Node):
    """list[T], tuple[T, ...] and their abstract kin."""

    def __init__(self, item: Node, make: Callable[[Iterable[Any]], Any] | None = None) -> None:
        self.item, self.make = item, make

    def schema(self, to: Schema) -> dict[str, Any]:
        item = to.of(self.item)
        return {"type": "array", "items": item} if item else {"type": "array"}

    def convert(self) -> Convert:
        item, make = self.item.convert(), self.make
        if item is None:
            return make
        each, whole = item, make or list
        return lambda value: whole(map(each, value))

    def fits(self, value: Any) -> bool:
        return type(value) is list and all(map(self.item.fits, value))


class Places(Node):
    """tuple[A, B]: so many items, each of its own type."""

    def __init__(self, items: list[Node]) -> None:
        self.items = items

    def schema(self, to: Schema) -> dict[str, Any]:
        count = len(self.items)
        schema: dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count}
        if self.items:
            schema["prefixItems"] = [to.of(item) for item in self.items]
        return schema

    def convert(self) -> Convert:
        items = [item.convert() for item in self.items]
        return lambda value: tuple(one if item is None else item(one) for item, one in zip(items, value))

    def fits(self, value: Any) -> bool:
        if type(value) is not list or len(value) != len(self.items):
            return False
        return all(item.fits(one) for item, one in zip(self.items, value))


class Map(Node):
    """dict[str, T]."""

    def __init__(self, value: Node) -> None:
        self.value = value

    def schema(self, to: Schema) -> dict[str, Any]:
        value = to.of(self.value)
        return {"type": "object", "additionalProperties": value} if value else {"type": "object"}

    def convert(self) -> Convert:
        convert = self.value.convert()
        if convert is None:
            return None
        each = convert
        return lambda value: {name: each(one) for name, one in value.items()}

    def fits(self, value: Any) -> bool:
        return type(value) is dict and all(map(self.value.fits, value.values()))


class Choice(Node):
    """Literal and Enum."""

    def __init__(self, values: list[Any], cls: Any = None) -> None:
        self.values, self.cls = values, cls

    def schema(self, to: Schema) -> dict[str, Any]:
        return {"enum": [_json(value) for value in self.values]}

    def convert(self) -> Convert:
        if self.cls is not None:
            return self.cls  # type: ignore[no-any-return]
        # Only an enum's members, in a Literal, differ from their JSON.
        members = [(_json(value), value) for value in self.values if _json(value) is not value]
        return (lambda given: next((m for value, m in members if value == given), given)) if members else None

    def fits(self, value: Any) -> bool:
        # True == 1 in Python and not in JSON.
        return any(_json(one) == value and isinstance(value, bool) == isinstance(one, bool) for one in self.values)


class Union(Node):
    """A | B; a value is taken by the first member that it fits."""

    def __init__(self, members: list[Node]) -> None:
        self.members = members

    def schema(self, to: Schema) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        for member in self.members:
            schema = to.of(member)
            if not schema:
                return {}
            if schema not in found:
                found.append(schema)
        return found[0] if len(found) == 1 else {"anyOf": found}

    def convert(self) -> Convert:
        members = [(member, member.convert()) for member in self.members]
        if all(convert is None for _, convert in members):
            return None

        def choose(value: Any) -> Any:
            for member, convert in members:
                if member.fits(value):
                    return value if convert is None else convert(value)
            raise ValueError("fits no member of the union")

        return choose

    def fits(self, value: Any) -> bool:
        return any(member.fits(value) for member in self.members)


class Noted(Node):
    """Annotated[T, "description", Field(...)]."""

    def __init__(self, node: Node, notes: Iterable[Any]) -> None:
        self.node, self.notes = node, notes

    def schema(self, to: Schema) -> dict[str, Any]:
        schema = dict(to.of(self.node))
        for note in self.notes:
            if isinstance(note, str):
                schema["description"] = note
            elif hasattr(note, "apply"):
                note.apply(schema)
        return schema

    def convert(self) -> Convert:
        return self.node.convert()

    def fits(self, value: Any) -> bool:
        return self.node.fits(value)


class Record(Node):
    """A dataclass or a TypedDict. Its members are read when they are asked for: it may contain itself."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.is_dataclass = hasattr(cls, "__dataclass_fields__")
        self._fields: dict[str, Node] | None = None
        self._convert: Convert = None
        self.defaults: dict[str, Any] = {}
        if self.is_dataclass:
            dataclasses = sys.modules["dataclasses"]
            self.all = {field.name: field.type for field in dataclasses.fields(cls)}
            for field in dataclasses.fields(cls):
                if field.default is not dataclasses.MISSING:
                    self.defaults[field.name] = field.default
                elif field.default_factory is not dataclasses.MISSING:
                    self.defaults[field.name] = field.default_factory()
            self.taken = [field.name for field in dataclasses.fields(cls) if field.init]
            self.required = [name for name in self.taken if name not in self.defaults]
        else:
            self.all = dict(cls.__annotations__)
            self.taken = list(self.all)
            self.required = [name for name in self.all if _is_required(cls, name, self.all[name])]

    @property
    def fields(self) -> dict[str, Node]:
        if self._fields is None:
            self._fields = {name: read(type_, scope_of(self.cls, name)) for name, type_ in self.all.items()}
        return self._fields

    def schema(self, to: Schema) -> dict[str, Any]:
        fields, required, defaults = self.fields, self.required, self.defaults
        if self.is_dataclass and to.output:  # every member is written, whether it has a default or not
            required, defaults = list(fields), {}
        elif self.is_dataclass:
            fields = {name: fields[name] for name in self.taken}
        summary, texts = parse_docstring(self.cls.__doc__)
        schema = to.record(fields, required, defaults, texts)
        if summary and not summary.startswith(self.cls.__name__ + "("):  # which dataclass writes itself
            schema["description"] = summary
        return schema

    def convert(self) -> Convert:
        if self._convert is None:
            converters: dict[str, Convert] = {}
            seen: list[bool] = []

            def make(value: Any) -> Any:
                if not seen:  # now rather than above, for a type that contains itself
                    converters.update({name: self.fields[name].convert() for name in self.taken})
                    seen.append(True)
                args = {}
                for name, one in value.items():
                    convert = converters.get(name)
                    args[name] = one if convert is None else convert(one)
                return self.cls(**args)

            self._convert = make
        return self._convert

    def fits(self, value: Any) -> bool:
        return (
            type(value) is dict
            and all(name in value for name in self.required)
            and all(name in self.taken and self.fields[name].fits(one) for name, one in value.items())
        )


# From annotations to nodes.


def read(annotation: Any, scope: Mapping[str, Any]) -> Node:
    """Return the node of an annotation; raises TypeError for a type that has no schema."""
    annotation = resolve(annotation, scope)
    if annotation is None or annotation is type(None):
        return Scalar("null", type(None))
    if annotation is str:
        return Scalar("string", str)
    if annotation is bool:
        return Scalar("boolean", bool)
    if annotation is int:
        return Integer("integer")
    if annotation is float:
        return Scalar("number", int, float)
    if annotation is object:
        return Anything()

    if hasattr(annotation, "__metadata__"):
        return Noted(read(annotation.__origin__, scope), annotation.__metadata__)
    if hasattr(annotation, "__supertype__"):  # NewType
        return read(annotation.__supertype__, scope)
    if hasattr(annotation, "__value__"):  # type X = ...
        return read(annotation.__value__, scope)
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        if hasattr(annotation, "__dataclass_fields__") or hasattr(annotation, "__total__"):
            return _record(annotation)
        if hasattr(annotation, "__members__"):
            return Choice([member.value for member in annotation.__members__.values()], annotation)

    args: tuple[Any, ...] = tuple(getattr(annotation, "__args__", ()))
    name = _name(annotation)
    if name == "Any":
        return Anything()
    if name in ("Union", "UnionType", "Optional"):
        return Union([read(arg, scope) for arg in args])
    if name == "Literal":
        return Choice(list(args))
    if name in ("Required", "NotRequired", "Final", "ReadOnly"):
        return read(args[0], scope)
    args = tuple(arg for arg in args if type(arg).__name__ != "TypeVar")  # a bare typing.List on 3.9
    if name in _LISTS:
        return Items(read(args[0], scope) if args else Anything())
    if name in _MAPS:
        if args and resolve(args[0], scope) is not str:
            raise TypeError(f"the keys of an object are str, not {args[0]!r}")
        return Map(read(args[1], scope) if args else Anything())
    if name == "tuple":
        if args[-1:] == (...,) or (not args and annotation is tuple):
            return Items(read(args[0], scope) if args else Anything(), tuple)
        return Places([read(arg, scope) for arg in args if arg != ()])
    raise TypeError(
        f"{annotation!r} has no JSON Schema; use str, int, float, bool, None, list, dict, tuple, Literal, "
        "Enum, a dataclass, a TypedDict, a union of these, or Any"
    )


_records: dict[Any, Record] = {}


def _record(cls: Any) -> Record:
    if cls not in _records:
        _records[cls] = Record(cls)
    return _records[cls]


def _name(annotation: Any) -> str:
    """Return the plain name of a generic: "list" for list, list[int] and typing.List[int] alike."""
    if type(annotation).__name__ == "UnionType":
        return "Union"
    origin = getattr(annotation, "__origin__", annotation)
    return getattr(origin, "__name__", None) or getattr(origin, "_name", None) or ""


def _is_required(cls: Any, name: str, annotation: Any) -> bool:
    """Report whether a TypedDict must have a member; as a string, NotRequired is invisible to the class."""
    text = getattr(annotation, "__forward_arg__", "")
    marker = text.split("[")[0].rpartition(".")[2] if text else _name(annotation)
    if marker in ("Required", "NotRequired"):
        return bool(marker == "Required")
    return name in cls.__required_keys__


def _json(value: Any) -> Any:
    """Return value as JSON has it, _ABSENT where it cannot."""
    if value is None or type(value) in (str, int, bool):
        return value
    try:
        return loads(f'{{"value":{dumps(value)}}}'.encode())["value"]
    except (TypeError, ValueError, RecursionError):
        return _ABSENT
