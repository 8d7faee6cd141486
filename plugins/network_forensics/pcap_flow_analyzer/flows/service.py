"""Which service speaks in a payload, and for whom: known by the bytes, not by the port."""

from __future__ import annotations

import re
import struct
from typing import Optional, Tuple

Said = Tuple[Optional[str], Optional[str]]  # the service and a name within it

_REQUEST = re.compile(rb"(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PROPFIND) [^\r\n]{1,4096} HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\n[Hh][Oo][Ss][Tt]:[ \t]*([^\r\n]{1,255})")
_BASIC = re.compile(rb"\r\n[Aa]uthorization:[ \t]*Basic ", re.ASCII)


def of(payload: bytes, protocol: int, ports: Tuple[Optional[int], Optional[int]]) -> Said:
    """What a payload is of; (None, None) where it does not say."""
    if protocol == 17:
        return _of_udp(payload, ports)
    if protocol != 6:
        return None, None
    start = payload[:4]
    if start[:2] == b"\x16\x03" and len(payload) > 5 and payload[5] in (1, 2):
        return "tls", _server_name(payload) if payload[5] == 1 else None
    if _REQUEST.match(payload):
        host = _HOST.search(payload, 0, 8192)
        return "http with a password" if _BASIC.search(payload, 0, 8192) else "http", _text(host.group(1)) if host else None
    if start == b"SSH-":
        return "ssh", _text(payload[: payload.find(b"\n") if b"\n" in payload[:255] else 60].rstrip(b"\r"))
    if payload[4:8] in (b"\xffSMB", b"\xfeSMB"):
        return "smb", "version 1" if payload[4:5] == b"\xff" else None
    if start[:3] == b"\x03\0\0" and b"mstshash=" in payload[:128]:
        at = payload.index(b"mstshash=") + 9
        return "rdp", _text(payload[at : payload.find(b"\r", at) if b"\r" in payload[at : at + 64] else at + 32])
    if start[:3] == b"\x03\0\0" and payload[5:6] in (b"\xe0", b"\xd0"):
        return "rdp", None
    if start in (b"USER", b"PASS") or start == b"220 " and b"FTP" in payload[:200].upper():
        return "ftp", None
    if start[:4] in (b"EHLO", b"HELO") or start in (b"220 ", b"220-") and b"SMTP" in payload[:200].upper():
        return "smtp", _text(payload[5:100].split(b"\r")[0]) if start in (b"EHLO", b"HELO") else None
    if payload[:1] == b"\xff" and payload[1:2] in (b"\xfb", b"\xfc", b"\xfd", b"\xfe") and 23 in ports:
        return "telnet", None
    if 53 in ports and len(payload) > 14:
        return "dns", question(payload[2:])
    return None, None


def _of_udp(payload: bytes, ports: Tuple[Optional[int], Optional[int]]) -> Said:
    if 53 in ports or 5353 in ports or 5355 in ports:
        return "dns", question(payload)
    if len(payload) >= 48 and 123 in ports:
        return "ntp", None
    if payload[:1] and payload[0] & 0xC0 == 0xC0 and payload[1:5] in (b"\0\0\0\1", b"\x6b\x33\x43\xcf"):
        return "quic", None
    if 67 in ports and payload[:1] in (b"\1", b"\2") and payload[236:240] == b"\x63\x82\x53\x63":
        return "dhcp", None
    return None, None


def question(message: bytes) -> Optional[str]:
    """The name that a DNS message asks for; None where it asks for none."""
    if len(message) < 17 or not 1 <= (message[4] << 8 | message[5]) <= 8:
        return None
    labels, at = [], 12
    try:
        while message[at]:
            if message[at] > 63 or len(labels) > 60:
                return None
            labels.append(_text(message[at + 1 : at + 1 + message[at]]))
            at += 1 + message[at]
    except IndexError:
        return None
    return ".".join(labels) or "."


def _server_name(record: bytes) -> Optional[str]:
    """The name in a TLS ClientHello (RFC 8446, 4.1.2 and RFC 6066, 3), as far as the segment has it."""
    try:
        at = 9 + 2 + 32  # record and handshake header, version, random
        at += 1 + record[at]
        at += 2 + struct.unpack_from(">H", record, at)[0]
        at += 1 + record[at]
        end = at + 2 + struct.unpack_from(">H", record, at)[0]
        at += 2
        while at + 4 <= min(end, len(record)):
            kind, size = struct.unpack_from(">HH", record, at)
            if kind == 0:
                (length,) = struct.unpack_from(">H", record, at + 7)
                return _text(record[at + 9 : at + 9 + length]) or None
            at += 4 + size
    except (struct.error, IndexError):
        pass
    return None


def _text(raw: bytes) -> str:
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else "\\x%02x" % c for c in raw[:255])
