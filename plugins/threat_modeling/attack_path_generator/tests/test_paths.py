"""Paths and cuts beside those found by trying everything."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import time
import unittest
from typing import Any, Dict, List, Set, Tuple

from attack_paths import paths
from attack_paths.graph import Graph
from framework.plugins.protocol import ToolResult

from support import HERE, ToolCase
from tool import AttackPathGenerator

with open(os.path.join(HERE, "examples", "graph.json"), encoding="utf-8") as file:
    EXAMPLE: Dict[str, Any] = json.load(file)


def graph(seed: int, nodes: int = 7, edges: int = 14) -> Dict[str, Any]:
    """A graph made by chance, with parallel edges, loops and ways between entries and targets."""
    rng = random.Random(seed)
    names = ["n%d" % i for i in range(nodes)]
    return {
        "nodes": [{"id": n, "entry": i < 2, "target": i >= nodes - 2} for i, n in enumerate(names)],
        "edges": [{"id": "e%d" % i, "from": rng.choice(names), "to": rng.choice(names), "probability": rng.choice((0.1, 0.25, 0.5, 0.5, 0.9, 1))} for i in range(edges)],
    }  # fmt: skip


def all_paths(described: Dict[str, Any], longest: int = 12) -> List[Tuple[str, ...]]:
    """Every loopless path, found by walking everywhere."""
    entries = {n["id"] for n in described["nodes"] if n["entry"]}
    targets = {n["id"] for n in described["nodes"] if n["target"]} - entries
    out: List[Tuple[str, ...]] = []

    def walk(node: str, been: Set[str], ids: Tuple[str, ...]) -> None:
        if node in targets:
            out.append(ids)
            return
        for edge in described["edges"] if len(ids) < longest else []:
            if edge["from"] == node and edge["to"] not in been and edge["to"] not in entries:
                walk(edge["to"], been | {edge["to"]}, ids + (edge["id"],))

    for entry in entries:
        walk(entry, {entry}, ())
    return out


class Generator(ToolCase):
    tool = AttackPathGenerator()

    def generate(self, described: Any, **payload: Any) -> Dict[str, Any]:
        """The result for a graph."""
        result = self.tool.execute(dict(payload, graph=described), self.context())
        self.assertTrue(result.ok, result.message)
        assert result.result is not None
        self.assertLess(len(self.tool.summarize_for_llm(result)), 1000)
        return dict(result.result)

    def test_the_example_by_hand(self) -> None:
        result = self.generate(EXAMPLE)
        ways = [([p["steps"][0]["from"]] + [s["to"] for s in p["steps"]], p["probability"]) for p in result["paths"]]
        self.assertEqual(ways, [(["internet", "phish", "app", "db"], 0.168), (["internet", "web", "app", "db"], 0.16), (["internet", "phish", "ad"], 0.12)])
        self.assertEqual(result["smallest_cut"], {"edges": ["exploit", "mail"], "nodes": ["phish", "web"]})  # the nearest to the entry
        self.assertEqual([p["node"] for p in result["choke_points"]], ["app", "phish", "web"])

    def test_paths_beside_a_walk_everywhere(self) -> None:
        compared = 0
        for seed in range(120):
            described = graph(seed)
            p = {e["id"]: e["probability"] for e in described["edges"]}
            for longest in (12, 3):
                want = sorted(((math.prod(p[id] for id in ids), ids) for ids in all_paths(described, longest)), key=lambda item: -item[0])
                got = [(math.prod(p[s["edge"]] for s in path["steps"]), tuple(s["edge"] for s in path["steps"])) for path in self.generate(described, max_paths=200, max_steps=longest)["paths"]]
                self.assertEqual(sorted(ids for _, ids in got), sorted(ids for _, ids in want), (seed, longest))
                self.assertEqual([round(q, 9) for q, _ in got], [round(q, 9) for q, _ in want], (seed, longest))
                few = self.generate(described, max_paths=3, max_steps=longest)["paths"]
                self.assertEqual([tuple(s["edge"] for s in path["steps"]) for path in few], [ids for _, ids in got[:3]])
                compared += len(want)
        self.assertGreater(compared, 500)

    def test_cuts_beside_trying_all_sets(self) -> None:
        for seed in range(80):
            described = graph(seed, 6, 10)
            ways = all_paths(described)
            entries, targets = [n["id"] for n in described["nodes"] if n["entry"]], [n["id"] for n in described["nodes"] if n["target"]]
            cut = paths.cut(Graph(described), entries, targets, False)
            smallest = next(k for k in range(11) for few in itertools.combinations([e["id"] for e in described["edges"]], k) if all(set(w) & set(few) for w in ways))
            assert cut is not None
            self.assertEqual(len(cut), smallest, seed)
            self.assertTrue(all(set(way) & set(cut) for way in ways))
            between = [n["id"] for n in described["nodes"] if not n["entry"] and not n["target"]]
            to = {e["id"]: e["to"] for e in described["edges"]}
            passed = [{to[id] for id in way[:-1]} for way in ways]
            want = next((k for k in range(len(between) + 1) for few in itertools.combinations(between, k) if all(p & set(few) for p in passed)), None)
            nodes = paths.cut(Graph(described), entries, targets, True)
            self.assertEqual(None if nodes is None else len(nodes), want, seed)

    def test_what_mitigations_leave(self) -> None:
        left = self.generate(EXAMPLE, mitigate_techniques=["T1078", "T1558"])["mitigated"]
        self.assertEqual((left["edges_removed"], left["targets_reached"], left["best_probability"], left["best_path"]), (2, 1, 0.16, ["internet", "web", "app", "db"]))
        cut = self.generate(EXAMPLE)["smallest_cut"]
        for gone in ({"mitigate_edges": cut["edges"]}, {"mitigate_nodes": cut["nodes"]}):
            left = self.generate(EXAMPLE, **gone)["mitigated"]
            self.assertEqual((left["targets_reached"], left["best_probability"], left["best_path"]), (0, 0.0, []))
        self.assertEqual(self.generate(EXAMPLE, mitigate_techniques=["T1566.001"])["mitigated"]["edges_removed"], 0)  # the edge has another
        self.assertEqual(self.generate(EXAMPLE, mitigate_techniques=["T1566", "T1204"])["mitigated"]["edges_removed"], 1)

    def test_entries_and_targets_of_the_request(self) -> None:
        result = self.generate(EXAMPLE, entries=["phish"], targets=["app"])
        self.assertEqual([p["probability"] for p in result["paths"]], [0.35])
        self.assertEqual(self.generate(EXAMPLE, targets=["internet", "db"])["counts"]["targets"], 2)
        self.assertEqual(len(self.generate(EXAMPLE, min_probability=0.15)["paths"]), 2)
        self.assertEqual(self.generate(EXAMPLE, entries=["db"], targets=["internet"])["paths"], [])
        self.refused("INPUT_VALIDATION_FAILED", {"graph": EXAMPLE, "entries": ["mars"]})
        self.refused("INPUT_VALIDATION_FAILED", {"graph": EXAMPLE, "mitigate_edges": ["none"]})
        self.refused("INPUT_VALIDATION_FAILED", {"graph": {"nodes": [{"id": "a"}], "edges": []}})

    def test_names_and_tactics_come_from_reference_data(self) -> None:
        known = {"T1190": {"name": "Exploit Public-Facing Application", "tactics": ["Initial Access"]}}
        result = self.tool.execute({"graph": EXAMPLE}, self.context(reference={"mitre_techniques": known}))
        assert result.result is not None
        self.assertEqual(result.result["tactics"], [{"tactic": "Initial Access", "paths": 1}])

    def test_a_wrong_graph_is_refused_by_its_place(self) -> None:
        node = {"id": "a"}
        for described, said in (
            ({"nodes": [node, node], "edges": []}, "graph.nodes[1].id: a is there twice"), ({"nodes": [node], "edges": [{"from": "a", "to": "b"}]}, "graph.edges[0].to: there is no node b"),
            ({"nodes": [node], "edges": [{"from": "a", "to": "a", "probability": 0}]}, "graph.edges[0].probability"), ({"nodes": [7], "edges": []}, "graph.nodes[0].id"), ({"nodes": []}, "nodes and edges"),
            ({"nodes": [node], "edges": [{"from": "a", "to": "a", "probability": float("nan")}]}, "probability"), ({"nodes": [node], "edges": [{"from": [], "to": "a"}]}, "graph.edges[0].from"),
            ({"nodes": [node], "edges": [{"from": "a", "to": "a", "techniques": "T1"}]}, "techniques"),
        ):  # fmt: skip
            validation = self.tool.validate_inputs({"graph": described})
            self.assertTrue(any(said in error for error in validation.errors or []), (said, validation.errors))
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file("{")})
        self.refused("INPUT_VALIDATION_FAILED", {"file_path": self.file("[]")})

    def test_what_the_builder_leaves_is_taken(self) -> None:
        model = {"format": "risk_model/1", "system": {}, "threats": [], "graph": EXAMPLE}
        self.artifact(json.dumps(model), "risk_model", "model.json")
        result = self.tool.execute({}, self.context())
        assert result.result is not None and result.output_artifacts is not None
        (document,) = self.registered[0]["lines"]
        self.assertEqual((document["paths"], document["format"]), (result.result["paths"], "attack_paths/1"))
        self.assertEqual([n["id"] for n in document["nodes"]], ["ad", "app", "db", "internet", "phish", "web"])

    def test_a_large_graph_is_quick_and_tells_how_far_it_is(self) -> None:
        rng = random.Random(1)
        names = ["n%d" % i for i in range(5000)]
        described = {"nodes": [{"id": n, "entry": i < 3, "target": i > 4996} for i, n in enumerate(names)],
                     "edges": [{"id": "e%d" % i, "from": rng.choice(names), "to": rng.choice(names), "probability": round(rng.uniform(0.1, 1), 3)} for i in range(25000)]}  # fmt: skip
        told: List[int] = []
        context = self.context()
        context.progress = lambda message, done, total, unit: told.append(done)
        begin = time.monotonic()
        result = self.tool.execute({"graph": described, "max_paths": 5}, context)
        assert result.ok and result.result is not None
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual((len(result.result["paths"]), told), (5, [1, 2, 3, 4, 5]))
        ranks = [p["probability"] for p in result.result["paths"]]
        self.assertEqual(ranks, sorted(ranks, reverse=True))

    def test_no_path_at_all(self) -> None:
        result = self.generate({"nodes": [{"id": "a", "entry": True}, {"id": "b", "target": True}], "edges": []})
        self.assertEqual((result["paths"], result["smallest_cut"]), ([], {"edges": [], "nodes": []}))
        self.assertIn("0 of 1 targets", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))


if __name__ == "__main__":
    unittest.main()
