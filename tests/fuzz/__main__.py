"""``python -m tests.fuzz NAME``: runs the cases of one fuzzer within bounds of memory and time; tells how to repeat."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType, ModuleType

FUZZERS = ("config", "exchange", "http", "readers", "store")  # modules of this package
MEMORY_MB = 512  # unless a module says otherwise
CASE_S = 30  # no case takes a second; this is the end of a case that hangs


class Hangs(BaseException):
    """A case that does not end."""


def run_case(fuzzer: ModuleType, seed: int, number: int) -> None:
    """One case: nothing but seed and number decides what happens in it."""
    signal.alarm(CASE_S)
    try:
        fuzzer.case(random.Random(f"{fuzzer.__name__}/{seed}/{number}"))
    finally:
        signal.alarm(0)


def run(name: str, cases: int, seed: int, first: int) -> int:
    """How many cases failed: 0 or 1, since the first failure ends the run."""
    fuzzer = importlib.import_module(f"tests.fuzz.{name}")
    signal.signal(signal.SIGALRM, _raise_hangs)
    memory_mb = getattr(fuzzer, "MEMORY_MB", MEMORY_MB)
    began = time.perf_counter()
    with getattr(fuzzer, "opened", contextlib.nullcontext)():
        before_mb = _resident_mb()
        _limit_memory(memory_mb)
        for number in range(first, first + cases):
            try:
                run_case(fuzzer, seed, number)
                if _resident_mb() - before_mb > memory_mb:
                    raise MemoryError(f"{_resident_mb() - before_mb:.0f} MB more than at the start")
            except (Exception, Hangs):
                traceback.print_exc()
                print(f"{name}: case {number} failed; again: --seed {seed} --first {number} --cases 1", flush=True)
                return 1
        took_s, grown_mb = time.perf_counter() - began, _resident_mb() - before_mb
    print(f"{name}: {cases} cases of seed {seed} in {took_s:.1f} s, none failed; memory grew by {grown_mb:.0f} MB")
    return 0


def _raise_hangs(number: int, frame: FrameType | None) -> None:
    raise Hangs(f"no end within {CASE_S} s")


def _limit_memory(more_mb: int) -> None:
    """What is allocated beyond this fails at once, rather than slowing the machine down."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2 * (more_mb << 20), hard))


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", choices=FUZZERS)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case (default: 0)")
    options = parser.parse_args()
    print(f"{options.name}: seed {options.seed}", flush=True)
    return run(options.name, options.cases, options.seed, options.first)


if __name__ == "__main__":
    sys.exit(main())
