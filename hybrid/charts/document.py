"""A page of ours as HTML text: its policy allows nothing from elsewhere."""

from __future__ import annotations

from hybrid.charts.markup import EMPTY, Markup, el

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
# Before the body, so that closed panels never flash up.
_SCRIPTED = Markup("document.documentElement.classList.add('js')")


def document(title: str, css: str, *body: Markup, script: Markup = EMPTY) -> str:
    """The whole page; ``script``, if there is one, opens and closes its panels."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("title", f"Tandem: {title}"),
        el("link", rel="icon", href="data:,"),
        el("style", Markup(css)),
        el("script", _SCRIPTED) if script else EMPTY,
    )
    written = el("html", head, el("body", *body, el("script", script) if script else EMPTY), lang="en")
    return f"<!DOCTYPE html>\n{written}\n"


def top_line(name: str, about: object, right: str) -> Markup:
    """The line above everything: what this page is, where and when it was written."""
    return el("header", el("span", el("b", name), " ", about), el("span", right), class_="top")
