"""Every threshold at which a kernel or a driver takes another path, and values that a small graph crosses.

``with small(seed)`` sets some of them and restores them. ``DRIVER``: read by Python code, may be set at any time.
``KERNEL``: compiled code keeps the value that it was compiled with, so these are set only where numba compiles nothing
(NUMBA_DISABLE_JIT=1). ``NOT_A_THRESHOLD``: the numeric constants that decide nothing about the path, with the reason.
tests/unit/cpu_engine/test_thresholds.py proves that each numeric constant of cpu_engine stands in exactly one of these.

A constant is set in the module that defines it, in each module that imports it by name, and in each default argument
that took its value; tests/constants.py finds these places.
"""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from typing import Any

import numba
import numpy as np

from tests.constants import survey

DRIVER: dict[str, tuple[Any, ...]] = {
    "centrality.betweenness.DEEP": (0, 1, 2),
    "centrality.betweenness.PUSH": (0, 1, 2, 1000),
    "bfs.asynchronous.DEEP": (0, 1, 3),
    "bfs.asynchronous.LEVELS_PER_LEAP": (1, 2, 5),
    "bfs.asynchronous.PULL_SHARE": (0.0, 0.02, 0.3, 1.0),
    "bfs.asynchronous.QUANTUM_EDGES": (1, 3, 16),
    "bfs.asynchronous.SPREAD": (-1, 0, 3),
    "bfs.asynchronous.THIN_EDGES": (0, 1, 8),
    "bfs.asynchronous.THIN_QUANTUM_EDGES": (1, 2, 7),
    "bfs.level_synchronous.DEEP": (0, 1, 3),
    "bfs.many.engine.ALPHA": (1, 4, 1000),
    "bfs.many.engine.DEEP": (1, 2, 5),
    "bfs.many.engine.FEW_ROOTS": (0, 1, 2, 65),
    "bfs.many.engine.LIST_EDGES": (0, 1, 1000),
    "bfs.many.engine.LIST_VERTICES": (1, 2, 1000),
    "bfs.many.engine.SAMPLE": (1, 2, 16),
    "bfs.many.engine.SERIAL_EDGES": (-1, 0, 4),
    "bfs.many.engine.UNION_ALPHA": (0, 1, 100),
    "bfs.many.engine._FEWEST_PLANES": (1, 2),
    "bfs.many.check._COLUMNS": (1, 3, 8),
    "bfs.ranks.many.PULL_SHARE": (0.0, 0.02, 1.0),
    "bfs.ranks.many._FEWEST_PLANES": (1, 2),
    "centrality.check.SAMPLE": (1, 2),
    "triangles.check_clustering_weighted.MOST_ARCS": (0, 5),
    "triangles.check.HUBS_RECOUNTED": (0, 1),
    "triangles.check.SAMPLE": (1, 3),
    "centrality.closeness.DEEP": (0, 1, 3),
    "triangles.clustering_weighted.LANES": (1,),
    "components.weak.LARGE": (0.0, 2.0),
    "components.weak.MAX_ROUNDS": (0, 1, 2),
    "components.weak.SAMPLE": (1, 2, 8),
    "bfs.strategies.auto.FIRST_PULL_SHARE": (0.0, 0.02, 1.0),
    "bfs.strategies.auto.PULL_SHARE": (0.0, 0.02, 1.0),
    "bfs.strategies.auto.RELIST": (1, 2, 1000),
    "bfs.strategies.auto.SERIAL_EDGES": (0, 1, 8),
    "bfs.strategies.auto.SERIAL_VERTICES": (0, 1, 8),
    "bfs.strategies.auto.SMALL_GRAPH": (0, 1),
    "bfs.strategies.auto.SURE_FRONTIER": (0, 1, 1000),
    "bfs.strategies.push.HUGE_EDGES": (1, 4, 8),
    "bfs.strategies.push.MEDIUM_EDGES": (1, 2, 4),
    "bfs.strategies.push.PRIVATE_VERTICES": (1, 2, 5),
    "bfs.strategies.small_levels.ALONE_LEVELS": (1, 3),
    "bfs.strategies.small_levels.LEAVE": (1, 2, 100),
    "bfs.strategies.small_levels.LEVELS_PER_LAUNCH": (1, 2, 5),
    "bfs.strategies.small_levels.MOST_ALONE": (1, 4),
    "bfs.strategies.small_levels.TINY_EDGES": (0, 1, 3, 8),
    "bfs.strategies.small_levels.TINY_VERTICES": (0, 1, 3),
    "bfs.strategies.switch.ALPHA": (1, 4, 1000),
    "bfs.strategies.switch.BETA": (1, 3, 1000),
    "communities.label_propagation._SMALLEST_TABLE": (1, 2),
    "communities.louvain.WORTH_A_ROUND": (1e-9, 0.1, 1.0),
    "bfs.numa.ASSUMED_DISTANCE": (1.01, 1000.0),
    "pagerank.engine.BLOCKS_OF_A_SWEEP": (1, 2, 5),
    "pagerank.engine.MIN_BLOCK_ARCS": (1, 3, 40),
    "pagerank.engine.SHARES": (1, 2, 7, 33),
    "components.ranks.SAMPLE": (1, 2),
    "communities.ranks_label_propagation._SMALLEST_TABLE": (1, 2),
    "pagerank.ranks.BLOCKS": (1, 2, 7),
    "bfs.ranks.parents._SHORT": (0, 1, 2),
    "sssp.ranks.DELTA_FACTOR": (0.1, 8.0),
    "sssp.ranks.MIDDLE_BUCKETS": (1, 2),
    "sssp.ranks.QUANTUM": (1, 5),
    "sssp.ranks.THICK_ARCS": (1, 8, 64),
    "sssp.ranks.THIN_ARCS": (0, 1, 8),
    "sssp.ranks.THIN_BUCKETS": (1, 2),
    "sssp.engine.MIN_WIDTH_SHARE": (0.01, 4.0),
    "sssp.engine.PLAIN_RUNS": (0, 2),
    "sssp.engine.ROUNDS_PER_STEP": (1, 2),
    "sssp.engine.WIDTH_DEGREE": (1, 100),
    "sssp.delta.ALONE_ROUNDS": (1, 3),
    "sssp.delta.BINS": (2, 3, 5, 17),
    "sssp.delta.BUCKETS_PER_SPAN": (1, 2, 16),
    "sssp.delta.MIN_DEGREE": (0, 1, 3, 1000),
    "sssp.delta.MOST_ALONE": (1, 4),
    "sssp.delta.PUSHED_SHARE": (0.0, 0.05, 0.3),
    "sssp.delta.ROUNDS": (1, 2, 7),
    "sssp.delta.SCARCE": (0, 1, 1000),
    "sssp.delta.SERIAL_EDGES": (0,),
    "sssp.delta.SPANS": ((0.0, 0.5), (0.1,), (0.25, 0.5, 0.9)),
    "sssp.rows.NARROW": (1, 4, 64),
    "sssp.rows.SAMPLE": (1, 4, 16),
    "sssp.rows.STRETCHES": (1, 2),
    "sssp.skeleton.LARGEST_SHARE": (0.0, 1.0),
    "sssp.skeleton.LONGEST_SUM": (1, 100),
    "sssp.skeleton.MIN_SHARE": (0.0, 1.0),
    "sssp.skeleton.SMALL_PIECE": (0, 1, 4),
    "components.strong.MIN_ARCS": (0, 1, 16),
    "triangles.engine.EDGES_PER_WORD": (0, 1, 100),
    "triangles.engine.MOST_HUBS": (0, 64, 128),
    "triangles.engine.PRIVATE": (0, 1, 10),
    "comm.encoding._SHORT_OFFSETS": (0, 1, 8),
    "comm.sparse_updates.ENTRIES_PER_PAIR": (1, 2, 1000),
    "comm.sparse_updates.LOOKED_UP": (0, 1),
    "comm.loopback.FAIRNESS": (1, 3),
    "comm.rounds.MOST_SPANS": (0, 1),
    "graph.store.array_folder._BLOCK": (64, 4096),  # a power of two: the checksum of a block is shifted by squaring
    "graph.store.cache._BLOCK": (64, 4096),
    "graph.formats.binary_input.CHUNK": (1, 3, 16),
    "graph.distributed.shares.PIECE_EDGES": (1, 3, 16),
    "graph.formats.distinct.DENSE": (0, 1, 1000),
    "graph.formats.ldbc.CHUNK": (1, 3, 16),
    "graph.formats.rows.MOST_THREADS": (1, 2),
    "graph.formats.source.BLOCK_BYTES": (64, 200),
    "graph.formats.symmetry.CHUNK": (1, 3, 16),
    "graph.formats.text_output.LINES_AT_ONCE": (1, 7),
    "graph.build.idspace.COMPACT_FLOOR": (0, 8),
    "graph.build.idspace.COMPACT_SLACK": (0, 1, 1000),
    "graph.build.idspace._CACHED": (1, 3, 7),
    "graph.build.idspace._FIRST_LOG": (1, 2, 3),
    "graph.distributed.numbering.SAMPLES": (1, 3),
    "graph.formats.source._SCAN_BYTES": (1, 5),
    "graph.distributed.files._END_BYTES": (1, 50),
    "graph.store.npy._BLOCK": (64, 4096),
    "graph.partition.construct.ARCS_PER_SLICE": (1, 3, 20),
    "graph.partition.layout._MAX_SHORT_PARTS": (0, 1, 2),
    "graph.partition.policies.HIGH_DEGREE_FACTOR": (0, 1, 3),
    "graph.build.passes.ENTRIES_PER_BUCKET_LOG": (0, 1, 2, 4),
    "graph.build.passes.ENTRIES_PER_LANE": (1, 4, 16),
    "graph.build.passes.GROUP_LOG": (0, 1, 2, 3),
    "graph.build.passes.LONG_BUCKET": (0, 1, 2),
    "graph.build.passes.MAX_BUCKETS_LOG": (0, 1, 2, 4),
    "graph.build.passes.MAX_NARROW_BUCKETS_LOG": (1, 4),
    "graph.build.passes.NARROW_BUCKET": (1, 4),
    "graph.build.passes.PARTS_PER_LANE": (1, 2, 7),
    "graph.build.passes.ROW_COST": (0, 1, 50),
    "graph.build.passes._HUGE_BYTES": (0, 64),
    "components.kernels.ranks.SAMPLED_NEIGHBOURS": (0, 1, 3),
    "intrinsics.team.PATIENCE": (1, 8, 256),
    "programs.program._SAMPLES": (2, 8),
    "programs.spread.BLOCK": (1, 3, 16),
    "programs.spread.PULL_SHARE": (0.0, 0.02, 1.0),
    "programs.spread.THIN_EDGES": (0, 1, 8),
    "programs.spread.THIN_ROUNDS": (1, 2, 7),
    "programs.spread.UNBOUNDED_SHARE": (0.0, 0.02, 1.0),
    "programs.sweep.BLOCKS": (1, 2, 9),
    "schedule.bags.MOST_BAGS": (1, 2, 5),
    "schedule.loops.CHUNK": (1, 2, 7),
    "threads.SMALL_WORK": (0, 64, 1000),
}

KERNEL: dict[str, tuple[Any, ...]] = {
    "centrality.kernels.betweenness.BLOCK": (1, 3, 8),
    "centrality.kernels.betweenness.COLUMNS": (1, 2, 4),
    "centrality.kernels.betweenness.GATHERED": (1, 2, 5),
    "bfs.many.kernels.bitplanes._BLOCK": (1, 3),
    "bfs.strategies.kernels.buckets.CHUNK": (1, 3),
    "components.kernels.weak.BLOCK": (1, 3, 8),
    "graph.kernels.radix_scatter.ROWS_AHEAD": (1, 3),
    "kcore.kernels.peeling.BLOCK": (1, 3, 8),
    "communities.kernels.check_on_ranks.BLOCK": (1, 3, 8),
    "communities.kernels.label_propagation.BLOCK": (1, 3, 8),
    "communities.kernels.check_labels.BLOCK": (1, 3, 8),
    "communities.kernels.check_labels.SHORT": (1, 2, 5),
    "bfs.many.kernels.levels_check._BLOCK": (1, 3, 8),
    "bfs.many.kernels.levels.BLOCK": (1, 3, 8),
    "bfs.many.kernels.core.BLOCK": (1, 3, 8),
    "bfs.ranks.kernels.words.BLOCK": (1, 3, 8),
    "bfs.strategies.kernels.pull.BLOCK": (1, 3, 8),
    "bfs.kernels.pull_bound.BLOCK": (1, 3, 8),
    "bfs.strategies.kernels.pull_numa.BLOCK": (1, 3, 8),
    "sssp.kernels.ranks.AHEAD": (1, 2),
    "graph.kernels.shuffle.BLOCK": (1, 3, 8),
    "bfs.strategies.kernels.small_levels.LISTS_AHEAD": (1, 2),
    "bfs.strategies.kernels.small_levels.ROWS_AHEAD": (1, 3),
    "sssp.kernels.bins.BLOCK": (1, 2, 4),  # a power of two: places in a block are told apart by a mask
    "sssp.kernels.buckets.ASIDE": (1, 2, 5),
    "sssp.kernels.buckets.FEW_ROUNDS": (1, 2),
    "sssp.kernels.buckets.FUSED_BLOCKS": (0, 1, 3),
    "sssp.kernels.pull.ENDS_AHEAD": (1, 2),
    "sssp.kernels.pull.ROWS_AHEAD": (1, 3),
    "sssp.kernels.rows.RUN": (1, 2, 3),
    "sssp.kernels.skeleton.LONGEST": (8, 100),
    "sssp.kernels.tree.FEW": (0, 1, 3),
    "sssp.kernels.values.FURTHEST": (1 << 12,),  # above every number of a bin
    "sssp.kernels.check.STRETCH": (1, 3, 8),
    "intrinsics.team.LOOKS_PER_YIELD": (1, 3),
    "intrinsics.team.PATIENCE_NS": (0, 1000),
    "intrinsics.team.SLOW_NS": (0, 1000),
    "triangles.kernels.counting.BLOCK": (1, 3, 8),
    "triangles.kernels.counting.FEW": (0, 1, 3),
    "triangles.kernels.view.BLOCK": (1, 3, 8),
    "bfs.kernels.witness.BLOCK": (1, 3, 8),
    "programs.text._AHEAD": (1, 3),  # stands in generated source: another value is another compilation
}

# The first is at most the second: drivers and kernels rely on it.
ORDERED = [
    ("pagerank.engine.BLOCKS_OF_A_SWEEP", "pagerank.engine.SHARES"),
    ("bfs.strategies.push.MEDIUM_EDGES", "bfs.strategies.push.HUGE_EDGES"),
    ("sssp.ranks.THIN_ARCS", "sssp.ranks.THICK_ARCS"),
    ("bfs.strategies.kernels.small_levels.LISTS_AHEAD", "bfs.strategies.kernels.small_levels.ROWS_AHEAD"),
    ("sssp.kernels.pull.ENDS_AHEAD", "sssp.kernels.pull.ROWS_AHEAD"),
]

NOT_A_THRESHOLD: dict[str, str] = {
    "a mark, a sentinel or the largest value of a type": """
        bfs.many.engine: _ALL
        bfs.strategies.small_levels: _ALL
        bfs.ranks.many: _NEVER
        communities.ranks_label_propagation: _MOST_LABELS
        components.ranks: _MOST
        kcore.ranks: _NONE_LEFT
        sssp.ranks: _NOTHING_WAITS
        bfs.traversal: UNREACHED
        graph.formats.rows: HIGHEST_ID
        graph.build.idspace: MAX_NARROW
        graph.distributed.kernels: _ONE
        graph.distributed.numbering: _HIGHEST
        graph.distributed.held: _PIECE _ERROR
        hub_core.kernels.closure: FAR
        hub_core.kernels.index: FAR _UNSET
        graph.kernels.graph_check: NOWHERE
        comm.kernels.pack: _MOST
        kcore.kernels.ranks: NOT_YET
        sssp.kernels.bins: NONE
        sssp.kernels.skeleton: NOWHERE LEFT_OUT PEELED
        intrinsics.team: CLOSED
        programs.spread: _MOST
        schedule.bags: LAST
        schedule.for_each: _NO_LIMIT
        schedule.loops: _NO_LIMIT
        """,
    "bits, masks, shifts and hash factors": """
        bfs.many.core: _NONE
        bfs.ranks.many: _NONE
        graph.formats.symmetry: _SHIFT _GOLDEN _MIX
        graph.generators: _U64 _GOLDEN
        graph.store.array_folder: _CRC_POLYNOMIAL
        graph.partition.part: READ WRITTEN
        graph.partition.store: _ROLES
        graph.kernels.adjacency: _GOLDEN _MIX _HALF _SHIFT
        bfs.many.kernels.bitplanes: NONE ONE
        hub_core.kernels.index: _NONE _ONE
        graph.kernels.generate: GOLDEN MIX_1 MIX_2 ONE LOW_32 S27 S30 S31 S32
        graph.kernels.idtable: GOLDEN
        communities.kernels.label_propagation: _SPREAD _LOW _HALF _ONE _NONE
        bfs.many.kernels.levels: NONE ONE
        comm.kernels.pack: _NONE _ONE _ALL
        comm.kernels.sparse_updates: LISTED _UNLISTED
        sssp.kernels.ranks: NEAR MIDDLE FAR _NOT_NEAR _NOT_MIDDLE _LOWER _HALF
        triangles.kernels.counting: ONE SIX LOW
        schedule.loops: _END_BITS
        """,
    "a width that words, bytes and vectors of the processor give": """
        bfs.many.engine: ROOTS_PER_PASS _MOST_PLANES
        triangles.engine: _WORD
        bfs.many.kernels.bitplanes: _WIDTH
        bfs.many.kernels.levels_check: _WIDTH
        pagerank.kernels.personalised: WIDE_LANES
        pagerank.kernels.vectors: CHUNK LANES WIDE
        sssp.kernels.rows: DIGIT
        intrinsics.words: WORD
        schedule.storage: _WORD_BITS
        """,
    "padding to cache lines": """
        bfs.many.engine: _LINE
        intrinsics.lines: LINE_BYTES
        sssp.kernels.buckets: APART
        schedule.bags: _LINE _HEADER
        schedule.entry: _LINE
        schedule.loops: _LINE
        schedule.report: COLUMNS
        schedule.storage: _LINE_BYTES
        """,
    "number of a column, a row, a code, a tag or a field": """
        pagerank.engine: _OUTSIDE _CORE
        bfs.ranks.level_synchronous: FOLD SPREAD
        bfs.ranks.parents: WISHES ANSWERS
        bfs.ranks.proof: VALUES WITNESSED
        ranks.copies: FINDINGS VALUES
        sssp.kernels.check_on_ranks: NEARER WITNESSED
        comm.collectives: TAG_JOB
        comm.mpi: _NOTICE _PIECE _RUN_SHIFT _RUNS
        comm.requests: TAG_REDUCE TAG_BROADCAST TAG_CONTROL TAG_OUTSIDE_ROUND FIRST_OUTSIDE_TAG LAST_TAG
        comm.termination: ASK ANSWER OVER _FIELDS
        graph.build.builder: _STEPS
        graph.build.spare: _OURS
        graph.kernels.adjacency: ABOVE BELOW SUM_ABOVE SUM_BELOW FACTS _INT _REAL _TEXT _TUPLE
        components.kernels.check: CROSSED UNCONNECTED MISNAMED CYCLIC
        graph.kernels.radix_scatter: LOOPS LOW HIGH
        intrinsics.interpreter: _READ _KEEP _DATA
        kcore.kernels.check: TOO_HIGH TOO_LOW
        bfs.ranks.kernels.level_bits: BITS PLACES
        bfs.many.kernels.levels_check: UNSUPPORTED OVERLONG FALSE_ROOT
        intrinsics.lines: _READ _KEEP _DATA
        comm.kernels.pack: WHOLE BITSET OFFSETS16 OFFSETS32 IDS BAD_LENGTH BAD_TOTAL BAD_MODE BAD_POSITION
        graph.kernels.parse: OK NOT_A_NUMBER NEGATIVE_ID ID_OVERFLOW TOO_FEW_COLUMNS TOO_MANY_COLUMNS ID_OUT_OF_RANGE
        graph.kernels.parse: BAD_WEIGHT WEIGHT_OVERFLOW NEEDS_FLOAT EMPTY_FIELD BAD_LEAD TOO_MANY_ROWS
        graph.kernels.parse: OUT_FIELDS ROW_SPEC_FIELDS RAGGED_SPEC_FIELDS STATUS ROWS POSITION HARD EDGES
        graph.kernels.parse: LEAD COMMENT_A COMMENT_B ID_COLUMNS COLUMNS WEIGHT_COLUMN LOWEST HIGHEST FLOAT_MODE
        graph.kernels.parse: IMPLICIT SKIP STRIDE FIRST_ROW ROW_LIMIT RAGGED_LOWEST RAGGED_HIGHEST RAGGED_FLOAT_MODE
        graph.kernels.parse: WEIGHT_INTEGER WEIGHT_FRACTION WEIGHT_HARD
        sssp.kernels.path_rules: SPLIT TOO_FAR
        kcore.kernels.ranks: STATE STACKED ALIVE EDGES LOST
        intrinsics.prefetch: _READ _KEEP _DATA
        sssp.kernels.ranks: STATE HEAD SIZE IN_MIDDLE IN_FAR EDGES TAKEN
        sssp.kernels.bins: FREE LOST BEYOND NO_ROOM
        sssp.kernels.buckets: VOTE_BIN VOTE_EDGES VOTE_EXPANDED VOTE_LOST VOTE_WORK READY HELD
        sssp.kernels.buckets: NOTHING_LEFT OUT_OF_ROUNDS ENOUGH_WORK REFILL
        sssp.kernels.skeleton: ANCHOR WAY TOWARDS
        sssp.kernels.check: UNWITNESSED IMPROVABLE FALSE_ROOT STRAY ROOTLESS
        bfs.kernels.tree_rules: SPLIT SPREAD
        bfs.kernels.witness: UNWITNESSED OVERLONG FALSE_ROOT STRAY_PARENT
        programs.thin_text: FRONTIER ROUNDS LIMIT
        schedule.bags: CHUNK PACKAGES THREADS MOST_CHUNKS BAGS NEXT FILLED USED LISTS HELD LOGGED KNOWN OWN POOL
        schedule.bags: ACTIVE LISTED FULL LOG LOG_LOCK FREE FREE_LOCK FRESH
        schedule.bags: _LOCK _FIRST _TAIL _TAKE _PUT _POINT _BAG _PRIORITY _SCAN _PACKAGE _NORESERVE
        schedule.entry: _RAISED _STATUS _BEGAN _ENDED
        schedule.report: TASKS WORK CHUNKS STEALS IDLE_NS
        """,
    "layout of a message or a file": """
        ranks.statistics: PAIR_BYTES
        comm.framing: _HEADER _ALIGNMENT
        comm.updates: HEADER_BYTES
        graph.store.array_folder: META_BYTES
        graph.store.cache: BUILD_VERSION
        graph.formats.galois: HEADER_BYTES
        graph.formats.gap: HEADER_BYTES HIGHEST_ID
        graph.generators: _EDGE_BYTES
        graph.store.npy: _LONGEST _DIGITS _DIMENSIONS
        graph.store.remembered: _LONGEST
        graph.partition.prediction: HEADER_BYTES VALUE_BYTES
        graph.partition.store: FORMAT_VERSION
        graph.distributed.parts_folder: FORMAT_VERSION
        graph.store.graph_store: FORMAT_VERSION
        bfs.ranks.kernels.level_bits: HEADER
        comm.kernels.pack: HEADER_BYTES
        """,
    "a tolerance or a rounding": """
        centrality.check: TOLERANCE
        triangles.check_clustering_weighted: CLOSE
        communities.check_modularity: TOLERANCE
        pagerank.check: RELATIVE ROUNDING
        pagerank.check_weighted: MASS_ROUNDING ROUNDING
        pagerank.check_personalised: ROUNDING
        repair.engine: _HUGE _LEAST_GAIN _ROUNDING
        pagerank.ranks: _FIXED_POINT
        sssp.ranks: _FIXED_POINT
        sssp.delta: MIN_WIDTH
        communities.kernels.louvain: GAIN
        """,
    "part of an algorithm's or a generator's definition: another value is another result": """
        pagerank.engine: LDBC_ITERATIONS GAP_ITERATIONS GAP_TOLERANCE
        pagerank.personalised: ITERATIONS
        repair.engine: _MOST_SWEEPS
        pagerank.ranks: LDBC_ITERATIONS GAP_ITERATIONS GAP_TOLERANCE
        graph.generators: MAX_SCALE MAX_SCALE_IN_PIECES MAX_UNIFORM_SCALE _SCRAMBLE_ROUNDS
        graph.build.idspace: MAX_VERTICES
        """,
    "a rule of text: bytes of a character, the precision of a double, what is taken for which format": """
        errors: LONGEST
        graph.formats.part_files: _MOST_NOTES
        graph.formats.rows: ASKED_BYTES
        graph.formats.survey: MOST_LINES
        graph.formats.csr_output: SPARSEST SPARSE_FLOOR
        graph.formats.graph500: HIGHEST_PER_EDGE HIGHEST_FLOOR
        graph.formats.ldbc: LONGEST_PROPERTY MOST_PROPERTIES
        graph.formats.part_files: _MOST_NOTES
        graph.formats.sniffing: HEAD_BYTES MOST_CONTROL_SHARE MOST_WRONG_LINES
        graph.formats.source: LONGEST_ROW_BYTES MOST_COMPRESSED NEWLINE
        graph.formats.survey: SURVEY_BYTES FEWEST_LINES
        graph.kernels.parse: TAB NEWLINE CARRIAGE_RETURN SPACE HASH PERCENT COMMA
        graph.kernels.parse: PLUS MINUS DOT ZERO NINE UPPER_E LOWER_E
        graph.kernels.parse: INT64_MAX_TENTH CLIP EXACT_FLOAT_INTEGER DIVISOR_DIGITS DIVIDEND_LIMIT
        """,
    "an estimate before anything is read": """
        graph.build.extent: EDGES_PER_VERTEX SURE_SHARE
        """,
    "what is rehearsed before the clock": """
        comm.rehearsal: _ENTRIES _MOST _SPANS
        """,
    "time": """
        bfs.numa: READS
        comm.mpi: WAIT_S _SHORTEST_SLEEP_S _LONGEST_SLEEP_S _YIELDS
        graph.store.array_folder: ABANDONED_AFTER_S
        graph.store.remembered: RACY_WINDOW_NS
        intrinsics: SPINS
        intrinsics.clock: _NS
        """,
    "noticing that nothing moves: a smaller one would end a run that is merely slow": """
        comm.loopback: IDLE_LIMIT _PATIENT_TURNS _PAUSE_S
        """,
    "of MPI: tests/mpi/ranks_transport.py gives small pieces to a transport under a real mpirun": """
        comm.mpi: CHUNK_BYTES _EAGER_BYTES _ROOM_BYTES _KEPT_BYTES
        """,
    "reads CPython's objects, which interpreted code cannot: tests/unit/api/test_networkx_rows.py has longer rows": """
        graph.kernels.adjacency: _AHEAD _WAITING
        intrinsics.interpreter: _TYPE_AT
        """,
    "interpreted code cannot shift these words; compiled, test_engines.py has longer rows": """
        sssp.kernels.rows: SHORT
        """,
    "in generated machine code only, where it asks for a cache line ahead of time": """
        pagerank.kernels.vectors: AHEAD
        """,
}


def excluded() -> dict[str, str]:
    """The reason by the name of a constant."""
    reasons = {}
    for reason, text in NOT_A_THRESHOLD.items():
        for line in filter(None, map(str.strip, text.splitlines())):
            module, _, names = line.partition(": ")
            reasons.update({f"{module}.{name}": reason for name in names.split()})
    return reasons


# ------------------------------------------------------------------------------------------------ setting them


def interpreted() -> bool:
    """Whether numba compiles nothing, so that constants of kernels may be set."""
    return bool(getattr(numba.config, "DISABLE_JIT", False))


def choose(source: random.Random) -> dict[str, Any]:
    """New values for some thresholds: for a few, half of them or all that can be set here."""
    share = source.choice((0.1, 0.5, 1.0))
    known = DRIVER | KERNEL if interpreted() else DRIVER
    chosen = {name: source.choice(values) for name, values in known.items() if source.random() < share}
    for low, high in ORDERED:
        if low in known:
            most = chosen.get(high, shipped(high))
            if chosen.get(low, shipped(low)) > most:
                chosen[low] = most
    return chosen


@contextmanager
def small(source: int | random.Random | np.random.Generator | None) -> Iterator[dict[str, Any]]:
    """Set thresholds at random, tell which, and restore them at the end; 0 and None leave all as they are shipped."""
    if isinstance(source, np.random.Generator):
        source = int(source.integers(1, 1 << 32))
    if isinstance(source, int):
        source = random.Random(source) if source else None
    chosen = {} if source is None else choose(source)
    with using(chosen):
        yield chosen


@contextmanager
def using(values: Mapping[str, Any]) -> Iterator[None]:
    """Set these thresholds everywhere that a copy is kept, and restore them at the end."""
    places = [(place, value) for name, value in values.items() for place in _places(name)]  # loaded before one is set
    done = []
    try:
        for place, value in places:
            done.append((place, place.read()))
            place.write(value)
        yield
    finally:
        for place, value in reversed(done):
            place.write(value)


def shipped(name: str) -> Any:
    """The value in the sources."""
    return survey()[name].value


class _Name:
    """A constant in a module."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = importlib.import_module(module), name

    def read(self) -> Any:
        return getattr(self._module, self._name)

    def write(self, value: Any) -> None:
        setattr(self._module, self._name, value)


class _Default:
    """The default of a function's parameter."""

    def __init__(self, module: str, path: str, parameter: str) -> None:
        found = inspect.unwrap(attrgetter(path)(importlib.import_module(module)))
        self._function, self._parameter = found, parameter
        named = found.__code__.co_varnames[: found.__code__.co_argcount]
        self._place = named.index(parameter) - len(named) if parameter in named else None

    def read(self) -> Any:
        if self._place is None:
            return self._function.__kwdefaults__[self._parameter]
        return self._function.__defaults__[self._place]

    def write(self, value: Any) -> None:
        if self._place is None:
            self._function.__kwdefaults__[self._parameter] = value
        else:
            values = list(self._function.__defaults__)
            values[self._place] = value
            self._function.__defaults__ = tuple(values)


@cache
def _places(name: str) -> tuple[_Name | _Default, ...]:
    constant = survey()[name]
    holders = [_Name(*place) for place in constant.holders]
    return (*holders, *(_Default(*place) for place in constant.defaults))
