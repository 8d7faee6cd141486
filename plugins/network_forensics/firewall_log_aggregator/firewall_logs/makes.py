"""The logs of particular firewalls, one function a make.

Each takes a line and returns its [Row], None if the line is not of its make, or
SKIP if it is but tells of no decision.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Any, Callable, Dict, Optional, Tuple, Union, cast

from .row import ALLOW, CLOSED, DENY, UNKNOWN, Row, action, address, amount, port, protocol


class Skip:
    """A line of a known make that is no decision."""


SKIP = Skip()
Found = Optional[Union[Row, Skip]]

_TIME_OF_LINE = (
    r"(?:<\d{1,3}>)?(?:\d )?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?|[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d+)?)"
)
_TIME = re.compile(_TIME_OF_LINE)


def _time(line: str) -> str:
    found = _TIME.match(line)
    return found.group(1) if found else ""


# Linux: iptables and nftables in the kernel's log, ufw and firewalld included.

_NETFILTER = re.compile(r"\b([A-Z]+)=(\S*)")
_NETFILTER_WORD = re.compile(r"(?<![A-Za-z])(ACCEPT|ALLOW|PASS|PERMIT|DROP|DENY|DENIED|REJECT|BLOCK|DISCARD)(?:ED|PED)?(?![a-z])", re.IGNORECASE)


# A line as the kernel writes it for TCP and UDP, its members in their order, each at its only place. What precedes IN= is
# bounded, so that a line of many "kernel:" takes no longer.
_VALUE = r"[!-<>-Z\\-~]*"  # printable ASCII without = and [
_NETFILTER_USUAL = re.compile(
    _TIME_OF_LINE + r"[^=]{0,200}?kernel:(?: ?\[\s*\d+\.\d+\])? ([^=]{0,200})IN=(" + _VALUE + ") OUT=(" + _VALUE + ")(?: (?:PHYSIN|PHYSOUT|MAC)=" + _VALUE + ")*"
    r" SRC=([0-9A-Fa-f.:]+) DST=([0-9A-Fa-f.:]+) LEN=([0-9]{1,15})(?: (?:(?:TOS|PREC|TTL|ID|TC|HOPLIMIT|FLOWLBL)=" + _VALUE + r"|CE|DF|MF))*"
    r" PROTO=(" + _VALUE + r") SPT=([0-9]{1,5}) DPT=([0-9]{1,5})(?!\S)"
)  # fmt: skip
_row = cast("Callable[[Tuple[Any, ...]], Row]", partial(tuple.__new__, Row))  # as Row(...), without a call in between


def netfilter(line: str) -> Found:
    """... kernel: [prefix] IN=eth0 OUT= SRC=... DST=... PROTO=TCP SPT=... DPT=..."""
    usual = _NETFILTER_USUAL.match(line)
    if usual:
        time, prefix, entry, exit, a, b, length, kind, source_port, destination_port = usual.groups()
        source, destination = address(a), address(b)
        decided = _decided(prefix)
        if source and destination and decided:
            m, n = int(source_port), int(destination_port)
            return _row(
                ("netfilter", time, decided[0], protocol(kind), source, m if m < 65536 else -1, destination, n if n < 65536 else -1, entry or exit, decided[1], int(length), 1)
            )  # fmt: skip
    return _netfilter(line)


def _netfilter(line: str) -> Found:
    """A line of netfilter whatever its members are and stand."""
    at = line.find("IN=")
    if at < 0 or " SRC=" not in line or " DST=" not in line:
        return None
    # An ICMP error quotes the packet it is about in brackets, with members of the same names.
    body = line[at:].partition("[SRC=")[0]
    members: Dict[str, str] = {}
    for key, value in _NETFILTER.findall(body):
        members.setdefault(key, value)
    source, destination = address(members.get("SRC")), address(members.get("DST"))
    if not source or not destination:
        return None
    prefix = line[:at].rpartition("kernel:")[2] or line[:at]
    verdict, rule = _decision(prefix)
    return Row(
        "netfilter", _time(line), verdict, protocol(members.get("PROTO", "")),
        source, port(members.get("SPT")), destination, port(members.get("DPT")), members.get("IN") or members.get("OUT") or "", rule, amount(members.get("LEN")), 1,
    )  # fmt: skip


def _decision(prefix: str) -> Tuple[str, str]:
    """The decision and the rule that the prefix of a line names."""
    word = None
    for word in _NETFILTER_WORD.finditer(prefix):
        pass
    rule = " ".join(re.sub(r"\[\s*\d+\.\d+\]", "", prefix).split())[-64:].strip(" :[]")
    return action(_BASE.get(word.group(1).upper(), "")) if word else UNKNOWN, rule


@lru_cache(maxsize=1024)
def _decided(prefix: str) -> Optional[Tuple[str, str]]:
    """The decision of a prefix that is none of another: those of a log are few."""
    return None if "kernel:" in prefix else _decision(prefix)


_BASE = {"ACCEPT": "accept", "ALLOW": "allow", "PASS": "pass", "PERMIT": "permit", "DROP": "drop", "DENY": "deny", "DENIED": "deny", "REJECT": "reject", "BLOCK": "block", "DISCARD": "drop"}


# Cisco ASA and FTD. Built and torn down connections are told apart by their numbers.

_ASA = re.compile(r"%(?:ASA|FTD|PIX|FWSM)-(?:\w+-)?\d-(\d{6}): ?(.*)")
_END = r"(?:([\w.-]+):)?([0-9A-Fa-f.:]+)[/(](\d+)\)?"
_ASA_DENY = re.compile(r"(?:Deny|Dropped|Denied)\s+(?:inbound |outbound )?(?:protocol )?(\w+)(?: reverse path check)?(?: \(no connection\))? (?:src|from) (?:([\w.-]+):)?([0-9A-Fa-f.:]+?)(?:/(\d+))?(?:\([^)]*\))? (?:dst|to) (?:([\w.-]+):)?([0-9A-Fa-f.:]+?)(?:/(\d+))?(?=[\s(,]|$)")
_ASA_INBOUND = re.compile(r"Inbound TCP connection denied from ([0-9A-Fa-f.:]+)/(\d+) to ([0-9A-Fa-f.:]+)/(\d+)(?:.*? on interface (\S+))?")
_ASA_LIST = re.compile(r"access-list (\S+) (permitted|denied|est-allowed) (\w+) ([\w.-]+)/([0-9A-Fa-f.:]+)\((\d+)\)(?:\([^)]*\))? -> ([\w.-]+)/([0-9A-Fa-f.:]+)\((\d+)\)(?:\([^)]*\))? hit-cnt (\d+)")
_ASA_BUILT = re.compile(r"Built (inbound|outbound) (\w+) connection (\d+) for ([\w.-]+):([0-9A-Fa-f.:]+)/(\d+)(?: \([^)]*\))?(?:\([^)]*\))? to ([\w.-]+):([0-9A-Fa-f.:]+)/(\d+)")
_ASA_ICMP = re.compile(r"Built (inbound|outbound) (ICMP)\w* connection for faddr ([0-9A-Fa-f.:]+)/\d+(?:\([^)]*\))? gaddr \S+ laddr ([0-9A-Fa-f.:]+)/\d+")
_ASA_TEARDOWN = re.compile(r"Teardown (\w+) connection (\d+) for .*? bytes (\d+)")
_ASA_SERVICE = re.compile(r"(TCP|UDP) (?:access (denied|permitted) by ACL|access requested|request discarded) from ([0-9A-Fa-f.:]+)/(\d+) to (?:([\w.-]+):)?([0-9A-Fa-f.:]+)/(\w+)")
_ASA_GROUP = re.compile(r'by access-group "?([^"\s\[]+)')
_MOST_OPEN = 100000


class Asa:
    """Reads Cisco ASA; remembers open connections so that the bytes of a teardown find their row."""

    def __init__(self) -> None:
        self.unmatched = 0
        self._open: Dict[str, Row] = {}

    def __call__(self, line: str) -> Found:
        """%ASA-level-number: text."""
        if "-" not in line or "%" not in line:
            return None
        found = _ASA.search(line)
        if not found:
            return None
        text = found.group(2)
        row = self._row(_time(line), found.group(1), text)
        return row or SKIP

    def _row(self, time: str, number: str, text: str) -> Optional[Row]:
        made = _ASA_BUILT.match(text)
        if made:
            way, kind, id, first_if, first, first_port, second_if, second, second_port = made.groups()
            ends = ((first, first_port), (second, second_port)) if way == "inbound" else ((second, second_port), (first, first_port))
            row = _of_asa(time, ALLOW, kind, ends[0], ends[1], first_if if way == "inbound" else second_if, number)
            if row and len(self._open) < _MOST_OPEN:
                self._open[id] = row
            return row
        made = _ASA_TEARDOWN.match(text)
        if made:
            row = self._open.pop(made.group(2), None)
            if row is None:
                self.unmatched += 1
                return None
            return row._replace(format=CLOSED, time=time, bytes=amount(made.group(3)))
        made = _ASA_DENY.match(text)
        if made:
            kind, source_if, source, source_port, _, destination, destination_port = made.groups()
            group = _ASA_GROUP.search(text)
            return _of_asa(time, DENY, kind, (source, source_port), (destination, destination_port), source_if or "", group.group(1) if group else number)
        made = _ASA_LIST.match(text)
        if made:
            name, verdict, kind, source_if, source, source_port, _, destination, destination_port, hits = made.groups()
            row = _of_asa(time, DENY if verdict == "denied" else ALLOW, kind, (source, source_port), (destination, destination_port), source_if, name)
            return row and row._replace(packets=amount(hits))
        made = _ASA_INBOUND.match(text)
        if made:
            source, source_port, destination, destination_port, source_if = made.groups()
            return _of_asa(time, DENY, "tcp", (source, source_port), (destination, destination_port), source_if or "", number)
        made = _ASA_ICMP.match(text)
        if made:
            way, kind, foreign, local = made.groups()
            ends = ((foreign, ""), (local, "")) if way == "inbound" else ((local, ""), (foreign, ""))
            return _of_asa(time, ALLOW, kind, ends[0], ends[1], "", number)
        made = _ASA_SERVICE.match(text)
        if made:
            kind, verdict, source, source_port, name, destination, service = made.groups()
            return _of_asa(time, ALLOW if verdict == "permitted" or "requested" in text else DENY, kind, (source, source_port), (destination, service), name or "", number)
        return None


def _of_asa(time: str, verdict: str, kind: str, source: Tuple[str, Optional[str]], destination: Tuple[str, Optional[str]], interface: str, rule: str) -> Optional[Row]:
    a, b = address(source[0]), address(destination[0])
    if not a or not b:
        return None
    return Row("cisco_asa", time, verdict, protocol(kind), a, port(source[1]), b, port(destination[1]), interface, rule, 0, 0)


# pf: the filterlog of pfSense and OPNsense, and tcpdump's reading of pflog.

_FILTERLOG = re.compile(r"filterlog(?:\[\d+\])?(?: \d+ - \[[^\]]*\])?:? (\d*,.*)|filterlog \d+ - (?:-|\[[^\]]*\]) (\d*,.*)")
_PFLOG = re.compile(r"rule (\S+?)(?:/\S+?)?(?:\([^)]*\))?:? (?:\[[^\]]*\] )?(pass|block|match|rdr|nat) (in|out) on (\S+): (?:\([^)]*\) )?(\S+) > (\S+?):(.*)")


def pf(line: str) -> Found:
    """filterlog: rule,sub,anchor,tracker,interface,reason,action,direction,version,... or rule 5/0(match): block in on em0: a > b: ..."""
    at = line.find("filterlog")
    if at >= 0:
        found = _FILTERLOG.search(line, at)
        return _filterlog(line, found.group(1) or found.group(2)) if found else None
    if "rule " not in line or " > " not in line:
        return None
    found = _PFLOG.search(line)
    if not found:
        return None
    rule, word, _, interface, source, destination, rest = found.groups()
    (a, a_port), (b, b_port) = _dotted(source), _dotted(destination)
    if not a or not b:
        return None
    kind = "udp" if re.match(r"\s*(?:udp|\d+\+?[^,]{0,8} [A-Z]+\?)", rest, re.I) else "icmp" if "icmp" in rest[:12] else "tcp" if "Flags" in rest or re.match(r" [SFRP.]+ ", rest) else "unknown"
    return Row("pf", _time(line), action(word), kind, a, a_port, b, b_port, interface, rule, 0, 1)


def _dotted(text: str) -> Tuple[str, int]:
    """tcpdump's address.port."""
    whole = address(text)
    if whole:
        return whole, -1
    host, _, number = text.rpartition(".")
    return address(host), port(number)


def _filterlog(line: str, data: str) -> Found:
    cells = data.split(",")
    if len(cells) < 9:
        return None
    rule, interface, word, version = cells[3] or cells[0], cells[4], cells[6], cells[8]
    if version == "4" and len(cells) >= 20:
        kind, length, source, destination, rest = cells[16], cells[17], cells[18], cells[19], cells[20:]
    elif version == "6" and len(cells) >= 17:
        kind, length, source, destination, rest = cells[12], cells[14], cells[15], cells[16], cells[17:]
    else:
        return SKIP
    a, b = address(source), address(destination)
    if not a or not b:
        return SKIP
    kind = protocol(kind)
    ports = (port(rest[0]), port(rest[1])) if kind in ("tcp", "udp", "sctp") and len(rest) >= 2 else (-1, -1)
    return Row("pf", _time(line), action(word), kind, a, ports[0], b, ports[1], interface, rule, amount(length), 1)


# Amazon VPC flow logs, in the default order of version 2 or that of a header.

_VPC = ("version", "account-id", "interface-id", "srcaddr", "dstaddr", "srcport", "dstport", "protocol", "packets", "bytes", "start", "end", "action", "log-status")


class VpcFlow:
    """Reads VPC flow logs; a header line changes the columns."""

    def __init__(self) -> None:
        self._columns: Tuple[str, ...] = _VPC

    def __call__(self, line: str) -> Found:
        """2 account interface source destination ports protocol packets bytes start end ACTION status."""
        cells = line.split(" ")
        if len(cells) < 6:
            return None
        if "srcaddr" in cells and "dstaddr" in cells:
            self._columns = tuple(cells)
            return SKIP
        if len(cells) == len(self._columns) + 1 and cells[0][:2] == "20" and "T" in cells[0]:
            cells = cells[1:]  # the time that a log group's export puts first
        columns = self._columns
        if len(cells) != len(columns):
            return None
        named = dict(zip(columns, cells))
        if columns is _VPC and not (cells[0].isdigit() and (cells[12] in ("ACCEPT", "REJECT") or cells[13] in ("NODATA", "SKIPDATA"))):
            return None
        a, b = address(named.get("srcaddr")), address(named.get("dstaddr"))
        if not a or not b:
            return SKIP if named.get("log-status") in ("NODATA", "SKIPDATA") else None
        return Row(
            "aws_vpc_flow", named.get("start", ""), action(named.get("action", "")), protocol(named.get("protocol", "")),
            a, port(named.get("srcport")), b, port(named.get("dstport")), named.get("interface-id", ""), "", amount(named.get("bytes")), amount(named.get("packets")),
        )  # fmt: skip


# Windows Defender Firewall: a W3C log, its columns in a header.


class Windows:
    """Reads pfirewall.log and other W3C logs that have addresses of both ends."""

    def __init__(self) -> None:
        self._columns: Tuple[str, ...] = ("date", "time", "action", "protocol", "src-ip", "dst-ip", "src-port", "dst-port", "size")
        self._given = False

    def __call__(self, line: str) -> Found:
        """date time action protocol src-ip dst-ip src-port dst-port size ..."""
        if line[:1] == "#":
            if line.startswith("#Fields:"):
                self._columns, self._given = tuple(line[8:].lower().split()), True
                return SKIP
            return SKIP if line.startswith(("#Version", "#Software", "#Time Format", "#Date")) else None
        cells = line.split()
        if len(cells) < 8 or line[4:5] != "-" or not self._given and len(cells) < len(self._columns):
            return None
        named = dict(zip(self._columns, cells))
        word = named.get("action", "")
        if word == "INFO-EVENTS-LOST":
            return SKIP
        verdict = action(word)
        a, b = address(named.get("src-ip") or named.get("c-ip")), address(named.get("dst-ip") or named.get("s-ip"))
        if not a or not b or verdict == UNKNOWN and not self._given:
            return None
        return Row(
            "windows_firewall", "%s %s" % (named.get("date", ""), named.get("time", "")), verdict, protocol(named.get("protocol", "")),
            a, port(named.get("src-port")), b, port(named.get("dst-port") or named.get("s-port")), named.get("path", ""), "", amount(named.get("size")), 1,
        )  # fmt: skip


Make = Callable[[str], Found]
