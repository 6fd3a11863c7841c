"""The service as a whole: graphs, jobs, queries and events behind one object that routes talk to. No HTTP in here."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import resource
import time
from pathlib import Path
from typing import Any

from hybrid.library import description_of
from hybrid.library.algorithm import Algorithm
from hybrid.library.sharing import SHARINGS
from hybrid.many_hybrid_job import warm_up_batches
from hybrid.opening import cache_folder
from hybrid.schema import Config, GeneratorConfig, GraphConfig
from hybrid.service.catalogue import Catalogue, Entry, open_entry
from hybrid.service.compute import Compute, Stopped
from hybrid.service.crew import Crew
from hybrid.service.crew_place import CrewPlace
from hybrid.service.estimates import Limits
from hybrid.service.events import EventBus
from hybrid.service.jobs import OVER, Job, JobBook
from hybrid.service.journal import Journal
from hybrid.service.metrics import Metrics
from hybrid.service.places import DataRoots, ldbc_parts
from hybrid.service.problems import Problem, problem_of
from hybrid.service.runner import Runner, job_config
from hybrid.service.searches import Answering, Batches, SearchQuery
from hybrid.service.worker_searches import BatchHelp
from hybrid.service.workers import Workers

_log = logging.getLogger(__name__)
SHARED_OPTIONS = ("npu.mode", "compare.enabled")  # of algorithms that can share their core with a worker


@dataclasses.dataclass(eq=False)
class Load:
    """Opening a graph: work for the computing thread."""

    service: Service
    entry: Entry
    stop_reason: str = ""

    def carry_out(self) -> None:
        entry, bus = self.entry, self.service.bus
        bus.publish("graph", entry.tell())
        try:
            with self.service.compute.interruptible():
                open_entry(entry)
        except Stopped:
            entry.state = "waiting"  # a shutdown; the journal knows the graph
        except Exception:
            if entry.problem is not None and entry.problem.status == 500:
                _log.exception("graph %s", entry.id)
        _log.info("graph", extra={"facts": {"graph": entry.id, "state": entry.state, "s": round(entry.seconds, 3)}})
        bus.publish("graph", entry.tell())
        if entry.state == "ready":
            self.service.settle_worker(entry)


class Service:
    """See the module. ``open`` before use; ``compute.run`` on the main thread; ``close`` at the end."""

    def __init__(self, config: Config) -> None:
        self.config, self.settings = config, config.service
        settings = config.service
        self.metrics = Metrics()
        self.batches = Batches(self.metrics.count_batch)
        self.compute = Compute(
            self.batches.answer, query_queue=settings.query_queue, job_queue=settings.job_queue,
            max_batch=settings.max_batch, wait_s=settings.wait_ms / 1e3, batching=settings.batching,
        )  # fmt: skip
        self.bus = EventBus(settings.max_listeners)
        self.catalogue = Catalogue(settings)
        self.journal = Journal(Path(settings.journal_dir).expanduser())
        self.roots = DataRoots(settings.data_roots)
        self.limits = Limits(settings)
        self.workers = Workers(config, self.journal.folder, self._tell_workers)
        self.runner = Runner(self.catalogue, self.compute, self.journal, self.bus, self.metrics, self.workers)
        self.crew = Crew(config) if config.ranks > 1 else None
        if self.crew is not None:
            self.runner.crew = CrewPlace(self.crew, config, self.catalogue)
        self.book = self.runner.book = JobBook(self.journal, self.compute, self.bus, settings.keep_jobs)
        self.started = time.time()
        self.draining = False

    # ------------------------------------------------------------------------------------------ life

    def open(self) -> None:
        """Take the journal, and go on with what is in it."""
        self.journal.open()
        if self.crew is not None:
            self.crew.open()
        self.workers.open()
        for document in self.journal.graphs():
            try:
                origin = document["origin"]
                self._take_in(document["id"], origin, self._config_of(document["id"], origin), accepted=True)
            except (Problem, KeyError) as error:
                _log.warning("journal: graph %s is not opened again: %s", document.get("id"), error)
        if self.settings.preload:
            wanted = self.config.graph
            origin = {"preload": wanted.path or dataclasses.asdict(wanted.generator)}
            if not any(entry.origin == origin for entry in self.catalogue.all()):
                self._take_in(None, origin, wanted, accepted=True, keep=False)
        for document in self.journal.jobs():
            job = self.book.restore(document, self.runner)
            if job.state not in OVER:
                self.compute.submit(job, accepted=True)

    def close(self) -> None:
        self.workers.close()
        if self.crew is not None:
            self.crew.close()
        self.journal.close()

    def settle_worker(self, entry: Entry) -> None:
        """Whether a worker is kept warm for a graph that has come; it is answered about meanwhile."""
        assert entry.graph is not None
        assert entry.searcher is not None
        try:
            with self.compute.interruptible():
                plans = self.workers.settle(entry.id, entry.graph)
                if plans is not None and plans.core is not None and plans.batch.mode != "off":
                    warm_up_batches()
                    entry.searcher.helper = BatchHelp(self.workers, plans)
        except Stopped:
            return
        except Exception:
            _log.exception("no worker for graph %s", entry.id)
        self._tell_workers()

    def _tell_workers(self) -> None:
        self.bus.publish("worker", {"workers": self.workers.tell()})

    # ---------------------------------------------------------------------------------------- graphs

    def add_graph(self, name: str | None, origin: dict[str, Any]) -> Entry:
        """Register a graph from a path or a generator; it is opened soon."""
        return self._take_in(name, origin, self._config_of(name or "", origin))

    def add_upload(self, name: str, file: Path, origin: dict[str, Any]) -> Entry:
        """Register a graph from a file that was uploaded; it becomes the journal's."""
        if ldbc_parts(file):
            raise Problem(422, "an uploaded file may not refer to others", "upload a plain edge list")
        kept = self.journal.uploads / name
        config = dataclasses.replace(self._config_of(name, origin), path=str(kept))
        self.limits.of_file(file)
        entry = self.catalogue.add(name, origin, config)
        file.rename(kept)
        return self._load(entry, accepted=False, keep=True)

    def _config_of(self, name: str, origin: dict[str, Any]) -> GraphConfig:
        directed = origin.get("directed")
        base = dataclasses.replace(
            self.config.graph, path=None, format=origin.get("format", "auto"),
            directed="auto" if directed is None else directed,
        )  # fmt: skip
        if "upload" in origin:
            return dataclasses.replace(base, path=str(self.journal.uploads / name))
        if origin.get("path") is not None:
            path = self.roots.find(origin["path"])
            self.limits.of_file(path)
            return dataclasses.replace(base, path=str(path))
        wanted = GeneratorConfig(**origin["generator"])
        self.limits.of_generator(wanted)
        return dataclasses.replace(base, generator=wanted)

    def _take_in(
        self,
        name: str | None,
        origin: dict[str, Any],
        config: GraphConfig,
        *,
        accepted: bool = False,
        keep: bool = True,
    ) -> Entry:
        if not accepted:
            self.compute.require_room()
        return self._load(self.catalogue.add(name, origin, config), accepted=accepted, keep=keep)

    def _load(self, entry: Entry, *, accepted: bool, keep: bool) -> Entry:
        if keep:
            self.journal.write_graph(entry.id, {"id": entry.id, "origin": entry.origin, "created": entry.created})
        try:
            self.compute.submit(Load(self, entry), accepted=accepted)
        except Problem:
            self.catalogue.drop(entry)
            self.journal.forget_graph(entry.id)
            raise
        return entry

    def remove_graph(self, name: str) -> None:
        waiting = [job for job in self.book.all() if job.graph == name and job.state not in OVER]
        if waiting:
            raise Problem(409, f"{len(waiting)} jobs need the graph", "cancel them first")
        entry = self.catalogue.remove(name)
        if entry.graph is not None:
            self.workers.forget(entry.graph, [one.graph for one in self.catalogue.all() if one.graph is not None])
        self.journal.forget_graph(name)
        entry.state = "failed"
        self.bus.publish("graph", {**entry.tell(), "state": "unloaded"})

    # ------------------------------------------------------------------------------------ jobs, queries

    def submit(self, job: Job) -> Job:
        """Check a job and accept it."""
        entry = self.catalogue.ready(job.graph)
        assert entry.graph is not None
        description = description_of(job.algorithm)
        own = getattr(description, "listens", ()) + (("source_seed",) if description.sourced else ())
        shared = SHARED_OPTIONS if job.algorithm in ("bfs", *SHARINGS) else ()
        for name in job.options:
            if name not in (*own, "source_seed", *shared):
                known = ", ".join((*own, *shared)) or "none"
                raise Problem(422, f"{job.algorithm} has no option {name!r}", f"its options: {known}")
        if not description.sourced and job.source is not None:
            raise Problem(422, f"{job.algorithm} has no source", "leave it out")
        if description.sourced and job.source is None:
            raise Problem(422, f"{job.algorithm} needs a source", "name a vertex, or random:1")
        job.runner = self.runner
        try:
            config = job_config(job, self.config)
        except Exception as error:
            raise problem_of(error) from None
        self.limits.of_job(entry.graph, self._count_sources(job, entry) if description.sourced else 1)
        for vertex in _vertices(config.centrality.sources):
            entry.source(vertex)
        self.book.submit(job)
        return job

    def arm_deadline(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        """Stop a job when its time is over, counted from its submission or, after a restart, from now."""

        def stop() -> None:
            if job.state not in OVER:
                self.book.cancel(job, "deadline")

        if job.deadline_s is not None and job.state not in OVER:
            loop.call_later(job.deadline_s, stop)

    def _count_sources(self, job: Job, entry: Entry) -> int:
        if isinstance(job.source, str):
            count = int(job.source.partition(":")[2] or 1)
        else:
            vertices = _vertices(job.source)
            count = len(vertices)
            for vertex in vertices[: self.settings.max_sources]:
                entry.source(vertex)
        if count > self.settings.max_sources:
            most = f"at most {self.settings.max_sources} (service.max_sources)"
            raise Problem(413, f"{count} sources are too many for one job", most)
        return count

    async def ask(
        self,
        graph: str,
        source: int,
        answering: Answering,
        asked: Any = None,
        *,
        target: int | None = None,
        deadline_s: float | None = None,
    ) -> dict[str, Any]:
        """Answer a single-source query, together with others that come at the same time."""
        entry = self.catalogue.ready(graph)
        assert entry.searcher is not None
        start = entry.source(source)
        if target is not None:
            asked = entry.source(target)
        loop = asyncio.get_running_loop()
        allowed = min(deadline_s or self.settings.deadline_s, self.settings.deadline_s)
        query = SearchQuery(
            entry.searcher, start, answering, asked, time.monotonic() + allowed, loop, loop.create_future()
        )
        self.compute.ask(query)
        return await query.future

    # ------------------------------------------------------------------------------------------ state

    def readiness(self) -> tuple[bool, list[str]]:
        """Whether every graph that was asked for can be asked, and if not, why."""
        reasons = [f"graph {e.id} is {e.state}" for e in self.catalogue.all() if e.state in ("waiting", "loading")]
        if self.draining:
            reasons.append("the service is shutting down")
        return not reasons, reasons

    def gauges(self) -> dict[str, tuple[str, float]]:
        queries, work = self.compute.depth
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "up_seconds": ("since the start", time.time() - self.started),
            "queries_waiting": ("queries that wait", queries),
            "jobs_waiting": ("jobs and graphs that wait", work),
            "compute_busy_seconds_total": ("time spent computing", self.compute.busy_s),
            "graphs": ("graphs in memory", len(self.catalogue.all())),
            "listeners": ("open event streams", len(self.bus.listeners)),
            "peak_memory_bytes": ("largest resident size", used.ru_maxrss * 1024.0),
            "resident_memory_bytes": ("resident size", _resident_bytes()),
            **({} if self.crew is None else self.crew.gauges()),
            **self.workers.gauges(),
        }

    def algorithms(self) -> list[dict[str, Any]]:
        """What can be asked for in a job."""
        from hybrid.library import NAMES

        found = []
        for name in NAMES:
            one = description_of(name)
            options = one.options(self.config) if isinstance(one, Algorithm) else {}
            if name in ("bfs", *SHARINGS) and self.settings.workers:
                options = {**options, "npu.mode": self.config.npu.mode}
            columns = {column.name: column.meaning for column in one.fields}
            found.append(
                {"name": name, "title": one.title, "sourced": one.sourced, "check": one.checked_by, "options": options,
                 "columns": columns}
            )  # fmt: skip
        return found

    @property
    def cache(self) -> Path:
        return cache_folder(self.config.graph)


def _vertices(sources: Any) -> list[int]:
    if isinstance(sources, int):
        return [sources]
    return [] if isinstance(sources, str) or sources is None else list(sources)


def _resident_bytes() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())
    except (OSError, ValueError, IndexError):
        return 0.0
