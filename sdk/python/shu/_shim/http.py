"""host.http: requests that the host makes, to the hosts that the manifest declares."""

from __future__ import annotations

from binascii import a2b_base64

from mortise._errors import ServiceError
from shu_plugin_sdk.errors import HttpRequestFailed

from .host import Fixed
from .records import Headers, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class EgressDenied(ServiceError):
    """The request goes to a host that the plugin may not reach."""


MAX_RETRIES = 2  # that the host makes of a request, where the plugin asks for them


class Http(Fixed):
    """An answer of 400 and above raises HttpRequestFailed; `*_or_none` gives None for those below 500.

    Options are headers, params, json, data (text, bytes, or a form as a dict), auth (a name and a password), timeout
    in seconds and max_bytes.
    Parameters are spelled as on the web: True is true, a list is repeated, None is left out.
    """

    __slots__ = ()

    async def fetch(self, method: Any, url: str = "", **options: Any) -> Record:
        """Return {status_code, headers, body}; the body of a JSON answer is its value, of any other its text."""
        asked = _asked(self._line, method, url, options, "auto")
        answer = await _sent(self._line, asked)
        body, headers = answer.get("json"), Headers(answer.get("headers") or {})
        if "json" not in answer:
            body = _value(_text(answer, headers), headers)
        return _judged(asked, answer, headers, body, {"body": body})

    async def fetch_bytes(self, method: Any, url: str = "", **options: Any) -> Record:
        """Return {status_code, headers, content}, the content as bytes."""
        asked = _asked(self._line, method, url, options, "bytes")
        answer = await _sent(self._line, asked)
        headers = Headers(answer.get("headers") or {})
        return _judged(asked, answer, headers, None, {"content": _bytes(answer)})

    async def fetch_or_none(self, method: Any, url: str = "", **options: Any) -> Record | None:
        """Fetch; None where the answer is 4xx."""
        return await _or_none(self.fetch(method, url, **options))

    async def fetch_bytes_or_none(self, method: Any, url: str = "", **options: Any) -> Record | None:
        """Fetch bytes; None where the answer is 4xx."""
        return await _or_none(self.fetch_bytes(method, url, **options))


async def _sent(line: Any, asked: dict[str, Any]) -> Any:
    try:
        return await line.ask("http.fetch", asked)
    except ServiceError as exc:
        if exc.code != "egress_denied":
            raise
        raise EgressDenied(exc.message, code=exc.code, details=exc.details) from exc


async def _or_none(fetching: Any) -> Record | None:
    try:
        found: Record = await fetching
        return found
    except HttpRequestFailed as exc:
        if 400 <= exc.status_code < 500:
            return None
        raise


def _asked(line: Any, method: Any, url: str, options: dict[str, Any], as_: str) -> dict[str, Any]:
    """Return the arguments of http.fetch; the request may be one object, {method, url, ...}."""
    if isinstance(method, dict):
        options = {**method, **options}
        method, url = options.pop("method", "GET"), options.pop("url", "")
    args: dict[str, Any] = {"method": str(method).upper(), "url": str(url), "as": as_}
    headers = {str(name): _header(value) for name, value in (options.pop("headers", None) or {}).items() if value is not None}
    given = {name.lower() for name in headers}
    if "user-agent" not in given:
        headers["User-Agent"] = f"Shu-Tool/{line.plugin}"
    if "x-shu-user" not in given and line.user_id:
        headers["X-Shu-User"] = line.user_id
    pair = options.pop("auth", None)
    if pair is not None and "authorization" not in given:
        headers["Authorization"] = _basic(pair)
    params = options.pop("params", None)
    if params:
        args["params"] = _params(params)
    _body(args, headers, given, options)
    timeout = options.pop("timeout", None)
    if isinstance(timeout, (int, float)) and timeout > 0:
        args["timeout_seconds"] = timeout
    for name in ("max_bytes", "follow_redirects"):
        value = options.pop(name, None)
        if value is not None:
            args[name] = value
    retries = options.pop("retries", None)
    if isinstance(retries, int) and retries > 0 and args["method"] in ("GET", "HEAD"):
        args["retries"] = min(retries, MAX_RETRIES)
    options.pop("backoff", None)  # the host's own
    if options:
        raise TypeError(f"host.http takes no {', '.join(sorted(map(str, options)))}")
    args["headers"] = headers
    return args


def _header(value: Any) -> Any:
    """Return a header as it is sent: text, or a secret that the host fills in, {"$secret": name}."""
    return value if isinstance(value, dict) and "$secret" in value else str(value)


def _basic(pair: Any) -> str:
    from binascii import b2a_base64

    name, password = pair
    return "Basic " + b2a_base64(f"{name}:{password}".encode(), newline=False).decode()


def _body(args: dict[str, Any], headers: dict[str, str], given: set[str], options: dict[str, Any]) -> None:
    """Take the one body there is: json, or data, also called body or content."""
    value = options.pop("json", None)
    if value is not None:
        args["json"] = value
    for name in ("data", "body", "content"):
        data = options.pop(name, None)
        if data is None:
            continue
        if isinstance(data, (dict, list, tuple)):
            from urllib.parse import urlencode

            data = urlencode(data, doseq=True)
            if "content-type" not in given:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
        if isinstance(data, str):
            args["body"] = data
        else:
            from binascii import b2a_base64

            args["body_base64"] = b2a_base64(bytes(data), newline=False).decode()


def _params(params: Any) -> dict[str, Any]:
    """Return query parameters by name; pairs of one name become a list."""
    spelled: dict[str, Any] = {}
    for name, value in params.items() if hasattr(params, "items") else params:
        value = [_scalar(one) for one in value] if isinstance(value, (list, tuple, set, frozenset)) else _scalar(value)
        if name in spelled:
            before = spelled[name]
            both = before if isinstance(before, list) else [before]
            value = both + (value if isinstance(value, list) else [value])
        spelled[str(name)] = value
    return spelled


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _judged(asked: dict[str, Any], answer: dict[str, Any], headers: Headers, body: Any, members: dict[str, Any]) -> Record:
    status = answer["status_code"]
    if status >= 400:
        raise HttpRequestFailed(status, asked["url"], body, headers)
    return Record(status_code=status, headers=headers, **members)


def _bytes(answer: dict[str, Any]) -> bytes:
    encoded = answer.get("body_base64")
    if encoded is not None:
        return a2b_base64(encoded)
    return str(answer.get("body") or "").encode()


def _text(answer: dict[str, Any], headers: Headers) -> str:
    text = answer.get("body")
    return text if isinstance(text, str) else _bytes(answer).decode(_charset(headers), "replace")


def _charset(headers: Headers) -> str:
    kind = str(headers.get("content-type") or "").lower()
    name = kind.partition("charset=")[2].partition(";")[0].strip("\"' ") or "utf-8"
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return "utf-8"
    return name


def _value(text: str, headers: Headers) -> Any:
    """Return what a body says: parsed where its type has json in it and it is JSON."""
    if "json" in str(headers.get("content-type") or "").lower():
        import json

        try:
            return json.loads(text)
        except ValueError:
            pass
    return text
