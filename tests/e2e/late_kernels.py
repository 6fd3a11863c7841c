"""A program: run a job, on ranks in this process if there are several, and print the kernels that were loaded late.

Late is whatever numba compiles, or loads from its cache, once the job has warmed up and its searches have begun.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from inspect import isgeneratorfunction
from typing import Any

from numba.core.dispatcher import Dispatcher

from hybrid.config import load_config
from hybrid.job.core import JobCore
from hybrid.job.driver import Job, run_job
from hybrid.ranks.backend import OnRanks
from tests.property.ranks.test_ranks_library_job import run_on

late: list[str] = []
timed = 0  # sections that are under way
usual = Dispatcher.compile


def compile_and_note(self: Any, signature: Any) -> Any:
    if timed:
        late.append(self.py_func.__name__)
    return usual(self, signature)


@contextmanager
def timed_section() -> Iterator[None]:
    global timed
    timed += 1
    try:
        yield
    finally:
        timed -= 1


def note_section(owner: Any, name: str) -> None:
    """Nothing may be loaded while this function runs, or this driver, of whichever rank."""
    usual_way = getattr(owner, name)

    def call(*given: Any) -> Any:
        with timed_section():
            return usual_way(*given)

    def drive(*given: Any) -> Generator[Any, Any, Any]:
        with timed_section():
            found = yield from usual_way(*given)
        return found

    setattr(owner, name, drive if isgeneratorfunction(usual_way) else call)


def main(ranks: str, *settings: str) -> None:
    Dispatcher.compile = compile_and_note
    note_section(Job, "_run_all")
    note_section(JobCore, "compare")
    note_section(OnRanks, "compare")
    config = load_config(None, settings)
    if ranks == "1":
        run_job(config)
    else:
        run_on("a" * int(ranks), config)
    print("late:", *sorted(set(late)))


main(*sys.argv[1:])
