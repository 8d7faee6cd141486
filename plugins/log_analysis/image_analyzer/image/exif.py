"""The metadata that cameras and programs write: TIFF directories, as EXIF has them (CIPA DC-008)."""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Optional, Tuple

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_NAMES = {
    0x010E: "description", 0x010F: "make", 0x0110: "model", 0x0112: "orientation", 0x0131: "software", 0x0132: "modified", 0x013B: "artist", 0x8298: "copyright",
    0x9003: "taken", 0x9004: "digitized", 0x9010: "offset", 0x9011: "offset_original", 0x9286: "comment", 0xA002: "width", 0xA003: "height", 0xA420: "unique_id", 0xA430: "owner",
    0xA431: "serial_number", 0xA433: "lens_make", 0xA434: "lens_model", 0x829A: "exposure_seconds", 0x829D: "f_number", 0x8827: "iso", 0x920A: "focal_length_mm",
}  # fmt: skip
_MOST_ENTRIES, _MOST_DIRECTORIES, _MOST_VALUE = 500, 8, 4096


class Exif:
    """What one block of EXIF says; damage names what could not be read."""

    def __init__(self, block: bytes, at: int) -> None:
        self.tags: Dict[str, Any] = {}
        self.gps: Optional[Dict[str, Any]] = None
        self.thumbnail: Optional[Tuple[int, int]] = None  # where it begins in the file, and its size
        self.damage: List[str] = []
        self._block, self._at = block, at
        self._order = {b"II": "<", b"MM": ">"}.get(block[:2], "")
        if not self._order or len(block) < 8:
            self.damage.append("the EXIF block has no byte order")
            return
        seen: List[int] = []
        self._directory(struct.unpack_from(self._order + "I", block, 4)[0], "main", seen)

    def _directory(self, offset: int, kind: str, seen: List[int]) -> None:
        if offset in seen or len(seen) >= _MOST_DIRECTORIES:
            self.damage.append("a directory of EXIF points back")
            return
        seen.append(offset)
        try:
            (count,) = struct.unpack_from(self._order + "H", self._block, offset)
            if count > _MOST_ENTRIES:
                self.damage.append("a directory of EXIF claims %d entries" % count)
                return
            raw: Dict[int, Any] = {}
            for i in range(count):
                tag, form, n = struct.unpack_from(self._order + "HHI", self._block, offset + 2 + 12 * i)
                value = self._value(form, n, offset + 10 + 12 * i)
                if value is not None:
                    raw[tag] = value
            (after,) = struct.unpack_from(self._order + "I", self._block, offset + 2 + 12 * count)
        except struct.error:
            self.damage.append("a directory of EXIF breaks off")
            return
        if kind == "gps":
            self._position(raw)
            return
        if kind == "thumbnail":
            if isinstance(raw.get(0x0201), int) and isinstance(raw.get(0x0202), int):
                self.thumbnail = (self._at + raw[0x0201], raw[0x0202])
            return
        for tag, name in _NAMES.items():
            if tag in raw and name not in self.tags:
                self.tags[name] = raw[tag]
        for tag, inner in ((0x8769, "exif"), (0x8825, "gps")):
            if isinstance(raw.get(tag), int):
                self._directory(raw[tag], inner, seen)
        if kind == "main" and after:
            self._directory(after, "thumbnail", seen)

    def _value(self, form: int, count: int, at: int) -> Any:
        size = _SIZES.get(form, 0) * count
        if not size or size > _MOST_VALUE * 8:
            return None
        if size > 4:
            (at,) = struct.unpack_from(self._order + "I", self._block, at)
        if at + size > len(self._block):
            self.damage.append("a value of EXIF lies outside of its block")
            return None
        raw = self._block[at : at + size]
        if form == 2 or form == 7:
            if form == 7 and raw[:8] in (b"ASCII\0\0\0", b"\0" * 8):
                raw = raw[8:]
            return printable(raw.split(b"\0")[0][:_MOST_VALUE]) or None
        letter = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 11: "f", 12: "d"}.get(form)
        if letter:
            values = list(struct.unpack(self._order + letter * count, raw))
        else:
            pairs = struct.unpack(self._order + ("I" if form == 5 else "i") * 2 * count, raw)
            values = [round(a / b, 8) if b else None for a, b in zip(pairs[::2], pairs[1::2])]
        values = [v if not isinstance(v, float) or abs(v) < 1e15 else None for v in values]
        return values[0] if len(values) == 1 else values[:16]

    def _position(self, raw: Dict[int, Any]) -> None:
        place: Dict[str, Any] = {"latitude": None, "longitude": None, "altitude_metres": None, "time": None}
        for name, tag, negative, most in (("latitude", 2, "S", 90), ("longitude", 4, "W", 180)):
            parts = raw.get(tag)
            if isinstance(parts, list) and len(parts) == 3 and all(isinstance(p, (int, float)) for p in parts):
                degrees = parts[0] + parts[1] / 60 + parts[2] / 3600
                if degrees <= most:
                    place[name] = round(-degrees if raw.get(tag - 1) == negative else degrees, 7)
        altitude = raw.get(6)
        if isinstance(altitude, (int, float)):
            place["altitude_metres"] = -altitude if raw.get(5) == 1 else altitude
        day, time = raw.get(29), raw.get(7)
        if isinstance(day, str) and isinstance(time, list) and len(time) == 3 and all(isinstance(p, (int, float)) for p in time):
            place["time"] = "%sT%02d:%02d:%02dZ" % (day.replace(":", "-"), time[0], time[1], time[2])
        if any(value is not None for value in place.values()):
            self.gps = place


def printable(raw: bytes) -> str:
    """Text out of metadata, without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in raw.decode("utf-8", "replace")).strip()
