"""The page's look: style sheet and fill patterns.

Colours are from the Okabe-Ito set, distinct for any colour vision; patterns and words repeat what the colours say.
Invariant: nothing is loaded from anywhere; light, dark and paper each have readable contrast.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.charts.markup import Markup


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _patterns(name: str) -> Markup:
    """A hidden drawing with fills for ``url(#f-...)``; every picture of the page refers to them by name."""
    return Markup(_text(name).replace("\n", ""))


CSS, PATTERNS = _text("page.css"), _patterns("patterns.svg")
# Choosing a source, zooming, tooltips, fitting labels; without it every panel of the page is shown and readable.
SCRIPT = Markup(_text("page.js"))
PLAIN = CSS, PATTERNS
# What only a job on ranks has. The grounds are strong colours, as lanes are low; the lowest have the colours alone, and
# there the order of the stack (compute, pack, wait) says the same.
OF_RANKS = _text("ranks/ranks.css"), _patterns("ranks/patterns.svg")
