"""The text of a file, in bounded memory, whatever the file holds.

Bytes become text as UTF-8, as UTF-16 where a byte order mark or the place of
the NULs says so, and line by line as Latin-1 where a line is neither. NULs are
counted and left out. Files compressed with gzip are read as what they hold.
"""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import zlib
from typing import BinaryIO, Callable, Iterator, List, Optional, Tuple

BLOCK = 1 << 20
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BINARY = (
    (b"ElfFile\x00", "a Windows event log in binary form (EVTX); export it as XML or CSV"),
    (b"\x7fELF", "a program (ELF)"),
    (b"MZ\x90\x00", "a Windows program"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\xd4\xc3\xb2\xa1", "a packet capture (pcap)"),
    (b"\xa1\xb2\xc3\xd4", "a packet capture (pcap)"),
    (b"\x4d\x3c\xb2\xa1", "a packet capture (pcap)"),
    (b"\xa1\xb2\x3c\x4d", "a packet capture (pcap)"),
    (b"\x0a\x0d\x0d\x0a", "a packet capture (pcapng)"),
    (b"\x89PNG", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
    (b"BZh", "compressed with bzip2; unpack it first"),
    (b"\xfd7zXZ", "compressed with xz; unpack it first"),
)


class Unreadable(Exception):
    """A file that cannot be read as text; code is ARTIFACT_NOT_FOUND or ARTIFACT_UNREADABLE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Text:
    """One file's text; iterate over it once for its lines, or over blocks(), then read its facts."""

    def __init__(self, path: str, max_line: int = 1 << 18, told: Optional[Callable[[int, int], None]] = None) -> None:
        """told hears, a block at a time, how many bytes of the file were read, of how many."""
        self.path = path
        self._told = told
        self.size = 0
        self.bytes = 0  # of text, after decompression
        self.lines = 0
        self.compressed = False
        self.bom = False
        self.utf16 = ""  # utf-16-le or utf-16-be
        self.multibyte = False  # something beyond ASCII was valid UTF-8
        self.latin1_lines = 0
        self.nul_bytes = 0
        self.crlf_lines = 0
        self.truncated_lines = 0
        self.damage = ""
        self._limit = max_line
        try:
            info = os.stat(path)
            if not stat.S_ISREG(info.st_mode):
                raise Unreadable("ARTIFACT_UNREADABLE", "%s is not a regular file" % os.path.basename(path))
            self.size = info.st_size
            self._file: BinaryIO = open(path, "rb")
        except (FileNotFoundError, NotADirectoryError):
            raise Unreadable("ARTIFACT_NOT_FOUND", "there is no file %s" % path) from None
        except (OSError, ValueError) as err:
            raise Unreadable("ARTIFACT_UNREADABLE", "%s cannot be opened: %s" % (path, getattr(err, "strerror", None) or err)) from None

    def close(self) -> None:
        """Close the file; reading to the end does so too."""
        self._file.close()

    @property
    def encoding(self) -> str:
        """What the text turned out to be: ascii, utf-8, utf-16-le, utf-16-be, latin-1 or mixed."""
        if self.utf16:
            return self.utf16
        if self.latin1_lines:
            return "mixed" if self.multibyte else "latin-1"
        return "utf-8" if self.multibyte or self.bom else "ascii"

    @property
    def newline(self) -> str:
        """How lines end: lf, crlf or mixed."""
        if not self.crlf_lines:
            return "lf"
        return "crlf" if self.crlf_lines >= self.lines - 1 else "mixed"

    def head(self, size: int = 65536) -> str:
        """The start of the text, without consuming any of it."""
        with Text(self.path, self._limit) as probe:
            text = ""
            for block in probe.blocks():
                text += block
                if len(text) >= size:
                    break
        return text[:size]

    def __enter__(self) -> "Text":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        for lines in self.batches():
            yield from lines

    def batches(self) -> Iterator[List[str]]:
        """The lines, as many at a time as a block of the file has."""
        for lines in self._whole_lines():
            self.lines += len(lines)
            yield lines

    def blocks(self) -> Iterator[str]:
        """The text in blocks that need not end where lines do."""
        with self._file:
            first, blocks = self._start()
            decoder = codecs.getincrementaldecoder(self.utf16 or "utf-8")("replace")
            block: Optional[bytes] = first
            while block is not None:
                text = decoder.decode(block)
                if not text.isascii():
                    self.multibyte = True
                yield self._without_nuls(text)
                block = next(blocks, None)
            yield decoder.decode(b"", True)

    def _whole_lines(self) -> Iterator[List[str]]:
        with self._file:
            first, blocks = self._start()
            decoder = codecs.getincrementaldecoder(self.utf16)("replace") if self.utf16 else None
            # As Windows' tools do, UTF-16 is turned into UTF-8 first; then a line is found the same way in both.
            only_cr = b"\r" in first and b"\n" not in first
            carry = b""
            cutting = False  # inside a line whose start is in carry and whose rest is not wanted
            block: Optional[bytes] = first
            while block is not None:
                if decoder:
                    block = decoder.decode(block).encode("utf-8", "replace")
                if only_cr:
                    block = block.replace(b"\r", b"\n")
                end = block.rfind(b"\n")
                if end < 0:
                    if not cutting:
                        carry += block
                    if len(carry) > self._limit + 1:
                        carry, cutting = carry[: self._limit + 2], True
                elif cutting:
                    yield self._decode(carry + block[block.index(b"\n") : end])
                    carry, cutting = block[end + 1 :], False
                else:
                    yield self._decode(carry + block[:end])
                    carry = block[end + 1 :]
                block = next(blocks, None)
            if carry:
                yield self._decode(carry)

    def _decode(self, chunk: bytes) -> List[str]:
        if b"\r" in chunk:
            self.crlf_lines += chunk.count(b"\r\n") + chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n")
            if chunk.endswith(b"\r"):
                chunk = chunk[:-1]
        try:
            text = chunk.decode("utf-8")
            if not text.isascii():
                self.multibyte = True
            lines = self._without_nuls(text).split("\n")
        except UnicodeDecodeError:
            lines = [self._without_nuls(self._decode_line(line)) for line in chunk.split(b"\n")]
        if len(chunk) > self._limit and len(max(lines, key=len)) > self._limit:
            for i, line in enumerate(lines):
                if len(line) > self._limit:
                    self.truncated_lines += 1
                    lines[i] = line[: self._limit]
        return lines

    def _decode_line(self, line: bytes) -> str:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            self.latin1_lines += 1
            return line.decode("latin-1")
        if not text.isascii():
            self.multibyte = True
        return text

    def _without_nuls(self, text: str) -> str:
        if "\0" in text:
            self.nul_bytes += text.count("\0")
            text = text.replace("\0", "")
        return text

    def _start(self) -> Tuple[bytes, Iterator[bytes]]:
        """The first block without a byte order mark, and the others."""
        blocks = self._raw()
        first = next(blocks, b"")
        for magic, what in _BINARY:
            if first.startswith(magic):
                raise Unreadable("ARTIFACT_UNREADABLE", "%s is not text: it is %s" % (os.path.basename(self.path), what))
        for bom, name in _BOMS:
            if first.startswith(bom):
                self.bom = True
                self.utf16 = "" if name == "utf-8" else name
                return first[len(bom) :], blocks
        self.utf16 = _guess_utf16(first[:4096])
        if not self.utf16 and _is_binary(first[:8192]):
            raise Unreadable("ARTIFACT_UNREADABLE", "%s is not text: most of its first bytes are control characters" % os.path.basename(self.path))
        return first, blocks

    def _raw(self) -> Iterator[bytes]:
        """The file's bytes, decompressed."""
        try:
            self.compressed = self._file.read(2) == b"\x1f\x8b"
            self._file.seek(0)
            for block in self._gunzip() if self.compressed else iter(lambda: self._file.read(BLOCK), b""):
                self.bytes += len(block)
                yield block
                if self._told is not None:
                    self._told(min(self._file.tell(), self.size), self.size)
        except OSError as err:
            raise Unreadable("ARTIFACT_UNREADABLE", "%s cannot be read: %s" % (self.path, err.strerror or err)) from None

    def _gunzip(self) -> Iterator[bytes]:
        """The content of a gzip file, up to where it is damaged if it is."""
        source = gzip.GzipFile(fileobj=self._file, mode="rb")
        pending: List[bytes] = []
        held = 0
        try:
            while True:
                part = source.read1(1 << 16)  # read would lose what precedes damage
                if not part:
                    break
                pending.append(part)
                held += len(part)
                if held >= BLOCK:
                    yield b"".join(pending)
                    pending, held = [], 0
        except (EOFError, zlib.error, gzip.BadGzipFile) as err:
            self.damage = "the gzip data is damaged after %d bytes of text: %s" % (self.bytes + held, err)
        if pending:
            yield b"".join(pending)


def _guess_utf16(start: bytes) -> str:
    """Text in UTF-16 has a NUL in most of its pairs, on one side."""
    pairs = len(start) // 2
    if pairs >= 2:
        even, odd = start[0::2].count(0), start[1::2].count(0)
        if odd > 0.4 * pairs and even < 0.1 * pairs:
            return "utf-16-le"
        if even > 0.4 * pairs and odd < 0.1 * pairs:
            return "utf-16-be"
    return ""


def _is_binary(start: bytes) -> bool:
    """Whether most bytes are control characters; NULs alone may be a log's preallocated space."""
    rest = start.replace(b"\0", b"")
    control = len(rest) - len(rest.translate(None, bytes(set(range(1, 32)) - {9, 10, 11, 12, 13, 27})))
    return bool(rest) and control > 0.3 * len(rest)
