"""What goes wrong.

    Exception
    +-- HttpRequestFailed   a provider answered with 400 or above
    +-- RetryableError      trying again may help
    +-- NonRetryableError   trying again does not help
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_MOST = 86400.0  # seconds that a provider may ask to wait
_CATEGORIES = {401: "auth_error", 403: "forbidden", 404: "not_found", 410: "gone", 429: "rate_limited"}


class RetryableError(Exception):
    """Raise it in what with_retry runs, to have it run again, after retry_after seconds where that is given."""

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NonRetryableError(Exception):
    """Raise it in what with_retry runs, to have it end there."""


class HttpRequestFailed(Exception):
    """A provider answered with 400 or above.

    body is what it said: a value where that was JSON, else text. headers are
    those of the answer.
    """

    def __init__(self, status_code: int, url: str = "", body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status_code} calling {url}")
        self.status_code = status_code
        self.url = url
        self.body = body
        self.headers: Mapping[str, str] = headers if headers is not None else {}

    @property
    def error_category(self) -> str:
        """One of auth_error, forbidden, not_found, gone, rate_limited, server_error, client_error."""
        return _CATEGORIES.get(self.status_code) or ("server_error" if self.status_code >= 500 else "client_error")

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status_code == 429 or self.status_code >= 500

    @property
    def retry_after_seconds(self) -> float | None:
        """How long the provider asks to wait, at most a day; None where it does not say."""
        for name, value in self.headers.items():
            if str(name).lower() == "retry-after":
                return _seconds(str(value).strip())
        return None

    @property
    def provider_message(self) -> str | None:
        """What the provider says in its body, None where nothing there is a message."""
        return _first_text(self.body, ("message", "error_description", "detail", "title", "error_message", "description"))

    @property
    def provider_error_code(self) -> str | None:
        """The provider's own code, None where its body has none."""
        return _first_text(self.body, ("code", "status", "error_code", "errorCode", "reason", "type"))


def _seconds(value: str) -> float | None:
    """Return the seconds of a Retry-After, which may be a date."""
    try:
        seconds = float(value)
        return min(seconds, _MOST) if 0 <= seconds < float("inf") else None
    except ValueError:
        pass
    from datetime import datetime, timezone
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return min(max(0.0, (date - datetime.now(timezone.utc)).total_seconds()), _MOST)


def _first_text(body: Any, names: tuple[str, ...]) -> str | None:
    """Return the first of the named members that says something: of the body's error, of its errors, of itself.

    Words come before numbers, which mostly repeat the status.
    """
    if not isinstance(body, dict):
        return None
    error, errors = body.get("error"), body.get("errors")
    listed = errors[:1] if isinstance(errors, list) else []
    for place in [error, *listed, body]:
        found = [place.get(name) for name in names] if isinstance(place, dict) else []
        said = [str(value) for value in found if isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""]
        if said:
            return next((text for text in said if not text.isdigit()), said[0])
    return error if isinstance(error, str) and error else None  # {"error": "invalid_grant"}
