"""``bench soak``: the real service under everything at once - is an answer wrong, a job lost, memory or a process left?

A service as a child process, on ranks and with an NPU worker; clients that ask, compute, cancel, upload, listen and
talk nonsense; a worker that is killed every so often, and ranks. Every answer is compared with a reference that shares
no code with it (reference.py). Invariant: what is not right is counted and printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.output import Report
from benchmarks.soak.report import Outcome, make_report
from benchmarks.soak.service import SoakService
from benchmarks.soak.tally import Sample
from hybrid.checkout import install_packages
from hybrid.errors import EnvironmentProblem
from hybrid.registry import ALGORITHMS
from hybrid.terminal import note

_SAMPLE_S, _TICK_S, _TELL_S = 5.0, 0.1, 60.0
_START_S = 120.0  # for the first worker, beside a service that compiles
_PATIENCE_S = 10.0  # for a moment at which the ranks compute
_KEPT_S = 120.0  # for the jobs that are open at the end
_CLIENTS = {"ask_questions": 4, "run_jobs": 3, "bring_graphs": 1, "misbehave": 2, "listen": 2}
_LOOKED_AT_AGAIN = 50  # finished jobs that must be there after a restart
_MOST_UPLOAD = 1 << 20


def execute(options: argparse.Namespace) -> Report:
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise EnvironmentProblem("the soak checks answers with SciPy", fix=install_packages("scipy")) from None
    return make_report(soak(options), options)


def soak(options: argparse.Namespace, *, warm_up: bool = True) -> Outcome:
    """The whole run, from start to what is left."""
    from benchmarks.soak.clients import Soak
    from benchmarks.soak.workload import make_guests, make_subjects, precompute, refused_requests

    with _folder() as folder:
        service = SoakService(folder, _settings(options))
        subjects = make_subjects(service.data, tuple(options.scales), options.side)
        for subject in subjects:
            precompute(subject)
        refused = refused_requests(subjects[0].name, subjects[0].sources[0])
        shared = Soak(service, subjects, make_guests(), refused)
        try:
            service.start()
            _open_subjects(shared, options.side)
            if options.kill_worker:
                _await_worker(service)
            if warm_up:
                _warm_up(shared)
            driver = _Driver(shared, options)
            driver.run()
            outcome = driver.outcome()
            outcome.leftovers = service.end()
            outcome.log_errors = [line for line in service.log.read_text().splitlines() if " ERROR " in line]
        finally:
            service.kill_rest()
            if options.log and service.log.exists():
                shutil.copyfile(service.log, options.log)
    return outcome


@contextmanager
def _folder() -> Iterator[Path]:
    """Its name is short: sockets lie in it."""
    folder = Path(tempfile.mkdtemp(prefix="tandem-soak-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(options: argparse.Namespace) -> list[str]:
    return [
        f"ranks={options.ranks}", "engine=level", "cluster.sync=bsp", "npu.mode=share",
        "graph.generator.kind=kronecker", f"graph.generator.scale={options.scales[0]}",
        f"service.max_upload_bytes={_MOST_UPLOAD}",
    ]  # fmt: skip


def _open_subjects(shared: Any, side: int) -> None:
    """The first is there; ask for the others."""
    from benchmarks.soak.clients import Caller
    from benchmarks.soak.workload import requests_for

    caller = Caller(shared)
    for subject in shared.subjects[1:]:
        caller.json("POST", "/v1/graphs", requests_for(subject, side))
    for subject in shared.subjects:
        status, answer = caller.json("GET", f"/v1/graphs/{subject.name}?wait_s=60")
        if status != 200 or answer["state"] != "ready":
            raise RuntimeError(f"{subject.name}: {status} {answer}")
    caller.close()


def _await_worker(service: Any) -> None:
    """Wait until a worker serves; the clock starts afterwards."""
    deadline = time.monotonic() + _START_S
    while not serving_workers(service.readiness()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"no worker was ready within {_START_S:.0f} s")
        time.sleep(_TICK_S)


def serving_workers(readiness: dict[str, Any] | None) -> set[int]:
    """The process ids of the workers that take rounds."""
    workers = (readiness or {}).get("workers", [])
    return {one["pid"] for one in workers if one["state"] in ("ready", "busy") and one["pid"]}


def _warm_up(shared: Any) -> None:
    """Every job once, off the clock: kernels are compiled or loaded, parts of the graphs made."""
    from benchmarks.soak.clients import Caller, follow, submit

    caller, draw = Caller(shared), random.Random(0)
    for subject in shared.subjects:
        jobs = [submit(shared, caller, draw, spec, plain=True) for spec in subject.specs]
        for job in jobs:
            if job is not None:
                follow(shared, caller, draw, job)
    caller.close()


@dataclass
class _Killed:
    """Kills of one kind, and what came after them."""

    name: str
    moments: list[float] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)
    waiting: tuple[float, set[int]] | None = None  # since when, and which were there before


class _Driver:
    """The clock: clients, samples, kills and the restart."""

    def __init__(self, shared: Any, options: argparse.Namespace) -> None:
        self._shared, self._service, self._options = shared, shared.service, options
        self._draw = random.Random(options.seed)
        self._samples: list[Sample] = []
        self._worker, self._rank = _Killed("worker"), _Killed("rank")
        self._restarts: list[dict[str, Any]] = []
        self._counted = dict.fromkeys(
            ("worker deaths", "worker restarts", "searches", "rounds", "rank pool restarts"), 0
        )
        self._began = 0.0

    def run(self) -> None:
        from benchmarks.soak import clients as soak_clients

        seconds = self._options.seconds
        threads = [
            threading.Thread(
                target=soak_clients.run_client,
                args=(self._shared, getattr(soak_clients, name), self._options.seed * 1000 + 100 * kind + number),
            )
            for kind, (name, amount) in enumerate(_CLIENTS.items())
            for number in range(amount)
        ]
        self._began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            self._keep_time(seconds)
        finally:
            self._shared.stop.set()
            for thread in threads:
                thread.join()
        self._finish()

    def _keep_time(self, seconds: float) -> None:
        every, ranks = self._options.kill_worker, self._options.kill_ranks
        next_sample = next_tell = 0.0
        kills = [every * (i + 1) for i in range(int(seconds / every))] if every else []
        kills = [moment for moment in kills if moment < seconds - min(5.0, every / 2)]
        rank_kills = [seconds * (i + 1) / (ranks + 1) for i in range(ranks)]
        restart = seconds / 2 if self._options.restart else seconds + 1
        while (now := time.monotonic() - self._began) < seconds:
            if now >= next_sample:
                self._sample(now)
                next_sample += _SAMPLE_S
            if now >= next_tell:
                next_tell += _TELL_S
                counts, jobs = self._shared.tally.counts, len(self._shared.tally.jobs)
                note(f"{now:.0f} s: {counts['right']} right, {counts['wrong']} wrong, {jobs} jobs")
            if kills and now >= kills[0]:
                kills.pop(0)
                self._kill_worker(now)
            if rank_kills and now >= rank_kills[0] and self._kill_rank(now, hurry=now > rank_kills[0] + _PATIENCE_S):
                rank_kills.pop(0)
            if now >= restart:
                restart = seconds + 1
                self._restart()
            if self._worker.waiting or self._rank.waiting:
                self._look_for_recovery(now)
            time.sleep(_TICK_S)

    def _sample(self, now: float) -> None:
        size: dict[str, int] = {}
        files: dict[str, int] = {}
        for one in self._service.look():
            size[one.role] = size.get(one.role, 0) + one.bytes
            files[one.role] = files.get(one.role, 0) + one.files
        self._samples.append(Sample(now, size, files))

    # ------------------------------------------------------------------------------------------ violence

    def _kill_worker(self, now: float) -> None:
        """One that serves; killed while it starts, five times, it would rightly be given up."""
        if not self._kill(self._worker, now, serving_workers(self._service.readiness())):
            self._shared.tally.count("worker not there to be killed")

    def _kill_rank(self, now: float, *, hurry: bool) -> bool:
        """While the ranks compute, if they do so soon."""
        answer = (self._service.readiness() or {}).get("ranks") or {}
        if answer.get("state") != "up" or not (hurry or self._ranks_compute()):
            return False
        return self._kill(self._rank, now, set(self._service.ranks()))

    def _ranks_compute(self) -> bool:
        from benchmarks.soak.clients import Caller

        caller = Caller(self._shared)
        _, answer = caller.json("GET", "/v1/jobs?limit=50")
        caller.close()
        running = [job for job in answer["jobs"] if (job["state"], job["phase"]) == ("running", "running")]
        return any(ALGORITHMS[job["algorithm"]].on_ranks and "npu.mode" not in job["options"] for job in running)

    def _kill(self, kind: _Killed, now: float, pids: set[int]) -> bool:
        if not pids or kind.waiting or not self._service.kill(self._draw.choice(sorted(pids))):
            return False
        kind.moments.append(now)
        kind.waiting = now, pids
        return True

    def _look_for_recovery(self, now: float) -> None:
        answer = self._service.readiness()
        if answer is None:
            return
        serving, ranks = serving_workers(answer), answer["ranks"] or {}
        if self._worker.waiting and serving and not self._worker.waiting[1] & serving:
            self._recovered(self._worker, now)
        new = self._rank.waiting and not self._rank.waiting[1] & set(self._service.ranks())
        if new and ranks.get("state") == "up":
            self._recovered(self._rank, now)

    @staticmethod
    def _recovered(kind: _Killed, now: float) -> None:
        assert kind.waiting is not None
        kind.recovered_s.append(now - kind.waiting[0])
        kind.waiting = None

    def _restart(self) -> None:
        """SIGTERM, a new start on the same journal, and a look at jobs that were over before."""
        from benchmarks.soak.clients import Caller

        shared = self._shared
        self._add_counters()
        shared.down.set()
        open_before = len(shared.tally.open_jobs())
        began = time.monotonic()
        code = self._service.stop()
        ended = time.monotonic()
        self._service.start()
        shared.fresh_start += 1
        shared.down.clear()
        if code != 0:
            shared.tally.blame("restarts with another exit code than 0", str(code))
        self._worker.waiting = self._rank.waiting = None
        caller, missing = Caller(shared), 0
        over = [job for job in shared.tally.jobs.values() if job.fate][-_LOOKED_AT_AGAIN:]
        for job in over:
            status, _ = caller.json("GET", f"/v1/jobs/{job.id}")
            missing += status != 200
        caller.close()
        if missing:
            shared.tally.blame("finished jobs that a restart forgot", str(missing))
        self._restarts.append(
            {"at": ended - self._began, "seconds_to_end": ended - began, "open_jobs": open_before,
             "seconds_to_ready": self._service.starts[-1], "looked_at_again": len(over)}
        )  # fmt: skip

    # --------------------------------------------------------------------------------------------- the end

    def _finish(self) -> None:
        """Jobs whose clients have gone."""
        from benchmarks.soak.clients import Caller, follow

        caller = Caller(self._shared)
        for job in self._shared.tally.open_jobs():
            follow(self._shared, caller, self._draw, job, _KEPT_S)
        until = time.monotonic() + _KEPT_S
        while (self._worker.waiting or self._rank.waiting) and time.monotonic() < until:
            self._look_for_recovery(time.monotonic() - self._began)
            time.sleep(_TICK_S)
        caller.close()
        self._sample(time.monotonic() - self._began)
        self._add_counters()

    def _add_counters(self) -> None:
        answer = self._service.readiness() or {}
        for one in answer.get("workers", []):
            self._counted["worker deaths"] += one["deaths"]
            self._counted["worker restarts"] += one["restarts"]
            self._counted["searches"] += one["searches"]
            self._counted["rounds"] += one["rounds"]
        self._counted["rank pool restarts"] += (answer.get("ranks") or {}).get("restarts", 0)

    def outcome(self) -> Outcome:
        return Outcome(
            seconds=time.monotonic() - self._began,
            tally=self._shared.tally,
            samples=self._samples,
            kills={
                one.name: {"moments": one.moments, "recovered_seconds": one.recovered_s}
                for one in (self._worker, self._rank)
            },
            counted=self._counted,
            restarts=self._restarts,
            starts=list(self._service.starts),
            graphs=[f"{one.name} ({one.reference.n} vertices)" for one in self._shared.subjects],
        )
