"""The lines of a file, in bounded chunks, whatever the file holds.

A chunk is bytes in UTF-8 (or what was meant to be) with newlines between its
lines and none after the last. Carriage returns before a newline are dropped;
where a file's start has carriage returns and no newlines, they end its lines.
"""

from __future__ import annotations

import codecs
import os
import stat
import zlib

CHUNK = 1 << 20
_PROBE = 4096
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Unreadable(Exception):
    """A file that cannot be read. Its code is one of FILE_NOT_FOUND, NOT_A_FILE, FILE_UNREADABLE."""

    def __init__(self, code: str, message: str, path: str) -> None:
        super().__init__(message + ": " + path)
        self.code = code
        self.path = path


class Reader:
    """Reads one file's lines; iterate over it once, then read its totals.

    bytes counts the text read (after decompression), position how far into the
    file itself reading has come. Truncated counts lines cut at max_line_bytes.
    Damage says why a compressed file could not be read to its end.
    """

    def __init__(self, path: str, max_line_bytes: int = 8192) -> None:
        self.path = path
        self.encoding = "utf-8"
        self.compressed = False
        self.size = 0
        self.position = 0
        self.bytes = 0
        self.lines = 0
        self.truncated = 0
        self.bad_bytes = False
        self.damage = ""
        self._limit = max_line_bytes
        try:
            info = os.stat(path)
            if not stat.S_ISREG(info.st_mode):
                raise Unreadable("NOT_A_FILE", "not a regular file", path)
            self.size = info.st_size
            self._file = open(path, "rb", buffering=0)
        except (FileNotFoundError, NotADirectoryError):
            raise Unreadable("FILE_NOT_FOUND", "no such file", path) from None
        except (OSError, ValueError) as err:
            raise Unreadable("FILE_UNREADABLE", "cannot open (%s)" % (getattr(err, "strerror", None) or err), path) from None

    def close(self) -> None:
        """Close the file; reading to the end does so too."""
        self._file.close()

    def __iter__(self):
        with self._file:
            carry = b""
            cutting = False  # inside a line whose start is in carry and whose rest is not wanted
            for block in self._blocks():
                end = block.rfind(b"\n")
                if end < 0:
                    if not cutting:
                        carry += block
                    # One byte more than a line may have marks the line as too long.
                    # A carriage return at the end might yet be part of the line's ending.
                    if len(carry) > self._limit + 1:
                        carry = carry[: self._limit + 2]
                        cutting = True
                    continue
                if cutting:
                    start = block.index(b"\n")
                    yield self._chunk(carry + block[start:end])
                else:
                    yield self._chunk(carry + block[:end])
                carry, cutting = block[end + 1 :], False
            if carry:
                yield self._chunk(carry)

    def _chunk(self, text: bytes) -> bytes:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
            if text.endswith(b"\r"):
                text = text[:-1]
        lines = text.split(b"\n")
        self.lines += len(lines)
        if len(max(lines, key=len)) > self._limit:
            for i, line in enumerate(lines):
                if len(line) > self._limit:
                    self.truncated += 1
                    lines[i] = self._cut(line)
            text = b"\n".join(lines)
        if not self.bad_bytes and not text.isascii():
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                self.bad_bytes = True
        return text

    def _cut(self, line: bytes) -> bytes:
        """The start of a line, without half a character at its end."""
        end = self._limit
        while end > self._limit - 3 and line[end] & 0xC0 == 0x80:
            end -= 1
        return line[:end]

    def _blocks(self):
        """The file's text as UTF-8, with newlines as line ends, in blocks of about CHUNK bytes."""
        blocks = self._raw()
        first = next(blocks, b"")
        if not first:
            return
        skip = 0
        for bom, name in _BOMS:
            if first.startswith(bom):
                self.encoding, skip = name, len(bom)
                break
        else:
            self.encoding = _guess(first[:_PROBE])
        first = first[skip:]
        decoder = None
        if self.encoding != "utf-8":
            decoder = codecs.getincrementaldecoder(self.encoding)("replace")
            first = decoder.decode(first).encode("utf-8", "replace")
        only_cr = b"\r" in first[:65536] and b"\n" not in first
        if only_cr:
            first = first.replace(b"\r", b"\n")
        yield first
        for block in blocks:
            if decoder:
                block = decoder.decode(block).encode("utf-8", "replace")
            yield block.replace(b"\r", b"\n") if only_cr else block
        if decoder:
            yield decoder.decode(b"", True).encode("utf-8", "replace")

    def _raw(self):
        """The file's bytes, decompressed."""
        try:
            self.compressed = self._file.read(2) == b"\x1f\x8b"
            self._file.seek(0)
            for block in self._gunzip() if self.compressed else iter(lambda: self._file.read(CHUNK), b""):
                self.position = self._file.tell()
                self.bytes += len(block)
                yield block
        except OSError as err:
            raise Unreadable("FILE_UNREADABLE", "cannot read (%s)" % (err.strerror or err), self.path) from None

    def _gunzip(self):
        """The text of a gzip file, up to where it is damaged if it is."""
        import gzip

        source = gzip.GzipFile(fileobj=self._file, mode="rb")
        block = b""
        try:
            # read would lose what precedes damage; read1 returns it, but little at a time.
            while True:
                part = source.read1(1 << 16)
                block += part
                if not part:
                    break
                if len(block) >= CHUNK:
                    yield block
                    block = b""
        except (EOFError, zlib.error, gzip.BadGzipFile) as err:
            self.damage = str(err)
        if block:
            yield block


def _guess(start: bytes) -> str:
    """The encoding of text without a byte order mark: text in UTF-16 has a NUL in most of its pairs, on one side."""
    pairs = len(start) // 2
    if pairs >= 2:
        even, odd = start[0::2].count(0), start[1::2].count(0)
        if odd > 0.4 * pairs and even < 0.1 * pairs:
            return "utf-16-le"
        if even > 0.4 * pairs and odd < 0.1 * pairs:
            return "utf-16-be"
    return "utf-8"
