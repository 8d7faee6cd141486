"""Scores registered domains of a Zeek dns.log for DNS tunnelling."""
from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

try:
    from framework.plugins.protocol import ToolResult, ValidationResult
except ImportError:  # stand-alone tests
    @dataclass
    class ToolResult:
        ok: bool
        result: dict[str, Any] | None = None
        error_code: str | None = None
        message: str | None = None
        details: dict[str, Any] | None = None
        output_artifacts: list | None = None

    @dataclass
    class ValidationResult:
        ok: bool
        errors: list[str] | None = None


def entropy(text: str) -> float:
    if not text:
        return 0.0
    n = len(text)
    return -sum(c / n * math.log2(c / n) for c in Counter(text).values())


def split_name(query: str) -> tuple[str, str]:
    labels = query.rstrip(".").lower().split(".")
    if len(labels) <= 2:
        return "", ".".join(labels)
    return ".".join(labels[:-2]), ".".join(labels[-2:])


def read_zeek(path: str):
    """Yields dicts; understands the #fields header of Zeek TSV logs."""
    fields = None
    with open(path, encoding="utf-8", errors="replace") as fh:
        for line in fh:
            line = line.rstrip("\n")
            if line.startswith("#fields"):
                fields = line.split("\t")[1:]
            elif line.startswith("#") or not line:
                continue
            else:
                if fields is None:
                    raise ValueError("no #fields header before the first record")
                yield dict(zip(fields, line.split("\t")))


class ZeekDnsTunnelScorer:
    NAME = "zeek_dns_tunnel_scorer"

    def metadata(self) -> dict:
        return {"tool_name": self.NAME, "version": "1.1.0", "pillar": "network_forensics"}

    def validate_inputs(self, payload: dict) -> ValidationResult:
        errors = []
        if not payload.get("file_path"):
            errors.append("file_path is required")
        try:
            if int(payload.get("min_queries", 3)) < 1:
                errors.append("min_queries must be at least 1")
        except (TypeError, ValueError):
            errors.append("min_queries must be an integer")
        return ValidationResult(ok=not errors, errors=errors or None)

    def execute(self, payload: dict, context) -> ToolResult:
        path = payload["file_path"]
        if not os.path.isfile(path):
            wanted = os.path.basename(path)
            for ref in getattr(context, "artifacts", None) or []:
                if os.path.basename(ref.file_path) == wanted:
                    path = ref.file_path
                    break
            else:
                return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"no such file: {wanted}")
        floor = int(payload.get("min_queries", 3))
        groups: dict[str, list[str]] = defaultdict(list)
        clients: dict[str, set] = defaultdict(set)
        total = 0
        try:
            for rec in read_zeek(path):
                query = rec.get("query", "-")
                if query in ("-", ""):
                    continue
                total += 1
                sub, domain = split_name(query)
                groups[domain].append(sub)
                clients[domain].add(rec.get("id.orig_h", "?"))
        except ValueError as exc:
            return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=str(exc), details={"file": os.path.basename(path)})
        rows = []
        for domain, subs in groups.items():
            if len(subs) < floor:
                continue
            unique = set(subs)
            mean_len = sum(map(len, subs)) / len(subs)
            ent = sum(entropy(s) for s in subs) / len(subs)
            score = 0
            score += 40 if len(unique) / len(subs) > 0.8 else 0
            score += 30 if mean_len > 20 else 0
            score += 30 if ent > 3.5 else 0
            rows.append({"domain": domain, "queries": len(subs), "unique_subdomains": len(unique),
                         "mean_subdomain_length": round(mean_len, 1), "mean_entropy": round(ent, 2),
                         "clients": sorted(clients[domain]), "score": score})
        rows.sort(key=lambda r: (-r["score"], r["domain"]))
        return ToolResult(ok=True, result={"total_queries": total, "domains_scored": len(rows), "suspects": [r["domain"] for r in rows if r["score"] >= 70], "domains": rows})

    def summarize_for_llm(self, result: ToolResult) -> str:
        r = result.result or {}
        head = f"{r.get('total_queries', 0)} DNS queries, {r.get('domains_scored', 0)} domains scored."
        sus = r.get("suspects") or []
        return head + (" Likely tunnelling: " + ", ".join(sus[:10]) + "." if sus else " No tunnelling suspects.")
