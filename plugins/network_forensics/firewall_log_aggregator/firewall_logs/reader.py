"""The rows of a log, whatever makes its lines are of."""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Iterator, List, Optional, Tuple

from . import jsonrecords, makes, named
from .makes import Make
from .row import Row
from .textlines import Text

_FIRST_LINES = 5  # that were not understood and are named in the answer


class Reader:
    """Reads one log; iterate over it once, then read its counts."""

    def __init__(self, text: Text) -> None:
        self.formats: DefaultDict[str, int] = defaultdict(int)
        self.records = 0  # lines or records that are not blank
        self.skipped = 0  # of a known make, but no decision
        self.unparsed = 0
        self.unparsed_at: List[int] = []
        self.damage: List[str] = []
        self.asa = makes.Asa()
        self._text = text
        self._makes: Tuple[Make, ...] = (makes.netfilter, self.asa, makes.pf, named.json_line, makes.Windows(), makes.VpcFlow(), named.key_value)

    def __iter__(self) -> Iterator[Tuple[Row, int]]:
        """Each row with the line or record where it stands, from 1."""
        head = self._text.head()
        if jsonrecords.is_document(head):
            objects = jsonrecords.records(self._text.blocks(), self.damage)
            rows: Iterator[Optional[Row]] = (named.of_object(value, "json") for value in objects)
            yield from self._counted(rows, 1)
            return
        header = named.csv_header(head)
        if header:
            yield from self._counted(named.csv_rows(iter(self._text), header[0], header[1]), 2)
            return
        yield from self._lines()

    def _counted(self, rows: Iterator[Optional[Row]], first: int) -> Iterator[Tuple[Row, int]]:
        for n, row in enumerate(rows, first):
            self.records += 1
            if row is None:
                self._miss(n)
                continue
            self.formats[row.format] += 1
            yield row, n

    def _lines(self) -> Iterator[Tuple[Row, int]]:
        hot: Optional[Make] = None
        formats = self.formats
        blank = n = 0
        for n, line in enumerate(self._text, 1):
            found = hot(line) if hot is not None else None
            if found is None:  # no make takes a blank line for its own
                if not line or line.isspace():
                    blank += 1
                    continue
                for make in self._makes:
                    if make is hot:
                        continue
                    found = make(line)
                    if found is not None:
                        # Pairs would also be seen in lines of netfilter, which says more of them.
                        hot = None if make is named.key_value else make
                        break
            if isinstance(found, Row):
                formats[found.format] += 1
                yield found, n
            elif found is None:
                self._miss(n)
            else:
                self.skipped += 1
        self.records = n - blank

    def _miss(self, line: int) -> None:
        self.unparsed += 1
        if len(self.unparsed_at) < _FIRST_LINES:
            self.unparsed_at.append(line)
