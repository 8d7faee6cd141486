"""FAIR style Monte Carlo; deterministic through the seed."""
import json
import os
import random
import statistics
import time
from framework.plugins.protocol import ToolResult, ValidationResult


def tri(rng, spec):
    return rng.triangular(float(spec["min"]), float(spec["max"]), float(spec["likely"]))


def check(name, spec, errors):
    if not isinstance(spec, dict):
        errors.append(f"{name}: object with min, likely, max")
        return
    try:
        lo, mid, hi = (float(spec[k]) for k in ("min", "likely", "max"))
    except (KeyError, TypeError, ValueError):
        errors.append(f"{name}: min, likely and max must be numbers")
        return
    if not 0 <= lo <= mid <= hi:
        errors.append(f"{name}: 0 <= min <= likely <= max is needed")


class FairLossSimulator:
    def metadata(self):
        return {"tool_name": "fair_loss_simulator", "version": "0.2.0", "method": "triangular"}

    def validate_inputs(self, payload):
        errors = []
        check("frequency", payload.get("frequency"), errors)
        check("magnitude", payload.get("magnitude"), errors)
        n = payload.get("iterations", 2000)
        if not isinstance(n, int) or not 100 <= n <= 100000:
            errors.append("iterations: 100..100000")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        rng = random.Random(payload.get("seed", 7))
        deadline = time.monotonic() + float((context.limits or {}).get("timeout", 25))
        n = payload.get("iterations", 2000)
        losses = []
        for i in range(n):
            losses.append(tri(rng, payload["frequency"]) * tri(rng, payload["magnitude"]))
            if i % 1000 == 0 and time.monotonic() > deadline:
                return ToolResult(ok=False, error_code="TIMEOUT", message="simulation too long", details={"done": i})
        losses.sort()
        pct = lambda p: round(losses[min(n - 1, int(n * p))], 2)
        # exceedance curve: chart data for the report tool
        curve = [{"loss": pct(p / 10), "exceedance": round(1 - p / 10, 1)} for p in range(10)]
        base = os.path.join(os.environ.get("EVENTMILL_WORKSPACE") or "workspace", "artifacts")
        os.makedirs(base, exist_ok=True)
        path = os.path.join(base, "fair_curve.json")
        with open(path, "w") as fh:
            json.dump(curve, fh)
        return ToolResult(ok=True, result={"iterations": n, "mean": round(statistics.fmean(losses), 2), "p50": pct(.5), "p95": pct(.95), "max": round(losses[-1], 2), "curve": curve},
                          output_artifacts=[{"artifact_type": "risk_model", "file_path": path}])

    def summarize_for_llm(self, result):
        r = result.result
        return f"Annual loss: mean {r['mean']:.0f}, median {r['p50']:.0f}, 95th percentile {r['p95']:.0f} ({r['iterations']} runs)."
