"""HTML as the text that a person would read.

What feeds carry is often broken, and may be hostile: the time that this takes
grows with the length of the text and with nothing else.
"""

import html
import re

_NAME = re.compile(r"/?([A-Za-z][A-Za-z0-9:-]{0,30})")
_MARK = re.compile(r"[>\"']")
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s>"']{1,2000}))""", re.IGNORECASE)
_BLOCKS = frozenset(
    "address article aside blockquote dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6"
    " header hr li main nav ol p pre section table tr ul".split()
)
_HIDDEN = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "template", "noscript", "svg", "head")}


def text_of(source):
    """Return the text of some HTML: a line for each block, links with where they lead."""
    parts, links, at = [], [], 0
    while True:
        mark = source.find("<", at)
        parts.append(html.unescape(source[at : mark if mark >= 0 else len(source)]).replace("\n", " "))
        if mark < 0:
            break
        if source.startswith("<!--", mark):
            at = source.find("-->", mark + 4) + 3
            if at < 3:
                break
            continue
        name = _NAME.match(source, mark + 1)
        if name is None and source[mark + 1 : mark + 2] not in ("!", "?", "/"):
            parts.append("<")  # less than
            at = mark + 1
            continue
        at = _end(source, mark + 1)
        if at < 0:
            break
        if name is not None:
            tag, closes = name.group(1).lower(), source[mark + 1] == "/"
            if tag in _HIDDEN and not closes:
                found = _HIDDEN[tag].search(source, at)
                if found is None:
                    break
                at = found.start()
                continue
            _write(parts, links, tag, closes, source[mark:at] if tag == "a" else "")
    return tidy("".join(parts))


def _end(source, at):
    """Return the place behind the tag that is open at a place, -1 if it has no end. A quoted > ends nothing."""
    found = _MARK.search(source, at)
    while found is not None and found.group() != ">":
        close = source.find(found.group(), found.end())
        if close < 0:
            return source.find(">", found.end()) + 1 or -1  # an unclosed quote
        found = _MARK.search(source, close + 1)
    return -1 if found is None else found.end()


def _write(parts, links, tag, closes, whole):
    if tag == "br":
        parts.append("\n")
    elif tag in _BLOCKS:
        parts.append("\n- " if tag == "li" and not closes else "\n")
    elif tag in ("td", "th") and closes:
        parts.append(" ")
    elif tag == "a" and closes:
        if links:
            start, href = links.pop()
            if href and href not in "".join(parts[start:]):
                parts.append(f" ({href})")
    elif tag == "a" and len(links) < 8:
        found = _HREF.search(whole)
        href = html.unescape(next(filter(None, found.groups()), "")) if found else ""
        links.append((len(parts), href if href.startswith(("http://", "https://")) else ""))


def tidy(text):
    """Return a text without needless white space: no line is blank after another, none at either end."""
    lines, blank = [], True
    for line in text.splitlines():
        line = " ".join(line.split())
        if line and line != "-":
            lines.append(line)
        elif not blank and not line:
            lines.append("")
        blank = not line
    return "\n".join(lines).strip()
