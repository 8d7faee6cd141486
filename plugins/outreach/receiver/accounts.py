"""The sign-in of the stand-in: OAuth 2 with PKCE, as Google's authorization server speaks it.

There is one person, who agrees to whatever is asked. Nothing here protects
anything; it is as strict as a client's mistakes need it to be.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
from urllib.parse import parse_qs, urlencode, urlsplit

EMAIL = "ada@students.example.edu"


class Accounts:
    """The codes and tokens that were given out. Its methods may be called by several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.codes: dict[str, dict] = {}
        self.refresh: dict[str, str] = {}  # the scopes of each
        self.access: dict[str, str] = {}

    def authorize(self, query: str) -> tuple[int, str]:
        """Answer the authorization endpoint: 302 and where the browser goes, or 400 and why not."""
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        back = urlsplit(asked.get("redirect_uri", ""))
        if asked.get("response_type") != "code" or back.scheme != "http" or back.hostname not in ("127.0.0.1", "localhost"):
            return 400, "response_type is code, and redirect_uri is on this machine"
        if not asked.get("client_id") or asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return 400, "client_id, code_challenge and code_challenge_method=S256 are needed"
        code = "4/" + secrets.token_urlsafe(16)
        with self.lock:
            self.codes[code] = asked
        return 302, asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked.get("state", ""), "scope": asked.get("scope", "")})

    def token(self, body: str) -> tuple[int, dict]:
        """Answer the token endpoint: a code or a refresh token for an access token."""
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        with self.lock:
            if asked.get("grant_type") == "authorization_code":
                before = self.codes.pop(asked.get("code", ""), None)
                proof = base64.urlsafe_b64encode(hashlib.sha256(asked.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
                if before is None or before["code_challenge"] != proof or before["redirect_uri"] != asked.get("redirect_uri"):
                    return 400, {"error": "invalid_grant"}
                scope, refresh = before.get("scope", ""), "1//" + secrets.token_urlsafe(16)
                self.refresh[refresh] = scope
                return 200, dict(self._access(scope), refresh_token=refresh)
            if asked.get("grant_type") == "refresh_token" and asked.get("refresh_token") in self.refresh:
                return 200, self._access(self.refresh[asked["refresh_token"]])
        return 400, {"error": "invalid_grant"}

    def _access(self, scope: str) -> dict:
        token = "ya29." + secrets.token_urlsafe(16)
        self.access[token] = scope
        return {"access_token": token, "expires_in": 3599, "token_type": "Bearer", "scope": scope}

    def scopes(self, authorization: str) -> set | None:
        """The scopes of a request's token, None where it has none that is good."""
        with self.lock:
            scope = self.access.get(authorization.removeprefix("Bearer "))
        return None if scope is None else {one.rpartition("/")[2] for one in scope.split()}
