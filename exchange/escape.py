"""Text from outside, made fit for one line of a terminal, a log or a page.

Invariant: what ``printable`` returns is one line of printable characters. No control character (terminal escapes, line
ends), no character that reorders or hides others (Unicode's format characters) and no lone surrogate is in it.
"""

from __future__ import annotations

import logging

MOST_SHOWN = 2000


def printable(text: str, most: int | None = MOST_SHOWN) -> str:
    """``text`` with its unprintable characters as escapes, cut after ``most`` characters (None: whole)."""
    cut = text if most is None or len(text) <= most else text[:most] + "..."
    if cut.isprintable():
        return cut
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in cut)


def printable_lines(text: str, most: int | None = MOST_SHOWN) -> str:
    """Each line ``printable``, tabs kept; for what is meant to have several lines, such as a traceback or a table."""
    return "\n".join("\t".join(printable(cell, most) for cell in line.split("\t")) for line in text.split("\n"))


class PrintableFormatter(logging.Formatter):
    """A log in which no text from outside can move the cursor, change colours or hide what is written."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
