"""Pictures of results, by matplotlib where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.errors import EnvironmentProblem
from hybrid.library.distribution import describe_spread

if TYPE_CHECKING:
    from hybrid.api.results import PathsResult, Result


def axes_of(ax: Any, method: str) -> Any:
    """The axes to draw on; new ones if None were given. EnvironmentProblem without matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise EnvironmentProblem(f"{method} needs matplotlib", fix="pip install matplotlib") from None
    return pyplot.subplots(figsize=(6, 3.5), layout="constrained")[1] if ax is None else ax


def plot_distribution(result: Result, ax: Any = None) -> Any:
    """A bar per value or bin; the axes."""
    ax = axes_of(ax, "plot_distribution")
    main = result._main
    spread = describe_spread(main, result.graph.rows.user_ids, result._raw[main.name])
    low, high, amount = (np.array(column, float) for column in zip(*spread["bins"], strict=True))
    single = bool((low == high).all())
    if single and low.size > 1:
        width = np.full(low.size, 0.8 * float(np.diff(low).min()))
    else:
        width = np.where(high > low, high - low, 0.8)
    ax.bar(low, amount, width, align="center" if single else "edge")
    if not single and high[-1] > 50 * max(low[low > 0].min(initial=high[-1]), 1e-300):
        ax.set_xscale("log")
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
