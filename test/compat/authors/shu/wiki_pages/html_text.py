"""HTML to indexable text plus the links of the page."""
from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import List, Optional
from urllib.parse import urldefrag, urljoin, urlsplit

BLOCK = {"p", "div", "section", "article", "table", "tr", "ul", "ol", "br", "pre", "blockquote", "header", "footer", "main"}
DROP = {"script", "style", "noscript", "nav", "template", "svg"}
VOID = {"br", "img", "hr", "meta", "link", "input", "area", "base", "col", "embed", "source", "track", "wbr"}


class Page(HTMLParser):
    def __init__(self, base: str):
        super().__init__(convert_charrefs=True)
        self.base = base
        self.title: Optional[str] = None
        self.links: List[str] = []
        self.noindex = False
        self._out: List[str] = []
        self._drop = 0
        self._in_title = False
        self._pre = 0

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag in DROP:
            self._drop += 1
            return
        if tag == "meta" and (a.get("name") or "").lower() == "robots" and "noindex" in (a.get("content") or "").lower():
            self.noindex = True
        elif tag == "title":
            self._in_title = True
        elif tag == "a" and a.get("href"):
            self.links.append(urldefrag(urljoin(self.base, a["href"])).url)
        elif re.fullmatch(r"h[1-6]", tag):
            self._out.append("\n\n" + "#" * int(tag[1]) + " ")
        elif tag == "li":
            self._out.append("\n- ")
        elif tag in ("td", "th"):
            self._out.append(" | ")
        elif tag in BLOCK:
            self._out.append("\n" if tag in ("br", "tr") else "\n\n")
        if tag == "pre":
            self._pre += 1

    def handle_endtag(self, tag):
        if tag in DROP:
            self._drop = max(0, self._drop - 1)
        elif tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        if tag in BLOCK or re.fullmatch(r"h[1-6]", tag):
            self._out.append("\n\n")

    def handle_data(self, data):
        if self._drop:
            return
        if self._in_title:
            self.title = ((self.title or "") + data).strip()
            return
        self._out.append(data if self._pre else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        raw = "".join(self._out)
        raw = re.sub(r"[ \t]+\n", "\n", raw)
        raw = re.sub(r"\n[ \t]+(?=[^ \t|])", "\n", raw)
        return re.sub(r"\n{3,}", "\n\n", raw).strip()


def read(html: str, base: str) -> Page:
    p = Page(base)
    p.feed(html)
    p.close()
    return p


def same_site(a: str, b: str) -> bool:
    return urlsplit(a)[:2] == urlsplit(b)[:2]
