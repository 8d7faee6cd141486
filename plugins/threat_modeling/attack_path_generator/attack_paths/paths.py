"""The likeliest paths through a graph, and the fewest steps that cut all of them.

A path's probability is the product of its steps'. Paths are found by Yen's
algorithm (1971) over Dijkstra's on the negative logarithms: loopless, the
likeliest first, ties by the ids of their edges. The cut is a minimum cut
(Edmonds and Karp, 1972), in edges or in nodes, each of which counts as one.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from .graph import Edge, Graph

Path = Tuple[Edge, ...]
_Found = Tuple[float, Tuple[str, ...], Path]


def probability(path: Sequence[Edge]) -> float:
    """That every step of a path succeeds."""
    return math.prod(edge.probability for edge in path)


def likeliest(graph: Graph, entries: Sequence[str], targets: Sequence[str], most: int, longest: int, told: Callable[[int], None] = lambda n: None) -> List[Path]:
    """At most so many loopless paths of at most so many steps from any entry to any target, the likeliest first.

    A path ends at the first target that it reaches, and begins at the last entry.
    """
    starts, ends = set(entries), set(targets) - set(entries)
    found: List[Path] = []
    queue: List[_Found] = []
    first = _best(graph, {entry: () for entry in starts}, ends, starts, set(), longest)
    if first is not None:
        heapq.heappush(queue, first)
    seen: Set[Tuple[str, ...]] = {first[1]} if first is not None else set()
    while queue and len(found) < most:
        _, _, path = heapq.heappop(queue)
        found.append(path)
        told(len(found))
        for i in range(len(path)):
            root = path[:i]
            banned = {other[i].id for other in found if len(other) > i and other[:i] == root}
            at = {root[-1].target: root} if root else {entry: () for entry in starts}
            visited = {edge.source for edge in root} | (starts if root else set())
            candidate = _best(graph, at, ends, visited, banned, longest)
            if candidate is not None and candidate[1] not in seen:
                seen.add(candidate[1])
                heapq.heappush(queue, candidate)
    return found


def _best(graph: Graph, at: Dict[str, Path], ends: Set[str], visited: Set[str], banned: Set[str], longest: int) -> Optional[_Found]:
    """The likeliest path that goes on from one of these beginnings. A place may be reached again by a dearer but shorter way, because length is limited."""
    queue: List[Tuple[float, Tuple[str, ...], int, str, Path]] = []
    for node, root in at.items():
        queue.append((_cost(root), tuple(e.id for e in root), len(root), node, root))
    heapq.heapify(queue)
    shortest: Dict[str, int] = {}
    while queue:
        cost, ids, steps, node, path = heapq.heappop(queue)
        if node in ends and path:
            return cost, ids, path
        if steps >= longest or shortest.get(node, longest + 1) <= steps:
            continue
        shortest[node] = steps
        onward = {edge.source for edge in path}
        for edge in graph.out.get(node, ()):
            if edge.id in banned or edge.target in visited or edge.target in onward or edge.target == node:
                continue
            heapq.heappush(queue, (cost - math.log(edge.probability), ids + (edge.id,), steps + 1, edge.target, path + (edge,)))
    return None


def _cost(path: Path) -> float:
    return -sum(math.log(edge.probability) for edge in path)


def reach(graph: Graph, entries: Sequence[str]) -> Dict[str, Tuple[float, int]]:
    """Each node that can be reached, with the best probability and the fewest steps."""
    best: Dict[str, float] = {}
    queue: List[Tuple[float, str]] = [(0.0, entry) for entry in sorted(set(entries))]
    while queue:
        cost, node = heapq.heappop(queue)
        if node in best:
            continue
        best[node] = cost
        for edge in graph.out.get(node, ()):
            if edge.target not in best:
                heapq.heappush(queue, (cost - math.log(edge.probability), edge.target))
    steps: Dict[str, int] = {entry: 0 for entry in entries}
    line = deque(sorted(set(entries)))
    while line:
        node = line.popleft()
        for edge in graph.out.get(node, ()):
            if edge.target not in steps:
                steps[edge.target] = steps[node] + 1
                line.append(edge.target)
    return {node: (math.exp(-cost), steps[node]) for node, cost in best.items()}


def cut(graph: Graph, entries: Sequence[str], targets: Sequence[str], of_nodes: bool) -> Optional[List[str]]:
    """The fewest edges, or nodes that are neither entry nor target, without which no target is reached; None where there is no such set.

    Of several smallest sets it is the one nearest to the entries.
    """
    starts, ends = set(entries), set(targets) - set(entries)
    flow: Dict[Tuple[str, str], Dict[Tuple[str, str], float]] = {}

    def add(a: Tuple[str, str], b: Tuple[str, str], capacity: float) -> None:
        flow.setdefault(a, {})[b] = flow.setdefault(a, {}).get(b, 0) + capacity
        flow.setdefault(b, {}).setdefault(a, 0)

    source, sink = ("", "source"), ("", "sink")
    for node in graph.nodes:
        free = of_nodes and node not in starts and node not in ends
        add((node, "in"), (node, "out"), 1 if free else math.inf)
    for edge in graph.edges.values():
        middle = (edge.id, "edge")
        add((edge.source, "out"), middle, math.inf if of_nodes else 1)
        add(middle, (edge.target, "in"), math.inf)
    for node in starts:
        add(source, (node, "in"), math.inf)
    for node in ends:
        add((node, "out"), sink, math.inf)
    while True:
        before: Dict[Tuple[str, str], Tuple[str, str]] = {source: source}
        line = deque([source])
        while line and sink not in before:
            here = line.popleft()
            for there, room in flow.get(here, {}).items():
                if room > 0 and there not in before:
                    before[there] = here
                    line.append(there)
        if sink not in before:
            break
        step, narrow = sink, math.inf
        while step != source:
            narrow, step = min(narrow, flow[before[step]][step]), before[step]
        if narrow == math.inf:
            return None
        step = sink
        while step != source:
            flow[before[step]][step] -= narrow
            flow[step][before[step]] += narrow
            step = before[step]
    if of_nodes:
        return sorted(node for node in graph.nodes if (node, "in") in before and (node, "out") not in before)
    return sorted(edge.id for edge in graph.edges.values() if (edge.source, "out") in before and (edge.id, "edge") not in before)
