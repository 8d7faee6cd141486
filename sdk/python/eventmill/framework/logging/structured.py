"""Log records with a form."""

from __future__ import annotations

import json
import os
from time import gmtime, strftime

_MAX_TEXT = 500  # characters of an answer; the host keeps the whole exchange itself
_MAX_PROMPT = 1 << 20  # characters
_MAX_FILE = 16 << 20  # bytes


def log_llm_interaction(
    prompt: str,
    response_text: str | None,
    model_id: str | None = None,
    history_turns: int = 0,
    session_id: str | None = None,
    error: str | None = None,
) -> None:
    """Add an exchange with a language model to logs/activity.log of the workspace, if there is one. It fails no tool, and no console shows it."""
    record = {
        "at": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()),
        "event": "llm_interaction",
        "model": _text(model_id, 200),
        "session": _text(session_id, 200),
        "history_turns": history_turns if isinstance(history_turns, int) else 0,
        "prompt": _text(prompt, _MAX_PROMPT),
        "response": _text(response_text, _MAX_TEXT),
        "error": _text(error, _MAX_TEXT),
    }
    try:
        workspace = os.environ.get("EVENTMILL_WORKSPACE")
        if not workspace:
            return
        place = os.path.join(workspace, "logs")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "activity.log"), "a", encoding="utf-8", errors="replace") as file:
            if file.tell() < _MAX_FILE:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError:
        pass


def _text(value: object, most: int) -> str | None:
    return None if value is None else str(value)[:most]
