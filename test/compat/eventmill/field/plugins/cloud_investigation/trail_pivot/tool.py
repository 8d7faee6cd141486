"""Loads a trail once, and answers questions about it afterwards."""

import fnmatch
import json
import logging
import os
from collections import Counter, defaultdict
from datetime import datetime, timezone

logger = logging.getLogger("eventmill.plugin.trail_pivot")

_TRAIL = None  # loaded by action load, used by all others
_SOURCE = ""

SENSITIVE = ["CreateAccessKey", "AttachUserPolicy", "PutBucketPolicy", "StopLogging", "Delete*", "*Snapshot*"]


class Result:
    """Our own result type: predates the protocol module."""

    def __init__(self, ok, result=None, error_code=None, message=None, details=None):
        self.ok = ok
        self.result = result
        self.error_code = error_code
        self.message = message
        self.details = details


class Checked:
    def __init__(self, errors):
        self.ok = not errors
        self.errors = errors


def events_of(path):
    """Files hold {"Records": [...]}, a list, or one event a line."""
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(whole, dict):
        return whole["Records"]
    return whole


def when(event):
    return datetime.strptime(event["eventTime"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def who(event):
    identity = event.get("userIdentity") or {}
    return identity.get("userName") or identity.get("arn") or identity.get("type") or "unknown"


class TrailPivot:
    def metadata(self):
        return {"tool_name": "trail_pivot", "version": "1.0", "loaded": _TRAIL is not None}

    def validate_inputs(self, payload):
        errors = []
        action = payload.get("action")
        if action not in ("load", "users", "sensitive", "pivot"):
            errors.append("action must be load, users, sensitive or pivot")
        elif action == "load":
            if not payload.get("file_path") and not payload.get("artifact_id"):
                errors.append("load needs artifact_id or file_path")
        elif _TRAIL is None:
            errors.append("no trail is loaded: call with action load first")
        if action == "pivot" and not payload.get("user") and not payload.get("ip"):
            errors.append("pivot needs user or ip")
        return Checked(errors)

    def execute(self, payload, context):
        return getattr(self, "_" + payload["action"])(payload, context)

    def _load(self, payload, context):
        global _TRAIL, _SOURCE
        path = payload["file_path"]
        try:
            events = events_of(path)
        except FileNotFoundError:
            return Result(False, error_code="FILE_NOT_FOUND", message="no such trail")
        except (ValueError, UnicodeDecodeError) as exc:
            return Result(False, error_code="PARSE_FAILED", message=f"not a trail: {type(exc).__name__}", details={"file": os.path.basename(path)})
        _TRAIL = sorted(events, key=when)
        _SOURCE = os.path.basename(path)
        logger.info("loaded %d events from %s", len(_TRAIL), _SOURCE)
        return Result(True, {"events": len(_TRAIL), "source": _SOURCE, "first": when(_TRAIL[0]).isoformat(), "last": when(_TRAIL[-1]).isoformat()})

    def _users(self, payload, context):
        actions, addresses = defaultdict(Counter), defaultdict(set)
        for event in _TRAIL:
            actions[who(event)][event["eventName"]] += 1
            addresses[who(event)].add(event.get("sourceIPAddress", "?"))
        rows = []
        for user in sorted(actions):
            rows.append({"user": user, "events": sum(actions[user].values()), "top": actions[user].most_common(1)[0], "addresses": sorted(addresses[user])})
        return Result(True, {"users": rows, "source": _SOURCE, "analysis": "\n".join(f"* {row['user']}: {row['events']} events" for row in rows)})

    def _sensitive(self, payload, context):
        found = []
        for number, event in enumerate(_TRAIL):
            for pattern in SENSITIVE:
                if fnmatch.fnmatchcase(event["eventName"], pattern):
                    found.append({"n": number, "at": event["eventTime"], "who": who(event), "what": event["eventName"], "error": event.get("errorCode")})
                    break
        path = "sensitive.jsonl"  # in the working directory
        with open(path, "w") as handle:
            for row in found:
                handle.write(json.dumps(row) + "\n")
        ref = context.register_artifact(artifact_type="json_events", file_path=path, source_tool="trail_pivot", metadata={})
        same = [a for a in context.artifacts if a.artifact_id == ref.artifact_id]
        return Result(True, {"events": found, "kept_as": ref.artifact_id, "name": os.path.basename(ref.file_path), "in_context": len(same) <= 1})

    def _pivot(self, payload, context):
        user, ip = payload.get("user"), payload.get("ip")
        chain, seen = [], {("user", user), ("ip", ip)}
        todo = [("user", user)] if user else [("ip", ip)]
        while todo:
            kind, value = todo.pop(0)
            linked = {who(e) if kind == "ip" else e["sourceIPAddress"] for e in _TRAIL if (e["sourceIPAddress"] if kind == "ip" else who(e)) == value}
            other = "user" if kind == "ip" else "ip"
            for one in sorted(linked):
                chain.append([kind, value, other, one])
                if (other, one) not in seen:
                    seen.add((other, one))
                    todo.append((other, one))
        if not chain:
            return Result(False, None, "INVALID_INPUT", f"{user or ip} is not in {_SOURCE}", {"users": sorted({who(e) for e in _TRAIL})})
        return Result(True, {"chain": chain, "reached": len(seen) - 1})

    def summarize_for_llm(self, result):
        data = result.result
        if "users" in data:
            return f"{len(data['users'])} users in {data['source']}."
        if "chain" in data:
            return " | ".join(" ".join(step) for step in data["chain"])
        if "first" in data:
            return f"Loaded {data['events']} events."
        return ""
