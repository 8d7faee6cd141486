"""Rows out of named values: JSON events, CSV with a header, key=value pairs. The
names are those that common firewalls, clouds and event schemas use."""

from __future__ import annotations

import csv
import json
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .makes import SKIP, Found
from .row import ALLOW, DENY, UNKNOWN, Row, action, address, amount, port, protocol

_TIME = ("timestamp", "@timestamp", "time", "datetime", "eventtime", "event_time", "start", "starttime", "start_time", "flow_start", "receive_time", "time_generated", "generated_time", "date", "ts", "_time", "first", "end")
_SOURCE = ("src_ip", "srcip", "source.ip", "src", "source", "sourceip", "source_ip", "srcaddr", "src_addr", "source address", "source_address", "sourceaddress", "id.orig_h", "src-ip", "client_ip", "jsonpayload.connection.src_ip", "c-ip")
_DESTINATION = ("dest_ip", "dst_ip", "dstip", "destination.ip", "dst", "dest", "destination", "destinationip", "destination_ip", "destip", "dstaddr", "dst_addr", "destination address", "destination_address", "destinationaddress", "id.resp_h", "dst-ip", "server_ip", "jsonpayload.connection.dest_ip")
_SOURCE_PORT = ("src_port", "srcport", "source.port", "sport", "spt", "sourceport", "source_port", "source port", "id.orig_p", "src-port", "s_port", "jsonpayload.connection.src_port")
_DESTINATION_PORT = ("dest_port", "dst_port", "dstport", "destination.port", "dport", "dpt", "destinationport", "destination_port", "destport", "destination port", "id.resp_p", "dst-port", "d_port", "service_port", "port", "jsonpayload.connection.dest_port")
_ACTION = ("action", "event.action", "act", "verdict", "disposition", "event.outcome", "flow_action", "fw_action", "status", "jsonpayload.disposition", "flow.action", "result", "alert.action")
_PROTOCOL = ("proto", "protocol", "network.transport", "transport", "ip_protocol", "ipprotocol", "prot", "jsonpayload.connection.protocol", "network.iana_number")
_INTERFACE = ("interface", "in_iface", "srcintf", "inbound_interface", "interface_id", "iface", "observer.ingress.interface.name", "interface-id", "devname")
_RULE = ("rule", "rule.name", "rule_name", "rulename", "policyid", "policy", "policy_name", "rule_id", "ruleid", "acl", "jsonpayload.rule_details.reference", "cs1")
_BYTES = ("bytes", "network.bytes", "bytes_total", "total_bytes", "size", "length", "flow.bytes")
_SENT = ("sentbyte", "bytes_sent", "source.bytes", "orig_bytes", "bytes_out", "out", "flow.bytes_toserver", "bytes_toserver")
_RECEIVED = ("rcvdbyte", "bytes_received", "destination.bytes", "resp_bytes", "bytes_in", "in", "flow.bytes_toclient", "bytes_toclient")
_PACKETS = ("packets", "network.packets", "pkts", "packet_count")
_PAIR = re.compile(r'(?<![^\s,;|])([A-Za-z_][\w.-]{0,63})=("(?:[^"\\]|\\.)*"|[^\s,;|]*)')
_CEF_NEXT = re.compile(r"\s+(?=[\w.\[\]-]{1,64}=)")


def _first(values: Dict[str, Any], names: Tuple[str, ...]) -> Any:
    for name in names:
        value = values.get(name)
        if value is not None and value != "" and value != "-" and not isinstance(value, (dict, list)):
            return value
    return None


def of_values(values: Dict[str, Any], format: str) -> Optional[Row]:
    """The row of an event's values, names in small letters; None if it has no addresses of two ends."""
    source, destination = address(_text(_first(values, _SOURCE))), address(_text(_first(values, _DESTINATION)))
    if not source or not destination:
        return None
    verdict = UNKNOWN
    for name in _ACTION:
        word = values.get(name)
        if isinstance(word, list) and word:
            word = word[0]
        if isinstance(word, str) and word:
            verdict = action(word)
            if verdict == UNKNOWN:  # firewall-rule-denied, TCP_DENIED, connection_allowed
                verdicts = {action(part) for part in re.split(r"[^A-Za-z]+", word)} - {UNKNOWN}
                verdict = DENY if DENY in verdicts else ALLOW if verdicts else UNKNOWN
            if verdict != UNKNOWN:
                break
    time = _text(_first(values, _TIME))
    if values.get("date") and values.get("time"):
        time = "%s %s" % (values["date"], values["time"])
    total = amount(_first(values, _BYTES))
    if not total:
        total = amount(_first(values, _SENT)) + amount(_first(values, _RECEIVED))
    return Row(
        format, time, verdict, protocol(_text(_first(values, _PROTOCOL))), source, port(_first(values, _SOURCE_PORT)), destination,
        port(_first(values, _DESTINATION_PORT)), _text(_first(values, _INTERFACE))[:64], _text(_first(values, _RULE))[:64], total, amount(_first(values, _PACKETS)),
    )  # fmt: skip


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def of_object(value: Any, format: str) -> Optional[Row]:
    """The row of a JSON object, its members' names joined with dots."""
    if not isinstance(value, dict):
        return None
    flat: Dict[str, Any] = {}
    pending: List[Tuple[str, Any, int]] = [("", value, 0)]
    while pending and len(flat) < 200:
        name, item, depth = pending.pop()
        if isinstance(item, dict) and depth < 5:
            pending += [(name + "." + str(k).lower() if name else str(k).lower(), v, depth + 1) for k, v in list(item.items())[:200]]
        elif name:
            flat[name] = item
    return of_values(flat, format)


def json_line(line: str) -> Found:
    """One JSON object."""
    text = line.lstrip()
    if text[:1] != "{":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return of_object(value, "json") or SKIP


def key_value(line: str) -> Found:
    """key=value pairs, and the extension of CEF."""
    if line.count("=") < 4:
        return None
    at = line.find("CEF:")
    if at >= 0:
        parts = line[at:].split("|", 7)
        values = {}
        for part in _CEF_NEXT.split(parts[-1].strip()):
            key, _, value = part.partition("=")
            values[key.lower()] = value
        values.setdefault("act", parts[5] if len(parts) > 6 else "")
        values.setdefault("time", values.get("rt") or values.get("start") or "")
        return of_values(values, "cef") or SKIP
    values = {key.lower(): value[1:-1] if value[:1] == '"' and len(value) > 1 else value for key, value in _PAIR.findall(line)}
    return of_values(values, "key_value")


def csv_header(head: str) -> Optional[Tuple[str, List[str]]]:
    """The delimiter and names of a header that has addresses of two ends."""
    line = next((part for part in head.split("\n") if part.strip()), "")
    for delimiter in (",", ";", "\t", "|"):
        if line.count(delimiter) < 2:
            continue
        try:
            names = [name.strip().strip("\ufeff").lower() for name in next(csv.reader([line.rstrip("\r")], delimiter=delimiter))]
        except (csv.Error, StopIteration):
            continue
        if any(n in names for n in _SOURCE) and any(n in names for n in _DESTINATION):
            return delimiter, names
    return None


def csv_rows(lines: Iterator[str], delimiter: str, names: List[str]) -> Iterator[Optional[Row]]:
    """A row for each record after the header, None for those that are none."""
    source = (line + "\n" for line in lines)
    csv.field_size_limit(1 << 16)
    for line in source:
        if line.strip():
            break
    while True:
        try:
            for cells in csv.reader(source, delimiter=delimiter):
                if cells:
                    yield of_values({n: c.strip() for n, c in zip(names, cells)}, "csv")
            return
        except csv.Error:
            yield None
