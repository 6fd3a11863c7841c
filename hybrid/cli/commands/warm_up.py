"""``warm-up``: compile everything a job may use, so that the first real job does not have to. Kept in numba's cache."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hybrid.errors import EXIT_OK
from hybrid.registry import ALGORITHMS
from hybrid.terminal import say, seconds

_ON_RANKS = (("async", "basp", "oec"), ("async", "bsp", "cvc"), ("level", "bsp", "oec"), ("level", "bsp", "2d"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.bfs.many.engine import warm_up_many
    from hybrid.job.warm_up import warm_up
    from hybrid.ranks.warm_up import search_in_loopback

    phases: list[tuple[str, Callable[[], object]]] = [
        ("generators and build", _build),
        ("text reader", _read),
        ("asynchronous engine, certificate", lambda: warm_up("async")),
        ("level engine", lambda: warm_up("level")),
        *((" ".join((how[0], "engine on ranks,", *how[1:])), partial(search_in_loopback, *how)) for how in _ON_RANKS),
        ("many sources at once", warm_up_many),
        ("statistics of cores", _count),
        *((name, partial(_run_on_samples, name)) for name in ALGORITHMS if name != "bfs"),
    ]
    began = time.perf_counter()
    for name, compile_them in phases:
        t0 = time.perf_counter()
        compile_them()
        say(f"{seconds(time.perf_counter() - t0):>10}  {name}")
    say(f"{seconds(time.perf_counter() - began):>10}  in all; from now on they are loaded from the cache")
    return EXIT_OK


def _build() -> None:
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import grid, kronecker, uniform

    for edges in (kronecker(6, 4), uniform(6, 4), grid(4, 4)):
        build_graph(edges, directed=None)
        build_graph(edges, directed=True)


def _count() -> None:
    from cpu_engine.graph.build.builder import build_graph
    from cpu_engine.graph.generators import grid
    from hybrid.planning.core_statistics import core_statistics

    graph = build_graph(grid(4, 4), directed=False)
    for few_rows in (0, graph.n):
        core_statistics(graph, few_rows=few_rows)


def _run_on_samples(name: str) -> None:
    """An algorithm on undirected and directed graphs, with whole and real weights and none if it looks at them."""
    from hybrid.algorithms import algorithm_named
    from hybrid.config.schema import Config
    from hybrid.job.warm_up import sample_graph, warm_up_job

    algorithm = algorithm_named(name)
    kinds = (None, np.dtype(np.int64), np.dtype(np.float64)) if algorithm.weighted else (None,)
    for directed in (False, True):
        for kind in kinds:
            warm_up_job(algorithm, Config(), sample_graph(directed=directed, weight_kind=kind))


def _read() -> None:
    from cpu_engine.graph.formats import read_graph

    with tempfile.TemporaryDirectory(prefix="tandem-warm-up-") as scratch:
        for text in ("0 1\n1 2\n", "0 1 5\n1 2 7\n", "0 1 0.5\n1 2 0.25\n"):
            path = Path(scratch) / "graph.el"
            path.write_text(text)
            read_graph(path)
