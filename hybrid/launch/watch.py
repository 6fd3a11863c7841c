"""Watches mpirun and the ranks of a job, as the launcher: who stands still, and when that has lasted too long.

A rank computes, or waits by looking around many times a second, so its CPU time grows as long as it lives, also while a
kernel holds Python's lock for minutes. mpirun sleeps while nothing happens: it is silent only when it is stopped. Ranks
on other machines report by a process beside them (hybrid.launch.beat); one that has never done so is not judged. A
process under a debugger is not silent.
"""

from __future__ import annotations

import time

from hybrid.errors import EnvironmentProblem
from hybrid.launch.output import LaunchOutput
from hybrid.launch.processes import activity, is_marked, marked_pids, process_state
from hybrid.launch.silence import Silence
from hybrid.terminal import note

_STOPPED = "T"
_LOOKS = 8  # within the time after which silence counts
_LONGEST_PAUSE_S = 1.0


class RankWatch:
    """Looked at again and again; ``bound_s`` None: no silence is too long."""

    def __init__(self, mpirun_pid: int, mark: str, output: LaunchOutput, bound_s: float | None) -> None:
        self._mpirun_pid, self._mark, self._output = mpirun_pid, mark, output
        self._bound_s = bound_s or 0.0
        self._silence = None if bound_s is None else Silence(bound_s)
        self._looked_at = 0.0
        self._here: dict[int, int] | None = None  # pids of the ranks on this machine, once they have met
        self._stopped: set[str] = set()  # seen stopped at the last look
        self._mentioned: set[str] = set()

    def look(self) -> EnvironmentProblem | None:
        """Why the job must end, or None."""
        now = time.monotonic()
        if self._silence is None or now - self._looked_at < min(self._bound_s / _LOOKS, _LONGEST_PAUSE_S):
            return None
        self._looked_at = now
        stopped_before, self._stopped = self._stopped, set()
        silent = self._silence.look(self._signs(now), now)
        for name in (self._stopped & stopped_before) - self._mentioned:
            self._mentioned.add(name)
            note(f"{name} is stopped; the job ends if that lasts {self._bound_s:g} s (cluster.silence_timeout_s)")
        if silent is None:
            return None
        what = "has been stopped" if silent in self._stopped else "has given no sign of life"
        return EnvironmentProblem(
            f"{silent} {what} for {self._bound_s:g} s (cluster.silence_timeout_s); all ranks were ended, no result was "
            "written",
            fix="let a stopped process go on in time (kill -CONT PID), or raise that key (null: no limit)",
        )

    def _signs(self, now: float) -> dict[str, object]:
        mpirun = f"mpirun (pid {self._mpirun_pid})"
        state = process_state(self._mpirun_pid)
        signs: dict[str, object] = {mpirun: self._sign(mpirun, state, now, now)}
        for rank, pid in self._ranks_here().items():
            name = f"rank {rank} on {self._output.hosts[rank]} (pid {pid})"
            signs[name] = self._sign(name, process_state(pid), activity(pid), now)
        if self._here is None:  # they have not met: who is which rank is not known yet, but a stopped one is seen
            for pid in marked_pids(self._mark):
                if pid != self._mpirun_pid:
                    name = f"a rank that is starting (pid {pid})"
                    signs[name] = self._sign(name, process_state(pid), now, now)
        for rank, beats in self._output.beats.items():
            if rank not in self._ranks_here() and rank < len(self._output.hosts):
                signs[f"rank {rank} on {self._output.hosts[rank]}"] = beats
        return signs

    def _sign(self, name: str, state: str | None, living: object, now: float) -> object:
        """Of a process on this machine; mpirun notices one that has ended; a traced one is being debugged."""
        if state == _STOPPED:
            self._stopped.add(name)
            return _STOPPED
        return now if state in (None, "t") or living is None else living

    def _ranks_here(self) -> dict[int, int]:
        if self._here is None and self._output.pids:
            pids = enumerate(self._output.pids)
            self._here = {rank: pid for rank, pid in pids if is_marked(pid, self._mark)}
        return self._here or {}
