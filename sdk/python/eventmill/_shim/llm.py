"""The LLMQueryInterface: every question goes through the host."""

from __future__ import annotations

import os

from framework.plugins.protocol import LLMResponse
from mortise._errors import Cancelled, MortiseError
from mortise._session import error_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortise._context import Context

    from .artifacts import Artifacts

INLINE_BYTES = 256 << 10  # of an image; a larger one travels as a file
_HINTS = ("tier", "needs_reasoning", "needs_structured_output", "prefers_native_file", "max_budget_cents")
_ANSWER = ("text", "error", "token_usage", "model_used", "transport_path", "fallback_reason")


class LLM:
    """What a tool gets as context.llm_query. A model that fails is an answer with ok=False, not an exception."""

    def __init__(self, ctx: Context, files: Artifacts) -> None:
        self._ctx = ctx
        self._files = files
        self._images = 0

    def query_text(
        self,
        prompt: str,
        system_context: str | None = None,
        max_tokens: int = 4096,
        grounding_data: list[str] | None = None,
        hints: Any = None,
    ) -> LLMResponse:
        """Ask in text."""
        return self._ask("llm.query_text", prompt, system_context, max_tokens, grounding_data, hints)

    def query_multimodal(
        self,
        prompt: str,
        image_data: bytes,
        image_format: str,
        system_context: str | None = None,
        max_tokens: int = 4096,
    ) -> LLMResponse:
        """Ask about an image."""
        data = bytes(image_data)
        path = ""
        if len(data) <= INLINE_BYTES:
            from binascii import b2a_base64

            image = {"$bytes": b2a_base64(data, newline=False).decode()}
        else:
            path, name = self._image_file(str(image_format))
            with open(path, "wb") as file:
                file.write(data)
            image = {"$file": name}
        try:
            return self._ask("llm.query_multimodal", prompt, system_context, max_tokens, image=image, image_format=str(image_format))
        finally:
            if path:
                os.unlink(path)

    def query_with_document(
        self,
        prompt: str,
        artifact: Any,
        system_context: str | None = None,
        max_tokens: int = 8192,
        grounding_data: list[str] | None = None,
        hints: Any = None,
    ) -> LLMResponse:
        """Ask about the file that a reference points at. An id that it has is not looked up: the tool may have made it itself."""
        said = artifact if isinstance(artifact, dict) else getattr(artifact, "__dict__", {})
        file_path, metadata = said.get("file_path"), said.get("metadata")
        kind = metadata.get("mime_type") if isinstance(metadata, dict) else None
        try:
            path = os.path.abspath(os.fsdecode(file_path or ""))
            id, name = self._files.document(path) if file_path else ("", "")
        except (OSError, TypeError, ValueError) as exc:
            error = f"the document {file_path!r} cannot be opened: {error_message(exc)}"
            return LLMResponse(ok=False, error=error, transport_path="text_fallback", fallback_reason=error)
        more: dict[str, Any] = {"artifact_id": id} if id else {"document": {"$file": name}}
        if not file_path:
            more = {"artifact_id": str(said.get("artifact_id", artifact))}  # only a name: of an artifact of the session
        elif not id:
            kind = kind or "application/pdf"
        if kind:
            more["mime_type"] = str(kind)
        return self._ask("llm.query_with_document", prompt, system_context, max_tokens, grounding_data, hints, **more)

    def supports_native_document(self, mime_type: str) -> bool:
        """Report whether a connected model reads this type by itself."""
        try:
            answer = self._ctx.service("llm.supports_native_document", {"mime_type": str(mime_type)})
        except Cancelled:
            raise
        except MortiseError:
            return False
        return isinstance(answer, dict) and bool(answer.get("supported"))

    def _ask(
        self,
        method: str,
        prompt: str,
        system_context: str | None,
        max_tokens: int,
        grounding_data: list[str] | None = None,
        hints: Any = None,
        **more: Any,
    ) -> LLMResponse:
        args: dict[str, Any] = {"prompt": str(prompt), "max_tokens": int(max_tokens), **more}
        if system_context is not None:
            args["system_context"] = str(system_context)
        if grounding_data:
            listed: Any = [grounding_data] if isinstance(grounding_data, str) else grounding_data
            args["grounding_data"] = [str(text) for text in listed]
        if hints is not None:
            args["hints"] = _spelled(hints)
        try:
            answer = self._ctx.service(method, args)
        except Cancelled:
            raise
        except MortiseError as exc:  # refused, or a question that fits in no frame
            return LLMResponse(ok=False, error=f"{exc.code}: {error_message(exc)}")
        if not isinstance(answer, dict):
            return LLMResponse(ok=False, error="the host's answer is no LLMResponse")
        said = {name: answer.get(name) for name in _ANSWER}
        said["token_usage"] = _usage(said["token_usage"])
        return LLMResponse(ok=answer.get("ok") is True, **said)

    def _image_file(self, image_format: str) -> tuple[str, str]:
        """Return a path for an image, and what the host calls it: its place in the scratch directory."""
        self._images += 1
        ending = "".join(c for c in image_format.rpartition("/")[2].lower() if c.isalnum())[:8] or "bin"
        directory = os.path.join(self._ctx.scratch, "images")
        os.makedirs(directory, exist_ok=True)
        name = f"{self._ctx._call[:8]}-{self._images}.{ending}"
        return os.path.join(directory, name), f"images/{name}"


def _usage(said: Any) -> dict[str, int] | None:
    """Return token usage by the names that tools know; None where the host does not know it."""
    if not isinstance(said, dict) or "input_tokens" not in said:
        return None
    spelled = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
    return {name: said[host] for name, host in spelled.items() if isinstance(said.get(host), int)}


def _spelled(hints: Any) -> dict[str, Any]:
    """Return the members of hints that are set, of a QueryHints or of anything that has them."""
    found = {name: hints.get(name) if isinstance(hints, dict) else getattr(hints, name, None) for name in _HINTS}
    return {name: value for name, value in found.items() if value is not None}
