"""The head that every page of ours has: it allows nothing from elsewhere."""

from __future__ import annotations

from hybrid.charts.markup import EMPTY, Markup, el

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
# Before the body, so that closed panels never flash up.
_SCRIPTED = Markup("document.documentElement.classList.add('js')")


def draw_head(title: str, *css: str | Markup, scripted: bool = False) -> Markup:
    """Title, styles and policy; ``scripted`` for a page whose script opens and closes panels."""
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("title", f"Tandem: {title}"),
        el("link", rel="icon", href="data:,"),
        el("style", *css),
        el("script", _SCRIPTED) if scripted else EMPTY,
    )
