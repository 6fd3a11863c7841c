"""Text inside pictures: shown only where there is room for it.

Widths are per cent of a picture whose pixel width is the reader's, so room is judged for a narrow page here and judged
again by the page's script for the real one. Invariant: without the script no label is wider than its place on a page of
800 pixels or more.
"""

from __future__ import annotations

from hybrid.charts.markup import Markup, el, percent

NARROW_PAGE = 600  # pixels left for the drawing on an 800 pixel page
CHARACTER = 6.6  # average width of a label's character in pixels


def fits(text: str, width: float, margin: int = 0) -> bool:
    """Whether ``text`` and ``margin`` more pixels have room in ``width`` per cent of the picture."""
    return len(text) * CHARACTER + 6 + margin <= width / 100 * NARROW_PAGE


def fitted_text(
    text: str, x: float, y: float, width: float, *, class_: str = "", anchor: str | None = None, dx: int = 0,
    cut: bool = False,
) -> Markup:  # fmt: skip
    """A text that is visible only while ``width`` per cent of the picture are enough for it.

    ``cut`` shortens the text with an ellipsis instead of hiding it.
    """
    full = text
    room = int((width / 100 * NARROW_PAGE - 6 - abs(dx)) / CHARACTER)
    if cut and len(text) > room > 6:
        text = text[: room - 1].rstrip(" :") + "\N{HORIZONTAL ELLIPSIS}"
    style = " ".join(part for part in ("fit", class_, "" if fits(text, width, abs(dx)) else "no") if part)
    place: dict[str, object] = {"x": percent(x), "y": float(y), "dx": dx or None, "class_": style}
    return el("text", text, **place, text_anchor=anchor, data_w=f"{width:.1f}", data_full=full if cut else None)
