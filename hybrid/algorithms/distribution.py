"""How a result's values are spread: groups counted, values in bins, and the ten largest. Numbers for people.

Invariant: every vertex that has a value is in exactly one bin; what is drawn can be read again from the summary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybrid.algorithms.algorithm import Algorithm, Arrays, Task
from hybrid.algorithms.field import Field, Label, UserLabel
from hybrid.terminal import count, plural

BINS = 24
TOP = 10
_SKEWED = 50.0  # a largest value so many times the smallest asks for logarithmic bins


def group_facts(label: np.ndarray, noun: str) -> dict[str, Any]:
    """How many groups there are, and how large the largest is."""
    _, sizes = np.unique(label, return_counts=True)
    largest = int(sizes.max(initial=0))
    return {noun: int(sizes.size), "largest": largest, "largest_share": largest / max(1, label.size)}


class Groups(Algorithm):
    """An algorithm that puts every vertex into a group: what its one column names."""

    nouns: str

    def facts(self, task: Task, arrays: Arrays) -> dict[str, Any]:
        return group_facts(arrays[self.fields[0].name], self.nouns)

    def headline(self, facts: dict[str, Any]) -> str:
        amount = f"1 {self.fields[0].name}" if facts[self.nouns] == 1 else f"{count(facts[self.nouns])} {self.nouns}"
        return f"{amount}; the largest has {plural(facts['largest'], 'vertex')} ({facts['largest_share']:.1%})"


def largest_vertex(vertex: np.ndarray, value: np.ndarray) -> dict[str, Any]:
    """The largest value, and whose it is (the smallest id, where several have it)."""
    if not value.size:
        return {"largest": 0, "largest_vertex": None}
    at = int(np.argmax(value))
    return {"largest": value[at].item(), "largest_vertex": int(vertex[at])}


def describe_spread(field: Field, vertex: np.ndarray, value: np.ndarray) -> dict[str, Any]:
    """The picture of one array in the user's ids, as plain numbers."""
    if isinstance(field, Label | UserLabel):
        names, sizes = np.unique(value, return_counts=True)
        return {"what": "groups", "of": field.name, "bins": make_bins(sizes), "top": largest_of(names, sizes)}
    inside = field.reached(value)
    left_out = int(value.size - np.count_nonzero(inside))
    ids, values = vertex[inside], value[inside]
    told = {"what": "values", "of": field.name, "bins": make_bins(values), "top": largest_of(ids, values)}
    return {**told, "unreached": left_out}


def largest_of(names: np.ndarray, values: np.ndarray) -> list[list[Any]]:
    """(name, value) of the largest few, ties by name."""
    few = min(TOP, values.size)
    if not few:
        return []
    bound = np.partition(values, values.size - few)[values.size - few]
    near = np.flatnonzero(values >= bound)
    order = near[np.lexsort((names[near], -values[near].astype(np.float64)))][:few]
    return [[int(names[i]), values[i].item()] for i in order]


def make_bins(values: np.ndarray) -> list[list[Any]]:
    """[low, high, how many] in ascending order; low == high is a single value, else low <= value < high (the last: <=).

    Few different values have a bin each; zeros are apart where the others spread over magnitudes.
    """
    if not values.size:
        return []
    different = np.unique(values[: 1 << 16])
    if different.size <= BINS:
        different = np.unique(values)
    if different.size <= BINS:
        return bins_of_values(values, different)
    low, high = values.min().item(), values.max().item()
    zeros = int(np.count_nonzero(values == 0))
    rest = values[values != 0] if zeros and low == 0 else values
    apart = [[0, 0, zeros]] if rest is not values else []
    return apart + bins_of_edges(rest, bin_edges(rest.min().item(), high, whole=values.dtype.kind in "iu"))


def bins_of_values(values: np.ndarray, different: np.ndarray) -> list[list[Any]]:
    """A bin for each of the ``different`` values, ascending, which are all that there are."""
    amounts = np.bincount(np.searchsorted(different, values), minlength=different.size)
    return [[v.item(), v.item(), int(c)] for v, c in zip(different, amounts, strict=True)]


def bin_edges(low: float, high: float, *, whole: bool) -> np.ndarray:
    """Where bins from the lowest value to the highest begin and end."""
    spaced = np.geomspace if low > 0 and high > _SKEWED * low else np.linspace
    edges = spaced(low, high, BINS + 1)
    if whole:  # whole numbers have whole bounds
        edges = np.unique(np.round(edges))
    edges[0], edges[-1] = low, high
    return edges


def bins_of_edges(values: np.ndarray, edges: np.ndarray) -> list[list[Any]]:
    """How many values each bin has."""
    amounts, _ = np.histogram(values, edges)
    whole = int if values.dtype.kind in "iu" else float
    pairs = zip(edges[:-1], edges[1:], amounts, strict=True)
    return [[whole(a), whole(b), int(c)] for a, b, c in pairs]
