"""pcap_metadata_summary: who talks to whom in this capture?"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .pcap_summary import reader, tooling
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from pcap_summary import reader, tooling

FITTING = ("pcap",)
NAME = "pcap_metadata_summary"
_TABLE_BYTES = 128 << 20


class PcapMetadataSummary:
    """Summarises one capture."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema."""
        errors = tooling.check(tooling.as_written(payload, self._schema), self._schema)
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Have the capture read once and hand on what is in it."""
        payload = tooling.as_written(payload, self._schema)
        try:
            chosen = tooling.choose(payload, context, FITTING)
            return _summarise(payload, context, chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """The most important facts in a few sentences."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        counts, time = r["counts"], r["time"]
        parts = ["%s: %s, %d packets, %d bytes on the wire" % (tooling.shorten(r["artifact"]["name"], 80), r["capture"]["format"], r["packets"], r["bytes"])]
        if time["first"]:
            parts.append("from %s to %s (%.3f s)" % (time["first"], time["last"], time["duration_seconds"]))
        if r["truncated"]:
            parts.append("TRUNCATED at byte %d: %s" % (r["truncated_at"], tooling.shorten(r["truncation"], 100)))
        inner = _transports(r["protocols"])
        if inner:
            parts.append("protocols " + ", ".join("%s %d" % pair for pair in inner[:6]))
        parts.append("%d conversations, %d addresses" % (counts["conversations"], counts["addresses"]))
        if counts["packets_of_unkept_conversations"]:
            parts.append("%d packets of conversations beyond these" % counts["packets_of_unkept_conversations"])
        if r["conversations"]:
            parts.append("largest: " + ", ".join(_flow(flow) for flow in r["conversations"][:2]))
        if r["talkers"]:
            parts.append("top talkers " + ", ".join("%s (%d bytes)" % (t["address"], t["bytes"]) for t in r["talkers"][:3]))
        for label, name in (("DNS queries", "dns_queries"), ("HTTP hosts", "http_hosts"), ("TLS server names", "tls_server_names")):
            if r[name]:
                shown = ", ".join("%s (%d)" % (tooling.shorten(n["name"], 40), n["count"]) for n in r[name][:2])
                parts.append("%d %s: %s" % (counts[name], label, shown))
        quality = ["%d %s" % (r["quality"][name], name.replace("_", " ")) for name in ("malformed", "cut_by_snaplen", "fragments") if r["quality"][name]]
        if quality:
            parts.append(", ".join(quality))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _summarise(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen) -> ToolResult:
    limits = getattr(context, "limits", None) or {}
    table = table_bytes = None
    if payload.get("write_table", True) and tooling.can_register(context):
        table = tooling.new_file(context, NAME, chosen, "jsonl")
        table_bytes = min(_TABLE_BYTES, int(limits.get("max_artifact_size") or _TABLE_BYTES))
    limit = payload.get("limit", 20)
    try:
        report = reader.read(_HERE, chosen.path, limit, payload.get("max_flows"), table, table_bytes, limits.get("timeout"),
                             lambda done, size: tooling.tell(context, "reading " + chosen.name, done, size))  # fmt: skip
        written = report.pop("table", None)
        outputs: Optional[List[Dict[str, Any]]] = None
        report["table"] = None
        if table and report["counts"]["conversations"] > limit:
            report["table"] = written
            metadata = {"source_artifact": chosen.artifact_id, "conversations": written["written"], "omitted": written["omitted"]}
            outputs = [tooling.register(context, table, "json_events", NAME, metadata)]
    except BaseException:
        _remove(table)
        raise
    if outputs is None:
        _remove(table)
    report["artifact"] = {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name}
    return ToolResult(ok=True, result=report, output_artifacts=outputs)


def _remove(path: Optional[str]) -> None:
    if path and os.path.exists(path):
        os.unlink(path)


def _transports(protocols: List[Dict[str, Any]]) -> "List[tuple[str, int]]":
    """What the packets come to by protocol, wherever it stands, without the links."""
    counts: Dict[str, int] = {}
    for one in protocols:
        if one["protocol"] not in ("eth", "raw", "sll", "null", "vlan"):
            counts[one["protocol"]] = counts.get(one["protocol"], 0) + one["packets"]
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _flow(flow: Dict[str, Any]) -> str:
    return "%s to %s %s, %d bytes" % (_end(flow["source"], None), _end(flow["destination"], flow["destination_port"]), flow["protocol"], flow["bytes"])


def _end(address: str, port: Optional[int]) -> str:
    if port is None:
        return address
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, port)
