"""What follows from a sweep: where devices break even, which setting is best, and a configuration that has it.

Invariant: a device that is not there is never recommended, unless the configuration itself names it; and the CPU alone
is recommended unless a setting is faster for certain (hybrid/job/verdict.py). Points of a sweep were measured at
different moments, so a setting is only ever compared with the CPU alone that was measured in turns with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hybrid.config import dump_config, load_config
from hybrid.config.schema import Config
from hybrid.devices.profiles import ORACLE, SIMULATED, parse_device
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.experiments.tune.points import Point, Setting
from hybrid.job.verdict import EVEN
from hybrid.planning.plan import CELL_BYTES
from hybrid.results.atomic_write import atomic_write
from hybrid.terminal import count, plural, seconds

ORACLE_DEVICE = SIMULATED + ORACLE


@dataclass(frozen=True)
class Advice:
    """The recommended setting, what it takes for all sources, and the sentence that says so."""

    engine: str
    mode: str
    device: str
    k: int
    seconds: float
    gain: float
    sentence: str
    batch: int = 1


@dataclass(frozen=True)
class Curve:
    """Gain over the delay of a simulated device, for one engine, mode and core."""

    engine: str
    mode: str
    k: int
    delays_s: tuple[float, ...]  # ascending; 0 is the oracle
    gains: tuple[float, ...]
    spreads: tuple[tuple[float, float], ...]
    pays: tuple[bool, ...]  # for certain

    @property
    def sentence(self) -> str:
        """Up to which delay it pays, in words."""
        where = f"simulated, {self.engine}, {self.mode}, k = {count(self.k)}"
        first = f"{self.gains[0]:.2f}x with {_delay_word(self.delays_s[0])}"
        if not any(self.pays):
            return f"{where}: no delay clearly pays ({first})"
        last = max(i for i, pays in enumerate(self.pays) if pays)
        there = f"{where}: pays up to {_delay_word(self.delays_s[last])} ({self.gains[last]:.2f}x"
        after = f", not with {_delay_word(self.delays_s[last + 1])}" if last + 1 < len(self.pays) else ""
        return f"{there}; {first}){after}" if last else f"{there}){after}"


def _delay_word(delay_s: float) -> str:
    return "the oracle" if delay_s == 0 else f"rounds of {seconds(delay_s)}"


def noise_of(points: Sequence[Point]) -> float:
    """The largest ratio between two measurements of the CPU alone: a smaller gain is noise."""
    apart = [value for one in points if one.good and not one.setting.k for value in (one.gain, 1 / one.gain)]
    return max(apart, default=1.0)


def noise_text(points: Sequence[Point]) -> str:
    """A warning if measurements of the CPU alone differ by more than counts as equal; else nothing."""
    noise = noise_of(points)
    if noise <= 1 + 2 * EVEN:
        return ""
    return (
        f"The machine was busy: the CPU alone differed from itself by {noise:.2f}x, so no gain or loss of that size "
        "means anything; measure again in a quiet moment, or with more --repeats."
    )


def break_even_settings(points: Sequence[Point], modes: Sequence[str], delays: Sequence[str]) -> list[Setting]:
    """Per engine, at the core where the oracle gains most (without one: any device), every delay and the oracle.

    What counts is the least gain of the repeats: a lucky one must not choose the core.
    """
    found = []
    for engine in dict.fromkeys(one.setting.engine for one in points):
        cores = [one for one in points if one.good and one.setting.engine == engine and one.setting.k]
        tried = [one for one in cores if one.setting.device == ORACLE_DEVICE] or cores
        if tried:
            k = max(tried, key=lambda one: one.spread[0]).setting.k
            devices = dict.fromkeys([ORACLE_DEVICE, *delays])
            batch = tried[0].setting.batch
            found += [Setting(engine, device, mode, k, batch) for device in devices for mode in modes]
    return found


def break_even_curves(points: Sequence[Point]) -> list[Curve]:
    """Every engine, mode and core that was measured with two delays or more."""
    groups: dict[tuple[str, str, int], dict[float, Point]] = {}
    for one in points:
        asked = parse_device(one.setting.device) if one.good and one.setting.k else None
        if asked is not None and asked.delay_s is not None:
            key = (one.setting.engine, one.setting.mode, one.setting.k)
            groups.setdefault(key, {})[asked.delay_s] = one
    curves = []
    for (engine, mode, k), by_delay in groups.items():
        if len(by_delay) > 1:
            ordered = [by_delay[delay] for delay in sorted(by_delay)]
            gains, spreads = tuple(one.gain for one in ordered), tuple(one.spread for one in ordered)
            pays = tuple(one.pays for one in ordered)
            curves.append(Curve(engine, mode, k, tuple(sorted(by_delay)), gains, spreads, pays))
    return curves


def recommend(points: Sequence[Point], config: Config) -> Advice:
    """The fastest setting that can be had here; the CPU alone where none is clearly faster."""
    good = [one for one in points if one.good]
    if not good:
        raise EnvironmentProblem(
            f"no setting could be measured: {points[0].failure if points else 'the sweep is empty'}",
            fix="`python run.py doctor` checks the worker; --devices oracle needs none",
        )
    alone = {
        engine: float(np.median([one.cpu_only_s for one in good if one.setting.engine == engine]))
        for engine in dict.fromkeys(one.setting.engine for one in good)
    }

    def expected_s(one: Point) -> float:
        """Expected seconds of a setting under the median load of the sweep."""
        return alone[one.setting.engine] / one.gain

    searches = plural(searches_of(good), "search")
    engine = min(alone, key=lambda name: alone[name])
    batches = {one.setting.engine: one.setting.batch for one in good}
    own = config.npu.device
    usable = [one for one in good if one.setting.k and (not one.setting.simulated or one.setting.device == own)]
    paying = [one for one in usable if one.pays and expected_s(one) < alone[engine]]
    if paying:
        best = min(paying, key=expected_s)
        set_ = best.setting
        label = "; simulated, no real NPU was used" if set_.simulated else f" (it ran on: {best.ran_on})"
        sentence = (
            f"Recommended: npu.mode: {set_.mode}, core.size: {set_.k}, {_way(set_.engine, set_.batch)}, npu.device: "
            f"{set_.device}{label}: {seconds(best.hybrid_s)} for {searches} against {seconds(best.cpu_only_s)} on the "
            f"CPU alone ({best.compared.describe()})."
        )
        return Advice(set_.engine, set_.mode, set_.device, set_.k, best.hybrid_s, best.gain, sentence, set_.batch)
    why = "no core was measured with a device that could be recommended"
    if usable:
        best = max(usable, key=lambda one: one.gain)
        number, verb = ("the one setting", "is not") if len(usable) == 1 else (f"none of {len(usable)} settings", "is")
        device = f"{'simulated ' if best.setting.simulated else ''}device {best.setting.device}"
        if best.ran_on and not best.setting.simulated:
            device += f" (it ran on: {best.ran_on})"
        why = (
            f"{number} with the {device} {verb} clearly faster than the CPU alone; the best, "
            f"{best.setting.mode} at k = {count(best.setting.k)}, reaches {best.compared.describe()}"
        )
    way = _way(engine, batches[engine])
    sentence = f"Recommended: npu.mode: off, {way} ({seconds(alone[engine])} for {searches}): {why}."
    return Advice(engine, "off", own, 0, alone[engine], 1.0, sentence, batches[engine])


def searches_of(good: Sequence[Point]) -> int:
    """From how many sources every point searched: each repeat twice, without and with the device."""
    return round(good[0].certified / (2 * len(good[0].cpu_only)))


def _way(engine: str, batch: int) -> str:
    """The configuration key that selects how searches are made."""
    return f"npu.batch: {batch}" if batch > 1 else f"engine: {engine}"


def advised_config(config: Config, advice: Advice) -> Config:
    """The same job with the recommended setting; on the one rank that was measured."""
    engine = config.engine if advice.batch > 1 else advice.engine
    strategy = config.bfs.strategy if engine == "level" else "auto"
    core = config.core
    if advice.k:
        room = max(core.max_bytes, CELL_BYTES * advice.k * advice.k)
        core = replace(core, size=advice.k, threshold=None, quantile=None, max_bytes=room)
    bfs = replace(config.bfs, strategy=strategy)
    npu = replace(config.npu, mode=advice.mode, device=advice.device, batch=advice.batch)
    return replace(config, engine=engine, ranks=1, bfs=bfs, core=core, npu=npu, output=None)


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse to replace a file, unless ``force`` says so."""
    if path.exists() and not force:
        raise ConfigError("--apply: the file exists", path=path, fix="name another file, or add --force")
    if not path.absolute().parent.is_dir():
        raise EnvironmentProblem("--apply: its folder does not exist", path=path, fix="make the folder first")


def apply_advice(path: Path, config: Config, advice: Advice, force: bool) -> None:
    """Write the recommended configuration, whole or not at all; it is read back before it counts."""
    refuse_existing(path, force)
    wanted = advised_config(config, advice)
    comment = f"# Written by `python run.py tune --apply`, measured on one rank.\n# {advice.sentence}\n"
    text = comment + dump_config(wanted)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        draft.write_text(text)
        if load_config(draft) != wanted:
            raise AssertionError("the written configuration does not read back")
    try:
        atomic_write(path, text)
    except OSError as error:
        raise EnvironmentProblem(
            f"--apply: cannot be written: {error.strerror}", path=path, fix="name another file"
        ) from error
