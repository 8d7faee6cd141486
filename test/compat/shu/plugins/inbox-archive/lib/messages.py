from __future__ import annotations

import base64
import email.utils
import html
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional

_TAGS = re.compile(r"<[^>]+>")


@dataclass
class Message:
    id: str
    thread_id: Optional[str] = None
    subject: str = "(no subject)"
    sender: Optional[str] = None
    to: List[str] = field(default_factory=list)
    date: Optional[datetime] = None
    text: Optional[str] = None
    labels: List[str] = field(default_factory=list)

    @classmethod
    def parse(cls, raw: Dict[str, Any]) -> "Message":
        headers = {h["name"].lower(): h["value"] for h in raw.get("payload", {}).get("headers", [])}
        date = None
        if headers.get("date"):
            date = email.utils.parsedate_to_datetime(headers["date"]).astimezone(timezone.utc)
        data = raw["payload"].get("body", {}).get("data")
        text = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "replace") if data else None
        return cls(
            id=raw["id"],
            thread_id=raw.get("threadId"),
            subject=headers.get("subject", "(no subject)"),
            sender=email.utils.parseaddr(headers.get("from", ""))[1] or None,
            to=[address for _, address in email.utils.getaddresses([headers.get("to", "")])],
            date=date,
            text=html.unescape(_TAGS.sub(" ", text)) if text else None,
            labels=list(raw.get("labelIds", ())),
        )
