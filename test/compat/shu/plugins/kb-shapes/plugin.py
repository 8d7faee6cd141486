class Plugin:
    def get_schema(self):
        ops = ["text", "mail", "thread", "document", "no_source", "delete", "read"]
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ops}, "kb_id": {"type": "string"}}, "required": ["kb_id"]}

    async def execute(self, params, context, host):
        return {"status": "success", "data": await getattr(self, params["op"])(host.kb, params["kb_id"])}

    async def text(self, kb, id):
        got = await kb.ingest_text(id, title="T", content="one two three", source_id="s1", attributes={"own": 1})
        again = await kb.ingest(id, title="T", content="one two three", source_id="s1", attributes={"own": 1})
        return {"ko_id": got["ko_id"], "words": got["word_count"], "method": got["extraction"]["method"], "again": again.get("skip_reason")}

    async def mail(self, kb, id):
        fields = {"subject": "Lamp", "sender": "ada@example.com", "recipients": {"to": ["bob@example.com"], "cc": [], "bcc": []}}
        got = await kb.ingest_email(id, **fields, date="2026-01-02T03:04:05Z", message_id="m1", thread_id="t1", body_text="It is broken.", labels=["INBOX"])
        other = await kb.ingest_email(id, **fields, message_id="m2", body_text="Still broken.", attributes={"external_id": "x1"})
        return {"ko_id": got["ko_id"], "overridden": other["ko_id"]}

    async def thread(self, kb, id):
        return {"ko_id": (await kb.ingest_thread(id, title="Lamp", content="ada: broken\nbob: I see", thread_id="t1"))["ko_id"]}

    async def document(self, kb, id):
        small = await kb.ingest_document(id, file_bytes=b"a short note", filename="a.txt", mime_type="text/plain", source_id="d1")
        text = b"many words " * 30000
        large = await kb.ingest_document(id, file_bytes=text, filename="b.txt", mime_type="text/plain", source_id="d2")
        broken = {"file_bytes": b"\x00\x01\x02", "filename": "c.bin", "mime_type": "application/octet-stream", "source_id": "d3"}
        skips = [await kb.ingest_document(id, **broken, attributes=a) for a in (None, None, {"force_reingest": True})]
        told = [[s["skip_reason"], s["status"], s["skipped"], s["word_count"] + s["character_count"] + s["chunk_count"]] for s in skips]
        return {"small": small["ko_id"], "large": large["ko_id"], "same": large["word_count"] == 60000, "skips": told}

    async def no_source(self, kb, id):
        return await kb.upsert_knowledge_object(knowledge_base_id=id, ko={"title": "T", "content": "C", "external_id": "k1"})

    async def delete(self, kb, id):
        return await kb.delete_ko(external_id="s1")

    async def read(self, kb, id):
        await kb.ingest_text(kb_id=id, title="Lamps", content="The lamp in room four is broken.", source_id="lamp")
        chunks = await kb.search_chunks("content", "icontains", "LAMP in%four")
        documents = await kb.search_documents(field="title", operator="eq", value="Lamps")
        one = await kb.get_document(documents.results[0]["id"])
        return [chunks["total_results"], chunks["results"][0]["document_id"] == one["id"], one["title"], one["knowledge_base_name"], one.content]
