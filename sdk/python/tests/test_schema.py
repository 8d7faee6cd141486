"""Types are the schema: annotations, what they say and what becomes of the input."""

from __future__ import annotations

import enum
import sys
import typing
import unittest
from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, NewType, Optional, Sequence, Tuple, TypedDict, Union

import peer  # noqa: F401  puts the SDK on the path

from mortise import Context, Field, InvalidInput, Plugin
from mortise._docstring import parse_docstring
from mortise._schema import Schema, read
from mortise.testing import call

Annotated = typing.Annotated


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place.

    Attributes:
        x: to the right
    """

    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass
class Circle:
    kind: Literal["circle"]
    centre: Point


@dataclass
class Square:
    kind: Literal["square"]
    centre: Point


class Movie(TypedDict, total=False):
    title: str
    year: int


UserId = NewType("UserId", int)
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
POINT = {
    "type": "object",
    "description": "A place.",
    "properties": {
        "x": {"type": "integer", "description": "to the right"},
        "y": {"type": "number", "default": 0.5},
        "tags": {"type": "array", "items": STRING, "default": []},
    },
    "required": ["x"],
    "additionalProperties": False,
}
TABLE: list[tuple[Any, Any]] = [
    (str, STRING),
    ("int", INTEGER),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, NULL),
    (Any, {}),
    (object, {}),
    (list, {"type": "array"}),
    (List, {"type": "array"}),
    ("list[str]", {"type": "array", "items": STRING}),
    (List[int], {"type": "array", "items": INTEGER}),
    (Sequence[str], {"type": "array", "items": STRING}),
    (dict, {"type": "object"}),
    (Dict[str, Any], {"type": "object"}),
    ("dict[str, int]", {"type": "object", "additionalProperties": INTEGER}),
    (tuple, {"type": "array"}),
    (Tuple[int, ...], {"type": "array", "items": INTEGER}),
    ("tuple[int, str]", {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING]}),
    (Optional[str], {"anyOf": [STRING, NULL]}),
    ("str | None", {"anyOf": [STRING, NULL]}),
    ("list[int | None] | str", {"anyOf": [{"type": "array", "items": {"anyOf": [INTEGER, NULL]}}, STRING]}),
    (Union[int, str], {"anyOf": [INTEGER, STRING]}),
    (Union[int, Any], {}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Colour, {"enum": ["red", "blue"]}),
    (Literal[Colour.RED], {"enum": ["red"]}),
    (UserId, INTEGER),
    (Point, POINT),
    (Optional["Point"], {"anyOf": [POINT, NULL]}),
    (
        Movie,
        {"type": "object", "properties": {"title": STRING, "year": INTEGER}, "additionalProperties": False},
    ),
    (Annotated[str, "a name"], {"type": "string", "description": "a name"}),
    (
        Annotated[int, Field(ge=1, lt=9, examples=[2])],
        {**INTEGER, "minimum": 1, "exclusiveMaximum": 9, "examples": [2]},
    ),
    ("Annotated[list[str], Field(max_length=3)]", {"type": "array", "items": STRING, "maxItems": 3}),
    (
        Annotated[str, Field("what", min_length=1, pattern="^a")],
        {**STRING, "description": "what", "pattern": "^a", "minLength": 1},
    ),
]


class Schemas(unittest.TestCase):
    maxDiff = None

    def test_table(self) -> None:
        for annotation, want in TABLE:
            with self.subTest(str(annotation)):
                self.assertEqual(Schema().of(read(annotation, globals())), want)

    def test_types_without_a_schema_say_so(self) -> None:
        for annotation in [set, bytes, complex, Dict[int, str], "Missing", "not an expression"]:
            with self.subTest(str(annotation)), self.assertRaises((TypeError, NameError)):
                read(annotation, globals())

        plugin = Plugin("a.b", version="1")

        @plugin.tool
        def op(what: set) -> None: ...

        with self.assertRaisesRegex(TypeError, "operation 'op', what: .*set.* has no JSON Schema"):
            plugin.describe()

    def test_a_type_may_contain_itself(self) -> None:
        schema = Schema()
        got = schema.document(schema.of(read(Tree, globals())))
        self.assertEqual(got["$ref"], "#/$defs/Tree")
        self.assertEqual(got["$defs"]["Tree"]["properties"]["children"]["items"], {"$ref": "#/$defs/Tree"})

    def test_an_operation(self) -> None:
        plugin = Plugin("a.b", version="1", description="d", capabilities=["cache"])

        @plugin.operator(effects=["db_write"], policy_tags=["t"], permissions=["p"], timeout="fast")
        def save(
            ctx: Context, at: Point, name: str = "x", *, colour: Colour = Colour.RED, odd: object = print
        ) -> Point:
            """Save a point,
            somewhere.

            More about it.

            Args:
                at: where to
                name (str): what it is
                    called
            Returns:
                nothing: much
            """

        dialect = "https://json-schema.org/draft/2020-12/schema"
        output = {**POINT, "required": ["x", "y", "tags"]}
        output["properties"] = {
            "x": POINT["properties"]["x"],
            "y": {"type": "number"},
            "tags": {"type": "array", "items": STRING},
        }
        want = {
            "kind": "operator",
            "description": "Save a point, somewhere.",
            "input": {
                "$schema": dialect,
                "type": "object",
                "properties": {
                    "at": POINT,
                    "name": {"type": "string", "description": "what it is called", "default": "x"},
                    "colour": {"enum": ["red", "blue"], "default": "red"},
                    "odd": {},
                },
                "required": ["at"],
                "additionalProperties": False,
            },
            "output": {"$schema": dialect, **output},
            "effects": ["db_write"],
            "policy_tags": ["t"],
            "permissions": ["p"],
            "timeout": "fast",
        }
        about = plugin.describe()
        self.assertEqual(about.pop("operations"), {"save": want})
        self.assertEqual(about, {"name": "a.b", "version": "1", "description": "d", "capabilities": ["cache"]})

    def test_docstrings(self) -> None:
        self.assertEqual(parse_docstring(None), ("", {}))
        text = "One.\n    Args:\n        a: b\n\n    Raises:\n        c: d"
        self.assertEqual(parse_docstring(text), ("One.", {"a": "b"}))

    def test_functions_the_protocol_cannot_call_are_refused(self) -> None:
        plugin = Plugin("a.b", version="1")

        def star(*args: int) -> None: ...
        def generator() -> Any:
            yield 1

        def two(a: Context, b: Context) -> None: ...

        for func in [star, generator, two, print, len]:
            with self.assertRaises(TypeError):
                plugin.tool(func)
        plugin.tool(name="x")(lambda: 1)
        with self.assertRaisesRegex(ValueError, "two operations"):
            plugin.tool(name="x")(lambda: 1)


class Conversions(unittest.TestCase):
    def convert(self, annotation: Any, value: Any) -> Any:
        convert = read(annotation, globals()).convert()
        return value if convert is None else convert(value)

    def test_input_becomes_what_the_annotation_says(self) -> None:
        cases: list[tuple[Any, Any, Any]] = [
            (int, 2.0, 2),
            (List[int], [1.0, 2], [1, 2]),
            (Tuple[int, str], [1, "a"], (1, "a")),
            (Tuple[str, ...], ["a"], ("a",)),
            (Colour, "red", Colour.RED),
            (Literal[Colour.RED], "red", Colour.RED),
            (Optional[Colour], None, None),
            (Optional[Colour], "blue", Colour.BLUE),
            (Point, {"x": 1.0}, Point(1)),
            (Dict[str, Point], {"a": {"x": 1}}, {"a": Point(1)}),
            (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
            (Union[Circle, Square], {"kind": "square", "centre": {"x": 1}}, Square("square", Point(1))),
            (Union[Point, str, List[Point]], [{"x": 1}], [Point(1)]),
            (Movie, {"year": 2000.0}, {"year": 2000}),
            (Annotated[int, "n"], 3.0, 3),
        ]
        for annotation, value, want in cases:
            with self.subTest(str(annotation)):
                got = self.convert(annotation, value)
                self.assertEqual(got, want)
                self.assertIs(type(got), type(want))

    def test_plain_types_cost_nothing(self) -> None:
        for annotation in [str, float, bool, dict, List[str], Dict[str, Any], Optional[str], Literal["a"], None]:
            self.assertIsNone(read(annotation, globals()).convert(), annotation)

    def test_through_an_operation(self) -> None:
        plugin = Plugin("a.b", version="1")

        @plugin.tool
        def move(at: Point, by: int | None = None, colour: Colour = Colour.BLUE) -> tuple[Point, Colour]:
            return Point(at.x + (by or 0), tags=["t"]), colour

        got = call(plugin, "move", {"at": {"x": 1}, "by": 2.0}).data
        self.assertEqual(got, [{"x": 3, "y": 0.5, "tags": ["t"]}, "blue"])
        for input in [{}, {"at": {}}, {"at": {"x": 1}, "colour": "green"}, {"at": {"x": 1}, "no": 1}, {"at": 1}]:
            with self.subTest(input), self.assertRaises(InvalidInput):
                call(plugin, "move", input)

    @unittest.skipIf(sys.version_info < (3, 12), "needs type statements")
    def test_type_statements(self) -> None:
        scope: dict[str, Any] = {}
        exec("type Names = list[str]", scope)
        self.assertEqual(Schema().of(read(scope["Names"], scope)), {"type": "array", "items": STRING})
