"""Inputs of any size for the tools of investigations, made to order: the same seed gives the same bytes.

python3 inputs.py KIND FILE MEGABYTES [SEED]; KIND is log, firewall, report, pcap, image, graph or system.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import time
import zlib
from typing import BinaryIO, Callable, Dict, Iterator, List

BEGIN = 1_772_697_600  # 2026-03-05T08:00:00Z
IOCS = ["198.51.100.77", "evil.example", "0123456789abcdef0123456789abcdef", "/tmp/.hidden/run"]
TARGET = "10.7.0.9"  # whom pcap_ip_search looks for


def _lines(file: BinaryIO, size: int, line: Callable[[], str], step: float) -> None:
    """Lines that begin with a time in ISO 8601, each later than the one before by at most step seconds."""
    at, written, second, stamp = float(BEGIN), 0, 0, ""
    rng = random.Random(5)
    while written < size:
        part: List[str] = []
        for _ in range(20000):
            at += rng.random() * step
            if int(at) != second:
                second = int(at)
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            part.append("%s.%03dZ %s\n" % (stamp, int(at * 1000) % 1000, line()))
        written += file.write("".join(part).encode())


def log(file: BinaryIO, size: int, seed: int) -> None:
    """What machines of a company write: a web server, an application, sshd and a few signs of what is known."""
    rng = random.Random(seed)
    number, pick = rng.randrange, rng.choice

    def line() -> str:
        kind, host = rng.random(), number(20)
        if kind < 0.45:
            return "host%d app[%d]: request %d took %d ms in module %s" % (host, number(300, 9000), rng.getrandbits(40), number(900), pick(("orders", "stock", "mail")))
        if kind < 0.80:
            return "host%d nginx: 10.0.%d.%d - - \"GET /item/%d HTTP/1.1\" %d %d" % (host, number(8), number(256), number(9999), pick((200, 200, 304, 404)), number(99999))
        if kind < 0.88:
            return "host%d sshd[%d]: Failed password for invalid user u%d from 192.0.2.%d port %d ssh2" % (host, number(300, 9000), number(40), number(12), number(1024, 65536))
        if kind < 0.89:
            return "host%d sshd[%d]: Accepted publickey for deploy from 10.1.0.%d port %d ssh2" % (host, number(300, 9000), number(12), number(1024, 65536))
        if kind < 0.99:
            return "host%d named[%d]: query h%d.example.org from 10.0.%d.%d" % (host, number(300, 9000), number(999), number(8), number(256))
        if kind < 0.995:
            return "host%d named[%d]: query %s from 10.0.0.%d" % (host, number(300, 9000), pick(("evil.example", "a.evil.example", "notevil.example", "evil.example.org")), number(256))
        return "host%d edr[%d]: md5=%s path=%s peer=%s" % (
            host, number(300, 9000), pick((IOCS[2], "%032x" % rng.getrandbits(128))), pick(("/tmp/.hidden/run", "/usr/bin/run")), pick(("198.51.100.77", "198.51.100.7")))  # fmt: skip

    _lines(file, size, line, 0.02)


def firewall(file: BinaryIO, size: int, seed: int) -> None:
    """Rows of a firewall, as netfilter writes them."""
    rng = random.Random(seed)
    number = rng.randrange

    def line() -> str:
        return "fw1 kernel: [UFW %s] IN=eth0 OUT= SRC=203.0.%d.%d DST=192.0.2.%d LEN=%d TTL=51 PROTO=%s SPT=%d DPT=%d SYN" % (
            "BLOCK" if rng.random() < 0.7 else "ALLOW", number(4), number(256), number(200), number(40, 1500), "TCP" if rng.random() < 0.9 else "UDP",
            number(1024, 65536), (22, 80, 443, 3389, 8080)[number(5)])  # fmt: skip

    _lines(file, size, line, 0.02)


def report(file: BinaryIO, size: int, seed: int) -> None:
    """Prose with indicators in it, some of them written so that no one clicks on them."""
    rng = random.Random(seed)
    words = "the loader was seen in mails of march and reaches its servers over the usual ports before it sleeps for an hour".split()
    written = 0
    while written < size:
        part = []
        for _ in range(5000):
            text = rng.choices(words, k=14)
            kind = rng.random()
            if kind < 0.02:
                text[7] = "45.%d.%d.%d" % (rng.randrange(4), rng.randrange(10), rng.randrange(1, 40))
            elif kind < 0.04:
                text[7] = "CVE-2024-%d" % rng.randrange(1000, 3000)
            elif kind < 0.06:
                text[7] = "%064x" % (rng.randrange(1, 2000) * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251F86C6A11D0C18E95 % (1 << 256))
            elif kind < 0.07:
                text[7] = "45[.]9[.]%d[.]%d" % (rng.randrange(10), rng.randrange(1, 40))
            part.append(" ".join(text))
        written += file.write(("\n".join(part) + "\n").encode())


def pcap(file: BinaryIO, size: int, seed: int) -> None:
    """A capture: some hundred connections at a time, over TCP and UDP; some of them of one address."""
    rng = random.Random(seed)
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    bodies = [rng.randbytes(n) for n in (0, 60, 400, 1200, 1400, 1400, 1400)]
    written, at = 24, BEGIN * 1_000_000
    open_flows: List[List[int]] = []
    made = 0
    while written < size:
        part = []
        for _ in range(5000):
            if len(open_flows) < 300:
                target = made % 50 == 0
                source = 0x0A070009 if target else 0x0A000000 + rng.randrange(1, 4000)
                open_flows.append([source, 0xC6336400 + rng.randrange(1, 200), 1024 + made % 60000, rng.choice((80, 443, 8443)), 1, 1, rng.randrange(5, 60), made % 5, 0])
                made += 1
            i = rng.randrange(len(open_flows))
            flow = open_flows[i]
            at += rng.randrange(900)
            part.append(_frame(flow, at, rng.choice(bodies)))
            flow[6] -= 1
            if flow[6] < 0:
                open_flows[i] = open_flows[-1]
                open_flows.pop()
        data = b"".join(part)
        written += file.write(data)


def _frame(flow: List[int], at: int, body: bytes) -> bytes:
    """The next frame of a connection: [source, destination, ports, next number of each side, left, kind, begun]."""
    source, destination, sport, dport, mine, theirs, left, kind, begun = flow
    if kind == 4:  # UDP, there and back
        back = left & 1
        segment = struct.pack(">HHHH", dport if back else sport, sport if back else dport, 8 + len(body), 0) + body
        protocol = 17
    else:
        back = 1 if begun and left % 3 else 0
        if not begun:
            flags, body = 2, b""
            flow[8] = 1
        elif begun == 1:
            flags, body, back = 18, b"", 1
            flow[8] = 2
        else:
            flags = 24 if body else 16
        number, other = (theirs, mine) if back else (mine, theirs)
        segment = struct.pack(">HHIIBBHHH", dport if back else sport, sport if back else dport, number, other if begun else 0, 0x50, flags, 8192, 0, 0) + body
        flow[5 if back else 4] = (number + len(body) + (flags & 2) // 2) & 0xFFFFFFFF
        protocol = 6
    a, b = (destination, source) if back else (source, destination)
    packet = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(segment), 1, 0, 64, protocol, 0, a, b) + segment
    frame = b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0" + packet
    return struct.pack("<IIII", at // 1_000_000, at % 1_000_000, len(frame), len(frame)) + frame


def image(file: BinaryIO, size: int, seed: int) -> None:
    """A PNG that says what it should, with much behind its end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    written = file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\1\2\0\3\4")) + chunk(b"IEND", b""))
    rng = random.Random(seed)
    while written < size:
        written += file.write(rng.randbytes(1 << 20))


def graph(file: BinaryIO, size: int, seed: int) -> None:
    """As many machines and ways between them as a graph of attacks may have; size does not matter."""
    rng = random.Random(seed)
    nodes: List[Dict[str, object]] = [{"id": "n%d" % i, "entry": i < 3, "target": i > 4996} for i in range(5000)]
    edges = [{"id": "e%d" % i, "from": "n%d" % rng.randrange(5000), "to": "n%d" % rng.randrange(5000), "probability": round(rng.uniform(0.1, 1), 3)} for i in range(50000)]
    file.write(json.dumps({"nodes": nodes, "edges": edges}).encode())


def system(file: BinaryIO, size: int, seed: int) -> None:
    """As many components and flows as a threat model may have; size does not matter."""
    rng = random.Random(seed)
    zones = [{"id": "z%d" % i, "trust": rng.randrange(11)} for i in range(100)]
    parts = [{"id": "c%d" % i, "type": rng.choice(("external", "process", "store")), "zone": "z%d" % rng.randrange(100), "criticality": rng.choice(("low", "high"))} for i in range(500)]
    flows = [{"id": "f%d" % i, "from": "c%d" % rng.randrange(500), "to": "c%d" % rng.randrange(500), "encrypted": rng.random() < 0.5} for i in range(2000)]
    file.write(json.dumps({"name": "as large as may be", "zones": zones, "components": parts, "flows": flows}).encode())


KINDS: Dict[str, Callable[[BinaryIO, int, int], None]] = {
    "log": log, "firewall": firewall, "report": report, "pcap": pcap, "image": image, "graph": graph, "system": system,
}  # fmt: skip
ENDINGS = {"log": "log", "firewall": "log", "report": "txt", "pcap": "pcap", "image": "png", "graph": "json", "system": "json"}


def make(kind: str, path: str, megabytes: int, seed: int = 1) -> None:
    """Write a file of that kind, of at least so many MiB where its kind has any size."""
    with open(path, "wb") as file:
        KINDS[kind](file, megabytes << 20, seed)


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
