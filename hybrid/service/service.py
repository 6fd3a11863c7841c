"""The service as a whole: graphs, jobs, queries and events behind one object that routes talk to. No HTTP in here."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cpu_engine.errors import ExplainedError
from cpu_engine.graph.formats.bounds import bounded
from hybrid.algorithms import description_of
from hybrid.algorithms.algorithm import Algorithm
from hybrid.config.schema import Config, GeneratorConfig, GraphConfig
from hybrid.graphs.opening import cache_folder
from hybrid.job.engines import SHARING
from hybrid.registry import ALGORITHMS
from hybrid.service.catalogue import Catalogue, Entry, open_entry
from hybrid.service.data_roots import DataRoots, ldbc_parts
from hybrid.service.events import EventBus
from hybrid.service.http.problems import Problem, problem_of, shutting_down
from hybrid.service.metrics import Metrics
from hybrid.service.queue import searches
from hybrid.service.queue.compute import Compute, Stopped
from hybrid.service.queue.disk import Disk
from hybrid.service.queue.estimates import Limits
from hybrid.service.queue.jobs import CANCELLED, OVER, Job, JobBook
from hybrid.service.queue.journal import Journal
from hybrid.service.queue.runner import Runner, job_config
from hybrid.service.queue.searches import Answering, SearchQuery
from hybrid.service.rank_pool.pool import RankPool
from hybrid.service.worker.pool import Workers
from hybrid.terminal import plural

T = TypeVar("T")
Origin = dict[str, Any]  # of a graph: enough to open it again
_log = logging.getLogger(__name__)
_FILE_THREADS = 2  # that look at clients' files, so that neither the loop nor the threads of results wait for them
SHARED_OPTIONS = ("npu.mode", "compare.enabled")  # of algorithms that can share their core with a worker


@dataclasses.dataclass(eq=False)
class Load:
    """Opening a graph: work for the computing thread."""

    service: Service
    entry: Entry
    stop_reason: str = ""

    def carry_out(self) -> None:
        entry, service = self.entry, self.service
        service.bus.publish("graph", entry.to_dict())
        if entry.kept and not self.stop_reason:
            service.journal.begin_loading(entry.id)
        try:
            with service.compute.interruptible(), bounded(service.limits.while_reading(lambda: None)):
                open_entry(entry, service.settings.max_vertices)
        except Stopped:
            entry.state = "waiting"  # a shutdown, after which the journal knows the graph; or it is to be removed
        except Exception:
            if entry.problem is not None and entry.problem.status == 500:
                _log.exception("graph %s", entry.id)
        cancelled = self.stop_reason == CANCELLED
        if entry.store is not None:
            with contextlib.suppress(OSError):
                service.disk.note_store(entry.store, entry.built)
            if cancelled and "upload" in entry.origin:
                service.disk.drop_store(entry.store)
        if entry.kept and not cancelled:  # else another graph may have the name by now
            service.journal.end_loading(entry.id)
        if entry.state == "loading":
            entry.state = "ready"  # from here on it may be asked, unloaded, and its store removed
        entry.load = None
        _log.info("graph", extra={"facts": {"graph": entry.id, "state": entry.state, "s": round(entry.seconds, 3)}})
        if not cancelled:
            service.bus.publish("graph", entry.to_dict())
            if entry.state == "ready":
                service.settle_worker(entry)


class Service:
    """See the module. ``open`` before use; ``compute.run`` on the main thread; ``close`` at the end."""

    def __init__(self, config: Config) -> None:
        self.config, self.settings = config, config.service
        settings = config.service
        self.metrics = Metrics()
        self.compute = Compute(partial(searches.answer, observe=self.metrics.count_batch), settings)
        self.bus = EventBus(settings.max_listeners)
        self.catalogue = Catalogue(settings)
        self.journal = Journal(Path(settings.journal_dir).expanduser())
        self.roots = DataRoots(settings.data_roots)
        self.limits = Limits(settings)
        self.workers = Workers(config, self.journal.folder, self._tell_workers)
        self.rank_pool = RankPool(config) if config.ranks > 1 else None
        self.book = JobBook(self.journal, self.compute, self.bus, settings.keep_jobs)
        self.disk = Disk(settings.disk_bytes, self.cache, self.journal, self.catalogue, self.book)
        self.runner = Runner(self)
        self.started = time.time()
        self.draining = False
        self.connections: Any = None  # of the server, once there is one
        self._files = ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="files")
        self._records = ThreadPoolExecutor(1, thread_name_prefix="journal")  # one: records keep their order

    def open(self) -> None:
        """Take the journal, and go on with what is in it."""
        self.journal.open()
        if self.rank_pool is not None:
            self.rank_pool.open()
        self.workers.open()
        for document in self.journal.graphs():
            try:
                name, origin = document["id"], document["origin"]
                config = self._config_of(name, origin)
                died = self.journal.died_loading(name)
                entry = self.catalogue.add(name, origin, config)
                if died:  # it is not opened again unasked: that process might be this one's next
                    detail = "the service ended while it opened this graph, so it was not opened again"
                    entry.state = "failed"
                    entry.problem = Problem(503, detail, f"POST /v1/graphs/{name}/open to try again, or DELETE it")
                    _log.warning("graph %s: %s", name, detail)
                else:
                    self._load(entry, accepted=True)
            except Exception as error:  # a file that has gone, or is another by now, keeps no other graph from opening
                _log.warning("journal: graph %s is not opened again: %s", document["id"], error)
        if self.settings.preload:
            wanted = self.config.graph
            origin = {"preload": wanted.path or dataclasses.asdict(wanted.generator)}
            if not any(entry.origin == origin for entry in self.catalogue.all()):
                self._load(self.catalogue.add(None, origin, wanted), accepted=True, keep=False)
        for document in self.journal.jobs():
            job = self.book.restore(document, self.runner)
            if job.state not in OVER:
                self.compute.submit(job, accepted=True)

    def close(self) -> None:
        self._files.shutdown(cancel_futures=True)
        self._records.shutdown(cancel_futures=True)  # what has not begun was not accepted
        self.workers.close()
        if self.rank_pool is not None:
            self.rank_pool.close()
        self.journal.close()

    def settle_worker(self, entry: Entry) -> None:
        """Whether a worker is kept warm for a graph that has come; it is answered about meanwhile."""
        assert entry.graph is not None
        assert entry.searcher is not None
        try:
            with self.compute.interruptible():
                entry.searcher.helper = self.workers.settle(entry.id, entry.graph)
        except Stopped:
            return
        except Exception:
            _log.exception("no worker for graph %s", entry.id)
        self._tell_workers()

    def _tell_workers(self) -> None:
        self.bus.publish("worker", {"workers": self.workers.tell()})

    async def record(self, call: Callable[..., T], *arguments: Any) -> T:
        """Run what changes jobs or graphs in the journal: beside the loop, in the order of the calls.

        The disk is flushed there, and whole folders are removed. Once begun it comes to its end, whether or not the
        client still listens.
        """
        return await asyncio.get_running_loop().run_in_executor(self._records, call, *arguments)

    async def look(self, call: Callable[..., T], *arguments: Any) -> T:
        """Run what reads a client's file: beside the loop, within bounds, and not beyond a shutdown."""

        def require_open() -> None:
            if self.draining:
                raise shutting_down()

        def run() -> T:
            try:
                with bounded(self.limits.while_reading(require_open)):
                    return call(*arguments)
            except (ExplainedError, OSError) as error:
                raise problem_of(error) from error

        return await asyncio.get_running_loop().run_in_executor(self._files, run)

    def add_graph(self, name: str | None, origin: Origin) -> Entry:
        """Register a graph from a path or a generator; it is opened soon."""
        config = self._config_of(name or "", origin)
        self.compute.require_room()
        return self._load(self.catalogue.add(name, origin, config))

    def add_upload(self, name: str, file: Path, origin: Origin) -> Entry:
        """Register a graph from a file that was uploaded; it becomes the journal's."""
        if ldbc_parts(file):
            raise Problem(422, "an uploaded file may not refer to others", "upload a plain edge list")
        self.limits.of_file(file)
        self.disk.make_room()
        entry = self.catalogue.add(name, origin, self._config_of(name, origin))
        try:
            file.rename(self.journal.upload_file(name))
        except OSError:
            self.catalogue.drop(entry)
            raise
        return self._load(entry)

    def _config_of(self, name: str, origin: Origin) -> GraphConfig:
        form, directed = origin.get("format", "auto"), origin.get("directed")
        directed = "auto" if directed is None else directed
        base = dataclasses.replace(self.config.graph, path=None, format=form, directed=directed)
        if "upload" in origin:
            return dataclasses.replace(base, path=str(self.journal.upload_file(name)))
        if origin.get("path") is not None:
            path = self.roots.find(origin["path"], base.format)
            self.limits.of_file(path)
            return dataclasses.replace(base, path=str(path))
        wanted = GeneratorConfig(**origin["generator"])
        self.limits.of_generator(wanted)
        return dataclasses.replace(base, generator=wanted)

    def _load(self, entry: Entry, *, accepted: bool = False, keep: bool = True) -> Entry:
        """Take a graph in that is in the catalogue already. ``accepted``: by an earlier process."""
        entry.kept = keep
        try:
            if keep:
                self.journal.write_graph(entry.id, {"id": entry.id, "origin": entry.origin, "created": entry.created})
            self._submit_load(entry, accepted=accepted)
        except (Problem, OSError):
            self.catalogue.drop(entry)
            self.journal.forget_graph(entry.id)
            raise
        return entry

    def _submit_load(self, entry: Entry, *, accepted: bool = False) -> None:
        entry.load = Load(self, entry)
        self.compute.submit(entry.load, accepted=accepted)

    def reopen_graph(self, name: str) -> Entry:
        entry = self.catalogue.get(name)
        problem = entry.problem
        if entry.state != "failed":
            raise Problem(409, f"the graph is {entry.state}", "only a graph that could not be opened is opened again")
        entry.state, entry.problem = "waiting", None
        try:
            self._submit_load(entry)
        except Problem:
            entry.state, entry.problem = "failed", problem
            raise
        return entry

    def remove_graph(self, name: str) -> None:
        waiting = sum(job.graph == name and job.state not in OVER for job in self.book.all())
        if waiting:
            raise Problem(409, f"{plural(waiting, 'job needs', 'jobs need')} the graph", "cancel them first")
        entry = self.catalogue.get(name)
        load = entry.load
        if load is not None and entry.state in ("waiting", "loading") and self.compute.stop(load, CANCELLED):
            self.catalogue.drop(entry)
        else:
            self.catalogue.remove(name)
        if entry.graph is not None:
            self.workers.forget(entry.graph, [one.graph for one in self.catalogue.all() if one.graph is not None])
        self.journal.forget_graph(name)
        if "upload" in entry.origin:
            self.disk.drop_store(entry.store)
        entry.state = "failed"
        self.bus.publish("graph", {**entry.to_dict(), "state": "unloaded"})

    async def accept(self, job: Job) -> None:
        """``submit`` beside the loop; from then on the job's time is counted, also if the client leaves meanwhile."""
        loop = asyncio.get_running_loop()

        def submit() -> None:
            self.submit(job)
            loop.call_soon_threadsafe(self.arm_deadline, job, loop)

        await self.record(submit)

    def submit(self, job: Job) -> Job:
        entry = self.catalogue.ready(job.graph)
        assert entry.graph is not None
        description = description_of(job.algorithm)
        own = getattr(description, "listens", ()) + (("source_seed",) if description.sourced else ())
        shared = SHARED_OPTIONS if job.algorithm in SHARING else ()
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
        """Stop a job when its time is over.

        Its own counts from its submission or, after a restart, from now; the service's from when it runs.
        """
        armed, own = time.time(), job.deadline_s

        def look() -> None:
            if job.state in OVER:
                return
            allowed, since = (own, armed) if own is not None else (self.settings.job_deadline_s, job.started)
            left = allowed if since is None else since + allowed - time.time()
            if left > 0:
                loop.call_later(left, look)
            else:
                self._records.submit(end)

        def end() -> None:
            with contextlib.suppress(Problem):  # it ended just now
                self.book.cancel(job, "deadline")

        look()

    def _count_sources(self, job: Job, entry: Entry) -> int:
        vertices, most = _vertices(job.source), self.settings.max_sources
        count = int(job.source.partition(":")[2] or 1) if isinstance(job.source, str) else len(vertices)
        for vertex in vertices[:most]:
            entry.source(vertex)
        if count > most:
            raise Problem(413, f"{count} sources are too many for one job", f"at most {most} (service.max_sources)")
        return count

    async def ask(
        self, graph: str, source: int, answering: Answering, asked: Any = None, *, deadline_s: float | None = None
    ) -> dict[str, Any]:
        """Answer a single-source query, together with others that come at the same time; ``asked`` may be a vertex."""
        entry = self.catalogue.ready(graph)
        assert entry.searcher is not None
        start = entry.source(source)
        if isinstance(asked, int):
            asked = entry.source(asked)
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + min(deadline_s or self.settings.deadline_s, self.settings.deadline_s)
        query = SearchQuery(entry.searcher, start, answering, asked, deadline, loop, loop.create_future())
        self.compute.ask(query)
        return await query.future

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
            **self.disk.gauges(),
            **({} if self.connections is None else self.connections.gauges()),
            **({} if self.rank_pool is None else self.rank_pool.gauges()),
            **self.workers.gauges(),
        }

    def algorithms(self) -> list[dict[str, Any]]:
        """What can be asked for in a job."""
        found = []
        for name in ALGORITHMS:
            one = description_of(name)
            options = one.options(self.config) if isinstance(one, Algorithm) else {}
            if name in SHARING and self.settings.workers:
                options = {**options, "npu.mode": self.config.npu.mode}
            columns = {column.name: column.meaning for column in one.fields}
            told = {"name": name, "title": one.title, "sourced": one.sourced, "check": one.checked_by}
            found.append({**told, "options": options, "columns": columns})
        return found

    @property
    def cache(self) -> Path:
        return cache_folder(self.config.graph)


def _vertices(sources: Any) -> list[int]:
    if isinstance(sources, int):
        return [sources]
    return list(sources) if isinstance(sources, list | tuple) else []


def _resident_bytes() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())
    except (OSError, ValueError, IndexError):
        return 0.0
