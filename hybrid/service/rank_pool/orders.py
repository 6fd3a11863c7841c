"""What a rank of the pool does with an order: one algorithm on one graph, for some start vertices. Drivers only.

Parts of graphs, and what an algorithm has made of them, stay for the next order. Invariant: rank 0 alone speaks, in
internal ids and unchecked - the service checks every value on its own copy of the graph; an order that is to be stopped
is stopped by all ranks at the same point.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.comm.collectives import TAG_JOB, RankInfo, from_bytes, gather_facts, to_bytes
from cpu_engine.comm.requests import AllReduce, Driver, Message, Progress, Request
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition.part import Part
from cpu_engine.graph.partition.store import graph_fingerprint
from cpu_engine.graph.store.graph_store import map_store
from cpu_engine.ranks.algorithms import RankAlgorithm
from hybrid.algorithms import algorithm_named
from hybrid.api.options import configured
from hybrid.config.schema import Config
from hybrid.graphs.opening import Opened
from hybrid.graphs.sources import Source
from hybrid.ranks.algorithms import masters_by_part
from hybrid.ranks.part_runs import PartRuns
from hybrid.ranks.parts import OpenedPart
from hybrid.ranks.rendezvous import require_same
from hybrid.ranks.summary import describe_search
from hybrid.ranks.trace import RankTrace
from hybrid.ranks.warm_up import warm_up_on_ranks
from hybrid.results.trace import Trace
from hybrid.service.rank_pool.wire import Frame

Order = dict[str, Any]
_MOST_MADE = 6  # algorithms on parts that are kept with their buffers; the parts themselves stay
# Between two looks for an order: an idle pool takes no CPU to speak of.
_SHORTEST_LOOK_S, _LONGEST_LOOK_S = 0.0002, 0.01


class StoppedTogether(Exception):
    """All ranks have left the order at the same point."""


class PoolWork(PartRuns):
    """One rank's side of every order. ``say`` is how rank 0 speaks; no client hears the others."""

    def __init__(self, info: RankInfo, say: Callable[[Frame], None]) -> None:
        super().__init__(info, Config())
        self._say = say
        self._graphs: dict[str, Opened] = {}  # by the store's path
        self._parts: dict[tuple[object, ...], OpenedPart] = {}
        self._made: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._warm: set[tuple[object, ...]] = set()

    def obey(self, order: Order) -> Driver[None]:
        """All of an order; rank 0 says ``run`` for each start vertex and ``done`` at the end."""
        info, began = self.info, time.perf_counter()
        self._forget_others(order["keep"])
        self.config = configured(order["algorithm"], order["options"])
        self.trace, self.events, self.statistics = Trace(), RankTrace(info), []
        yield from self.events.align(self.trace)
        origin = time.perf_counter()  # of the events' clock, as the service's own sees it
        opened = yield from self._open_store(order)
        graph = opened.graph
        chosen, policy, sync = self.choose(order["algorithm"])
        known = (order["store"], policy, chosen.weighted, chosen.symmetric)
        if known not in self._parts:
            self._parts[known] = yield from self.open_part(opened, chosen, policy)
        mine = self._parts[known]
        yield from self._warm_up_once(chosen, graph, policy, sync)
        made = self._make(known, mine.part, chosen, graph, sync, order)
        self.events.extend(-1, [("prepare", began, time.perf_counter(), {"from_cache": mine.from_cache})])
        own = masters_by_part(mine.part) if info.rank == 0 else None
        for index, (user_id, internal) in enumerate(order["roots"]):
            source = Source(user_id, internal) if chosen.sourced else None
            done, _ = yield from self.run_parts(chosen, made, graph, source, own)
            events = yield from self._take_events()
            if done.found is not None:
                facts = {"ticket": order["ticket"], "index": index, "seconds": done.seconds, "origin": origin}
                counters = {**done.found.counters, "ranks": describe_search(done.by_rank)}
                facts |= {"counters": counters, "isolated": done.found.isolated, "events": events}
                self._say(Frame("run", facts, done.found.arrays))
        ranks = yield from self.describe(mine, sync)
        if ranks is not None:
            self._say(Frame("done", {"ticket": order["ticket"], "ranks": ranks}))

    def forget_made(self) -> None:
        """After an order that was left in the middle: its buffers are in no known state."""
        self._made.clear()

    def _forget_others(self, stores: list[str]) -> None:
        for store in [one for one in self._graphs if one not in stores]:
            del self._graphs[store]
        for kept in (self._parts, self._made):
            for known in [one for one in kept if one[0] not in stores]:
                del kept[known]

    def _open_store(self, order: Order) -> Driver[Opened]:
        store = order["store"]
        if store not in self._graphs:
            path = Path(store)
            graph = map_store(path)
            fix = "let all machines share the cache folder (graph.cache_dir)"
            yield from require_same(self.info, "graph", graph_fingerprint(graph, path), fix)
            self._graphs[store] = Opened(graph, order["graph"], True, 0.0, 0.0, (), path)
        return self._graphs[store]

    def _warm_up_once(self, chosen: RankAlgorithm, graph: Graph, policy: str, sync: str) -> Driver[None]:
        kind = None if graph.weight is None else str(graph.weight.dtype)
        known = (chosen.name, self.config.engine, graph.directed, kind, policy, sync)
        if known in self._warm:
            return
        algorithm = algorithm_named(chosen.name)
        yield from warm_up_on_ranks(self.info, algorithm, chosen, self.config, graph, policy, sync)
        self._warm.add(known)

    def _make(
        self, known: tuple[object, ...], part: Part, chosen: RankAlgorithm, graph: Graph, sync: str, order: Order
    ) -> Any:
        config = self.config
        key = (*known, chosen.name, sync, config.engine, config.sssp.delta)
        if key not in self._made:
            self._made[key] = chosen.make(part, graph, sync, {"delta": config.sssp.delta})
            while len(self._made) > _MOST_MADE:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]

    def _take_events(self) -> Driver[list[dict[str, Any]]]:
        mine, self.events.events = self.events.events, []
        by_rank = yield from gather_facts(self.info, mine)
        return sorted((event for one in by_rank or [] for event in one), key=lambda event: float(event["t1"]))


def tell_order(info: RankInfo, order: Order) -> Driver[None]:
    payload = to_bytes(order)
    yield Progress([Message(rank, TAG_JOB, payload) for rank in info.others])


def hear_order() -> Driver[Order]:
    """The others wait for one: for seconds or days, so they look ever more rarely."""
    pause_s = _SHORTEST_LOOK_S
    while True:
        arrived: list[Message] = yield Progress()
        if arrived:
            order: Order = from_bytes(arrived[0].payload)
            return order
        time.sleep(pause_s)
        pause_s = min(1.1 * pause_s, _LONGEST_LOOK_S)


def stoppable(driver: Driver[None], wanted: Callable[[], bool]) -> Driver[None]:
    """Run a driver; ``StoppedTogether`` on all ranks once one wants it.

    A rank that wants to stop says so in the next reduction, as one more element of it: so all ranks know at the same
    point, where no exchange is half done. Between reductions nothing is noticed.
    """
    answer: Any = None
    try:
        while True:
            request: Request = driver.send(answer)
            if not isinstance(request, AllReduce):
                answer = yield request
                continue
            wish = (-1 if request.op == "min" else 1) if wanted() else 0
            values = np.append(np.asarray(request.values, np.int64), wish)
            reduced = yield AllReduce(values, request.op, request.patient)
            if reduced[-1] != 0:
                raise StoppedTogether
            answer = reduced[:-1]
    except StopIteration:
        return
    finally:
        driver.close()
