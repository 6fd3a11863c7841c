"""The look of what only a job on ranks has: style sheet and fill patterns, added to pages that need them.

The grounds of the patterns are strong colours, as lanes are low. The lowest lanes have the colours alone; there the
order of the stack (compute, pack, wait) says the same. Invariant: as in ``hybrid.report.style``.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.charts.markup import Markup
from hybrid.report.style import pattern

CSS = Path(__file__).with_name("ranks.css").read_text(encoding="utf-8")
PATTERNS = Markup(
    '<svg class="defs" aria-hidden="true" width="0" height="0"><defs>'
    + pattern("r-pull", 6, "r-pull", '<rect width="1.6" height="6" style="fill:var(--r-stripe)"/>', 45)
    + pattern("r-async", 6, "r-async", '<circle cx="3" cy="3" r="1.1" style="fill:var(--r-dot)"/>')
    + "</defs></svg>"
)
