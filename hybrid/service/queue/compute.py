"""The thread that computes: what waits for it, whose turn it is, and how running work is stopped or put aside.

Invariant: kernels run on the thread that calls ``run``, one at a time. Work that is ``open`` may be interrupted between
two kernels, by a signal to that thread: to answer queries that came meanwhile - each kind of work has buffers of its
own - or to end it, by raising `Stopped`. Queues are bounded; a request that does not fit is refused.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Protocol

from numba.core.compiler_lock import global_compiler_lock

from hybrid.config.schema import ServiceConfig
from hybrid.service.http.problems import Problem, shutting_down
from hybrid.service.memory import Tidier
from hybrid.terminal import plural

_log = logging.getLogger(__name__)
WAKE = signal.SIGUSR1
LONGEST_GATHERING = 16  # times the wait for one more query
_SHORTEST_S = 0.0005
_COMPILING_S = 0.01  # work that is to end where nothing may be raised (a kernel is compiled) is looked at again then


class Stopped(BaseException):
    """Raised inside running work that shall end; not an Exception, so that no engine takes it for its own."""


class Query(Protocol):
    """A question that may share its pass with others of the same group."""

    deadline: float  # time.monotonic

    @property
    def group(self) -> object: ...

    @property
    def abandoned(self) -> bool: ...

    def refuse(self, problem: Problem) -> None: ...


class Work(Protocol):
    """Something longer, one at a time."""

    stop_reason: str

    def carry_out(self) -> None: ...


class Compute:
    """See the module."""

    def __init__(self, answer: Callable[[list[Query]], None], settings: ServiceConfig) -> None:
        self._answer, self._settings = answer, settings
        self._max_batch, self._wait_s = (settings.max_batch, settings.wait_ms / 1e3) if settings.batching else (1, 0.0)
        self._changed = threading.Condition()  # its lock is reentrant: the signal handler may come while we hold it
        self._queries: dict[object, deque[Query]] = {}  # by group, groups in the order of their turns
        self._waiting = 0
        self._last_batch = 0
        self._work: deque[Work] = deque()
        self.running: Work | None = None
        self._open = self._told = False
        self._closing = False
        self._thread: int | None = None
        self._queries_first = True
        self._undisturbed_until = 0.0
        self._tidier = Tidier()
        self.busy_s = 0.0

    # --------------------------------------------------------------------------------------- any thread

    def ask(self, query: Query) -> None:
        """Queue a query; Problem 429 if too many wait."""
        with self._changed:
            if self._closing:
                raise shutting_down()
            if self._waiting >= self._settings.query_queue:
                waiting = plural(self._waiting, "query waits", "queries wait")
                raise Problem(429, f"{waiting} already", "ask again later", retry_after_s=1)
            self._queries.setdefault(query.group, deque()).append(query)
            self._waiting += 1
            self._changed.notify()
            interrupt = self.running is not None
        if interrupt:
            self._wake()

    def submit(self, work: Work, *, accepted: bool = False) -> None:
        """Queue work; Problem 429 if too much waits, unless it was accepted before a restart."""
        with self._changed:
            if self._closing:
                raise shutting_down()
            if not accepted:
                self.require_room()
            self._work.append(work)
            self._changed.notify()

    def put_back(self, work: Work) -> None:
        """Running work could not be done after all, through no fault of its own: it is the next again."""
        with self._changed:
            self._work.appendleft(work)

    def require_room(self) -> None:
        if len(self._work) >= self._settings.job_queue:
            waiting = plural(len(self._work), "job waits", "jobs wait")
            raise Problem(429, f"{waiting} already", "submit it again later", retry_after_s=5)

    def stop(self, work: Work, reason: str) -> bool:
        """End work that waits or runs; whether it did either."""
        with self._changed:
            if work in self._work:
                self._work.remove(work)
                work.stop_reason = reason
                return True
            if self.running is not work:
                return False
            work.stop_reason = reason
        self._wake()
        return True

    def close(self, *, stop_running: bool) -> None:
        """Accept nothing more; ``run`` returns when nothing runs."""
        with self._changed:
            self._closing = True
            if stop_running and self.running is not None:
                self.running.stop_reason = self.running.stop_reason or "shutdown"
            self._changed.notify()
        if stop_running:
            self._wake()

    @property
    def depth(self) -> tuple[int, int]:
        """Queries and pieces of work that wait."""
        return self._waiting, len(self._work)

    # ------------------------------------------------------------------------------- the computing thread

    def run(self) -> None:
        """Compute until closed. On the main thread: only there do signals arrive."""
        self._thread = threading.get_ident()
        before = [(number, signal.signal(number, self._interrupt)) for number in (WAKE, signal.SIGALRM)]
        report = sys.unraisablehook
        sys.unraisablehook = lambda lost: self._raise_again() if lost.exc_type is Stopped else report(lost)
        try:
            while self._turn():
                pass
        finally:
            sys.unraisablehook = report
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before:
                signal.signal(number, handler)
            self._refuse_rest()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """A stretch of the running work in which it may be stopped, or put aside for queries."""
        work = self.running
        self._open = True
        try:
            if work is not None and work.stop_reason:
                raise Stopped
            if self._waiting:
                self._wake()  # who came while this was closed had a signal that was not heeded
            yield
        finally:
            self._open = False

    def _turn(self) -> bool:
        with self._changed:
            while not (self._waiting or self._work or self._closing):
                self._changed.wait()
            if self._closing and not self._waiting:
                return False
            work = None
            if self._work and not self._closing and not (self._waiting and self._queries_first):
                work = self.running = self._work.popleft()
                self._told = False
            self._queries_first = work is not None  # in turns, when both wait
        began = time.perf_counter()
        if work is None:
            self._serve_batch()
        else:
            self._carry_out(work)
        self.busy_s += time.perf_counter() - began
        return True

    def _carry_out(self, work: Work) -> None:
        try:
            work.carry_out()
        except (Exception, Stopped):  # carry_out tells its own failures; this is for what it could not
            _log.exception("work failed outside of its own care")
        finally:
            with self._changed:
                self.running = None
                self._open = False
            self._tidier.tidy()

    def _serve_batch(self) -> None:
        batch = self._gather()
        if not batch:
            return
        try:
            self._answer(batch)
        except Exception as error:
            _log.exception("a batch failed")
            for query in batch:
                query.refuse(Problem(500, f"the search failed: {type(error).__name__}", "see the service's log"))

    def _gather(self) -> list[Query]:
        """Queries of the group whose turn it is. Waits for more while more come; a lone client does not wait."""
        with self._changed:
            if not self._queries:
                return []
            group = next(iter(self._queries))
            waiting = self._queries[group]
            count = len(waiting)
        if self._wait_s and (count > 1 or self._last_batch > 1):
            until = time.monotonic() + LONGEST_GATHERING * self._wait_s
            while count < self._max_batch and time.monotonic() < until:
                time.sleep(self._wait_s)
                before, count = count, len(waiting)
                if count == before:
                    break
        with self._changed:
            batch = [waiting.popleft() for _ in range(min(self._max_batch, len(waiting)))]
            self._waiting -= len(batch)
            del self._queries[group]
            if waiting:
                self._queries[group] = waiting  # at the end: the other groups come first
        self._last_batch = len(batch)
        return [query for query in batch if not self._expired(query)]

    @staticmethod
    def _expired(query: Query) -> bool:
        late = time.monotonic() > query.deadline
        if late:
            query.refuse(Problem(504, "the query waited longer than its deadline", "ask again, or allow it more time"))
        return late or query.abandoned

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Between two instructions of open work: answer who waits, end what shall end."""
        work = self.running
        if work is None or not self._open:
            return
        began = time.perf_counter()
        if self._waiting and not work.stop_reason and began >= self._undisturbed_until:
            self._open = False
            try:
                self._serve_batch()
            finally:
                self._open = True
            now = time.perf_counter()
            self._undisturbed_until = now + (now - began)  # then the work has as long as the batch had
        if work.stop_reason and not self._told:
            if global_compiler_lock.is_locked():  # what is raised inside LLVM's callbacks ends the process
                signal.setitimer(signal.ITIMER_REAL, _COMPILING_S)
                return
            self._told = True
            raise Stopped
        if self._waiting:
            rest = self._undisturbed_until - time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, max(_SHORTEST_S, rest))

    def _raise_again(self) -> None:
        """`Stopped` met an object's ``__del__``, out of which Python lets nothing be raised: the work still runs."""
        self._told = False
        signal.setitimer(signal.ITIMER_REAL, _COMPILING_S)

    def _wake(self) -> None:
        if self._thread is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pthread_kill(self._thread, WAKE)

    def _refuse_rest(self) -> None:
        with self._changed:
            left = [query for waiting in self._queries.values() for query in waiting]
            self._queries.clear()
            self._waiting = 0
        for query in left:
            query.refuse(shutting_down())
