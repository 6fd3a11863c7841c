"""Which figures a sweep's page shows, and which points are in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hybrid.charts.axes import Axis, axis
from hybrid.charts.line_charts import Mark, Series, draw
from hybrid.charts.markup import EMPTY, Markup, el
from hybrid.charts.units import compact, count, ratio, seconds, share, tick
from hybrid.experiments.measured import draw_gains
from hybrid.experiments.tune.advice import Curve
from hybrid.experiments.tune.points import Point
from hybrid.terminal import plural

_CPU_COLOUR = 6


def engine_figures(points: Sequence[Point]) -> Markup:
    """Time, gain, adopted values and edges looked at, over the core's size; of one engine's points."""
    sizes = sorted({one.setting.k for one in points})
    if not sizes:
        return el("p", "No setting of this engine could be measured.", class_="muted")
    gains = [value for one in points for value in (*one.spread, one.gain)] + [1.0]
    edges = [value for one in points for value in (one.edges_hybrid, one.edges_cpu_only)]
    cores = [one for one in points if one.setting.k]
    of_size = {k: [one.edges_cpu_only for one in points if one.setting.k == k] for k in sizes}
    edge_alone = tuple(Mark(k, float(np.median(edges_of)), f"k = {k:,}") for k, edges_of in of_size.items())
    adopted = _by_setting(cores, lambda one: _plain_mark(one, one.values_adopted))
    looked_at = _by_setting(points, lambda one: _plain_mark(one, one.edges_hybrid))
    return el(
        "div",
        *_time_figures(points, sizes),
        _over_size(
            "Gain", "the two times of each mark divided, with its interval; above 1 the device helps",
            _by_setting(points, _gain_mark), sizes, axis(gains, "gain", ratio, log=True), even=1.0,
        ),
        _over_size(
            "Values adopted", "per search: found by the device before the CPU", adopted, sizes,
            _from_zero([one.values_adopted for one in cores], "values", compact),
        ),
        _over_size(
            "Edges looked at", "per search, by the CPU", [Series("CPU only", edge_alone, _CPU_COLOUR), *looked_at],
            sizes, _from_zero(edges, "edges", compact),
        ),
        class_="plots",
    )  # fmt: skip


def core_figures(points: Sequence[Point]) -> Markup:
    """Share of edges inside, and density, over the core's size."""
    by_size = {one.setting.k: one for one in sorted(points, key=lambda one: one.setting.k)}
    inside = {k: (one.part, f"{plural(one.inside, 'edge')}, {share(one.part, 1)}") for k, one in by_size.items()}
    density = {k: (one.density, share(one.density, 1)) for k, one in by_size.items() if k}

    def figure(title: str, about: str, name: str, colour: int, label: str, of: dict[int, tuple[float, str]]) -> Markup:
        series = Series(name, tuple(Mark(k, value, tip) for k, (value, tip) in of.items()), colour)
        y = _from_zero([value for value, _ in of.values()], label, lambda part: f"{100 * part:.3g} %")
        return _over_size(title, about, [series], list(by_size), y)

    return el(
        "div",
        figure("Edges inside the core", "of all edges", "share of all edges", 0, "share", inside),
        figure("Density of the core", "edges inside, of all pairs", "density", 2, "density", density),
        class_="plots",
    )


def prediction_figure(points: Sequence[Point]) -> Markup:
    """Predicted over measured, of every setting that has both; empty if none has."""
    both = [one for one in points if one.good and one.predicted_s]
    if not both:
        return EMPTY

    def mark(one: Point) -> Mark:
        assert one.predicted_s is not None
        tip = f"{one.setting.describe()}: predicted {seconds(one.predicted_s)}, measured {seconds(one.hybrid_s)}"
        return Mark(one.predicted_s, one.hybrid_s, tip)

    series = [replace(one, line=False) for one in _by_setting(both, mark, by_mode=True)]
    every = [value for one in both for value in (one.predicted_s or 0.0, one.hybrid_s)]
    x, y = (axis(every, label, tick, log=True) for label in ("predicted", "measured"))
    about = "of all sources together, by the planner and by the clock"
    return el("div", draw("Hybrid time", about, series, x, y, diagonal=True), class_="plots")


def break_even_figure(curves: Sequence[Curve], beside: Markup) -> Markup:
    """Gain over a simulated device's delay, and what it says in words ``beside``."""
    engines = list(dict.fromkeys((one.engine, one.k) for one in curves))
    series = []
    for curve in curves:
        marks = tuple(
            Mark(delay, gain, f"{_delay(delay)}: {ratio(gain)}", *spread)
            for delay, gain, spread in zip(curve.delays_s, curve.gains, curve.spreads, strict=True)
        )
        name = f"simulated: {curve.engine}, {curve.mode}, k = {count(curve.k)}"
        series.append(Series(name, marks, engines.index((curve.engine, curve.k)), curve.mode == "race"))
    title, about = "Gain over the delay of a round (simulated)", "the oracle is a device that needs no time"
    figure = draw_gains(title, about, series, "delay of every round", _delay)
    return el("div", figure, beside, class_="plots")


def _by_setting(points: Sequence[Point], mark: Callable[[Point], Mark], *, by_mode: bool = False) -> list[Series]:
    """A series per device and mode; the point without a core, where there is one, is the start of each."""
    start = [one for one in points if not one.setting.k]
    cores: dict[str, set[int]] = {}
    for one in points:
        if one.setting.k:
            cores.setdefault(one.setting.device, set()).add(one.setting.k)
    most = max(map(len, cores.values()), default=0)
    found = []
    for i, device in enumerate(cores):
        own = [one for one in points if one.setting.device == device]
        if not by_mode and 2 * len(cores[device]) < most:
            continue  # no curve over k, but points of the break-even figure
        for mode in dict.fromkeys(one.setting.mode for one in own):
            marks = [mark(one) for one in own if one.setting.mode == mode]
            if not by_mode:
                marks = [*map(mark, start[:1]), *marks]
            ran_on = next((one.ran_on for one in own if one.ran_on), "")
            name = device if device == ran_on or not ran_on else f"{device} (ran on: {ran_on})"
            found.append(Series(f"{name}, {mode}", tuple(marks), i, mode == "race"))
    return found


def _time_figures(points: Sequence[Point], sizes: Sequence[int]) -> list[Markup]:
    """Each device and mode beside the CPU alone that was measured in turns with it: the load changes over a sweep."""
    hybrid = _by_setting(points, lambda one: _time_mark(one, one.hybrid, one.hybrid_s))
    beside = _by_setting(points, lambda one: _time_mark(one, one.cpu_only, one.cpu_only_s))
    every = [
        value for one in [*hybrid, *beside] for mark in one.marks for value in (mark.low or mark.y, mark.high or mark.y)
    ]
    y = axis(every, "time", tick, log=True)
    found = []
    for one, alone in zip(hybrid, beside, strict=True):
        beside_it = replace(alone, name="CPU only, in turns with it", colour=_CPU_COLOUR)
        about = "of all sources together, median; thin: from the fastest to the slowest repeat"
        found.append(_over_size(f"Time: {one.name}", about, [beside_it, one], sizes, y))
    return found


def _time_mark(point: Point, times: Sequence[Sequence[float]], median_s: float) -> Mark:
    sums = np.sum(times, axis=1)
    low, high = min(median_s, float(sums.min())), max(median_s, float(sums.max()))
    tip = f"{_core(point)}: median {seconds(median_s)}, repeats {seconds(low)} to {seconds(high)}"
    return Mark(point.setting.k, median_s, tip, low, high)


def _gain_mark(point: Point) -> Mark:
    return Mark(point.setting.k, point.gain, f"{_core(point)}: {point.compared.describe()}", *point.spread)


def _plain_mark(point: Point, value: float) -> Mark:
    return Mark(point.setting.k, value, f"{_core(point)}: {count(round(value))}")


def _core(point: Point) -> str:
    k = point.setting.k
    return f"k = {k:,}, degree from {count(point.threshold)}" if k else "no core"


def _over_size(
    title: str, about: str, series: Sequence[Series], sizes: Sequence[int], y: Axis, even: float | None = None
) -> Markup:
    x = axis(sizes, "vertices in the core (k)", count, log=True)
    return draw(title, about, series, x, y, x_ticks=sizes, even=even)


def _from_zero(values: Sequence[float], label: str, text: Callable[[float], str]) -> Axis:
    return axis([0.0, *values], label, text, from_zero=True)


def _delay(value: float) -> str:
    return "oracle" if value <= 0 else tick(value)
