"""Line templates by the Drain algorithm, with no input or output of its own.

The algorithm is that of P. He, J. Zhu, Z. Zheng and M. R. Lyu, "Drain: An
Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017, written from the
paper. A line goes down a tree of fixed depth, first by its number of words,
then by its leading words, to a leaf with a few templates; it joins the most
similar of them, whose differing words become ``<*>``, or starts a new one.

Where this differs from the paper, and why:

- Values that can be told by their form (times, addresses, numbers, ...) are
  masked first, as the paper suggests, and then have no vote in the similarity:
  two lines are not alike because both begin with a time.
- Words are split at ``=`` and at JSON punctuation as well as at white space,
  and only lines with the same punctuation meet.
- A severity or an HTTP status never becomes ``<*>``: an error and a success
  worded alike are two templates.
- The tree starts after a syslog header (time, host, ``process:``).
- A node with too many children is a variable: its children become one, also
  those from before the limit was reached.
- A full leaf takes no new template; the line joins the nearest one.
- In the end a template that a wider, similar one covers is counted under that.

Lines come in chunks. Lines of a chunk that differ only in the digits of their
numbers are counted as one before anything else is done, and what was seen
lately is remembered, so the tree sees a small part of a large log.
"""

from __future__ import annotations

import re
from _operator import eq
from bisect import bisect_right
from collections import Counter

WILD = b"<*>"

# What is remembered of lines seen, in bytes for each of the two memories, and
# the longest line worth remembering.
MEMORY_BYTES = 16 << 20
MEMORY_LINE = 2048
_ENTRY_BYTES = 130

MAX_WORDS = 96  # of a line; the rest becomes <REST>
MAX_FIRST_WORDS = 40  # children of a node of the first word
MAX_NEXT_WORDS = 12  # and of later words
MAX_LEAF = 16  # templates in a leaf
MAX_WIDE = 50  # templates of a key, the most frequent, that may cover others at the end
EXAMPLES = 3
EXAMPLE_BYTES = 300

# Digits that carry meaning are kept from masking by writing them as the ten
# control characters from 0x0e on, which text does not contain.
_KEEP = bytes.maketrans(b"0123456789", bytes(range(0x0E, 0x18)))
_UNKEEP = bytes.maketrans(bytes(range(0x0E, 0x18)), b"0123456789")
_KEPT_WORDS = [
    (word, word.translate(_KEEP))
    for word in (
        b"amd64", b"arm64", b"x86_64", b"i386", b"i686", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"UTF-8", b"UTF8", b"utf-8",
        b"utf8", b"IPv4", b"IPv6", b"ipv4", b"ipv6", b"sha1", b"sha256", b"SHA256", b"sha512", b"md5", b"base64", b"ssh2",
    )
]  # fmt: skip
# In a shape it is enough to tell those apart that differ in nothing but digits.
_TOLD_APART = [
    (word, word.translate(_KEEP)) for word in (b"IPv4", b"ipv4", b"i386", b"HTTP/1.0", b"HTTP/2.0", b"sha1", b"sha256")
]
_STATUS = re.compile(rb'HTTP/[^ "\n]{1,3}" [1-5][0-9][0-9](?![\w.-])')
_STATUS_FIELD = re.compile(rb'(status(?:_code)?[=": ]{1,4})([1-5][0-9][0-9])(?![\w.-])')

_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
_ZEROS = re.compile(rb"00+")
_LONG_HEX = re.compile(rb"[0a-fA-F]{7,}(?:-[0a-fA-F]{4}-[0a-fA-F]{4}-[0a-fA-F]{4}-[0a-fA-F]{12})?")

# Every pattern below starts with a set or a literal, because then the search
# skips quickly over what cannot match, and repeats at most a bounded number of
# times (or to the end of a word it started), so that no line can stall it.
_ACCESS_TAIL = re.compile(rb'(HTTP/[^ "\n]{1,3}" [^ \n]{3} [^ "\n]{1,20}) "[^"\n]*" "[^"\n]*"')
_QUERY = re.compile(rb'\?[\w%.\[\]-]{1,80}=[^\s"]*')
_EMAIL = re.compile(rb"(?<![\w.+@-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMED_TIME = re.compile(
    rb"[A-Z][a-z]{2},? {1,2}(?:[A-Z][a-z]{2} {1,2})?[0-9]{1,2}(?: [A-Z][a-z]{2})?(?: [0-9]{4})?,? "
    rb"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:(?: [A-Z]{3,4})? [0-9]{4}(?![\w.:-])| [+-][0-9]{4})?"
)
_HEXISH = re.compile(
    rb"[0-9a-fA-F:](?<![0-9A-Za-z_].)(?:"
    rb"([0-9a-fA-F]{7}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})"
    rb"|([0-9a-fA-F](?::[0-9a-fA-F]{2}){5}(?!:))"
    rb"|((?<!:)[0-9a-fA-F]{0,3}(?::[0-9a-fA-F]{1,4}){7}"
    rb"|(?:(?<=:)|(?<!:)[0-9a-fA-F]{0,3}(?::[0-9a-fA-F]{1,4}){0,6}:):(?=[a-fA-F]{0,4}[0-9]|[0-9a-fA-F]{4}:)"
    rb"[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})"
    rb"|((?<=0)[xX][0-9a-fA-F]+"
    rb"|(?=[0-9a-fA-F]{6})(?:(?<=[0-9])[0-9]*[a-fA-F]|(?<=[a-fA-F])[a-fA-F]*[0-9])[0-9a-fA-F]*)"
    rb")(?![0-9A-Za-z_])"
)
_HEXISH_MASKS = (b"", b"<UUID>", b"<MAC>", b"<IP>", b"<HEX>")
_DIGITS = re.compile(
    rb"[0-9](?:"
    # 2025-06-24, with a time or without
    rb"([0-9]{3}[-/][0-9]{1,2}[-/][0-9]{1,2}(?:[T_ :] ?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]{1,9})?"
    rb"(?:Z|UTC| UTC| ?[+-][0-9]{2}:?[0-9]{2})?)?(?!\w)"
    # 24/Jun/2025:10:00:00 +0000
    rb"|[0-9]?[/ -][A-Z][a-z]{2}[/ -][0-9]{2,4}[: ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?: [+-][0-9]{4}| UTC| GMT)?"
    # 10:00:00
    rb"|[0-9]?:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?![\w:]))"
    rb"|([0-9]{0,2}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?(?!\.?\w|[-+~]))"
    # 1.2.3-rc1, 1:9.2p1-2+deb12u5, 12+nmu1
    rb"|((?<![\w./-].)[0-9]{0,9}(?:(?:\.[0-9]{1,9}){2}[\w.+~:-]{0,60}(?<=\w)"
    rb"|(?::[0-9]{1,9})?(?:\.\w[\w.]{0,30}[+~-]|[a-z]?(?:-[0-9]{1,9})?[+~])[\w.+~-]{1,60}(?<=\w)))"
    rb"|[0-9]*(?:\.[0-9]{1,15})?)"
)
_DIGITS_MASKS = (b"<NUM>", b"<TIME>", b"<IP>", b"<VER>")
# Three or more "name (detail)," in a row, as in apt's history.
_LIST = re.compile(rb"(?<!\S)(?:[^\s()]{1,120} \([^()]{1,120}\), ){2,}[^\s()]{1,120} \([^()]{1,120}\)")

_SPLIT = re.compile(rb'((?:[\s"{}]|,(?=[\s"{])|(?<="):|(?<=\w)=(?=[^\s=]))+)')
_MASKS = re.compile(rb"<[A-Z]+>")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_KEPT_STATUS = re.compile(rb"[\x0e-\x17]{3}")
_LEVELS = frozenset(
    b"TRACE DEBUG INFO NOTICE WARN WARNING ERR ERROR FATAL CRIT CRITICAL ALERT EMERG EMERGENCY PANIC SEVERE".split()
)
# What a word is: without vote, with one, with one and fit to lead down the tree, never merged.
_BLANK, _PARTIAL, _PLAIN, _ANCHOR = range(4)


def _keep(text: bytes, words: list[tuple[bytes, bytes]]) -> bytes:
    """Text with statuses and the digits of words taken out of masking's way, and without colours."""
    if b"\x1b[" in text:
        text = _ANSI.sub(b"", text)
    if b"HTTP/" in text:
        text = _STATUS.sub(lambda m: m[0][:-3] + m[0][-3:].translate(_KEEP), text)
    text = _STATUS_FIELD.sub(lambda m: m[1] + m[2].translate(_KEEP), text)
    for word, kept in words:
        if word in text:
            text = text.replace(word, kept)
    return text


def shapes(text: bytes) -> list[bytes]:
    """The lines of text with every number written as 0, and as 0x if it is long or hexadecimal.

    Lines of one shape are taken to belong to one template.
    """
    text = _keep(text, _TOLD_APART).translate(_ZERO)
    return _ZEROS.sub(b"0", _LONG_HEX.sub(b"0x", text)).split(b"\n")


def mask(text: bytes) -> bytes:
    """Text, of any number of lines, with values replaced by <TIME>, <IP>, <NUM> and so on.

    Kept digits are still control characters; see [render].
    """
    text = _keep(text, _KEPT_WORDS)
    if b"HTTP/" in text:
        text = _ACCESS_TAIL.sub(rb'\1 "<STR>" "<STR>"', text)
    if b"?" in text:
        text = _QUERY.sub(b"?<QUERY>", text)
    if b"@" in text:
        text = _EMAIL.sub(b"<EMAIL>", text)
    text = _NAMED_TIME.sub(b"<TIME>", text)
    text = _HEXISH.sub(lambda m: _HEXISH_MASKS[m.lastindex], text)
    return _DIGITS.sub(lambda m: _DIGITS_MASKS[m.lastindex or 0], text)


def render(text: bytes) -> str:
    """Bytes as text to show: bad bytes and control characters become U+FFFD."""
    shown = text.translate(_UNKEEP).decode("utf-8", "replace")
    return shown if shown.isprintable() else "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in shown)


class Template:
    """A template and the lines counted under it.

    Positions count lines over all files, from 0; [Miner.place_of] turns one
    into a file and a line.
    """

    __slots__ = ("key", "words", "votes", "glue", "count", "first", "last", "examples", "gone")

    def __init__(self, key: tuple, words: list[bytes], votes: list[object], glue: list[bytes], first: int) -> None:
        self.key = key  # its first layer in the tree; only templates of one key are ever compared
        self.words = words
        self.votes = votes  # words that may vote, None elsewhere
        self.glue = glue  # what stands between the words
        self.count = 0
        self.first = first
        self.last = first
        self.examples: list[tuple[int, bytes]] = []
        self.gone: Template | None = None  # what took it in, if anything did

    def text(self) -> str:
        glue = self.glue + [b""]
        return render(b"".join([part for pair in zip(self.words, glue) for part in pair]))

    def widen(self, words: list[bytes]) -> None:
        """Make the template fit words too."""
        mine = self.words
        if mine != words:
            for i, word in enumerate(words):
                if mine[i] != word:
                    mine[i] = WILD
                    self.votes[i] = None

    def covers(self, other: Template, similarity: float) -> bool:
        """Whether other, of the same key, says nothing that this template does not, and is similar."""
        equal = sum(map(eq, self.words, other.words))
        if equal + self.words.count(WILD) - sum(a == b == WILD for a, b in zip(self.words, other.words)) < len(self.words):
            return False
        voters = len(other.votes) - other.votes.count(None)
        return sum(a is not None and a == b for a, b in zip(self.votes, other.votes)) >= similarity * voters

    def take(self, other: Template) -> None:
        """Count other's lines as this template's; other is gone afterwards."""
        self.widen(other.words)
        self.count += other.count
        self.first = min(self.first, other.first)
        self.last = max(self.last, other.last)
        self.examples = sorted(self.examples + other.examples)[:EXAMPLES]
        other.gone = self


class Miner:
    """Finds the templates of the lines it is given, in bounded memory.

    The same lines in the same chunks give the same templates. Not for
    concurrent use.
    """

    def __init__(self, depth: int = 4, similarity: float = 0.5, max_templates: int = 5000) -> None:
        self._layers = max(1, depth - 2)  # of words; the root and the number of words are the other two
        self._similarity = similarity
        self._max_templates = max_templates
        self._root: dict[object, dict] = {}
        self._leaves: list[list[Template]] = []
        self._templates: dict[Template, None] = {}
        self._by_shape: dict[bytes, Template] = {}
        self._by_masked: dict[bytes, Template] = {}
        self._shape_bytes = 0
        self._masked_bytes = 0
        self._kinds: dict[bytes, int] = {}
        self._starts: list[int] = []
        self._names: list[str] = []
        self.lines = 0
        self.blank = 0
        self.other_lines = 0  # of templates given up, see max_templates
        self.other_templates = 0

    def start_file(self, name: str) -> None:
        """Lines added from now on are lines of name, from line 1."""
        self._starts.append(self.lines)
        self._names.append(name)

    def place_of(self, position: int) -> dict[str, object]:
        """The file and the line, from 1, of a position."""
        i = bisect_right(self._starts, position) - 1
        return {"file": self._names[i], "line": position - self._starts[i] + 1}

    def add(self, text: bytes) -> None:
        """Count the lines of text, which are separated by newlines."""
        seen = shapes(text)
        base = self.lines
        self.lines += len(seen)
        counts = Counter(seen)
        last = dict(zip(seen, range(base, self.lines)))
        known = self._by_shape
        new = []
        for shape, count in counts.items():
            template = known.get(shape)
            if template is None or template.gone is not None:
                new.append(shape)
                continue
            template.count += count
            if last[shape] > template.last:
                template.last = last[shape]
        if new:
            first = dict(zip(reversed(seen), range(self.lines - 1, base - 1, -1)))
            lines = text.split(b"\n")
            self._add_new([(shape, lines[first[shape] - base], first[shape], last[shape], counts[shape]) for shape in new])

    def _add_new(self, new: list[tuple[bytes, bytes, int, int, int]]) -> None:
        """Count lines, each for others of its shape, whose shapes are not remembered."""
        known = self._by_masked
        masked_lines = mask(b"\n".join([item[1] for item in new])).split(b"\n")
        for masked, (shape, line, first, last, count) in zip(masked_lines, new):
            template = known.get(masked)
            while template is not None and template.gone is not None:
                template = template.gone if template.gone is not template else None
            if template is None:
                template = self._find(masked, first)
                if template is None:
                    self.blank += count
                    continue
                if len(masked) <= MEMORY_LINE:
                    self._masked_bytes += len(masked) + _ENTRY_BYTES
                    if self._masked_bytes > MEMORY_BYTES:
                        known.clear()
                        self._masked_bytes = 0
                    known[masked] = template
            template.count += count
            if last > template.last:
                template.last = last
            if len(template.examples) < EXAMPLES:
                template.examples.append((first, line[:EXAMPLE_BYTES]))
            if len(shape) <= MEMORY_LINE:
                self._shape_bytes += len(shape) + _ENTRY_BYTES
                if self._shape_bytes > MEMORY_BYTES:
                    self._by_shape.clear()
                    self._shape_bytes = 0
                self._by_shape[shape] = template

    def _kind(self, word: bytes) -> int:
        kind = self._kinds.get(word)
        if kind is None:
            bare = _MASKS.sub(b"", word) if b"<" in word else word
            kind = _BLANK if not _LETTER.search(bare) else _PLAIN if bare is word else _PARTIAL
            if len(bare) <= 16 and (bare.strip(b"[]()<>|:,;'").upper() in _LEVELS or _KEPT_STATUS.fullmatch(bare)):
                kind = _ANCHOR
            if len(self._kinds) >= 20000:
                self._kinds.clear()
            if len(word) <= 64:
                self._kinds[word] = kind
        return kind

    def _find(self, masked: bytes, position: int) -> Template | None:
        """The template of a masked line, made if there is none; None for a blank line."""
        line = b" ".join(masked.split())
        if not line:
            return None
        if b"), " in line:
            line = _LIST.sub(b"<LIST>", line)
        parts = _SPLIT.split(line)
        words = parts[0::2]
        glue = parts[1::2]
        if len(words) > MAX_WORDS:
            words[MAX_WORDS - 1 :] = [b"<REST>"]
            del glue[MAX_WORDS - 1 :]

        key = [len(words), b"\n".join(glue)]
        head = 0
        if b"<TIME>" in words[0]:
            for i, word in enumerate(words[1:5], 2):
                if word.endswith(b":"):
                    head = i
                    key.append(word)
                    break
        kinds = list(map(self._kind, words))
        votes: list[object] = [word if kind else None for word, kind in zip(words, kinds)]
        votes[:head] = [None] * head
        path = []
        for i, kind in enumerate(kinds):
            if kind == _ANCHOR:
                key.append(words[i])
            elif kind == _PLAIN and i >= head and len(path) < self._layers:
                path.append(words[i])
        path += [b""] * (self._layers - len(path))

        leaf = self._leaf(tuple(key), path)
        best = None
        best_equal = -1
        voters = len(votes) - votes.count(None)
        # A vote of None must equal nothing: 0 never stands in a template.
        mine = [0 if vote is None else vote for vote in votes]
        for template in leaf:
            equal = sum(map(eq, mine, template.votes))
            if equal > best_equal:
                best, best_equal = template, equal
                if equal == voters:
                    break
        if best is not None and (best_equal >= self._similarity * voters or len(leaf) >= MAX_LEAF):
            best.widen(words)
            return best

        template = Template(tuple(key), words, votes, glue, position)
        leaf.append(template)
        self._templates[template] = None
        if len(self._templates) > self._max_templates:
            self._give_up(template)
        return template

    def _leaf(self, key: tuple, path: list[bytes]) -> list[Template]:
        """The leaf at the end of path, made if need be."""
        node = self._root.get(key)
        if node is None:
            node = self._root[key] = {}
        for layer, word in enumerate(path):
            last = layer == len(path) - 1
            child = node.get(word)
            if child is None:
                child = node.get(WILD)
            if child is None:
                if len(node) >= (MAX_NEXT_WORDS if layer else MAX_FIRST_WORDS):
                    child = self._join(list(node.values()), layer + 1)
                    node.clear()
                    node[WILD] = child
                else:
                    child = node[word] = [] if last else {}
            node = child
        return node

    def _join(self, nodes: list, layer: int):
        """One node for several of the same layer; similar templates in it become one."""
        if isinstance(nodes[0], list):
            leaf: list[Template] = []
            for template in (template for node in nodes for template in node):
                voters = len(template.votes) - template.votes.count(None)
                for kept in leaf:
                    equal = sum(a is not None and a == b for a, b in zip(kept.votes, template.votes))
                    if equal >= self._similarity * voters:
                        break
                else:
                    if len(leaf) < MAX_LEAF:
                        leaf.append(template)
                        continue
                    kept = leaf[-1]
                kept.take(template)
                self._templates.pop(template, None)
            return leaf
        by_word: dict[bytes, list] = {}
        for node in nodes:
            for word, child in node.items():
                by_word.setdefault(word, []).append(child)
        if len(by_word) > MAX_NEXT_WORDS or WILD in by_word:
            return {WILD: self._join([child for children in by_word.values() for child in children], layer + 1)}
        return {
            word: children[0] if len(children) == 1 else self._join(children, layer + 1)
            for word, children in by_word.items()
        }

    def _give_up(self, newest: Template) -> None:
        """Make room: the tenth of the templates with the fewest lines, longest unseen, is counted as other."""
        ranked = sorted((t for t in self._templates if t is not newest), key=lambda t: (t.count, t.last))
        for template in ranked[: max(1, self._max_templates // 10)]:
            template.gone = template
            self.other_lines += template.count
            self.other_templates += 1
            del self._templates[template]
        self._prune(self._root)

    def _prune(self, node) -> bool:
        """Remove what is gone from the tree below node; report whether anything is left."""
        if isinstance(node, list):
            node[:] = [template for template in node if template.gone is None]
        else:
            for key in [key for key, child in node.items() if not self._prune(child)]:
                del node[key]
        return bool(node)

    def templates(self) -> list[tuple[str, Template]]:
        """All templates with their text, in the order of their first lines.

        Leaves do not know of each other, so a template may have come to cover
        another of its key, or to read like it; those become one. To be called
        once, after the last line.
        """
        wide: dict[tuple, list[Template]] = {}
        for template in sorted(self._templates, key=lambda t: (-t.count, t.first)):
            if WILD in template.words:
                wide.setdefault(template.key, []).append(template)
        by_text: dict[str, Template] = {}
        for template in sorted(self._templates, key=lambda t: t.first):
            for other in wide.get(template.key, [])[:MAX_WIDE]:
                if other is not template and other.gone is None and other.covers(template, self._similarity):
                    other.take(template)
                    break
            else:
                same = by_text.setdefault(template.text(), template)
                if same is not template:
                    same.take(template)
        return sorted(by_text.items(), key=lambda item: item[1].first)
