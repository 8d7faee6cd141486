"""Captures made to order: for tests, and as a program for files of any size.

python3 traffic.py FILE MEGABYTES [SEED] writes a pcap of mixed traffic.
"""

from __future__ import annotations

import random
import struct
import sys
from typing import BinaryIO, Iterable, List, Optional, Tuple

BEGIN = 1_772_700_000 * 1_000_000_000


def v4(source: bytes, destination: bytes, protocol: int, payload: bytes, fragment: int = 0) -> bytes:
    """An IPv4 packet."""
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, fragment, 64, protocol, 0, source, destination) + payload


def v6(source: bytes, destination: bytes, protocol: int, payload: bytes, extensions: bytes = b"") -> bytes:
    """An IPv6 packet; extensions has the headers before the payload, whose first says 0."""
    first = 0 if extensions else protocol
    return struct.pack(">IHBB16s16s", 6 << 28, len(extensions) + len(payload), first, 64, source, destination) + extensions + payload


def udp(source: int, destination: int, payload: bytes = b"") -> bytes:
    """A UDP datagram."""
    return struct.pack(">HHHH", source, destination, 8 + len(payload), 0) + payload


def tcp(source: int, destination: int, flags: int, seq: int = 0, ack: int = 0, payload: bytes = b"") -> bytes:
    """A TCP segment."""
    return struct.pack(">HHIIBBHHH", source, destination, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 8192, 0, 0) + payload


def ether(payload: bytes, kind: int = 0x0800, vlan: Optional[int] = None) -> bytes:
    """An Ethernet frame."""
    tag = struct.pack(">HH", 0x8100, vlan) if vlan is not None else b""
    return b"\x02\0\0\0\0\1\x02\0\0\0\0\2" + tag + struct.pack(">H", kind) + payload


def arp(operation: int, sender: bytes, target: bytes) -> bytes:
    """An ARP packet in its frame."""
    return ether(struct.pack(">HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, b"\x02\0\0\0\0\1", sender, bytes(6), target), 0x0806)


def dns(name: str, *answers: bytes) -> bytes:
    """A DNS message: a question, or its answers, whose names point to it."""
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    message = struct.pack(">HHHHHH", 7, 0x8180 if answers else 0x0100, 1, len(answers), 0, 0) + question + struct.pack(">HH", 1, 1)
    for address in answers:
        message += struct.pack(">HHHIH", 0xC00C, 1 if len(address) == 4 else 28, 1, 60, len(address)) + address
    return message


def pcap(frames: Iterable[Tuple[int, bytes]], link: int = 1, order: str = "<", nano: bool = True) -> bytes:
    """A pcap file of frames with their nanoseconds."""
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for at, data in frames:
        seconds, part = divmod(at, 1_000_000_000)
        out.append(struct.pack(order + "IIII", seconds, part if nano else part // 1000, len(data), len(data)) + data)
    return b"".join(out)


def pcapng(frames: Iterable[Tuple[int, bytes]], link: int = 1, order: str = "<") -> bytes:
    """A pcapng file of one section and one interface that counts nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))

    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out.append(block(1, struct.pack(order + "HHI", link, 0, 0) + struct.pack(order + "HHB3x", 9, 1, 9) + struct.pack(order + "HH", 0, 0)))
    out.append(block(5, struct.pack(order + "III", 0, 0, 0)))  # statistics, which hold no packet
    for at, data in frames:
        out.append(block(6, struct.pack(order + "IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(data), len(data)) + data))
    return b"".join(out)


def mixed(seed: int, count: int, payload: int = 200) -> List[Tuple[int, bytes]]:
    """So many frames of every kind that the readers know, some of them cut short."""
    rng = random.Random(seed)
    hosts = [bytes([10, 0, rng.randrange(4), rng.randrange(256)]) for _ in range(300)]
    wide = [b"\x20\x01\x0d\xb8" + bytes(11) + bytes([i]) for i in range(40)]
    at, out = BEGIN, []
    for _ in range(count):
        at += rng.randrange(5_000_000)
        a, b = rng.sample(hosts, 2)
        c, d = rng.sample(wide, 2)
        body = bytes(rng.randrange(payload + 1))
        port, service = rng.randrange(1024, 65536), rng.choice((22, 80, 443, 3389, 8080))
        made = (
            lambda: ether(v4(a, b, 6, tcp(port, service, rng.choice((2, 16, 18, 24, 17, 4)), rng.getrandbits(32), 1, body))),
            lambda: ether(v4(a, b, 17, udp(port, service, body))),
            lambda: ether(v6(c, d, 6, tcp(port, service, 24, 5, 1, body)), 0x86DD),
            lambda: ether(v6(c, d, 17, udp(port, service, body), bytes([17, 0, 1, 4, 0, 0, 0, 0])), 0x86DD, 7),
            lambda: ether(v4(a, b, 6, tcp(port, service, 24, 9, 9, body)), 0x0800, 12),
            lambda: arp(rng.choice((1, 2)), a, b),
            lambda: ether(v4(a, b, 17, udp(53, port, dns("h%d.example.org" % rng.randrange(50), rng.choice(hosts), rng.choice(wide))))),
            lambda: ether(v4(a, b, 1, struct.pack(">BBHI", 3, 1, 0, 0) + v4(*rng.sample(hosts, 2), 17, udp(port, 53)))),
            lambda: ether(v4(a, b, 4, v4(*rng.sample(hosts, 2), 17, udp(port, service, body)))),
            lambda: ether(v4(a, b, 17, body + bytes(8), 185)),  # a later fragment
        )
        data = rng.choices(made, (20, 8, 6, 4, 4, 2, 4, 1, 2, 1))[0]()
        out.append((at, data[: rng.randrange(15, 40)] if rng.random() < 0.002 else data))
    return out


def write(file: BinaryIO, megabytes: int, seed: int = 1) -> int:
    """Write a capture of about so many megabytes, block by block; how many frames."""
    file.write(pcap([]))
    frames, size, part = 0, 0, mixed(seed, 20000, 1200)
    span = part[-1][0] - BEGIN + 1
    step = 0
    while size < megabytes << 20:
        text = pcap((at + step * span, data) for at, data in part)[24:]
        file.write(text)
        size += len(text)
        frames += len(part)
        step += 1
    return frames


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        print(write(out, int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
