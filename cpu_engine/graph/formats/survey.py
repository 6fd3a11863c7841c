"""The shape of a numeric text: how many columns its first lines have. What sniffing and the edge-list reader go by.

Invariant: only whole lines are looked at, so a survey of a part of a file never invents a short line.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

from cpu_engine.graph.formats.rows import split_columns

SURVEY_BYTES = 64 << 10  # some 5,000 lines: enough to tell the formats apart, read in milliseconds
FEWEST_LINES = 20
MOST_LINES = 10_000  # of a longer survey, which may have a hub's line and then millions of short ones


@dataclass(frozen=True)
class Survey:
    """Tokens of the first data lines (comments and blank lines left out), and their column counts."""

    lines: tuple[list[str], ...]
    first_line: int  # the number of the first of them
    blank_lines: int
    whole: bool  # the survey saw the whole file

    def counts(self, start: int = 0) -> Counter[int]:
        """How many lines have how many columns, from data line ``start`` on."""
        return Counter(map(len, self.lines[start:]))

    def usual_columns(self) -> int:
        """The commonest column count behind the first line (which may be a header); 0 for an empty file."""
        counts = self.counts(1) or self.counts()
        return counts.most_common(1)[0][0] if counts else 0


def survey_text(text: bytes, whole: bool) -> Survey:
    """Survey the first lines of ``text``; ``whole`` says that it is the whole file."""
    if len(text) > SURVEY_BYTES or not whole:
        # A hub's adjacency line may fill the usual window: then what is in memory counts, and the cut line too.
        few = text.count(b"\n", 0, SURVEY_BYTES) < FEWEST_LINES
        limit = _end_of_line(text, MOST_LINES) if few else SURVEY_BYTES
        whole = whole and limit == len(text)
        if not whole:
            cut = text.rfind(b"\n", 0, limit) + 1
            if text.count(b"\n", 0, cut) < 2:
                cut = max(text.rfind(b" ", 0, limit), cut)
            text = text[: cut or limit]
    lines: list[list[str]] = []
    first_line = blank = 0
    for number, line in enumerate(text.decode("latin-1").removesuffix("\n").split("\n"), 1):
        tokens = split_columns(line)
        if tokens:
            first_line = first_line or number
            lines.append(tokens)
        elif not line.strip():
            blank += 1
    return Survey(tuple(lines), first_line, blank, whole)


def _end_of_line(text: bytes, number: int) -> int:
    found = next(islice(re.finditer(b"\n", text), number - 1, None), None)
    return len(text) if found is None else found.end()


def as_id(token: str) -> int:
    """The token as a vertex id or count, -1 when it is none."""
    return int(token) if token.isascii() and token.isdigit() and len(token) < 19 else -1
