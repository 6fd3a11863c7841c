"""What a person sees: progress on stderr, tables on stdout, numbers with units."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tqdm import tqdm

from cpu_engine.counted import count as count
from cpu_engine.counted import plural as plural
from cpu_engine.counted import plural_of as plural_of
from exchange.escape import printable_lines


def say(text: str = "") -> None:
    """A line of the result, on stdout."""
    print(printable_lines(text, None), flush=True)


def note(text: str) -> None:
    """A line about what is going on, on stderr."""
    tqdm.write(printable_lines(text), file=sys.stderr)


class ProgressBar:
    """A bar for a phase that may take over a second; silent where stderr is not a terminal or the phase is short."""

    def __init__(self, title: str, unit: str = "", delay_s: float = 0.5) -> None:
        self._bar = tqdm(
            total=None, desc=title, unit=unit, unit_scale=True, leave=False, delay=delay_s, file=sys.stderr,
            disable=not sys.stderr.isatty(),
        )  # fmt: skip

    def __call__(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


@contextmanager
def progress(title: str, unit: str = "") -> Iterator[ProgressBar]:
    bar = ProgressBar(title, unit)
    try:
        yield bar
    finally:
        bar.close()


def seconds(value: float) -> str:
    """A duration: 1.23 s, 4.5 ms, 67 us."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.2f} ms"
    return f"{value * 1e6:.0f} us"


def figure(value: float) -> str:
    """A number as short as it is clear: a whole one with separators, another with four digits."""
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def rate(value: float) -> str:
    """A rate in k, M or G per second."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.2f} {letter}"
    return f"{value:.0f} "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain text table; numbers to the right."""
    cells = [list(headings), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
