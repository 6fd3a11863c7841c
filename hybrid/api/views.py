"""A result for people: a few lines in a terminal, a small table in a notebook, pictures where matplotlib is there."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.checkout import install_packages
from hybrid.errors import EnvironmentProblem
from hybrid.terminal import count, figure, table

if TYPE_CHECKING:
    from hybrid.algorithms.algorithm import Arrays

_ROWS = 8
_STYLE = "font-family: system-ui, sans-serif; font-size: 0.95em; text-align: right"
_SKEWED = 50.0  # a largest value so many times the smallest asks for a logarithmic axis


def as_text(headline: str, checked: str, columns: Arrays) -> str:
    """The result in a sentence, how it was checked, the first rows."""
    return "\n".join([headline, checked, table([*columns], _cells(columns)), *_rest(columns)])


def as_html(headline: str, checked: str, claims: str, columns: Arrays) -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _cells(columns))
    rest = "".join(f"<p><small>{escape(line)}</small></p>" for line in _rest(columns))
    return (
        f'<div class="tandem-result"><p><b>{escape(headline)}</b><br>'
        f'<small title="{escape(claims)}">{escape(checked)}</small></p>'
        f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}</div>'
    )


def _cells(columns: Arrays) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in zip(*(one[:_ROWS] for one in columns.values()), strict=True)]


def _cell(value: Any) -> str:
    return figure(float(value)) if isinstance(value, float | np.floating) and np.isfinite(value) else str(value)


def _rest(columns: Arrays) -> list[str]:
    left = columns["vertex"].size - _ROWS
    return [f"... {count(left)} more"] if left > 0 else []


def axes_of(ax: Any, method: str) -> Any:
    """The axes to draw on; new ones if None were given. EnvironmentProblem without matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise EnvironmentProblem(f"{method} needs matplotlib", fix=install_packages("matplotlib")) from None
    return pyplot.subplots(figsize=(6, 3.5), layout="constrained")[1] if ax is None else ax


def draw_distribution(ax: Any, spread: dict[str, Any], title: str, *, whole: bool) -> Any:
    """A bar per value or bin of ``describe_spread``; the axes. ``whole``: the values are whole numbers."""
    low, high, amount = (np.array(column, float) for column in zip(*spread["bins"], strict=True))
    single = bool((low == high).all())
    skewed = bool(0 < _SKEWED * low[0] < high[-1])
    if skewed:
        width = np.where(high > low, high - low, 0.1 * low)
        ax.set_xscale("log")
    elif single:
        width = np.full(low.size, 0.8 * float(np.diff(low).min(initial=1)))
    else:
        width = np.where(high > low, high - low, 0.8)
    ax.bar(low, amount, width, align="center" if single else "edge")
    if amount.max() > _SKEWED * amount[amount > 0].min():
        ax.set_yscale("log")
    if single and not skewed and whole:
        ax.xaxis.get_major_locator().set_params(integer=True)
    groups = spread["what"] == "groups"
    ax.set_xlabel("vertices in a group" if groups else spread["of"])
    ax.set_ylabel("groups" if groups else "vertices")
    ax.set_title(title, fontsize="medium", wrap=True)
    return ax


def draw_reach(ax: Any, distances: np.ndarray, label: str, title: str) -> Any:
    """How many vertices are within each of the distances; the axes."""
    values = np.sort(distances)
    ax.step(values, np.arange(1, values.size + 1), where="post")
    ax.set_xlabel(label)
    ax.set_ylabel("vertices within it")
    ax.set_ylim(bottom=0)
    ax.set_title(title, fontsize="medium", wrap=True)
    return ax
