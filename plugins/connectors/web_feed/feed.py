"""Feeds as they come over the wire: RSS 2.0 and Atom.

    feed = parse(body, headers["content-type"])
    feed.title, [(entry.key, entry.title, entry.date) for entry in feed.entries]

A document is decoded here and judged before the parser sees it: one that
declares a document type with entities of its own is refused, whatever its
encoding, so no entity is ever expanded.
"""

import hashlib
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

from .markup import text_of, tidy

MAX_ENTRIES = 500  # of one document; the first ones count
MAX_ELEMENTS = 200_000
MAX_DEPTH = 100

ATOM = "{http://www.w3.org/2005/Atom}"
XHTML = "{http://www.w3.org/1999/xhtml}"
CONTENT = "{http://purl.org/rss/1.0/modules/content/}encoded"
CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
DC_DATE = "{http://purl.org/dc/elements/1.1/}date"

_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._-]{1,40})""", re.IGNORECASE)
_KNOWN = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?1|(windows-|cp)125\d|koi8-[ru]"
    r"|shift_?jis|euc-(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5"
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_LEAP_SECOND = re.compile(r"(\d\d:\d\d:)60(?!\d)")
_DOCTYPE = re.compile(r"""<!DOCTYPE\s+[A-Za-z][\w.:-]{0,80}(\s+(SYSTEM|PUBLIC\s+("[^"]*"|'[^']*'))\s*("[^"]*"|'[^']*')?)?\s*>""")
_ELEMENT = re.compile(r"<[A-Za-z_]")


class Malformed(ValueError):
    """What came is no feed, or one that is not read."""


@dataclass
class Entry:
    """One entry. key is what its source knows it by, text what there is to read."""

    key: str
    title: str
    url: str
    author: str
    date: str  # RFC 3339 in UTC; empty where the feed has none that can be read
    text: str

    @property
    def digest(self):
        """What changes with anything that is kept of the entry."""
        return short("\0".join((self.title, self.url, self.author, self.date, self.text)))


@dataclass
class Feed:
    """A document, its entries in its own order. left_out counts those behind the first MAX_ENTRIES."""

    title: str
    entries: list
    left_out: int


def short(text):
    """Return 16 hexadecimal digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def parse(body, content_type="", base=""):
    """Return the Feed in some bytes; raises Malformed. base is what links are relative to."""
    root = _root(_decoded(body, content_type))
    if root.tag == "rss":
        channel = root.find("channel")
        if channel is None:
            raise Malformed("the rss element has no channel")
        return _feed(_plain(channel.find("title")), channel.findall("item"), lambda item: _rss(item, base))
    if root.tag == ATOM + "feed":
        return _feed(_construct(root.find(ATOM + "title")), root.findall(ATOM + "entry"), lambda entry: _atom(entry, base))
    raise Malformed(f"the document is {_local(root.tag)!r}, neither an rss nor an Atom feed")


def _feed(title, items, read):
    entries = {}
    for item in items[:MAX_ENTRIES]:
        entry = read(item)
        entries.setdefault(entry.key, entry)  # of two of one name the first, which is the newer one
    return Feed(tidy(title)[:500], list(entries.values()), max(0, len(items) - MAX_ENTRIES))


def _decoded(body, content_type):
    """Return the text of a document: by its mark, what the server says, its declaration, or as UTF-8."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            body = body[len(mark) :]
            break
    else:
        said, declared = _CHARSET.search(content_type or ""), _ENCODING.match(body[:400].lstrip())
        encoding = said.group(1) if said else declared.group(1).decode() if declared else "utf-8"
        if not _KNOWN.fullmatch(encoding.lower()):
            raise Malformed(f"the encoding {encoding!r} is not read")
    try:
        return body.decode(encoding)
    except (UnicodeDecodeError, LookupError) as exc:
        raise Malformed(f"the document is not {encoding}: {exc}") from None


def _root(text):
    """Return the root element. Nothing may stand before it that declares an entity."""
    text = text.lstrip()
    at = 0
    while True:
        while text[at : at + 1].isspace():
            at += 1
        if text.startswith("<?", at):
            end = text.find("?>", at)
        elif text.startswith("<!--", at):
            end = text.find("-->", at + 4)
        elif text.startswith("<!", at):
            doctype = _DOCTYPE.match(text, at)
            if doctype is None:
                raise Malformed("the document declares entities or a type of its own, which is not read")
            end = doctype.end() - 1
        else:
            break
        if end < 0:
            raise Malformed("the document ends before its first element")
        at = text.index(">", end) + 1
    if not _ELEMENT.match(text, at) or "\0" in text:
        raise Malformed("the document is not well-formed: it does not begin with an element, or is of another encoding")
    parser = ET.XMLParser(target=_Bounded())
    try:
        parser.feed(text[at:])  # without the declaration: the text is decoded already
        return parser.close()
    except ET.ParseError as exc:
        raise Malformed(f"the document is not well-formed: {exc}") from None


class _Bounded(ET.TreeBuilder):
    """Builds a tree of which the size and the depth are bounded."""

    def __init__(self):
        super().__init__()
        self.depth = self.elements = 0

    def start(self, tag, attrs):
        self.depth += 1
        self.elements += 1
        if self.depth > MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise Malformed(f"the document has more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} in one another")
        return super().start(tag, attrs)

    def end(self, tag):
        self.depth -= 1
        return super().end(tag)


def _rss(item, base):
    guid, link = item.find("guid"), _plain(item.find("link")).strip()
    id = _plain(guid).strip()
    if not link and id.startswith(("http://", "https://")) and guid.get("isPermaLink", "true") == "true":
        link = id
    body = item.find(CONTENT)
    text = text_of(_plain(body if body is not None and _plain(body).strip() else item.find("description")))
    title = _title(text_of(_plain(item.find("title"))), text)
    author = tidy(_plain(item.find(CREATOR)) or _plain(item.find("author")))[:200]
    date = _date(_plain(item.find("pubDate")) or _plain(item.find(DC_DATE)))
    return Entry(_key(id or link, title, text), title, _link(base, link), author, date, text)


def _atom(entry, base):
    link = ""
    for one in entry.findall(ATOM + "link"):
        if one.get("rel", "alternate") == "alternate":
            link = one.get("href", "")
            break
    text = _construct(entry.find(ATOM + "content")) or _construct(entry.find(ATOM + "summary"))
    title = _title(_construct(entry.find(ATOM + "title")), text)
    author = tidy(_plain(entry.find(f"{ATOM}author/{ATOM}name")))[:200]
    date = _date(_plain(entry.find(ATOM + "updated")) or _plain(entry.find(ATOM + "published")))
    id = _plain(entry.find(ATOM + "id")).strip()
    return Entry(_key(id or link, title, text), title, _link(base, link), author, date, text)


def _key(id, title, text):
    return id or "text:" + short(title + "\0" + text)


def _title(title, text):
    return title.replace("\n", " ")[:500] or text.partition("\n")[0][:80] or "(without a title)"


def _link(base, link):
    try:
        url = urljoin(base, link.strip()) if link else ""
    except ValueError:
        return ""
    return url[:2000] if url.startswith(("http://", "https://")) else ""


def _construct(element):
    """Return the text of an Atom text construct: text, html, or xhtml."""
    if element is None:
        return ""
    kind = element.get("type", "text")
    if kind in ("html", "text/html"):
        return text_of(_plain(element))
    if kind in ("xhtml", "application/xhtml+xml"):
        parts = []
        _walk(element, parts)
        return text_of("".join(parts))
    return tidy(_plain(element))


def _walk(element, parts):
    """Write XHTML as HTML; how deep that goes is bounded."""
    name = _local(element.tag) if element.tag.startswith(XHTML) else ""
    if name:
        href = element.get("href", "").replace('"', "%22")
        parts.append(f'<{name} href="{href}">' if href else f"<{name}>")
    parts.append(_escaped(element.text))
    for child in element:
        _walk(child, parts)
        parts.append(_escaped(child.tail))
    if name:
        parts.append(f"</{name}>")


def _escaped(text):
    return (text or "").replace("&", "&amp;").replace("<", "&lt;")


def _plain(element):
    return "" if element is None else "".join(element.itertext())


def _local(tag):
    return tag.rpartition("}")[2][:80]


def _date(text):
    """Return a time of RFC 3339 or RFC 822 in UTC, "" for any other text. A leap second is the second after it."""
    text = text.strip()[:80]
    if not text:
        return ""
    text, leaps = _LEAP_SECOND.subn(r"\g<1>59", text, count=1)  # datetime has none: it is the second after
    try:
        when = datetime.fromisoformat(text[:-1] + "+00:00" if text[-1] in "Zz" else text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            return ""
    try:
        when = when.replace(tzinfo=timezone.utc) if when.tzinfo is None else when.astimezone(timezone.utc)
        when += timedelta(seconds=leaps)
    except OverflowError:
        return ""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ") if when.year >= 1000 else ""
