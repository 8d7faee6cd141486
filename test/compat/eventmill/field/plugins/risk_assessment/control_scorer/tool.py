"""Which controls are missing for the techniques that were seen."""

import json
import os
from abc import ABC, abstractmethod
from enum import Enum
from functools import lru_cache
from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult
from framework.reference_data.mitre_attack import get_mitre_db

HERE = Path(__file__).parent
SEEN_TECHNIQUES = set()


class Level(str, Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@lru_cache(maxsize=None)
def bundled():
    with open(HERE / "data" / "controls.json", encoding="utf-8") as handle:
        return json.load(handle)


class Scorer(ABC):
    @abstractmethod
    def score(self, control, seen, present):
        ...


class Weighted(Scorer):
    def score(self, control, seen, present):
        hit = sorted(set(control["mitigates"]) & seen)
        return (0 if control["id"] in present else control["weight"] * len(hit)), hit


class Simple(Scorer):
    def score(self, control, seen, present):
        hit = sorted(set(control["mitigates"]) & seen)
        return (0 if control["id"] in present else len(hit)), hit


SCORERS = {"weighted": Weighted(), "simple": Simple()}


def level_of(total):
    if total >= 10:
        return Level.HIGH
    return Level.MEDIUM if total >= 4 else Level.LOW


def as_list(value):
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) for part in value]


class Tool:
    """The base names are terrible, but the manifest says Tool."""

    name = "control_scorer"

    def metadata(self):
        return {"tool_name": self.name, "version": "3.0.0", "scorers": list(SCORERS)}

    def validate_inputs(self, payload):
        assert isinstance(payload, dict)
        problems = []
        for technique in as_list(payload.get("techniques")):
            if not technique.startswith("T"):
                problems.append(f"{technique}: not a technique id")
        if payload.get("scorer", "weighted") not in SCORERS:
            problems.append(f"scorer must be one of {', '.join(SCORERS)}")
        if problems:
            return ValidationResult(ok=False, errors=problems)
        return ValidationResult(ok=True, errors=[])

    def execute(self, payload, context):
        SEEN_TECHNIQUES.update(as_list(payload.get("techniques")))
        if not SEEN_TECHNIQUES:
            return ToolResult(ok=False, error_code="NO_MITRE_MAPPINGS", message="no technique was named yet in this session", details={})
        controls = context.reference_data.get("controls") or bundled()
        source = "reference data" if controls is not bundled() else "bundled"
        enterprise = context.reference_data.get("mitre_attack_enterprise")
        present = set(as_list(payload.get("present")))
        scorer = SCORERS[payload.get("scorer", "weighted")]
        rows, total = [], 0
        for control in controls["controls"]:
            points, hit = scorer.score(control, SEEN_TECHNIQUES, present)
            total += points
            rows.append({"control": control["id"], "name": control["name"], "points": points, "techniques": hit})
        rows.sort(key=lambda row: (-row["points"], row["control"]))
        db = get_mitre_db() or {}
        model = {
            "level": level_of(total).value,
            "total": total,
            "rows": rows,
            "seen": sorted(SEEN_TECHNIQUES),
            "named": {t: db[t]["name"] for t in sorted(SEEN_TECHNIQUES) if t in db},
            "controls_from": source,
            "has_enterprise": enterprise is not None,
            "orange": context.config.get("condition_orange", False),
            "bucket": context.config.get("EVENTMILL_BUCKET_PREFIX"),
            "cloud": "K_SERVICE" in os.environ,
        }
        if payload.get("save"):
            out = Path(context.config.get("workspace_dir", "workspace")) / "artifacts" / "risk" / "model.json"
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(model, sort_keys=True))
            ref = context.register_artifact("risk_model", str(out), "control_scorer", {"level": model["level"]})
            model["saved_as"] = ref.artifact_type
            model["saved_meta"] = ref.metadata.get("level")
        if payload.get("break_context"):
            context.session_id = "sess_000000000000"
        if payload.get("fail_late"):
            raise LookupError("row 4 of the matrix is missing")
        return ToolResult(ok=True, result=model)

    def summarize_for_llm(self, result):
        worst = [row for row in result.result["rows"] if row["points"]]
        text = f"Risk {result.result['level']} ({result.result['total']} points)."
        for row in worst:
            text += f" {row['control']} {row['name']}: {row['points']}."
        return text
