"""The wire on pipes of its own: descriptors that do not wait, frames in pieces, depth."""

from __future__ import annotations

import collections
import dataclasses
import enum
import os
import threading
import unittest

import peer  # noqa: F401  puts the SDK on the path

from mortise import PluginError
from mortise._wire import MAX_DEPTH, Wire, dumps, loads, pack


class Pipes(unittest.TestCase):
    def setUp(self) -> None:
        self.ours, theirs = os.pipe()
        read, self.feed = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(theirs, False)
        self.wire = Wire(read, theirs)
        self.fds = [self.ours, theirs, read, self.feed]

    def tearDown(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def test_a_write_in_pieces_is_whole(self) -> None:
        frame = bytes(range(256)) * 4096
        got = b""
        thread = threading.Thread(target=lambda: [self.wire.write(frame) for _ in range(2)])
        thread.start()
        while len(got) < 2 * len(frame):
            got += os.read(self.ours, 5000)
        thread.join()
        self.assertEqual(got, frame + frame)

    def test_lines_come_in_order_and_the_last_needs_no_end(self) -> None:
        self.assertFalse(self.wire.readable())
        thread = threading.Timer(0.02, lambda: [os.write(self.feed, b"a\nb\nc"), os.write(self.feed, b"d\n\ne")])
        thread.start()
        self.assertEqual([self.wire.read_line() for _ in range(4)], [b"a", b"b", b"cd", b""])
        thread.join()
        self.assertFalse(self.wire.readable())
        self.fds.remove(self.feed)
        os.close(self.feed)
        self.assertTrue(self.wire.readable())
        self.assertEqual([self.wire.read_line(), self.wire.read_line()], [b"e", None])


class Codec(unittest.TestCase):
    def test_what_is_not_one_object_is_refused(self) -> None:
        for line in [b"", b"[]", b"1", b'{"a":1} x', b'{"a":NaN}', b'{"a":"\xff"}', b"{'a':1}", b'{"a":1}{}', b'{"a"']:
            with self.subTest(line), self.assertRaises(ValueError):
                loads(line)
        self.assertEqual(loads(b' {"a": [1.5, "\\u00e9"]}\r'), {"a": [1.5, "é"]})

    def test_of_keys_that_spell_alike_the_last_stays(self) -> None:
        class Kind(enum.IntEnum):
            ONE = 1

        @dataclasses.dataclass
        class Held:
            value: object

        alike = {
            '{"codes":{"200":6},"n":{"null":2}}': {"codes": {200: 5, "200": 6}, "n": {None: 1, "null": 2}},
            '[{"true":[{"false":2}]}]': [{"true": 1, True: ({False: 1, "false": 2},)}],
            '{"value":{"1":2}}': Held({1: 1, "1": 2}),
            '{"-1.5":2,"1":4,"1e+22":6}': {-1.5: 1, "-1.5": 2, Kind.ONE: 3, "1": 4, 1e22: 5, "1e+22": 6},
            '{"3":1,"4":2,"md5":"0"}': {3: 1, "4": 2, "md5": "0"},
            '{"a":{"7":1}}': {"a": collections.Counter({7: 2, "7": 1})},
        }
        for text, value in alike.items():
            self.assertEqual(dumps(value), text)
        for odd in ({(1, 2): 1, 1: 1, "1": 1}, {1: 1, "1": {1}}):
            self.assertRaises(TypeError, dumps, odd)

    def test_depth(self) -> None:
        def nest(depth: int) -> str:
            return "[" * depth + "]" * depth

        for text in [nest(MAX_DEPTH), "[" + "{}," * 500 + "{}]", '["' + "[" * 100 + '"]', '["\\"' + "{" * 100 + '"]']:
            self.assertEqual(pack(text, 1 << 20), text.encode())
        for text in [nest(MAX_DEPTH + 1), '["]]]]",' + nest(MAX_DEPTH) + "]"]:
            with self.assertRaises(PluginError):
                pack(text, 1 << 20)
