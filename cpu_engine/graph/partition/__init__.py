"""Cutting a graph into parts for many ranks: policies, layouts, parts, their cache, and predictions.

    make_layout -> slice_arcs (each reader its slice) -> exchange of buffers
                -> assemble -> mirror_lists -> exchange of lists -> link

``partition_graph`` does all of it in one process. Nothing here knows MPI: who exchanges what is the caller's business.
"""

from __future__ import annotations

from cpu_engine.graph.partition.construct import (
    MirrorList,
    assemble,
    link,
    mirror_lists,
    partition_graph,
    slice_arcs,
    slice_weights,
)
from cpu_engine.graph.partition.layout import Layout, make_layout
from cpu_engine.graph.partition.part import READ, WRITTEN, Links, Part
from cpu_engine.graph.partition.policies import POLICIES, choose_grid
from cpu_engine.graph.partition.prediction import Prediction, predict
from cpu_engine.graph.partition.store import PartStore, graph_fingerprint, open_part, save_part

__all__ = [
    "POLICIES",
    "READ",
    "WRITTEN",
    "Layout",
    "Links",
    "MirrorList",
    "Part",
    "PartStore",
    "Prediction",
    "assemble",
    "choose_grid",
    "graph_fingerprint",
    "link",
    "make_layout",
    "mirror_lists",
    "open_part",
    "partition_graph",
    "predict",
    "save_part",
    "slice_arcs",
    "slice_weights",
]
