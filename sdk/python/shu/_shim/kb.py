"""host.kb: knowledge bases. How text is extracted, split and indexed is the host's business."""

from __future__ import annotations

from hashlib import sha256

from mortise._errors import ServiceError

from .files import spelled
from .host import Fixed
from .records import Record, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

OUTSIDE = "kb_delete_not_allowed_outside_feed"


class KB(Fixed):
    """What is ingested is kept once for each (kb_id, source): the same again replaces it, or is skipped.

    The answer has ko_id, document_id, status, skipped, word_count, character_count, chunk_count, extraction, and
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

    async def upsert_knowledge_object(self, knowledge_base_id: Any = None, ko: Any = None, *, kb_id: str | None = None) -> str:
        """Keep a knowledge object of the plugin's own making, and return its id. It has to name its source; it replaces what is there."""
        if ko is None and isinstance(knowledge_base_id, dict):
            knowledge_base_id, ko = None, knowledge_base_id
        await self._ask("upsert_knowledge_object", kb_id=knowledge_base_id if knowledge_base_id is not None else kb_id, ko=ko)
        source = ko.get("source") if isinstance(ko.get("source"), dict) else {}
        text = f"{source.get('plugin')}:{source.get('account')}|{ko.get('external_id')}"
        return str(ko["id"]) if ko.get("id") else sha256(text.encode()).hexdigest()

    async def delete_ko(self, external_id: str, kb_id: str | None = None) -> Any:
        """Delete what was ingested under an id: {deleted}, and where it was there ko_id and chunk_count.

        Only a feed may, and the knowledge base is the feed's; else PermissionError.
        """
        try:
            return await self._ask("delete", external_id=external_id, kb_id=kb_id)
        except ServiceError as exc:
            if exc.details.get("reason") != OUTSIDE:
                raise
            raise PermissionError(OUTSIDE) from exc

    async def delete_kos_batch(self, external_ids: Iterable[str], kb_id: str | None = None) -> Any:
        """Delete what was ingested under some ids: {deleted_count, failed}. What is not there counts as neither."""
        deleted, failed = 0, []
        for external_id in external_ids:
            try:
                deleted += bool((await self.delete_ko(external_id, kb_id))["deleted"])
            except ServiceError as exc:
                self._line.log("warning", f"kb.delete_kos_batch: {exc}", {"external_id": external_id})
                failed.append(external_id)
        return Record(deleted_count=deleted, failed=failed)

    async def search_chunks(self, field: str, operator: str, value: Any, page: int = 1, sort_order: str = "asc") -> Any:
        """Return {results, total_results, page, page_size} of passages; an error is returned as {status, error}.

        Fields are content, summary and topics. Only the knowledge bases that the call is bound to are searched.
        """
        return await self._search("find_chunks", field, operator, value, page, sort_order)

    async def search_documents(self, field: str, operator: str, value: Any, page: int = 1, sort_order: str = "asc") -> Any:
        """Return documents likewise, by title, content, synopsis or capability_manifest."""
        return await self._search("find_documents", field, operator, value, page, sort_order)

    async def get_document(self, document_id: str) -> Any:
        """Return a document with its content; an error is returned as {status, error}."""
        return await self._told("get_document", "find_document", {"document_id": document_id})

    async def _search(self, method: str, field: str, operator: str, value: Any, page: int, sort_order: str) -> Any:
        asked = {"field": field, "operator": operator, "value": value, "page": page, "sort_order": sort_order}
        return await self._told(method.replace("find", "search"), method, asked)

    async def _told(self, name: str, method: str, asked: dict[str, Any]) -> Any:
        """Ask, and return what fails: searches raise nothing."""
        try:
            return record(await self._line.ask(f"kb.{method}", asked))
        except ServiceError as exc:
            return Record(status="error", error={"code": f"{name}_error", "message": exc.message})

    async def _ask(self, method: str, **members: Any) -> Any:
        args = {name: value for name, value in members.items() if value is not None}
        answer = record(await self._line.ask(f"kb.{method}", args))
        if isinstance(answer, dict) and "document_id" in answer and method.startswith("ingest"):
            answer.setdefault("skipped", False)
            answer["status"] = "skipped" if answer["skipped"] else "pending" if method == "ingest_document" else "embedding"
        return answer
