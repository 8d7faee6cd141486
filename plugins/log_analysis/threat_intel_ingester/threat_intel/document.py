"""The text of a report: plain text as it stands, HTML without its markup, PDF through pypdf."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Callable, Iterator, List, Optional, Tuple

from .textlines import Text
from .tooling import Refused

_BLOCKS = {
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul", "title",
}  # fmt: skip
_SILENT = {"script", "style", "noscript", "template", "svg"}
_LONGEST_MARKUP = 1 << 20
_HTML = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|article|div|p)\b", re.IGNORECASE | re.DOTALL)

PDF_HELP = (
    "Reading a PDF without a model needs the Python package pypdf, which is not installed. Install it where the host's Python finds it "
    "(python3 -m pip install pypdf, or apt-get install python3-pypdf), connect a model that reads PDF documents, or give the report as text or HTML."
)


class Document:
    """One report; lines() can be asked for as often as needed."""

    def __init__(self, path: str, artifact_type: str, told: Optional[Callable[[int, int], None]] = None) -> None:
        self.path = path
        self._told = told  # hears how many bytes were read, of how many
        self.notes: List[str] = []
        self.kind = _kind(path, artifact_type)

    def lines(self) -> Iterator[str]:
        """The report's text, line by line. Raises Refused or Unreadable."""
        self.notes = []
        if self.kind == "pdf":
            yield from self._pdf()
            return
        text = Text(self.path, told=self._told)
        if self.kind == "html":
            yield from self._html(text)
        else:
            yield from text
        if text.damage:
            self.notes.append(text.damage)
        if text.truncated_lines:
            self.notes.append("%d lines were too long and were cut." % text.truncated_lines)
        if text.latin1_lines:
            self.notes.append("%d lines are not UTF-8 and were read as Latin-1." % text.latin1_lines)

    def _html(self, text: Text) -> Iterator[str]:
        reader = _Markup()
        for block in text.blocks():
            for start in range(0, len(block), 1 << 16):
                reader.feed(block[start : start + (1 << 16)])
                if len(reader.rawdata) > _LONGEST_MARKUP:  # something opened that does not end: taken as text
                    reader.give_up()
                yield from reader.take()
        reader.close()
        yield from reader.take(True)
        if reader.given_up:
            self.notes.append("Markup that does not end was read as text.")

    def _pdf(self) -> Iterator[str]:
        try:
            import pypdf  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise Refused("DEPENDENCY_MISSING", PDF_HELP, package="pypdf") from None
        try:
            reader = pypdf.PdfReader(self.path)
            if reader.is_encrypted and not reader.decrypt(""):
                raise Refused("ARTIFACT_UNREADABLE", "the PDF is encrypted; give it without its password", file_path=self.path)
            count = len(reader.pages)
        except Refused:
            raise
        except Exception as err:  # pypdf raises whatever a damaged file provokes
            raise Refused("ARTIFACT_UNREADABLE", "the PDF cannot be read: %s" % (str(err)[:300] or type(err).__name__), file_path=self.path) from None
        empty = 0
        for n in range(count):
            try:
                page = reader.pages[n].extract_text() or ""
            except Exception as err:
                self.notes.append("Page %d cannot be read: %s" % (n + 1, str(err)[:200] or type(err).__name__))
                continue
            empty += not page.strip()
            yield from page.split("\n")
        if empty:
            self.notes.append("%d of %d pages hold no text; they may be images." % (empty, count))


def _kind(path: str, artifact_type: str) -> str:
    try:
        with open(path, "rb") as file:
            head = file.read(2048)
    except OSError:
        head = b""  # reading it says why
    if head.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if artifact_type == "pdf_report":
        raise Refused("ARTIFACT_UNREADABLE", "the artifact is registered as pdf_report but is no PDF", file_path=path) if head else Refused(
            "ARTIFACT_UNREADABLE", "the PDF is empty or cannot be opened", file_path=path
        )
    if artifact_type == "html_report" or _HTML.match(head.decode("utf-8", "replace").lstrip("\ufeff")):
        return "html"
    return "text"


class _Markup(HTMLParser):
    """Turns markup into lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.given_up = False
        self._silent = 0
        self._done: List[str] = []
        self._line: List[str] = []
        self._held = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, "str | None"]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BLOCKS:
            self._end()
        elif tag in ("td", "th"):
            self._line.append(" \t ")
        self._pre += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: List[Tuple[str, "str | None"]]) -> None:
        if tag in _BLOCKS:
            self._end()

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _BLOCKS:
            self._end()
        self._pre = max(0, self._pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._pre or self._held > 1 << 16:
            for i, part in enumerate(data.split("\n")):
                if i:
                    self._end()
                self._put(part)
        else:
            self._put(data.replace("\n", " "))

    def _put(self, text: str) -> None:
        self._line.append(text)
        self._held += len(text)

    def _end(self) -> None:
        line = "".join(self._line).strip()
        self._line, self._held = [], 0
        if line:
            self._done.append(line)

    def take(self, last: bool = False) -> List[str]:
        """The lines done so far."""
        if last:
            self._end()
        done, self._done = self._done, []
        return done

    def give_up(self) -> None:
        """Take what is held for markup as text."""
        self.given_up = True
        held, self.rawdata = self.rawdata, ""
        self.handle_data(held)
        self._end()
