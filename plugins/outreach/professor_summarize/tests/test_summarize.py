import unittest

from mortise import PluginError
from mortise.testing import call
from plugin import plugin

WHO = {"auth": {"tenant_id": "local", "scopes": ["professor:read"]}}
RECORD = {
    "id": 910,
    "name": "Marie Curie",
    "email": "m.curie@physics.example.edu",
    "field": "radioactivity",
    "about": "She likes the sea. Her group measures radioactivity of minerals. The door is blue.",
    "papers": [
        {"title": "Rays emitted by compounds of uranium", "abstract": "Uranium compounds emit rays! Their strength follows the uranium in them."},
        "A paper without an abstract",
        {"title": " "},
    ],
    "salary": 1,
}
PAGE = """<html><head><title>x</title><script>let field = "evil"</script></head><body><h1>Prof. Dr. Marie <b>Curie</b></h1>
<p>Research interests: radioactivity.</p><p>Write to m.curie@physics.example.edu. My group measures the radioactivity of minerals.</p>
<ul><li><cite>Rays emitted by compounds of uranium</cite></li></ul><style>p{}</style></body></html>"""


def read(answer, who=WHO, **changes):
    return call(plugin, "Professor.Summarize", dict({"professor_id": 910}, **changes), services={"http.fetch": answer}, context=who)


def record(**changes):
    return {"status_code": 200, "json": dict(RECORD, **changes)}


class Summarize(unittest.TestCase):
    def test_a_record_is_cited_word_by_word(self):
        data = read(record()).data
        self.assertEqual(data["professor"], {"name": "Marie Curie", "field": "radioactivity", "papers": [RECORD["papers"][0]["title"], RECORD["papers"][1]]})
        self.assertEqual(data["email"], RECORD["email"])
        self.assertEqual([s["text"] for s in data["summary"]], ["Her group measures radioactivity of minerals.", "Uranium compounds emit rays!", "Their strength follows the uranium in them."])
        texts = {"/about": RECORD["about"], "/papers/0/abstract": RECORD["papers"][0]["abstract"]}
        for sentence in data["summary"]:
            at = sentence["cites"]
            self.assertEqual(texts[at["pointer"]][at["start"] : at["end"]], sentence["text"])
        self.assertNotIn("salary", str(data))

    def test_a_page_is_read_as_people_see_it(self):
        data = read({"status_code": 200, "body": PAGE}).data
        self.assertEqual(data["professor"], {"name": "Marie Curie", "field": "radioactivity", "papers": ["Rays emitted by compounds of uranium"]})
        self.assertEqual((data["email"], data["source"]["form"]), ("m.curie@physics.example.edu", "page"))
        self.assertIn("My group measures the radioactivity of minerals.", [s["text"] for s in data["summary"]])

    def test_one_request_that_changes_nothing(self):
        [(method, args)] = read(record(), source="canspider").requests
        self.assertEqual((method, args.get("method", "GET"), args["url"]), ("http.fetch", "GET", "http://127.0.0.1:8025/professors/910"))
        self.assertEqual(args["params"], {"source": "canspider"})

    def test_it_says_that_the_source_may_change(self):
        self.assertEqual(read(record()).result["nondeterminism"]["reasons"], ["web_content"])
        self.assertEqual(read(record()).data, read(record()).data)
        self.assertNotEqual(read(record()).data["source"]["digest"], read(record(about="x")).data["source"]["digest"])

    def test_a_summary_is_as_long_as_asked(self):
        self.assertEqual(len(read(record(), sentences=1).data["summary"]), 1)

    def test_what_cannot_be_read_has_a_code(self):
        cases = [
            ({"status_code": 404}, "NO_PROFESSOR"),
            ({"status_code": 503}, "BACKEND_REFUSED"),
            (record(name="  "), "PROFESSOR_UNREADABLE"),
            ({"status_code": 200, "json": []}, "PROFESSOR_UNREADABLE"),
            ({"status_code": 200, "body": "<p>nothing"}, "PROFESSOR_UNREADABLE"),
            ({"status_code": 200, "body_base64": ""}, "PROFESSOR_UNREADABLE"),
        ]
        for answer, code in cases:
            with self.subTest(code=code), self.assertRaises(PluginError) as caught:
                read(answer)
            self.assertEqual(caught.exception.code, code)

    def test_nothing_is_asked_without_the_scope(self):
        with self.assertRaises(PluginError) as caught:
            read(AssertionError("it was asked"), who={"auth": {"scopes": ["email:send"]}})
        self.assertEqual(caught.exception.code, "SCOPE_DENIED")


if __name__ == "__main__":
    unittest.main()
