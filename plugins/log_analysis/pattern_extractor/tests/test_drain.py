"""The algorithm: which lines share a template, and what a template says."""

from __future__ import annotations

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from drain import MAX_FIRST_WORDS, Miner, mask, render  # noqa: E402


def mine(lines: list[str], **options) -> dict[str, int]:
    miner = Miner(**options)
    miner.start_file("a")
    miner.add("\n".join(lines).encode())
    return {text: template.count for text, template in miner.templates()}


def words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(count))


class Masking(unittest.TestCase):
    CASES = {
        "2025-06-24 10:00:00,123 x": "<TIME> x",
        "2025-06-24T10:00:00.123Z x": "<TIME> x",
        "2025-06-24  10:00:00": "<TIME>",
        "[24/Jun/2025:10:00:00 +0000]": "[<TIME>]",
        "Jun  4 10:00:00 host": "<TIME> host",
        "Tue Jun 24 10:00:00 2025": "<TIME>",
        "Tue, 24 Jun 2025 10:00:00 +0200": "<TIME>",
        "at 10:00:00.": "at <TIME>.",
        "10.0.0.1:8080 and 10.0.0.0/8": "<IP>:<NUM> and <IP>",
        "from fe80::1ff:fe23:4567:890a or ::1 or 2001:db8:0:0:0:0:0:1": "from <IP> or <IP> or <IP>",
        "std::string dead::beef_x": "std::string dead::beef_x",
        "52:54:00:ab:cd:ef": "<MAC>",
        "550e8400-e29b-41d4-a716-446655440000": "<UUID>",
        "0x7ffe12 and 9fceb02d0ae5 and facade": "<HEX> and <HEX> and facade",
        "took 12 of 3.5 ms, 7s": "took <NUM> of <NUM> ms, <NUM>s",
        "eth0 user17": "eth<NUM> user<NUM>",
        "libc6:amd64 2.36-9+deb12u10": "libc<NUM>:amd64 <VER>",
        "1:9.2p1-2 12+nmu1 1.2.3 2025b-0+deb12u1": "<VER> <VER> <VER> <VER>",
        "bob@example.com wrote": "<EMAIL> wrote",
        "GET /a?b=c&d=e 1": "GET /a?<QUERY> <NUM>",
        'GET / HTTP/1.1" 503 7 "-" "curl/8 x"': 'GET / HTTP/1.1" 503 <NUM> "<STR>" "<STR>"',
        '"status": 404, "size": 405': '"status": 404, "size": <NUM>',
        "\x1b[31mred\x1b[0m": "red",
    }

    def test_values_become_masks(self) -> None:
        for line, want in self.CASES.items():
            with self.subTest(line):
                self.assertEqual(render(mask(line.encode())), want)

    def test_lines_are_masked_alike_alone_and_together(self) -> None:
        lines = list(self.CASES)
        self.assertEqual(mask("\n".join(lines).encode()), b"\n".join(mask(line.encode()) for line in lines))

    def test_no_line_stalls_it(self) -> None:
        for unit in ("1.", "1.a", "a:", "0:", "-", "a@", "\x1b[", "Jun ", '"', "1-", "?a=", "a (b), ", "=", "(", "{"):
            mine([unit * (8192 // len(unit)) for _ in range(3)])


class Templates(unittest.TestCase):
    def test_what_differs_becomes_a_wildcard(self) -> None:
        lines = ["user %s logged in from %s" % (n, h) for n in ("ann", "bob", "cy") for h in ("home", "work")]
        lines += ["disk sda is full"]
        got = mine(lines)
        self.assertEqual(got["disk sda is full"], 1)
        self.assertEqual(sum(got.values()), 7)
        got = mine(["send packet to %s over link" % name for name in ("ann", "bob", "cy")])
        self.assertEqual(got, {"send packet to <*> over link": 3})

    def test_lines_of_the_paper(self) -> None:
        got = mine(["Receive from node %d" % n for n in range(4)] + ["Send file to node %d" % n for n in range(3)])
        self.assertEqual(got, {"Receive from node <NUM>": 4, "Send file to node <NUM>": 3})

    def test_unlike_lines_stay_apart(self) -> None:
        got = mine(["start the pump now", "start the engine twice", "start of day report"], similarity=0.8)
        self.assertEqual(len(got), 3)

    def test_severity_and_status_stay_apart(self) -> None:
        got = mine(["%s cache flushed by worker" % level for level in ("INFO", "INFO", "ERROR")])
        self.assertEqual(got, {"INFO cache flushed by worker": 2, "ERROR cache flushed by worker": 1})
        got = mine(['1.2.3.4 - - "GET /a HTTP/1.1" %d 77' % status for status in (200, 200, 500)])
        self.assertEqual(got, {'<IP> - - "GET /a HTTP/1.1" 200 <NUM>': 2, '<IP> - - "GET /a HTTP/1.1" 500 <NUM>': 1})

    def test_a_syslog_header_does_not_hide_the_message(self) -> None:
        head = "Jun 24 10:00:0%d web sshd[%d]: "
        got = mine([(head % (n, n)) + verb + " password for root from 1.2.3.4 port 22 ssh2" for n in range(5) for verb in ("Failed", "Accepted")])
        self.assertEqual(sorted(got.values()), [5, 5])

    def test_json_values_vary_by_themselves(self) -> None:
        got = mine(['{"level":"info","user":"%s","msg":"order %d stored"}' % (n, i) for i, n in enumerate(("ann", "bob", "cy"))])
        self.assertEqual(got, {'{"level":"info","user":"<*>","msg":"order <NUM> stored"}': 3})

    def test_a_word_with_many_values_is_a_variable(self) -> None:
        rng = random.Random(1)
        names = [words(rng, 1) for _ in range(MAX_FIRST_WORDS * 3)]
        self.assertEqual(mine(["install %s <none> ok" % n for n in names]), {"install <*> <none> ok": len(names)})
        self.assertEqual(mine(["%s logged in today" % n for n in names]), {"<*> logged in today": len(names)})

    def test_a_covered_template_is_counted_under_the_wider_one(self) -> None:
        got = mine(["remove lib%s1 now <none>" % c for c in "abc"] + ["remove cmake now <none>", "purge cmake now <none>"])
        self.assertEqual(got, {"remove <*> now <none>": 4, "purge cmake now <none>": 1})

    def test_a_repeated_list_is_one_value(self) -> None:
        item = "a%s:amd64 (1.2.3)"
        got = mine(["Install: " + ", ".join(item % i for i in range(n)) for n in range(4, 12)])
        self.assertEqual(got, {"Install: <LIST>": 8})

    def test_blank_lines_are_counted_apart(self) -> None:
        miner = Miner()
        miner.start_file("a")
        miner.add(b"a\n\n  \t\nb")
        self.assertEqual((miner.lines, miner.blank, len(miner.templates())), (4, 2, 2))

    def test_first_last_and_examples(self) -> None:
        miner = Miner()
        miner.start_file("a")
        miner.add(b"job 1 done\nother thing\njob 22 done")
        miner.start_file("b")
        miner.add(b"job 3 done\njob x7 done")
        template = dict(miner.templates())["job <*> done"]
        self.assertEqual(miner.place_of(template.first), {"file": "a", "line": 1})
        self.assertEqual(miner.place_of(template.last), {"file": "b", "line": 2})
        self.assertEqual(template.examples, [(0, b"job 1 done"), (4, b"job x7 done")])


class Bounds(unittest.TestCase):
    def test_every_line_is_counted_once_whatever_happens(self) -> None:
        rng = random.Random(2)
        for limit in (10, 100, 5000):
            miner = Miner(max_templates=limit)
            miner.start_file("a")
            for _ in range(20):
                miner.add("\n".join(words(rng, rng.randint(0, 12)) + rng.choice(("", " 1", ": x", " = {")) for _ in range(300)).encode())
            found = miner.templates()
            self.assertLessEqual(len(found), limit)
            self.assertEqual(sum(t.count for _, t in found) + miner.other_lines + miner.blank, 6000)
        self.assertEqual(miner.other_lines, 0)

    def test_too_many_templates_are_given_up_and_said(self) -> None:
        rng = random.Random(3)
        miner = Miner(max_templates=20)
        miner.start_file("a")
        for n in range(200):
            miner.add((words(rng, n % 90 + 1) + "\nthe common line").encode())
        counts = {text: t.count for text, t in miner.templates()}
        self.assertEqual(counts["the common line"], 200)
        self.assertGreater(miner.other_lines, 0)
        self.assertLessEqual(len(counts), 20)

    def test_chunks_do_not_change_the_counts(self) -> None:
        lines = [b"alpha %d beta %s" % (n, name) for n in range(50) for name in (b"x", b"y", b"z")]
        results = []
        for size in (1, 7, 150):
            miner = Miner()
            miner.start_file("a")
            for start in range(0, len(lines), size):
                miner.add(b"\n".join(lines[start : start + size]))
            results.append([(text, t.count, t.first, t.last) for text, t in miner.templates()])
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])


if __name__ == "__main__":
    unittest.main()
