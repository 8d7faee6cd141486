"""host.kb of Shu plugins: what each method asks and gives back."""

from __future__ import annotations

import base64
import hashlib
import os
import unittest

from shu import Hosted


class Knowledge(Hosted):
    ANSWER = {"ko_id": "k", "document_id": "d", "word_count": 1, "character_count": 2, "chunk_count": 3, "extraction": {"method": "text"}}

    def asked(self, body: str) -> list[tuple[str, object]]:
        shu = self.shu(body + "\nreturn {'said': None}")
        for name in ("ingest_document", "ingest_email", "ingest_thread", "ingest_text", "upsert_knowledge_object", "delete"):
            shu.services[f"kb.{name}"] = lambda args: self.ANSWER
        for name in ("find_chunks", "find_documents", "find_document"):
            shu.services[f"kb.{name}"] = lambda args: {"results": []}
        self.said(shu)
        return shu.requests

    def test_ingest_text_and_thread(self) -> None:
        asked = self.asked(
            "await host.kb.ingest_text('kb', title='T', content='C', source_id='s', source_url='u', attributes={'a': 1})\n"
            "await host.kb.ingest_thread('kb', title='T', content='C', thread_id='t')"
        )
        text = {"kb_id": "kb", "title": "T", "content": "C", "source_id": "s", "source_url": "u", "attributes": {"a": 1}}
        self.assertEqual(asked, [("kb.ingest_text", text), ("kb.ingest_thread", {"kb_id": "kb", "title": "T", "content": "C", "thread_id": "t"})])

    def test_ingest_email(self) -> None:
        body = """await host.kb.ingest_email('kb', subject='S', sender='a@x', recipients={'to': ['b@x'], 'cc': [], 'bcc': []},
    date=datetime.datetime(2026, 1, 2), message_id='m', thread_id='t', body_text='B', labels=['INBOX'])"""
        [(method, args)] = self.asked("import datetime\n" + body)
        want = {"kb_id": "kb", "subject": "S", "sender": "a@x", "recipients": {"to": ["b@x"], "cc": [], "bcc": []}}
        want.update(date="2026-01-02T00:00:00", message_id="m", thread_id="t", body_text="B", labels=["INBOX"])
        self.assertEqual((method, args), ("kb.ingest_email", want))

    def test_a_document_travels_in_the_frame_or_as_a_file(self) -> None:
        sent: list[object] = []

        def take(args: dict[str, object]) -> object:
            file = args["file"]
            if "$bytes" in file:
                data = base64.b64decode(file["$bytes"])
            else:
                with open(os.path.join(shu.scratch, file["$file"]), "rb") as opened:
                    data = opened.read()
            sent.append((sorted(file), hashlib.sha256(data).hexdigest(), args["filename"]))
            return self.ANSWER

        body = """
            for n in (10, 300_000):
                got = await host.kb.ingest_document("kb", file_bytes=b"x" * n, filename=f"{n}.pdf", mime_type="application/pdf", source_id="s")
            return {"said": [got.ko_id, got["extraction"], got.chunk_count]}
        """
        shu = self.shu(body, kb__ingest_document=take)
        self.assertEqual(self.said(shu), ["k", {"method": "text"}, 3])
        hashes = [hashlib.sha256(b"x" * n).hexdigest() for n in (10, 300_000)]
        self.assertEqual(sent, [(["$bytes"], hashes[0], "10.pdf"), (["$file"], hashes[1], "300000.pdf")])
        self.assertEqual(os.listdir(shu.scratch), [])

    def test_ingest_finds_the_right_one(self) -> None:
        asked = self.asked(
            "await host.kb.ingest('kb', file_bytes=b'x', filename='f', mime_type='m', source_id='s')\n"
            "await host.kb.ingest('kb', message_id='m', subject='s')\n"
            "await host.kb.ingest('kb', thread_id='t', title='x', content='c')\n"
            "await host.kb.ingest('kb', title='x', content='c', source_id='s')\n"
            "await host.kb.ingest('kb', ko={'source': 's'})"
        )
        names = ["ingest_document", "ingest_email", "ingest_thread", "ingest_text", "upsert_knowledge_object"]
        self.assertEqual([method for method, _ in asked], [f"kb.{name}" for name in names])

    def test_knowledge_objects_in_all_spellings(self) -> None:
        asked = self.asked(
            "await host.kb.upsert_knowledge_object('kb', {'source': 's'})\n"
            "await host.kb.upsert_knowledge_object(knowledge_base_id='kb', ko={'source': 's'})\n"
            "await host.kb.upsert_knowledge_object({'source': 's'})\n"
            "await host.kb.delete_ko(external_id='x')"
        )
        both = ("kb.upsert_knowledge_object", {"kb_id": "kb", "ko": {"source": "s"}})
        self.assertEqual(asked, [both, both, ("kb.upsert_knowledge_object", {"ko": {"source": "s"}}), ("kb.delete", {"external_id": "x"})])

    def test_searching(self) -> None:
        asked = self.asked(
            "await host.kb.search_chunks('topics', 'has_any', ['a'], page=2, sort_order='desc')\n"
            "await host.kb.search_documents('title', operator='eq', value='a')\n"
            "await host.kb.get_document('d')"
        )
        want = [
            ("kb.find_chunks", {"field": "topics", "operator": "has_any", "value": ["a"], "page": 2, "sort_order": "desc"}),
            ("kb.find_documents", {"field": "title", "operator": "eq", "value": "a", "page": 1, "sort_order": "asc"}),
            ("kb.find_document", {"document_id": "d"}),
        ]
        self.assertEqual(asked, want)


if __name__ == "__main__":
    unittest.main()
