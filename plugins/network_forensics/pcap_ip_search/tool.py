"""pcap_ip_search: where in this capture are these addresses?"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, Dict, List, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))

from framework.plugins.protocol import ToolResult, ValidationResult  # noqa: E402

if __package__:
    from .ip_search import search, tooling
    from .ip_search.captures import Capture
    from .ip_search.series import moment, parsed
    from .ip_search.targets import Targets, named_in
else:  # loaded by its path
    if _HERE not in sys.path:
        sys.path.append(_HERE)
    from ip_search import search, tooling
    from ip_search.captures import Capture
    from ip_search.series import moment, parsed
    from ip_search.targets import Targets, named_in

FITTING = ("pcap",)
NAME = "pcap_ip_search"
_OUT_BYTES = 128 << 20  # of the capture with what was found


class PcapIpSearch:
    """Searches one capture."""

    def __init__(self) -> None:
        self._manifest = tooling.load_json(_HERE, "manifest.json")
        self._schema = tooling.load_json(_HERE, self._manifest["input_schema"])

    def metadata(self) -> Dict[str, Any]:
        """The manifest."""
        return dict(self._manifest)

    def validate_inputs(self, payload: Any) -> ValidationResult:
        """Hold the request against the input schema."""
        written = tooling.as_written(payload, self._schema)
        errors = tooling.check(written, self._schema)
        if not errors and not written.get("addresses") and not written.get("indicators"):
            errors = ["addresses or indicators is required: what is searched for"]
        if not errors:
            try:
                Targets(written.get("addresses") or [])
                _filter(written)
            except (tooling.Refused, ValueError) as err:
                errors = [str(err)]
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Read the capture once and leave what was found."""
        payload = tooling.as_written(payload, self._schema)
        try:
            chosen = tooling.choose(payload, context, FITTING)
            return _found(payload, context, chosen, Targets(_wanted(payload, context)))
        except tooling.Refused as err:
            return ToolResult(ok=False, error_code=err.code, message=str(err), details=err.details)

    def summarize_for_llm(self, result: Any) -> str:
        """How much of what was searched for is there, since when, with whom, and where to look."""
        r = tooling.member(result, "result") or {}
        if not r:
            return "%s: %s" % (NAME, tooling.member(result, "message") or "no result")
        c = r["counts"]
        parts = ["%s: %d of %d addresses found, in %d of %d packets, %d bytes" % (
            tooling.shorten(r["artifact"]["name"], 80), c["targets_found"], c["targets"], c["matched"], c["packets"], c["matched_bytes"])]  # fmt: skip
        if r["truncated"]:
            parts.append("capture TRUNCATED at byte %d" % r["truncated_at"])
        for target in r["targets"][:3]:
            peers = ", ".join(p["address"] for p in target["peers"][:2])
            ports = ", ".join("%s/%d" % (p["protocol"], p["port"]) for p in target["ports"][:3])
            roles = ", ".join("%s %d" % item for item in target["roles"].items())
            text = "%s: %d frames, first frame %d (%s), last frame %d" % (
                target["target"], target["frames"], target["first"]["frame"], target["first"]["time"] or "no time", target["last"]["frame"])  # fmt: skip
            parts.append(text + ", as " + roles + (", with " + peers if peers else "") + (", ports " + ports if ports else ""))
        if r["not_found"]:
            parts.append("not found: " + ", ".join(r["not_found"][:3]) + (" and %d more" % (c["targets"] - c["targets_found"] - 3) if c["targets"] - c["targets_found"] > 3 else ""))
        return tooling.shorten("; ".join(parts) + ".", 950)


def _wanted(payload: Dict[str, Any], context: Any) -> List[str]:
    wanted = list(payload.get("addresses") or [])
    if payload.get("indicators"):
        name = payload["indicators"]
        known = any(ref.artifact_id == name for ref in getattr(context, "artifacts", None) or [])
        listed = tooling.choose({"artifact_id" if known else "file_path": name}, context, ())
        try:
            named = named_in(listed.path)
        except OSError as err:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "the indicators cannot be read: %s" % err, file_path=listed.path) from None
        if not named:
            raise tooling.Refused("ARTIFACT_UNREADABLE", "%s has no addresses" % listed.name, file_path=listed.path)
        wanted += named
    if not wanted:
        raise tooling.Refused("INPUT_VALIDATION_FAILED", "addresses or indicators is required: what is searched for")
    return wanted


def _filter(payload: Dict[str, Any]) -> search.Filter:
    times = []
    for name in ("start", "end"):
        try:
            times.append(parsed(payload[name]) if payload.get(name) else None)
        except ValueError:
            raise tooling.Refused("INPUT_VALIDATION_FAILED", "%s is no time in ISO 8601: %s" % (name, payload[name])) from None
    return search.Filter({int(port) for port in payload.get("ports") or []}, set(payload.get("protocols") or []), payload.get("direction", "any"), times[0], times[1])


def _found(payload: Dict[str, Any], context: Any, chosen: tooling.Chosen, targets: Targets) -> ToolResult:
    capture = Capture(chosen.path, lambda done, total: tooling.tell(context, "reading " + chosen.name, done, total))
    run = search.Search(capture, targets, _filter(payload))
    limit = payload.get("limit", 20)
    rows = payload.get("max_rows", 250000) if payload.get("write_table", True) and tooling.can_register(context) else 0
    most = int((getattr(context, "limits", None) or {}).get("max_artifact_size") or _OUT_BYTES)
    cut = _Cut(context, chosen, min(most, _OUT_BYTES)) if payload.get("write_capture", False) and tooling.can_register(context) else None
    shown: List[Dict[str, Any]] = []
    written = size = 0
    path = tooling.new_file(context, NAME, chosen, "jsonl") if rows else os.devnull
    try:
        with open(path, "w", encoding="utf-8") as table:
            for match in run.matches():
                if len(shown) >= limit and written >= rows and cut is None:
                    continue
                if len(shown) < limit or written < rows:
                    entry = search.line(match, targets)
                    if len(shown) < limit:
                        shown.append(entry)
                    text = json.dumps(entry, ensure_ascii=False, sort_keys=True) + "\n" if written < rows else ""
                    if text and size + len(text) <= most:
                        size += table.write(text)
                        written += 1
                if cut is not None:
                    cut.add(match.frame)
        outputs: List[Dict[str, Any]] = []
        if run.matched > len(shown) and written:
            metadata = {"source_artifact": chosen.artifact_id, "rows": written, "complete": written == run.matched}
            outputs.append(tooling.register(context, path, "json_events", NAME, metadata))
        elif rows:
            os.unlink(path)
        if cut is not None:
            outputs += cut.close(chosen)
    except BaseException:
        for left in [path if rows else None, cut.path if cut is not None else None]:
            if left and os.path.exists(left):
                os.unlink(left)
        raise
    return ToolResult(ok=True, result=_answer(chosen, capture, run, targets, shown, limit, written, cut), output_artifacts=outputs or None)


class _Cut:
    """A capture with the frames that were found, as they were."""

    def __init__(self, context: Any, chosen: tooling.Chosen, most: int) -> None:
        self.path = tooling.new_file(context, NAME, chosen, "pcap")
        self.written = self.omitted = 0
        self._context = context
        self._left = most - 24
        self._link: Optional[int] = None
        self._file = open(self.path, "wb")

    def add(self, frame: Tuple[int, int, Optional[int], int, bytes, int]) -> None:
        _, _, at, link, data, wire = frame
        if self._link is None:
            self._link = link
            self._file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link))
        seconds, part = divmod(at or 0, 1000000000)
        if link != self._link or len(data) + 16 > self._left or seconds >> 32 or len(data) > 262144:
            self.omitted += 1
            return
        self._left -= len(data) + 16
        self._file.write(struct.pack("<IIII", seconds, part, len(data), wire) + data)
        self.written += 1

    def close(self, chosen: tooling.Chosen) -> List[Dict[str, Any]]:
        """Hand the capture to the host, if there is something in it."""
        self._file.close()
        if not self.written:
            os.unlink(self.path)
            return []
        metadata = {"source_artifact": chosen.artifact_id, "packets": self.written, "omitted": self.omitted}
        return [tooling.register(self._context, self.path, "pcap", NAME, metadata)]


def _answer(chosen: Any, capture: Capture, run: search.Search, targets: Targets, shown: List[Dict[str, Any]], limit: int, written: int, cut: Optional[_Cut]) -> Dict[str, Any]:
    notes = []
    if run.matched > max(written, len(shown)):
        notes.append("%d frames that match are in neither the result nor its table; narrow the search." % (run.matched - max(written, len(shown))))
    if cut is not None and cut.omitted:
        notes.append("%d frames are not in the capture that was written: another link type, or no room." % cut.omitted)
    if capture.ignored_blocks:
        notes.append("%d blocks of the capture hold no packets." % capture.ignored_blocks)
    found = sorted(run.found.items(), key=lambda item: (-item[1].frames, item[0]))
    missing = [name for i, name in enumerate(targets.names) if i not in run.found]
    return {
        "artifact": {"artifact_id": chosen.artifact_id, "artifact_type": chosen.artifact_type, "name": chosen.name},
        "counts": {
            "packets": capture.packets, "targets": len(targets.names), "targets_found": len(found), "matched": run.matched, "matched_bytes": run.bytes,
            "malformed": run.malformed,
        },
        "truncated": capture.truncated_at is not None, "truncated_at": capture.truncated_at, "truncation": capture.truncation or None,
        "malformed_frames": run.malformed_at,
        "targets": [_target(targets.names[i], target) for i, target in found[:limit]],
        "not_found": missing[: max(limit, 20)],
        "matches": shown,
        "series": run.series.shown(),
        "table_rows": written if run.matched > len(shown) else 0,
        "capture_packets": cut.written if cut is not None else 0,
        "notes": notes,
    }  # fmt: skip


def _target(name: str, target: search.Target) -> Dict[str, Any]:
    def ranked(counts: Dict[Any, List[int]]) -> List[Tuple[Any, List[int]]]:
        return sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))[:10]

    return {
        "target": name, "frames": target.frames, "bytes": target.bytes, "frames_sent": target.sent[0], "bytes_sent": target.sent[1],
        "frames_received": target.received[0], "bytes_received": target.received[1], "first": _place(target.first), "last": _place(target.last),
        "roles": dict(sorted(target.roles.items())),
        "peers": [{"address": search.shown(address), "frames": n[0], "bytes": n[1]} for address, n in ranked(target.peers)],
        "peers_total": len(target.peers), "frames_of_unkept_peers": target.peers_beyond,
        "ports": [{"protocol": search.protocol(key[0]), "port": key[1], "frames": n[0], "bytes": n[1]} for key, n in ranked(target.ports)],
    }  # fmt: skip


def _place(at: Optional[Tuple[int, int, Optional[int]]]) -> Optional[Dict[str, Any]]:
    return None if at is None else {"frame": at[0], "offset": at[1], "time": moment(at[2])}
