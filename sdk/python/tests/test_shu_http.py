"""host.http of Shu plugins, against a real server on this machine."""

from __future__ import annotations

import base64
import unittest

from shu import Hosted, Web


class Http(Hosted):
    def setUp(self) -> None:
        self.web = Web()
        self.addCleanup(self.web.close)

    def fetch(self, body: str) -> object:
        return self.said(self.shu(body.replace("URL", repr(self.web.url)), http__fetch=self.web.fetch))

    def test_a_json_answer_is_its_value_and_headers_are_found_in_any_case(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "application/json", "X-Page": "2"}, b'{"n": [1]}'
        body = """
            got = await host.http.fetch("GET", URL + "/a")
            return {"said": [got["status_code"], got.body, got["headers"]["X-Page"], got.headers.get("x-page"), "X-PAGE" in got.headers]}
        """
        self.assertEqual(self.fetch(body), [200, {"n": [1]}, "2", "2", True])

    def test_types_with_json_in_them_are_parsed_and_text_is_not(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "text/x-json"}, b'{"n": 1}'
        self.web.answers["/b"] = 200, {"Content-Type": "text/x-json"}, b"{broken"
        self.web.answers["/c"] = 200, {"Content-Type": "text/plain"}, b'{"n": 1}'
        body = "return {'said': [(await host.http.fetch('GET', URL + p))['body'] for p in ('/a', '/b', '/c')]}"
        self.assertEqual(self.fetch(body), [{"n": 1}, "{broken", '{"n": 1}'])

    def test_a_name_and_a_password(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = "await host.http.fetch('GET', URL + '/a', auth=('ada', 'p:w'))\nawait host.http.fetch('GET', URL + '/a', auth=('x', 'y'), headers={'authorization': 'mine'})\nreturn {'said': 1}"
        self.fetch(body)
        self.assertEqual([seen["headers"]["authorization"] for seen in self.web.seen], ["Basic " + base64.b64encode(b"ada:p:w").decode(), "mine"])

    def test_who_asks_is_told_unless_the_plugin_says(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = "await host.http.fetch('GET', URL + '/a')\nawait host.http.fetch('GET', URL + '/a', headers={'user-agent': 'mine', 'X-SHU-USER': 'me'})\nreturn {'said': 1}"
        self.fetch(body)
        told = [(seen["headers"]["user-agent"], seen["headers"]["x-shu-user"]) for seen in self.web.seen]
        self.assertEqual(told, [("Shu-Tool/notes", "u-7"), ("mine", "me")])

    def test_parameters_are_spelled_as_on_the_web(self) -> None:
        self.web.answers["/a"] = 200, {}, b""
        body = """
            params = {"flag": True, "off": False, "n": 3, "list": ["a", True, 2], "none": None, "day": datetime.date(2026, 1, 2), "text": "a b"}
            await host.http.fetch("GET", URL + "/a", params=params)
            await host.http.fetch("GET", URL + "/a", params=[("x", 1), ("x", 2)])
            return {"said": 1}
        """
        self.fetch("import datetime\n" + "\n".join(line[12:] for line in body.splitlines()))
        want = "/a?flag=true&off=false&n=3&list=a&list=true&list=2&day=2026-01-02&text=a+b"
        self.assertEqual([seen["path"] for seen in self.web.seen], [want, "/a?x=1&x=2"])

    def test_bodies(self) -> None:
        self.web.answers["/a"] = 200, {}, b"ok"
        body = """
            await host.http.fetch("POST", URL + "/a", json={"a": [1]})
            await host.http.fetch("post", URL + "/a", data={"a": 1, "b": [2, 3]})
            await host.http.fetch("PUT", URL + "/a", body="text")
            await host.http.fetch({"method": "DELETE", "url": URL + "/a"})
            return {"said": 1}
        """
        self.fetch(body)
        said = [(seen["method"], seen["body"], seen["headers"].get("content-type")) for seen in self.web.seen]
        form = "application/x-www-form-urlencoded"
        self.assertEqual(said[0], ("POST", '{"a": [1]}', "application/json"))
        self.assertEqual(said[1], ("POST", "a=1&b=2&b=3", form))
        self.assertEqual([one[:2] for one in said[2:]], [("PUT", "text"), ("DELETE", "")])

    def test_bytes(self) -> None:
        self.web.answers["/a"] = 200, {"Content-Type": "application/octet-stream"}, bytes(range(256))
        body = "got = await host.http.fetch_bytes('GET', URL + '/a')\nreturn {'said': [type(got.content).__name__, got['content'].hex(), got.status_code]}"
        self.assertEqual(self.fetch(body), ["bytes", bytes(range(256)).hex(), 200])

    def test_a_failure_has_everything_about_it(self) -> None:
        self.web.answers["/a"] = 429, {"Content-Type": "application/json", "Retry-After": "3"}, b'{"error": {"message": "slow", "code": "q"}}'
        body = """
            from shu_plugin_sdk import HttpRequestFailed
            said = []
            for fetch in (host.http.fetch, host.http.fetch_bytes):
                try:
                    await fetch("GET", URL + "/a")
                except HttpRequestFailed as exc:
                    said.append([exc.status_code, exc.url == URL + "/a", str(exc) == "HTTP 429 calling " + URL + "/a", exc.body, exc.headers["Retry-After"],
                        exc.error_category, exc.is_retryable, exc.retry_after_seconds, exc.provider_message, exc.provider_error_code])
            return {"said": said}
        """
        one = [429, True, True, {"error": {"message": "slow", "code": "q"}}, "3", "rate_limited", True, 3, "slow", "q"]
        self.assertEqual(self.fetch(body), [one, [*one[:3], None, *one[4:8], "", None]])

    def test_a_header_that_the_host_fills_in(self) -> None:
        asked: list[dict[str, object]] = []

        def fetch(args: dict[str, object]) -> dict[str, object]:
            asked.append(args)
            return {"status_code": 200, "headers": {}, "body": "ok", "url": "https://x/y", "truncated": False}

        body = "await host.http.fetch('GET', 'https://x/y', headers={'X-Key': {'$secret': 'k', 'format': 'Bearer {}'}, 'X-N': 7})\nreturn {'said': 1}"
        self.shu(body, http__fetch=fetch).run("list")
        headers = asked[0]["headers"]
        assert isinstance(headers, dict)
        self.assertEqual((headers["X-Key"], headers["X-N"]), ({"$secret": "k", "format": "Bearer {}"}, "7"))

    def test_or_none_is_none_for_4xx_only(self) -> None:
        self.web.answers["/down"] = 503, {}, b"down"
        self.web.answers["/a"] = 200, {}, b"ok"
        body = """
            said = [await host.http.fetch_or_none("GET", URL + "/gone"), (await host.http.fetch_or_none("GET", URL + "/a")).body,
                await host.http.fetch_bytes_or_none("GET", URL + "/gone")]
            try:
                await host.http.fetch_or_none("GET", URL + "/down")
            except Exception as exc:
                said.append(type(exc).__name__)
            return {"said": said}
        """
        self.assertEqual(self.fetch(body), [None, "ok", None, "HttpRequestFailed"])

    def test_a_failure_that_escapes_is_told_as_the_providers(self) -> None:
        shu = self.shu(f"await host.http.fetch('GET', {self.web.url!r} + '/gone')", http__fetch=self.web.fetch)
        error = shu.run("list")["error"]
        self.assertEqual((error["plugin_code"], error["message"]), ("not_found", f"Provider HTTP error (404): nothing here"))

    def test_an_option_nobody_knows(self) -> None:
        shu = self.shu("await host.http.fetch('GET', 'http://x', verify=False)")
        self.assertIn("host.http takes no verify", shu.run("list")["error"]["message"])


if __name__ == "__main__":
    unittest.main()
