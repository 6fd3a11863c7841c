"""Records of results that failed their check: enough to see one fail again, in a folder beside the cache.

A record is a folder: record.json (what failed, and how), config.yaml (a job that does the same again), graph/ (the
graph as a store, unless it is large), failed.npz (the refused arrays in internal ids, unless they are large).
Invariant: at most MOST_RECORDS are kept, the newest; a record that cannot be written costs a line in the log, never the
result.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import logging
import os
import platform
from pathlib import Path
from typing import Any

import numba
import numpy as np

from cpu_engine.errors import InputError
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store.removal import remove_tree
from hybrid import __version__
from hybrid.config.schema import Config, GraphConfig
from hybrid.graphs.sources import Source
from hybrid.registry import ALGORITHMS

_log = logging.getLogger(__name__)
FOLDER = "failed-proofs"
MOST_RECORDS = 8
MOST_BYTES = 32 << 20  # of a kept graph, and of the kept arrays
_ROWS = ("out_offsets", "out_targets", "in_offsets", "in_sources", "weight", "user_ids", "user_position")


def keep_failure(
    algorithm: str, graph: Graph, config: Config, source: Source | None, reason: str, arrays: dict[str, np.ndarray]
) -> Path | None:
    """Write a record; its folder, or None if that was not possible."""
    # Here, not at the top: a result that passes needs none of them.
    from cpu_engine.graph.partition.store import graph_fingerprint
    from cpu_engine.graph.store.graph_store import save_store
    from hybrid.graphs.opening import cache_folder

    folder = cache_folder(config.graph) / FOLDER
    now = datetime.datetime.now(datetime.timezone.utc)
    path = (folder / f"{now:%Y%m%d-%H%M%S-%f}-{os.getpid()}-{algorithm}").absolute()
    try:
        path.mkdir(parents=True)
        kept = _bytes_of(getattr(graph, name) for name in _ROWS) <= MOST_BYTES
        if kept:
            save_store(graph, path / "graph")
        small = _bytes_of(arrays.values()) <= MOST_BYTES
        if small:
            np.savez_compressed(path / "failed.npz", **arrays)
        if algorithm in ALGORITHMS:  # Python and NetworkX have more
            (path / "config.yaml").write_text(_config_text(algorithm, config, source, path if kept else None))
        _write_record(
            path,
            {
                "tandem": __version__, "when": now.isoformat(), "algorithm": algorithm,
                "source": None if source is None else source.user_id, "reason": reason,
                "threads": numba.get_num_threads(), "python": platform.python_version(), "numba": numba.__version__,
                "machine": platform.machine(), "arrays_kept": small,
                "graph": {
                    "kept": kept, "fingerprint": graph_fingerprint(graph), "vertices": int(graph.user_ids.size),
                    "arcs": graph.m, "directed": graph.directed, "weighted": graph.weight is not None,
                },
            },
        )  # fmt: skip
        _forget_oldest(folder)
    except (OSError, InputError) as error:
        _log.warning("what would reproduce a failed check could not be kept in %s: %s", path, error)
        remove_tree(path)
        return None
    except BaseException:  # interrupted: leave nothing half-written
        remove_tree(path)
        raise
    return path


def add_to_record(path: Path | None, **facts: Any) -> None:
    """Add what became of the result; nothing to do where no record could be written."""
    if path is None:
        return
    try:
        _write_record(path, {**json.loads((path / "record.json").read_text()), **facts})
    except OSError as error:
        _log.warning("%s could not be completed: %s", path, error)


def _write_record(path: Path, facts: dict[str, Any]) -> None:
    (path / "record.json").write_text(json.dumps(facts, indent=2, default=str) + "\n")


def _config_text(algorithm: str, config: Config, source: Source | None, record: Path | None) -> str:
    """The configuration of a job that does the same; the graph's own place only if it was not kept here."""
    from hybrid.config import dump_config

    graph = config.graph
    if record is not None:
        graph = GraphConfig(path=str(record / "graph"), cache_dir=graph.cache_dir)
    elif graph.path is not None:
        graph = dataclasses.replace(graph, path=str(Path(graph.path).absolute()))
    again = dataclasses.replace(
        config, algorithm=algorithm, graph=graph, threads=numba.get_num_threads(), output=None,
        source=config.source if source is None else source.user_id,
    )  # fmt: skip
    return dump_config(again)


def _forget_oldest(folder: Path) -> None:
    for one in sorted(folder.iterdir())[:-MOST_RECORDS]:  # their names begin with the time
        remove_tree(one)


def _bytes_of(arrays: Any) -> int:
    return sum(0 if one is None else int(one.nbytes) for one in arrays)
