"""line_search: the lines of a log that match a pattern, counted."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict

from framework.plugins.protocol import ToolResult, ValidationResult

_ADDRESS = re.compile(r"\b(?:from|src=)\s?(\d{1,3}(?:\.\d{1,3}){3})\b")
_USER = re.compile(r"\bfor (?:invalid user )?(\w+)")
_HOUR = len("2026-03-14T09")
_MOST = 10  # values that are listed


class LineSearch:
    """Searches one log."""

    def metadata(self) -> Dict[str, Any]:
        """Return which tool this is."""
        return {"tool_name": "line_search", "version": "1.0.0"}

    def validate_inputs(self, payload: Dict[str, Any]) -> ValidationResult:
        """Refuse a request without a regular expression."""
        pattern, limit = payload.get("pattern"), payload.get("limit", 20)
        errors = []
        if not isinstance(pattern, str) or not 0 < len(pattern) <= 500:
            errors.append("pattern must be text of 1 to 500 characters")
        else:
            try:
                re.compile(pattern)
            except re.error as err:
                errors.append("pattern is no regular expression: %s" % err)
        if not isinstance(payload.get("title", ""), str):
            errors.append("title must be text")
        if not isinstance(limit, int) or not 0 < limit <= 1000:
            errors.append("limit must be 1 to 1000")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: Dict[str, Any], context: Any) -> ToolResult:
        """Read the log once."""
        path = payload.get("file_path")
        if not path:
            path = next((a.file_path for a in context.artifacts if a.artifact_type == "log_stream"), None)
        if not path:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="the session has no log_stream")
        found, limit = re.compile(payload["pattern"]).search, payload.get("limit", 20)
        hours: Counter = Counter()
        addresses: Counter = Counter()
        users: Counter = Counter()
        first, number = [], 0
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                for number, line in enumerate(log, 1):
                    if not found(line):
                        continue
                    hours[line[:_HOUR]] += 1
                    address, user = _ADDRESS.search(line), _USER.search(line)
                    if address:
                        addresses[address.group(1)] += 1
                    if user:
                        users[user.group(1)] += 1
                    if len(first) < limit:
                        first.append({"line": number, "text": line.rstrip("\n")[:500]})
        except OSError as err:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="%s: %s" % (path, err))
        result = {
            "title": payload.get("title") or payload["pattern"],
            "lines": number,
            "matches": sum(hours.values()),
            "hours": dict(sorted(hours.items())),
            "addresses": [{"value": value, "count": count} for value, count in addresses.most_common(_MOST)],
            "users": [{"value": value, "count": count} for value, count in users.most_common(_MOST)],
            "first": first,
        }
        return ToolResult(ok=True, result=result)

    def summarize_for_llm(self, result: Any) -> str:
        """Say how many matches there are, and where most come from."""
        found = result.result
        text = "%d of %d lines match" % (found["matches"], found["lines"])
        for name in ("addresses", "users"):
            if found[name]:
                text += "; most frequent of the %s: " % name + ", ".join("%(value)s (%(count)d)" % one for one in found[name][:3])
        return text + "."
