"""The command lines of the benchmarks. Imports nothing slow, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from hybrid.config.schema import GeneratorConfig
from hybrid.registry import names_on_ranks

KINDS = ("kronecker", "uniform", "grid")


def add_benchmarks(parser: argparse.ArgumentParser) -> None:
    """One sub-command per benchmark."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="benchmark")
    for name, (summary, module, add) in BENCHMARKS.items():
        described = names.add_parser(name, help=summary, description=summary)
        add(described)
        _add_output(described)
        described.set_defaults(benchmark_module=module)


def _add_bfs(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    _add_peers(parser)
    parser.add_argument(
        "--ids", choices=("user", "internal", "both"), default="user",
        help="which numbering the others get: the user's, ours (by degree), or both in turn (default %(default)s)",
    )  # fmt: skip


def _add_algorithm(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    _add_peers(parser)
    parser.add_argument(
        "--gap-delta", type=_positive, metavar="N",
        help="sssp: the width of GAP's buckets (default 2, its best on Kronecker graphs)",
    )  # fmt: skip
    parser.set_defaults(roots=4)


def _add_build(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser, roots=False)
    _add_peers(parser)
    _add_rounds(parser)
    parser.add_argument(
        "--edges", type=_positive, metavar="N", help="measure reading instead: a text edge list of N edges -> store"
    )


def _add_strategies(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these strategies (default: all)")
    parser.add_argument(
        "--levels", type=_positive, default=24, metavar="N", help="most levels to print; the JSON has all (default 24)"
    )
    parser.add_argument(
        "--shares", type=_positive, default=8, metavar="N",
        help="simulated threads whose shares of the edges are compared (default %(default)s)",
    )  # fmt: skip


def _add_threads(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser, threads=False)
    parser.add_argument(
        "--threads",
        type=_positive,
        nargs="+",
        metavar="N",
        help="thread counts (default: 1, 2, 4, ... up to the cores)",
    )
    _add_gap(parser)


def _add_many(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    parser.set_defaults(roots=64)


def _add_loops(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    parser.add_argument(
        "--delta", type=_positive, default=4, help="width of a priority of the loop that only pushes (default 4)"
    )
    parser.set_defaults(roots=3)


def _add_service(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser, roots=False)
    parser.add_argument("--clients", type=_positive, default=64, help="that ask at once (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="each way (default %(default)g)")
    _add_threads_of(parser, "threads of the engines")
    parser.set_defaults(scale=18)


def _add_soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default %(default)g)")
    parser.add_argument(
        "--kill-worker",
        type=float,
        default=20.0,
        metavar="S",
        help="kill the NPU worker so often; 0 = never (default 20)",
    )
    parser.add_argument("--kill-ranks", type=int, default=2, metavar="N", help="kill a rank so many times (default 2)")
    parser.add_argument("--restart", action="store_true", help="SIGTERM in the middle, and a new start on the journal")
    parser.add_argument("--ranks", type=_positive, default=2, help="of the service (default %(default)s)")
    parser.add_argument(
        "--scales", type=int, nargs="+", default=[12, 14], help="of the Kronecker graphs (default 12 14)"
    )
    parser.add_argument("--side", type=_positive, default=60, help="of the square grid (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the clients' choices (default %(default)s)")
    parser.add_argument("--log", metavar="FILE", help="keep the service's log here")


def _add_growth(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser, sizes=False)
    parser.add_argument(
        "--scales", type=int, nargs="+", default=[12, 14, 16, 18], help="graph sizes (default 12 to 18)"
    )
    _add_contest(parser)
    _add_peers(parser)
    parser.set_defaults(ids="user")


def _add_ranks(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    _add_contest(parser)
    parser.add_argument("--ranks", type=_positive, default=2, help="MPI ranks (default %(default)s)")
    parser.add_argument(
        "--algorithm", choices=names_on_ranks(), default="bfs", help="what to run (default %(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", default=[],
        help="these, such as 'level iec' 'async basp oec'; of other algorithms than bfs 'bsp iec' 'basp oec'",
    )  # fmt: skip
    parser.set_defaults(threads=1)


def _add_regret(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "graphs", nargs="*", metavar="GRAPH", help="graph files or stored graphs, besides the generated"
    )
    parser.add_argument("--undirected", action="store_true", help="take the files' edges as undirected")
    parser.add_argument(
        "--scales", type=int, nargs="*", default=[14, 16, 18], help="of Kronecker and uniform graphs (default 14 16 18)"
    )
    parser.add_argument("--side", type=int, default=512, help="of the square grid; 0 = none (default %(default)s)")
    parser.add_argument("--roots", type=_positive, default=128, help="searches of a job (default %(default)s)")
    parser.add_argument(
        "--batch", type=_positive, default=1, metavar="B", help="searches at once (default %(default)s)"
    )
    parser.add_argument("--engine", choices=("async", "level"), default="async", help="(default %(default)s)")
    _add_device(parser, "npu.device of the jobs")
    parser.add_argument("--rounds", type=_positive, default=9, help="jobs of each kind (default %(default)s)")
    _add_threads_of(parser)
    parser.add_argument(
        "--pause", type=float, default=0.005, metavar="S", help="rest before each search (default %(default)s s)"
    )


def _add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=_positive, default=16, help="of the Kronecker graph (default %(default)s)")
    parser.add_argument("--engine", choices=("async", "level"), default="level", help="(default %(default)s)")
    _add_device(parser)
    parser.add_argument("--repeats", type=_positive, default=3, help="turns (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=8.0, help="of searching, each way (default %(default)s)")
    _add_threads_of(parser)


def _add_busy(parser: argparse.ArgumentParser) -> None:
    _add_graph(parser)
    parser.add_argument("--busy", type=_positive, default=2, metavar="N", help="busy processes (default %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="such as bfs, 'bfs level', sssp, wcc")
    parser.add_argument("--rounds", type=_positive, default=3, help="turns, quiet and busy (default %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="of each, quiet and busy, per turn (default %(default)g)"
    )
    _add_threads_of(parser)
    parser.add_argument(
        "--pause", type=float, default=0.002, metavar="S", help="rest between runs (default %(default)s s)"
    )
    parser.set_defaults(scale=10)


def _add_exchange(parser: argparse.ArgumentParser) -> None:
    default = GeneratorConfig()
    parser.add_argument("--kind", choices=KINDS, default=default.kind, help="generator (default %(default)s)")
    parser.add_argument("--scale", type=int, default=18, help="log2 of the vertices (default %(default)s)")
    parser.add_argument("--edge-factor", type=int, default=default.edge_factor, help="edges per vertex")
    parser.add_argument("--seed", type=int, default=default.seed, help="same seed, same graph (default %(default)s)")
    parser.add_argument("--root-seed", type=int, default=1, help="same seed, same start vertices")
    parser.add_argument("--core", type=_positive, default=4096, help="vertices of the core (default %(default)s)")
    parser.add_argument(
        "--formats", nargs="+", choices=("text", "binary"), default=["binary", "text"], help="(default: both)"
    )
    parser.add_argument(
        "--programs", nargs="+", choices=("min-plus", "min-select", "plus-times", "or-and"), default=["min-plus"],
        help="what the worker computes (default: min-plus)",
    )  # fmt: skip
    parser.add_argument(
        "--batches", type=_positive, nargs="+", default=[1], metavar="B", help="vectors of a round (default 1)"
    )
    parser.add_argument("--index", action="store_true", help="measure the core's index, too")
    _add_device(parser)
    parser.add_argument("--repeats", type=_positive, default=50, help="rounds of each (default %(default)s)")
    _add_threads_of(parser)
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="S", help="longest round (default %(default)g s)"
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=_positive, nargs="+", metavar="N", help="thread counts (default: 1 and all cores)"
    )
    parser.add_argument("--repeats", type=_positive, default=9, help="times each is measured (default %(default)s)")
    parser.add_argument(
        "--largest",
        type=_positive,
        metavar="MIB",
        help="size of the arrays in memory (default: 4 times the last cache)",
    )


def _add_networkx(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=_positive, default=100_000, help="of the graph (default %(default)s)")
    parser.add_argument("--edges", type=_positive, default=1_000_000, help="of the graph (default %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these ways to build it (default: all)")
    parser.add_argument(
        "--functions", nargs="+", default=["single_source_shortest_path_length"],
        choices=("single_source_shortest_path_length", "single_source_shortest_path"),
        help="of NetworkX; the second keeps all paths in memory (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--rounds", type=_positive, default=5, help="turns of each (default %(default)s)")
    _add_threads_of(parser)


def _add_graph(parser: argparse.ArgumentParser, *, sizes: bool = True, roots: bool = True) -> None:
    default = GeneratorConfig()
    group = parser.add_argument_group("graph")
    group.add_argument("--kind", choices=KINDS, default=default.kind, help="generator (default %(default)s)")
    if sizes:
        group.add_argument("--graph", metavar="FILE", help="a graph file or stored graph instead of a generated one")
        group.add_argument("--undirected", action="store_true", help="take the file's edges as undirected")
        group.add_argument(
            "--scale", type=int, default=default.scale, help="log2 of the vertices (default %(default)s)"
        )
        group.add_argument("--rows", type=int, default=default.rows, help="of a grid (default %(default)s)")
        group.add_argument("--cols", type=int, default=default.cols, help="of a grid (default %(default)s)")
    group.add_argument(
        "--edge-factor", type=int, default=default.edge_factor, help="edges per vertex (default %(default)s)"
    )
    group.add_argument("--seed", type=int, default=default.seed, help="same seed, same graph (default %(default)s)")
    if roots:
        group.add_argument("--roots", type=_positive, default=16, help="start vertices, drawn (default %(default)s)")
        group.add_argument("--root", type=int, nargs="+", metavar="ID", help="these start vertices instead")
        group.add_argument("--root-seed", type=int, default=1, help="same seed, same start vertices")


def _add_contest(parser: argparse.ArgumentParser, *, threads: bool = True) -> None:
    _add_rounds(parser, threads=threads)
    parser.add_argument(
        "--trials", type=_positive, default=3, help="runs per turn, of which the best counts (default %(default)s)"
    )
    parser.add_argument(
        "--pause", type=float, default=0.03, metavar="S",
        help="rest between turns, until the last one's threads are asleep (default %(default)s s)",
    )  # fmt: skip


def _add_rounds(parser: argparse.ArgumentParser, *, threads: bool = True) -> None:
    parser.add_argument("--rounds", type=_positive, default=3, help="rounds over all contestants (default %(default)s)")
    if threads:
        _add_threads_of(parser, "threads of each")
    parser.add_argument(
        "--time-limit", type=float, default=600.0, metavar="S", help="longest turn or build (default %(default)g s)"
    )
    parser.add_argument("--work", metavar="DIR", help="folder for temporary files (default: the system's)")


def _add_threads_of(parser: argparse.ArgumentParser, what: str = "threads") -> None:
    parser.add_argument("--threads", type=_positive, default=2, help=f"{what} (default %(default)s)")


def _add_device(parser: argparse.ArgumentParser, what: str = "npu.device") -> None:
    parser.add_argument("--device", default="auto", help=f"{what} (default: what this machine has)")


def _add_peers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peers", nargs="*", metavar="NAME", help="compare with these (default: all that are installed); none = alone"
    )
    _add_gap(parser)


def _add_gap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gap", metavar="DIR", help="folder with GAP's built programs: measure them as well")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--plot", metavar="FILE", help="draw to FILE.svg or FILE.html")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log on the terminal as well")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


Add = Callable[[argparse.ArgumentParser], None]
ALGORITHMS = {
    "sssp": "our shortest paths (the file's weights, or 1..255)",
    "wcc": "our weak components",
    "scc": "our strong components",
    "pagerank": "our PageRank (GAP's definition)",
    "kcore": "our core numbers",
    "triangles": "our triangle count",
    "lcc": "our clustering coefficient",
    "betweenness": "our betweenness from a few start vertices",
}
BENCHMARKS: dict[str, tuple[str, str, Add]] = {
    "bfs": ("our BFS and its peers on one graph, in turns", "benchmarks.suites.bfs", _add_bfs),
    **{
        name: (f"{what} and its peers on one graph, in turns", "benchmarks.suites.algorithms", _add_algorithm)
        for name, what in ALGORITHMS.items()
    },
    "build": ("from an edge list to a graph: ours and the peers'", "benchmarks.suites.build", _add_build),
    "strategies": (
        "every strategy, level by level: time and edges looked at",
        "benchmarks.suites.strategies",
        _add_strategies,
    ),
    "threads": ("how BFS gains from threads", "benchmarks.machine.threads", _add_threads),
    "many": ("64 sources at once against one after the other", "benchmarks.suites.many", _add_many),
    "growth": ("how build and BFS grow with the graph", "benchmarks.suites.growth", _add_growth),
    "ranks": ("BFS on MPI ranks: every engine and policy against one rank", "benchmarks.ranks.command", _add_ranks),
    "loops": ("user-written loops and vertex programs against the tuned ones", "benchmarks.suites.loops", _add_loops),
    "regret": ("does npu.mode auto ever lose against the CPU alone?", "benchmarks.suites.regret", _add_regret),
    "service": (
        "the resident service: start, one client, many with and without batching",
        "benchmarks.suites.service",
        _add_service,
    ),
    "soak": (
        "the service for ten minutes under everything at once, worker and ranks killed: nothing wrong, lost or left?",
        "benchmarks.soak.command",
        _add_soak,
    ),
    "networkx": (
        "a first BFS through the NetworkX backend against NetworkX's own, however the graph was built",
        "benchmarks.suites.networkx_backend",
        _add_networkx,
    ),
    "start": ("does a worker that is starting delay the CPU engine?", "benchmarks.suites.start", _add_start),
    "busy": ("what do other busy programs cost?", "benchmarks.machine.busy", _add_busy),
    "exchange": ("a round through the exchange directory, worker warm", "benchmarks.suites.exchange", _add_exchange),
    "machine": ("memory bandwidth of this machine", "benchmarks.machine.command", _add_machine),
}
