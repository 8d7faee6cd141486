"""What a tool returned, and what is answered for it.

Tools bring result classes of their own, so members are taken by name from
whatever has them as attributes. A dict has none: it is no result, here as on
the host that tools were written for.
"""

from __future__ import annotations

import re

from mortise._context import cut
from mortise._wire import dumps

from .plain import NotJSON, plain, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INPUT_VALIDATION_FAILED = "INPUT_VALIDATION_FAILED"
ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
LLM_UNAVAILABLE = "LLM_UNAVAILABLE"
DEPENDENCY_MISSING = "DEPENDENCY_MISSING"
INTERNAL_ERROR = "INTERNAL_ERROR"

MAX_MESSAGE = 4 << 10  # as much as the host keeps
MAX_DETAILS = 64 << 10
MAX_OUTPUTS = 1 << 20
MAX_SUMMARY = 64 << 10  # characters; the host cuts to the 2,000 of the contract what goes to a model
MAX_ERRORS = 100  # of a validation
MAX_ERROR = 500


class Failure(Exception):
    """A call that ends here, under one of the contract's codes."""

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details or {}


def for_want_of_a_model(code: str | None, message: str, asked: bool) -> str | None:
    """Return the code of a result that is not ok, of a tool that asks for a model and had none.

    It is LLM_UNAVAILABLE where the failure has to do with the model: the tool looked for it in this call, or says so. Its own
    code stays where that names another cause: FILE_NOT_FOUND says more, ANALYSIS_FAILED does not.
    """
    said = str(code or "")
    if not (asked or said.startswith("LLM_") or speaks_of_a_model(message)):
        return code
    vague = not said or said.startswith("LLM_") or said.endswith(("_ERROR", "_FAILED"))
    return LLM_UNAVAILABLE if vague and said not in _CAUSES else said


# Not any model: tools are about risk models and threat models.
_MODEL = re.compile(
    r"\b(llm|mcp|language model|(no|without|without a|needs a|requires a) model|model (is |was )?(not|unavailable|needed|required))\b",
    re.IGNORECASE,
)
_CAUSES = (INPUT_VALIDATION_FAILED, "PARSE_FAILED")


def speaks_of_a_model(message: str) -> bool:
    """Report whether a failure says that it is about a language model."""
    return _MODEL.search(message) is not None


class Answer:
    """The result of an execute, its members spelled already."""

    def __init__(self, members: dict[str, str]) -> None:
        self._members = members
        self.data = members.get("data", "")  # the result, spelled
        self.saved = ""  # the artifact that holds it as well

    def text(self) -> str:
        return "{" + ",".join(f'"{name}":{text}' for name, text in self._members.items()) + "}"


def failed(code: str, message: str, details: Any = None, **members: str) -> Answer:
    """Return a failure in the tool's words; members are further ones, spelled."""
    told = _details(details if isinstance(details, dict) else {} if details is None else {"details": details})
    error = '{"code":"plugin_error","plugin_code":%s,"message":%s,"details":%s}'
    error %= dumps(clean(cut(code, 128))), dumps(clean(cut(message, MAX_MESSAGE))), told
    return Answer({"status": '"failed"', "error": error, **members})


def is_result(value: Any) -> bool:
    """Report whether something can be read as a ToolResult or ValidationResult: it says whether it is ok."""
    return not isinstance(value, type) and hasattr(value, "ok")


def member(result: Any, name: str) -> Any:
    """Return a member of a result, None where it has none."""
    return getattr(result, name, None)


def succeeded(result: Any, outputs: Any) -> Answer:
    """Return the answer for a result that is ok, but for its summary; raises NotJSON."""
    members = {"status": '"succeeded"', "data": text_of(member(result, "result"), "/result")}
    message, details = member(result, "message"), member(result, "details")
    if message is not None and message != "":
        members["message"] = dumps(clean(cut(message, MAX_MESSAGE)))
    if details:
        members["details"] = _details(details)
    members.update(spelled_outputs(outputs))
    return Answer(members)


def refused(tool: str, result: Any, outputs: Any, unmet: bool = False, asked: bool = False) -> Answer:
    """Return the answer for a result that is not ok; unmet says that the tool asks for a model and had none, asked that it looked."""
    members = spelled_outputs(outputs)
    data = member(result, "result")
    if data is not None:
        try:
            members["data"] = text_of(data, "/result")
        except NotJSON:
            pass  # why it failed matters more than what it had by then
    code = member(result, "error_code")
    message = member(result, "message") or f"{tool} failed and gave no reason"
    if unmet:
        code = for_want_of_a_model(code, str(message), asked)
    return failed(str(code) if code else INTERNAL_ERROR, message, member(result, "details"), **members)


def with_summary(answer: Answer, summary: str) -> Answer:
    """Add the summary of a result that is ok."""
    answer._members["summary"] = dumps(summary)
    return answer


def summary_of(value: Any, tool: str) -> str:
    """Return a summary as the tool gave it; a standing sentence for what is no text."""
    if not isinstance(value, str):
        return f"{tool} completed successfully."
    text = clean(value)
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 3] + "..."


def validation_errors(result: Any) -> list[Any] | None:
    """Return why a validation refused, None if it did not; raises TypeError for what is no validation. Errors with members keep them."""
    if not is_result(result):
        raise TypeError(f"validate_inputs returned {_named(result)} in place of a ValidationResult")
    if member(result, "ok"):
        return None
    errors = member(result, "errors") or member(result, "message") or "the input was refused without a reason"
    listed = list(errors) if isinstance(errors, (list, tuple, set)) else [errors]
    return [_error(error) for error in listed[:MAX_ERRORS]]


def _error(error: Any) -> Any:
    if isinstance(error, (dict, list, tuple)) or hasattr(type(error), "__dataclass_fields__"):
        try:
            told = plain(error, "/errors")
            if len(dumps(told)) <= MAX_ERROR:
                return told
        except NotJSON:
            pass
    return clean(cut(error, MAX_ERROR))


def error_text(error: Any) -> str:
    """Return one of validation_errors in words."""
    if isinstance(error, dict):
        return ", ".join(f"{name} {error_text(one)}" for name, one in error.items())
    return error if isinstance(error, str) else dumps(error)


def not_a_result(value: Any) -> str:
    """Return the sentence for what execute must not return."""
    return f"execute returned {_named(value)} in place of a ToolResult"


def clean(text: str) -> str:
    """Return text without halves of surrogate pairs, which have no bytes in UTF-8."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def spelled_outputs(outputs: Any) -> dict[str, str]:
    """Return the member output_artifacts as the tool gave it; nothing if it gave none or too much."""
    if not outputs:
        return {}
    try:
        text = text_of(outputs, "/output_artifacts")
    except NotJSON:
        return {}
    return {"output_artifacts": text} if len(text) <= MAX_OUTPUTS else {}


def _details(details: Any) -> str:
    try:
        text = text_of(details, "/details")
    except NotJSON as exc:
        return dumps({"not_json": str(exc)})
    return text if len(text) <= MAX_DETAILS else dumps({"cut": text[:8192], "bytes": len(text)})


def _named(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
