"""Logs made to order: for tests, and as a program for files of any size.

python3 logs.py FILE MEGABYTES [SEED] writes a log of mixed lines.
"""

from __future__ import annotations

import datetime
import random
import sys
from typing import BinaryIO, List

BEGIN = datetime.datetime(2026, 3, 5, 8)
IOCS = ["198.51.100.77", "203.0.113.0/28", "evil.example", "http://pay.example.net/drop.bin", "0123456789abcdef0123456789abcdef", "2001:db8::bad", "/tmp/.hidden/run"]


def lines(seed: int, count: int) -> List[str]:
    """So many lines, some of which have an indicator or are a sign."""
    rng = random.Random(seed)
    out, at = [], BEGIN

    def address() -> str:
        return "%d.%d.%d.%d" % (rng.randrange(1, 224), rng.randrange(256), rng.randrange(256), rng.randrange(256))

    for _ in range(count):
        at += datetime.timedelta(milliseconds=rng.randrange(900))
        ip = rng.choice((address(), address(), "10.0.%d.%d" % (rng.randrange(8), rng.randrange(256))))
        text = rng.choices(
            (
                "nginx: %s - - \"GET /item/%d HTTP/1.1\" 200 %d" % (ip, rng.randrange(9999), rng.randrange(99999)),
                "sshd[%d]: Failed password for invalid user u%d from %s port %d ssh2" % (rng.randrange(9999), rng.randrange(40), "192.0.2.%d" % rng.randrange(12), rng.randrange(65536)),
                "sshd[%d]: Accepted publickey for deploy from 192.0.2.%d port %d ssh2" % (rng.randrange(9999), rng.randrange(12), rng.randrange(65536)),
                "kernel: IN=eth0 SRC=%s DST=10.0.0.1 LEN=60 DPT=%d" % (rng.choice((ip, "198.51.100.77", "203.0.113.%d" % rng.randrange(32))), rng.randrange(65536)),
                "named: query %s.%s from %s" % ("h%d" % rng.randrange(999), rng.choice(("example.org", "evil.example", "notevil.example", "evil.example.org")), ip),
                "proxy: user=u%d url=\"%s\" from=[%s]" % (rng.randrange(99), rng.choice(("http://pay.example.net/drop.bin", "http://pay.example.net/drop.bin2", "https://shop.example/")), rng.choice(("2001:db8::bad", "2001:0db8:0:0::0bad", "2001:db8::bade"))),
                "edr: sha1=- md5=%s path=%s" % (rng.choice(("0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF", "%032x" % rng.getrandbits(128))), rng.choice(("/tmp/.hidden/run", "/usr/bin/run"))),
                "app: request %d took %d ms in module orders" % (rng.getrandbits(40), rng.randrange(900)),
            ),
            (40, 6, 1, 4, 4, 1, 1, 60),
        )[0]  # fmt: skip
        out.append("%sZ host%d %s" % (at.isoformat(timespec="milliseconds"), rng.randrange(20), text))
    return out


def write(file: BinaryIO, megabytes: int, seed: int = 1) -> int:
    """Write a log of about so many megabytes; how many lines."""
    block = ("\n".join(lines(seed, 40000)) + "\n").encode()
    times = max(1, (megabytes << 20) // len(block))
    for _ in range(times):
        file.write(block)
    return 40000 * times


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        print(write(out, int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
