"""What every firewall says in the end: who talked to whom, and whether it was let through."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Dict, NamedTuple, Optional

ALLOW, DENY, UNKNOWN = "allow", "deny", "unknown"
CLOSED = "cisco_asa_teardown"  # the format of rows that only add the bytes of a connection that a row before them opened

_ACTIONS = {
    ALLOW: "accept accepted allow allowed pass passed permit permitted built start opened open close closed client-rst server-rst timeout established success allow-established rdr nat",
    DENY: "deny denied drop dropped reject rejected block blocked discard discarded reset refused reset-both reset-client reset-server drop-inbound-connect fail failed prevented quarantined",
}
_WORDS = {word: action for action, words in _ACTIONS.items() for word in words.split()}
_PROTOCOLS = {"1": "icmp", "2": "igmp", "6": "tcp", "17": "udp", "41": "ipv6", "47": "gre", "50": "esp", "51": "ah", "58": "icmpv6", "89": "ospf", "112": "vrrp", "132": "sctp"}
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_IPV4 = re.compile(r"(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}")
_IPV6 = re.compile(r"(?=[^:]*:[^:]*:)[0-9A-Fa-f:]{2,39}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?")


class Row(NamedTuple):
    """One decision of a firewall. Ports are -1 and bytes and packets 0 where the log has none."""

    format: str
    time: str  # as the log has it
    action: str
    protocol: str
    source: str
    source_port: int
    destination: str
    destination_port: int
    interface: str
    rule: str
    bytes: int
    packets: int


def action(word: str) -> str:
    """allow, deny or unknown for the many words that logs have."""
    return _WORDS.get(word.strip().lower(), UNKNOWN)


@lru_cache(maxsize=1024)
def protocol(text: str) -> str:
    """A protocol by its name in small letters, given its name or number."""
    text = text.strip().lower()
    if text in ("ipv6-icmp", "icmp6", "icmpv6"):
        return "icmpv6"
    return _PROTOCOLS.get(text, text[:16] if text and text != "-" else "unknown")


@lru_cache(maxsize=65536)
def address(text: Optional[str]) -> str:
    """An address as it is written, IPv6 in small letters without its zone; empty if it is none."""
    if not text:
        return ""
    text = text.strip().strip("[]").partition("%")[0]
    if _IPV4.fullmatch(text):
        return text
    if _IPV6.fullmatch(text):
        return text.lower()
    return ""


def port(text: Any) -> int:
    """A port, or -1."""
    try:
        number = int(text)
    except (TypeError, ValueError):
        return -1
    return number if 0 <= number <= 65535 else -1


def amount(text: Any) -> int:
    """A count that is not negative; 0 for what is no number."""
    try:
        number = int(float(text))
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if 0 <= number < 1 << 60 else 0


def as_json(row: Row, at: Optional[str], line: int) -> str:
    """The row as it is written to a file, as json.dumps would; members that the log does not have are left out.

    The words of actions and formats, addresses and times hold nothing that JSON escapes.
    """
    format, _, action, protocol, source, source_port, destination, port, interface, rule, bytes, packets = row
    return '{"time": %s, "action": "%s", "protocol": %s, "source": "%s", "destination": "%s", "format": "%s"%s%s%s%s%s%s, "line": %d}\n' % (
        '"%s"' % at if at else "null", action, _quoted(protocol), source, destination, format,
        ', "source_port": %d' % source_port if source_port >= 0 else "", ', "destination_port": %d' % port if port >= 0 else "",
        ', "interface": ' + _quoted(interface) if interface else "", ', "rule": ' + _quoted(rule) if rule else "",
        ', "bytes": %d' % bytes if bytes else "", ', "packets": %d' % packets if packets else "", line,
    )  # fmt: skip
