"""The parts of an image file, each with its offset: JPEG, PNG, GIF, BMP, WebP.

The file is read part by part and never whole; what is compressed is not decoded,
but for the size of a PNG's data and its checksums.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional

from .exif import Exif, printable

_BLOCK = 1 << 20
_MOST_PARTS = 10_000
_MOST_METADATA = 1 << 20
_MOST_TEXTS = 50


class Image:
    """What a file says of itself."""

    def __init__(self, file: BinaryIO, size: int, told: Callable[[int], None]) -> None:
        self.format = ""
        self.width = self.height = 0
        self.depth: Optional[int] = None
        self.colour: Optional[str] = None
        self.frames = 1
        self.progressive = False
        self.parts: List[Dict[str, Any]] = []
        self.texts: List[Dict[str, Any]] = []
        self.exif: List[Exif] = []
        self.problems: List[Dict[str, Any]] = []
        self.end: Optional[int] = None  # where the image ends, None where its end is missing
        self._file, self._size, self._told = file, size, told
        self.magic = file.read(16)
        for magic, name, read in (
            (b"\xff\xd8\xff", "jpeg", self._jpeg), (b"\x89PNG\r\n\x1a\n", "png", self._png), (b"GIF87a", "gif", self._gif), (b"GIF89a", "gif", self._gif), (b"BM", "bmp", self._bmp),
        ):  # fmt: skip
            if self.magic.startswith(magic):
                self.format = name
                read()
                return
        if self.magic[:4] == b"RIFF" and self.magic[8:12] == b"WEBP":
            self.format = "webp"
            self._webp()

    def problem(self, offset: int, text: str) -> None:
        """Something that is wrong, and where."""
        if len(self.problems) < 100:
            self.problems.append({"offset": offset, "text": text})

    def _part(self, name: str, offset: int, size: int) -> bool:
        if len(self.parts) >= _MOST_PARTS:
            return False
        self.parts.append({"name": name, "offset": offset, "size": size})
        self._told(min(offset + size, self._size))
        return True

    def _at(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def _text(self, kind: str, offset: int, raw: bytes) -> None:
        text = printable(raw[:4096])
        if text and len(self.texts) < _MOST_TEXTS:
            self.texts.append({"kind": kind, "offset": offset, "text": text[:1000]})

    def _jpeg(self) -> None:
        at = 2
        while True:
            head = self._at(at, 4)
            if len(head) < 2:
                return self.problem(at, "the file breaks off before its end marker")
            if head[0] != 0xFF:
                return self.problem(at, "there is no marker where one has to be")
            marker = head[1]
            if marker == 0xFF:
                at += 1
                continue
            if marker == 0xD9:
                self._part("EOI", at, 2)
                self.end = at + 2
                return
            if marker in (0x01, *range(0xD0, 0xD8)):
                at += 2
                continue
            if len(head) < 4:
                return self.problem(at, "a segment breaks off")
            (size,) = struct.unpack(">H", head[2:])
            if size < 2 or at + 2 + size > self._size:
                return self.problem(at, "a segment claims %d bytes" % size)
            if not self._part(_marker(marker), at, size + 2):
                return self.problem(at, "there are more than %d parts" % _MOST_PARTS)
            self._segment(marker, at, self._at(at + 4, size - 2))
            at += 2 + size
            if marker == 0xDA:
                after = self._scan(at)
                if after is None:
                    return self.problem(self._size, "the file breaks off within its picture")
                at = after

    def _segment(self, marker: int, at: int, body: bytes) -> None:
        if marker in (0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF) and len(body) >= 6:
            self.depth, self.height, self.width = struct.unpack_from(">BHH", body)
            self.colour = {1: "grey", 3: "colour", 4: "cmyk"}.get(body[5], "%d components" % body[5])
            self.progressive = marker in (0xC2, 0xC6, 0xCA, 0xCE)
        elif marker == 0xE1 and body[:6] == b"Exif\0\0":
            self.exif.append(Exif(body[6:], at + 10))
        elif marker == 0xE1 and body[:28] == b"http://ns.adobe.com/xap/1.0/":
            self._text("xmp", at + 4, body[29:])
        elif marker == 0xFE:
            self._text("comment", at + 4, body)

    def _scan(self, at: int) -> Optional[int]:
        """Where the next marker stands after compressed data."""
        while at < self._size:
            block = self._at(at, _BLOCK)
            self._told(min(at + len(block), self._size))
            i = block.find(b"\xff")
            while i >= 0 and i + 1 < len(block):
                if block[i + 1] not in (0x00, 0xFF, *range(0xD0, 0xD8)):
                    return at + i
                i = block.find(b"\xff", i + 1)
            at += len(block) - (1 if block.endswith(b"\xff") and len(block) > 1 else 0)
            if len(block) < 2:
                return None
        return None

    def _png(self) -> None:
        at, inflated = 8, 0
        inflate = zlib.decompressobj()
        broken = False
        while True:
            head = self._at(at, 8)
            if len(head) < 8:
                return self.problem(at, "the file breaks off before its end chunk")
            size, name = struct.unpack(">I4s", head)
            if size > self._size - at - 12 or not name.isalpha():
                return self.problem(at, "a chunk claims %d bytes, or has no name" % size)
            kind = name.decode("ascii")
            if not self._part(kind, at, size + 12):
                return self.problem(at, "there are more than %d parts" % _MOST_PARTS)
            crc, body = zlib.crc32(name), b""
            for block in self._blocks(at + 8, size):
                crc = zlib.crc32(block, crc)
                if kind == "IDAT" and not broken:
                    try:
                        inflated += self._inflated(inflate, block)
                    except zlib.error as err:
                        broken = True
                        self.problem(at, "the compressed picture is damaged: %s" % err)
                elif len(body) < _MOST_METADATA:
                    body += block
            if struct.unpack(">I", self._at(at + 8 + size, 4))[0] != crc:
                self.problem(at, "the checksum of the chunk %s is wrong" % kind)
            self._chunk(kind, at + 8, body)
            at += size + 12
            if kind == "IEND":
                self.end = at
                expected = self._raw_size()
                if expected and not broken and inflated != expected:
                    self.problem(8, "the picture has %d bytes of data where its size needs %d" % (inflated, expected))
                return

    @staticmethod
    def _inflated(inflate: Any, block: bytes) -> int:
        """How many bytes a block inflates to, a piece at a time: a small file may hold terabytes of zeros."""
        total = 0
        while block:
            total += len(inflate.decompress(block, _BLOCK))
            block = inflate.unconsumed_tail
            if total > 1 << 32:
                raise zlib.error("it inflates to more than 4 GiB")
        return total

    def _blocks(self, at: int, size: int) -> Iterator[bytes]:
        while size > 0:
            block = self._at(at, min(_BLOCK, size))
            if not block:
                return
            self._told(min(at + len(block), self._size))
            yield block
            at, size = at + len(block), size - len(block)

    def _raw_size(self) -> int:
        """How many bytes the picture of a PNG has before compression; 0 for one that is interlaced."""
        channels = {"grey": 1, "rgb": 3, "palette": 1, "grey with alpha": 2, "rgb with alpha": 4}.get(self.colour or "", 0)
        if self.progressive or not channels or not self.depth:
            return 0
        return self.height * (1 + (self.width * channels * self.depth + 7) // 8)

    def _chunk(self, kind: str, at: int, body: bytes) -> None:
        if kind == "IHDR" and len(body) >= 13:
            self.width, self.height, self.depth, colour = struct.unpack_from(">IIBB", body)
            self.colour = {0: "grey", 2: "rgb", 3: "palette", 4: "grey with alpha", 6: "rgb with alpha"}.get(colour, "unknown")
            self.progressive = body[12] == 1
        elif kind == "acTL" and len(body) >= 4:
            self.frames = struct.unpack_from(">I", body)[0]
        elif kind == "eXIf":
            self.exif.append(Exif(body, at))
        elif kind in ("tEXt", "zTXt", "iTXt"):
            key, _, rest = body.partition(b"\0")
            packed = kind == "zTXt" or kind == "iTXt" and rest[:1] == b"\1"
            if kind == "iTXt":
                rest = rest[2:].split(b"\0", 2)[-1]
            elif kind == "zTXt":
                rest = rest[1:]
            if packed:
                try:
                    rest = zlib.decompressobj().decompress(rest, 65536)
                except zlib.error:
                    self.problem(at, "a compressed text is damaged")
            self._text(printable(key[:80]) or kind, at, rest)

    def _gif(self) -> None:
        self.width, self.height, flags = struct.unpack_from("<HHB", self.magic.ljust(16, b"\0"), 6)
        self.colour, self.depth, self.frames = "palette", ((flags >> 4) & 7) + 1, 0
        at = 13 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
        while True:
            head = self._at(at, 10)
            if not head:
                return self.problem(at, "the file breaks off before its trailer")
            start = at
            if head[0] == 0x3B:
                self._part("trailer", at, 1)
                self.end = at + 1
                return
            if head[0] == 0x2C and len(head) == 10:
                self.frames += 1
                at += 11 + (3 << ((head[9] & 7) + 1) if head[9] & 0x80 else 0)
                name = "image"
            elif head[0] == 0x21:
                at += 2
                name = {0xFE: "comment", 0xF9: "control", 0xFF: "application"}.get(head[1] if len(head) > 1 else 0, "extension")
            else:
                return self.problem(at, "there is no block where one has to be")
            text = b""
            while True:
                size = self._at(at, 1)
                if not size:
                    return self.problem(start, "a block breaks off")
                if not size[0]:
                    break
                if name == "comment" and len(text) < 4096:
                    text += self._at(at + 1, size[0])
                at += 1 + size[0]
            at += 1
            self._text("comment", start, text)
            if not self._part(name, start, at - start):
                return self.problem(at, "there are more than %d parts" % _MOST_PARTS)

    def _bmp(self) -> None:
        head = self._at(0, 30)
        if len(head) < 30:
            return self.problem(0, "the header breaks off")
        size, _, _, begin = struct.unpack_from("<IHHI", head, 2)
        self.width, height, _, self.depth = struct.unpack_from("<iiHH", head, 18)
        self.height = abs(height)
        self._part("header", 0, begin)
        self._part("picture", begin, max(0, size - begin))
        if size > self._size:
            return self.problem(0, "the file says it has %d bytes" % size)
        self.end = size or self._size

    def _webp(self) -> None:
        (size,) = struct.unpack_from("<I", self.magic, 4)
        self.frames, at = 0, 12
        while at + 8 <= min(8 + size, self._size):
            name, length = struct.unpack("<4sI", self._at(at, 8))
            kind = name.decode("latin-1")
            body = self._at(at + 8, min(length, _MOST_METADATA if kind in ("EXIF", "XMP ") else 16))
            if at + 8 + length > self._size:
                return self.problem(at, "a chunk claims %d bytes" % length)
            if not self._part(printable(name), at, length + 8):
                return self.problem(at, "there are more than %d parts" % _MOST_PARTS)
            if kind == "VP8X" and len(body) >= 10:
                self.width, self.height = int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
            elif kind == "VP8 " and not self.width and len(body) >= 10:
                self.width, self.height = (v & 0x3FFF for v in struct.unpack_from("<HH", body, 6))
            elif kind == "VP8L" and not self.width and len(body) >= 5:
                bits = int.from_bytes(body[1:5], "little")
                self.width, self.height = (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
            elif kind == "EXIF":
                skip = 6 if body[:6] == b"Exif\0\0" else 0
                self.exif.append(Exif(body[skip:], at + 8 + skip))
            elif kind == "XMP ":
                self._text("xmp", at + 8, body)
            self.frames += kind in ("ANMF", "VP8 ", "VP8L")
            at += 8 + length + length % 2
        if 8 + size > self._size:
            return self.problem(0, "the file says it has %d bytes" % (8 + size))
        self.end = 8 + size + size % 2


def _marker(marker: int) -> str:
    known: Dict[int, str] = {0xC4: "DHT", 0xDA: "SOS", 0xDB: "DQT", 0xDD: "DRI", 0xFE: "COM"}
    return known.get(marker) or ("APP%d" % (marker - 0xE0) if 0xE0 <= marker < 0xF0 else "SOF%d" % (marker - 0xC0) if 0xC0 <= marker < 0xD0 else "%02X" % marker)
