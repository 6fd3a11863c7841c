"""The page's look: style sheet and fill patterns.

Colours are from the Okabe-Ito set, distinct for any colour vision; patterns and words repeat what the colours say.
Invariant: nothing is loaded from anywhere; light, dark and paper each have readable contrast.
"""

from __future__ import annotations

from pathlib import Path

from hybrid.charts.markup import Markup

CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
# Choosing a source, zooming, tooltips, fitting labels; without it every panel of the page is shown and readable.
SCRIPT = Markup(Path(__file__).with_name("page.js").read_text(encoding="utf-8"))


def pattern(name: str, size: int, colour: str, shape: str, turn: int = 0) -> str:
    """A fill for ``url(#f-name)``: a square of ``size`` pixels in a colour of the style sheet, with ``shape`` on it."""
    turned = f' patternTransform="rotate({turn})"' if turn else ""
    ground = f'<rect width="{size}" height="{size}" style="fill:var(--{colour})"/>'
    return (
        f'<pattern id="f-{name}" width="{size}" height="{size}" patternUnits="userSpaceOnUse"{turned}>'
        f"{ground}{shape}</pattern>"
    )


# The patterns live in hidden drawings; every picture of the page refers to them by name.
def _hidden(*patterns: str) -> Markup:
    return Markup(f'<svg class="defs" aria-hidden="true" width="0" height="0"><defs>{"".join(patterns)}</defs></svg>')


PATTERNS = _hidden(
    pattern("pull", 7, "pull", '<rect width="2" height="7" style="fill:var(--pull-line)"/>', 45),
    pattern("async", 7, "async", '<circle cx="3.5" cy="3.5" r="1.3" style="fill:var(--async-line)"/>'),
    pattern("mixed", 6, "pull", '<rect width="6" height="3" style="fill:var(--push)"/>'),
    pattern("wait", 6, "wait", '<rect width="1.3" height="6" style="fill:var(--wait-line)"/>', -45),
    pattern("start", 14, "npu-soft", '<rect width="1.5" height="14" style="fill:var(--npu-line);opacity:.4"/>', 30),
    pattern("dead", 10, "bad-soft", '<path d="M2 2l5 5M7 2l-5 5" style="stroke:var(--bad);opacity:.35"/>'),
)
PLAIN = CSS, PATTERNS
# What only a job on ranks has. The grounds are strong colours, as lanes are low; the lowest have the colours alone, and
# there the order of the stack (compute, pack, wait) says the same.
OF_RANKS = (
    Path(__file__).with_name("ranks").joinpath("ranks.css").read_text(encoding="utf-8"),
    _hidden(
        pattern("r-pull", 6, "r-pull", '<rect width="1.6" height="6" style="fill:var(--r-stripe)"/>', 45),
        pattern("r-async", 6, "r-async", '<circle cx="3" cy="3" r="1.1" style="fill:var(--r-dot)"/>'),
    ),
)
