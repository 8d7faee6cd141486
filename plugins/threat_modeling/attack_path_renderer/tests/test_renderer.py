"""Each format read back by a reader that is not ours, and names that try to be markup."""

from __future__ import annotations

import html.parser
import json
import os
import random
import re
import unittest
import xml.etree.ElementTree as ET
from typing import Any, Dict, List, Tuple

from framework.plugins.protocol import ArtifactRef, ToolResult
from rendering.drawing import Drawing
from rendering.formats import FORMATS

from support import HERE, ToolCase
from tool import AttackPathRenderer

with open(os.path.join(HERE, "examples", "paths.json"), encoding="utf-8") as file:
    EXAMPLE: Dict[str, Any] = json.load(file)
EVIL = ['"] --> x["', "<script>alert(1)</script>", "a|b`c`\n# d", '\\" ]; evil -> x [label="', "]]></svg><img src=x onerror=alert(1)>", "[click](javascript:1)", "%%{init: {}}%%", "${x} {{y}} \u202e", "http://evil.example/"]
ALL = sorted(FORMATS)


def paths(seed: int, names: int = 9, count: int = 6) -> Dict[str, Any]:
    """Paths made by chance; together they may have circles."""
    rng = random.Random(seed)
    nodes = [{"id": "n%d" % i, "name": rng.choice(EVIL + ["Node %d" % i]), "criticality": rng.choice(("low", "high", "critical", "<x>"))} for i in range(names)]
    made = []
    for _ in range(count):
        way = rng.sample([n["id"] for n in nodes], rng.randrange(2, 6))
        made.append({"probability": 0.1, "steps": [{"from": a, "to": b, "probability": 0.5, "techniques": [rng.choice(EVIL), "T1190"][: rng.randrange(3)], "controls_missing": [rng.choice(EVIL)]} for a, b in zip(way, way[1:])]})
    return {"name": rng.choice(EVIL), "nodes": nodes, "paths": made}


class Tags(html.parser.HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: List[str] = []
        self.attributes: List[str] = []

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, "str | None"]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


class Renderer(ToolCase):
    tool = AttackPathRenderer()

    def render(self, described: Any, **payload: Any) -> Dict[str, Any]:
        """The result for paths."""
        result = self.tool.execute(dict({"formats": ALL}, attack_paths=described, **payload), None)
        self.assertTrue(result.ok, result.message)
        assert result.result is not None
        json.dumps(result.result, allow_nan=False)
        self.assertLess(len(self.tool.summarize_for_llm(result)), 1000)
        return dict(result.result)

    def test_the_example(self) -> None:
        result = self.render(EXAMPLE)
        self.assertEqual((result["paths_drawn"], result["nodes"], result["steps"]), (3, 6, 6))
        self.assertEqual(result["layers"], [["internet"], ["phish", "web"], ["ad", "app"], ["db"]])
        self.assertEqual(result["ways"][0], {"rank": 1, "probability": 0.168, "nodes": ["Internet", "Workstation", "Application", "Customer database"]})
        self.assertIn("    -> Customer database  (80.0%, T1213)", result["contents"]["text"])
        self.assertIn("| 1 | 16.8% | Internet → Workstation → Application → Customer database |", result["contents"]["markdown"])

    def test_a_picture_has_all_nodes_and_steps_and_none_overlap(self) -> None:
        for seed in range(25):
            described = paths(seed)
            result = self.render(described)
            root = ET.fromstring(result["contents"]["svg"])
            space = "{http://www.w3.org/2000/svg}"
            boxes = [tuple(int(r.get(k, "0")) for k in ("x", "y", "width", "height")) for r in root.iter(space + "rect") if r.get("rx")]
            self.assertEqual(len(boxes), result["nodes"])
            self.assertEqual(sum(1 for p in root.iter(space + "path") if p.get("marker-end")), result["steps"])
            width, height = int(root.get("width", "0")), int(root.get("height", "0"))
            for i, (x, y, w, h) in enumerate(boxes):
                self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height)
                for x2, y2, _, _ in boxes[:i]:
                    self.assertFalse(abs(x - x2) < w and abs(y - y2) < h)
            self.assertEqual({e.tag for e in root.iter()} - {space + t for t in ("svg", "title", "defs", "marker", "path", "rect", "text")}, set())
            self.assertEqual({a for e in root.iter() for a in e.attrib if a.startswith("on") or "href" in a}, set())

    def test_steps_go_to_the_right_where_there_is_no_circle(self) -> None:
        for seed in range(25):
            described = paths(seed)
            order = {n["id"]: i for i, n in enumerate(described["nodes"])}
            for path in described["paths"]:  # only ways that go up, which make no circle
                ids = sorted({path["steps"][0]["from"]} | {s["to"] for s in path["steps"]}, key=lambda id: order[id])
                path["steps"] = [{"from": a, "to": b} for a, b in zip(ids, ids[1:])]
            drawing = Drawing(described, 10)
            layer = {id: i for i, ids in enumerate(drawing.layers) for id in ids}
            for step in drawing.steps:
                self.assertLess(layer[step.source], layer[step.target])

    def test_no_name_becomes_markup(self) -> None:
        for seed in range(40):
            described = paths(seed)
            contents = self.render(described)["contents"]
            page = Tags()
            page.feed(contents["html"])
            self.assertEqual(set(page.tags) - set("html head meta title style body h1 svg defs marker path rect text table tr th td".split()), set())
            self.assertEqual([a for a in page.attributes if a.startswith("on") or a in ("href", "src")], [])
            for line in contents["mermaid"].splitlines()[1:]:
                self.assertRegex(line, r'^  (n\d+(\(\["|\[\["|\[")[^"<>`]*("\]\)|"\]\]|"\])|n\d+ -- "[^"<>`]*" --> n\d+|linkStyle [\d,]+ .*|classDef \w+ .*|class [n\d,]+ \w+)$')
            for line in contents["dot"].splitlines()[3:-1]:
                self.assertRegex(line, r'^  (n\d+|n\d+ -> n\d+) \[label="([^"\\]|\\.)*"(, \w+="?[#\w.]+"?)*\];$')
            body = contents["markdown"].split("```")
            self.assertEqual(len(body), 3)  # the one block of Mermaid
            self.assertNotRegex(body[0] + body[2], r"<(script|img|/svg)|(?<!\\)\[click\]|https?://")

    def test_circles_parallel_steps_and_a_step_to_itself(self) -> None:
        step = {"from": "a", "to": "b"}
        described = {"paths": [{"steps": [step, {"from": "b", "to": "a"}]}, {"steps": [dict(step, edge="one"), {"from": "b", "to": "b"}]}, {"steps": [dict(step, edge="two")]}]}
        result = self.render(described)
        self.assertEqual((result["nodes"], result["steps"]), (2, 5))
        ET.fromstring(result["contents"]["svg"])

    def test_each_format_becomes_an_artifact(self) -> None:
        kept: List[Tuple[str, str, Dict[str, Any]]] = []
        context = self.context()

        def register(artifact_type: str, file_path: str, source_tool: str, metadata: Dict[str, Any]) -> ArtifactRef:
            with open(file_path, encoding="utf-8") as file:
                kept.append((artifact_type, file.read(), metadata))
            return ArtifactRef("art_%08x" % len(kept), artifact_type, file_path, None, source_tool, metadata)

        context.register_artifact = register
        self.artifact(json.dumps({"nodes": []}), "json_events", "other.json")
        self.artifacts.append(ArtifactRef("art_000000aa", "json_events", self.file(json.dumps(EXAMPLE), "p.json"), None, "attack_path_generator", {}))
        result = self.tool.execute({"formats": ALL, "max_paths": "2"}, context)
        assert result.result is not None, result.message
        self.assertEqual([(kind, meta["format"]) for kind, _, meta in kept], [("html_report" if f == "html" else "text", f) for f in ALL])
        self.assertEqual({meta["format"]: content for _, content, meta in kept}, result.result["contents"])
        self.assertEqual((result.result["paths_drawn"], result.result["notes"]), (2, ["1 paths are not drawn; max_paths says how many are."]))

    def test_a_long_drawing_stands_in_its_artifact_only(self) -> None:
        described = {"paths": [{"steps": [{"from": "a%d" % i, "to": "b%d" % i, "techniques": ["T" * 60] * 3, "controls_missing": ["c" * 60] * 10}]} for i in range(200)]}
        result = self.render(described, max_paths=200)
        self.assertNotIn("html", result["contents"])
        self.assertTrue(any(note.startswith("html has ") for note in result["notes"]))

    def test_wrong_paths_are_refused_by_their_place(self) -> None:
        step = {"from": "a", "to": "b"}
        for described, said in (
            ({}, "paths: not a list"), ({"paths": [{"steps": []}]}, "paths[0].steps"), ({"paths": [{"steps": [step, {"from": "c", "to": "d"}]}]}, "paths[0].steps[1] begins at c"),
            ({"paths": [{"steps": [{"from": "a"}]}]}, "paths[0].steps[0]"), ({"paths": [{"steps": [dict(step, probability=2)]}]}, "probability"), ({"paths": [7]}, "paths[0].steps"),
            ({"paths": [{"steps": [{"from": "s", "to": "n%d" % i} for i in range(1)]}] + [{"steps": [{"from": "x%d" % (j * 60 + i), "to": "x%d" % (j * 60 + i + 1)} for i in range(60)]} for j in range(8)]}, "more than 400 nodes"),
        ):  # fmt: skip
            validation = self.tool.validate_inputs({"attack_paths": described})
            self.assertTrue(any(said in error for error in validation.errors or []), (said, validation.errors))
        self.refused("INPUT_VALIDATION_FAILED", {"attack_paths": {"paths": []}})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("{")})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.json"})
        self.assertFalse(self.tool.validate_inputs({"formats": ["pdf"]}).ok)

    def test_a_whole_result_of_the_generator_is_taken_too(self) -> None:
        self.assertEqual(self.render({"ok": True, "result": EXAMPLE})["paths_drawn"], 3)
        self.assertTrue(re.search("1 of 1", self.tool.summarize_for_llm(ToolResult(ok=True, result=self.render({"paths": [{"steps": [{"from": "a", "to": "b"}]}]})))))


if __name__ == "__main__":
    unittest.main()
