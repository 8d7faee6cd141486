"""What stands out among flows: scans, beacons, uploads, long connections, tunnels through DNS, passwords in the clear.

Each finding says what it rests on: numbers, and the frames to look at.
"""

from __future__ import annotations

import statistics
from array import array
from ipaddress import ip_address
from typing import Any, Dict, List, Optional, Set, Tuple

from .flow import Flow
from .series import moment

MOST_GROUPS = 20_000  # of ends that are watched for one thing
MOST_STARTS = 200  # of one group's connections that are remembered
MOST_SCANNED = 1_000  # ports or hosts of one source that are kept apart
MOST_KEPT = 300_000  # ports, hosts and names of all groups
_FAILED = frozenset(("S0", "REJ", "RSTOS0", "SH"))
_CLEAR = frozenset(("ftp", "telnet", "http with a password"))


class Limits:
    """From where on something stands out."""

    def __init__(self, scan: int = 20, beacon: int = 8, upload: int = 10_000_000, long: int = 3600, names: int = 100) -> None:
        self.scan, self.beacon, self.upload, self.long, self.names = scan, beacon, upload, long, names


class _Scan:
    __slots__ = ("tried", "failed", "first", "last", "beyond", "frames")

    def __init__(self) -> None:
        self.tried: Set[Any] = set()
        self.failed = self.beyond = 0
        self.first: Optional[int] = None
        self.last: Optional[int] = None
        self.frames: List[int] = []

    def add(self, what: Any, flow: Flow, room: bool) -> None:
        self.failed += 1
        if what not in self.tried:
            if len(self.tried) < MOST_SCANNED and room:
                self.tried.add(what)
            else:
                self.beyond += 1
        if flow.begin is not None:
            self.first = flow.begin if self.first is None else min(self.first, flow.begin)
            self.last = flow.begin if self.last is None else max(self.last, flow.begin)
        if len(self.frames) < 5:
            self.frames.append(flow.first)


class Findings:
    """Watches flows as they close."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ports: Dict[Tuple[bytes, bytes, int], _Scan] = {}  # one source, one destination, many ports
        self._hosts: Dict[Tuple[bytes, int, int], _Scan] = {}  # one source, one port, many destinations
        self._starts: Dict[Tuple[bytes, bytes, int, int], "Tuple[array[int], List[int]]"] = {}
        self._domains: Dict[Tuple[bytes, str], Tuple[Set[int], List[int]]] = {}
        self._single: List[Dict[str, Any]] = []
        self._kept = 0
        self.unwatched = 0  # flows whose group was beyond MOST_GROUPS
        self.counts: Dict[str, int] = {}

    def add(self, flow: Flow) -> None:
        """Look at a flow that is closed."""
        source, destination, protocol, _, port = flow.key
        state = flow.state
        failed = state in _FAILED or protocol == 17 and not flow.back.packets
        if port is not None:
            if failed and port != 53:
                self._grouped(self._ports, (source, destination, protocol), port, flow)
                self._grouped(self._hosts, (source, protocol, port), destination, flow)
            if not (failed and protocol == 17) and flow.begin is not None:
                self._started((source, destination, protocol, port), flow)
        if flow.service == "dns" and flow.detail:
            self._asked(source, flow)
        sent, received = flow.to.payload, flow.back.payload
        if sent >= self._limits.upload and sent > 5 * received:
            self._one("upload", flow, sent, "%d bytes of payload were sent and %d received" % (sent, received))
        if received >= self._limits.upload and received > 5 * sent and state in ("S1", "OTH") and port is not None and port >= 1024 and flow.service is None:
            self._one("upload", flow, received, "%d bytes of payload came back on a port without a known service" % received)
        if flow.duration >= self._limits.long * 1_000_000_000:
            self._one("long_connection", flow, flow.duration // 1_000_000_000, "it lasted %d seconds" % (flow.duration // 1_000_000_000))
        if flow.service in _CLEAR:
            self._one("cleartext_login", flow, flow.bytes, "%s: names and passwords can be read in the capture" % flow.service)

    def _grouped(self, groups: Dict[Any, _Scan], key: Any, what: Any, flow: Flow) -> None:
        group = groups.get(key)
        if group is None:
            if len(groups) >= MOST_GROUPS:
                self._drop(groups)
            group = groups[key] = _Scan()
        before = len(group.tried)
        group.add(what, flow, self._kept < MOST_KEPT)
        self._kept += len(group.tried) - before

    def _drop(self, groups: Dict[Any, _Scan]) -> None:
        """Forget the groups with one try only; a scan has more."""
        for key in [key for key, group in groups.items() if len(group.tried) < 2] or list(groups)[: MOST_GROUPS // 2]:
            gone = groups.pop(key)
            self._kept -= len(gone.tried)
            self.unwatched += gone.failed

    def _started(self, key: Tuple[bytes, bytes, int, int], flow: Flow) -> None:
        group = self._starts.get(key)
        if group is None:
            if len(self._starts) >= MOST_GROUPS:
                self.unwatched += 1
                return
            group = self._starts[key] = (array("q"), [])
        if len(group[0]) < MOST_STARTS and flow.begin is not None:
            group[0].append(flow.begin // 1_000_000)
            if len(group[1]) < 5:
                group[1].append(flow.first)

    def _asked(self, source: bytes, flow: Flow) -> None:
        labels = (flow.detail or "").lower().rstrip(".").split(".")
        if len(labels) < 3:
            return
        key = (source, ".".join(labels[-2:]))
        group = self._domains.get(key)
        if group is None:
            if len(self._domains) >= MOST_GROUPS:
                self.unwatched += 1
                return
            group = self._domains[key] = (set(), [0, 0])
        name = ".".join(labels[:-2])
        if len(group[0]) < 100 * self._limits.names and hash(name) not in group[0] and self._kept < MOST_KEPT:
            self._kept += 1
            group[0].add(hash(name))
            group[1][0] += len(name)
        if len(group[1]) < 7:
            group[1].append(flow.first)

    def _one(self, kind: str, flow: Flow, weight: int, why: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._single.append(_finding(kind, flow.key[0], flow.key[1], flow.protocol, flow.key[4], weight, why, flow.begin, flow.end, [flow.first]))
        if len(self._single) > 2000:
            self._single = _ranked(self._single)[:1000]

    def shown(self) -> List[Dict[str, Any]]:
        """All findings, the weightiest of each kind first."""
        found = list(self._single)
        for (source, destination, protocol), scan in self._ports.items():
            if len(scan.tried) >= self._limits.scan:
                n = len(scan.tried) + scan.beyond
                why = "%d ports were tried, %d times, without a connection; ports %s" % (n, scan.failed, _few(sorted(scan.tried)))
                found.append(_finding("vertical_scan", source, destination, _name(protocol), None, n, why, scan.first, scan.last, scan.frames))
        for (source, protocol, port), scan in self._hosts.items():
            if len(scan.tried) >= self._limits.scan:
                n = len(scan.tried) + scan.beyond
                why = "%d hosts were tried, %d times, without a connection" % (n, scan.failed)
                found.append(_finding("horizontal_scan", source, None, _name(protocol), port, n, why, scan.first, scan.last, scan.frames))
        for (source, destination, protocol, port), (starts, frames) in self._starts.items():
            found += self._beacon(source, destination, protocol, port, starts, frames)
        for (source, domain), (names, (length, _, *frames)) in self._domains.items():
            if len(names) >= self._limits.names and length / len(names) >= 12:
                why = "%d different names below %s were asked for, %d characters long on average" % (len(names), domain, length // len(names))
                found.append(_finding("dns_tunnel", source, None, "udp", 53, len(names), why, None, None, frames))
        for kind in ("vertical_scan", "horizontal_scan", "beacon", "dns_tunnel"):
            n = sum(1 for one in found if one["kind"] == kind)
            if n:
                self.counts[kind] = n
        return _ranked(found)

    def _beacon(self, source: bytes, destination: bytes, protocol: int, port: int, starts: "array[int]", frames: List[int]) -> List[Dict[str, Any]]:
        if len(starts) < self._limits.beacon:
            return []
        times = sorted(starts)
        gaps = [b - a for a, b in zip(times, times[1:])]
        middle = statistics.median(gaps)
        if middle < 1000:
            return []
        spread = statistics.median(abs(gap - middle) for gap in gaps)
        regular = sum(1 for gap in gaps if abs(gap - middle) <= 0.2 * middle) / len(gaps)
        if spread > 0.1 * middle or regular < 0.7:
            return []
        why = "%d connections about %.1f s apart (median deviation %.1f s, %d%% of the gaps within a fifth)" % (len(starts), middle / 1000, spread / 1000, 100 * regular)
        one = _finding("beacon", source, destination, _name(protocol), port, len(starts), why, times[0] * 1_000_000, times[-1] * 1_000_000, frames)
        return [dict(one, interval_seconds=middle / 1000)]


def _finding(kind: str, source: bytes, destination: Optional[bytes], protocol: str, port: Optional[int], weight: int, why: str, first: Optional[int],
             last: Optional[int], frames: List[int]) -> Dict[str, Any]:  # fmt: skip
    return {
        "kind": kind, "source": str(ip_address(source)), "destination": None if destination is None else str(ip_address(destination)), "protocol": protocol,
        "port": port, "weight": weight, "why": why, "first": moment(first), "last": moment(last), "frames": frames, "interval_seconds": None,
    }  # fmt: skip


_ORDER = ("beacon", "dns_tunnel", "upload", "vertical_scan", "horizontal_scan", "cleartext_login", "long_connection")


def _ranked(found: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The weightiest of each kind in turn, so that no kind hides the others."""
    by_kind: Dict[str, List[Dict[str, Any]]] = {}
    for one in sorted(found, key=lambda f: (-f["weight"], f["source"], f["destination"] or "", f["port"] or 0)):
        by_kind.setdefault(one["kind"], []).append(one)
    ranked: List[Dict[str, Any]] = []
    row = 0
    while len(ranked) < len(found):
        ranked += [by_kind[kind][row] for kind in _ORDER if row < len(by_kind.get(kind, []))]
        row += 1
    return ranked


def _name(protocol: int) -> str:
    return {6: "tcp", 17: "udp", 132: "sctp"}.get(protocol, str(protocol))


def _few(ports: List[int]) -> str:
    return ", ".join(str(port) for port in ports[:8]) + (" ..." if len(ports) > 8 else "")
