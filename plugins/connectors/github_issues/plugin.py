"""Take the issues of a GitHub repository into a knowledge base, each with its comments as one thread."""

from urllib.parse import urlencode

from shu_plugin_sdk import HttpRequestFailed, PluginResult, Skip, SkipReason

from .client import Client, Limited
from .cursor import Cursor
from .thread import MAX_COMMENTS, MAX_TEXT, attributes_of, text_of, thread_id, title_of

API = "https://api.github.com"
PAGE = 100  # issues or comments in one answer, GitHub's most
MAX_PAGES = 1000
GONE = (404, 410, 451)


class GitHubIssues:
    """Issues in the order of their last change, from where the last run ended."""

    def get_schema(self):
        return {
            "type": "object",
            "title": "GitHub issues",
            "description": "Read the issues of a GitHub repository.",
            "properties": {"op": {"type": "string", "enum": ["ingest", "show"]}, **_SHARED},
            "required": ["repository"],
        }

    def get_schema_for_op(self, op):
        if op == "show":
            return {
                "type": "object",
                "title": "Show an issue",
                "description": "Return one issue with its comments as text, and keep nothing.",
                "properties": {**_SHARED, "number": {"type": "integer", "minimum": 1}},
                "required": ["repository", "number"],
            }
        return {
            "type": "object",
            "title": "Take issues in",
            "description": "Take new and changed issues of a repository into a knowledge base, each with its comments as one thread.",
            "properties": {
                **_SHARED,
                "kb_id": {"type": "string", "minLength": 1, "title": "Knowledge base"},
                "state": {"type": "string", "enum": ["all", "open", "closed"], "default": "all"},
                "since": {
                    "type": ["string", "null"],
                    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
                    "x-ui": {"help": "Issues that have not changed since then are left out, such as 2026-01-01T00:00:00Z."},
                },
                "pull_requests": {"type": "boolean", "default": False, "x-ui": {"help": "GitHub counts pull requests as issues."}},
                "max_issues": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100, "x-ui": {"help": "What is left waits for the next run."}},
                "reset_cursor": {"type": ["boolean", "null"], "x-ui": {"hidden": True}},
            },
            "required": ["repository", "kb_id"],
        }

    def get_output_schema(self):
        count = {"type": "integer", "minimum": 0}
        return {
            "type": "object",
            "properties": {
                "not_modified": {"type": "boolean"},
                "more": {"type": "boolean"},
                "since": {"type": "string"},
                "title": {"type": "string"},
                "text": {"type": "string"},
                "url": {"type": "string"},
                **{name: count for name in ("ingested", "unchanged", "skipped")},
            },
        }

    async def execute(self, params, context, host):
        api = params.get("api_url") or API
        github = Client(host, api, await _token(host), params.get("max_wait_seconds", 30))
        try:
            if params["op"] == "show":
                return await self._show(params, github)
            return await Ingestion(params, host, github).run()
        except Limited as exc:
            return PluginResult.err(str(exc), code="rate_limited", details={"retry_after_seconds": exc.seconds})

    async def _show(self, params, github):
        at = f"/repos/{params['repository']}/issues/{params['number']}"
        issue = (await github.get(at)).body
        text, url = text_of(issue, await _comments(github, at, issue)), issue.get("html_url") or ""
        citations = [{"type": "web", "ref": url, "label": title_of(issue)}]
        return PluginResult.ok({"title": title_of(issue), "text": text, "url": url}, citations=citations, cost={"api_calls": github.calls})


class Ingestion:
    """One run."""

    def __init__(self, params, host, github):
        self.host, self.github = host, github
        self.kb_id, self.repository = params["kb_id"], params["repository"]
        self.state, self.pulls = params.get("state", "all"), params.get("pull_requests", False)
        self.first, self.most = params.get("since") or "", params.get("max_issues", 100)
        self.reset = bool(params.get("reset_cursor"))
        self.ingested = self.unchanged = 0
        self.skips = []

    async def run(self):
        """Take in what changed, and then move the cursor, once: a run that is cut off has moved nothing."""
        kept = None if self.reset else await self.host.cursor.get(self.kb_id)
        key = f"{self.repository.lower()} {self.state}{' pulls' if self.pulls else ''}"
        cursor = Cursor(kept, key, self.first)
        before, stopped, notes = cursor.value, None, None
        try:
            more, changed = await self._read(cursor)
        except (Limited, HttpRequestFailed) as exc:
            if cursor.value == before:
                raise  # nothing was done that could be told
            stopped, more, changed = exc, True, True
            notes = [f"stopped early: {exc}"]
        if cursor.value != before:
            await self.host.cursor.set(self.kb_id, cursor.value)
        if isinstance(stopped, HttpRequestFailed):
            raise stopped
        data = {"not_modified": not changed, "more": more, "since": cursor.since}
        data.update(ingested=self.ingested, unchanged=self.unchanged, skipped=len(self.skips))
        return PluginResult.ok(data, skips=self.skips or None, diagnostics=notes, cost={"api_calls": self.github.calls})

    async def _read(self, cursor):
        """Return whether there is more than a run takes in, and whether anything had changed."""
        url, etag, taken = self._issues(cursor.since), cursor.etag, 0
        for _ in range(MAX_PAGES):
            asked_since = cursor.since
            answer = await self.github.get(url, etag)
            if answer.body is None:
                return False, False
            for issue in answer.items:
                if cursor.has(issue):
                    continue
                if taken >= self.most:
                    return True, True
                if self.pulls or "pull_request" not in issue:
                    await self._take(issue)
                    taken += 1
                cursor.pass_by(issue)
            if answer.next is None:
                if url == self._issues(cursor.since):  # the next run asks the same
                    cursor.etag = answer.etag
                return False, True
            # A page further on would miss an issue wherever one before it changes
            # meanwhile, so reading goes on by date, by page only within a second.
            url = self._issues(cursor.since) if cursor.since > asked_since else answer.next
            etag = ""
        return True, True

    def _issues(self, since):
        query = {"state": self.state, "sort": "updated", "direction": "asc", "per_page": PAGE}
        if since:
            query["since"] = since
        return f"{self.github.api}/repos/{self.repository}/issues?{urlencode(query)}"

    async def _take(self, issue):
        id = thread_id(self.repository, issue["number"])
        try:
            comments = await _comments(self.github, f"/repos/{self.repository}/issues/{issue['number']}", issue)
        except HttpRequestFailed as exc:
            if exc.status_code not in GONE:
                raise
            self.skips.append(Skip(id, SkipReason.NETWORK, title_of(issue), {"status": exc.status_code}))
            return
        text = text_of(issue, comments)
        if len(text) > MAX_TEXT:
            self.skips.append(Skip(id, SkipReason.TOO_LARGE, title_of(issue), {"size": len(text), "max": MAX_TEXT}))
            return
        answer = await self.host.kb.ingest_thread(
            self.kb_id,
            title=title_of(issue),
            content=text,
            thread_id=id,
            source_url=issue.get("html_url"),
            attributes=attributes_of(self.repository, issue),
        )
        if not answer.get("skipped"):
            self.ingested += 1
        elif answer.get("skip_reason") == "hash_match":
            self.unchanged += 1
        else:
            self.skips.append(Skip(id, answer.get("skip_reason"), title_of(issue)))


async def _comments(github, at, issue):
    """Return the comments of an issue, the oldest first, up to one more than are kept."""
    comments, url = [], f"{at}/comments?per_page={PAGE}" if issue.get("comments") else None
    while url and len(comments) <= MAX_COMMENTS:
        answer = await github.get(url)
        comments += answer.items
        url = answer.next
    return comments


async def _token(host):
    """Return the secret github_token, or else the token of the connected account; None where there is neither."""
    token = await host.secrets.get("github_token")
    if token:
        return token
    try:
        token, _ = await host.auth.resolve_token_and_target("github")
    except Exception as exc:  # what is public can be read without
        host.log.info(f"no account of GitHub is used: {exc}")
        return None
    return token


_SHARED = {
    "repository": {"type": "string", "pattern": r"^[A-Za-z0-9-]{1,39}/\.?[A-Za-z0-9_-][A-Za-z0-9._-]{0,98}$", "title": "Repository", "x-ui": {"help": "owner/name"}},
    "max_wait_seconds": {"type": "integer", "minimum": 0, "maximum": 300, "default": 30, "x-ui": {"help": "How long to wait in all where GitHub says to."}},
    "api_url": {"type": ["string", "null"], "pattern": "^https?://[^?#]+$", "maxLength": 500, "x-ui": {"help": "Of a GitHub Enterprise Server. A token is sent over https only."}},
}
