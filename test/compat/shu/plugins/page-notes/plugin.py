"""Pages as plain text, and figures of any text."""

import html.parser
import re
import statistics
import string
import textwrap
import unicodedata
from datetime import date, datetime
from urllib.parse import parse_qsl, quote, unquote, urldefrag, urljoin, urlsplit, urlunsplit


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.words, self.links, self.title, self.hidden, self.inside = [], [], "", 0, ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        self.hidden += tag in ("script", "style")
        if tag == "a" and dict(attrs).get("href"):
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if self.inside == "title" and not self.title:
            self.title = data.strip()
        elif not self.hidden and data.strip():
            self.words.append(data.strip())


class PageNotes:
    def get_schema(self):
        return {
            "type": "object",
            "properties": {
                "op": {"type": "string", "enum": ["analyze", "fetch"]},
                "text": {"type": "string", "maxLength": 100000},
                "url": {"type": "string", "format": "uri"},
                "kb_id": {"type": "string"},
            },
            "allOf": [{"if": {"properties": {"op": {"const": "analyze"}}}, "then": {"required": ["text"]}}],
        }

    def execute(self, params, context, host):
        if params["op"] == "analyze":
            return self.analyze(params["text"])
        return self.fetch(params, host)

    def analyze(self, text):
        words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
        return {
            "status": "success",
            "data": {
                "words": len(words),
                "mean": round(statistics.mean(map(len, words)), 2) if words else 0,
                "letters": sum(c in string.ascii_letters for c in text),
                "short": textwrap.shorten(text, 12, placeholder="…"),
                "made": date(2026, 1, 2),
                "at": datetime(2026, 1, 2, 3, 4),
                "first": words[0] if words else None,
            },
        }

    async def fetch(self, params, host):
        url = urldefrag(params["url"]).url
        answer = await host.http.fetch(method="GET", url=url, follow_redirects=True)
        reader = Reader()
        reader.feed(answer["body"])
        links = sorted({urlunsplit(urlsplit(urljoin(url, link))._replace(fragment="")) for link in reader.links})
        kept = await host.kb.ingest_text(params["kb_id"], title=reader.title or unquote(url), content="\n".join(reader.words), source_id=url)
        return {"status": "success", "data": {"title": reader.title, "links": links, "words": kept["word_count"], "query": dict(parse_qsl(urlsplit(url).query)), "quoted": quote(reader.title)}}
