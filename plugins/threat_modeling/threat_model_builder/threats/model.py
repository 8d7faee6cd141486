"""What comes of the rules: the model as a document, its graph for attack paths, and its diagram."""

from __future__ import annotations

from typing import Any, Dict, List

from .stride import CATEGORIES
from .system import CRITICALITIES, System

FORMAT = "risk_model/1"
_PROBABILITY = {1: 0.05, 2: 0.15, 3: 0.35, 4: 0.6, 5: 0.85}  # that an attempt succeeds, by likelihood
_OPENS = frozenset("flow-spoofed flow-credentials process-exploited process-injected process-pivot process-exceeds store-changed store-read".split())


def graph(system: System, found: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Who can get from where to where: an edge for each flow, as likely as the likeliest threat that opens it."""
    by_element: Dict[str, List[Dict[str, Any]]] = {}
    for threat in found:
        if threat["rule"] in _OPENS:
            by_element.setdefault(threat["element"], []).append(threat)
    edges = []
    for flow in system.flows.values():
        opened = by_element.get(flow.id, []) + by_element.get(flow.target, [])
        opened += [t for t in by_element.get(flow.source, []) if t["rule"] == "process-pivot"]
        if not opened:
            continue
        best = max(opened, key=lambda t: (t["likelihood"], t["impact"], t["id"]))
        techniques = list(dict.fromkeys(id for t in sorted(opened, key=lambda t: (-t["likelihood"], t["id"])) for id in t["techniques"]))
        edges.append({
            "id": flow.id, "from": flow.source, "to": flow.target, "probability": _PROBABILITY[best["likelihood"]], "techniques": techniques[:5],
            "threats": [t["id"] for t in opened][:10], "controls_missing": best["controls_missing"],
        })  # fmt: skip
    nodes = [
        {"id": c.id, "name": c.name, "type": c.type, "zone": c.zone or None, "criticality": c.criticality, "entry": system.trust(c.id) == 0,
         "target": c.type != "external" and CRITICALITIES[c.criticality] >= 4} for c in system.components.values()
    ]  # fmt: skip
    return {"nodes": nodes, "edges": edges}


def matrix(system: System, found: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """For a chart: the threats of each category, and how grave they are."""
    rows = []
    for name in CATEGORIES.values():
        of = [t for t in found if t["category"] == name]
        rows.append(dict({"category": name, "threats": len(of)}, **{lv: sum(1 for t in of if t["level"] == lv) for lv in ("critical", "high", "medium", "low")}))
    return rows


def assumptions(system: System) -> List[str]:
    """What the description leaves open and how it was taken."""
    out = []
    for flow in system.flows.values():
        unsaid = [name for name in ("authenticated", "encrypted") if getattr(flow, name) is None]
        if unsaid:
            out.append("flow %s: nothing is said of %s; taken as not" % (flow.id, " and ".join(unsaid)))
        if not flow.data:
            out.append("flow %s: nothing is said of its data; what it carries is weighed by the criticality of %s" % (flow.id, flow.target))
    for one in system.components.values():
        if not one.accounted and one.type != "external":
            out.append("component %s: no controls are named; taken as having none" % one.id)
        if not one.zone and one.type != "external":
            out.append("component %s: no zone is named; taken as trusted 5 of 10" % one.id)
    reached = {flow.source for flow in system.flows.values()} | {flow.target for flow in system.flows.values()}
    out += ["component %s: no flow begins or ends there" % id for id in system.components if id not in reached]
    return out


def diagram(system: System, found: List[Dict[str, Any]]) -> str:
    """The data flow diagram in Mermaid, each flow with its highest level of risk."""
    worst: Dict[str, Dict[str, Any]] = {}
    for threat in found:
        worst.setdefault(threat["element"], threat)
    number = {id: "n%d" % i for i, id in enumerate(system.components)}
    lines = ["flowchart LR"]
    shapes = {"external": ("[", "]"), "process": ("(", ")"), "store": ("[(", ")]")}

    def node(id: str, indent: str) -> str:
        one = system.components[id]
        left, right = shapes[one.type]
        return '%s%s%s"%s"%s' % (indent, number[id], left, label(one.name), right)

    for i, zone in enumerate(system.zones.values()):
        lines.append('  subgraph z%d["%s, trust %d"]' % (i, label(zone.name), zone.trust))
        lines += [node(c.id, "    ") for c in system.components.values() if c.zone == zone.id]
        lines.append("  end")
    lines += [node(c.id, "  ") for c in system.components.values() if not c.zone]
    for flow in system.flows.values():
        text = flow.protocol or flow.id
        if flow.id in worst:
            text += ", " + worst[flow.id]["level"]
        lines.append('  %s -- "%s" --> %s' % (number[flow.source], label(text), number[flow.target]))
    return "\n".join(lines) + "\n"


def label(text: str) -> str:
    """Text for a label in Mermaid, in which nothing is markup."""
    return "".join("#%d;" % ord(c) if c in "\"#&<>`|[](){}\\;" else c for c in text if c.isprintable())
