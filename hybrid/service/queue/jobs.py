"""Jobs: what was asked, in which state it is, and the book of all of them, kept in the journal.

    queued -> running -> done | failed | cancelled        a shutdown takes running back to queued

Invariant: a job that was accepted is in the journal in one of these states; a done job's arrays were checked.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from hybrid.service.events import EventBus
from hybrid.service.http.problems import Problem
from hybrid.service.queue.compute import Compute
from hybrid.service.queue.journal import Journal

_log = logging.getLogger(__name__)
QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OVER = (DONE, FAILED, CANCELLED)
SHUTDOWN = "shutdown"
_ASKED = ("id", "graph", "algorithm", "options", "source", "deadline_s")
_OUTCOME = ("state", "phase", "started", "finished", "summary", "problem")
MOST_DEATHS = 2  # of the process, in a row, with the same job running


@dataclass(eq=False)
class Job:
    """One job; a piece of work for the computing thread."""

    graph: str
    algorithm: str
    options: dict[str, Any]
    source: Any  # a vertex, a list of them, random:N; None where the algorithm has none
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    deadline_s: float | None = None
    state: str = QUEUED
    phase: str = "waiting"
    done: int = 0
    total: int = 0
    created: float = field(default_factory=time.time)
    started: float | None = None
    finished: float | None = None
    summary: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None
    stop_reason: str = ""
    losses: int = 0  # pools that ended while they worked on it
    trace: Any = None  # of a running job
    runner: Any = None

    def carry_out(self) -> None:
        self.runner.carry_out(self)

    def to_dict(self) -> dict[str, Any]:
        """The job as clients, and the journal, see it."""
        progress = {"done": self.done, "total": self.total}
        return {name: getattr(self, name) for name in (*_ASKED, "created", *_OUTCOME)} | {"progress": progress}


class JobBook:
    """All jobs by id. Submitted and cancelled by the loop, carried out by the computing thread."""

    def __init__(self, journal: Journal, compute: Compute, bus: EventBus, keep: int) -> None:
        self._journal, self._compute, self._bus, self._keep = journal, compute, bus, keep
        self._jobs: dict[str, Job] = {}
        self._lock = threading.RLock()

    def submit(self, job: Job) -> None:
        """Accept a job: from now on it is not lost. Problem if it cannot be."""
        self._compute.require_room()
        try:
            self._journal.write_job(job.id, job.to_dict())
            with self._lock:
                self._jobs[job.id] = job
            self._compute.submit(job)
        except (Problem, OSError):
            self.forget(job)
            raise
        self.publish(job)

    def restore(self, document: dict[str, Any], runner: Any) -> Job:
        """A job from the journal; one that was not over waits again, unless the process keeps dying of it."""
        job = Job(**{name: document[name] for name in (*_ASKED, "created")}, runner=runner)
        if document["state"] in OVER:
            for name in _OUTCOME:
                setattr(job, name, document[name])
            job.done, job.total = document["progress"]["done"], document["progress"]["total"]
        with self._lock:
            self._jobs[job.id] = job
        if job.state not in OVER and (deaths := self._journal.deaths(job.id)) >= MOST_DEATHS:
            problem = Problem(
                503,
                f"the service's process ended {deaths} times in a row while it ran this job (a crash, too little "
                "memory, or killed), so the job was not started again",
                "read the service's log and the kernel's (dmesg) for the cause, then POST the same request to /v1/jobs "
                "again, with fewer sources or on a machine with more memory",
            )
            _log.warning("job %s: %s", job.id, problem.detail)
            self.conclude(job, FAILED, problem.document())
        return job

    def get(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise Problem(404, f"there is no job {job_id!r}", "GET /v1/jobs lists them")
        return job

    def all(self) -> list[Job]:
        """Newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.created)

    def cancel(self, job: Job, reason: str = "cancelled") -> None:
        """End a job that is not over; Problem 409 if it is."""
        if job.state in OVER:
            raise Problem(409, f"the job is {job.state} already", "DELETE it if its result is not needed")
        waited = job.state == QUEUED
        if self._compute.stop(job, reason) and waited and job.started is None:
            self.conclude(job, CANCELLED if reason == "cancelled" else FAILED, stopped_problem(reason))

    def begin(self, job: Job) -> None:
        """A job is about to be started; should the process die of it, the next one knows."""
        self._journal.begin_job(job.id)

    def excuse(self, job: Job) -> None:
        """Whatever ends the process from here on, it is not this job's doing."""
        self._journal.end_job(job.id)

    def conclude(self, job: Job, state: str, problem: dict[str, Any] | None = None) -> None:
        job.state, job.problem, job.finished, job.phase = state, problem, time.time(), state
        self._keep_state(job)
        self.publish(job)
        over = [job for job in self.all() if job.state in OVER]
        for oldest in over[self._keep :]:
            self.forget(oldest)

    def take_back(self, job: Job) -> None:
        """A shutdown came: the job waits again, in the journal."""
        job.state, job.phase, job.started, job.done = QUEUED, "waiting", None, 0
        self._keep_state(job)

    def _keep_state(self, job: Job) -> None:
        try:
            self._journal.write_job(job.id, job.to_dict())
        except OSError as error:  # a full disk: a restart finds the job queued, and computes it again
            _log.warning("the state of job %s could not be kept: %s", job.id, error.strerror)
        self._journal.end_job(job.id)

    def publish(self, job: Job) -> None:
        self._bus.publish("job", job.to_dict())

    def forget(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)
        self._journal.forget_job(job.id)


def stopped_problem(reason: str) -> dict[str, Any] | None:
    if reason == "deadline":
        fix = "allow it more time (deadline_s, service.job_deadline_s)"
        return Problem(504, "the job did not end within its deadline", fix).document()
    return None
