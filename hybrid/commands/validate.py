"""``validate``: proves a result right from its arrays and the graph alone, or checks a stored graph's checksums."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybrid.errors import EXIT_OK, EnvironmentProblem, NotCertified
from hybrid.terminal import count, say

if TYPE_CHECKING:
    from cpu_engine.graph.graph import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a result folder, or a stored graph")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="for example graph.path=... if it moved",
    )


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.store import is_store, verify_store

    folder = Path(options.folder)
    if is_store(folder):
        verify_store(folder)
        say(f"{folder}: every array has its checksum")
        return EXIT_OK
    return validate_result(folder, options.overrides)


def validate_result(folder: Path, overrides: list[str]) -> int:
    """Open the result's graph and prove each source's levels and parents."""
    from hybrid.config import load_config
    from hybrid.opening import open_graph
    from hybrid.result import read_summary
    from hybrid.trace import Trace

    summary = read_summary(folder)
    config = load_config(folder / "config.yaml", overrides)
    graph = open_graph(config.graph, Trace()).graph
    types = {"vertex": np.int64, "level": np.int32, "parent": np.int64}
    vertex, level, parent = (_load(folder / f"{name}.npy", dtype) for name, dtype in types.items())
    if not np.array_equal(vertex, graph.user_ids):
        raise NotCertified(
            "vertex.npy is not the graph's vertex list", path=folder, fix="name the graph of this result"
        )
    levels, parents = np.atleast_2d(level), np.atleast_2d(parent)
    sources, told = summary.get("sources"), summary.get("runs")
    if not isinstance(sources, list) or not all(isinstance(one, int) for one in sources) or not isinstance(told, list):
        raise NotCertified("summary.json names no sources", path=folder, fix="run the job again")
    if levels.shape != (len(sources), vertex.size) or parents.shape != levels.shape:
        raise NotCertified(
            "the arrays' shapes do not fit the sources", path=folder, value=levels.shape, fix="run the job again"
        )
    for source, run, one_level, one_parent in zip(sources, told, levels, parents, strict=True):
        prove(graph, source, one_level, one_parent, folder)
        reached, depth = int(np.count_nonzero(one_level >= 0)), int(one_level.max())
        if (run.get("reached"), run.get("max_level")) != (reached, depth):
            raise NotCertified(
                f"source {source}: summary.json says {run.get('reached')} reached, depth {run.get('max_level')}; "
                f"the arrays say {reached} and {depth}",
                path=folder,
                fix="run the job again",
            )
        say(f"source {source}: certified, {count(reached)} reached, depth {depth}")
    return EXIT_OK


def prove(graph: Graph, source: int, level: np.ndarray, parent: np.ndarray, folder: Path) -> None:
    """Certify arrays in the user's ids; NotCertified says what is wrong."""
    from cpu_engine.algorithms.certificate import certify

    def refuse(reason: str) -> None:
        raise NotCertified(
            f"source {source}: {reason}", path=folder, fix="run the job again; keep this folder as evidence"
        )

    root = graph.internal_id(source)
    isolated = graph.internal_of_position < 0
    own = int(np.searchsorted(graph.user_ids, source))
    expected_level, expected_parent = np.full(isolated.sum(), -1), np.full(isolated.sum(), -1)
    if root < 0:
        at = int(np.count_nonzero(isolated[:own]))
        expected_level[at], expected_parent[at] = 0, source
    if not (np.array_equal(level[isolated], expected_level) and np.array_equal(parent[isolated], expected_parent)):
        refuse("a vertex without edges has a level or a parent")
    inner_level = np.ascontiguousarray(level[graph.user_position], dtype=np.int32)
    named = parent[graph.user_position]
    position = np.clip(np.searchsorted(graph.user_ids, named), 0, max(0, graph.user_ids.size - 1))
    known = graph.user_ids[position] == named if graph.user_ids.size else np.zeros(0, bool)
    if np.any(~known & (named != -1)):
        refuse("a parent is not a vertex of the graph")
    inner_parent = np.where(known & (inner_level >= 0), graph.internal_of_position[position], -1).astype(np.int32)
    if np.any((inner_level < 0) & (named != -1)):
        refuse("an unreached vertex has a parent")
    if root < 0:
        if np.any(inner_level != -1):
            refuse("a vertex is reached from a source without edges")
        return
    certificate = certify(graph, inner_level, inner_parent, root)
    if not certificate.holds:
        refuse(certificate.explain(graph))


def _load(path: Path, dtype: type) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path)
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"cannot read the array: {error}", path=path, fix="run the job again") from error
    if array.dtype != dtype:
        raise NotCertified(f"the array holds {array.dtype}, not {np.dtype(dtype)}", path=path, fix="run the job again")
    return array
