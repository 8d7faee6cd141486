"""Requests to version 3 of GitHub's REST API.

    github = Client(host, "https://api.github.com", token, patience=30)
    answer = await github.get("/repos/ada/engine/issues?per_page=100")
    answer.body, answer.next, answer.etag

Where GitHub says to wait, it is waited, as long as patience lasts in all; then
Limited is raised, with the seconds that are left to wait.
"""

import asyncio
import re
import time
from urllib.parse import urlsplit

from shu_plugin_sdk import HttpRequestFailed

MAX_ANSWER = 8 << 20
MAX_WAITS = 5
_NEXT = re.compile(r'<([^<>]{1,2000})>\s*;[^,<]{0,200}\brel="?next\b')


class Limited(Exception):
    """GitHub wants no more requests for a while, and that is longer than this run waits."""

    def __init__(self, seconds):
        super().__init__(f"GitHub wants no requests for another {seconds:.0f} seconds")
        self.seconds = seconds


class Answer:
    """An answer: its body, the address of the next page, if there is one, and its etag. Without a body nothing has changed."""

    def __init__(self, body, headers):
        found = _NEXT.search(headers.get("link") or "")
        self.body = body
        self.next = found.group(1) if found else None
        self.etag = headers.get("etag") or ""

    @property
    def items(self):
        """The body as a list of objects; raises ValueError where it is something else."""
        if not isinstance(self.body, list) or not all(isinstance(item, dict) for item in self.body):
            raise ValueError("the answer is no list of objects: is this the address of GitHub's API?")
        return self.body


class Client:
    """One run's requests, counted in `calls`."""

    def __init__(self, host, api, token=None, patience=0):
        self.host, self.api, self.token, self.patience = host, api.rstrip("/"), token, patience
        self.calls = 0

    async def get(self, path, etag=""):
        """Return the Answer at a path of the API, or at an address within it."""
        url = path if path.startswith(("http://", "https://")) else self.api + path
        if urlsplit(url)[:2] != urlsplit(self.api)[:2]:  # a page is not somewhere else, and neither is the token
            raise ValueError(f"the next page is said to be at {url[:200]}, which is not {self.api}")
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.token and may_carry(url):
            headers["Authorization"] = f"Bearer {self.token}"
        if etag:
            headers["If-None-Match"] = etag
        for attempt in range(MAX_WAITS + 1):
            self.calls += 1
            try:
                answer = await self.host.http.fetch("GET", url, headers=headers, max_bytes=MAX_ANSWER)
                break
            except HttpRequestFailed as exc:
                seconds = wait_of(exc)
                if seconds is None:
                    raise
                if seconds > self.patience or attempt == MAX_WAITS:
                    raise Limited(seconds) from exc
            self.patience -= seconds
            await asyncio.sleep(seconds)
        return Answer(None if answer["status_code"] == 304 else answer["body"], answer["headers"])


def may_carry(url):
    """Report whether a token may go to an address: encrypted, or to this machine itself."""
    at = urlsplit(url)
    return at.scheme == "https" or at.hostname in ("127.0.0.1", "::1", "localhost")


def wait_of(exc):
    """Return the seconds to wait after a refusal for too many requests, None for any other one."""
    after, left = exc.retry_after_seconds, exc.headers.get("x-ratelimit-remaining")
    if exc.status_code != 429 and not (exc.status_code == 403 and (after is not None or left == "0")):
        return None
    if after is not None:
        return max(after, 0.1)
    try:
        return min(max(float(exc.headers.get("x-ratelimit-reset")) - time.time(), 0) + 1, 86400.0)
    except (TypeError, ValueError):
        return 60.0  # as GitHub advises where it says nothing
