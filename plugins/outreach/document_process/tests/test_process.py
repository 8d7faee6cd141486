import base64
import unittest

from mortise import InvalidInput, PluginError
from mortise.testing import call
from plugin import plugin
from structure import Text, fields, sections

WHO = {"auth": {"tenant_id": "local", "scopes": ["document:read"]}}
CV = """Ada Lovelace
ada@students.example.edu

EDUCATION
Degree: MSc in physics
1. Thesis
On the heat of pitchblende, see https://example.edu/x.

Research interests
- uranium minerals
- computing engines, engines
"""


def process(document, who=WHO, **services):
    return call(plugin, "Document.Process", {"document": document}, services={k.replace("_", ".", 1): v for k, v in services.items()}, context=who)


def extracted(text, **details):
    return {"text": text, "metadata": {"method": "pdf_text", "engine": "pdfium", "confidence": 1, "duration": 0.1, "details": details}}


class Process(unittest.TestCase):
    def test_a_curriculum_is_a_profile(self):
        data = process({"text": CV}).data
        self.assertEqual(data["profile"], {"name": "Ada Lovelace", "degree": "MSc in physics", "interests": ["uranium minerals", "computing engines", "engines"]})
        self.assertEqual([part["title"] for part in data["sections"]], ["", "EDUCATION", "Thesis", "Research interests"])
        self.assertEqual({field["name"]: field["value"] for field in data["fields"]}["email"], "ada@students.example.edu")
        self.assertEqual(data, process({"text": CV}).data)

    def test_everything_stands_where_it_is_said_to(self):
        data = process({"text": CV}).data
        text = data["processed_content"]
        for field in data["fields"]:
            self.assertEqual(text[field["at"]["start"] : field["at"]["end"]], field["value"])
            self.assertIn(field["value"], text.split("\n")[field["at"]["line"] - 1])
        whole = "".join(text[part["at"]["start"] : part["at"]["end"]] for part in data["sections"])
        self.assertEqual(whole, text)

    def test_pages_are_cited_where_there_are_some(self):
        text = "Name: Ada Lovelace\n\nDegree: MSc in physics\n\nInterests: x"
        data = process({"content_base64": "JVBERg=="}, ocr_extract_text=extracted(text, pages=3, page_starts=[0, 20, 44])).data
        self.assertEqual({field["name"]: field["at"]["page"] for field in data["fields"]}, {"name": 1, "degree": 2, "interests": 3})
        self.assertEqual(data["pages"], 3)
        self.assertNotIn("page", process({"text": text}).data["fields"][0]["at"])

    def test_the_host_reads_the_file(self):
        raw = base64.b64encode(b"%PDF-1.7").decode()
        [(method, args)] = process({"content_base64": raw, "filename": "cv.pdf"}, ocr_extract_text=extracted("x")).requests
        self.assertEqual((method, args["file"], args["filename"]), ("ocr.extract_text", {"$bytes": raw}, "cv.pdf"))

    def test_what_was_read_from_a_picture_says_so(self):
        read = extracted("Name: A B")
        read["metadata"].update(method="ocr", confidence=0.8)
        result = process({"content_base64": "JVBERg=="}, ocr_extract_text=read).result
        self.assertEqual(result["nondeterminism"]["reasons"], ["ocr"])
        self.assertFalse((process({"text": CV}).result.get("nondeterminism") or {}).get("is_nondeterministic"))

    def test_no_text_makes_it_slow_or_fail(self):
        for text in (":" * 100_000, "a: " * 50_000, "\n" * 100_000, "# " * 90_000, "x" * 300_000, "A:\tb" * 9000, "- " * 60_000 + ": x"):
            found = Text(text, [])
            self.assertLessEqual(len(sections(found)), 500)
            self.assertLessEqual(len(fields(found)), 500)

    def test_what_is_no_base64_is_refused(self):
        with self.assertRaises(InvalidInput):
            process({"content_base64": "%%%%"})

    def test_nothing_is_read_without_the_scope(self):
        with self.assertRaises(PluginError) as caught:
            process({"content_base64": "JVBERg=="}, who={"auth": {"scopes": []}}, ocr_extract_text=AssertionError("it was asked"))
        self.assertEqual(caught.exception.code, "SCOPE_DENIED")


if __name__ == "__main__":
    unittest.main()
