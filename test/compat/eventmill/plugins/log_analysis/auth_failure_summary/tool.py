"""Counts failed logins of an sshd log by address and user."""

import re
from collections import Counter, defaultdict
from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult

FAILED = re.compile(r"Failed password for (?:invalid user )?(?P<user>\S+) from (?P<address>\S+) port \d+")
ACCEPTED = re.compile(r"Accepted \w+ for (?P<user>\S+) from (?P<address>\S+) port \d+")


class AuthFailureSummary:
    def metadata(self):
        return {"tool_name": "auth_failure_summary", "version": "1.2.0", "pillar": "log_analysis"}

    def validate_inputs(self, payload):
        errors = []
        if not payload.get("artifact_id") and not payload.get("file_path"):
            errors.append("artifact_id or file_path is required")
        threshold = payload.get("threshold", 3)
        if not str(threshold).isdigit():
            errors.append("threshold must be a whole number")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload, context):
        path = payload.get("file_path")
        for artifact in context.artifacts:
            if artifact.artifact_id == payload.get("artifact_id"):
                path = artifact.file_path
        if not path or not Path(path).is_file():
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"{payload.get('artifact_id') or path} is not there")
        failed, users, accepted = Counter(), defaultdict(set), []
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                match = FAILED.search(line)
                if match:
                    failed[match["address"]] += 1
                    users[match["address"]].add(match["user"])
                    continue
                match = ACCEPTED.search(line)
                if match and failed[match["address"]]:
                    accepted.append({"address": match["address"], "user": match["user"], "failures_before": failed[match["address"]]})
        threshold = int(payload.get("threshold", 3))
        sources = [
            {"address": address, "failures": count, "users": sorted(users[address])}
            for address, count in sorted(failed.items(), key=lambda item: (-item[1], item[0]))
            if count >= threshold
        ]
        return ToolResult(ok=True, result={"total_failures": sum(failed.values()), "sources": sources, "accepted_after_failures": accepted})

    def summarize_for_llm(self, result):
        found = result.result
        top = found["sources"][0] if found["sources"] else None
        text = f"{found['total_failures']} failed logins, {len(found['sources'])} sources over the threshold."
        if top:
            text += f" Most from {top['address']} ({top['failures']})."
        if found["accepted_after_failures"]:
            text += f" {len(found['accepted_after_failures'])} logins succeeded after failures."
        return text
