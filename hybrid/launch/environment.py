"""Whether a launcher started this process as one of several ranks, judged by the environment alone. Pure.

Launchers say so in variables of their own, before MPI is asked. So a job knows whether it must start its ranks itself,
and sees a launcher that does not belong to the MPI library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.checkout import MPI, install_packages
from hybrid.errors import ConfigError, EnvironmentProblem

LAUNCHED_RANKS = "TANDEM_LAUNCHED_RANKS"  # set by our own launcher


@dataclass(frozen=True)
class MpiEnvironment:
    """The ranks as the launcher counts them."""

    launcher: str
    size: int
    rank: int
    ours: bool = False  # started by hybrid.launch.command, which reads what the ranks announce


@dataclass(frozen=True)
class _Mark:
    """The variables by which one kind of launcher is known; the first size that is there counts."""

    launcher: str
    rank: str
    sizes: tuple[str, ...]
    alone_counts: bool  # whether a size of 1 is a world: a Slurm shell is a step of one task, too


_MARKS = (
    _Mark("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",), True),
    _Mark("MVAPICH's mpirun", "MV2_COMM_WORLD_RANK", ("MV2_COMM_WORLD_SIZE",), True),
    # srun sets SLURM_STEP_NUM_TASKS in a step only; SLURM_NTASKS and SLURM_PROCID are in every batch script, too.
    _Mark("srun", "SLURM_PROCID", ("SLURM_STEP_NUM_TASKS",), False),
    _Mark("mpiexec", "PMI_RANK", ("PMI_SIZE",), True),
    _Mark("flux", "FLUX_TASK_RANK", ("FLUX_JOB_SIZE",), False),
    _Mark("a PMIx launcher", "PMIX_RANK", ("PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), False),
)


def detect_mpi_environment(environment: Mapping[str, str]) -> MpiEnvironment | None:
    """The world that this process was started into, None if it was started alone."""
    launched = _number(environment.get(LAUNCHED_RANKS))
    for mark in _MARKS:
        rank = _number(environment.get(mark.rank))
        size = next((found for name in mark.sizes if (found := _number(environment.get(name))) is not None), None)
        if rank is None or size is None or not (size > 1 or mark.alone_counts):
            continue
        return MpiEnvironment(mark.launcher, size if launched is None else launched, rank, ours=launched is not None)
    if launched is not None:  # mpirun is of a kind that says nothing
        return MpiEnvironment("the configured mpirun", launched, 0, ours=True)
    return None


def agreed_ranks(configured: int, world: MpiEnvironment) -> int:
    """How many ranks the job has: as many as were started, which the configuration must not contradict."""
    if configured not in (1, world.size):
        raise ConfigError(
            f"ranks: {world.launcher} has started {world.size}, the configuration wants {configured}",
            value=configured,
            fix=f"set ranks to {world.size} (or 1, which takes what there is), or start {configured}",
        )
    return world.size


def require_same_size(world: MpiEnvironment, size: int, library: str) -> None:
    """MPI must see the ranks that were started; a launcher of another MPI leaves each of them alone in its own."""
    if size == world.size:
        return
    if size == 1:
        raise EnvironmentProblem(
            f"{world.launcher} started {world.size} ranks, but each is rank 0 of 1 to {library}, the library that "
            "mpi4py uses: launcher and library do not belong together",
            fix=_matching_launcher(world, library),
        )
    raise EnvironmentProblem(
        f"{world.launcher} says that there are {world.size} ranks, {library} says {size}",
        fix="start the job from a clean environment: variables of another launcher are left in this one",
    )


def _matching_launcher(world: MpiEnvironment, library: str) -> str:
    if world.launcher == "srun":
        return "srun --mpi=pmix (see srun --mpi=list), or mpirun of that library inside the allocation"
    return f"set cluster.mpirun to the mpirun of {library} (a matching pair: {install_packages(*MPI)})"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None
