"""Writes a log of mixed origin: syslog, sshd, web access, JSON, dpkg, an application and now and then a stack trace.

    python3 generate_log.py --bytes 200000000 --seed 1 > mixed.log

The same size and seed give the same bytes. Lines are made in a batch of about
two megabytes at a time by filling in templates; one line in about 20,000 is of
a kind seen nowhere else.
"""

from __future__ import annotations

import random
import sys
import time

USERS = [a + b for a in ("al", "bo", "ca", "da", "el", "fi", "gu", "ha") for b in ("ice", "ris", "rla", "vid", "len", "ona")]
HOSTS = ["web01", "web02", "db01", "cache01"]
PACKAGES = [a + b + ":amd64" for a in ("lib", "python3-", "gir1.2-") for b in ("ssl3", "curl4", "xml2", "glib", "sqlite3", "pq5", "z1g")]
WORDS = "queue worker index shard replica segment bucket cursor session cache batch token lease stream".split()
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%d.0" % (v, v) for v in range(100, 130)
] + ["curl/7.88.1", "Mozilla/5.0 (compatible; bot/2.1; +http://example.com/bot.html)", "-"]
HEX = "\x01"  # stands for 12 random hexadecimal digits until the line is written
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def line(rng: random.Random, now: int) -> str:
    """One line of the time now, in seconds."""
    t = time.gmtime(now)
    pick, number = rng.choice, rng.randrange
    ip = "%d.%d.%d.%d" % (number(1, 224), number(256), number(256), number(1, 255))
    syslog = "%s %2d %02d:%02d:%02d %s " % (MONTHS[t[1] - 1], t[2], t[3], t[4], t[5], pick(HOSTS))
    iso = "%04d-%02d-%02d %02d:%02d:%02d" % t[:6]
    kind = rng.random()
    if kind < 0.12:
        return syslog + "sshd[%d]: Failed password for %s%s from %s port %d ssh2" % (
            number(300, 60000), pick(("", "invalid user ")), pick(USERS), ip, number(1024, 65536))
    if kind < 0.16:
        return syslog + "sshd[%d]: Accepted publickey for %s from %s port %d ssh2: RSA SHA256:%s%s" % (
            number(300, 60000), pick(USERS), ip, number(1024, 65536), HEX, HEX)
    if kind < 0.22:
        return syslog + "CRON[%d]: (%s) CMD (/usr/lib/%s/run --shard %d)" % (number(300, 60000), pick(USERS), pick(WORDS), number(64))
    if kind < 0.30:
        return syslog + "kernel: [%d.%06d] eth%d: link %s, %d Mbps, full duplex" % (
            number(10**6), number(10**6), number(4), pick(("up", "down")), pick((100, 1000, 10000)))
    if kind < 0.55:
        return '%s - - [%02d/%s/%04d:%02d:%02d:%02d +0000] "%s /api/v1/%s/%d/%s?page=%d HTTP/1.1" %d %d "-" "%s"' % (
            ip, t[2], MONTHS[t[1] - 1], t[0], t[3], t[4], t[5], pick(("GET", "GET", "GET", "POST", "PUT")), pick(WORDS),
            number(10**6), pick(WORDS), number(50), pick((200, 200, 200, 200, 201, 304, 404)), number(10**5), pick(AGENTS))
    if kind < 0.70:
        return '{"ts":"%sZ","level":"%s","logger":"app.%s","msg":"%s %s finished in %d ms","request_id":"%08x-%04x-4%03x-9%03x-%s","user":"%s"}' % (
            iso.replace(" ", "T"), pick(("info", "info", "info", "warn", "debug")), pick(WORDS), pick(WORDS), pick(WORDS), number(9000),
            rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(12), rng.getrandbits(12), HEX, pick(USERS))
    if kind < 0.80:
        return "%s status %s %s %d.%d.%d-%d+deb12u%d" % (
            iso, pick(("installed", "unpacked", "half-configured")), pick(PACKAGES), number(9), number(40), number(20), number(9), number(9))
    if kind < 0.97:
        return "%s,%03d %s [pool-%d-thread-%d] com.example.%s.Service - %s %s=%d took %d.%02ds commit %s" % (
            iso, number(1000), pick(("INFO", "INFO", "INFO", "DEBUG", "WARN")), number(9), number(64), pick(WORDS),
            pick(("Rebuilt index for", "Flushed buffers of", "Scheduled compaction of", "Opened connection to")), pick(WORDS),
            number(10**6), number(90), number(100), HEX)
    if kind < 0.99995:
        return "    at com.example.%s.Service.%s(Service.java:%d)" % (pick(WORDS), pick(("run", "call", "open", "close")), number(900))
    return syslog + "raid[%d]: %s %s lost member sd%s, degraded" % (number(99), pick(WORDS), pick(WORDS), pick("abcdef"))


def main(args: list[str]) -> None:
    options = dict(zip(args[0::2], args[1::2]))
    left = int(options.get("--bytes", 1_000_000))
    rng = random.Random(int(options.get("--seed", 1)))
    now = 1_700_000_000
    # Filling in lines is slow. After eight batches a new one is an old one with
    # new hexadecimal digits and other digits among 6 to 9.
    batches: list[bytes] = []
    while left > 0:
        if len(batches) < 8:
            lines = []
            for _ in range(16000):
                now += rng.random() < 0.3
                lines.append(line(rng, now))
            batch = "\n".join(lines).encode() + b"\n"
            batches.append(batch)
        else:
            start = rng.randrange(1 << 20)
            batch = rng.choice(batches)
            batch = batch[batch.index(b"\n", start) + 1 :]
            batch = batch.translate(bytes.maketrans(b"6789", bytes(rng.sample(b"6789", 4))))
        pieces = batch.split(HEX.encode())
        digits = b"%x" % rng.getrandbits(48 * len(pieces) + 4)
        batch = b"".join([piece + digits[12 * i : 12 * i + 12] for i, piece in enumerate(pieces[:-1])] + pieces[-1:])
        sys.stdout.buffer.write(batch if left > len(batch) else batch[: left - 1] + b"\n")
        left -= len(batch)


if __name__ == "__main__":
    main(sys.argv[1:])
