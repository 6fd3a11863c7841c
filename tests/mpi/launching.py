"""Real ranks for a test: start mpirun, wait no longer than allowed, leave nobody behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.conftest import ROOT

_LAUNCHERS_OWN = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_")
_GRACE_S = 5


def run_ranks(
    script: Path | str,
    n: int,
    timeout_s: float = 60,
    arguments: Sequence[str] = (),
    options: Sequence[str] = (),
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a Python file on ``n`` ranks, one thread each; an uncaught exception of one ends all.

    TimeoutError, with what was said so far, if it takes too long; all its processes are gone then. ``options`` are
    mpirun's.
    """
    mpirun = Path(sys.executable).with_name("mpirun")
    command = [str(mpirun), "-n", str(n), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command += [*options, sys.executable, "-m", "mpi4py", str(script), *arguments]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_LAUNCHERS_OWN)}
    clean |= {"PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **(environment or {})}
    process = subprocess.Popen(
        command, cwd=ROOT, env=clean, text=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end_family(process)
        out, errors = process.communicate()
        raise TimeoutError(f"{n} ranks took more than {timeout_s:g} s\n{out[-2000:]}\n{errors[-2000:]}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _end_family(process: subprocess.Popen[str]) -> None:
    """The ranks are in groups of their own, so they are found before their launcher is gone."""
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGTERM)
    psutil.wait_procs(family, timeout=_GRACE_S)
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
