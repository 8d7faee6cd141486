"""attack_path_generator: how would an attacker get there, and what would stop it?"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .attack_paths import paths, tooling
    from .attack_paths.attack import Techniques
    from .attack_paths.graph import Graph
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from attack_paths import paths, tooling
    from attack_paths.attack import Techniques
    from attack_paths.graph import Graph

FITTING = ("risk_model", "json_events", "text")
NAME = "attack_path_generator"
FORMAT = "attack_paths/1"
_MOST_FILE = 64 << 20


class AttackPathGenerator:
    """Finds the paths of one graph."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema, and a graph in it against its own rules."""
        written = tooling.as_written(payload, self._schema)
        errors = tooling.check(written, self._schema)
        if not errors and "graph" in written:
            try:
                Graph(written["graph"])
            except tooling.Refused as err:
                errors = list(err.details["errors"])
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Find the likeliest paths, what cuts them, and what would be left."""
        payload = tooling.as_written(payload, self._schema)
        try:
            described, chosen = _described(payload, context)
            return _generated(payload, context, Graph(described), chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """The likeliest paths, and what would stop them."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        c = r["counts"]
        parts = ["%s: %d nodes, %d edges; %d of %d targets can be reached from %d entries; %d paths shown" % (
            tooling.shorten(r["artifact"]["name"], 80), c["nodes"], c["edges"], c["targets_reached"], c["targets"], c["entries"], len(r["paths"]))]  # fmt: skip
        for path in r["paths"][:3]:
            way = " > ".join([path["steps"][0]["from"]] + [step["to"] for step in path["steps"]])
            parts.append("path %d (%.1f%%): %s via %s" % (path["rank"], 100 * path["probability"], tooling.shorten(way, 120), tooling.shorten(", ".join(path["techniques"]) or "no technique", 60)))
        if r["choke_points"]:
            parts.append("choke points: " + ", ".join("%s in %d%% of the paths" % (p["node"], round(100 * p["share"])) for p in r["choke_points"][:3]))
        if r["smallest_cut"]["edges"]:
            parts.append("the fewest edges that cut all paths: " + tooling.shorten(", ".join(r["smallest_cut"]["edges"][:5]), 120))
        if r["mitigated"]:
            parts.append("after the mitigations %d targets can be reached, the likeliest path at %.1f%%" % (r["mitigated"]["targets_reached"], 100 * r["mitigated"]["best_probability"]))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _described(payload: Dict[str, Any], context: Any) -> Tuple[Any, tooling.Chosen]:
    if "graph" in payload:
        return payload["graph"], tooling.Chosen("", "the request", None, None, None)
    chosen = tooling.choose(payload, context, FITTING)
    try:
        with open(chosen.path, "rb") as file:
            data = file.read(_MOST_FILE + 1)
        if len(data) > _MOST_FILE:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s has more than %d bytes; a graph is smaller" % (chosen.name, _MOST_FILE), file_path=chosen.path)
        return json.loads(data.decode("utf-8-sig")), chosen
    except OSError as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (chosen.name, err.strerror or err), file_path=chosen.path) from None
    except (ValueError, RecursionError) as err:
        raise tooling.Refused("ARTIFACT_UNREADABLE", "%s is no JSON: %s" % (chosen.name, tooling.shorten(str(err), 200)), file_path=chosen.path) from None


def _ends(graph: Graph, payload: Dict[str, Any], name: str, marked: List[str]) -> List[str]:
    """Those that the request names, else those that the graph marks."""
    named = payload.get(name)
    for id in named or []:
        if id not in graph.nodes:
            raise tooling.Refused("INPUT_VALIDATION_FAILED", "%s: there is no node %s" % (name, id), errors=["%s: there is no node %s" % (name, id)])
    ends = list(dict.fromkeys(named or marked))
    if not ends:
        message = "the graph marks no %s; name them in %s" % (name, name)
        raise tooling.Refused("INPUT_VALIDATION_FAILED", message, errors=[message])
    return ends


def _generated(payload: Dict[str, Any], context: Any, graph: Graph, chosen: tooling.Chosen) -> ToolResult:
    entries = _ends(graph, payload, "entries", [n.id for n in graph.nodes.values() if n.entry])
    targets = _ends(graph, payload, "targets", [n.id for n in graph.nodes.values() if n.target])
    most, longest = payload.get("max_paths", payload.get("limit", 10)), payload.get("max_steps", 12)
    found = paths.likeliest(graph, entries, targets, most, longest, lambda n: tooling.tell(context, "finding paths", n, most, "paths"))
    found = [path for path in found if paths.probability(path) >= payload.get("min_probability", 0)]
    reached = paths.reach(graph, entries)
    table = Techniques(context)
    shown = [_path(rank, path, table) for rank, path in enumerate(found, 1)]
    through: Dict[str, List[float]] = {}
    for path in found:
        for edge in path[:-1]:
            through.setdefault(edge.target, []).append(paths.probability(path))
    tactics: Dict[str, int] = {}
    for path in shown:
        for tactic in dict.fromkeys(t for step in path["steps"] for t in step["tactics"]):
            tactics[tactic] = tactics.get(tactic, 0) + 1
    notes = [] if table.known else ["There is no reference data of ATT&CK techniques here; names and tactics are left out."]
    if len(found) == most:
        notes.append("There may be more paths than max_paths (%d)." % most)
    mitigations = {name: payload.get("mitigate_" + name) or [] for name in ("edges", "nodes", "techniques")}
    result = {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "counts": {
            "nodes": len(graph.nodes), "edges": len(graph.edges), "entries": len(entries), "targets": len(targets),
            "targets_reached": sum(t in reached for t in targets), "reached": len(reached),
        },
        "entries": entries[:500], "targets": targets[:500],
        "paths": shown,
        "choke_points": [
            {"node": node, "name": graph.nodes[node].name, "paths": len(ps), "share": round(len(ps) / len(found), 4), "probability": round(sum(ps), 6)}
            for node, ps in sorted(through.items(), key=lambda item: (-len(item[1]), -sum(item[1]), item[0]))[:20]
        ],
        "smallest_cut": {"edges": paths.cut(graph, entries, targets, False) or [], "nodes": paths.cut(graph, entries, targets, True)},
        "reach": [
            {"node": node, "name": graph.nodes[node].name, "criticality": graph.nodes[node].criticality, "probability": round(p, 6), "steps": steps}
            for node, (p, steps) in sorted(reached.items(), key=lambda item: (item[1][1], -item[1][0], item[0])) if steps
        ][:100],
        "tactics": [{"tactic": tactic, "paths": n} for tactic, n in sorted(tactics.items(), key=lambda item: (-item[1], item[0]))],
        "mitigated": _mitigated(graph, entries, targets, mitigations, longest) if any(mitigations.values()) else None,
        "notes": notes,
    }  # fmt: skip
    outputs = None
    if tooling.can_register(context):
        path = tooling.new_file(context, NAME, chosen, "json")
        used = {edge.source for p in found for edge in p} | {edge.target for p in found for edge in p}
        nodes = [dict(graph.nodes[id]._asdict(), entry=id in entries, target=id in targets) for id in sorted(used)]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "name": chosen.name, "nodes": nodes, "paths": shown, "choke_points": result["choke_points"], "smallest_cut": result["smallest_cut"]}, file, ensure_ascii=False)
            file.write("\n")
        outputs = [tooling.register(context, path, "json_events", NAME, {"source_artifact": chosen.artifact_id, "paths": len(shown)})]
    return ToolResult(ok=True, result=result, output_artifacts=outputs)


def _path(rank: int, path: Sequence[Any], table: Techniques) -> Dict[str, Any]:
    steps = []
    for edge in path:
        known = [table.resolve(id) or {"name": "", "tactics": []} for id in edge.techniques]
        steps.append({
            "edge": edge.id, "from": edge.source, "to": edge.target, "probability": edge.probability, "techniques": list(edge.techniques),
            "technique_names": [k["name"] for k in known if k["name"]], "tactics": list(dict.fromkeys(t for k in known for t in k["tactics"])),
            "controls_missing": list(edge.controls_missing),
        })  # fmt: skip
    techniques = list(dict.fromkeys(id for edge in path for id in edge.techniques))
    return {"rank": rank, "probability": round(paths.probability(path), 6), "length": len(steps), "techniques": techniques, "steps": steps}


def _mitigated(graph: Graph, entries: List[str], targets: List[str], gone: Dict[str, List[str]], longest: int) -> Dict[str, Any]:
    """What is left when these are gone."""
    unknown = [id for name, known in (("edges", graph.edges), ("nodes", graph.nodes)) for id in gone[name] if id not in known]
    if unknown:
        message = "mitigated: there is no edge or node %s" % ", ".join(unknown[:5])
        raise tooling.Refused("INPUT_VALIDATION_FAILED", message, errors=[message])
    rest = graph.without(gone["edges"], gone["nodes"], gone["techniques"])
    starts, ends = [e for e in entries if e in rest.nodes], [t for t in targets if t in rest.nodes]
    best: Optional[Any] = next(iter(paths.likeliest(rest, starts, ends, 1, longest)), None)
    reached = paths.reach(rest, starts)
    return {
        "edges_removed": len(graph.edges) - len(rest.edges), "targets_reached": sum(t in reached for t in ends),
        "best_probability": round(paths.probability(best), 6) if best else 0.0, "best_path": [best[0].source] + [e.target for e in best] if best else [],
    }  # fmt: skip
