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

_MOST = 86400  # seconds that a provider may ask to wait
_SAID = 500  # characters of what a provider says
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
    def retry_after_seconds(self) -> int | None:
        """The seconds that the provider asks to wait, at most a day; None where it gives none, or a date."""
        for name, value in self.headers.items():
            if str(name).lower() == "retry-after":
                text = str(value).strip()
                return min(int(text), _MOST) if text.isascii() and text.isdigit() and len(text) < 20 else None
        return None

    @property
    def provider_message(self) -> str:
        """What the provider says in its body, at most 500 characters of it; "" where there is none."""
        body = self.body
        if body is None:
            return ""
        if isinstance(body, str):
            return body[:_SAID]
        if isinstance(body, dict):
            error = body.get("error")
            if isinstance(error, dict) and isinstance(error.get("message"), str) and error["message"]:
                return str(error["message"])[:_SAID]
            for name in ("error_description", "message", "error", "detail"):
                if isinstance(body.get(name), str) and body[name]:
                    return str(body[name])[:_SAID]
        return repr(body)[:_SAID]

    @property
    def provider_error_code(self) -> str | None:
        """The provider's own code as text, None where its body has none."""
        body = self.body if isinstance(self.body, dict) else {}
        error = body.get("error")
        inner = error if isinstance(error, dict) else {}
        for code in (inner.get("code"), inner.get("status"), body.get("code")):
            if isinstance(code, (str, int)) and not isinstance(code, bool) and code != "":
                return str(code)[:_SAID]
        return None
