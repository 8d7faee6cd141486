"""Sweeps connection logs for beacons, scans and large transfers."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

try:
    from scapy.all import rdpcap  # type: ignore

    HAVE_SCAPY = True
except Exception:  # scapy fails in many ways where there are no interfaces
    rdpcap = None
    HAVE_SCAPY = False

from framework.plugins.protocol import ArtifactRef, ExecutionContext, ToolResult, ValidationResult

_LOG = logging.getLogger("eventmill.plugin.conn_sweeper")

WORKSPACE = Path(os.environ.get("EVENTMILL_WORKSPACE", "workspace"))
FIELDS = ("ts", "src", "sport", "dst", "dport", "proto", "bytes")
MAX_BYTES = 64 * 1024 * 1024


class Conn(NamedTuple):
    ts: float
    src: str
    sport: int
    dst: str
    dport: int
    proto: str
    size: int


class BadLog(Exception):
    def __init__(self, line: int, why: str):
        super().__init__(f"line {line}: {why}")
        self.line = line


def read_conns(path: Path, strict: bool) -> tuple[list[Conn], int]:
    conns, bad = [], 0
    with path.open(encoding="utf-8-sig", errors="replace") as handle:
        for number, raw in enumerate(handle, 1):
            if raw.startswith("#") or not raw.strip():
                continue
            cells = raw.rstrip("\n").split("\t")
            if number == 1 and cells[0] == "ts":
                continue
            try:
                ts, src, sport, dst, dport, proto, size = cells[: len(FIELDS)]
                ipaddress.ip_address(src), ipaddress.ip_address(dst)
                conns.append(Conn(float(ts), src, int(sport), dst, int(dport), proto, int(size) if size != "-" else 0))
            except ValueError as exc:
                bad += 1
                if strict:
                    raise BadLog(number, str(exc)) from exc
    return conns, bad


def beacons(conns: list[Conn], least: int) -> list[dict]:
    by_pair: dict[tuple, list[float]] = defaultdict(list)
    for conn in conns:
        by_pair[conn.src, conn.dst, conn.dport].append(conn.ts)
    found = []
    for (src, dst, port), times in sorted(by_pair.items()):
        if len(times) < least:
            continue
        times.sort()
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        mean = statistics.fmean(gaps)
        if mean <= 0:
            continue
        jitter = statistics.pstdev(gaps) / mean
        if jitter < 0.2:
            found.append({"src": src, "dst": dst, "port": port, "count": len(times), "interval_s": round(mean, 2), "jitter": round(jitter, 4)})
    return found


def scans(conns: list[Conn], least: int) -> list[dict]:
    ports, hosts = defaultdict(set), defaultdict(set)
    for conn in conns:
        ports[conn.src, conn.dst].add(conn.dport)
        hosts[conn.src, conn.dport].add(conn.dst)
    found = [{"kind": "ports", "src": s, "dst": d, "count": len(p)} for (s, d), p in sorted(ports.items()) if len(p) >= least]
    found += [{"kind": "hosts", "src": s, "port": p, "count": len(d)} for (s, p), d in sorted(hosts.items()) if len(d) >= least]
    return found


class ConnSweeper:
    def __init__(self) -> None:
        self._history: list[str] = []

    def metadata(self) -> dict[str, Any]:
        return {"tool_name": "conn_sweeper", "version": "1.4.0", "have_scapy": HAVE_SCAPY}

    def validate_inputs(self, payload: dict[str, Any]) -> ValidationResult:
        if "artifact_id" not in payload and "file_path" not in payload:
            return ValidationResult(ok=False, errors=["artifact_id is required"])
        if not str(payload.get("min_count", 5)).isdigit():
            return ValidationResult(False, ["min_count must be a positive integer"])
        return ValidationResult(ok=True)

    def _find(self, payload: dict[str, Any], context: ExecutionContext) -> ArtifactRef | None:
        wanted = payload.get("artifact_id")
        return next((a for a in context.artifacts if a.artifact_id == wanted or a.file_path == payload.get("file_path")), None)

    def execute(self, payload: dict[str, Any], context: ExecutionContext) -> ToolResult:
        ref = self._find(payload, context)
        if ref is None:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"{payload.get('artifact_id')} is not in this session")
        path = Path(ref.file_path)
        if path.stat().st_size > MAX_BYTES:
            return ToolResult(ok=False, error_code="ARTIFACT_TOO_LARGE", message="split the log first", details={"limit": MAX_BYTES})
        if ref.artifact_type == "pcap":
            if not HAVE_SCAPY:
                return ToolResult(ok=False, error_code="DEPENDENCY_MISSING", message="scapy is needed for captures", details={"package": "scapy"})
            return ToolResult(ok=True, result={"packets": len(rdpcap(str(path)))})
        least = int(payload.get("min_count", 5))
        conns, bad = read_conns(path, bool(payload.get("strict")))
        if not conns:
            context.logger.error("no connections in %s", path)
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="no connections found", details={"bad_lines": bad})
        traffic: dict[str, int] = defaultdict(int)
        for conn in conns:
            traffic[conn.dst] += conn.size
        top = sorted(traffic.items(), key=lambda item: (-item[1], item[0]))[:5]
        findings = {"beacons": beacons(conns, least), "scans": scans(conns, least * 3), "top_destinations": top}
        report = WORKSPACE / "artifacts" / f"conn_sweep_{path.stem}.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(findings, indent=1), encoding="utf-8")
        made = context.register_artifact(
            artifact_type="json_events", file_path=str(report), source_tool="conn_sweeper", metadata={"connections": len(conns), "bad": bad}
        )
        self._history.append(made.artifact_id)
        context.logger.info("registered %s", made.artifact_id)
        return ToolResult(
            ok=True,
            result={"connections": len(conns), "bad_lines": bad, **findings, "report": made.artifact_id, "runs": len(self._history), "external": self._external(conns)},
            output_artifacts=[{"artifact_id": made.artifact_id, "artifact_type": made.artifact_type, "file_path": str(report)}],
        )

    @staticmethod
    def _external(conns: list[Conn]) -> int:
        return len({c.dst for c in conns if not ipaddress.ip_address(c.dst).is_private})

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result
        text = f"{r['connections']} connections, {len(r['beacons'])} beacons, {len(r['scans'])} scans."
        for b in r["beacons"][:3]:
            text += f"\n- {b['src']} -> {b['dst']}:{b['port']} every {b['interval_s']} s, {b['count']} times"
        return text
