"""Building HTML and SVG text: elements, attributes, escaping, and pages that load nothing from elsewhere.

Invariant: a plain ``str`` is always escaped on its way into an element; only a ``Markup`` passes as it is, and only
this module's functions make one from data. A path, a cause of death or a vertex name can therefore never become a tag.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = frozenset({"br", "col", "hr", "meta", "link", "input"})
SVG_LEAVES = frozenset({"rect", "line", "circle", "polygon", "path", "use"})
# Control characters are not allowed in HTML text; lone surrogates (undecodable file names) cannot be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


EMPTY = Markup("")


def escape(value: object) -> Markup:
    """``value`` as HTML text, safe inside elements and inside double-quoted attributes."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def join(parts: Iterable[object], separator: str = "") -> Markup:
    """All parts one after the other, each escaped unless it is Markup."""
    return Markup(escape(separator).join(escape(part) for part in parts))


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element.

    In attribute names a trailing ``_`` is dropped and the others become ``-``. An attribute that is None or False is
    left out; a float is in pixels and written to a tenth.
    """
    written = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    body = "".join(escape(child) for child in children)
    if name in VOID:
        return Markup(f"<{name}{written}>")
    if not body and name in SVG_LEAVES:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{body}</{name}>")


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f' {name}="{Markup(html.escape(_FORBIDDEN.sub(chr(0xFFFD), text), quote=True))}"'


def percent(value: float) -> str:
    """A percentage as SVG takes it, short: ``12.345%``."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"


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
