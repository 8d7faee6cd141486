"""CVSS 3.1 base scores."""
from __future__ import annotations
import math
from framework.plugins.protocol import ToolResult, ValidationResult

W = {"AV": {"N": .85, "A": .62, "L": .55, "P": .2}, "AC": {"L": .77, "H": .44}, "UI": {"N": .85, "R": .62},
     "C": {"H": .56, "L": .22, "N": 0}, "I": {"H": .56, "L": .22, "N": 0}, "A": {"H": .56, "L": .22, "N": 0}}
PR = {"U": {"N": .85, "L": .62, "H": .27}, "C": {"N": .85, "L": .68, "H": .5}}
BANDS = [(9.0, "Critical"), (7.0, "High"), (4.0, "Medium"), (0.1, "Low"), (0.0, "None")]


def parse(vector: str) -> dict[str, str]:
    head, *parts = vector.strip().split("/")
    if head not in ("CVSS:3.1", "CVSS:3.0"):
        raise ValueError(f"{vector[:40]!r}: not a CVSS 3 vector")
    m = dict(p.split(":", 1) for p in parts if ":" in p)
    for key in ("AV", "AC", "PR", "UI", "S", "C", "I", "A"):
        if key not in m:
            raise ValueError(f"{vector[:40]!r}: {key} is missing")
    if m["S"] not in PR or m["PR"] not in PR[m["S"]] or any(m[k] not in W[k] for k in W):
        raise ValueError(f"{vector[:40]!r}: unknown metric value")
    return m


def roundup(x: float) -> float:
    i = round(x * 100000)
    return i / 100000.0 if i % 10000 == 0 else (math.floor(i / 10000) + 1) / 10.0


def base(m: dict[str, str]) -> float:
    iss = 1 - (1 - W["C"][m["C"]]) * (1 - W["I"][m["I"]]) * (1 - W["A"][m["A"]])
    impact = 6.42 * iss if m["S"] == "U" else 7.52 * (iss - .029) - 3.25 * (iss - .02) ** 15
    if impact <= 0:
        return 0.0
    expl = 8.22 * W["AV"][m["AV"]] * W["AC"][m["AC"]] * PR[m["S"]][m["PR"]] * W["UI"][m["UI"]]
    return roundup(min((impact + expl) * (1 if m["S"] == "U" else 1.08), 10))


class Cvss31Calculator:
    def metadata(self):
        return {"tool_name": "cvss31_calculator", "version": "1.0.0"}

    def _vectors(self, payload):
        v = payload.get("vectors", payload.get("vector"))
        return v.split() if isinstance(v, str) else v

    def validate_inputs(self, payload):
        vs = self._vectors(payload)
        if not isinstance(vs, list) or not vs:
            return ValidationResult(ok=False, errors=["vector or vectors is required"])
        errors = []
        for v in vs:
            try:
                parse(v)
            except (ValueError, AttributeError) as exc:
                errors.append(str(exc))
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        rows = []
        for v in self._vectors(payload):
            s = base(parse(v))
            rows.append({"vector": v, "score": s, "severity": next(n for lo, n in BANDS if s >= lo)})
        return ToolResult(ok=True, result={"scores": rows, "highest": max(r["score"] for r in rows)})

    def summarize_for_llm(self, result):
        rows = result.result["scores"]
        return f"{len(rows)} CVSS vectors, highest {result.result['highest']}: " + ", ".join(f"{r['score']} {r['severity']}" for r in rows[:20])
