"""The command that starts a job's ranks: which launcher, where, with how many threads. Decides, starts nothing.

``build_launch`` is a pure function of the configuration, the machine and the kind of launcher, so that what a user gets
on a cluster can be tested on a laptop. hybrid.launch.process runs it, hybrid.launch.output reads what it says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpu_engine.graph.memory import available_bytes
from exchange.isolated import isolated_command
from hybrid.checkout import MPI, install_packages
from hybrid.config.schema import ClusterConfig, Config
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.launch.environment import LAUNCHED_RANKS
from hybrid.terminal import plural

VERSION_TIMEOUT_S = 30.0
_RANK_BYTES = 100 << 20  # a rank is never smaller: Python, numba, MPI
_ALLOCATIONS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")  # a batch system has counted the slots
# What ranks on other machines need to find the same program, cache and settings; those on this one inherit it anyway.
_FORWARDED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "TANDEM_CACHE", "NUMBA_CACHE_DIR")
_FLAVOURS = {"open mpi": "openmpi", "openrte": "openmpi", "prrte": "openmpi", "hydra": "hydra", "intel(r) mpi": "hydra"}


@dataclass(frozen=True)
class Machine:
    """What of this machine and process decides how ranks are started."""

    cores: int
    root: bool
    allocated: bool  # inside a batch system's allocation
    python: str
    project: Path
    environment: Mapping[str, str]
    free_bytes: int | None = None  # of memory; None where the system does not say


@dataclass(frozen=True)
class Launch:
    """A command ready to run, what it adds to the environment, and what the user should know."""

    command: tuple[str, ...]
    environment: dict[str, str]
    notes: tuple[str, ...]
    here: bool = False  # all ranks are on this machine


def this_machine() -> Machine:
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        root=os.geteuid() == 0,
        allocated=any(name in os.environ for name in _ALLOCATIONS),
        python=sys.executable,
        project=Path(__file__).resolve().parents[2],
        environment=os.environ,
        free_bytes=available_bytes(),
    )


def find_launcher(configured: str | None, python: str = sys.executable, path: str | None = None) -> str:
    """The mpirun to use: the configured one, the one beside the Python in use, the first in PATH."""
    if configured is not None:
        found = shutil.which(configured, path=path)
        if found is None:
            fix = "name an mpirun, or set it to null"
            raise ConfigError("cluster.mpirun: no such program", value=configured, fix=fix)
        return found
    beside = Path(python).parent / "mpirun"
    launcher = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpirun", path=path)
    launcher = launcher or shutil.which("mpiexec", path=path)
    if launcher is None:
        raise EnvironmentProblem(
            "no mpirun beside this Python nor in PATH", fix=f"{install_packages(*MPI)}; or set cluster.mpirun"
        )
    return launcher


def launcher_flavour(version_text: str) -> str:
    """Whose options a launcher takes, by what it says of its version: openmpi, hydra (MPICH, Intel MPI) or unknown."""
    version = version_text.lower()
    return next((flavour for word, flavour in _FLAVOURS.items() if word in version), "unknown")


def ask_flavour(launcher: str, timeout_s: float = VERSION_TIMEOUT_S) -> str:
    """Ask the launcher itself."""
    try:
        done = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=timeout_s)  # noqa: S603 - the configured launcher
    except subprocess.TimeoutExpired as error:
        raise no_answer(f"{launcher} --version", timeout_s) from error
    except OSError as error:
        raise EnvironmentProblem(
            f"{launcher} does not start: {error}", fix=f"{install_packages(*MPI, again=True)}; or set cluster.mpirun"
        ) from error
    return launcher_flavour(done.stdout + done.stderr)


def no_answer(command: str, timeout_s: float) -> EnvironmentProblem:
    """The error for a launcher that was stopped, hangs, or waits for a machine: installing it again would not help."""
    return EnvironmentProblem(
        f"`{command}` did not answer within {timeout_s:g} s and was ended",
        fix="run it in a shell to see what it waits for (a stopped process, a file system or a host that does not "
        "respond); then start the job again, or set cluster.mpirun to another launcher",
    )


def threads_on_this_machine(config: Config, machine: Machine) -> int | None:
    """CPU threads of each rank; None where every machine finds out for itself (hybrid.ranks.rendezvous)."""
    for wanted in (config.cluster.threads_per_rank, config.threads):
        if wanted != "auto":
            return int(wanted)
    return None if elsewhere(config.cluster, machine) else max(1, machine.cores // config.ranks)


def build_launch(
    config: Config, machine: Machine, launcher: str, flavour: str, arguments: Sequence[str], module: str = "hybrid"
) -> Launch:
    """The command that runs ``tandem ARGUMENTS``, or another module of ours, on every rank."""
    cluster = config.cluster
    if cluster.hostfile is not None and not Path(cluster.hostfile).is_file():
        raise ConfigError("cluster.hostfile: no such file", value=cluster.hostfile, fix="check the path")
    threads = threads_on_this_machine(config, machine)
    own = {LAUNCHED_RANKS: str(config.ranks), "PYTHONUNBUFFERED": "1"}
    searched = [str(machine.project), *filter(None, [machine.environment.get("PYTHONPATH")])]
    own["PYTHONPATH"] = os.pathsep.join(searched)
    if threads is not None:
        own |= {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    here = not elsewhere(cluster, machine)
    if here:
        _require_room(config.ranks, machine.free_bytes)
    busy = config.ranks * (threads or 1) + (config.npu.threads if config.npu.mode != "off" else 0)
    crowded = here and busy > machine.cores
    make = _hydra_options if flavour == "hydra" else _openmpi_options
    options = make(config, machine, {**machine.environment, **own}, own, here, crowded)
    program = isolated_command("mpi4py", tied=True, python=machine.python, root=str(machine.project))
    program += ["-m", module, *arguments]
    notes = []
    if here and config.ranks > machine.cores:
        notes.append(
            f"{config.ranks} ranks on {plural(machine.cores, 'CPU')} take turns: right for trying things out, "
            f"slower than ranks: {machine.cores}"
        )
    if flavour == "unknown":
        notes.append(f"{launcher} does not say which MPI it is; it is given Open MPI's options")
    command = (launcher, "-n", str(config.ranks), *options, *cluster.mpirun_args, *program)
    return Launch(command, own, tuple(notes), here)


def _require_room(ranks: int, free_bytes: int | None) -> None:
    if free_bytes is not None and ranks * _RANK_BYTES > free_bytes:
        raise EnvironmentProblem(
            f"{ranks} ranks do not fit into this machine's memory: {free_bytes >> 20:,} MiB are free, and each takes "
            f"{_RANK_BYTES >> 20} MiB before it has a graph",
            fix="fewer ranks, or several machines (cluster.hosts); `tandem partition --ranks P` needs one process only",
        )


def elsewhere(cluster: ClusterConfig, machine: Machine) -> bool:
    """Whether ranks may run on other machines than this one."""
    return bool(cluster.hosts) or cluster.hostfile is not None or machine.allocated


def _openmpi_options(
    config: Config, machine: Machine, environment: Mapping[str, str], own: Mapping[str, str], here: bool, crowded: bool
) -> list[str]:
    cluster = config.cluster
    options = ["--allow-run-as-root"] if machine.root else []
    if cluster.hosts:
        options += ["--host", ",".join(cluster.hosts)]
    if cluster.hostfile is not None:
        options += ["--hostfile", cluster.hostfile]
    if here:
        # Never "not enough slots" on one's own machine: it counts cores without their hardware threads.
        options += ["--map-by", ":OVERSUBSCRIBE"]
    bind = "none" if cluster.bind == "auto" else "package" if cluster.bind == "socket" else cluster.bind
    options += ["--bind-to", bind]
    if crowded:
        options += ["--mca", "mpi_yield_when_idle", "1"]
    if not here:
        # Over TCP, who loses a peer aborts; a moment later, mpirun has seen which rank was killed, and can name it.
        options += ["--mca", "opal_abort_delay", "1"]
    for name in dict.fromkeys((*_FORWARDED, *own)):
        if name in environment and not here:
            options += ["-x", name]
    return options


def _hydra_options(
    config: Config, machine: Machine, environment: Mapping[str, str], own: Mapping[str, str], here: bool, crowded: bool
) -> list[str]:
    """MPICH and Intel MPI: no slots to exceed, root allowed, the environment forwarded by itself."""
    cluster = config.cluster
    options = ["-hosts", ",".join(cluster.hosts)] if cluster.hosts else []
    if cluster.hostfile is not None:
        options += ["-f", cluster.hostfile]
    if cluster.bind not in ("auto", "none"):
        options += ["-bind-to", cluster.bind]
    return options
