"""What stands out in an image file: what is behind its end, what its metadata gives away, what does not fit."""

from __future__ import annotations

import hashlib
import math
from typing import Any, BinaryIO, Callable, Dict, List, Optional

from .formats import Image

_BLOCK = 1 << 20
_COUNTED = 16 << 20  # bytes behind the end whose entropy is reckoned
_SIGNS = (
    (b"PK\x03\x04", "a zip archive"), (b"Rar!\x1a\x07", "a RAR archive"), (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"), (b"\x1f\x8b\x08", "gzip data"), (b"%PDF-", "a PDF"), (b"\x7fELF", "a program (ELF)"),
    (b"\xff\xd8\xff", "a JPEG image"), (b"\x89PNG\r\n\x1a\n", "a PNG image"), (b"ID3", "MP3 audio"), (b"ftyp", "an MP4 video"), (b"<?php", "PHP code"), (b"<script", "a script"), (b"#!/", "a script of a shell"),
    (b"-----BEGIN ", "a key or certificate"), (b"This program cannot be run in DOS mode", "a Windows program"), (b"SQLite format 3\0", "an SQLite database"),
)  # fmt: skip
_LONGEST = max(len(sign) for sign, _ in _SIGNS)
_ENDINGS = {"jpeg": ("jpg", "jpeg", "jpe", "jfif"), "png": ("png", "apng"), "gif": ("gif",), "bmp": ("bmp", "dib"), "webp": ("webp",)}


class Whole:
    """The hashes of a file, and what is behind a place in it."""

    def __init__(self, file: BinaryIO, size: int, end: Optional[int], told: Callable[[int], None]) -> None:
        sha256, sha1, md5 = hashlib.sha256(), hashlib.sha1(usedforsecurity=False), hashlib.md5(usedforsecurity=False)
        counts = [0] * 256
        self.zeros = True
        self.found: List[Dict[str, Any]] = []
        at, carry = 0, b""
        file.seek(0)
        while True:
            block = file.read(_BLOCK)
            if not block:
                break
            for digest in (sha256, sha1, md5):
                digest.update(block)
            if end is not None and at + len(block) > end:
                behind = block[max(0, end - at) :]
                self.zeros = self.zeros and not behind.strip(b"\0")
                if sum(counts) < _COUNTED:
                    for value in range(256):
                        counts[value] += behind.count(value)
                start = max(at, end) - len(carry)
                text = carry + behind
                for sign, what in _SIGNS:
                    place = text.find(sign)
                    if place >= 0 and place + len(sign) > len(carry) and len(self.found) < 50:
                        self.found.append({"offset": start + place - (4 if sign == b"ftyp" else 0), "what": what})
                carry = text[-(_LONGEST - 1) :]
            at += len(block)
            told(at)
        self.sha256, self.sha1, self.md5 = sha256.hexdigest(), sha1.hexdigest(), md5.hexdigest()
        self.behind = max(0, size - end) if end is not None else 0
        counted = sum(counts)
        self.entropy = round(-sum(n / counted * math.log2(n / counted) for n in counts if n) + 0.0, 3) if counted else None
        self.found.sort(key=lambda one: one["offset"])


def findings(image: Image, whole: Whole, name: str) -> List[Dict[str, Any]]:
    """What stands out, the gravest first; each with its offset."""
    out: List[Dict[str, Any]] = []

    def add(kind: str, severity: str, offset: Optional[int], why: str) -> None:
        out.append({"kind": kind, "severity": severity, "offset": offset, "why": why})

    if whole.behind and not whole.zeros and image.end is not None:
        known = ", ".join(dict.fromkeys(one["what"] for one in whole.found))
        severity = "high" if whole.found else "medium" if whole.behind > 64 else "low"
        add("data_behind_the_end", severity, image.end, "%d bytes are behind the end of the image (%.2f bits of entropy a byte)%s" % (whole.behind, whole.entropy or 0, ": " + known if known else ""))
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if ending and ending not in _ENDINGS[image.format] and ending in {e for es in _ENDINGS.values() for e in es} | {"txt", "log", "pdf", "doc", "exe", "tif", "tiff"}:
        add("name_does_not_fit", "medium", 0, "the name ends in .%s, and the file is %s" % (ending, image.format.upper()))
    for problem in image.problems:
        add("damage", "medium", problem["offset"], problem["text"])
    for exif in image.exif:
        for text in dict.fromkeys(exif.damage):
            add("damage", "low", None, text)
        if exif.gps and exif.gps["latitude"] is not None:
            add("position", "info", None, "taken at %s, %s" % (exif.gps["latitude"], exif.gps["longitude"]))
        taken, modified = exif.tags.get("taken"), exif.tags.get("modified")
        if isinstance(taken, str) and isinstance(modified, str) and taken != modified:
            add("changed_after_it_was_taken", "low", None, "taken %s, changed %s%s" % (taken, modified, " with " + str(exif.tags["software"]) if exif.tags.get("software") else ""))
        for side, told in (("width", image.width), ("height", image.height)):
            said = exif.tags.get(side)
            turned = {image.width, image.height}
            if isinstance(said, int) and told and said not in turned:
                add("size_does_not_fit", "low", None, "the metadata says %s %d, and the image has %d" % (side, said, told))
        if exif.thumbnail:
            add("thumbnail", "info", exif.thumbnail[0], "a thumbnail of %d bytes, which may show what was there before a change" % exif.thumbnail[1])
    for text in image.texts:
        if len(text["text"]) > 200 and text["kind"] != "xmp" or any(sign in text["text"].lower() for sign in ("<script", "<?php", "powershell", "cmd.exe", "/bin/sh")):
            add("unusual_text", "medium", text["offset"], "the text %s has %d characters: %s" % (text["kind"], len(text["text"]), text["text"][:80]))
    if image.width * image.height > 500_000_000:
        add("huge_picture", "medium", 0, "%d by %d pixels: opening it may take gigabytes of memory" % (image.width, image.height))
    order = ("high", "medium", "low", "info")
    return sorted(out, key=lambda one: (order.index(one["severity"]), one["offset"] if one["offset"] is not None else -1, one["kind"]))
