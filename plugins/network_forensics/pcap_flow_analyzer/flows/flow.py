"""One flow: two ends and what went between them, with the state of a TCP connection."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Dict, List, Optional, Tuple

from .captures import Frame, Packet
from .series import moment

NAMES = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 51: "ah", 58: "icmpv6", 89: "ospf", 132: "sctp"}
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_FLAGS = ((SYN, "SYN"), (ACK, "ACK"), (FIN, "FIN"), (RST, "RST"), (PSH, "PSH"), (32, "URG"))

# What the states of a TCP connection mean; the names are those that Zeek gives.
STATES = {
    "S0": "a connection was attempted, and nothing answered",
    "S1": "established, not closed in the capture",
    "SF": "established and closed as usual",
    "REJ": "the attempt was rejected",
    "S2": "established, its origin closed, the other end did not",
    "S3": "established, the other end closed, its origin did not",
    "RSTO": "established, its origin aborted",
    "RSTR": "established, the other end aborted",
    "RSTOS0": "attempted, then its origin aborted; nothing answered",
    "RSTRH": "the other end answered and aborted; the attempt was not seen",
    "SH": "attempted and closed by its origin; nothing answered",
    "SHR": "the other end answered and closed; the attempt was not seen",
    "OTH": "under way when the capture began",
}

Key = Tuple[bytes, bytes, int, Optional[int], Optional[int]]


class Way:
    """One direction of a flow."""

    __slots__ = ("packets", "bytes", "payload", "flags", "next", "retransmitted", "missing")

    def __init__(self) -> None:
        self.packets = self.bytes = self.payload = self.flags = self.retransmitted = self.missing = 0
        self.next = -1  # the sequence number after the highest that was seen


class Flow:
    """One flow. The end that began it is its origin."""

    __slots__ = ("key", "first", "offset", "begin", "end", "last", "to", "back", "service", "detail", "tried", "answered", "rtt", "reset_by", "depth", "read")

    def __init__(self, key: Key, frame: Frame, depth: int) -> None:
        self.key = key
        self.first, self.offset = frame[0], frame[1]
        self.begin = self.end = frame[2]
        self.last = frame[0]
        self.to, self.back = Way(), Way()
        self.service: Optional[str] = None
        self.detail: Optional[str] = None
        self.tried: Optional[int] = None  # when the SYN was
        self.answered: Optional[int] = None  # and the SYN with ACK
        self.rtt: Optional[int] = None
        self.reset_by = 0  # 1 the origin, 2 the other end
        self.depth = depth
        self.read = 0  # packets with payload that were looked into

    def add(self, frame: Frame, packet: Packet, forward: bool, sequence: int) -> None:
        """Count a packet; sequence is that of a TCP segment."""
        at = frame[2]
        if at is not None:
            if self.end is None or at > self.end:
                self.end = at
            if self.begin is None or at < self.begin:
                self.begin = at
        self.last = frame[0]
        way = self.to if forward else self.back
        size = packet[11]
        way.packets += 1
        way.bytes += frame[5]
        way.payload += size
        if packet[3] == 6:
            flags = packet[6]
            if flags & SYN or not way.flags & flags == flags:
                self._signalled(flags, forward, at)
            way.flags |= flags
            self._followed(way, sequence, size + (1 if flags & SYN else 0) + (1 if flags & FIN else 0), size)
            if self.answered is not None and self.rtt is None and forward and flags & ACK and at is not None and self.tried is not None:
                self.rtt = at - self.tried

    def _signalled(self, flags: int, forward: bool, at: Optional[int]) -> None:
        if flags & SYN and forward and not flags & ACK and self.tried is None:
            self.tried = at
        elif flags & SYN and flags & ACK and not forward and self.answered is None:
            self.answered = at
        if flags & RST and not self.reset_by:
            self.reset_by = 1 if forward else 2

    @staticmethod
    def _followed(way: Way, sequence: int, span: int, size: int) -> None:
        """Follow the sequence numbers of one direction, which wrap at 2 to the 32."""
        after = (sequence + span) & 0xFFFFFFFF
        if way.next < 0:
            way.next = after
            return
        ahead = (sequence - way.next) & 0xFFFFFFFF
        if ahead < 0x80000000:
            way.missing += ahead  # segments that come late, or were not captured
            way.next = after
        else:
            if size:
                way.retransmitted += 1
            if (after - way.next) & 0xFFFFFFFF < 0x80000000:
                way.next = after

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return NAMES.get(self.key[2], str(self.key[2]))

    @property
    def bytes(self) -> int:
        """Bytes on the wire, both ways."""
        return self.to.bytes + self.back.bytes

    @property
    def duration(self) -> int:
        """Nanoseconds from the first packet to the last."""
        return 0 if self.begin is None or self.end is None else self.end - self.begin

    @property
    def state(self) -> Optional[str]:
        """The state of a TCP connection; None for other protocols."""
        if self.key[2] != 6:
            return None
        to, back = self.to.flags, self.back.flags
        opened = bool(to & SYN)
        answered = back & SYN and back & ACK
        if not opened:
            if answered:
                return "RSTRH" if self.reset_by == 2 else "SHR" if back & FIN else "OTH"
            return "OTH"
        if not answered:
            if self.reset_by == 2:
                return "REJ"
            return "RSTOS0" if self.reset_by == 1 else "SH" if to & FIN else "S0"
        if self.reset_by and not (to & FIN and back & FIN):
            if self.reset_by == 2 and not self.back.payload and not self.to.payload and self.rtt is None:
                return "REJ"
            return "RSTO" if self.reset_by == 1 else "RSTR"
        if to & FIN:
            return "SF" if back & FIN else "S2"
        return "S3" if back & FIN else "S1"

    def shown(self) -> Dict[str, Any]:
        """The flow as it stands in the result and in the table."""
        source, destination, _, port, other = self.key
        entry: Dict[str, Any] = {
            "source": str(ip_address(source)), "source_port": port, "destination": str(ip_address(destination)), "destination_port": other,
            "protocol": self.protocol, "service": self.service, "detail": self.detail, "state": self.state, "first_frame": self.first,
            "first_offset": self.offset, "last_frame": self.last, "begin": moment(self.begin), "end": moment(self.end),
            "duration_seconds": round(self.duration / 1e9, 6), "packets": self.to.packets + self.back.packets, "bytes": self.bytes,
            "packets_sent": self.to.packets, "bytes_sent": self.to.bytes, "payload_sent": self.to.payload, "packets_received": self.back.packets,
            "bytes_received": self.back.bytes, "payload_received": self.back.payload, "handshake_seconds": None if self.rtt is None else round(self.rtt / 1e9, 6),
            "retransmitted": self.to.retransmitted + self.back.retransmitted, "missing_bytes": self.to.missing + self.back.missing,
            "flags_sent": _flags(self.to.flags), "flags_received": _flags(self.back.flags), "tunnel_depth": self.depth,
        }  # fmt: skip
        return entry


def _flags(bits: int) -> List[str]:
    return [name for bit, name in _FLAGS if bits & bit]
