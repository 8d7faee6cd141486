"""Document.Process: a document becomes JSON, with the place of all that is told.

The host reads the file, in a process of its own without network; this plugin
sees the text that came of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from mortise import Context, InvalidInput, Plugin, PluginError, Result
from structure import Text, fields, profile, sections

SCOPE = "document:read"

plugin = Plugin("Document.Process", version="1.0.0", capabilities=["ocr"])


@plugin.operator(name="Document.Process", policy_tags=["read_only", "pii_allowed"], permissions=[SCOPE], brokered=True)
def document_process(document: dict, ctx: Context) -> dict:
    """Turn a document into JSON: sections and fields, each with its place."""
    _permitted(ctx)
    raw = _bytes(document)
    read = _read(document, raw, ctx)
    details = read["metadata"].get("details") or {}
    starts = details.get("page_starts")
    known = isinstance(starts, list) and all(type(start) is int for start in starts)
    text = Text(read["text"], starts if known else [])
    parts, found = sections(text), fields(text)
    pages = details.get("pages")
    method = read["metadata"]["method"]
    return Result(
        {
            "processed_content": text.text,
            "truncated": text.truncated,
            "pages": pages if type(pages) is int else text.pages,
            "sections": parts,
            "fields": found,
            "profile": profile(found, parts, text),
            "source": {
                "digest": f"sha256:{hashlib.sha256(raw).hexdigest()}",
                "filename": document.get("filename", ""),
                "method": method,
                "confidence": read["metadata"]["confidence"],
            },
        },
        summary=f"{len(parts)} sections and {len(found)} fields in {len(text.text)} characters.",
        nondeterminism={"is_nondeterministic": True, "reasons": ["ocr"], "stability": "medium"} if method == "ocr" else None,
    )


def _bytes(document: dict) -> bytes:
    if "text" in document:
        return document["text"].encode("utf-8", "replace")
    try:
        return base64.b64decode(document["content_base64"], validate=True)
    except (ValueError, binascii.Error) as err:
        raise InvalidInput(f"document.content_base64: {err}") from None


def _read(document: dict, raw: bytes, ctx: Context) -> dict:
    """The text of the document, as ocr.extract_text gives it; only what may hold pictures is looked at as one."""
    if "text" in document:
        return {"text": document["text"], "metadata": {"method": "text", "confidence": 1, "details": {}}}
    asked = {"file": {"$bytes": base64.b64encode(raw).decode("ascii")}, "mode": "fallback"}
    asked.update({name: document[name] for name in ("filename", "mime_type") if name in document})
    return ctx.service("ocr.extract_text", asked)


def _permitted(ctx: Context) -> None:
    """The host has asked already; an operator asks again (kernel contracts, 5.3.4 E)."""
    scopes = ctx.auth.get("scopes") or []
    if SCOPE not in scopes and "*" not in scopes:
        raise PluginError(f"reading documents needs the scope {SCOPE}", code="SCOPE_DENIED", details={"scope": SCOPE})


if __name__ == "__main__":
    plugin.run()
