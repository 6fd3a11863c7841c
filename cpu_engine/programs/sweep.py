"""Programs that give every vertex a new value in every round, from what its arcs bring and what it had.

A round is Jacobi's: operators see the values of the round before, so the outcome does not depend on threads - but for
sums of floats that are pushed, whose order is not fixed. Pulled sums are taken row by row, in the same order always.
Invariant: a field that is read at the source has two arrays, the old and the new, exchanged after each round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cpu_engine.pagerank.engine import edge_cuts
from cpu_engine.programs.base import ProgramRun
from cpu_engine.programs.initial import Initial
from cpu_engine.programs.launch import Launch, Step
from cpu_engine.programs.sweep_text import scatter_text, sweep_text, totals_text
from cpu_engine.programs.text import NAMES, given, local
from cpu_engine.schedule.entry import Bound, Kernel
from cpu_engine.schedule.errors import OperatorError, argument_names

BLOCKS = 256  # shares of the rows, of equal arcs


class Sweep(ProgramRun):
    """See the module. ``masters``: only so many vertices, the first, are updated; the others' values are sent here."""

    def __init__(self, *given: Any, masters: int | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        program, rows = self.program, self.rows
        self._masters = rows.n if masters is None else masters
        self.fields = {one.name: np.empty(rows.n, one.dtype) for one in program.fields}
        read_afar = [one for one in program.assigned if one.read != "vertex"]
        self._other = {one.name: np.empty(rows.n, one.dtype) for one in read_afar}
        self._sums = dict.fromkeys(program.totals, 0.0)
        self._ticket, self._tally = np.zeros(1, np.int64), np.zeros((BLOCKS, max(len(program.totals), 1)))
        self._pulls = program.pull is not None and self.strategy != "push"
        both = program.both_ways and not rows.mirrored
        self._fused = self._pulls and not both and masters is None
        self._kernels: dict[str, list[Bound]] = {}
        self._initial = {
            one.name: Initial(program, one, rows, self._parameters, self._degrees) for one in program.fields
        }  # fmt: skip
        self._prepare(both)

    # ------------------------------------------------------------------------------ what is compiled

    def _prepare(self, both: bool) -> None:
        program = self.program
        totals = {name: self._call("total", one, "read") for name, one in program.totals.items()}
        update = self._call("update", program.update, "read")
        named: dict[str, Any] = {"update": program.update}
        named |= {f"total_{i}": one for i, one in enumerate(program.totals.values())}
        like = {"update": update.like} | {f"total_{i}": call.like for i, call in enumerate(totals.values())}
        cuts = self._cuts(self._masters)
        arcs: Any = program.pull if self._pulls else program.push
        role = "pull" if self._pulls else "push"
        call = self._call(role, arcs, "read")
        if self._fused:
            text = sweep_text(program, call, update, totals)
            self._add("round", text, {"pull": arcs} | named, {"pull": call.like} | like, cuts, out=False)
        else:
            text = sweep_text(program, call, None, {}) if self._pulls else scatter_text(program, call)
            for out in [not self._pulls, self._pulls] if both else [not self._pulls]:
                self._add("arcs", text, {role: arcs}, {role: call.like}, self._cuts(self.rows.n, out=out), out=out)
            self._add("update", sweep_text(program, None, update, totals), named, like, cuts, out=False)
        if totals:
            only = {name: one for name, one in named.items() if name != "update"}
            self._add(
                "totals", totals_text(program, totals), only, {name: like[name] for name in only}, cuts, out=False
            )

    def _cuts(self, n: int, *, out: bool = False) -> np.ndarray:
        offsets = self.rows.out_offsets if out else self.rows.in_offsets
        return edge_cuts(offsets[:n], offsets[1 : n + 1], BLOCKS)

    def _add(
        self, kind: str, text: tuple[str, list[str]], operators: Mapping[str, Any], like: Any, cuts: Any, *, out: bool
    ) -> None:
        program, rows, parameters = self.program, self.rows, text[1]
        offsets, ends = (rows.out_offsets, rows.out_targets) if out else (rows.in_offsets, rows.in_sources)
        available: dict[str, Any] = {
            "cuts": cuts, "ticket": self._ticket, "tally": self._tally, "begin": offsets[:-1], "end": offsets[1:],
            "targets": ends, "sources": ends, "neutral": program.offered.neutral,
            f"{local(program.offered.name)}_now": self.fields[program.offered.name],
            **{given(name): value for name, value in self._scalars.items()},
        }  # fmt: skip
        for name, array in self.fields.items():
            available[f"{local(name)}_read"] = array
            available[f"{local(name)}_next"] = self._other.get(name, array)
        available |= self._row_arrays(parameters, out)
        passed = {name: available[name] for name in parameters}
        assigned = self.program.assigned
        returns: dict[str, Any] = {"pull": program.offered, "push": program.offered}
        returns["update"] = assigned[0] if len(assigned) == 1 else assigned
        kernel = Kernel(text[0], NAMES | dict(operators), passed, like, returns)
        self._kernels.setdefault(kind, []).append(kernel.bind(**passed))

    # ------------------------------------------------------------------------------ a run

    def start(self, start: np.ndarray | None) -> None:
        """Begin with the initial values, at all vertices."""
        if start is not None:
            raise OperatorError(
                f"program {self.program.name!r} updates every vertex, and has no start", fix="leave start out"
            )
        self.round, self.steps, self.launches = 0, [], []
        for name, initial in self._initial.items():
            initial.fill(self.fields[name])
        self._point()

    def begin_totals(self) -> np.ndarray:
        """The totals of the initial values, of the vertices that are updated here."""
        if self.program.totals:
            self._run("totals")
        return self._tally.sum(axis=0)

    def take_totals(self, sums: np.ndarray) -> None:
        """These are the totals that the next round sees."""
        self._sums = {name: float(one) for name, one in zip(self.program.totals, sums, strict=False)}

    @property
    def over(self) -> bool:
        if self.round == 0:
            return self.program.rounds == 0
        return self.finished()

    def finished(self) -> bool:
        """Whether the program says that it is done."""
        program = self.program
        if program.rounds is not None and self.round >= program.rounds:
            return True
        if program.until is None:
            return False
        known = {**self._parameters, **self._sums, "round": self.round}
        return bool(program.until(**{name: known[name] for name in argument_names(program.until, "until")}))

    def advance(self) -> None:
        """One round."""
        self.step()

    def step(self) -> Step:
        """One round."""
        if self.round == 0:
            self.take_totals(self.begin_totals())
        if self._fused:
            self._run("round")
        else:
            self.bring()
            self._run("update")
        self.take_totals(self._tally.sum(axis=0))
        return self._finish()

    def bring(self) -> None:
        """Half a round: what arcs bring, added up at their targets."""
        self.fields[self.program.offered.name].fill(self.program.offered.neutral)
        self._run("arcs")

    def settle(self) -> np.ndarray:
        """The other half: new values for the vertices that are updated here; return their totals."""
        self._run("update")
        self._finish()
        return self._tally.sum(axis=0)

    def results(self) -> dict[str, np.ndarray]:
        """The fields; copies, as the engine's own arrays are used again."""
        return {name: array.copy() for name, array in self.fields.items()}

    def totals(self) -> dict[str, float]:
        return dict(self._sums)

    def _run(self, kind: str) -> None:
        for bound in self._kernels[kind]:
            self._ticket[0] = 0
            for name, value in {"round": self.round, **self._sums}.items():
                if given(name) in bound.names:
                    bound.set(given(name), value)
            spans = bound.run(self.threads)
            along = "pull" if self._pulls else "push"
            named = along if kind in ("round", "arcs") else kind
            self.launches.append(Launch(named, self.round, 1, self._masters, (), spans))

    def _finish(self) -> Step:
        for name in self._other:
            self.fields[name], self._other[name] = self._other[name], self.fields[name]
        self._point()
        self.round += 1
        step = Step("pull" if self._pulls else "push", self._masters, self.rows.m)
        self.steps.append(step)
        return step

    def _point(self) -> None:
        """Tell the kernels which array is the old one and which the new."""
        for name, other in self._other.items():
            for bound in (one for bounds in self._kernels.values() for one in bounds):
                for array, suffix in ((self.fields[name], "read"), (other, "next")):
                    if f"{local(name)}_{suffix}" in bound.names:
                        bound.set(f"{local(name)}_{suffix}", array)
