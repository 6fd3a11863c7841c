"""``validate``: proves a result right from its arrays and the graph alone, or checks a stored graph's checksums."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_engine.graph.store.npy import map_npy, open_regular
from hybrid.cli.commands.options import add_set_option
from hybrid.errors import EXIT_OK, EnvironmentProblem, NotCertified
from hybrid.registry import ALGORITHMS
from hybrid.terminal import say

if TYPE_CHECKING:
    from cpu_engine.graph.graph import Graph
    from hybrid.graphs.sources import Source
    from hybrid.results.parts import ResultArrays


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a result folder, or a stored graph")
    add_set_option(parser, "for example graph.path=... if it moved")


def execute(options: argparse.Namespace) -> int:
    from cpu_engine.graph.store.graph_store import is_store, open_store

    folder = Path(options.folder)
    if is_store(folder):
        open_store(folder)
        say(f"{folder}: every array has its checksum, and the arrays are one graph's")
        return EXIT_OK
    return validate_result(folder, options.overrides)


def validate_result(folder: Path, overrides: list[str]) -> int:
    """Open the result's graph and prove every run's arrays."""
    from hybrid.algorithms import description_of
    from hybrid.algorithms.algorithm import Task
    from hybrid.algorithms.proof import prove, same_facts
    from hybrid.config import load_config
    from hybrid.graphs.opening import open_graph
    from hybrid.results.folder import read_summary
    from hybrid.results.parts import open_result
    from hybrid.results.trace import Trace

    summary = read_summary(folder)
    config = load_config(_regular(folder / "config.yaml"), overrides)
    if summary.get("algorithm") != config.algorithm or config.algorithm not in ALGORITHMS:
        raise _wrong(folder, f"summary.json is of {summary.get('algorithm')}, config.yaml of {config.algorithm}")
    description = description_of(config.algorithm)
    graph = open_graph(config.graph, Trace()).graph
    result = open_result(folder)
    if not np.array_equal(_load(result, "vertex", (np.dtype(np.int64),)), graph.user_ids):
        raise NotCertified(
            "vertex.npy is not the graph's vertex list", path=folder, fix="name the graph of this result"
        )
    arrays = {one.name: np.atleast_2d(_load(result, one.name, one.dtypes)) for one in description.fields}
    sources: list[Source | None] = _sources(summary, graph, folder) if description.sourced else [None]
    for name, array in arrays.items():
        if array.shape != (len(sources), graph.user_ids.size):
            raise _wrong(folder, f"{name}.npy has shape {array.shape}, which does not fit graph and sources")
    runs = summary.get("runs")
    if not isinstance(runs, list) or len(runs) != len(sources):
        raise _wrong(folder, "summary.json has not one entry per run")
    for row, (source, run) in enumerate(zip(sources, runs, strict=True)):
        task = Task(graph, config, source, thorough=True)
        told = run if isinstance(run, dict) else {}
        claims = told.get("counters")
        claims = claims if isinstance(claims, dict) else {}
        facts = prove(description, task, {name: array[row] for name, array in arrays.items()}, folder, claims)
        about = "" if source is None else f"source {source.user_id}: "
        if not same_facts(told.get("facts", told), facts):
            raise _wrong(folder, f"{about}summary.json does not tell what the arrays say: {facts}")
        unfinished = description.unfinished(claims)
        ending = f"; not converged: {unfinished}" if unfinished else ""
        say(f"{about}certified, {description.headline(facts)}{ending}")
    return EXIT_OK


def _sources(summary: dict[str, Any], graph: Graph, folder: Path) -> list[Source | None]:
    from hybrid.graphs.sources import Source

    named = summary.get("sources")
    if not isinstance(named, list) or not named or not all(isinstance(one, int) for one in named):
        raise _wrong(folder, "summary.json names no sources")
    return [Source(one, graph.internal_id(one)) for one in named]


def _wrong(folder: Path, reason: str) -> NotCertified:
    return NotCertified(reason, path=folder, fix="run the job again")


def _regular(path: Path) -> Path:
    """The path, unless something is there at which a reader would wait for ever."""
    try:
        open_regular(path).close()
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"cannot be read: {error}", path=path, fix="run the job again") from error
    return path


def _load(result: ResultArrays, name: str, dtypes: tuple[np.dtype, ...]) -> np.ndarray:
    """An array that is mapped, not read: a sparse file of any size costs nothing until its shape was looked at."""
    path = result.folder / f"{name}.npy"
    try:
        array = result[name] if result.parts > 1 else np.asarray(map_npy(path, "c"))
    except OSError as error:
        raise EnvironmentProblem(f"cannot read the array: {error}", path=path, fix="run the job again") from error
    except ValueError as error:
        raise _wrong(path, f"this is no array of numbers: {error}") from error
    if array.dtype not in dtypes:
        raise _wrong(path, f"the array holds {array.dtype}, not {' or '.join(map(str, dtypes))}")
    return array
