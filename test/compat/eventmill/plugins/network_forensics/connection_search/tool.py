"""Finds the connections of one address in a tab-separated connection log."""

import ipaddress
from pathlib import Path

from framework.plugins.protocol import ToolResult, ValidationResult


class ConnectionSearch:
    def metadata(self):
        return {"tool_name": "connection_search", "version": "0.4.1"}

    def validate_inputs(self, payload):
        try:
            ipaddress.ip_address(payload.get("ip_address", ""))
        except ValueError:
            return ValidationResult(ok=False, errors=["ip_address must be an IPv4 or IPv6 address"])
        return ValidationResult(ok=True, errors=[])

    def _log(self, context):
        for artifact in context.artifacts:
            if artifact.artifact_type in ("log_stream", "text"):
                return Path(artifact.file_path)
        return None

    def execute(self, payload, context):
        path = self._log(context)
        if path is None:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="load a connection log first", details={"wanted": ["log_stream", "text"]})
        names, hits, sent, received = [], [], 0, 0
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#fields"):
                names = line.split("\t")[1:]
            elif line and not line.startswith("#"):
                row = dict(zip(names, line.split("\t")))
                if payload["ip_address"] in (row["id.orig_h"], row["id.resp_h"]):
                    hits.append(row)
                    sent += int(row["orig_bytes"]) if row["orig_bytes"].isdigit() else 0
                    received += int(row["resp_bytes"]) if row["resp_bytes"].isdigit() else 0
        peers = sorted({row["id.resp_h"] if row["id.orig_h"] == payload["ip_address"] else row["id.orig_h"] for row in hits})
        return ToolResult(ok=True, result={"ip_address": payload["ip_address"], "connections": len(hits), "peers": peers, "bytes_sent": sent, "bytes_received": received})

    def summarize_for_llm(self, result):
        r = result.result
        return f"{r['ip_address']}: {r['connections']} connections with {len(r['peers'])} peers, {r['bytes_sent']} bytes sent."
