"""The process of one contestant: reads requests, lets the adapter work, answers with times and findings.

Only what the adapter does is on the clock; reading the input, converting the result and digesting it are not.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.contest.digest import level_finding
from benchmarks.contest.questions import question_of, value_finding
from benchmarks.contest.rounds import FIX, Finding, disagreement
from benchmarks.machine.memory import PeakMeter, resident_bytes
from benchmarks.peers import adapter_named
from benchmarks.peers.adapter import Adapter, Pairs
from hybrid.errors import NotCertified


def main(arguments: list[str]) -> None:
    """Serve stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the contest's; it ends us by closing our stdin
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print: not into the replies
    host = _Host(adapter_named(arguments[0], int(arguments[1])))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = host.handle(request.pop("do"), request)
        except NotCertified as wrong:
            answer = {"error": str(wrong), "wrong": True}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


class _Host:
    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.held: int | None = None
        self.added: dict[str, int | None] = {}  # by variant: the memory of its first run

    def handle(self, request: str, details: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Callable[..., dict[str, Any]]] = {
            "introduce": self.introduce,
            "open": self.open,
            "turn": self.turn,
            "memory": self.memory,
            "build": self.build,
            "read": self.read,
            "levels": self.adapter.trace_levels,
            "batch": self.adapter.run_batch,
        }
        return known[request](**details)

    def introduce(self) -> dict[str, Any]:
        self.adapter.warm_up()
        answers = {name: self.adapter.threads_of(name) for name in self.adapter.answers}
        return {"version": self.adapter.version(), "threads": self.adapter.threads_used, "answers": answers}

    def open(self, folder: str, ids: str, weighted: bool = False) -> dict[str, Any]:
        """Make the adapter's own graph of a finished one."""
        before = resident_bytes()
        self.adapter.weighted = weighted
        prepared = self.adapter.load_graph(Path(folder), ids)
        began = time.perf_counter()
        self.adapter.open_rows(prepared)
        spent = time.perf_counter() - began
        del prepared
        gc.collect()
        after = resident_bytes()
        self.held = None if before is None or after is None else max(0, after - before)
        return {"seconds": spent, "held_bytes": self.held}

    def turn(self, variant: str, root: int, trials: int, limit_s: float) -> dict[str, Any]:
        """Run from one root, several times; every run's result must be the same."""
        seconds: list[float] = []
        before = None
        while len(seconds) < trials and (not seconds or sum(seconds) < limit_s):
            outcome, spent = self._run(variant, root)
            seconds.append(spent)
            finding = self._judge(variant, outcome, root)
            if before is not None and disagreement(finding, before):
                raise NotCertified("two runs from the same root differ", fix=FIX)
            before = finding
        assert before is not None
        return {"seconds": seconds, **asdict(before)}

    def _judge(self, variant: str, outcome: Any, root: int) -> Finding:
        self.adapter.prove(variant, outcome, root)
        question, _ = question_of(variant)
        if question is not None:
            return value_finding(question, self.adapter.values(question.name, outcome))
        return level_finding(self.adapter.levels(variant, outcome))

    def _answer(self, variant: str, root: int) -> Any:
        question, roots = question_of(variant)
        if question is None:
            return self.adapter.run(variant, root)
        return self.adapter.answers[question.name](root, roots)

    def _run(self, variant: str, root: int) -> tuple[Any, float]:
        if variant in self.added:
            began = time.perf_counter()
            outcome = self._answer(variant, root)
            return outcome, time.perf_counter() - began
        with PeakMeter() as meter:  # the first run is a rehearsal: its memory counts, its time does not
            outcome = self._answer(variant, root)
        self.added[variant] = meter.added
        return outcome, 0.0

    def memory(self, variant: str) -> dict[str, Any]:
        """Bytes that the graph holds, and that a run adds at its height."""
        return {"held_bytes": self.held, "run_bytes": self.added.get(variant)}

    def build(self, folder: str) -> dict[str, Any]:
        """Build from an edge list in memory."""
        prepared = self.adapter.prepare_pairs(Pairs.load(Path(folder)))
        with PeakMeter() as meter:
            began = time.perf_counter()
            built = self.adapter.build_pairs(prepared)
            spent = time.perf_counter() - began
        del prepared
        return self._account(built, spent, meter)

    def read(self, path: str, scratch: str) -> dict[str, Any]:
        """Read a text edge list, to whatever the adapter ends with."""
        with PeakMeter() as meter:
            began = time.perf_counter()
            built = self.adapter.read_text(Path(path), Path(scratch))
            spent = time.perf_counter() - began
        return self._account(built, spent, meter)

    def _account(self, built: Any, spent: float, meter: PeakMeter) -> dict[str, Any]:
        edges, phases = self.adapter.edge_count(built), dict(self.adapter.phases)
        held, digest = self.adapter.held_bytes(built), self.adapter.arcs_digest(built)
        del built
        gc.collect()  # the next contestant needs the memory
        return {
            "seconds": spent,
            "peak_bytes": meter.added,
            "held_bytes": held,
            "edges": edges,
            "digest": digest,
            "phases": phases,
        }


if __name__ == "__main__":
    main(sys.argv[1:])
