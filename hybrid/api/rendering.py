"""A result for people: a few lines in a terminal, a small table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.algorithms.algorithm import check_text
from hybrid.terminal import count, figure, table

if TYPE_CHECKING:
    from hybrid.api.results import Result

_ROWS = 8
_STYLE = "font-family: system-ui, sans-serif; font-size: 0.95em; text-align: right"


def as_text(result: Result) -> str:
    """The result in a sentence, how it was checked, the first rows."""
    shown = table(["vertex", *result.arrays], _cells(result))
    return "\n".join([result.headline, _checked(result), shown, *_rest(result)])


def as_html(result: Result) -> str:
    """The same for a notebook."""
    claims = escape(str(result.certificate)) if result.certificate is not None else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("vertex", *result.arrays))
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _cells(result))
    rest = "".join(f"<p><small>{escape(line)}</small></p>" for line in _rest(result))
    return (
        f'<div class="tandem-result"><p><b>{escape(result.headline)}</b><br>'
        f'<small title="{claims}">{escape(_checked(result))}</small></p>'
        f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}</div>'
    )


def _checked(result: Result) -> str:
    certificate, repair = result.certificate, result.repair
    again = "" if repair is None else f" (computed again by {repair.method}: the engine's result failed the check)"
    return "not checked" if certificate is None else f"certified: {check_text(certificate.kind)}{again}"


def _cells(result: Result) -> list[list[str]]:
    columns = [result.vertex[:_ROWS], *(array[:_ROWS] for array in result.arrays.values())]
    return [[_cell(value) for value in row] for row in zip(*columns, strict=True)]


def _cell(value: Any) -> str:
    return figure(float(value)) if isinstance(value, float | np.floating) and np.isfinite(value) else str(value)


def _rest(result: Result) -> list[str]:
    left = result.vertex.size - _ROWS
    return [f"... {count(left)} more"] if left > 0 else []
