"""Reports of every form, and what is taken out of them."""

from __future__ import annotations

import json
import random
import sys
import time
import types
import unittest
from typing import Any, Dict, List, Optional
from unittest import mock

from support import ToolCase
from framework.plugins.protocol import LLMResponse
from tool import ThreatIntelIngester

SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class Case(ToolCase):
    tool = ThreatIntelIngester()

    def found(self, text: str, **payload: Any) -> Dict[str, List[str]]:
        """The indicators by type."""
        by_type: Dict[str, List[str]] = {}
        for indicator in self.run_on(text, **payload)["indicators"]:
            by_type.setdefault(indicator["type"], []).append(indicator["value"])
        return by_type

    def reasons(self, text: str) -> Dict[str, str]:
        """What was taken for harmless, with the reason."""
        return {i["value"]: i["reason"] for i in self.run_on(text)["filtered"]}


class Indicators(Case):
    def test_defanged_forms(self) -> None:
        for text in ("c2.example[.]com", "c2[.]example[.]com", "c2(.)example(.)com", "c2[dot]example[dot]com", "c2 (dot) example (dot) com", "c2{.}example{.}com", "c2\\.example\\.com", "c2[.example[.com"):
            self.assertEqual(self.found(text), {"domain": ["c2.example.com"]}, text)
        for text in ("hxxp://c2.example.com/a", "hXXp://c2[.]example[.]com/a", "http[:]//c2.example[.]com/a", "hxxp[://]c2.example.com/a", "http://c2[.]example.com[/]a"):
            self.assertEqual(self.found(text), {"url": ["http://c2.example.com/a"], "domain": ["c2.example.com"]}, text)
        self.assertEqual(self.found("198.51.100[.]7 and 198[.]51[.]100[.]8"), {"ipv4": ["198.51.100.7", "198.51.100.8"]})
        self.assertEqual(self.found("bad[@]mail.example[.]org, worse[at]mail[.]example[.]org")["email"], ["bad@mail.example.org", "worse@mail.example.org"])

    def test_every_type(self) -> None:
        text = (
            "2001:db8::7 and 203.0.113.0/24\n" + "d41d8cd98f00b204e9800998ecf8427e " + "da39a3ee5e6b4b0d3255bfef95601890afd80709 " + SHA256.upper() + "\n" + ("0123456789abcdef" * 8) + "\n"
            "cve-2024-21412, T1059.001 and T1105; %APPDATA%\\Local\\a.exe, C:\\Program Files\\Acme\\svc.dll, /etc/cron.d/update, ~/.ssh/authorized_keys\n"
            "HKLM\\SYSTEM\\CurrentControlSet\\Services\\Evil Service was created\n"
        )
        got = self.found(text, filters=[])
        self.assertEqual(got["ipv6"], ["2001:db8::7"])
        self.assertEqual(got["network"], ["203.0.113.0/24"])
        self.assertEqual((got["md5"], got["sha1"], got["sha256"], len(got["sha512"])), (["d41d8cd98f00b204e9800998ecf8427e"], ["da39a3ee5e6b4b0d3255bfef95601890afd80709"], [SHA256], 1))
        self.assertEqual((got["cve"], got["technique"]), (["CVE-2024-21412"], ["T1059.001", "T1105"]))
        self.assertEqual(sorted(got["file_path"]), sorted(["%APPDATA%\\Local\\a.exe", "C:\\Program Files\\Acme\\svc.dll", "/etc/cron.d/update", "~/.ssh/authorized_keys"]))
        self.assertEqual(got["registry_key"], ["HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Evil Service"])

    def test_each_once_with_its_lines(self) -> None:
        result = self.run_on("first 198.51.100[.]7\n\nthen 198.51.100.7 and 198.51.100.7 again\n")
        self.assertEqual(len(result["indicators"]), 1)
        indicator = result["indicators"][0]
        self.assertEqual((indicator["count"], indicator["first_line"], indicator["defanged"]), (3, 1, True))
        self.assertEqual([c["line"] for c in indicator["contexts"]], [1, 3])

    def test_punctuation_around_urls(self) -> None:
        for text in ("(see hxxp://a.example[.]com/x).", '"hxxp://a.example[.]com/x",', "<hxxp://a.example[.]com/x>", "hxxp://a.example[.]com/x; next"):
            self.assertEqual(self.found(text)["url"], ["http://a.example.com/x"], text)
        self.assertEqual(self.found("hxxp://a.example[.]com/x(1)")["url"], ["http://a.example.com/x(1)"])

    def test_what_is_harmless_and_why(self) -> None:
        text = "10.1.2.3 127.0.0.1 198.51.100.9 www.example.com updates.microsoft.com setup.py System.Net version 8.8.4.4 fe80::1\n"
        self.assertEqual(
            self.reasons(text),
            {
                "10.1.2.3": "private", "127.0.0.1": "private", "fe80::1": "private", "198.51.100.9": "documentation", "www.example.com": "documentation",
                "updates.microsoft.com": "common", "setup.py": "file_name", "system.net": "code", "8.8.4.4": "version",
            },  # fmt: skip
        )
        self.assertEqual(self.found(text), {})

    def test_filters_are_chosen(self) -> None:
        self.assertEqual(self.found("198.51.100.9 10.0.0.1", filters=["private"]), {"ipv4": ["198.51.100.9"]})
        self.assertEqual(self.found("198.51.100.9 CVE-2024-1234", filters=[], types=["cve"]), {"cve": ["CVE-2024-1234"]})

    def test_what_looks_like_an_indicator_and_is_none(self) -> None:
        for text in ("999.1.1.1", "1.2.3", "01.02.03.04", "1.2.3.4.5", "file.exe", "report.docx", "12:30:45", "std::string", "a::b", "T12", "XT1059", "deadbeef", "0" * 64, "e.g. this"):
            self.assertEqual((self.found(text, filters=[]), text), ({}, text))

    def test_long_lines(self) -> None:
        got = self.found("x " * 15000 + "198.51.100[.]7 " + "y " * 15000 + "cdn.example[.]net")
        self.assertEqual(got, {"ipv4": ["198.51.100.7"], "domain": ["cdn.example.net"]})


class Techniques(Case):
    def test_names_come_from_reference_data(self) -> None:
        table = {"T1059.001": {"name": "PowerShell", "tactics": ["execution"], "url": "https://attack.mitre.org/techniques/T1059/001"}}
        result = self.tool.execute({"file_path": self.file("T1059.001 and T9999 no, T1105 yes")}, self.context(reference={"mitre_techniques": table})).result
        self.assertEqual([(t["id"], t["name"], t["resolved"]) for t in result["techniques"]], [("T1059.001", "PowerShell", True), ("T1105", "", False)])

    def test_without_reference_data_a_note_says_so(self) -> None:
        result = self.run_on("T1105")
        self.assertIn("There is no reference data of ATT&CK techniques here; names are left out.", result["notes"])


class Documents(Case):
    def test_html(self) -> None:
        html = (
            "<!DOCTYPE html><html><head><style>a{b:c.example.org}</style><script>var x='evil[.]example[.]org'</script></head><body>"
            "<p>Host <b>c2</b>[.]example[.]com</p><table><tr><td>198.51.100[.]7</td><td>203.0.113[.]9</td></tr></table><pre>a\nhxxp://d.example[.]net/&amp;x</pre></body></html>"
        )
        ref = self.artifact(html, "html_report", "report.html")
        result = self.tool.execute({"artifact_id": ref.artifact_id}, self.context()).result
        self.assertEqual(result["artifact"]["format"], "html")
        self.assertEqual([i["value"] for i in result["indicators"]], ["198.51.100.7", "203.0.113.9", "c2.example.com", "d.example.net", "http://d.example.net/&x"])

    def test_html_that_does_not_end_is_bounded(self) -> None:
        result = self.run_on("<html><p>198.51.100[.]7</p><a href='" + "x" * 3000000)
        self.assertEqual(result["total"], 1)

    def test_a_pdf_needs_pypdf_or_a_model(self) -> None:
        ref = self.artifact(b"%PDF-1.4\n%%EOF", "pdf_report", "r.pdf")
        with mock.patch.dict(sys.modules, {"pypdf": None}):
            refused = self.refused("DEPENDENCY_MISSING", {"artifact_id": ref.artifact_id})
        self.assertIn("pip install pypdf", refused.message)
        self.assertEqual(refused.details, {"package": "pypdf"})

    def test_a_pdf_through_pypdf(self) -> None:
        ref = self.artifact(b"%PDF-1.4\n%%EOF", "pdf_report", "r.pdf")
        pages = [types.SimpleNamespace(extract_text=lambda: "C2 at 198.51.100[.]7\nand more"), types.SimpleNamespace(extract_text=lambda: "")]
        module = types.SimpleNamespace(PdfReader=lambda path: types.SimpleNamespace(pages=pages, is_encrypted=False))
        with mock.patch.dict(sys.modules, {"pypdf": module}):
            result = self.tool.execute({"artifact_id": ref.artifact_id}, self.context()).result
        self.assertEqual([i["value"] for i in result["indicators"]], ["198.51.100.7"])
        self.assertEqual(result["notes"], ["1 of 2 pages hold no text; they may be images."])

    def test_what_cannot_be_read(self) -> None:
        self.refused("ARTIFACT_NOT_FOUND", {})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such/report.txt"})
        ref = self.artifact("plain", "pdf_report", "r.pdf")
        self.refused("ARTIFACT_UNREADABLE", {"artifact_id": ref.artifact_id})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b"PK\x03\x04zip")})

    def test_a_damaged_pdf(self) -> None:
        def broken(path: str) -> Any:
            raise KeyError("/Root")

        with mock.patch.dict(sys.modules, {"pypdf": types.SimpleNamespace(PdfReader=broken)}):
            self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(b"%PDF-1.4\n")})


class Model:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, answer: Any, ok: bool = True, documents: Optional[bool] = None) -> None:
        self.answer = answer if isinstance(answer, str) else json.dumps(answer)
        self.ok = ok
        self.documents = ok if documents is None else documents
        self.asked: List[Dict[str, Any]] = []

    def query_text(self, **arguments: Any) -> LLMResponse:
        self.asked.append(dict(arguments, method="text"))
        return LLMResponse(ok=self.ok, text=self.answer if self.ok else None, error=None if self.ok else "no quota", model_used="m", transport_path="text")

    def query_with_document(self, **arguments: Any) -> LLMResponse:
        self.asked.append(dict(arguments, method="document"))
        return LLMResponse(ok=self.documents, text=self.answer if self.documents else None, error=None if self.documents else "no documents", model_used="m", transport_path="inline_bytes")


REPORT = "The group Sandy Otter used OtterLoader against banks.\nIt calls 198.51.100[.]7 and fetches from cdn.example[.]net.\n"
ANSWER = {
    "summary": "Sandy Otter used OtterLoader, which calls 198.51.100.7.",
    "threat_actors": ["Sandy Otter", "Invented Bear"],
    "malware": ["OtterLoader"],
    "targets": ["banks"],
    "indicators": [{"type": "ipv4", "value": "198.51.100[.]7"}, {"type": "domain", "value": "invented.example.org"}],
    "relationships": [{"from": "OtterLoader", "relation": "communicates_with", "to": "198.51.100.7"}, {"from": "OtterLoader", "relation": "uses", "to": "Invented Bear"}],
}


class WithModel(Case):
    def ask(self, model: Model, content: Any = REPORT, type: str = "text", **payload: Any) -> Any:
        ref = self.artifact(content, type, "r.pdf" if type == "pdf_report" else "r.txt")
        return self.tool.execute(dict(payload, artifact_id=ref.artifact_id), self.context(llm=model))

    def test_only_what_the_report_bears_out_is_kept(self) -> None:
        result = self.ask(Model(ANSWER)).result
        model = result["model"]
        self.assertEqual((model["threat_actors"], model["malware"], model["targets"]), (["Sandy Otter"], ["OtterLoader"], ["banks"]))
        self.assertEqual(model["relationships"], [{"from": "OtterLoader", "relation": "communicates_with", "to": "198.51.100.7"}])
        self.assertEqual((model["confirmed"], model["unverified"], model["dropped"]), (1, [], 3))
        self.assertEqual(model["summary"], ANSWER["summary"])
        self.assertEqual([i["value"] for i in result["indicators"]], ["198.51.100.7", "cdn.example.net"])

    def test_a_summary_with_invented_indicators_is_dropped(self) -> None:
        result = self.ask(Model(dict(ANSWER, summary="It calls 203.0.113.99."))).result
        self.assertIsNone(result["model"]["summary"])

    def test_part_of_a_name_does_not_bear_it_out(self) -> None:
        result = self.ask(Model({"indicators": [{"type": "domain", "value": "example.net"}, {"type": "ipv4", "value": "198.51.100"}], "malware": ["Otter"]})).result
        self.assertEqual((result["model"]["confirmed"], result["model"]["malware"]), (0, ["Otter"]))  # Otter is a word of the report

    def test_the_report_is_given_as_data(self) -> None:
        model = Model(ANSWER)
        self.ask(model)
        self.assertEqual(model.asked[0]["grounding_data"], [REPORT.rstrip("\n")])
        self.assertNotIn("OtterLoader", model.asked[0]["prompt"])
        self.assertTrue(model.asked[0]["hints"].needs_structured_output)

    def test_useless_answers_leave_the_plain_result(self) -> None:
        for answer in ("I cannot do that.", "[1, 2]", "{broken", '{"summary": 5, "indicators": "x", "relationships": [7], "malware": {}}', "[" * 5000 + "{}"):
            result = self.ask(Model(answer))
            self.assertTrue(result.ok, answer)
            self.assertEqual([i["value"] for i in result.result["indicators"]], ["198.51.100.7", "cdn.example.net"])
        self.assertIn("The model gave no answer: no quota", self.ask(Model("", ok=False)).result["notes"])

    def test_a_model_can_be_left_out(self) -> None:
        model = Model(ANSWER)
        self.assertIsNone(self.ask(model, use_llm=False).result["model"])
        self.assertEqual(model.asked, [])

    def test_a_pdf_that_only_the_model_could_read_gives_unverified_indicators(self) -> None:
        model = Model(ANSWER)
        with mock.patch.dict(sys.modules, {"pypdf": None}):
            result = self.ask(model, b"%PDF-1.4\n%%EOF", "pdf_report")
        self.assertEqual(model.asked[0]["method"], "document")
        self.assertEqual((result.result["indicators"], result.result["model"]["confirmed"]), ([], 0))
        self.assertEqual([u["value"] for u in result.result["model"]["unverified"]], ["198.51.100.7", "invented.example.org"])
        self.assertEqual(result.result["model"]["relationships"], [])
        with mock.patch.dict(sys.modules, {"pypdf": None}):
            self.assertEqual(self.ask(Model(ANSWER, documents=False), b"%PDF-1.4\n%%EOF", "pdf_report").error_code, "DEPENDENCY_MISSING")


class Bounds(Case):
    def test_long_lists_are_registered(self) -> None:
        text = "\n".join("198.51.%d[.]%d" % (100, n) for n in range(250))
        result = self.tool.execute({"file_path": self.file(text), "limit": 10}, self.context())
        self.assertEqual((len(result.result["indicators"]), result.result["total"]), (10, 250))
        self.assertEqual(len(self.registered[0]["lines"]), 250)

    def test_the_table_of_indicators_is_bounded(self) -> None:
        from threat_intel import indicators

        with mock.patch.object(indicators, "MOST_INDICATORS", 10):
            result = self.run_on("\n".join("198.51.100[.]%d" % n for n in range(30)))
        self.assertEqual(result["total"], 10)
        self.assertTrue(any("20 more were not kept" in note for note in result["notes"]))

    def test_hostile_lines_take_little_time(self) -> None:
        for text in ("a." * 10000, "1." * 10000, "\\a" * 10000, "/tmp" * 5000, "[.]" * 7000, "http://" * 3000, "a@" * 10000, "C:\\" + "a b" * 7000, "HKLM\\" + "a b\\" * 5000, ":a" * 10000, "f" * 20000, "T1059." * 3000):
            started = time.process_time()
            self.run_on(text)
            self.assertLess(time.process_time() - started, 5, text[:12])

    def test_random_input_never_breaks_it(self) -> None:
        rng = random.Random(7)
        parts = [b"198.51.100[.]7 ", b"hxxp://[", b"<p>", b"<!--", b"\xff", b"\0", b"&#x", b"::1 ", b"a[at]b.c ", b"\n", b"HKLM\\", b"http://[::1 ", "é.com ".encode(), b"1.1.1.1/99 "]
        for _ in range(300):
            data = b"".join(rng.choice(parts) for _ in range(rng.randrange(1, 30)))
            result = self.tool.execute({"file_path": self.file(data)}, self.context())
            self.assertIn(result.error_code, (None, "ARTIFACT_UNREADABLE"))
            json.dumps(result.result, allow_nan=False)


if __name__ == "__main__":
    unittest.main()
