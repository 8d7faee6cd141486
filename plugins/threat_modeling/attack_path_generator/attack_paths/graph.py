"""A graph of who can get from where to where, checked: each id once, each edge between two nodes."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .tooling import Refused

MOST_NODES, MOST_EDGES = 5_000, 50_000


class Node(NamedTuple):
    """A place where an attacker can stand."""

    id: str
    name: str
    type: str
    criticality: str
    entry: bool
    target: bool


class Edge(NamedTuple):
    """A step from one place to another."""

    id: str
    source: str
    target: str
    probability: float  # that an attempt succeeds, over 0, at most 1
    techniques: Tuple[str, ...]
    controls_missing: Tuple[str, ...]


class Graph:
    """The whole graph; out has the edges that leave each node, in the order of their ids."""

    def __init__(self, described: Any) -> None:
        errors: List[str] = []
        if isinstance(described, dict) and isinstance(described.get("graph"), dict):
            described = described["graph"]  # a risk model
        if not isinstance(described, dict) or not isinstance(described.get("nodes"), list) or not isinstance(described.get("edges"), list):
            raise Refused("INPUT_VALIDATION_FAILED", "the graph must be an object with lists of nodes and edges", errors=["graph: must have lists of nodes and edges"])
        if len(described["nodes"]) > MOST_NODES or len(described["edges"]) > MOST_EDGES:
            message = "the graph has more than %d nodes or %d edges" % (MOST_NODES, MOST_EDGES)
            raise Refused("INPUT_VALIDATION_FAILED", message, errors=[message])
        self.nodes: Dict[str, Node] = {}
        self.edges: Dict[str, Edge] = {}
        for i, entry in enumerate(described["nodes"]):
            self._node(entry, "graph.nodes[%d]" % i, errors)
        for i, entry in enumerate(described["edges"]):
            self._edge(entry, "graph.edges[%d]" % i, errors)
        if errors:
            raise Refused("INPUT_VALIDATION_FAILED", "the graph is wrong: " + "; ".join(errors[:5]), errors=errors[:50])
        self.out: Dict[str, List[Edge]] = {id: [] for id in self.nodes}
        for edge in sorted(self.edges.values()):
            self.out[edge.source].append(edge)

    def _node(self, entry: Any, at: str, errors: List[str]) -> None:
        id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(id, str) or not 0 < len(id) <= 200:
            errors.append("%s.id must be text of at most 200 characters" % at)
            return
        if id in self.nodes:
            errors.append("%s.id: %s is there twice" % (at, id[:60]))
        self.nodes[id] = Node(id, str(entry.get("name") or id)[:200], str(entry.get("type") or "")[:60], str(entry.get("criticality") or "medium")[:20],
                              entry.get("entry") is True, entry.get("target") is True)  # fmt: skip

    def _edge(self, entry: Any, at: str, errors: List[str]) -> None:
        if not isinstance(entry, dict):
            errors.append("%s must be an object" % at)
            return
        ends = [entry.get("from"), entry.get("to")]
        for name, end in zip(("from", "to"), ends):
            if not isinstance(end, str) or end not in self.nodes:
                errors.append("%s.%s: there is no node %s" % (at, name, str(end)[:60]))
                return
        p = entry.get("probability", 0.5)
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 < p <= 1:
            errors.append("%s.probability must be over 0 and at most 1" % at)
            return
        id = entry.get("id", "%s>%s" % tuple(ends))
        if not isinstance(id, str) or not 0 < len(id) <= 400 or id in self.edges:
            errors.append("%s.id: %s is there twice, or is no text" % (at, str(id)[:60]))
            return
        self.edges[id] = Edge(id, str(ends[0]), str(ends[1]), float(p), _texts(entry, "techniques", at, errors), _texts(entry, "controls_missing", at, errors))

    def without(self, edges: Sequence[str], nodes: Sequence[str], techniques: Sequence[str]) -> "Graph":
        """The graph when these are gone: an edge with several techniques goes when all of them do."""
        rest = object.__new__(Graph)
        gone, lost, stopped = set(nodes), set(edges), set(techniques)
        rest.nodes = {id: node for id, node in self.nodes.items() if id not in gone}

        def stays(e: Edge) -> bool:
            return e.id not in lost and e.source not in gone and e.target not in gone and not (e.techniques and all(_below(t, stopped) for t in e.techniques))

        rest.edges = {id: edge for id, edge in self.edges.items() if stays(edge)}
        rest.out = {id: [edge for edge in self.out[id] if edge.id in rest.edges] for id in rest.nodes}
        return rest


def _below(technique: str, stopped: "set[str]") -> bool:
    return technique in stopped or technique.split(".")[0] in stopped


def _texts(entry: Dict[str, Any], name: str, at: str, errors: List[str]) -> Tuple[str, ...]:
    values: Optional[Any] = entry.get(name, [entry["technique"]] if name == "techniques" and "technique" in entry else [])
    if not isinstance(values, list) or len(values) > 50 or not all(isinstance(v, str) and len(v) <= 60 for v in values):
        errors.append("%s.%s must be a list of at most 50 short texts" % (at, name))
        return ()
    return tuple(values)
