"""Small RSS 2.0 / Atom 1.0 reader, standard library only."""
from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from html import unescape
from typing import List, Optional

ATOM = "{http://www.w3.org/2005/Atom}"
_TAG = re.compile(r"<[^>]+>")


class FeedError(ValueError):
    pass


@dataclass
class Entry:
    guid: str
    title: str
    link: Optional[str]
    published: Optional[datetime]
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256((self.title + "\n" + self.text).encode("utf-8")).hexdigest()


def strip_html(value: str) -> str:
    return re.sub(r"\s+", " ", unescape(_TAG.sub(" ", value or ""))).strip()


def parse_when(value: Optional[str]) -> Optional[datetime]:
    if not value:
        return None
    value = value.strip()
    try:
        dt = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        try:
            dt = parsedate_to_datetime(value)
        except (TypeError, ValueError):
            return None
    if dt.tzinfo is None:
        dt = dt.replace(tzinfo=timezone.utc)
    return dt.astimezone(timezone.utc)


def _txt(node, tag):
    child = node.find(tag)
    return (child.text or "").strip() if child is not None else ""


def _rss(root) -> List[Entry]:
    out = []
    for item in root.iter("item"):
        link = _txt(item, "link") or None
        guid = _txt(item, "guid") or link or _txt(item, "title")
        out.append(Entry(guid, strip_html(_txt(item, "title")) or "(untitled)", link,
                         parse_when(_txt(item, "pubDate")), strip_html(_txt(item, "description"))))
    return out


def _atom(root) -> List[Entry]:
    out = []
    for item in root.iter(ATOM + "entry"):
        link = None
        for el in item.findall(ATOM + "link"):
            if el.get("rel", "alternate") == "alternate":
                link = el.get("href")
                break
        body = _txt(item, ATOM + "content") or _txt(item, ATOM + "summary")
        when = _txt(item, ATOM + "updated") or _txt(item, ATOM + "published")
        out.append(Entry(_txt(item, ATOM + "id") or link or "", strip_html(_txt(item, ATOM + "title")) or "(untitled)",
                         link, parse_when(when), strip_html(body)))
    return out


def parse(xml_text: str) -> List[Entry]:
    try:
        root = ET.fromstring(xml_text.strip())
    except ET.ParseError as exc:
        raise FeedError("not well-formed XML: %s" % exc) from None
    if root.tag == ATOM + "feed":
        return _atom(root)
    if root.tag in ("rss", "RDF") or root.find("channel") is not None:
        return _rss(root)
    raise FeedError("neither RSS nor Atom: <%s>" % root.tag)
