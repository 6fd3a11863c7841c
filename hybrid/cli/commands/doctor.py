"""``doctor``: looks at everything a job needs here, really starts a worker, and says how to fix what fails."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import itertools
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cpu_engine.errors import ExplainedError
from exchange.isolated import isolated_command
from hybrid.checkout import MPI, install_packages
from hybrid.cli.commands.options import add_config_options, config_from
from hybrid.config.schema import Config
from hybrid.errors import EXIT_ENVIRONMENT, EXIT_OK, EnvironmentProblem
from hybrid.terminal import plural, say, seconds

_MPI_TIMEOUT_S = 60
_GIB = 1 << 30
_PROBE = b"written by tandem doctor, and removed again\n"
_READ_WHOLE = 64 << 20  # a graph file up to this size is read to its end


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis: ok, note (works, but look) or FAIL, and the fix."""

    state: str
    subject: str
    detail: str
    fix: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--no-worker", action="store_true", help="do not start a worker (saves a few seconds)")


def execute(options: argparse.Namespace) -> int:
    config = config_from(options)
    checks: list[Callable[[Config], Iterator[Finding]]] = [check_python, check_packages, check_threads, check_memory]
    checks += [check_folders, check_graph, check_devices, check_mpi]
    if not options.no_worker:
        checks.append(check_worker)
    findings = []
    for finding in itertools.chain.from_iterable(check(config) for check in checks):
        findings.append(finding)
        if not options.json:
            say(f"{finding.state:>4}  {finding.subject:<12} {finding.detail}")
            if finding.fix:
                say(f"      {'':<12} fix: {finding.fix}")
    failed = sum(finding.state == "FAIL" for finding in findings)
    if options.json:
        say(json.dumps([finding.__dict__ for finding in findings], indent=2))
    else:
        say(f"\n{'everything a job needs is here' if not failed else plural(failed, 'problem')}")
    return EXIT_ENVIRONMENT if failed else EXIT_OK


def check_python(config: Config) -> Iterator[Finding]:
    version = sys.version.split()[0]
    if (3, 10) <= sys.version_info < (3, 13):
        yield Finding("ok", "python", f"{version}, {sys.executable}")
    else:
        yield Finding("FAIL", "python", version, "MindSpore has wheels for Python 3.10 to 3.12: use one of these")


def check_packages(config: Config) -> Iterator[Finding]:
    for package in ("numpy", "numba", "mindspore", "mpi4py", "watchdog", "pyyaml", "tqdm"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            needless = package == "mindspore" and config.npu.mode == "off"
            yield Finding("note" if needless else "FAIL", package, "not installed", install_packages(package))
            continue
        if package == "numpy" and int(version.split(".")[0]) >= 2:
            yield Finding("FAIL", package, version, f"MindSpore fails on numpy 2: {install_packages('numpy')}")
        else:
            yield Finding("ok", package, version)


def check_threads(config: Config) -> Iterator[Finding]:
    import numba

    from hybrid.job.warm_up import warm_up

    warm_up(config.engine, deep=False)
    allowed = len(os.sched_getaffinity(0))
    layer = numba.threading_layer()
    detail = f"{plural(numba.get_num_threads(), 'thread')} on {allowed} of {os.cpu_count()} CPUs, layer {layer}"
    if numba.get_num_threads() > allowed:
        yield Finding("note", "threads", detail, f"more threads than CPUs: --set threads={allowed}")
    elif layer == "workqueue":
        yield Finding("note", "threads", detail, "the OpenMP layer is faster: apt-get install libgomp1")
    else:
        yield Finding("ok", "threads", detail)


def check_memory(config: Config) -> Iterator[Finding]:
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(facts[name].split()[0]) * 1024 / _GIB for name in ("MemTotal", "MemAvailable"))
    fix = "" if free > 2 else "a worker takes about 0.5 GiB, a large graph more: close something"
    yield Finding("note" if fix else "ok", "memory", f"{free:.1f} of {total:.1f} GiB free", fix)


def check_folders(config: Config) -> Iterator[Finding]:
    """Write, read and remove a file wherever a job would; nothing is left behind."""
    from exchange.errors import ExchangeError
    from exchange.filesystem.watch import Mode, Watcher
    from hybrid.graphs.opening import cache_folder
    from hybrid.results.folder import ResultFolder
    from hybrid.worker.exchange_directory import fresh_directory

    cache = cache_folder(config.graph)
    with _leaving_nothing(cache):
        yield _trial("graph cache", cache, lambda: cache, "set graph.cache_dir or $TANDEM_CACHE to another folder")
    results = Path(config.output) if config.output else Path("results")
    with _leaving_nothing(results), contextlib.ExitStack() as made:

        def make_result() -> Path:
            folder = ResultFolder(config.output, "doctor")
            made.callback(folder.discard)
            return folder.path

        yield _trial("results", results, make_result, "choose another folder with --output DIR")
    shared = Path(config.exchange.dir) if config.exchange.dir else None
    with _leaving_nothing(shared) if shared else tempfile.TemporaryDirectory(prefix="tandem-doctor-"):
        place = shared or fresh_directory()
        try:
            tried = _trial("exchange", place, lambda: place, "set exchange.dir to a folder that can be written")
            if tried.state == "ok":
                with Watcher(place, cast(Mode, config.exchange.watch)) as watcher:
                    how = f"answers are noticed by {watcher.mode_in_use} ({watcher.why})"
                tried = Finding("ok", "exchange", f"{tried.detail}; {how}")
            yield tried
        except ExchangeError as error:
            yield Finding("FAIL", "exchange", f"{place}: {error.reason}", error.fix or "")
        finally:
            if shared is None:
                shutil.rmtree(place, ignore_errors=True)


def _trial(subject: str, place: Path, make: Callable[[], Path], fix: str) -> Finding:
    """Make the folder, put a file there, read it again, remove it."""
    probe = None
    try:
        if place.exists() and not place.is_dir():
            return Finding("FAIL", subject, f"{place} is not a folder", fix)
        folder = make()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".tandem-doctor-{secrets.token_hex(4)}"
        probe.write_bytes(_PROBE)
        if probe.read_bytes() != _PROBE:
            return Finding("FAIL", subject, f"{place}: a file read back is not what was written", fix)
        free = shutil.disk_usage(folder).free / _GIB
        return Finding("ok", subject, f"{place}, written and read, {free:.1f} GiB free")
    except OSError as error:
        return Finding("FAIL", subject, f"{place} cannot be used: {error.strerror or error}", fix)
    except ExplainedError as error:
        at = "" if error.path is None else f" ({error.path})"
        return Finding("FAIL", subject, f"{place} cannot be used: {error.reason}{at}", error.fix or fix)
    finally:
        if probe is not None:
            with contextlib.suppress(OSError):
                probe.unlink()


@contextlib.contextmanager
def _leaving_nothing(place: Path) -> Iterator[None]:
    """Remove the folders that a trial had to make, if they are empty."""
    absent = [folder for folder in (place, *place.parents) if not os.path.lexists(folder)]
    try:
        yield
    finally:
        for folder in absent:
            with contextlib.suppress(OSError):
                folder.rmdir()


def check_graph(config: Config) -> Iterator[Finding]:
    """Open the configured graph: a stored one, a file (all of it if it is not long), or what a generator would make."""
    from cpu_engine.graph.formats import read_graph, sniff
    from cpu_engine.graph.formats.part_files import files_of
    from cpu_engine.graph.store.graph_store import is_store, open_store
    from hybrid.graphs.opening import extent_of, generator_name, require_room_to_open, wanted_direction

    wanted = config.graph
    name = generator_name(wanted.generator) if wanted.path is None else wanted.path
    try:
        if wanted.path is not None and is_store(wanted.path):
            graph = open_store(wanted.path)
            yield Finding("ok", "graph", f"{name}: stored, {plural(graph.user_ids.size, 'vertex')} opened")
            return
        extent = extent_of(wanted)
        assert extent is not None
        size = f"about {plural(extent.edges, 'edge')}, to be generated"
        if wanted.path is not None:
            files = files_of(Path(wanted.path))
            form = sniff(files[0]) if wanted.format == "auto" else wanted.format
            size = f"{form}, about {plural(extent.edges, 'edge')}; only its beginning was read"
            if sum(file.stat().st_size for file in files) <= _READ_WHOLE:
                edges = read_graph(wanted.path, format=wanted.format)
                size = f"{form}, {plural(edges.edge_count, 'edge')} read"
        require_room_to_open(wanted)
        needed = extent.build_bytes(wanted_direction(wanted), consume=True)
        yield Finding("ok", "graph", f"{name}: {size}; building it takes about {needed / _GIB:.2f} GiB")
    except ExplainedError as error:
        line = "" if error.line is None else f", line {error.line}"
        fix = error.fix or "check graph.path and graph.format"
        yield Finding("FAIL", "graph", f"{name}{line}: {error.reason}", fix)


def check_devices(config: Config) -> Iterator[Finding]:
    from hybrid.planning.plan import ascend_devices

    devices = ascend_devices()
    toolkit = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    if devices and toolkit:
        yield Finding("ok", "ascend", f"{plural(len(devices), 'device')} ({', '.join(devices)}), CANN at {toolkit}")
    elif devices:
        found = f"{plural(len(devices), 'device')}, but no CANN environment"
        yield Finding("note", "ascend", found, "source CANN's set_env.sh first")
    else:
        wanted, found = config.npu.device == "ascend", "no device here; the worker runs MindSpore on the CPU"
        fix = "use device: auto or cpu, or install the Ascend driver" if wanted else ""
        yield Finding("FAIL" if wanted else "note", "ascend", found, fix)


def check_mpi(config: Config) -> Iterator[Finding]:
    try:
        yield Finding("ok", "mpi", f"{_probe_mpi(config)}, 2 ranks talk to each other")
    except ExplainedError as error:
        yield Finding("FAIL", "mpi", error.reason, error.fix or "")


def _probe_mpi(config: Config) -> str:
    """Start two ranks that send each other something; the MPI library that they use."""
    from hybrid.launch.command import find_launcher, no_answer

    command = [find_launcher(config.cluster.mpirun), "-n", "2", "--map-by", ":OVERSUBSCRIBE"]
    command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command += [*isolated_command("mpi4py", tied=True), "-m", "cpu_engine.comm.probe"]
    again = install_packages(*MPI, again=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MPI_TIMEOUT_S)  # noqa: S603 - the configured launcher
        facts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    except subprocess.TimeoutExpired as error:
        raise no_answer(shlex.join(command), _MPI_TIMEOUT_S) from error
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"mpirun failed: {error}", fix=again) from error
    if done.returncode or not facts:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise EnvironmentProblem(f"mpirun failed: {last}", fix=again)
    if len(facts) > 1:
        reason = "every rank is 0 of 1: mpirun and mpi4py are of different MPIs"
        raise EnvironmentProblem(reason, fix="set cluster.mpirun")
    return str(facts[0]["library"])


def check_worker(config: Config) -> Iterator[Finding]:
    """Start a worker and let it do one round on a path of four vertices."""
    import dataclasses

    import numpy as np

    from hybrid.devices.profiles import SIMULATED
    from hybrid.results.trace import Trace
    from hybrid.worker.solver import WorkerSolver

    device = "auto" if config.npu.device.startswith(SIMULATED) else config.npu.device
    npu = dataclasses.replace(config.npu, worker="launch", device=device)
    with tempfile.TemporaryDirectory(prefix="tandem-doctor-") as scratch:
        trial = dataclasses.replace(config, npu=npu, exchange=dataclasses.replace(config.exchange, dir=None))
        log = Path(scratch) / "worker.log"
        solver = WorkerSolver(trial, log, Trace())
        solver.start()
        try:
            offsets, targets = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 3], np.int32)
            solver.publish_edges(offsets, targets, 4)
            solver.submit(np.array([0, -1, -1, -1], np.int32))
            answer = None
            while answer is None and solver.usable:
                solver.wait()
                answer = solver.poll()
        finally:
            solver.close()
        if answer is not None and answer.values.tolist() == [0, 1, 2, 3]:
            ready = "" if solver.start_seconds is None else f", ready after {seconds(solver.start_seconds)}"
            yield Finding("ok", "worker", f"computes rightly on {solver.device}{ready}")
        else:
            why = solver.failure or f"wrong values {answer.values.tolist() if answer else ''}"
            yield Finding("FAIL", "worker", why, "see the lines above; jobs still run on the CPU with npu.mode: off")
