"""Attack trees as Mermaid diagrams, by rules or by a model."""

import logging
import re
from typing import Any, Dict, List, Optional

from framework.logging.structured import log_llm_interaction
from framework.plugins.protocol import LLMResponse, QueryHints, ToolResult, ValidationResult

from . import prompts

try:
    from framework.reference_data.mitre_attack import get_mitre_db
except ImportError:
    get_mitre_db = None

logger = logging.getLogger("eventmill.plugin.attack_tree_writer")

# What is drawn when no model answers: goal word -> paths.
CANNED = {
    "ransomware": [["Phishing mail", "Macro runs", "Domain admin", "Encrypt shares"], ["Exposed RDP", "Local admin", "Encrypt shares"]],
    "exfiltration": [["Stolen token", "Storage bucket", "Copy out"], ["Insider", "USB disk"]],
}
DEFAULT = [["Initial access", "Foothold", "Goal"]]
NODE = re.compile(r"[^A-Za-z0-9 ]+")


class Tree:
    """Nodes get short ids in the order in which they appear."""

    def __init__(self, goal: str):
        self.goal = goal
        self.ids: Dict[str, str] = {}
        self.edges: List[tuple] = []

    def node(self, label: str) -> str:
        label = NODE.sub(" ", label).strip() or "step"
        if label not in self.ids:
            self.ids[label] = f"n{len(self.ids)}"
        return self.ids[label]

    def add(self, path: List[str]) -> None:
        for one, two in zip(path, path[1:]):
            edge = (self.node(one), self.node(two))
            if edge not in self.edges:
                self.edges.append(edge)

    def mermaid(self) -> str:
        lines = ["```mermaid", "graph TD"]
        lines += [f'    {id}["{label}"]' for label, id in self.ids.items()]
        lines += [f"    {a} --> {b}" for a, b in self.edges]
        return "\n".join(lines + ["```"])


class AttackTreeWriter:
    TREES: Dict[str, "Tree"] = {}

    def metadata(self) -> Dict[str, Any]:
        return {"tool_name": "attack_tree_writer", "version": "0.2.0-beta", "trees": sorted(self.TREES)}

    def validate_inputs(self, payload):
        errors = []
        if payload.get("action", "draw") not in ("draw", "list", "extend"):
            errors.append("action: draw, list or extend")
        if payload.get("action", "draw") != "list" and not payload.get("goal"):
            errors.append("goal is required")
        if payload.get("action") == "extend" and payload.get("goal") not in self.TREES:
            errors.append(f"there is no tree for {payload.get('goal')!r} yet: draw it first")
        return ValidationResult(not errors, errors)

    def _techniques(self, wanted: List[str]) -> List[dict]:
        db = (get_mitre_db() if get_mitre_db else None) or {}
        return [{"id": id, "name": db[id]["name"] if id in db else "unknown", "known": id in db} for id in wanted]

    def _ask(self, context, goal: str, payload: dict, techniques: List[dict]) -> Optional[LLMResponse]:
        if not (context and context.llm_enabled and context.llm_query):
            logger.info("no model: rules only")
            return None
        prompt = prompts.TREE.format(
            goal=goal, assets=payload.get("assets", "unknown"), techniques=", ".join(t["id"] for t in techniques) or "none", depth=payload.get("depth", 5)
        )
        answer = context.llm_query.query_text(
            prompt=prompt,
            system_context=prompts.SYSTEM,
            max_tokens=2048,
            grounding_data=prompts.grounding(techniques) or None,
            hints=QueryHints(tier="heavy", needs_reasoning=True),
        )
        log_llm_interaction(prompt, answer.text or "", model_id=answer.model_used, session_id=context.session_id, error=answer.error)
        if not answer.ok:
            logger.warning("model: %s", answer.error)
        return answer

    def execute(self, payload, context):
        if payload.get("action") == "list":
            return ToolResult(ok=True, result={"trees": {goal: len(tree.edges) for goal, tree in sorted(self.TREES.items())}})
        goal = str(payload["goal"])
        wanted = payload.get("techniques") or []
        if isinstance(wanted, str):
            wanted = [one.strip() for one in wanted.split(",") if one.strip()]
        techniques = self._techniques(wanted)
        answer = self._ask(context, goal, payload, techniques)
        by = "rules"
        if answer is not None and answer.ok and ">" in (answer.text or ""):
            paths = [[step.strip() for step in line.split(">")] for line in answer.text.splitlines() if ">" in line]
            by = "model"
        else:
            word = next((word for word in CANNED if word in goal.lower()), None)
            paths = CANNED.get(word, DEFAULT)
        if payload.get("action") == "extend":
            tree = self.TREES[goal]
            paths = paths + [["Extended", goal]]
        else:
            tree = self.TREES[goal] = Tree(goal)
        for path in paths:
            tree.add(path[: int(payload.get("depth", 5))])
        return ToolResult(
            ok=True,
            result={
                "visualization": tree.mermaid(),
                "nodes": len(tree.ids),
                "edges": tree.edges,
                "written_by": by,
                "techniques": techniques,
                "model_said": None if answer is None else {"ok": answer.ok, "chars": len(answer.text or ""), "usage": bool(answer.token_usage)},
            },
            message=f"tree for {goal}",
            details={"fallback": by == "rules"},
        )

    def summarize_for_llm(self, result):
        r = result.result
        return f"Tree with {r['nodes']} nodes and {len(r['edges'])} edges, by {r['written_by']}."  # KeyError for action list
