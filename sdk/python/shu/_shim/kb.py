"""host.kb: knowledge bases. How text is extracted, split and indexed is the host's business."""

from __future__ import annotations

from .files import spelled
from .host import Fixed
from .records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class KB(Fixed):
    """What is ingested is kept once for each (kb_id, source): the same again replaces it, or is skipped.

    The answer has ko_id, document_id, word_count, character_count, chunk_count, extraction, and skipped and
    skip_reason where nothing had changed.
    """

    __slots__ = ()

    async def ingest_document(
        self,
        kb_id: str,
        file_bytes: bytes | None = None,
        filename: str = "",
        mime_type: str = "",
        source_id: str = "",
        source_url: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Ingest a file; the host extracts its text."""
        if file_bytes is None:
            raise TypeError("host.kb.ingest_document needs file_bytes")
        with spelled(self._line, file_bytes) as file:
            members = {"file": file, "filename": filename, "mime_type": mime_type, "source_id": source_id}
            return await self._ask("ingest_document", kb_id=kb_id, **members, source_url=source_url, attributes=attributes)

    async def ingest_email(
        self,
        kb_id: str,
        subject: str | None = None,
        sender: Any = None,
        recipients: Any = None,
        date: Any = None,
        message_id: str = "",
        thread_id: str | None = None,
        body_text: str | None = None,
        body_html: str | None = None,
        labels: Any = None,
        source_url: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Ingest a message; it is known by its message_id."""
        members = {"subject": subject or "", "sender": sender, "recipients": recipients, "date": date}
        members.update(message_id=message_id, thread_id=thread_id, body_text=body_text, body_html=body_html, labels=labels)
        return await self._ask("ingest_email", kb_id=kb_id, **members, source_url=source_url, attributes=attributes)

    async def ingest_thread(
        self,
        kb_id: str,
        title: str = "",
        content: str = "",
        thread_id: str = "",
        source_url: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Ingest a conversation as one text."""
        members = {"title": title, "content": content, "thread_id": thread_id}
        return await self._ask("ingest_thread", kb_id=kb_id, **members, source_url=source_url, attributes=attributes)

    async def ingest_text(
        self,
        kb_id: str,
        title: str = "",
        content: str = "",
        source_id: str = "",
        source_url: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Ingest a text as it is."""
        members = {"title": title, "content": content, "source_id": source_id}
        return await self._ask("ingest_text", kb_id=kb_id, **members, source_url=source_url, attributes=attributes)

    async def ingest(self, kb_id: str, **fields: Any) -> Any:
        """Ingest whatever the fields describe: ko, file_bytes, message_id, thread_id, else a text."""
        if "ko" in fields:
            return await self.upsert_knowledge_object(kb_id, **fields)
        if "file_bytes" in fields:
            return await self.ingest_document(kb_id, **fields)
        if "message_id" in fields:
            return await self.ingest_email(kb_id, **fields)
        if "thread_id" in fields:
            return await self.ingest_thread(kb_id, **fields)
        return await self.ingest_text(kb_id, **fields)

    async def upsert_knowledge_object(self, kb_id: Any = None, ko: Any = None, knowledge_base_id: str | None = None) -> Any:
        """Keep a knowledge object of the plugin's own making; it has to name its source."""
        if ko is None and isinstance(kb_id, dict):
            kb_id, ko = None, kb_id
        return await self._ask("upsert_knowledge_object", kb_id=kb_id if kb_id is not None else knowledge_base_id, ko=ko)

    async def delete_ko(self, external_id: str, kb_id: str | None = None) -> Any:
        """Delete what was ingested under an id. Only under a feed, whose knowledge base it is."""
        return await self._ask("delete", external_id=external_id, kb_id=kb_id)

    async def search_chunks(self, query: Any = None, kb_ids: Any = None, limit: int = 10, kb_id: str | None = None) -> Any:
        """Return the pieces of documents that fit a query best."""
        return await self._search("search_chunks", query, kb_ids, limit, kb_id)

    async def search_documents(self, query: Any = None, kb_ids: Any = None, limit: int = 10, kb_id: str | None = None) -> Any:
        """Return the documents that fit a query best."""
        return await self._search("search_documents", query, kb_ids, limit, kb_id)

    async def get_document(self, document_id: str, kb_id: str | None = None) -> Any:
        """Return a document."""
        return await self._ask("get_document", document_id=document_id, kb_id=kb_id)

    async def _search(self, method: str, query: Any, kb_ids: Any, limit: int, kb_id: str | None) -> Any:
        if isinstance(kb_ids, str):
            kb_ids = [kb_ids]
        if kb_ids is None and kb_id is not None:
            kb_ids = [kb_id]
        return await self._ask(method, query=query, kb_ids=None if kb_ids is None else list(kb_ids), limit=limit)

    async def _ask(self, method: str, **members: Any) -> Any:
        args = {name: value for name, value in members.items() if value is not None}
        return record(await self._line.ask(f"kb.{method}", args))
