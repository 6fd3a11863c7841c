"""``bench networkx``: a first search through the NetworkX backend, conversion included, against NetworkX's own.

The same random graph is built in every ordinary way, because NetworkX's time depends on it: where every mention of a
node is a Python object of its own, memory holds it up. Kernels are compiled before; each turn of ours begins with a
graph that was never converted.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest.rounds import FIX
from benchmarks.contest.workload import set_threads
from benchmarks.output import Report, ratio_text
from benchmarks.plot import Bar, draw_bars
from hybrid.checkout import install_command
from hybrid.errors import ConfigError, EnvironmentProblem, NotCertified
from hybrid.terminal import note, progress, seconds, table

Ends = np.ndarray  # int64[edges, 2], each edge once, no loops


def execute(options: argparse.Namespace) -> Report:
    try:
        import networkx as nx
    except ImportError:
        raise EnvironmentProblem("this benchmark needs networkx", fix=install_command("networkx")) from None
    set_threads(options.threads)
    warnings.filterwarnings("ignore", message="Note: conversions to backend graphs are saved")
    known = ways(nx)
    unknown = [name for name in options.only if name not in known]
    if unknown:
        raise ConfigError("--only: no such way to build a graph", value=unknown[0], fix=f"one of: {'; '.join(known)}")
    chosen = {name: known[name] for name in options.only or known}
    rows: list[dict[str, Any]] = []
    with progress("measuring", "graph") as bar:
        for done, (name, make) in enumerate(chosen.items()):
            _compile(nx, make, options.functions)
            rows += _measured(nx, name, make, options)
            bar(done + 1, len(chosen))
    report = Report("networkx", {"nodes": options.nodes, "edges": options.edges, "ways": rows})
    for function in options.functions:
        report.lines += [f"nx.{function}, about {options.edges} edges:", _table(rows, function), ""]
    bars = [
        Bar(row["way"], row["gain"], ratio_text(row["gain"])) for row in rows if row["function"] == options.functions[0]
    ]
    report.charts.append(draw_bars("BFS of NetworkX graphs", "times as fast as NetworkX, conversion included", bars))
    return report


def ways(nx: Any) -> dict[str, Callable[[int, int], Any]]:
    """Name to a function of (nodes, edges) that builds such a graph, or one of nearly that size."""

    def added(kind: Any, name_of: Callable[[int], Any] | None = None, shared: bool = True) -> Callable[[int, int], Any]:
        def make(nodes: int, edges: int) -> Any:
            pairs = _ends(nodes, edges).tolist()
            graph = kind()
            if name_of is not None and not shared:
                graph.add_edges_from((name_of(u), name_of(v)) for u, v in pairs)
            elif shared:
                named = [node if name_of is None else name_of(node) for node in range(nodes)]
                graph.add_nodes_from(named)
                graph.add_edges_from((named[u], named[v]) for u, v in pairs)
            else:
                graph.add_edges_from(pairs)
            return graph

        return make

    def read(**how: Any) -> Callable[[int, int], Any]:
        def make(nodes: int, edges: int) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "graph.el"
                np.savetxt(path, _ends(nodes, edges), fmt="%d")
                return nx.read_edgelist(path, **how)

        return make

    def from_matrix(nodes: int, edges: int) -> Any:
        import scipy.sparse

        ends = _ends(nodes, edges)
        half = scipy.sparse.coo_array((np.ones(len(ends), np.int8), ends.T), shape=(nodes, nodes))
        return nx.from_scipy_sparse_array(half + half.T)

    def grid(nodes: int, edges: int) -> Any:
        side = max(int((edges / 2) ** 0.5), 2)
        return nx.grid_2d_graph(side, side)

    return {
        "gnm_random_graph": lambda n, m: nx.gnm_random_graph(n, m, seed=1),
        "gnm_random_graph, directed": lambda n, m: nx.gnm_random_graph(n, m, seed=1, directed=True),
        "barabasi_albert_graph": lambda n, m: nx.barabasi_albert_graph(n, max(m // n, 1), seed=1),
        "add_edges_from, nodes of a range": added(nx.Graph),
        "add_edges_from, an array's ints": added(nx.Graph, shared=False),
        "DiGraph, nodes of a range": added(nx.DiGraph),
        "DiGraph, an array's ints": added(nx.DiGraph, shared=False),
        "MultiGraph, nodes of a range": added(nx.MultiGraph),
        "texts, one object per node": added(nx.Graph, "node-{}".format),
        "texts, an object per mention": added(nx.Graph, "node-{}".format, shared=False),
        "read_edgelist": read(),
        "read_edgelist, nodetype=int": read(nodetype=int),
        "read_edgelist, DiGraph": read(create_using=nx.DiGraph),
        "from_scipy_sparse_array": from_matrix,
        "grid_2d_graph (tuples)": grid,
    }


def _ends(nodes: int, edges: int) -> Ends:
    """A random graph's edges, all different, in random order and direction."""
    draw = np.random.default_rng(1)
    code = np.unique(draw.integers(0, nodes * nodes, 2 * edges + 64))
    first, second = code // nodes, code % nodes
    once = np.flatnonzero(first < second)
    kept = draw.permutation(once)[:edges]
    ends = np.stack([first[kept], second[kept]], axis=1)
    turned = draw.random(len(ends)) < 0.5
    ends[turned] = ends[turned, ::-1]
    return ends


def _compile(nx: Any, make: Callable[[int, int], Any], functions: list[str]) -> None:
    """The same kind of graph, as small as the kernels for large ones are used for."""
    graph = make(3_000, 45_000)
    for function in functions:
        getattr(nx, function)(graph, next(iter(graph)), backend="tandem")


def _measured(nx: Any, name: str, make: Callable[[int, int], Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    graph = make(options.nodes, options.edges)
    gc.collect()
    source, rows = next(iter(graph)), []
    for function in options.functions:
        spent: dict[str, list[float]] = {"networkx": [], "tandem": [], "again": []}
        for _ in range(options.rounds):
            graph.__networkx_cache__.clear()
            found = {}
            for turn, backend in (("networkx", "networkx"), ("tandem", "tandem"), ("again", "tandem")):
                begin = time.perf_counter()
                found[turn] = getattr(nx, function)(graph, source, backend=backend)
                spent[turn].append(time.perf_counter() - begin)
            expected = _lengths(found["networkx"])
            if any(_lengths(found[turn]) != expected for turn in ("tandem", "again")):
                raise NotCertified(f"{name}: {function} differs from NetworkX's", fix=FIX)
            del found
        middle = {turn: statistics.median(times) for turn, times in spent.items()}
        best = {turn: min(times) for turn, times in spent.items()}
        rows.append({
            "way": name, "function": function, "nodes": len(graph), "edges": graph.number_of_edges(), "spent": spent,
            "best": best, "median": middle, "gain": best["networkx"] / best["tandem"],
            "gain_of_medians": middle["networkx"] / middle["tandem"],
        })  # fmt: skip
        note(f"{name}: {function} {rows[-1]['gain']:.2f}x")
    return rows


def _lengths(found: dict[Any, Any]) -> dict[Any, int]:
    return {node: len(value) if isinstance(value, list) else value for node, value in found.items()}


def _table(rows: list[dict[str, Any]], function: str) -> str:
    cells = [
        [
            row["way"], seconds(row["best"]["networkx"]), seconds(row["best"]["tandem"]), ratio_text(row["gain"]),
            ratio_text(row["gain_of_medians"]), seconds(row["best"]["again"]),
        ]
        for row in rows
        if row["function"] == function
    ]  # fmt: skip
    return table(["built by", "NetworkX", "Tandem, first", "best", "median", "Tandem, again"], cells)
