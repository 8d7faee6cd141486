"""Bursts of events: windows with many more of them than usual."""

import bisect
import logging
import math
import os
import re
import statistics
import sys
from dataclasses import dataclass, asdict
from datetime import datetime, timedelta
from typing import Any, Dict, List, Optional, Tuple

logger = logging.getLogger(__name__)
logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")

STAMPS = [
    (re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"), "%Y-%m-%d %H:%M:%S"),
    (re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"), "%Y-%m-%dT%H:%M:%S"),
    (re.compile(r"^update-alternatives (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"), "%Y-%m-%d %H:%M:%S"),
    (re.compile(r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"), "%b %d %H:%M:%S"),
]


@dataclass
class ToolResult:  # no framework needed to try this file
    ok: bool
    result: Optional[Dict[str, Any]] = None
    error_code: Optional[str] = None
    message: Optional[str] = None


@dataclass
class ValidationResult:
    ok: bool
    errors: Optional[List[str]] = None


@dataclass(order=True)
class Burst:
    start: str
    end: str
    events: int
    score: float

    def line(self) -> str:
        return f"{self.start} to {self.end}: {self.events} events ({self.score:.1f} sigma)"


def stamps_of(path: str) -> Tuple[List[datetime], int]:
    found, bad = [], 0
    with open(path, encoding="utf-8", errors="replace") as handle:
        for line in handle:
            for pattern, form in STAMPS:
                match = pattern.match(line)
                if match:
                    text, wanted = match.group(1), form
                    if "%Y" not in form:
                        text, wanted = "2024 " + text, "%Y " + form
                    found.append(datetime.strptime(text, wanted))
                    break
            else:
                bad += 1
    return sorted(found), bad


def bursts_in(moments: List[datetime], window: timedelta, sigma: float) -> Tuple[List[Burst], float, float]:
    counts, starts = [], []
    at = moments[0]
    while at <= moments[-1]:
        low = bisect.bisect_left(moments, at)
        high = bisect.bisect_left(moments, at + window)
        if high > low:
            counts.append(high - low)
            starts.append(at)
            at += window
        else:  # nothing for a long time: go on where something is
            at = moments[high] if high < len(moments) else moments[-1] + window
    mean = statistics.fmean(counts)
    spread = statistics.pstdev(counts) if len(counts) > 1 else 0.0
    found = []
    for start, count in zip(starts, counts):
        score = (count - mean) / spread if spread else 0.0
        if score >= sigma:
            found.append(Burst(start.isoformat(" "), (start + window).isoformat(" "), count, round(score, 3)))
    return found, mean, spread


class BurstDetector:
    runs = 0

    def metadata(self):
        return {"tool_name": "burst_detector", "version": "0.9.0"}

    def validate_inputs(self, payload):
        errors = []
        state = getattr(sys, "eventmill_dpkg", None)
        if not payload.get("file_path") and not payload.get("artifact_id") and not state:
            errors.append("run dpkg_timeline first, or give a file_path")
        for name in ("window_minutes", "sigma"):
            value = payload.get(name, 1)
            try:
                if not math.isfinite(float(value)) or float(value) <= 0:
                    errors.append(f"{name} must be more than 0")
            except (TypeError, ValueError):
                errors.append(f"{name} is not a number: {value}")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        BurstDetector.runs += 1
        window = timedelta(minutes=float(payload.get("window_minutes", 60)))
        sigma = float(payload.get("sigma", 2))
        path = payload.get("file_path")
        bad = 0
        if path:
            if not os.path.isfile(path):
                # Another tool of ours knows how to say this.
                from plugins.log_analysis.dpkg_timeline.tool import DpkgTimelineTool

                other = DpkgTimelineTool().execute({"file_path": path}, None)
                return ToolResult(ok=False, error_code=other.error_code, message=other.message)
            moments, bad = stamps_of(path)
            source = os.path.basename(path)
        else:
            state = sys.eventmill_dpkg
            moments = sorted(datetime.strptime(text, "%Y-%m-%d %H:%M:%S") for text in state["moments"])
            source = state["source"] + " (from memory)"
        logger.debug("%d moments from %s", len(moments), source)
        if not moments:
            return ToolResult(False, None, "PARSE_FAILED", f"no timestamps in {source}")
        found, mean, spread = bursts_in(moments, window, sigma)
        hours = {}
        for moment in moments:
            hours[moment.hour] = hours.get(moment.hour, 0) + 1  # int keys
        return ToolResult(
            ok=True,
            result={
                "source": source,
                "events": len(moments),
                "without_time": bad,
                "span": (moments[0].isoformat(), moments[-1].isoformat()),
                "mean": round(mean, 6),
                "spread": round(spread, 6),
                "bursts": [asdict(burst) for burst in sorted(found, reverse=True)],
                "by_hour": dict(sorted(hours.items())),
                "run": BurstDetector.runs,
            },
            message="nothing stands out" if not found else None,
        )

    def summarize_for_llm(self, result):
        r = result.result
        lines = [f"{r['events']} events in {r['source']}, {len(r['bursts'])} bursts."]
        lines += [Burst(**burst).line() for burst in r["bursts"]]
        return "\n".join(lines)
