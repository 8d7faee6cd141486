"""A host of mocks, for tests that look at what a plugin called."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping
from unittest import mock
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .contracts import CAPABILITIES
from .errors import HttpRequestFailed


@contextlib.contextmanager
def patch_retry_sleep() -> Iterator[mock.AsyncMock]:
    """Let with_retry wait for nothing; gives the mock that stands for asyncio.sleep."""
    with mock.patch("shu_plugin_sdk.retry.asyncio.sleep", new_callable=mock.AsyncMock) as sleep:
        yield sleep


class FakeHostBuilder:
    """Builds a host whose capabilities are mocks; secrets.get and http.fetch answer what was set here.

    A request that has no answer raises AssertionError; with strict=False it is answered with status 500.
    """

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._secrets: dict[str, str] = {}
        self._routes: dict[tuple[str, str], tuple[Any, Mapping[str, str] | None]] = {}

    def with_secret(self, key: str, value: str) -> FakeHostBuilder:
        """Set what secrets.get returns for a key."""
        self._secrets[key] = value
        return self

    def with_http_response(
        self, method: str, url: str, response: Any, *, params: Any = None, assert_headers: Mapping[str, str] | None = None
    ) -> FakeHostBuilder:
        """Set what a request is answered with; its headers must have those of assert_headers."""
        self._routes[_route(method, url, params)] = (response, assert_headers)
        return self

    def with_http_error(
        self,
        method: str,
        url: str,
        status_code: int,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        params: Any = None,
        assert_headers: Mapping[str, str] | None = None,
    ) -> FakeHostBuilder:
        """Let a request raise HttpRequestFailed."""
        error = HttpRequestFailed(status_code, url, body, headers)
        return self.with_http_response(method, url, error, params=params, assert_headers=assert_headers)

    def build(self) -> mock.MagicMock:
        """Return the host. Every method of a capability is an async mock."""
        host = mock.MagicMock(name="host")
        for name in CAPABILITIES:
            setattr(host, name, mock.AsyncMock(name=f"host.{name}"))
        host.secrets.get = mock.AsyncMock(name="host.secrets.get", side_effect=self._secret)
        host.http.fetch = mock.AsyncMock(name="host.http.fetch", side_effect=self._fetch)
        return host

    async def _secret(self, key: str, *_: Any, **__: Any) -> str | None:
        return self._secrets.get(key)

    async def _fetch(self, method: str, url: str, **options: Any) -> Any:
        route = _route(method, url, options.get("params"))
        if route not in self._routes:
            if self._strict:
                known = ", ".join(f"{a} {b}" for a, b in self._routes) or "none"
                raise AssertionError(f"no response is set for {route[0]} {route[1]}; there are: {known}")
            return {"status_code": 500, "headers": {}, "body": None}
        response, wanted = self._routes[route]
        given = {str(name).lower(): value for name, value in (options.get("headers") or {}).items()}
        for name, value in (wanted or {}).items():
            assert given.get(name.lower()) == value, f"{route[0]} {route[1]}: the header {name} is {given.get(name.lower())!r}, not {value!r}"
        if isinstance(response, Exception):
            raise response
        return response


def _route(method: str, url: str, params: Any) -> tuple[str, str]:
    """Return a request as it is looked up: its query in one order, wherever it was given."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in (params.items() if hasattr(params, "items") else params or ()):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((str(name), str(one).lower() if isinstance(one, bool) else str(one)))
    return method.upper(), urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(sorted(pairs)), ""))
