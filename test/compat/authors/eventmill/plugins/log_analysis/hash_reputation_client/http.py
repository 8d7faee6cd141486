import json, time, urllib.error, urllib.request


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"HTTP {status}: {text[:120]}")
        self.status = status


def get_json(url, headers, timeout=5.0, tries=3, pause=0.05):
    last = None
    for attempt in range(tries):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as r:
                return json.loads(r.read().decode())
        except urllib.error.HTTPError as exc:
            body = exc.read().decode(errors="replace")
            if exc.code in (429, 500, 502, 503) and attempt + 1 < tries:
                time.sleep(pause * 2 ** attempt)
                last = exc
                continue
            raise ApiError(exc.code, body) from None
    raise ApiError(0, str(last))
