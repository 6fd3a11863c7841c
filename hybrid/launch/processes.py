"""What the kernel says of a process of this machine. Reads /proc, decides nothing."""

from __future__ import annotations

from pathlib import Path

_ENDED = ("Z", "X")  # a zombie computes nothing: only its parent has not asked for its exit code yet


def process_state(pid: int) -> str | None:
    """The letter of proc(5): R, S, D, T (stopped), t (traced) and others; None once the process has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state = status.rpartition(")")[2].split()[0]  # its name is in parentheses and may hold anything
    return None if state in _ENDED else state


def activity(pid: int) -> object:
    """Something that changes whenever the process has run; None once it has ended, or where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        ran_ns = Path(f"/proc/{pid}/schedstat").read_text().split()[0]  # of the main thread, and finer than ticks
    except (OSError, IndexError):
        return None
    return (*fields[11:13], ran_ns)  # utime and stime of all threads
