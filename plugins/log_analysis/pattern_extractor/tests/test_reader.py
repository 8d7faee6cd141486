"""The lines of good, odd and bad files."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import reader  # noqa: E402


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.log")

    def read(self, content: bytes, **options) -> tuple[list[bytes], reader.Reader]:
        with open(self.path, "wb") as file:
            file.write(content)
        r = reader.Reader(self.path, **options)
        return [line for chunk in r for line in chunk.split(b"\n")], r

    def test_line_ends(self) -> None:
        for content in (b"a\nb\n", b"a\nb", b"a\r\nb\r\n", b"a\r\nb", b"a\rb\r", b"a\rb", b"\xef\xbb\xbfa\nb\n"):
            with self.subTest(content):
                lines, r = self.read(content)
                self.assertEqual((lines, r.lines, r.bytes), ([b"a", b"b"], 2, len(content)))

    def test_a_carriage_return_within_a_line_stays(self) -> None:
        self.assertEqual(self.read(b"5%\r10%\r\nb\n")[0], [b"5%\r10%", b"b"])

    def test_blank_lines_count(self) -> None:
        self.assertEqual(self.read(b"\n\na\n\n")[0], [b"", b"", b"a", b""])

    def test_empty(self) -> None:
        lines, r = self.read(b"")
        self.assertEqual((lines, r.lines), ([], 0))

    def test_nul_bytes_are_text(self) -> None:
        lines, r = self.read(b"a\0b\n" + b"\0" * 50 + b"\nc\n")
        self.assertEqual((lines[0], len(lines), r.encoding), (b"a\0b", 3, "utf-8"))

    def test_utf16(self) -> None:
        text = "caf\u00e9 one\r\ntwo \U0001f600\n"
        for encoding, bom in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("utf-16-le", b""), ("utf-16-be", b"")):
            with self.subTest(encoding=encoding, bom=bom):
                lines, r = self.read(bom + text.encode(encoding))
                self.assertEqual(([line.decode() for line in lines], r.encoding), (["caf\u00e9 one", "two \U0001f600"], encoding))

    def test_bad_bytes_are_noticed(self) -> None:
        self.assertTrue(self.read(b"ok\n\xff\xfe\xfa bad\n")[1].bad_bytes)
        self.assertFalse(self.read("\u00e9\n".encode())[1].bad_bytes)

    def test_long_lines_are_cut(self) -> None:
        lines, r = self.read(b"x" * 300 + b"\nshort\n" + b"y" * 100, max_line_bytes=100)
        self.assertEqual(([len(line) for line in lines], r.truncated), ([100, 5, 100], 1))
        self.assertEqual(self.read(b"x" * 99 + "\u00e9".encode(), max_line_bytes=100)[0], [b"x" * 99])
        self.assertEqual(self.read(b"x" * 100 + b"\r\n", max_line_bytes=100)[1].truncated, 0)

    def test_blocks_do_not_show(self) -> None:
        content = b"".join(b"%d%s\r\n" % (n, b"z" * (n % 37)) for n in range(300)) + b"w" * 500 + b"\nend"
        want, _ = self.read(content, max_line_bytes=64)
        for size in (1, 3, 64, 65, 66, 1000):
            with self.subTest(size), mock.patch.object(reader, "CHUNK", size):
                lines, r = self.read(content, max_line_bytes=64)
                self.assertEqual((lines, r.truncated), (want, 1))

    def test_gzip(self) -> None:
        lines, r = self.read(gzip.compress(b"a\nb\n") + gzip.compress(b"c\n"))
        self.assertEqual((lines, r.compressed, r.damage, r.bytes), ([b"a", b"b", b"c"], True, "", 6))

    def test_damaged_gzip_gives_what_can_be_read(self) -> None:
        whole = gzip.compress(b"".join(b"line %d\n" % (n * n) for n in range(100000)))
        for content in (whole[: len(whole) // 2], whole[:5000] + b"\0" * 5000, b"\x1f\x8bnot gzip at all", b"\x1f\x8b"):
            with self.subTest(content[:20]):
                self.assertTrue(self.read(content)[1].damage)
        self.assertEqual(self.read(whole[: len(whole) // 2])[0][7], b"line 49")

    def test_files_that_cannot_be_read(self) -> None:
        folder = os.path.dirname(self.path)
        for path, code in ((self.path, "FILE_NOT_FOUND"), (folder, "NOT_A_FILE"), ("/dev/null", "NOT_A_FILE"), ("a\0b", "FILE_UNREADABLE")):
            with self.subTest(path), self.assertRaises(reader.Unreadable) as caught:
                reader.Reader(path)
            self.assertEqual(caught.exception.code, code)
        self.read(b"secret\n")
        with mock.patch("builtins.open", side_effect=PermissionError(13, "Permission denied")):
            with self.assertRaises(reader.Unreadable) as caught:
                reader.Reader(self.path)
        self.assertEqual(caught.exception.code, "FILE_UNREADABLE")


if __name__ == "__main__":
    unittest.main()
