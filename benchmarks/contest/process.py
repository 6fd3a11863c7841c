"""A contestant's own process, as the contest sees it: requests and replies are lines of JSON.

Each contestant sits in a process of its own: its memory is counted apart, its thread pool is not disturbed by another
library's, a crash is its own, and what it prints does not mix with anything. Invariant: ``close`` leaves no process.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from benchmarks.contest.rounds import ContestantFailed, Finding, Root, Turn, WrongResult
from benchmarks.peers import OURS
from exchange.isolated import isolated_command

PROJECT = Path(__file__).resolve().parents[2]
TURN_LIMIT_S = 0.25  # a turn makes no further run once it took this long: slow contestants repeat less
STOP_GRACE_S = 3.0
_POOLS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def thread_settings(threads: int) -> dict[str, str]:
    """The environment in which every thread pool has ``threads`` threads."""
    return {**os.environ, **dict.fromkeys(_POOLS, str(threads))}


class Seat:
    """One child process that holds one adapter (benchmarks/peers)."""

    def __init__(self, adapter: str, threads: int, log: Path, time_limit_s: float) -> None:
        self.adapter, self.log, self.time_limit_s = adapter, log, time_limit_s
        paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**thread_settings(threads), "PYTHONPATH": os.pathsep.join(paths)}
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*isolated_command("benchmarks.contest.child", root=str(PROJECT)), adapter, str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
            )  # fmt: skip
        self._unread = b""

    def ask(self, request: str, **details: Any) -> dict[str, Any]:
        """Send one request and wait for its reply; ContestantFailed if there is none, or it is an error."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps({"do": request, **details}).encode() + b"\n")
            stdin.flush()
        except OSError:
            raise ContestantFailed(self._last_words()) from None
        reply: dict[str, Any] = json.loads(self._line(stdout))
        if "error" in reply:
            raise (WrongResult if reply.get("wrong") else ContestantFailed)(reply["error"])
        return reply

    def _line(self, stdout: IO[bytes]) -> bytes:
        deadline = time.monotonic() + self.time_limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._process.kill()  # it had its time; no politeness
                    self.close()
                    raise ContestantFailed(f"it took over {self.time_limit_s:g} s (--time-limit)")
                part = os.read(stdout.fileno(), 1 << 16)
                if not part:
                    raise ContestantFailed(self._last_words())
                self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        code = self._process.wait(STOP_GRACE_S)
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"its process ended with code {code}" + (f": {lines[-1][:200]}" if lines else "")

    def close(self) -> None:
        """End the process, politely, then not."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # what it did not take any more is no loss
                    stream.close()
        try:
            process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class SeatedContestant:
    """One way (``variant``) in which the adapter of a seat traverses, in user or internal ids."""

    def __init__(self, name: str, seat: Seat, variant: str, ids: str, expected: dict[Root, Finding]) -> None:
        self.name, self.ids, self.ours = name, ids, seat.adapter == OURS
        self._seat, self._variant, self._expected = seat, variant, expected

    def turn(self, root: Root, trials: int) -> Turn:
        return self.turn_at(root.internal if self.ids == "internal" else root.position, trials)

    def turn_at(self, number: int, trials: int) -> Turn:
        """A turn from the vertex that the adapter calls ``number``."""
        reply = self._seat.ask("turn", variant=self._variant, root=number, trials=trials, limit_s=TURN_LIMIT_S)
        return Turn(tuple(reply.pop("seconds")), Finding(**reply))

    def expected(self, root: Root) -> Finding:
        return self._expected[root]

    def memory_bytes(self) -> int | None:
        """What its graph holds and a run adds, at the height."""
        found = self._seat.ask("memory", variant=self._variant)
        known = [size for size in (found["held_bytes"], found["run_bytes"]) if size is not None]
        return sum(known) if len(known) == 2 else None
