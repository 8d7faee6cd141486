"""pcap_flow_analyzer: how did the connections of this capture go, and which stand out?"""

from __future__ import annotations

import heapq
import json
import os
import sys
from typing import Any, Dict, List, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .flows import tooling
    from .flows.captures import Capture
    from .flows.findings import Findings, Limits
    from .flows.flow import STATES, Flow
    from .flows.series import moment
    from .flows.table import Table
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from flows import tooling
    from flows.captures import Capture
    from flows.findings import Findings, Limits
    from flows.flow import STATES, Flow
    from flows.series import moment
    from flows.table import Table

FITTING = ("pcap",)
NAME = "pcap_flow_analyzer"
_MOST_SERVICES = 1000


class PcapFlowAnalyzer:
    """Analyses the flows of one capture."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema."""
        errors = tooling.check(tooling.as_written(payload, self._schema), self._schema)
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Put the packets into flows, look at each as it closes, keep the largest."""
        payload = tooling.as_written(payload, self._schema)
        try:
            chosen = tooling.choose(payload, context, FITTING)
            return _analysed(payload, context, chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """What stands out first, then the numbers."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        c = r["counts"]
        parts = ["%s: %d packets, %d flows" % (tooling.shorten(r["artifact"]["name"], 80), c["packets"], c["flows"])]
        if r["time"]["begin"]:
            parts.append("from %s to %s" % (r["time"]["begin"], r["time"]["end"]))
        if r["truncated"]:
            parts.append("capture TRUNCATED at byte %d" % r["truncated_at"])
        if r["findings"]:
            kinds = ", ".join("%s %d" % item for item in sorted(c["findings"].items()))
            parts.append("stands out: " + kinds)
            for one in r["findings"][:3]:
                to = (" to " + one["destination"] if one["destination"] else "") + (" port %d" % one["port"] if one["port"] is not None else "")
                parts.append("%s from %s%s: %s (frame %d)" % (one["kind"], one["source"], to, tooling.shorten(one["why"], 110), one["frames"][0] if one["frames"] else 0))
        else:
            parts.append("nothing stands out")
        if r["tcp_states"]:
            parts.append("TCP " + ", ".join("%s %d" % (s["state"], s["flows"]) for s in r["tcp_states"][:4]))
        if r["services"]:
            parts.append("services " + ", ".join("%s %d" % (s["service"], s["flows"]) for s in r["services"][:4]))
        if r["flows"]:
            f = r["flows"][0]
            parts.append("largest %s to %s port %s, %d bytes, first frame %d" % (f["source"], f["destination"], f["destination_port"], f["bytes"], f["first_frame"]))
        return tooling.shorten("; ".join(parts) + ".", 950)


class _Kept:
    """What is kept of the flows as they close."""

    def __init__(self, limit: int, sort: str, findings: Findings, table: Any, rows: int, most: int) -> None:
        self.limit, self.sort, self.findings = limit, sort, findings
        self.states: Dict[str, int] = {}
        self.services: Dict[Tuple[str, str], List[int]] = {}
        self.written = 0
        self.retransmitted = self.missing = 0
        self._table, self._rows, self._left = table, rows, most
        self._largest: List[Tuple[int, int, Flow]] = []

    def add(self, flow: Flow) -> None:
        """A flow that is closed."""
        self.findings.add(flow)
        state = flow.state
        if state is not None:
            self.states[state] = self.states.get(state, 0) + 1
        key = (flow.protocol, flow.service or "unknown")
        if key in self.services or len(self.services) < _MOST_SERVICES:
            counts = self.services.setdefault(key, [0, 0])
            counts[0] += 1
            counts[1] += flow.bytes
        self.retransmitted += flow.to.retransmitted + flow.back.retransmitted
        self.missing += flow.to.missing + flow.back.missing
        rank = {"bytes": flow.bytes, "packets": flow.to.packets + flow.back.packets, "duration": flow.duration, "time": -flow.first}[self.sort]
        entry = (rank, -flow.first, flow)
        if len(self._largest) < self.limit:
            heapq.heappush(self._largest, entry)
        elif entry[:2] > self._largest[0][:2]:
            heapq.heapreplace(self._largest, entry)
        if self.written < self._rows:
            text = json.dumps(flow.shown(), ensure_ascii=False) + "\n"
            if len(text) <= self._left:
                self._left -= self._table.write(text)
                self.written += 1

    def largest(self) -> List[Dict[str, Any]]:
        """The first flows in the order that was asked for."""
        return [flow.shown() for _, _, flow in sorted(self._largest, key=lambda e: e[:2], reverse=True)]


def _analysed(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen) -> ToolResult:
    limit = payload.get("limit", 20)
    rows = payload.get("max_rows", 250000) if payload.get("write_table", True) and tooling.can_register(context) else 0
    most = int((getattr(context, "limits", None) or {}).get("max_artifact_size") or 128 << 20)
    capture = Capture(chosen.path, lambda done, total: tooling.tell(context, "reading " + chosen.name, done, total))
    findings = Findings(Limits(*(payload.get(name, default) for name, default in (
        ("scan_threshold", 20), ("beacon_connections", 8), ("upload_bytes", 10_000_000), ("long_seconds", 3600), ("dns_names", 100)))))  # fmt: skip
    path = tooling.new_file(context, NAME, chosen, "jsonl") if rows else os.devnull
    outputs = None
    try:
        with open(path, "w", encoding="utf-8") as file:
            kept = _Kept(limit, payload.get("sort", "bytes"), findings, file, rows, most)
            table = Table(capture, int(payload.get("idle_timeout", 600) * 1_000_000_000), payload.get("max_open_flows", 100_000), kept.add)
            table.run()
        if kept.written > limit:
            metadata = {"source_artifact": chosen.artifact_id, "flows": kept.written, "complete": kept.written == table.flows}
            outputs = [tooling.register(context, path, "json_events", NAME, metadata)]
        elif rows:
            os.unlink(path)
    except BaseException:
        if rows and os.path.exists(path):
            os.unlink(path)
        raise
    return ToolResult(ok=True, result=_answer(chosen, capture, table, kept, limit, bool(outputs)), output_artifacts=outputs)


def _answer(chosen: tooling.Chosen, capture: Capture, table: Table, kept: _Kept, limit: int, registered: bool) -> Dict[str, Any]:
    found = kept.findings.shown()
    notes = []
    if table.pushed_out:
        notes.append("%d flows were closed early because too many were open at once; they may have been counted as several." % table.pushed_out)
    if kept.findings.unwatched:
        notes.append("%d flows were not watched for scans, beacons or tunnels: too many different ends." % kept.findings.unwatched)
    if registered and kept.written < table.flows:
        notes.append("The table has the first %d flows that closed, of %d." % (kept.written, table.flows))
    services = sorted(kept.services.items(), key=lambda item: (-item[1][0], item[0]))
    return {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "counts": {
            "packets": capture.packets, "bytes": table.bytes, "flows": table.flows, "not_ip": table.other, "malformed": table.malformed,
            "retransmitted": kept.retransmitted, "missing_bytes": kept.missing, "findings": dict(sorted(kept.findings.counts.items())),
        },
        "time": {"begin": moment(table.begin), "end": moment(table.end)},
        "truncated": capture.truncated_at is not None, "truncated_at": capture.truncated_at, "truncation": capture.truncation or None,
        "malformed_frames": table.malformed_at,
        "findings": found[:limit],
        "tcp_states": [{"state": s, "flows": n, "meaning": STATES[s]} for s, n in sorted(kept.states.items(), key=lambda item: (-item[1], item[0]))],
        "services": [{"protocol": key[0], "service": key[1], "flows": n[0], "bytes": n[1]} for key, n in services[:limit]],
        "flows": kept.largest(),
        "series": table.series.shown(),
        "table_rows": kept.written if registered else 0,
        "notes": notes,
    }  # fmt: skip
