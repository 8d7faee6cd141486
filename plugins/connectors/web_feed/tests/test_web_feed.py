import time
import unittest

from plugins.web_feed.cursor import MAX_BYTES, Cursor
from plugins.web_feed.feed import Malformed, parse
from plugins.web_feed.markup import text_of
from plugins.web_feed.plugin import WebFeed
from shu_plugin_sdk import HttpRequestFailed, contracts
from shu_plugin_sdk.testing import FakeHost, run

URL = "https://news.example.com/feed.xml"


def rss(*items):
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{"".join(items)}</channel></rss>'


def item(id, text="Some words.", day=1, title="Title"):
    return (
        f"<item><guid isPermaLink='false'>{id}</guid><title>{title} {id}</title><link>/n/{id}</link>"
        f"<pubDate>Thu, 0{day} Jan 2026 08:00:00 +0100</pubDate><description>{text}</description></item>"
    )


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">A &amp;amp; B</title>
<entry><id>tag:x,1</id><title>One</title><updated>2026-01-02T03:04:05+01:00</updated><author><name>Ada</name></author>
<link rel="self" href="/self"/><link href="one.html"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>First &lt; <b>last</b>.</p><p>Second.</p></div></content></entry>
<entry><id>tag:x,2</id><title>Two</title><published>2026-01-03T00:00:00Z</published>
<summary type="html">&lt;p&gt;Only&lt;/p&gt; a summary</summary></entry></feed>"""


class Reading(unittest.TestCase):
    def test_rss(self):
        feed = parse(rss(item("a", "&lt;p&gt;One.&lt;/p&gt;&lt;p&gt;Two.&lt;/p&gt;")).encode(), "", URL)
        (entry,) = feed.entries
        self.assertEqual((feed.title, entry.key, entry.title), ("News", "a", "Title a"))
        self.assertEqual((entry.url, entry.date, entry.text), ("https://news.example.com/n/a", "2026-01-01T07:00:00Z", "One.\n\nTwo."))

    def test_atom(self):
        feed = parse(ATOM.encode(), "application/atom+xml", "https://example.com/blog/")
        one, two = feed.entries
        self.assertEqual(feed.title, "A & B")
        self.assertEqual((one.author, one.date, one.url), ("Ada", "2026-01-02T02:04:05Z", "https://example.com/blog/one.html"))
        self.assertEqual(one.text, "First < last.\n\nSecond.")
        self.assertEqual((two.text, two.date), ("Only\na summary", "2026-01-03T00:00:00Z"))

    def test_a_date_that_some_years_or_minutes_lack(self):
        for said, want in (
            ("Sat, 31 Dec 2016 23:59:60 +0000", "2017-01-01T00:00:00Z"),
            ("Sun, 01 Jan 2017 08:59:60 +0900", "2017-01-01T00:00:00Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("2016-12-31T23:59:60.500+00:00", "2017-01-01T00:00:00Z"),
            ("Thu, 29 Feb 2024 08:00:00 GMT", "2024-02-29T08:00:00Z"),
            ("2024-02-29T08:00:00Z", "2024-02-29T08:00:00Z"),
            ("9999-12-31T23:59:60Z", ""),
            ("Sat, 31 Dec 2016 23:59:61 +0000", ""),
        ):
            with self.subTest(said):
                (entry,) = parse(rss(f"<item><guid>a</guid><pubDate>{said}</pubDate></item>").encode(), "", URL).entries
                self.assertEqual(entry.date, want)

    def test_an_entry_without_an_id_is_known_by_its_link_or_its_words(self):
        linked = "<item><title>T</title><link>https://a.example/1</link></item>"
        bare = "<item><title>T</title><description>words</description></item>"
        keys = [entry.key for entry in parse(rss(linked, bare).encode()).entries]
        self.assertEqual(keys[0], "https://a.example/1")
        self.assertEqual(keys, [entry.key for entry in parse(rss(linked, bare).encode()).entries])

    def test_encodings(self):
        text = rss(item("ä")).replace("?>", ' encoding="iso-8859-1"?>', 1)
        self.assertEqual(parse(text.encode("latin-1")).entries[0].key, "ä")
        self.assertEqual(parse(rss(item("ä")).encode("utf-16")).entries[0].key, "ä")
        self.assertEqual(parse(rss(item("ä")).encode("latin-1"), "text/xml; charset=ISO-8859-1").entries[0].key, "ä")

    def test_what_is_no_feed_is_refused_with_a_reason(self):
        for body, says in {
            b"": "well-formed",
            b"<html><body>Not found</body></html>": "neither",
            b"<rss version='2.0'></rss>": "no channel",
            b"<rss><channel><item></channel></rss>": "well-formed",
            b"\xff\x00": "not",
            b"<?xml version='1.0' encoding='rot13'?><rss/>": "encoding",
            b"<!-- <rss>": "ends before",
            b"<rss><channel>" + b"<a>" * 200 + b"</a>" * 200 + b"</channel></rss>": "in one another",
        }.items():
            with self.subTest(body[:40]), self.assertRaisesRegex(Malformed, says):
                parse(body)

    def test_a_document_that_declares_entities_is_never_parsed(self):
        bomb = '<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><rss><channel><title>&b;</title></channel></rss>'
        external = '<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]><rss><channel><title>&a;</title></channel></rss>'
        for text in (bomb, external, "<!--x-->" + bomb, "<?xml version='1.0'?>\n" + bomb):
            for body in (text.encode(), text.encode("utf-16"), text.encode("utf-16-be"), b"\xef\xbb\xbf" + text.encode()):
                with self.subTest(body[:30]), self.assertRaises(Malformed):
                    parse(body)
        harmless = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://example.com/rss.dtd">' + rss(item("<![CDATA[<!ENTITY]]>"))[21:]
        self.assertEqual(parse(harmless.encode()).entries[0].key, "<!ENTITY")

    def test_html_is_read_as_text(self):
        for source, want in {
            "a<br>b<script>no()</script><style>no</style> c": "a\nb c",
            "<ul><li>one<li>two</ul>": "- one\n- two",
            '<a href="https://x.example/?a=1&amp;b=2">here</a>': "here (https://x.example/?a=1&b=2)",
            '<a href="javascript:x()">here</a>': "here",
            "1 < 2 &amp; 3 &gt; 2": "1 < 2 & 3 > 2",
            '<img alt="a>b">after': "after",
            "before<!-- <p>hidden</p> -->after<p": "beforeafter",
        }.items():
            with self.subTest(source):
                self.assertEqual(text_of(source), want)

    def test_hostile_html_takes_no_longer_than_its_length(self):
        for piece in ("<!--", "<a '", "<p ", "<script>", "</", "&#", "<a href=", '<"'):
            began = time.monotonic()
            text_of(piece * (1_000_000 // len(piece)))
            self.assertLess(time.monotonic() - began, 10, piece)


class Taking(unittest.TestCase):
    def setUp(self):
        self.host = FakeHost(["http", "kb"], plugin="web_feed")

    def take(self, body=None, status=200, headers=None, **params):
        if body is not None:
            self.host.respond("GET", URL, status=status, body=body, headers=headers)
        result = run(WebFeed().execute({"op": "ingest", "url": URL, "kb_id": "kb", **params}, self.host.context, self.host))
        self.assertEqual(contracts.check_result(result), [])
        return result

    def sent(self):
        return [args["title"] for method, args in self.host.kept.asked if method == "kb.ingest_text"]

    def test_keeps_to_the_contract(self):
        contracts.must(WebFeed())

    def test_takes_entries_in_the_oldest_first(self):
        result = self.take(rss(item("c", day=3), item("a", day=1), item("b", day=2)))
        self.assertEqual((result.data["ingested"], result.data["waiting"]), (3, 0))
        self.assertEqual(self.sent(), ["Title a", "Title b", "Title c"])
        first = self.host.documents[0]
        self.assertRegex(first["source_id"], "^web_feed:[0-9a-f]{16}:[0-9a-f]{16}$")
        self.assertEqual(first["attributes"], {"feed": URL, "modified_at": "2026-01-01T07:00:00Z"})

    def test_the_second_time_asks_conditionally_and_sends_what_changed(self):
        both = (item("a"), item("b"))
        self.take(rss(*both), headers={"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"})
        self.take(rss(item("a"), item("b", "Other words.")))
        asked = self.host.requests[1]["headers"]
        self.assertEqual((asked["If-None-Match"], asked["If-Modified-Since"]), ('"1"', "Thu, 01 Jan 2026 00:00:00 GMT"))
        self.assertEqual(self.sent()[2:], ["Title b"])

    def test_not_modified_moves_nothing(self):
        self.take(rss(item("a")), headers={"ETag": '"1"'})
        before = dict(self.host.kept.values)
        self.assertTrue(self.take("", status=304).data["not_modified"])
        self.assertEqual(self.host.kept.values, before)

    def test_a_run_is_bounded_and_the_next_goes_on(self):
        body = rss(*(item(str(n), day=n) for n in range(1, 6)))
        for ingested, waiting in ((2, 3), (2, 1), (1, 0), (0, 0)):
            result = self.take(body, headers={"ETag": '"1"'}, max_items=2)
            self.assertEqual((result.data["ingested"], result.data["waiting"]), (ingested, waiting))
            self.assertEqual(len(result.skips or ()), 0)
        self.assertNotIn("If-None-Match", self.host.requests[2]["headers"])
        self.assertIn("If-None-Match", self.host.requests[3]["headers"])
        self.assertEqual(len(self.sent()), 5)

    def test_skips_say_why(self):
        result = self.take(rss(item("a", ""), item("b", "x" * 500_001)))
        self.assertEqual([str(skip.reason) for skip in result.skips], ["too_large", "empty_extraction"])
        self.assertEqual(self.take().skips, None)  # said once

    def test_nothing_moves_when_the_host_fails(self):
        self.host.respond("GET", URL, status=503, body="later", headers={"Retry-After": "30"})
        with self.assertRaises(HttpRequestFailed) as caught:
            self.take()
        self.assertEqual(caught.exception.retry_after_seconds, 30)
        self.assertEqual(self.host.kept.values, {})

    def test_malformed_feeds_are_an_error_with_a_code(self):
        result = self.take("<rss>")
        self.assertEqual((result.status, result.error["code"]), ("error", "malformed_feed"))

    def test_peek_keeps_nothing(self):
        self.host.respond("GET", URL, body=rss(item("a", day=1), item("b", day=2)))
        result = run(WebFeed().execute({"op": "peek", "url": URL, "limit": 1}, self.host.context, self.host))
        self.assertEqual([entry["title"] for entry in result.data["entries"]], ["Title b"])
        self.assertEqual([method for method, _ in self.host.kept.asked], ["http.fetch"])


class Places(unittest.TestCase):
    def test_many_feeds_share_a_cursor_that_stays_small(self):
        kept, entries = None, parse(rss(*(item(f"entry-{n}") for n in range(400))).encode()).entries
        for n in range(8):
            kept = Cursor(kept, f"https://{n}.example.com/").moved(entries, [], {"etag": '"1"'})
            self.assertLessEqual(len(str(kept)), MAX_BYTES + 1000)
        self.assertIn("seen", kept["feeds"]["https://7.example.com/"])
        first = Cursor(kept, "https://0.example.com/")
        self.assertIsNone(first.seen)
        self.assertEqual(first.pending(entries), [])  # by the watermark

    def test_a_cursor_of_another_form_is_a_beginning(self):
        for kept in (None, "x", [], {"version": 2}, {"version": 1, "feeds": []}, {"version": 1, "feeds": {URL: "x"}}):
            self.assertEqual(Cursor(kept, URL).headers(), {})


if __name__ == "__main__":
    unittest.main()
