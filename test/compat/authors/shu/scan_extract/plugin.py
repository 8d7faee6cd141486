from __future__ import annotations

import base64
import binascii
import re

from shu_plugin_sdk import PluginResult

SIGNATURES = [(b"%PDF-", "application/pdf"), (b"\x89PNG\r\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"II*\x00", "image/tiff"), (b"MM\x00*", "image/tiff")]
DATES = re.compile(r"\b(\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4})\b")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")


def sniff(blob: bytes):
    for magic, mime in SIGNATURES:
        if blob.startswith(magic):
            return mime
    try:
        blob.decode("utf-8")
        return "text/plain"
    except UnicodeDecodeError:
        return None


def iban_ok(iban: str) -> bool:
    s = iban.replace(" ", "")
    s = s[4:] + s[:4]
    return int("".join(str(int(c, 36)) for c in s)) % 97 == 1


class ScanExtract:
    name = "scan_extract"
    version = "0.2.0"

    def get_schema(self):
        return {"type": "object", "properties": {
            "op": {"type": "string", "enum": ["extract"], "default": "extract"},
            "content_base64": {"type": "string", "x-ui": {"help": "The file, base64 encoded"}},
            "mime_type": {"type": ["string", "null"], "x-ui": {"placeholder": "Detect"}},
            "mode": {"type": "string", "enum": ["auto", "always", "never"], "x-ui": {"enum_help": {
                "auto": "PDFs and images only.", "always": "Forces OCR.", "never": "Only text layers."}}},
            "find": {"type": "array", "items": {"enum": ["dates", "ibans", "emails"]}},
        }, "required": ["op", "content_base64"]}

    def get_output_schema(self):
        return {"type": "object", "properties": {"text": {"type": "string"}, "method": {"type": ["string", "null"]},
                "found": {"type": "object"}}, "required": ["text"]}

    async def execute(self, params, context, host):
        try:
            blob = base64.b64decode(params["content_base64"], validate=True)
        except (binascii.Error, ValueError):
            return PluginResult.err("content_base64 is not base64", code="bad_encoding")
        mime = params.get("mime_type") or sniff(blob)
        if mime is None:
            return PluginResult.err("unknown file format", code="unsupported_format", details={"first_bytes": blob[:8].hex()})
        result = await host.ocr.extract_text(file_bytes=blob, mime_type=mime, mode=params.get("mode") or "auto")
        text = (result.get("text") if isinstance(result, dict) else getattr(result, "text", "")) or ""
        meta = (result.get("metadata") if isinstance(result, dict) else getattr(result, "metadata", {})) or {}
        if not text.strip():
            return PluginResult.err("no text found", code="empty_extraction")
        found = {}
        for what in params.get("find") or []:
            if what == "dates":
                found[what] = DATES.findall(text)
            elif what == "ibans":
                found[what] = [{"iban": i, "valid": iban_ok(i)} for i in IBAN.findall(text)]
            else:
                found[what] = sorted(set(re.findall(r"[\w.+-]+@[\w-]+\.[\w.]+\w", text)))
        return PluginResult.ok({"text": text, "method": meta.get("method"), "mime_type": mime, "found": found},
                               diagnostics=["confidence %s" % meta.get("confidence")])
