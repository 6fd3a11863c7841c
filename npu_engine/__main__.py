"""``python -m npu_engine``: flags, the process around the worker, exit codes.

Invariant: nothing that could take long or fail is imported before the flags are read, the tie to the parent is made and
the environment is set; MindSpore and the OpenMP runtime read theirs once, at import.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from exchange.errors import ExchangeError
from exchange.escape import PrintableFormatter
from exchange.filesystem.scratch import private_folder, remove_folder
from exchange.isolated import isolated_command
from exchange.protocol.layout import worker_scratch_prefix
from npu_engine.errors import (
    EXIT_FAILED,
    EXIT_NO_EXCHANGE,
    EXIT_STOPPED,
    DeviceBroken,
    ExchangeMissing,
    MindSporeMissing,
    StartError,
)

if TYPE_CHECKING:
    from exchange.mailbox import WorkerMailbox

PROGRAM = "tandem-worker"
SMALLEST_BUDGET = 4096
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOG_FORMAT = f"%(asctime)s.%(msecs)03d {PROGRAM}[%(process)d] %(message)s"


class SetProgram(argparse.Action):
    """Names the program in its usage lines after the command that the user typed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        parser.prog = str(values)


class StopNow(BaseException):
    """A signal arrived while the worker was starting."""


class Signals:
    """SIGTERM and SIGINT as a wish to stop: at once while starting, between two looks while serving."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.starting = True
        signal.signal(signal.SIGTERM, self._take)
        signal.signal(signal.SIGINT, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.reason = signal.Signals(number).name
        if self.starting:
            raise StopNow


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m npu_engine",
        description="Serve the dense core of a Tandem job with MindSpore: round after round, until stop.flag appears "
        "in the exchange directory.",
        epilog="Exit codes: 0 stopped, 2 wrong flags, 3 MindSpore cannot be imported, 4 the device is missing, "
        "5 the exchange directory cannot be used, 1 anything else.",
    )
    add = parser.add_argument
    add("--program", action=SetProgram, help=argparse.SUPPRESS)
    add("--exchange", type=Path, metavar="DIR", help="the exchange directory")
    add(
        "--device",
        choices=("auto", "cpu", "ascend"),
        default="auto",
        help="where to compute; auto: Ascend if there is one, else the CPU (default: %(default)s)",
    )
    add("--device-id", type=at_least(0), default=0, metavar="N", help="which Ascend device (default: 0)")
    add(
        "--threads",
        type=at_least(1),
        default=1,
        metavar="N",
        help="threads on the CPU device, and for gathering edges of cores in pieces (default: 1)",
    )
    add("--watch", choices=("auto", "events", "poll"), default="auto", help="how to notice new rounds (default: auto)")
    add("--poll-interval", type=seconds, default=0.002, metavar="S", help="seconds between polls (default: 0.002)")
    add(
        "--warm",
        type=at_least(1),
        default=1,
        metavar="K",
        help="on Ascend: compile for cores of K vertices first",
    )
    add(
        "--memory-budget",
        type=at_least(SMALLEST_BUDGET),
        metavar="BYTES",
        help="what a core may take on the device; a larger one is worked on in pieces (default: what is free)",
    )
    add("--once", action="store_true", help="leave after the first answered round")
    add("--parent", type=at_least(1), metavar="PID", help="end with this process, which started the worker")
    add("--fallback-reason", help=argparse.SUPPRESS)
    add("--calibrate", action="store_true", help="serve nothing: measure the device, print JSON, leave")
    arguments = parser.parse_args(argv)
    if arguments.exchange is None and not arguments.calibrate:
        parser.error("the following arguments are required: --exchange")
    return arguments


def at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} on, not {text!r}")
        return int(text)

    return number


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 60:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and up to 60, not {text!r}")
    return number


def tie_to_parent(parent: int) -> bool:
    """Have the kernel kill this process when its parent ends; False when the parent has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # In this order: a parent that ended before is noticed here, one that ends from now on by the kernel.
    return os.getppid() == parent


def set_environment(threads: int) -> None:
    """What MindSpore, OpenMP and BLAS read once, when they are imported."""
    os.environ.setdefault("GLOG_v", "3")  # errors only
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads must not spin beside the CPU engine
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)


def make_log(*, live: bool = False) -> logging.Logger:
    """The log on stderr; ``live``: above a status line, if that is a terminal."""
    from npu_engine.pulse import AboveStatus, StatusLine

    log = logging.getLogger(PROGRAM)
    log.setLevel(logging.INFO)
    log.propagate = False
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if live and sys.stderr.isatty():
        handler = AboveStatus(StatusLine(sys.stderr))
    handler.setFormatter(PrintableFormatter(LOG_FORMAT, "%Y-%m-%d %H:%M:%S"))
    log.handlers = [handler]
    return log


def open_mailbox(directory: Path, log: logging.Logger, *, started_by_hand: bool) -> WorkerMailbox:
    """The worker's end of the exchange."""
    from exchange.mailbox import WorkerMailbox

    if started_by_hand and directory.parent.is_dir() and not directory.exists():
        # Worker first, job second is the natural order by hand. One level only: more is likely a mistyped path.
        with contextlib.suppress(OSError):
            directory.mkdir()
            log.info("created the exchange directory %s", directory)
    if not directory.is_dir():
        raise ExchangeMissing(
            f"{directory}: there is no such directory", "create it, or name the one that the coordinator uses"
        )
    return WorkerMailbox(directory, ignore_old_stop=started_by_hand)


def import_mindspore() -> str:
    """Import MindSpore; its version. This is what takes most of the start."""
    try:
        import mindspore
    except Exception as error:  # a missing library is an OSError, an unfit numpy an AttributeError, ...
        text = str(error).strip() or type(error).__name__
        fix = f"`{sys.executable} -m pip install 'mindspore==2.10.*' 'numpy<2'`"
        if "libgomp" in text:
            fix = "install the OpenMP runtime (Debian: `apt-get install libgomp1`)"
        raise MindSporeMissing(f"MindSpore cannot be imported: {text.splitlines()[0]}", fix) from error
    return str(mindspore.__version__)


@contextlib.contextmanager
def scratch_directory(exchange: Path, log: logging.Logger) -> Iterator[None]:
    """Work in a directory of our own: MindSpore leaves folders behind wherever it runs.

    It is a hidden one in the exchange directory, so that it goes with the job even if this process is killed.
    """
    home = os.getcwd()
    try:
        path = private_folder(worker_scratch_prefix(os.getpid()), exchange)
    except OSError as error:
        log.warning("no scratch directory (%s): MindSpore may leave folders in %s", error, home)
        yield
        return
    try:
        os.chdir(path)
        yield
    finally:
        os.chdir(home)
        remove_folder(path)


def run(arguments: argparse.Namespace, mailbox: WorkerMailbox, log: logging.Logger, signals: Signals) -> str:
    """Start up, then serve; why it ended."""
    began = time.perf_counter()
    version = import_mindspore()
    from exchange.filesystem.watch import Watcher
    from npu_engine.device import choose_device
    from npu_engine.pulse import AboveStatus
    from npu_engine.resident import ResidentCores
    from npu_engine.worker import Worker

    device = choose_device(arguments.device, arguments.device_id, threads=arguments.threads)
    why = arguments.fallback_reason or device.why
    log.info("device %s: %s (MindSpore %s)", device.label, why, version)
    cores = ResidentCores(
        compiled=device.kind == "Ascend", memory_budget=arguments.memory_budget, threads=arguments.threads
    )
    cores.warm_up(arguments.warm)
    with Watcher(mailbox.directory, arguments.watch, arguments.poll_interval) as watcher:
        worker = Worker(
            mailbox,
            watcher,
            cores,
            device=device.label,
            log=log,
            status=next((one.status for one in log.handlers if isinstance(one, AboveStatus)), None),
            stop_reason=lambda: signals.reason,
            parent=arguments.parent,
            once=arguments.once,
        )
        signals.starting = False
        start_s = round(time.perf_counter() - began, 3)
        mailbox.announce(
            state="ready",
            heartbeat=round(time.time(), 3),
            device=device.label,
            why=why,
            mindspore=version,
            start_s=start_s,
            watch=watcher.mode_in_use,
        )
        log.info("ready after %.2f s, watching by %s: %s", start_s, watcher.mode_in_use, watcher.why)
        return worker.serve()


def print_calibration(arguments: argparse.Namespace, log: logging.Logger) -> None:
    """Measure the device in a scratch directory, and print what was found."""
    with tempfile.TemporaryDirectory(prefix="tandem-calibrate-") as scratch, scratch_directory(Path(scratch), log):
        import_mindspore()
        from npu_engine.calibrate import calibrate
        from npu_engine.device import choose_device

        device = choose_device(arguments.device, arguments.device_id, threads=arguments.threads)
        log.info("measuring device %s: %s", device.label, arguments.fallback_reason or device.why)
        print(json.dumps(calibrate(device)), flush=True)


def start(arguments: argparse.Namespace, log: logging.Logger, signals: Signals) -> None:
    """Run, and leave a last word in worker.json whatever happens."""
    directory = arguments.exchange.absolute()
    mailbox = open_mailbox(directory, log, started_by_hand=arguments.parent is None)
    try:
        mailbox.announce(
            state="starting", heartbeat=round(time.time(), 3)
        )  # and so the directory is known to be writable
        log.info("start: exchange directory %s", directory)
        with scratch_directory(directory, log):
            reason = run(arguments, mailbox, log, signals)
    except BaseException as error:
        # Out of an interrupted import, StopNow may come as any other error.
        if signals.reason is None:
            with contextlib.suppress(ExchangeError):
                mailbox.announce(state="stopped", error=str(error) or type(error).__name__)
            raise
        reason = f"{signals.reason} while starting"
    with contextlib.suppress(ExchangeError):  # the directory may be gone, and then no job reads it
        mailbox.announce(state="stopped", reason=reason)
    log.info("stopped: %s", reason)


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else list(argv)
    arguments = parse_arguments(argv)
    if arguments.parent is not None and not tie_to_parent(arguments.parent):
        print(f"{PROGRAM}: process {arguments.parent} is not the parent any more, nothing to do", file=sys.stderr)
        return EXIT_STOPPED
    signals = Signals()
    set_environment(arguments.threads)
    log = make_log(live=not arguments.calibrate)
    try:
        if arguments.calibrate:
            print_calibration(arguments, log)
        else:
            start(arguments, log, signals)
        return EXIT_STOPPED
    except StopNow:
        return EXIT_STOPPED
    except DeviceBroken as error:
        if arguments.device == "auto":
            log.warning("%s; starting again on the CPU", error.reason)
            # A fresh process, since this one cannot change its device any more. It keeps the process id.
            again = [*argv, "--device", "cpu", "--fallback-reason", error.reason]
            os.execv(sys.executable, [*isolated_command("npu_engine"), *again])  # noqa: S606 - our own module, no shell
        code, message = error.code, str(error)
    except StartError as error:
        code, message = error.code, str(error)
    except ExchangeError as error:
        code, message = EXIT_NO_EXCHANGE, str(error)
    except Exception as error:
        log.error("unexpected failure", exc_info=error)
        code = EXIT_FAILED
        message = f"{type(error).__name__}: {error}. Fix: see the traceback above; --device cpu is the simplest setting"
    print(f"{PROGRAM}: error: {message}", file=sys.stderr, flush=True)
    return code


def leave(code: int) -> NoReturn:
    """End the process. On the CPU without MindSpore's teardown: half a second that the coordinator would wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    mindspore = sys.modules.get("mindspore")
    if mindspore is not None and mindspore.get_current_device().device_target == "CPU":
        os._exit(code)
    sys.exit(code)  # an NPU is given back in order


if __name__ == "__main__":
    leave(main())
