"""What a capture has of the addresses searched for."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .captures import Capture, Frame, Packet, network, packets
from .series import Series, moment
from .targets import Targets

_NAMES = {1: "icmp", 2: "igmp", 4: "ipip", 6: "tcp", 17: "udp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 58: "icmpv6", 89: "ospf", 132: "sctp"}
PROTOCOLS = tuple(sorted(_NAMES.values()))
MOST_PEERS = 2_000  # of one target
_MOST_PEERS_IN_ALL = 200_000
_FLAGS = ((2, "SYN"), (16, "ACK"), (1, "FIN"), (4, "RST"), (8, "PSH"), (32, "URG"))


class Filter(NamedTuple):
    """What else a packet has to be."""

    ports: Set[int]
    protocols: Set[str]
    direction: str  # any, source, destination
    start: Optional[int]
    end: Optional[int]


class Target:
    """What there is of one address or network."""

    __slots__ = ("frames", "bytes", "sent", "received", "first", "last", "roles", "peers", "ports", "peers_beyond")

    def __init__(self) -> None:
        self.frames = self.bytes = 0
        self.sent, self.received = [0, 0], [0, 0]
        self.first: Optional[Tuple[int, int, Optional[int]]] = None
        self.last: Optional[Tuple[int, int, Optional[int]]] = None
        self.roles: Dict[str, int] = {}
        self.peers: Dict[bytes, List[int]] = {}
        self.ports: Dict[Tuple[int, int], List[int]] = {}
        self.peers_beyond = 0


class Match(NamedTuple):
    """One frame that has one of the addresses."""

    frame: Frame
    packet: Optional[Packet]  # None for ARP
    hits: List[Tuple[int, str]]  # target and role
    detail: str


class Search:
    """One search; go through matches once, then read what was counted."""

    def __init__(self, capture: Capture, targets: Targets, wanted: Filter) -> None:
        self.targets = targets
        self.found: Dict[int, Target] = {}
        self.matched = 0
        self.bytes = 0
        self.malformed = 0
        self.malformed_at: List[int] = []
        self.series = Series("frames", "bytes")
        self._capture = capture
        self._wanted = wanted
        self._peers = 0

    def matches(self) -> Iterator[Match]:
        """The frames that match, in the order of the capture."""
        wanted, of = self._wanted, self.targets.of
        for frame in self._capture:
            at, data = frame[2], frame[4]
            if wanted.start is not None and (at is None or at < wanted.start) or wanted.end is not None and (at is None or at > wanted.end):
                continue
            try:
                stack = packets(frame[3], data)
                if stack:
                    match = self._of_ip(frame, stack, of)
                else:
                    match = self._of_arp(frame, of)
            except (IndexError, struct.error):
                self.malformed += 1
                if len(self.malformed_at) < 10:
                    self.malformed_at.append(frame[0])
                continue
            if match is not None:
                self._count(match)
                yield match

    def _of_ip(self, frame: Frame, stack: List[Packet], of: Any) -> Optional[Match]:
        wanted = self._wanted
        hits: List[Tuple[int, str]] = []
        chosen: Optional[Packet] = None
        detail = ""
        for packet in stack:
            if wanted.ports and packet[4] not in wanted.ports and packet[5] not in wanted.ports:
                continue
            if wanted.protocols and _NAMES.get(packet[3], str(packet[3])) not in wanted.protocols:
                continue
            here: List[Tuple[int, str]] = []
            if wanted.direction != "destination":
                here += [(index, "source") for index in of(packet[1])]
            if wanted.direction != "source":
                here += [(index, "destination") for index in of(packet[2])]
            if wanted.direction == "any" and (packet[4] in (53, 5353) or packet[3] in (1, 58)):
                for address, role, said in _carried(frame[4], packet):
                    inside = [(index, role) for index in of(address)]
                    here += inside
                    detail = detail or (said if inside else "")
            if here:
                hits += [hit for hit in here if hit not in hits]
                chosen = packet
        return Match(frame, chosen, hits, detail) if hits else None

    def _of_arp(self, frame: Frame, of: Any) -> Optional[Match]:
        data, wanted = frame[4], self._wanted
        at, version = network(frame[3], data)
        if version != -1 or wanted.ports or wanted.protocols:
            return None
        if data[at + 5] != 4:
            return None
        size = data[at + 4]
        sender, target = data[at + 8 + size : at + 12 + size], data[at + 12 + 2 * size : at + 16 + 2 * size]
        if len(target) < 4:
            raise IndexError("ARP breaks off")
        hits = [(i, "arp_sender") for i in of(sender)] if wanted.direction != "destination" else []
        hits += [(i, "arp_target") for i in of(target)] if wanted.direction != "source" else []
        said = "%s is at %s" % (shown(sender), data[at + 8 : at + 8 + size].hex(":")) if data[at + 7] == 2 else "who has %s? tell %s" % (shown(target), shown(sender))
        return Match(frame, None, hits, said) if hits else None

    def _count(self, match: Match) -> None:
        number, offset, at, _, _, wire = match.frame
        self.matched += 1
        self.bytes += wire
        if at is not None:
            self.series.add(at // 1000000000, 1, wire)
        for index in dict.fromkeys(index for index, _ in match.hits):
            target = self.found.get(index)
            if target is None:
                target = self.found[index] = Target()
                target.first = (number, offset, at)
            target.last = (number, offset, at)
            target.frames += 1
            target.bytes += wire
        for index, role in match.hits:
            target = self.found[index]
            target.roles[role] = target.roles.get(role, 0) + 1
            if match.packet is not None and role in ("source", "destination"):
                way = target.sent if role == "source" else target.received
                way[0] += 1
                way[1] += wire
                self._peer(target, match.packet[2] if role == "source" else match.packet[1], wire)
                port = match.packet[5]
                if port is not None and len(target.ports) < 70000:
                    ports = target.ports.setdefault((match.packet[3], port), [0, 0])
                    ports[0] += 1
                    ports[1] += wire

    def _peer(self, target: Target, address: bytes, wire: int) -> None:
        peer = target.peers.get(address)
        if peer is None:
            if len(target.peers) >= MOST_PEERS or self._peers >= _MOST_PEERS_IN_ALL:
                target.peers_beyond += 1
                return
            self._peers += 1
            peer = target.peers[address] = [0, 0]
        peer[0] += 1
        peer[1] += wire


def _carried(data: bytes, packet: Packet) -> Iterator[Tuple[bytes, str, str]]:
    """Addresses that a packet carries: those of a DNS answer, and of the packet that an ICMP error quotes."""
    at, end = packet[7], packet[8]
    if packet[3] == 17:
        try:
            yield from _answers(data[at:end])
        except (IndexError, struct.error):
            return
    elif packet[3] == 1 and end - at >= 28 and data[at] in (3, 4, 5, 11, 12):
        for start in (at + 20, at + 24):
            yield data[start : start + 4], "icmp_quote", "ICMP type %d code %d" % (data[at], data[at + 1])
    elif packet[3] == 58 and end - at >= 48 and data[at] in (1, 2, 3, 4):
        for start in (at + 16, at + 32):
            yield data[start : start + 16], "icmp_quote", "ICMPv6 type %d code %d" % (data[at], data[at + 1])


def _answers(message: bytes) -> Iterator[Tuple[bytes, str, str]]:
    _, flags, questions, answers, _, _ = struct.unpack_from(">HHHHHH", message)
    if not flags & 0x8000 or questions > 16:
        return
    at = 12
    for _ in range(questions):
        at = _name(message, at)[1] + 4
    for _ in range(min(answers, 200)):
        name, at = _name(message, at)
        kind, _, _, size = struct.unpack_from(">HHIH", message, at)
        at += 10
        if kind in (1, 28) and size == (4 if kind == 1 else 16) and at + size <= len(message):
            yield message[at : at + size], "dns_answer", "%s is %s" % (name, shown(message[at : at + size]))
        at += size


def _name(message: bytes, at: int) -> Tuple[str, int]:
    labels: List[str] = []
    after = 0
    for _ in range(64):
        size = message[at]
        if size >= 0xC0:
            after, at = after or at + 2, ((size & 0x3F) << 8) | message[at + 1]
        elif size == 0:
            return ".".join(labels) or ".", after or at + 1
        else:
            labels.append("".join(chr(c) if 32 < c < 127 and c not in b".\\" else "\\%03d" % c for c in message[at + 1 : at + 1 + size]))
            at += 1 + size
    raise IndexError("a name in a DNS message does not end")


def shown(address: bytes) -> str:
    """An address as people write it."""
    return str(ip_address(address))


def protocol(number: int) -> str:
    """A protocol's name, its number where it has none here."""
    return _NAMES.get(number, str(number))


def line(match: Match, targets: Targets) -> Dict[str, Any]:
    """A match as it stands in the result and in the table."""
    number, offset, at, _, _, wire = match.frame
    packet = match.packet
    entry: Dict[str, Any] = {
        "frame": number, "offset": offset, "time": moment(at), "targets": sorted({targets.names[i] for i, _ in match.hits}),
        "roles": sorted({role for _, role in match.hits}), "protocol": "arp", "source": None, "source_port": None, "destination": None,
        "destination_port": None, "flags": [], "bytes": wire, "tunnel_depth": 0, "detail": match.detail or None,
    }  # fmt: skip
    if packet is not None:
        entry.update(
            protocol=protocol(packet[3]), source=shown(packet[1]), source_port=packet[4], destination=shown(packet[2]), destination_port=packet[5],
            flags=[name for bit, name in _FLAGS if packet[6] & bit], tunnel_depth=packet[9],
        )  # fmt: skip
    return entry
