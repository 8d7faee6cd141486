import asyncio
import time
import unittest
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from plugins.github_issues.client import Client, may_carry, wait_of
from plugins.github_issues.cursor import MAX_BYTES, Cursor
from plugins.github_issues.plugin import GitHubIssues
from shu_plugin_sdk import HttpRequestFailed, contracts
from shu_plugin_sdk.testing import FakeHost, run

API = "https://api.github.com"
REPO = API + "/repos/ada/engine"


def issue(number, second=0, comments=0, **more):
    at = f"2026-01-01T00:00:{second:02d}Z"
    told = {"number": number, "title": f"Issue {number}", "body": "It is broken.", "state": "open", "comments": comments}
    told.update(user={"login": "ada"}, labels=[{"name": "bug"}], created_at=at, updated_at=at, html_url=f"https://github.com/ada/engine/issues/{number}")
    return {**told, **more}


def comment(text, login="bob"):
    return {"body": text, "user": {"login": login}, "created_at": "2026-01-02T00:00:00Z"}


class Scene(unittest.TestCase):
    def setUp(self):
        self.host = FakeHost(["http", "kb", "secrets", "auth"], plugin="github_issues")
        self.slept = []

        async def sleep(seconds):
            if seconds:
                self.slept.append(seconds)

        patched = mock.patch("plugins.github_issues.client.asyncio.sleep", sleep)
        patched.start()
        self.addCleanup(patched.stop)

    def answers(self, *issues, since="", **headers):
        suffix = f"&since={since.replace(':', '%3A')}" if since else ""
        url = f"{REPO}/issues?state=all&sort=updated&direction=asc&per_page=100{suffix}"
        self.host.respond("GET", url, json=list(issues), headers={name.replace("_", "-"): value for name, value in headers.items()})
        return url

    def take(self, **params):
        params = {"op": "ingest", "repository": "ada/engine", "kb_id": "kb", **params}
        result = run(GitHubIssues().execute(params, self.host.context, self.host))
        self.assertEqual(contracts.check_result(result), [])
        return result

    def threads(self):
        return [args for method, args in self.host.kept.asked if method == "kb.ingest_thread"]


class Taking(Scene):
    def test_keeps_to_the_contract(self):
        contracts.must(GitHubIssues())

    def test_an_issue_and_its_comments_are_one_thread(self):
        self.answers(issue(7, comments=2))
        self.host.respond("GET", f"{REPO}/issues/7/comments?per_page=100", json=[comment("Me too.")], headers={"Link": f'<{REPO}/issues/7/comments?page=2>; rel="next"'})
        self.host.respond("GET", f"{REPO}/issues/7/comments?page=2", json=[comment("Fixed.", "eve")])
        self.assertEqual(self.take().data["ingested"], 1)
        (thread,) = self.threads()
        self.assertEqual((thread["thread_id"], thread["title"]), ("github:ada/engine#7", "#7 Issue 7"))
        self.assertEqual(
            thread["content"],
            "ada opened this on 2026-01-01 (open, bug)\n\nIt is broken.\n\nbob on 2026-01-02:\n\nMe too.\n\neve on 2026-01-02:\n\nFixed.",
        )

    def test_pull_requests_are_left_out_unless_they_are_asked_for(self):
        self.answers(issue(1), issue(2, 1, pull_request={}))
        self.assertEqual(self.take().data["ingested"], 1)
        self.assertEqual(self.take(pull_requests=True).data["ingested"], 1)

    def test_the_next_run_begins_where_this_one_ended_and_is_conditional(self):
        self.answers(issue(1), issue(2, 1), etag='"first"')
        self.take()
        self.answers(issue(2, 1), since="2026-01-01T00:00:01Z", etag='"second"')
        again = self.take().data
        self.assertEqual((again["ingested"], again["unchanged"], len(self.threads())), (0, 0, 2))
        self.assertNotIn("If-None-Match", self.host.requests[1]["headers"])
        self.take()
        self.assertEqual(self.host.requests[2]["headers"]["If-None-Match"], '"second"')

    def test_not_modified_moves_nothing(self):
        self.answers(etag='"1"')
        self.take()
        url, before = self.answers(), dict(self.host.kept.values)
        self.host.respond("GET", url, status=304, body="")
        self.assertTrue(self.take().data["not_modified"])
        self.assertEqual(self.host.kept.values, before)

    def test_pages_are_read_by_date_and_by_link_within_a_second(self):
        first = self.answers(issue(1), issue(2, 1), Link=f'<{REPO}/issues?page=2>; rel="next", <{REPO}/issues?page=9>; rel="last"')
        second = self.answers(issue(2, 1), issue(3, 1), since="2026-01-01T00:00:01Z", Link=f'<{REPO}/issues?page=x>; rel="next"')
        self.host.respond("GET", f"{REPO}/issues?page=x", json=[issue(4, 1), issue(5, 2)])
        self.assertEqual(self.take().data["ingested"], 5)
        self.assertEqual([asked["url"] for asked in self.host.requests], [first, second, f"{REPO}/issues?page=x"])

    def test_a_run_is_bounded_and_the_next_goes_on(self):
        self.answers(*(issue(n, n) for n in range(1, 6)))
        self.assertEqual((self.take(max_issues=2).data["more"], len(self.threads())), (True, 2))
        self.answers(*(issue(n, n) for n in range(2, 6)), since="2026-01-01T00:00:02Z")
        self.assertEqual((self.take(max_issues=9).data["more"], len(self.threads())), (False, 5))

    def test_what_is_gone_is_skipped_and_what_fails_is_not_passed_by(self):
        self.answers(issue(1, 0, 1), issue(2, 1), issue(3, 2, 1))
        self.host.respond("GET", f"{REPO}/issues/1/*", status=404, json={"message": "Not Found"})
        self.host.respond("GET", f"{REPO}/issues/3/*", status=500, json={})
        with self.assertRaises(HttpRequestFailed):
            self.take()
        self.answers(issue(2, 1), issue(3, 2, 1), since="2026-01-01T00:00:01Z")
        self.host.respond("GET", f"{REPO}/issues/3/*", json=[comment("Now.")])
        self.assertEqual(self.take().data["ingested"], 1)
        self.assertEqual([thread["thread_id"][-1] for thread in self.threads()], ["2", "3"])

    def test_a_page_somewhere_else_is_not_followed(self):
        self.answers(issue(1), Link='<https://evil.example.com/>; rel="next"')
        self.answers(issue(1), since="2026-01-01T00:00:00Z", Link='<https://evil.example.com/>; rel="next"')
        with self.assertRaisesRegex(ValueError, "evil"):
            self.take()

    def test_show_keeps_nothing(self):
        self.host.respond("GET", f"{REPO}/issues/7", json=issue(7))
        result = run(GitHubIssues().execute({"op": "show", "repository": "ada/engine", "number": 7}, self.host.context, self.host))
        self.assertIn("It is broken.", result.data["text"])
        self.assertNotIn("kb.ingest_thread", [method for method, _ in self.host.kept.asked])


class Tokens(Scene):
    def authorization(self):
        self.answers()
        self.take()
        return self.host.requests[-1]["headers"].get("Authorization")

    def test_the_secret_comes_before_the_account(self):
        self.assertIsNone(self.authorization())
        self.host.kept.tokens["github"] = ("of-the-account", "ada")
        self.assertEqual(self.authorization(), "Bearer of-the-account")
        self.host.kept.secrets["github_token"] = "of-the-secret"
        self.assertEqual(self.authorization(), "Bearer of-the-secret")

    def test_a_token_travels_encrypted_or_not_at_all(self):
        for url, may in {API: True, "http://127.0.0.1:8080": True, "http://api.github.com": False, "http://localhost.example.com": False}.items():
            self.assertEqual(may_carry(url), may, url)


class Waiting(Scene):
    def failed(self, status, **headers):
        return HttpRequestFailed(status, API, None, {name.replace("_", "-"): value for name, value in headers.items()})

    def test_how_long(self):
        self.assertEqual(wait_of(self.failed(429, **{"retry-after": "7"})), 7)
        self.assertEqual(wait_of(self.failed(403, **{"retry-after": "7"})), 7)
        reset = str(int(time.time()) + 20)
        self.assertAlmostEqual(wait_of(self.failed(403, x_ratelimit_remaining="0", x_ratelimit_reset=reset)), 20.5, delta=1.5)
        self.assertEqual(wait_of(self.failed(429)), 60)
        self.assertIsNone(wait_of(self.failed(403, x_ratelimit_remaining="12")))
        self.assertIsNone(wait_of(self.failed(500)))

    def test_it_is_waited_and_asked_again(self):
        refusals = [self.failed(429, **{"retry-after": "20"}), self.failed(403, **{"retry-after": "5"})]

        class Http:
            async def fetch(self, method, url, **options):
                if refusals:
                    raise refusals.pop(0)
                return {"status_code": 200, "headers": {}, "body": []}

        client = Client(mock.Mock(http=Http()), API, patience=30)
        self.assertEqual(asyncio.run(client.get("/x")).items, [])
        self.assertEqual((self.slept, client.patience, client.calls), ([20, 5], 5, 3))

    def test_a_long_wait_ends_the_run_with_what_was_done(self):
        self.answers(issue(1), issue(2, 1, 1))
        self.host.respond("GET", f"{REPO}/issues/2/*", status=429, json={}, headers={"Retry-After": "900"})
        result = self.take()
        self.assertEqual((result.data["ingested"], result.data["more"], self.slept), (1, True, []))
        self.assertIn("900", result.diagnostics[0])
        self.answers(issue(1), issue(2, 1, 1), since="2026-01-01T00:00:00Z")
        stopped = self.take()
        self.assertEqual((stopped.status, stopped.error["code"], stopped.error["details"]), ("error", "rate_limited", {"retry_after_seconds": 900}))


class Places(unittest.TestCase):
    def test_many_repositories_share_a_cursor_that_stays_small(self):
        kept = None
        for n in range(20):
            cursor = Cursor(kept, f"ada/{n} all")
            for number in range(1000):
                cursor.pass_by(issue(number))
            kept = cursor.value
            self.assertLessEqual(len(str(kept)), MAX_BYTES + 100)
        self.assertTrue(Cursor(kept, "ada/19 all").has(issue(7)))
        self.assertEqual(Cursor(kept, "ada/0 all").since, "")

    def test_a_cursor_of_another_form_is_a_beginning(self):
        for kept in (None, "x", [], {"version": 2}, {"version": 1, "repositories": []}, {"version": 1, "repositories": {"k": 1}}):
            self.assertEqual(Cursor(kept, "k", "2026").since, "2026")


if __name__ == "__main__":
    unittest.main()
