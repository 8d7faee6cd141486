"""Images made to order."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Dict, List, Tuple


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int = 3, height: int = 2, extra: bytes = b"", rows: "bytes | None" = None) -> bytes:
    """A PNG in grey; extra chunks stand before the picture."""
    rows = (b"\0" + bytes(range(width))) * height if rows is None else rows
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def exif(order: str = "<", camera: str = "Lens 9", **more: Any) -> bytes:
    """A block of EXIF: camera, times, a position and a thumbnail."""
    texts = {0x010F: "Acme", 0x0110: camera, 0x0131: more.get("software", "Editor 4"), 0x0132: more.get("modified", "2026:03:06 10:00:00")}
    entries: Dict[str, List[Tuple[int, int, int, bytes]]] = {"main": [], "exif": [], "gps": []}
    for tag, text in texts.items():
        raw = text.encode() + b"\0"
        entries["main"].append((tag, 2, len(raw), raw))
    raw = b"2026:03:05 09:14:00\0"
    entries["exif"] = [(0x9003, 2, len(raw), raw), (0x829A, 5, 1, struct.pack(order + "II", 1, 250)), (0xA002, 4, 1, struct.pack(order + "I", more.get("width", 3)))]
    degrees = struct.pack(order + "IIIIII", 52, 1, 30, 1, 36, 1)
    entries["gps"] = [(1, 2, 2, b"S\0"), (2, 5, 3, degrees), (3, 2, 2, b"E\0"), (4, 5, 3, degrees)]
    sizes = {name: 2 + 12 * (len(listed) + (2 if name == "main" else 0)) + 4 for name, listed in entries.items()}
    starts = {"main": 8, "exif": 8 + sizes["main"], "gps": 8 + sizes["main"] + sizes["exif"]}
    heap_at, heap = 8 + sum(sizes.values()), b""
    entries["main"] += [(0x8769, 4, 1, struct.pack(order + "I", starts["exif"])), (0x8825, 4, 1, struct.pack(order + "I", starts["gps"]))]
    out = {b: b"" for b in starts}
    for name, listed in entries.items():
        body = struct.pack(order + "H", len(listed))
        for tag, form, count, value in sorted(listed):
            if len(value) > 4:
                body += struct.pack(order + "HHII", tag, form, count, heap_at + len(heap))
                heap += value + b"\0" * (len(value) % 2)
            else:
                body += struct.pack(order + "HHI", tag, form, count) + value.ljust(4, b"\0")
        out[name] = body + struct.pack(order + "I", 0)
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8) + out["main"] + out["exif"] + out["gps"] + heap


def segment(marker: int, body: bytes) -> bytes:
    """A segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def jpeg(extra: bytes = b"", data: bytes = b"\x12\xff\x00\x34\xff\xd0\x56", end: bytes = b"\xff\xd9") -> bytes:
    """What has the parts of a JPEG, 3 by 2; its compressed data are none."""
    frame = segment(0xC0, struct.pack(">BHHB", 8, 2, 3, 1) + b"\1\x11\0")
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0") + extra + segment(0xDB, bytes(65)) + frame + segment(0xC4, bytes(20)) + segment(0xDA, b"\1\1\0\0\x3f\0") + data + end


def gif(comment: bytes = b"made by hand", frames: int = 2) -> bytes:
    """A GIF of some frames."""
    picture = b"," + struct.pack("<HHHHB", 0, 0, 3, 2, 0) + b"\2\3\x44\x01\x05\0"
    return b"GIF89a" + struct.pack("<HHBBB", 3, 2, 0x80, 0, 0) + bytes(6) + b"!\xfe" + bytes([len(comment)]) + comment + b"\0" + picture * frames + b";"


def bmp() -> bytes:
    """A BMP, 3 by 2."""
    rows = bytes(12) * 2
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 3, -2, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def webp() -> bytes:
    """A WebP with EXIF."""

    def part(name: bytes, body: bytes) -> bytes:
        return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)

    body = part(b"VP8X", b"\x08\0\0\0" + (2).to_bytes(3, "little") + (1).to_bytes(3, "little")) + part(b"VP8L", b"\x2f" + bytes(8)) + part(b"EXIF", exif())
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
