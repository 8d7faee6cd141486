"""Cheapest path of an AND/OR attack tree, with a Mermaid drawing."""
from __future__ import annotations
from dataclasses import dataclass
from framework.plugins.protocol import ToolResult, ValidationResult


@dataclass(frozen=True)
class Cost:
    value: float
    leaves: tuple[str, ...]


class AttackTreeCost:
    def metadata(self):
        return {"tool_name": "attack_tree_cost", "version": "1.0.0", "gates": ["AND", "OR"]}

    def _walk(self, node, path, errors, depth=0):
        if depth > 20:
            errors.append(f"{path}: deeper than 20")
            return
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            errors.append(f"{path}: name is required")
            return
        kids = node.get("children")
        if kids:
            if node.get("gate", "OR") not in ("AND", "OR"):
                errors.append(f"{path}: gate must be AND or OR")
            for i, k in enumerate(kids):
                self._walk(k, f"{path}.children[{i}]", errors, depth + 1)
        elif not isinstance(node.get("cost"), (int, float)) or isinstance(node.get("cost"), bool) or node["cost"] < 0:
            errors.append(f"{path}: leaf needs a cost")

    def validate_inputs(self, payload):
        errors = []
        self._walk(payload.get("tree"), "tree", errors)
        return ValidationResult(ok=not errors, errors=errors[:10] or None)

    def _cost(self, n) -> Cost:
        if not n.get("children"):
            return Cost(n["cost"], (n["name"],))
        parts = [self._cost(c) for c in n["children"]]
        if n.get("gate", "OR") == "AND":
            return Cost(sum(p.value for p in parts), tuple(l for p in parts for l in p.leaves))
        return min(parts, key=lambda p: p.value)

    def _mermaid(self, n, lines, counter, parent=None):
        me = f"n{next(counter)}"
        label = n["name"].replace('"', "'") + (f" [{n.get('gate', 'OR')}]" if n.get("children") else f" ({n['cost']})")
        lines.append(f'  {me}["{label}"]')
        if parent:
            lines.append(f"  {parent} --> {me}")
        for c in n.get("children") or []:
            self._mermaid(c, lines, counter, me)

    def execute(self, payload, context):
        from itertools import count
        best = self._cost(payload["tree"])
        lines = ["graph TD"]
        self._mermaid(payload["tree"], lines, count())
        budget = payload.get("attacker_budget")
        return ToolResult(ok=True, result={"goal": payload["tree"]["name"], "cheapest": best.value, "steps": list(best.leaves),
                                           "feasible": None if budget is None else best.value <= float(budget), "visualization": "\n".join(lines)})

    def summarize_for_llm(self, result):
        r = result.result
        return f"Cheapest way to '{r['goal']}' costs {r['cheapest']}: {' + '.join(r['steps'])}."
