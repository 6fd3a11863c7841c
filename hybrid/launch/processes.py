"""What the kernel says of a process of this machine, and the mark that a launcher puts into the environment of all it
starts: ranks find their launcher by it, and it them.

Processes inherit the mark, so the launcher finds each one on its machine, whatever has become of mpirun.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path

LAUNCHER = "TANDEM_LAUNCHER"
_LOOK_S = 0.01
_ENDED = ("Z", "X")  # a zombie computes nothing: only its parent has not asked for its exit code yet


def _status(pid: int) -> list[str]:
    """The fields of proc(5) behind the process's name, which is in parentheses and may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def process_state(pid: int) -> str | None:
    """The letter of proc(5): R, S, D, T (stopped), t (traced) and others; None once the process has ended."""
    try:
        state = _status(pid)[0]
    except OSError:
        return None
    return None if state in _ENDED else state


def activity(pid: int) -> object:
    """Something that changes whenever the process has run; None once it has ended, or where the system does not say."""
    try:
        ran_ns = Path(f"/proc/{pid}/schedstat").read_text().split()[0]  # of the main thread, and finer than ticks
        return (*_status(pid)[11:13], ran_ns)  # utime and stime of all threads
    except (OSError, IndexError):
        return None


def new_mark() -> str:
    """Unlike that of any other start."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}"


def launcher_here(environment: Mapping[str, str]) -> int | None:
    """The process id of the launcher, where it runs on this machine."""
    host, _, rest = environment.get(LAUNCHER, "").partition("/")
    pid = rest.partition("/")[0]
    return int(pid) if host == socket.gethostname() and pid.isdecimal() and process_state(int(pid)) else None


def is_marked(pid: int, mark: str) -> bool:
    """Whether a living process of this machine was started under the mark."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or it is another user's
        return False
    return f"{LAUNCHER}={mark}".encode() in environment.split(b"\0") and process_state(pid) is not None


def end_marked(mark: str, limit_s: float) -> None:
    """Kill what still runs under the mark, and wait until it is gone, at most so long."""
    until = time.monotonic() + limit_s
    while (left := marked_pids(mark)) and time.monotonic() < until:
        for pid in left:
            kill_marked(pid, mark)
        time.sleep(_LOOK_S)


def marked_pids(mark: str) -> list[int]:
    """The processes of this machine that run under the mark."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and is_marked(int(name), mark)]
    return []


def kill_marked(pid: int, mark: str) -> None:
    """Through a handle that is taken before the second look: never another process with the same number."""
    with contextlib.suppress(OSError, AttributeError):  # a Python built for an old kernel knows no handles
        handle = os.pidfd_open(pid)
        try:
            if is_marked(pid, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
