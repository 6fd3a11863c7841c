"""One rank as a process: finds the others, runs its side of the job, and ends all ranks if it must end.

Invariant: a rank that cannot go on says so in one line (its number, its machine, the reason, the fix) and ends all
ranks at once; no rank waits for one that is gone.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn, TypeVar

from cpu_engine.comm.collectives import RankInfo, barrier
from cpu_engine.errors import ExplainedError
from exchange.escape import PrintableFormatter
from hybrid.checkout import MPI, install_packages
from hybrid.config.schema import Config
from hybrid.errors import EXIT_INTERNAL, EnvironmentProblem, explain_failure
from hybrid.job.warm_up import set_threads
from hybrid.launch.announce import Announcer
from hybrid.launch.beat import beating
from hybrid.launch.environment import MpiEnvironment, require_same_size
from hybrid.launch.processes import launcher_here
from hybrid.ranks.backend import drive_on_rank
from hybrid.ranks.rendezvous import Agreed, rendezvous, wanted_threads
from hybrid.results.record import Finished, result_folder

if TYPE_CHECKING:
    from cpu_engine.comm.mpi import MpiTransport

T = TypeVar("T")
_HEARD_S = 0.2  # mpirun may drop what a rank has said a moment before it aborts


def run_on_ranks(config: Config, world: MpiEnvironment) -> Finished | None:
    """This rank's part of the job; the result at rank 0, unless our launcher gives it its name and tells of it.

    ``config.ranks`` is the world's size.
    """
    return among_ranks(config, world, _run)


def among_ranks(
    config: Config, world: MpiEnvironment, run: Callable[[Config, MpiTransport, Announcer, int | None], T | None]
) -> T | None:
    """Join the others and run this rank's side; an error on any rank ends all of them, with one line that says why."""
    announcer = Announcer(world.ours)
    transport = join_world(world, announcer)
    if transport is None:
        return None
    try:
        launcher_pid = launcher_here(os.environ) if world.ours else None
        elsewhere = world.ours and launcher_pid is None
        with beating(transport.rank, config.cluster.silence_timeout_s) if elsewhere else nullcontext():
            return run(config, transport, announcer, launcher_pid)
    except Agreed as agreed:
        if transport.rank == 0:
            tell_failure(transport, announcer, agreed.error)
            time.sleep(_HEARD_S)
        transport.run(barrier())  # no rank ends before rank 0 has said it
        sys.exit(explain_failure(agreed.error)[1])
    except KeyboardInterrupt as error:
        _leave(transport, world, error)
    except BaseException as error:
        tell_failure(transport, announcer, error)
        end_all(transport, explain_failure(error)[1])


def join_world(world: MpiEnvironment, announcer: Announcer) -> MpiTransport | None:
    """MPI's view of the world, which must be the launcher's; None where rank 0 tells that it is not."""
    try:
        from cpu_engine.comm.mpi import MpiTransport
        from cpu_engine.comm.probe import library_name
    except ImportError as error:
        raise EnvironmentProblem(f"MPI cannot be used: {error}", fix=install_packages(*MPI)) from error
    transport = MpiTransport()
    try:
        require_same_size(world, transport.size, library_name())
    except EnvironmentProblem:
        if world.rank != 0:
            return None
        announcer.failed(0, transport.host)
        raise
    return transport


def _run(config: Config, transport: MpiTransport, announcer: Announcer, launcher_pid: int | None) -> Finished | None:
    """``launcher_pid``: a launcher on this machine, which puts the result under its name once all ranks have ended."""
    info = meet(config, transport, announcer)
    if info.rank != 0:
        transport.run(drive_on_rank(info, config, None, announcer))
        return None
    with result_folder(config, launcher_pid) as folder:
        announcer.made(folder.path, *([folder.final] if folder.reserved else []))
        summary = transport.run(drive_on_rank(info, config, folder, announcer))
        if launcher_pid is None:
            transport.finalize()  # every rank has come as far: what could still fail, has not
    assert summary is not None
    if launcher_pid is not None:
        announcer.finished(folder.path, folder.final)
        return None
    announcer.finished()
    return Finished(folder.final, summary)


def meet(config: Config, transport: MpiTransport, announcer: Announcer) -> RankInfo:
    """Know the others, and take this rank's share of the machine's CPUs."""
    met = transport.run(rendezvous(transport.rank, transport.size, transport.host))
    info = met.info
    for handler in logging.getLogger().handlers:
        handler.setFormatter(PrintableFormatter(f"%(levelname)s: rank {info.rank} on {info.host}: %(message)s"))
    set_threads(wanted_threads(config, met))
    if info.rank == 0:
        announcer.met(list(info.hosts), met.pids)
    return info


def tell_failure(transport: MpiTransport, announcer: Announcer, error: BaseException) -> None:
    told, code = explain_failure(error)
    trace = "".join(traceback.format_exception(error)) if code == EXIT_INTERNAL else ""
    # What is wrong with the configuration or the graph is wrong wherever it is noticed.
    everywhere = transport.rank == 0 and isinstance(error, ExplainedError)
    who = "" if everywhere else f"rank {transport.rank} on {transport.host}: "
    announcer.failed(transport.rank, transport.host, f"{trace}tandem: error: {who}{told}\n")


def end_all(transport: MpiTransport, code: int) -> NoReturn:
    sys.stdout.flush()
    time.sleep(_HEARD_S)
    transport.abort(code)
    os._exit(code)


def _leave(transport: MpiTransport, world: MpiEnvironment, error: KeyboardInterrupt) -> NoReturn:
    """Told to stop: by our launcher, which ends the others as well and speaks for all, or by another process."""
    told, code = explain_failure(error)
    if world.ours:
        os._exit(code)
    if transport.rank == 0:
        sys.stderr.write(f"\ntandem: {told}\n")
        sys.stderr.flush()
    end_all(transport, code)
