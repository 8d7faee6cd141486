"""Log records with a form."""

from __future__ import annotations

import logging

_MAX_TEXT = 500  # characters of a prompt or an answer; the host keeps the whole exchange itself
_logger = logging.getLogger("eventmill.llm")


def log_llm_interaction(
    prompt: str,
    response_text: str | None,
    model_id: str | None = None,
    history_turns: int = 0,
    session_id: str | None = None,
    error: str | None = None,
) -> None:
    """Log one exchange with a language model: how long it was and how it begins."""
    _logger.log(
        logging.WARNING if error else logging.INFO,
        "llm interaction: model=%s session=%s history_turns=%s prompt_chars=%d response_chars=%d error=%s prompt=%s response=%s",
        _begin(model_id),
        _begin(session_id),
        history_turns,
        len(prompt or ""),
        len(response_text or ""),
        _begin(error),
        _begin(prompt),
        _begin(response_text),
    )


def _begin(text: object) -> str:
    if text is None:
        return "-"
    said = str(text)
    return repr(said if len(said) <= _MAX_TEXT else said[:_MAX_TEXT] + "...")
