"""The packets of a capture, one after another, in bounded memory.

Read are pcap (both byte orders, micro- and nanoseconds) and pcapng (several
sections and interfaces, any time resolution), gzip included. A packet carries
its number and the byte offset of its record in the capture, decompressed, so
that the reader of a result can find it again.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from typing import BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple

from .tooling import Refused

MAX_RECORD = 1 << 24  # bytes of one record; what claims more is damage
_BLOCK = 1 << 20
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000), b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1),
}  # fmt: skip

# number from 1, offset of the record, nanoseconds since 1970 (None where the capture has none), link type, bytes, length on the wire
Frame = Tuple[int, int, Optional[int], int, bytes, int]


class Capture:
    """One capture; iterate over it once, then read its facts."""

    def __init__(self, path: str, told: Optional[Callable[[int, int], None]] = None) -> None:
        self.path = path
        self.format = ""
        self.packets = 0
        self.truncated_at: Optional[int] = None  # offset of the record that breaks off
        self.truncation = ""
        self.ignored_blocks = 0
        self._told = told
        self._base = 0  # offset of what _held begins with
        self._held = b""
        self._at = 0
        try:
            info = os.stat(path)
            if not stat.S_ISREG(info.st_mode):
                raise Refused("ARTIFACT_UNREADABLE", "%s is not a regular file" % os.path.basename(path), file_path=path)
            self.size = info.st_size
            self._raw: BinaryIO = open(path, "rb")
        except (FileNotFoundError, NotADirectoryError):
            raise Refused("ARTIFACT_NOT_FOUND", "there is no file %s" % path, file_path=path) from None
        except (OSError, ValueError) as err:
            raise Refused("ARTIFACT_UNREADABLE", "%s cannot be opened: %s" % (path, err), file_path=path) from None
        self.compressed = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._read: Callable[[int], bytes] = _Gunzip(self._raw).read if self.compressed else self._raw.read

    def __iter__(self) -> Iterator[Frame]:
        with self._raw:
            magic = self._take(4)
            if magic in _MAGIC:
                yield from self._pcap(*_MAGIC[magic])
            elif magic == b"\x0a\x0d\x0d\x0a":
                self._at -= 4
                yield from self._pcapng()
            else:
                raise Refused("ARTIFACT_UNREADABLE", "%s is no capture: it begins with neither pcap nor pcapng" % os.path.basename(self.path), file_path=self.path)

    def _more(self, size: int) -> bool:
        """Have so many bytes at hand; False where the file has fewer."""
        while len(self._held) - self._at < size:
            try:
                block = self._read(_BLOCK)
            except (OSError, EOFError, zlib.error) as err:
                self.truncation = "the gzip stream breaks off: %s" % err
                return False
            if not block:
                return False
            self._base += self._at
            self._held = self._held[self._at :] + block
            self._at = 0
            if self._told is not None:
                self._told(self._raw.tell(), self.size)
        return True

    def _take(self, size: int) -> bytes:
        if not self._more(size):
            return b""
        self._at += size
        return self._held[self._at - size : self._at]

    def _broken(self, at: int, why: str) -> None:
        self.truncated_at = at
        self.truncation = self.truncation or why

    def _pcap(self, order: str, unit: int) -> Iterator[Frame]:
        self.format = "pcap"
        head = self._take(20)
        if not head:
            raise Refused("ARTIFACT_UNREADABLE", "%s breaks off within its header" % os.path.basename(self.path), file_path=self.path)
        link = struct.unpack(order + "I", head[16:])[0] & 0xFFFF
        unpack = struct.Struct(order + "IIII").unpack_from
        number = 0
        while True:
            offset = self._base + self._at
            if len(self._held) - self._at < 16 and not self._more(16):
                if len(self._held) > self._at or self.truncation:
                    self._broken(offset, "the header of a record breaks off")
                return
            seconds, part, size, wire = unpack(self._held, self._at)
            if size > MAX_RECORD:
                return self._broken(offset, "a record claims %d bytes" % size)
            if len(self._held) - self._at < 16 + size and not self._more(16 + size):
                return self._broken(offset, "a record breaks off")
            start = self._at + 16
            self._at = start + size
            number += 1
            self.packets = number
            yield number, offset, seconds * 1000000000 + part * unit, link, self._held[start : self._at], wire

    def _pcapng(self) -> Iterator[Frame]:
        self.format = "pcapng"
        order = "<"
        links: List[Tuple[int, int, int, int]] = []  # link type, ticks a second, offset in seconds, snaplen
        while True:
            offset = self._base + self._at
            if not self._more(12):
                if len(self._held) > self._at or self.truncation:
                    self._broken(offset, "the header of a block breaks off")
                return
            head = self._held[self._at : self._at + 12]
            if head[:4] == b"\x0a\x0d\x0d\x0a":
                order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
                links = []
            kind, size = struct.unpack(order + "II", head[:8])
            if size < 12 or size > MAX_RECORD or size % 4:
                return self._broken(offset, "a block claims %d bytes" % size)
            block = self._take(size)
            if not block:
                return self._broken(offset, "a block breaks off")
            body = block[8:-4]
            try:
                if kind == 1:
                    links.append(_interface(order, body))
                elif kind in (2, 3, 6):
                    frame = self._packet(order, kind, body, links, offset)
                    yield frame
                elif kind != 0x0A0D0D0A:
                    self.ignored_blocks += 1
            except (struct.error, IndexError):
                return self._broken(offset, "a block of type %d is malformed" % kind)

    def _packet(self, order: str, kind: int, body: bytes, links: List[Tuple[int, int, int, int]], offset: int) -> Frame:
        at: Optional[int] = None
        if kind == 3:  # simple packet block: first interface, no time
            (wire,) = struct.unpack_from(order + "I", body)
            link, ticks, since, snap = links[0]
            size, start = min(wire, snap or wire, len(body) - 4), 4
        else:
            if kind == 6:
                interface, high, low, size, wire = struct.unpack_from(order + "IIIII", body)
            else:  # the obsolete packet block has the interface in two bytes
                interface, _, high, low, size, wire = struct.unpack_from(order + "HHIIII", body)
            link, ticks, since, _ = links[interface]
            at, start = (since * 1000000000) + ((high << 32) | low) * 1000000000 // ticks, 20
            if size > len(body) - start:
                raise struct.error("a packet is longer than its block")
        self.packets += 1
        return self.packets, offset, at, link, body[start : start + size], wire


class _Gunzip:
    """A gzip stream that gives all there is before it says that it breaks off."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._inner = zlib.decompressobj(31)

    def read(self, size: int) -> bytes:
        """Up to so many bytes, b"" at the end; raises EOFError or zlib.error."""
        while True:
            block = self._inner.unconsumed_tail or self._inner.unused_data or self._raw.read(_BLOCK >> 2)
            if self._inner.eof:
                if not block.strip(b"\0"):
                    return b""
                self._inner = zlib.decompressobj(31)  # the next member
            elif not block:
                raise EOFError("its end is missing")
            out = self._inner.decompress(block, size)
            if out:
                return out


def _interface(order: str, body: bytes) -> Tuple[int, int, int, int]:
    link, _, snap = struct.unpack_from(order + "HHI", body)
    ticks, since, at = 1000000, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == 0:
            break
        if code == 9 and size == 1:
            ticks = 1 << min(value[0] & 0x7F, 63) if value[0] & 0x80 else 10 ** min(value[0], 18)
        elif code == 14 and size == 8:
            (since,) = struct.unpack(order + "q", value)
        at += 4 + size + (-size) % 4
    return link, ticks, since, snap


# version, source, destination, protocol, source port, destination port, TCP flags, where the payload begins and where it ends in what was
# captured, how deep in tunnels, where the header after IP's begins, how many bytes of payload the packet had on the wire
Packet = Tuple[int, bytes, bytes, int, Optional[int], Optional[int], int, int, int, int, int, int]

_PORTS = struct.Struct(">HH").unpack_from
_EXTENSIONS = frozenset((0, 43, 60, 135, 139, 140))
_ETHERTYPES: Dict[int, int] = {0x0800: 4, 0x86DD: 6, 0x0806: -1}


def network(link: int, data: bytes) -> Tuple[int, int]:
    """Where the network layer begins, and 4, 6, -1 for ARP or 0 for what is not looked into; raises where it breaks off."""
    if link == 1:
        kind, at = (data[12] << 8) | data[13], 14
        while kind in (0x8100, 0x88A8, 0x9100):
            kind, at = (data[at + 2] << 8) | data[at + 3], at + 4
        return at, _ETHERTYPES.get(kind, 0)
    if link in (101, 12, 14, 228, 229):
        return 0, data[0] >> 4 if data[0] >> 4 in (4, 6) else 0
    if link == 113:
        return 16, _ETHERTYPES.get((data[14] << 8) | data[15], 0)
    if link == 276:
        return 20, _ETHERTYPES.get((data[0] << 8) | data[1], 0)
    if link in (0, 108):
        family = data[:4].strip(b"\0")
        return 4, {b"\x02": 4, b"\x18": 6, b"\x1c": 6, b"\x1e": 6}.get(family, 0)
    return 0, 0


def packets(link: int, data: bytes) -> List[Packet]:
    """The IP packets of a frame, the outermost first; raises IndexError or struct.error where one breaks off."""
    at, version = network(link, data)
    found: List[Packet] = []
    while version > 0 and len(found) < 5:
        packet, at, version = _ip(data, at, version, len(found))
        found.append(packet)
    return found


def _ip(data: bytes, at: int, version: int, depth: int) -> Tuple[Packet, int, int]:
    first = True  # no fragment, or the first
    if version == 4:
        size = (data[at] & 15) * 4
        total = (data[at + 2] << 8) | data[at + 3]
        protocol = data[at + 9]
        source, destination = data[at + 12 : at + 16], data[at + 16 : at + 20]
        first = not ((data[at + 6] & 0x1F) << 8) | data[at + 7]
        if len(destination) != 4 or size < 20:
            raise IndexError("the IP header breaks off")
        whole = at + total if total >= size else len(data)  # the sender's offload leaves 0
        at += size
    else:
        size = (data[at + 4] << 8) | data[at + 5]
        whole = at + 40 + size if size else len(data)  # a jumbogram says 0
        protocol = data[at + 6]
        source, destination = data[at + 8 : at + 24], data[at + 24 : at + 40]
        if len(destination) != 16:
            raise IndexError("the IPv6 header breaks off")
        at += 40
        while protocol in _EXTENSIONS or protocol == 44:
            if protocol == 44:
                first = not ((data[at + 2] << 8) | data[at + 3]) & 0xFFF8
                protocol, at = data[at], at + 8
                if not first:
                    break
            else:
                protocol, at = data[at], at + 8 + data[at + 1] * 8
    ports: Tuple[Optional[int], Optional[int]] = (None, None)
    flags, inner, head, end = 0, 0, at, min(len(data), whole)
    if first:
        if protocol == 6:
            ports = _PORTS(data, at)
            flags, at = data[at + 13], at + max(20, (data[at + 12] >> 4) * 4)
        elif protocol == 17:
            ports, at = _PORTS(data, at), at + 8
        elif protocol in (132, 136):
            ports, at = _PORTS(data, at), at + 12
        elif protocol in (4, 41):
            inner = 4 if protocol == 4 else 6
        elif protocol == 47:
            present, kind = data[at], (data[at + 2] << 8) | data[at + 3]
            if not data[at + 1] & 7:  # version 0; version 1 is PPTP
                at += 4 + (4 if present & 0x80 else 0) + (4 if present & 0x20 else 0) + (4 if present & 0x10 else 0)
                inner = max(0, _ETHERTYPES.get(kind, 0))
    return (version, source, destination, protocol, ports[0], ports[1], flags, min(at, end), end, depth, head, max(0, whole - at)), at, inner
