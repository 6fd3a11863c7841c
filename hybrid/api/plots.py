"""Pictures of results, by matplotlib where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.algorithms.distribution import describe_spread
from hybrid.checkout import install_packages
from hybrid.errors import EnvironmentProblem

_SKEWED = 50.0  # a largest value so many times the smallest asks for a logarithmic axis

if TYPE_CHECKING:
    from hybrid.api.results import PathsResult, Result


def axes_of(ax: Any, method: str) -> Any:
    """The axes to draw on; new ones if None were given. EnvironmentProblem without matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise EnvironmentProblem(f"{method} needs matplotlib", fix=install_packages("matplotlib")) from None
    return pyplot.subplots(figsize=(6, 3.5), layout="constrained")[1] if ax is None else ax


def plot_distribution(result: Result, ax: Any = None) -> Any:
    """A bar per value or bin; the axes."""
    ax = axes_of(ax, "plot_distribution")
    main = result._main
    spread = describe_spread(main, result.graph.rows.user_ids, result._raw[main.name])
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
    if single and not skewed and result.values.dtype.kind in "iu":
        ax.xaxis.get_major_locator().set_params(integer=True)
    groups = spread["what"] == "groups"
    ax.set_xlabel("vertices in a group" if groups else main.name)
    ax.set_ylabel("groups" if groups else "vertices")
    ax.set_title(result.headline, fontsize="medium", wrap=True)
    return ax


def plot_reach(result: PathsResult, ax: Any = None) -> Any:
    """Vertices within each distance; the axes."""
    ax = axes_of(ax, "plot_reach")
    values = np.sort(result.values[result.reached])
    ax.step(values, np.arange(1, values.size + 1), where="post")
    ax.set_xlabel(f"{result._main.name} from {result.source}")
    ax.set_ylabel("vertices within it")
    ax.set_ylim(bottom=0)
    ax.set_title(result.headline, fontsize="medium", wrap=True)
    return ax
