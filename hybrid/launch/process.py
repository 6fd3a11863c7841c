"""Runs the command that starts the ranks: forwards what they say, ends them for certain, tells how the job ended.

Invariant: when ``run_launch`` returns or raises, the launcher and the ranks on this machine are gone, and so is every
folder that they had announced and did not finish. The result gets its name last of all, when launcher and ranks have
ended well: an error and a result exclude each other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from exchange.filesystem.scratch import remove_folder
from hybrid.errors import EnvironmentProblem
from hybrid.interrupts import interrupts_held
from hybrid.launch.command import Launch
from hybrid.launch.output import LaunchOutput
from hybrid.launch.processes import LAUNCHER, end_marked, new_mark
from hybrid.launch.shared_memory import segments_of
from hybrid.launch.watch import RankWatch
from hybrid.results.folder import put_in_place

_GRACE_S = 5.0  # mpirun needs about one to end its ranks
_LOOK_INTERVAL_S = 0.2
_BLOCK = 1 << 16
# Becomes the launcher, after asking the kernel for SIGTERM when we end: if we are killed outright, it must not go on.
_TIED = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
parent, launcher, *arguments = sys.argv[1:]
if os.getppid() == int(parent):
    os.execv(launcher, [launcher, *arguments])
"""
_REMOVABLE = (".partial", "tandem-exchange-", "tandem-graph-", "tandem-worker-")  # in names of ours only


@dataclass(frozen=True)
class Launched:
    """A launcher that was started, and the mark of all that it starts."""

    process: subprocess.Popen[bytes]
    mark: str


def run_launch(
    launch: Launch, launch_timeout_s: float, silence_timeout_s: float | None = None, output: LaunchOutput | None = None
) -> tuple[int, EnvironmentProblem | None]:
    """Run to the end; the job's exit code, and the error that is still to be reported.

    ``output`` knows afterwards what the ranks have announced. ``silence_timeout_s``: a rank or mpirun that stands still
    for so long ends the job.
    """
    output = LaunchOutput() if output is None else output
    ended_well = settled = False
    with segments_of(launch) as launch:
        with interrupts_held():
            launched = start_launcher(launch)
        watch = RankWatch(launched.process.pid, launched.mark, output, silence_timeout_s)
        try:
            code = _forward(launched.process, output, launch_timeout_s, watch)
            ended_well = code == 0 and output.finished
        finally:
            try:
                with interrupts_held():
                    end_launcher(launched)
                    settled = _settle(output, ended_well)
            except KeyboardInterrupt:
                if not settled:  # else it came too late: the job has ended, and its result is there
                    raise
    return output.verdict(code)


def _settle(output: LaunchOutput, ended_well: bool) -> bool:
    """The result under its name, or nothing of the job; whether the result is there."""
    settled = False
    try:
        if ended_well and output.folder is not None:
            put_in_place(*map(Path, output.folder))
        settled = ended_well
    finally:
        if not settled:
            _remove(output.made)
    return settled


def start_launcher(launch: Launch) -> Launched:
    """A launcher that the kernel signals to end when the thread that calls this ends."""
    mark = new_mark()
    try:
        # Its own session: Ctrl-C reaches us alone, and we end the launcher in order.
        process = subprocess.Popen(  # noqa: S603 - the configured launcher
            (sys.executable, "-ISc", _TIED, str(os.getpid()), *launch.command),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **launch.environment, LAUNCHER: mark}, start_new_session=True,
        )  # fmt: skip
        return Launched(process, mark)
    except OSError as error:
        raise EnvironmentProblem(
            f"{launch.command[0]} does not start: {error.strerror}", fix="set cluster.mpirun to an mpirun that does"
        ) from error


def _forward(process: subprocess.Popen[bytes], output: LaunchOutput, launch_timeout_s: float, watch: RankWatch) -> int:
    """Pass on every line until both streams are closed."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + launch_timeout_s
    with selectors.DefaultSelector() as selector:
        for stream, to in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            show = partial(print, file=to, flush=True)
            selector.register(stream, selectors.EVENT_READ, Lines(stream, output, show))
        while selector.get_map():
            for ready, _ in selector.select(_LOOK_INTERVAL_S):
                if not ready.data.pump():
                    selector.unregister(ready.fileobj)
            if not output.met and time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"the ranks have not met within {launch_timeout_s:g} s (cluster.launch_timeout_s)",
                    fix="check that every host can be reached and starts Python, or allow more time",
                )
            silent = watch.look()
            if silent is not None:
                raise silent
    for line in output.finish():
        print(line, file=sys.stderr, flush=True)
    return process.wait()


class Lines:
    """One stream, cut into lines, of which those that ``output`` lets pass are shown."""

    def __init__(self, stream: IO[bytes], output: LaunchOutput, show: Callable[[str], None]) -> None:
        self._stream, self._output, self._show = stream, output, show
        self._rest = b""

    def pump(self) -> bool:
        """Pass on what is there; False at the end of the stream."""
        block = os.read(self._stream.fileno(), _BLOCK)
        *lines, self._rest = (self._rest + block).split(b"\n")
        if not block and self._rest.strip():
            lines.append(self._rest)
        for line in lines:
            for shown in self._output.feed(line.decode(errors="replace").rstrip("\r")):
                self._show(shown)
        return bool(block)


def end_launcher(launched: Launched) -> None:
    """Ask, then force. mpirun passes SIGTERM on to its ranks, here and elsewhere; a stopped one must go on to do so.

    Ranks that mpirun could not end, as it was killed itself, are ended here.
    """
    process = launched.process
    for signal_numbers, patience_s in (((signal.SIGTERM, signal.SIGCONT), _GRACE_S), ((signal.SIGKILL,), None)):
        if process.poll() is not None:
            break
        for signal_number in signal_numbers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    end_marked(launched.mark, _GRACE_S)
    remove_folder(Path(tempfile.gettempdir(), f"ompi.{process.pid}"))  # a killed mpirun leaves it
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _remove(paths: list[str]) -> None:
    """What killed ranks could not take away themselves; those on other machines are swept by the next job there."""
    for path in map(Path, paths):
        if any(part in path.name for part in _REMOVABLE):
            remove_folder(path)
        else:
            with contextlib.suppress(OSError):
                path.rmdir()  # a reserved name under results/: only while empty
