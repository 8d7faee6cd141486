"""What is drawn: the nodes and steps of some paths, checked and put into layers."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

from .tooling import Refused

MOST_PATHS, MOST_NODES, MOST_STEPS = 200, 400, 2_000


class Step(NamedTuple):
    """One step, with the ranks of the paths that take it."""

    edge: str
    source: str
    target: str
    probability: float
    techniques: Tuple[str, ...]
    controls: Tuple[str, ...]
    ranks: Tuple[int, ...]


class Node(NamedTuple):
    """One place."""

    id: str
    name: str
    criticality: str
    entry: bool
    target: bool


class Path(NamedTuple):
    """One path, as a list of its steps' keys."""

    rank: int
    probability: float
    steps: Tuple[Tuple[str, str, str], ...]


class Drawing:
    """Paths as they are drawn; layers has the nodes from left to right, each layer from top to bottom."""

    def __init__(self, described: Any, most: int) -> None:
        errors: List[str] = []
        if isinstance(described, dict) and isinstance(described.get("result"), dict):
            described = described["result"]
        listed = described.get("paths") if isinstance(described, dict) else None
        if not isinstance(listed, list):
            raise Refused("INPUT_VALIDATION_FAILED", "the paths must be an object with a list of paths, as attack_path_generator leaves it", errors=["paths: not a list"])
        self.title = str(described.get("name") or "without a name")[:200]
        self.total = len(listed)
        self.paths: List[Path] = []
        steps: Dict[Tuple[str, str, str], List[Any]] = {}
        for i, entry in enumerate(listed[: min(most, MOST_PATHS)]):
            self._path(entry, i, steps, errors)
        known = {n.get("id"): n for n in described.get("nodes", []) if isinstance(n, dict)} if isinstance(described.get("nodes", []), list) else {}
        ids = list(dict.fromkeys(id for key in steps for id in key[1:]))
        if len(ids) > MOST_NODES or len(steps) > MOST_STEPS:
            errors.append("paths: more than %d nodes or %d steps; draw fewer with max_paths" % (MOST_NODES, MOST_STEPS))
        if errors:
            raise Refused("INPUT_VALIDATION_FAILED", "the paths are wrong: " + "; ".join(errors[:5]), errors=errors[:50])
        starts, ends = {p.steps[0][1] for p in self.paths}, {p.steps[-1][2] for p in self.paths}
        self.nodes: Dict[str, Node] = {}
        for id in ids:
            entry = known.get(id, {})
            self.nodes[id] = Node(id, str(entry.get("name") or id)[:200], str(entry.get("criticality") or "medium")[:20], id in starts, id in ends)
        self.steps = [Step(key[0], key[1], key[2], value[0], value[1], value[2], tuple(value[3])) for key, value in steps.items()]
        self.layers = self._layers()

    def _path(self, entry: Any, i: int, steps: Dict[Tuple[str, str, str], List[Any]], errors: List[str]) -> None:
        at = "paths[%d]" % i
        listed = entry.get("steps") if isinstance(entry, dict) else None
        if not isinstance(listed, list) or not listed or len(listed) > 100:
            errors.append("%s.steps must be a list of 1 to 100 steps" % at)
            return
        rank, keys, before, product = i + 1, [], None, 1.0
        for j, step in enumerate(listed):
            ends = [step.get(name) for name in ("from", "to")] if isinstance(step, dict) else [None]
            p = step.get("probability", 1) if isinstance(step, dict) else 1
            if not all(isinstance(end, str) and 0 < len(end) <= 200 for end in ends) or isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
                errors.append("%s.steps[%d] must have from, to, and a probability from 0 to 1" % (at, j))
                return
            if before is not None and ends[0] != before:
                errors.append("%s.steps[%d] begins at %s, but the step before ends at %s" % (at, j, str(ends[0])[:60], before[:60]))
                return
            before, product = str(ends[1]), product * p
            key = (str(step.get("edge") or "%s>%s" % (ends[0], ends[1]))[:400], str(ends[0]), str(ends[1]))
            value = steps.setdefault(key, [float(p), _texts(step.get("techniques")), _texts(step.get("controls_missing")), []])
            if rank not in value[3]:
                value[3].append(rank)
            keys.append(key)
        said = entry.get("probability")
        exact = said if isinstance(said, (int, float)) and not isinstance(said, bool) and 0 <= said <= 1 else product
        self.paths.append(Path(rank, float(exact), tuple(keys)))

    def _layers(self) -> List[List[str]]:
        """Each node as far to the right as the longest way to it along a path, ways back left out; then ordered to cross little."""
        depth = {id: 0 for id in self.nodes}
        place: Dict[str, int] = {}
        for path in self.paths:
            for key in path.steps:
                place.setdefault(key[1], len(place))
                place.setdefault(key[2], len(place))
        onward = self._acyclic()
        for _ in range(len(self.nodes)):
            moved = False
            for a, b in onward:
                if depth[b] < depth[a] + 1:
                    depth[b], moved = depth[a] + 1, True
            if not moved:
                break
        layers: List[List[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for id in sorted(depth, key=lambda id: place[id]):
            layers[depth[id]].append(id)
        for _ in range(4):  # the place of each node is the mean of its neighbours' before it
            for left, right in zip(layers, layers[1:]):
                row = {id: i for i, id in enumerate(left)}
                means = {id: [row[a] for a, b in onward if b == id and a in row] for id in right}
                right.sort(key=lambda id: (sum(means[id]) / len(means[id]) if means[id] else 0, place[id]))
        return [layer for layer in layers if layer]

    def _acyclic(self) -> List[Tuple[str, str]]:
        """The steps without those that would close a circle, taken in the order of the paths."""
        out: Dict[str, List[str]] = {id: [] for id in self.nodes}
        taken: List[Tuple[str, str]] = []
        for step in self.steps:
            line, seen = [step.target], {step.target}
            while line:
                for there in out[line.pop()]:
                    if there not in seen:
                        seen.add(there)
                        line.append(there)
            if step.source not in seen and (step.source, step.target) not in taken:
                out[step.source].append(step.target)
                taken.append((step.source, step.target))
        return taken


def _texts(value: Any) -> Tuple[str, ...]:
    return tuple(str(v)[:60] for v in value[:10]) if isinstance(value, list) else ()


def percent(p: float) -> str:
    """A probability as people read it."""
    return "%.1f%%" % (100 * p) if p >= 0.001 or p == 0 else "<0.1%"
