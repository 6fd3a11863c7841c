"""Starts a module of ours in a Python of its own, whatever lies in the folder where the user stands.

``python -m NAME`` searches the current folder first, so a folder exchange/ or a file numpy.py there would be imported
instead of the real one (``python -P`` exists from 3.11 on only). ``isolated_command`` gives a command that runs this
file instead. Invariant: the folder of Tandem's packages comes first in sys.path; the current folder is in it only where
PYTHONPATH names it. ``--tied`` comes first of all: from then on the process does not outlive the one that started it.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(_HERE)  # the folder that holds Tandem's packages
_TIED = "--tied"
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9  # linux/prctl.h
# From here on Open MPI starts a machine's ranks from threads of mpirun. The kernel ties a process to the thread that
# started it, and such a thread may end before the job does.
_MOST_TIED = 32


def isolated_command(module: str, *, tied: bool = False, python: str | None = None, root: str = ROOT) -> list[str]:
    """``python -m MODULE``, isolated from the current folder. ``tied``: the kernel ends it with its parent."""
    return [python or sys.executable, os.path.join(root, "exchange", "isolated.py"), *([_TIED] if tied else []), module]


def tie_to_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it had ended before
        os._exit(1)


def _main(words: list[str]) -> None:
    # This file's own folder has names like text and files; nothing may be imported before it is gone.
    sys.path[:] = [ROOT, *(path for path in sys.path if path not in (_HERE, ROOT))]
    if words[0] == _TIED:
        if int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1")) < _MOST_TIED:
            tie_to_parent()
        words = words[1:]
    import runpy

    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
