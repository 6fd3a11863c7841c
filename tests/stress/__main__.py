"""`python -m tests.stress`: random graphs through every algorithm, for so long or so many runs, from a printed seed.

Run ``i`` of seed ``s`` is determined by (s, i): `--seed s --only i` repeats it alone. Ends with exit code 1 if a check
failed or a run raised.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before numba is loaded; it does not bear a change afterwards
    os.environ.setdefault("NUMBA_NUM_THREADS", "8")  # more than cores, on purpose

import argparse
import secrets
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np

from tests.stress.graphs import Drawn, draw_graph
from tests.stress.runs import EVERY_LEVEL_LOOKS_AT_ALL, OTHER_RUNS, RUNS, SSSP_RUNS

THREADS = (1, 2, 8)
SSSP_SHARE = 0.2
GRAPH_RUNS = 12  # runs on one graph: to build it takes longer than most of them
SLOW_S = 20.0


@dataclass(frozen=True)
class Failure:
    """A run whose result was not proven."""

    index: int
    what: str
    reason: str


def choose(rng: np.random.Generator, names: list[str] | None, *, deep: bool) -> str:
    """An algorithm: shortest paths in a fifth of all runs, the others alike."""
    pool = names or list(SSSP_RUNS if rng.random() < SSSP_SHARE else OTHER_RUNS)
    if deep:
        pool = [name for name in pool if name not in EVERY_LEVEL_LOOKS_AT_ALL] or pool
    return pool[rng.integers(len(pool))]


@lru_cache(maxsize=1)
def draw(seed: int, number: int) -> Drawn:
    """The graph of GRAPH_RUNS runs in a row."""
    return draw_graph(np.random.default_rng([seed, 0, number]))


def run_one(seed: int, index: int, names: list[str] | None) -> tuple[str, str, str | None]:
    """(the algorithm's name, how graph and run were drawn, what is wrong or None) of run ``index``."""
    drawn = draw(seed, index // GRAPH_RUNS)
    rng = np.random.default_rng([seed, 1, index])
    threads = int(rng.choice(THREADS))
    name = choose(rng, names, deep=drawn.deep)
    text = f"{name}; {drawn.text}; {threads} threads"
    if drawn.graph.n == 0:  # every edge was a loop that was dropped
        return name, text, None
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        return name, text, RUNS[name](rng, drawn.graph)
    except Exception:
        return name, text, traceback.format_exc()
    finally:
        numba.set_num_threads(before)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--seconds", type=float, help="how long (default: 60, unless --runs is given)")
    parser.add_argument("--runs", type=int, help="how many runs")
    parser.add_argument("--seed", type=int, help="repeat the runs of that seed (default: a new one, printed)")
    parser.add_argument("--only", type=int, metavar="INDEX", help="repeat this run alone")
    parser.add_argument("--algorithm", action="append", choices=sorted(RUNS), help="only these (may be repeated)")
    asked = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    limit = asked.seconds if asked.seconds is not None else None if asked.runs or asked.only is not None else 60.0
    print(f"stress: seed {seed}", flush=True)
    begin, failures = time.monotonic(), []
    done, spent = Counter[str](), defaultdict[str, float](float)  # runs, and seconds: a graph's first run builds it
    indices: Sequence[int] = [asked.only] if asked.only is not None else range(asked.runs or sys.maxsize)
    for index in indices:
        before = time.monotonic()
        if limit is not None and before - begin > limit:
            break
        name, text, wrong = run_one(seed, index, asked.algorithm)
        done[name] += 1
        spent[name] += time.monotonic() - before
        if wrong is not None:
            failures.append(Failure(index, text, wrong))
            print(f"FAILED run {index}: {text}\n  {wrong}\n  again: --seed {seed} --only {index}", flush=True)
        if time.monotonic() - before > SLOW_S:
            print(f"slow: run {index} took {time.monotonic() - before:.0f} s: {text}", flush=True)
    for name, count in sorted(done.items()):
        print(f"  {count:7,d}  {spent[name]:7.1f} s  {name}")
    paths = sum(done[name] for name in SSSP_RUNS)
    took = time.monotonic() - begin
    print(f"stress: seed {seed}, {done.total():,} runs, {paths:,} of them shortest paths, {took:.0f} s")
    print(f"{done.total() - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
