"""firewall_log_aggregator: who talked to whom through the firewall, and what stands out?"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .firewall_logs import tooling
    from .firewall_logs.aggregate import Aggregate, Table
    from .firewall_logs.reader import Reader
    from .firewall_logs.row import CLOSED, Row, as_json
    from .firewall_logs.textlines import Text, Unreadable
    from .firewall_logs.timestamps import Clock
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from firewall_logs import tooling
    from firewall_logs.aggregate import Aggregate, Table
    from firewall_logs.reader import Reader
    from firewall_logs.row import CLOSED, Row, as_json
    from firewall_logs.textlines import Text, Unreadable
    from firewall_logs.timestamps import Clock

FITTING = ("log_stream", "json_events", "cloud_audit_log", "text")
_SUPPORTED = "iptables/nftables, Cisco ASA, pf/pfSense, Windows firewall, AWS VPC flow logs, key=value, CEF, CSV with a header, JSON"
_MOST_BUCKETS = 168


class FirewallLogAggregator:
    """Aggregates one firewall log."""

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
        """Read the log once; count, find what stands out, write the rows."""
        payload = tooling.as_written(payload, self._schema)
        try:
            chosen = tooling.choose(payload, context, FITTING)
            return self._aggregate(payload, context, chosen)
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)
        except Unreadable as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details={"file_path": chosen.path, "artifact_id": chosen.artifact_id})

    def _aggregate(self, payload: Dict[str, Any], context: Any, chosen: Any) -> ToolResult:
        total = Aggregate(payload.get("scan_threshold", 20), payload.get("beacon_connections", 10))
        clock = Clock(payload.get("year"))
        most = payload.get("max_rows", 250000) if payload.get("write_rows", True) and tooling.can_register(context) else 0
        written = 0
        with Text(chosen.path, told=lambda done, size: tooling.tell(context, "reading " + chosen.name, done, size)) as text:
            clock.anchor(text.head())
            reader = Reader(text)
            path = tooling.new_file(context, "firewall_log_aggregator", chosen, "jsonl") if most else os.devnull
            with open(path, "w", encoding="utf-8") as file:

                def timed() -> Iterator[Tuple[Row, Optional[float]]]:
                    nonlocal written
                    for row, line in reader:
                        at = clock.read(row.time) if row.time else None
                        if written < most and row.format != CLOSED:
                            file.write(as_json(row, clock.show(at), line))
                            written += 1
                        yield row, at

                total.add_all(timed())
        if not total.rows:
            if most:
                os.unlink(path)
            if reader.records:
                raise tooling.Refused(
                    "ARTIFACT_UNREADABLE", "none of the %d records of %s is of a firewall log that is known (%s)" % (reader.records, chosen.name, _SUPPORTED),
                    artifact_id=chosen.artifact_id, unparsed_lines=reader.unparsed_at, skipped=reader.skipped,
                )  # fmt: skip
        outputs = None
        if written:
            metadata = {"source_artifact": chosen.artifact_id, "rows": written, "complete": written == total.rows}
            outputs = [tooling.register(context, path, "json_events", "firewall_log_aggregator", metadata)]
        elif most and os.path.exists(path):
            os.unlink(path)
        return ToolResult(ok=True, result=_answer(payload, chosen, text, reader, total, clock, written, most), output_artifacts=outputs)

    def summarize_for_llm(self, result: Any) -> str:
        """Counts and what stands out."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "firewall_log_aggregator: " + str(tooling.member(result, "message") or "no result")
        t = r["totals"]
        actions = ", ".join("%s %d" % (a["action"], a["rows"]) for a in r["by_action"] if a["rows"]) or "none"
        parts = ["%s: %d firewall rows (%s), %d sources, %d destinations" % (r["artifact"]["name"][:80], t["rows"], actions, t["sources"], t["destinations"])]
        if r["time"]["first"]:
            parts.append("from %s to %s" % (r["time"]["first"], r["time"]["last"]))
        if r["by_port"]:
            parts.append("ports: " + ", ".join("%s/%d (%d)" % (p["protocol"], p["port"], p["rows"]) for p in r["by_port"][:4]))
        if r["by_source"]:
            parts.append("sources: " + ", ".join("%s (%d)" % (s["address"], s["rows"]) for s in r["by_source"][:3]))
        if r["scanners"]:
            parts.append("%d scanners: " % r["counts"]["scanners"] + ", ".join("%s (%d ports, %d hosts)" % (s["source"], s["ports"], s["hosts"]) for s in r["scanners"][:3]))
        if r["beacons"]:
            shown_ = ", ".join("%s to %s port %d every %s s" % (b["source"], b["destination"], b["port"], b["interval_seconds"]) for b in r["beacons"][:2])
            parts.append("%d beaconing candidates: %s" % (r["counts"]["beacons"], shown_))
        if r["denied_then_allowed"]:
            shown_ = ", ".join("%s to %s" % (d["source"], d["destination"]) for d in r["denied_then_allowed"][:2])
            parts.append("%d pairs denied, then allowed: %s" % (r["counts"]["denied_then_allowed"], shown_))
        if r["top_talkers"] and r["top_talkers"][0]["bytes"]:
            top = r["top_talkers"][0]
            parts.append("most bytes: %s to %s, %d" % (top["source"], top["destination"], top["bytes"]))
        if t["unparsed"]:
            parts.append("%d records not understood" % t["unparsed"])
        return tooling.shorten("; ".join(parts) + ".", 950)


def _answer(payload: Dict[str, Any], chosen: Any, text: Text, reader: Reader, total: Aggregate, clock: Clock, written: int, most: int) -> Dict[str, Any]:
    limit = payload.get("limit", 20)
    total.coarsen(_MOST_BUCKETS)
    tables: Dict[str, Table] = {
        "by_protocol": total.by_protocol(limit),
        "by_port": total.by_port(limit),
        "by_source": total.by_source(limit),
        "by_destination": total.by_destination(limit),
        "top_talkers": total.talkers(limit),
        "scanners": total.scanners(clock.show, limit),
        "beacons": total.beacons(clock.show, limit),
        "denied_then_allowed": total.denied_then_allowed(clock.show, limit),
    }
    notes = list(reader.damage) + total.notes()
    if text.damage:
        notes.append(text.damage)
    if not total.rows:
        notes.append("The log holds no records.")
    if reader.unparsed:
        notes.append("%d records were not understood, the first at %s." % (reader.unparsed, ", ".join(map(str, reader.unparsed_at))))
    if reader.asa.unmatched:
        notes.append("%d connections were torn down that were opened before the log begins, or are no TCP or UDP; their bytes are not counted." % reader.asa.unmatched)
    if total.timed < total.rows:
        notes.append("%d rows have no time that can be read." % (total.rows - total.timed))
    if not clock.knows_year:
        notes.append("The times have no year: it is left out here; give year to have it.")
    if total.total.unknown:
        notes.append("%d rows do not say whether they were allowed." % total.total.unknown)
    if most and written < total.rows:
        notes.append("The file of rows holds the first %d of %d." % (written, total.rows))
    buckets = total.by_time(clock.show)
    if len(buckets) > _MOST_BUCKETS:
        notes.append("The first %d of %d time buckets are listed." % (_MOST_BUCKETS, len(buckets)))
    answer: Dict[str, Any] = {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "formats": [{"name": n, "records": reader.formats[n]} for n in sorted(reader.formats, key=lambda n: (-reader.formats[n], n))],
        "totals": {
            "records": reader.records,
            "rows": total.rows,
            "skipped": reader.skipped,
            "unparsed": reader.unparsed,
            "bytes": total.total.bytes,
            "sources": len(total.sources),
            "destinations": len(total.destinations),
        },
        "time": {"first": clock.show(total.first), "last": clock.show(total.last), "year_known": clock.knows_year, "bucket_seconds": total.bucket_seconds},
        "by_action": total.by_action(),
        "by_time": buckets[:_MOST_BUCKETS],
        "counts": {name: table.of for name, table in tables.items()},
        "notes": notes,
    }
    answer.update({name: list(table) for name, table in tables.items()})
    return answer
