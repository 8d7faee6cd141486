"""What is called after each mishap: it reads an artifact and counts its own calls."""

import os
import sys

from framework.plugins.protocol import ToolResult, ValidationResult


class Steady:
    def metadata(self):
        return {"tool_name": "steady", "version": "1.0.0"}

    def validate_inputs(self, payload):
        if payload.get("refuse"):
            return ValidationResult(ok=False, errors=["refused as asked"])
        return ValidationResult(ok=True)

    def execute(self, payload, context):
        calls = sys.steady_calls = getattr(sys, "steady_calls", 0) + 1
        result = {"calls": calls, "artifacts": len(context.artifacts)}
        wanted = payload.get("artifact_id")
        if wanted:
            found = [a for a in context.artifacts if a.artifact_id == wanted]
            if not found:
                return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=f"no artifact {wanted}")
            try:
                with open(found[0].file_path, "rb") as file:
                    result["size"] = os.fstat(file.fileno()).st_size
                    head = file.read(1 << 20)
            except OSError as exc:
                return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=str(exc))
            if payload.get("as") == "pcap" and head[:4] not in (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4"):
                return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="no capture: wrong magic")
            if payload.get("as") == "pcap":
                at, records = 24, 0
                while at < len(head):
                    length = int.from_bytes(head[at + 8 : at + 12], "little")
                    if at + 16 + length > len(head):
                        return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message=f"cut off in record {records + 1}", details={"records": records})
                    at, records = at + 16 + length, records + 1
                result["records"] = records
            result.update(type=found[0].artifact_type, name=os.path.basename(found[0].file_path), text=head[:40].decode("utf-8", "replace"))
        return ToolResult(ok=True, result=result)

    def summarize_for_llm(self, result):
        return f"call {result.result['calls']}"
