"""What the rows of a firewall's log add up to. Every table has a cap, and says so when it was reached."""

from __future__ import annotations

from array import array
from collections import defaultdict
from heapq import nsmallest
from statistics import median
from sys import intern
from typing import Any, Callable, DefaultDict, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from .row import ALLOW, CLOSED, DENY, UNKNOWN, Row

MOST_SOURCES = 50000
MOST_DESTINATIONS = 100000
MOST_FLOWS = 100000
MOST_PAIRS = 100000
MOST_PORTS = 70000
MOST_BUCKETS = 20000
MOST_SEEN = 1000000  # ports and hosts remembered for all sources together
SEEN_OF_ONE = 4096
INTERVALS = 128  # remembered for a flow
MOST_INTERVALS = 4000000  # for all flows together

_ACTIONS = (ALLOW, DENY, UNKNOWN)
_BUCKETS = (60, 3600, 86400, 30 * 86400)
_EPHEMERAL = 32768
Show = Callable[[Optional[float]], Optional[str]]


class Table(List[Dict[str, Any]]):
    """The first rows of a table; of is how many it has."""

    of = 0


def _first(found: Iterator[Dict[str, Any]], key: Callable[[Dict[str, Any]], Any], limit: Optional[int]) -> Table:
    """The first rows in the order of key, all of them without a limit. Only these are kept in memory."""
    count = 0

    def counted() -> Iterator[Dict[str, Any]]:
        nonlocal count
        for row in found:
            count += 1
            yield row

    table = Table(sorted(counted(), key=key) if limit is None else nsmallest(limit, counted(), key=key))
    table.of = count
    return table


# A row adds one number to a counter: 40 bits each for the rows allowed, denied and unknown, and above them the bytes.
# That is one addition where four counters would take a branch and two.
_ONE = {ALLOW: 1, DENY: 1 << 40, UNKNOWN: 1 << 80}
_ROWS = (1 << 40) - 1
_BYTES = 120


class Count:
    """Decisions by what they were, and bytes."""

    __slots__ = ("packed",)

    def __init__(self) -> None:
        self.packed = 0

    @property
    def allow(self) -> int:
        """Decisions that let something through."""
        return self.packed & _ROWS

    @property
    def deny(self) -> int:
        """Decisions that refused something."""
        return self.packed >> 40 & _ROWS

    @property
    def unknown(self) -> int:
        """Rows that do not say what was decided."""
        return self.packed >> 80 & _ROWS

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return self.packed >> _BYTES

    @property
    def rows(self) -> int:
        """All decisions."""
        return self.allow + self.deny + self.unknown

    def shown(self) -> Dict[str, int]:
        """The counts in the answer."""
        return {"rows": self.rows, "allow": self.allow, "deny": self.deny, "unknown": self.unknown, "bytes": self.bytes}


class Source(Count):
    """What one source did."""

    __slots__ = ("ports", "hosts", "first", "last")

    def __init__(self) -> None:
        super().__init__()
        self.ports: Set[int] = set()
        self.hosts: Set[str] = set()
        self.first: Optional[float] = None
        self.last: Optional[float] = None


class Flow(Count):
    """One source's connections to one port of one destination."""

    __slots__ = ("first", "last", "source_port", "intervals")

    def __init__(self) -> None:
        super().__init__()
        self.first: Optional[float] = None
        self.last: Optional[float] = None
        self.source_port = -2
        self.intervals = array("d")


class Pair(Count):
    """What went from one address to another."""

    __slots__ = ("first_denied", "last_allowed", "denied_ports", "allowed_port")

    def __init__(self) -> None:
        super().__init__()
        self.first_denied: Optional[Tuple[float, Optional[float]]] = None  # place in order, time
        self.last_allowed: Optional[Tuple[float, Optional[float]]] = None
        self.denied_ports: Tuple[int, ...] = ()  # a set of five takes seven times as much
        self.allowed_port = -1


class Aggregate:
    """Add every row, then ask for the tables."""

    def __init__(self, scan_threshold: int = 20, beacon_connections: int = 10) -> None:
        self.rows = 0
        self.timed = 0
        self.first: Optional[float] = None
        self.last: Optional[float] = None
        self.total = Count()
        self.protocols: Dict[str, Count] = {}
        self.ports: Dict[Tuple[str, int], Count] = {}
        self.sources: Dict[str, Source] = {}
        self.destinations: Dict[str, Count] = {}
        self.flows: Dict[Tuple[str, str, str, int], Flow] = {}
        self.pairs: Dict[Tuple[str, str], Pair] = {}
        self.buckets: Dict[int, Count] = {}
        self.bucket_seconds = _BUCKETS[0]
        self._scan = scan_threshold
        self._beacons = beacon_connections
        self._seen = 0
        self._intervals = 0
        self._left_out: DefaultDict[str, int] = defaultdict(int)
        self._unlisted = Count()  # takes what the full tables have no counter for

    def add(self, row: Row, at: Optional[float]) -> None:
        """Take one row into account; at is its time."""
        self.add_all(((row, at),))

    def add_all(self, timed_rows: Iterable[Tuple[Row, Optional[float]]]) -> None:
        """Take rows into account, each with its time. It is one loop over local names since it runs for every line of a log."""
        ones, left_out, counter = _ONE, self._left_out, self._counter
        protocols, ports, destinations, sources, flows, pairs = self.protocols, self.ports, self.destinations, self.sources, self.flows, self.pairs
        bucket, begin, end = Count(), 0.0, 0.0  # the time bucket of the last row, and its span
        first, last, rows, timed, total = self.first, self.last, self.rows, self.timed, 0
        for row, at in timed_rows:
            format, _, action, protocol, source, source_port, destination, port, _, _, bytes, _ = row
            if format == CLOSED:
                self._close(row)
                continue
            rows += 1
            one = ones[action] + (bytes << _BYTES)
            total += one

            count = protocols.get(protocol)
            if count is None:
                count = counter(protocols, protocol, 256, "protocols")
            count.packed += one
            # What a server sends back to a client's port says nothing about that port.
            answer = 0 <= source_port < _EPHEMERAL <= port and action != DENY
            if port >= 0 and not answer:
                count = ports.get((protocol, port))
                if count is None:
                    count = counter(ports, (protocol, port), MOST_PORTS, "ports")
                count.packed += one
            count = destinations.get(destination)
            if count is None:
                count = counter(destinations, destination, MOST_DESTINATIONS, "destinations")
            count.packed += one

            by = sources.get(source)
            if by is None and len(sources) < MOST_SOURCES:
                by = sources[intern(source)] = Source()
            if by is None:
                left_out["sources"] += 1
            else:
                by.packed += one
                if not answer:
                    if port >= 0 and port not in by.ports:
                        self._remember(by.ports, port)
                    if destination not in by.hosts:
                        self._remember(by.hosts, intern(destination))

            flow = flows.get((source, destination, protocol, port))
            if flow is None and len(flows) < MOST_FLOWS:
                # The tables share one copy of each address.
                flow = flows[(intern(source), intern(destination), protocol, port)] = Flow()
            if flow is None:
                left_out["flows"] += 1
            else:
                flow.packed += one

            if at is None:
                place = float(rows)
            else:
                place = at
                timed += 1
                if last is None or first is None:
                    first = last = at
                elif at > last:
                    last = at
                elif at < first:
                    first = at
                if not begin <= at < end:
                    bucket, begin, end = self._bucket_of(at)
                bucket.packed += one
                if by is not None:
                    if by.last is None or by.first is None:
                        by.first = by.last = at
                    elif at > by.last:
                        by.last = at
                    elif at < by.first:
                        by.first = at
                if flow is not None:
                    self._connect(flow, source_port, at)

            pair = pairs.get((source, destination))
            if pair is None and len(pairs) < MOST_PAIRS:
                pair = pairs[(intern(source), intern(destination))] = Pair()
            if pair is None:
                left_out["pairs"] += 1
                continue
            pair.packed += one
            if action == DENY:
                if pair.first_denied is None or place < pair.first_denied[0]:
                    pair.first_denied = (place, at)
                if port not in pair.denied_ports and len(pair.denied_ports) < 16:
                    pair.denied_ports += (port,)
            elif action == ALLOW and (pair.last_allowed is None or place >= pair.last_allowed[0]):
                pair.last_allowed = (place, at)
                pair.allowed_port = port
        self.first, self.last, self.rows, self.timed = first, last, rows, timed
        self.total.packed += total

    def _close(self, row: Row) -> None:
        """Add the bytes of a connection whose opening was counted before."""
        counts: List[Optional[Count]] = [
            self.total, self.protocols.get(row.protocol), self.ports.get((row.protocol, row.destination_port)), self.destinations.get(row.destination),
            self.sources.get(row.source), self.pairs.get((row.source, row.destination)),
            self.flows.get((row.source, row.destination, row.protocol, row.destination_port)),
        ]  # fmt: skip
        for count in counts:
            if count is not None:
                count.packed += row.bytes << _BYTES

    def _counter(self, table: Dict[Any, Count], key: Any, most: int, what: str) -> Count:
        """A new counter in the table; one that is not shown if the table is full."""
        if len(table) >= most:
            self._left_out[what] += 1
            return self._unlisted
        count = table[intern(key) if isinstance(key, str) else key] = Count()
        return count

    def _bucket_of(self, at: float) -> Tuple[Count, float, float]:
        """The time bucket of at, and its span: an empty one if the table is full, so that the next row asks again."""
        key = int(at // self.bucket_seconds)
        while key not in self.buckets and len(self.buckets) >= MOST_BUCKETS and self.bucket_seconds != _BUCKETS[-1]:
            self._widen(_BUCKETS[_BUCKETS.index(self.bucket_seconds) + 1])
            key = int(at // self.bucket_seconds)
        count = self.buckets.get(key) or self._counter(self.buckets, key, MOST_BUCKETS, "time buckets")
        if count is self._unlisted:
            return count, 0, 0
        return count, key * self.bucket_seconds, (key + 1) * self.bucket_seconds

    def _widen(self, seconds: int) -> None:
        wider: Dict[int, Count] = {}
        for key, count in self.buckets.items():
            wider.setdefault(key * self.bucket_seconds // seconds, Count()).packed += count.packed
        self.buckets, self.bucket_seconds = wider, seconds

    def _connect(self, flow: Flow, source_port: int, at: float) -> None:
        """Take the time of a row of a flow into account."""
        if flow.last is None or flow.first is None:
            flow.first = flow.last = at
            flow.source_port = source_port
            return
        # A record with the port of the one before it is the same connection going on, not a new one.
        interval = abs(at - flow.last)
        if interval >= 1 and (source_port < 0 or source_port != flow.source_port):
            if len(flow.intervals) < INTERVALS and self._intervals < MOST_INTERVALS:
                flow.intervals.append(interval)
                self._intervals += 1
            flow.last = at
            flow.source_port = source_port
        if at < flow.first:
            flow.first = at

    def _remember(self, seen: Set[Any], what: Any) -> None:
        if len(seen) < SEEN_OF_ONE and self._seen < MOST_SEEN:
            seen.add(what)
            self._seen += 1
        else:
            self._left_out["ports and hosts of sources"] += 1

    # The tables.

    def by_action(self) -> List[Dict[str, Any]]:
        """Decisions by what they were."""
        return [{"action": name, "rows": getattr(self.total, name)} for name in _ACTIONS]

    def by_protocol(self, limit: Optional[int] = None) -> Table:
        """Decisions by protocol, the most frequent first."""
        return _first((dict(c.shown(), protocol=p) for p, c in self.protocols.items()), lambda r: (-r["rows"], r["protocol"]), limit)

    def by_port(self, limit: Optional[int] = None) -> Table:
        """Decisions by destination port."""
        return _first((dict(c.shown(), protocol=p, port=n) for (p, n), c in self.ports.items()), lambda r: (-r["rows"], r["protocol"], r["port"]), limit)

    def by_source(self, limit: Optional[int] = None) -> Table:
        """Decisions by source."""
        return _first((dict(c.shown(), address=a) for a, c in self.sources.items()), lambda r: (-r["rows"], r["address"]), limit)

    def by_destination(self, limit: Optional[int] = None) -> Table:
        """Decisions by destination."""
        return _first((dict(c.shown(), address=a) for a, c in self.destinations.items()), lambda r: (-r["rows"], r["address"]), limit)

    def by_time(self, show: Show) -> List[Dict[str, Any]]:
        """Decisions by time, in order."""
        return [dict(self.buckets[key].shown(), start=show(key * self.bucket_seconds)) for key in sorted(self.buckets)]

    def coarsen(self, most: int) -> None:
        """Make the buckets wider until there are at most so many, or none wider is left."""
        while len(self.buckets) > most and self.bucket_seconds != _BUCKETS[-1]:
            self._widen(_BUCKETS[_BUCKETS.index(self.bucket_seconds) + 1])

    def talkers(self, limit: Optional[int] = None) -> Table:
        """Pairs of addresses by bytes, then by rows."""
        rows = (dict(p.shown(), source=s, destination=d) for (s, d), p in self.pairs.items())
        return _first(rows, lambda r: (-r["bytes"], -r["rows"], r["source"], r["destination"]), limit)

    def scanners(self, show: Show, limit: Optional[int] = None) -> Table:
        """Sources that tried many ports, or many hosts in vain."""
        return _first(self._each_of_scanners(show), lambda s: (-max(s["ports"], s["hosts"]), -s["rows"], s["source"]), limit)

    def _each_of_scanners(self, show: Show) -> Iterator[Dict[str, Any]]:
        for address, s in self.sources.items():
            ports, hosts = len(s.ports), len(s.hosts)
            decided = s.allow + s.deny
            denied = s.deny / decided if decided else 0.0
            kinds = []
            if ports >= self._scan:
                kinds.append("ports")
            if hosts >= self._scan and (denied >= 0.5 or not decided):
                kinds.append("hosts")
            if kinds:
                yield (
                    {
                        "source": address, "kind": "+".join(kinds), "ports": ports, "hosts": hosts, "rows": s.rows, "denied_share": round(denied, 4),
                        "first": show(s.first), "last": show(s.last), "sample_ports": sorted(s.ports)[:10], "sample_hosts": sorted(s.hosts)[:5],
                    }  # fmt: skip
                )

    def beacons(self, show: Show, limit: Optional[int] = None) -> Table:
        """Flows whose connections come at regular intervals: four of five within a fifth of their median."""
        return _first(self._each_of_beacons(show), lambda b: (-b["regularity"], b["jitter"], -b["connections"], b["source"], b["destination"], b["port"]), limit)

    def _each_of_beacons(self, show: Show) -> Iterator[Dict[str, Any]]:
        for (source, destination, protocol, port), flow in self.flows.items():
            if len(flow.intervals) + 1 < self._beacons:
                continue
            middle = median(flow.intervals)
            if middle < 2:
                continue
            spread = max(0.2 * middle, 1.0 if middle >= 5 else 0.5)
            regular = sum(1 for i in flow.intervals if abs(i - middle) <= spread) / len(flow.intervals)
            if regular < 0.8:
                continue
            deviation = median(abs(i - middle) for i in flow.intervals)
            ends = sorted((flow.first or 0.0, flow.last or 0.0))
            yield (
                {
                    "source": source, "destination": destination, "protocol": protocol, "port": port, "connections": flow.rows,
                    "interval_seconds": round(middle, 3), "regularity": round(regular, 4), "jitter": round(deviation / middle, 4),
                    "allow": flow.allow, "deny": flow.deny, "bytes": flow.bytes, "first": show(ends[0]), "last": show(ends[1]),
                }  # fmt: skip
            )

    def denied_then_allowed(self, show: Show, limit: Optional[int] = None) -> Table:
        """Pairs that were refused first and let through later."""
        return _first(self._each_of_denied_then_allowed(show), lambda d: (-d["denied"], not d["same_port"], d["source"], d["destination"]), limit)

    def _each_of_denied_then_allowed(self, show: Show) -> Iterator[Dict[str, Any]]:
        for (source, destination), p in self.pairs.items():
            if p.first_denied is None or p.last_allowed is None or p.last_allowed[0] <= p.first_denied[0]:
                continue
            yield (
                {
                    "source": source, "destination": destination, "denied": p.deny, "allowed": p.allow, "denied_ports": sorted(x for x in p.denied_ports if x >= 0),
                    "allowed_port": p.allowed_port, "same_port": p.allowed_port in p.denied_ports,
                    "first_denied": show(p.first_denied[1]), "last_allowed": show(p.last_allowed[1]),
                }  # fmt: skip
            )

    def notes(self) -> List[str]:
        """Which tables were full, and how much they left out."""
        return ["The table of %s was full: %d values are not in it." % (what, n) for what, n in sorted(self._left_out.items())]
