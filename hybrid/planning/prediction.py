"""The planner's inputs on this machine: which device is meant, how fast the CPU is, how long a search takes.

Reads the calibration and measures a search; planner.py decides. Invariant: every figure has its origin; without
measured or published figures there is no prediction.
"""

from __future__ import annotations

import os

import numpy as np

from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.graph.graph import Graph
from hybrid.algorithms.bfs import make_engine
from hybrid.config.schema import Config
from hybrid.devices.profiles import Simulation, parse_device
from hybrid.planning.calibration import device_model, load_calibration
from hybrid.planning.core_statistics import MOST_RUNS, SearchFacts, measure_batch, measure_paths, measure_search
from hybrid.planning.planner import Surroundings

NOT_CALIBRATED = "this machine is not calibrated (`python run.py calibrate` does it)"
_SEED = 1


def surroundings(config: Config, profile: Simulation | None = None) -> Surroundings:
    """With the device that the job would use - simulated, or the calibrated worker - or with ``profile``."""
    calibration = load_calibration()
    asked = profile or parse_device(config.npu.device)
    format = "direct" if asked is not None and asked.direct else config.exchange.format
    rates = None if calibration is None else calibration.cpu
    if asked is not None:
        return Surroundings(device_model(asked, calibration), rates, format, simulated=True)
    if calibration is None:
        return Surroundings(None, None, format)
    on_cpu = calibration.device.device.upper() == "CPU"
    taken = min(1.0, config.npu.threads / (os.cpu_count() or 1)) if on_cpu else 0.0
    return Surroundings(calibration.device_model(), rates, format, taken)


def typical_search(graph: Graph, config: Config, limit: int, batch: int = 1, most_runs: int = MOST_RUNS) -> SearchFacts:
    """Measure a search on the CPU alone, by the configured engine; of a batch all roots at once."""
    if batch > 1:
        with_arcs_out = np.flatnonzero(np.diff(graph.out_offsets)).astype(np.int64)
        roots = np.random.default_rng(_SEED).permutation(with_arcs_out)[:batch]
        return measure_batch(graph, roots, limit, most_runs)
    if config.algorithm == "sssp":
        return measure_paths(graph, config, typical_root(graph), most_runs)
    engine = make_engine(config.engine, CoreSplit(graph), config.bfs.strategy)
    return measure_search(graph, engine, typical_root(graph), limit, most_runs)


def typical_root(graph: Graph) -> int:
    """A vertex of low degree, one step away from the hub: a search from it reaches as much as most searches do."""
    return int(graph.in_sources[graph.in_offsets[1] - 1]) if graph.in_offsets[1] else 0


def search_count(config: Config, n: int) -> int:
    """How many searches the job will make on a graph of n vertices with edges."""
    chosen = config.source
    if isinstance(chosen, str):
        return min(n, int(chosen.partition(":")[2] or 1))
    return 1 if isinstance(chosen, int) else len(chosen)
