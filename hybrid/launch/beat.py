"""The process beside a rank on another machine than the launcher's: says again and again that the rank lives.

A thread of the rank could not: a kernel may hold Python's lock for minutes. It ends with its rank, at once: the kernel
sees to it. Run as ``hybrid.launch.beat RANK PERIOD_S``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from exchange.isolated import isolated_command, tie_to_parent
from hybrid.launch.announce import alive_line
from hybrid.launch.processes import activity

_BEATS = 8  # within the time after which silence counts
_LONGEST_PERIOD_S = 10.0


@contextlib.contextmanager
def beating(rank: int, silence_timeout_s: float | None) -> Iterator[None]:
    """Within the block the launcher hears that this rank lives; None: it does not listen."""
    if silence_timeout_s is None:
        yield
        return
    period_s = min(silence_timeout_s / _BEATS, _LONGEST_PERIOD_S)
    command = [*isolated_command("hybrid.launch.beat"), str(rank), str(period_s)]
    beside = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own module
    try:
        yield
    finally:
        beside.kill()
        beside.wait()


def main(words: list[str]) -> None:
    rank, period_s = int(words[0]), float(words[1])
    parent = os.getppid()
    tie_to_parent()
    last: object = None
    while os.getppid() == parent:
        now = activity(parent)
        if now != last:
            os.write(1, alive_line(rank).encode())
        last = now
        time.sleep(period_s)


if __name__ == "__main__":
    main(sys.argv[1:])
