"""Rows of weighted edges: ``gather_rows_step`` of csr.py once more, with a weight beside every entry.

Apart, because most graphs have no weights and need not wait for this to be compiled. Encodings: see
radix_scatter.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from cpu_engine.graph.kernels.csr import begin_rows
from cpu_engine.intrinsics.atomics import atomic_add


@njit(cache=True)
def _sort_bucket(entries, weight, lo, hi, bits, ends, scratch, scratch_weight):
    # A counting sort by row: ends[q] is where row q begins, and after the scatter where it ends.
    mask = (1 << bits) - 1
    begin_rows(entries[lo:hi], bits, ends)
    for e in range(lo, hi):
        entry = np.int64(entries[e])
        end = ends[entry >> bits]
        ends[entry >> bits] = end + 1
        scratch[end] = entry & mask
        scratch_weight[end] = weight[e]


@njit(cache=True)
def _keep_lightest(scratch, scratch_weight, begin, end, columns, weight, at, weight_at, seen, place):
    # A repeated column lowers the weight at the place of the first. Without ``seen`` all are kept.
    kept = np.int64(0)
    for e in range(begin, end):
        c = np.int64(scratch[e])
        if seen.shape[0] > 0:
            word = seen[c >> 6]
            bit = np.uint64(1) << np.uint64(c & 63)
            if word & bit != 0:
                first = weight_at + place[c]
                weight[first] = min(weight[first], scratch_weight[e])
                continue
            seen[c >> 6] = word | bit
            place[c] = kept
        columns[at + kept] = c
        weight[weight_at + kept] = scratch_weight[e]
        kept += 1
    if seen.shape[0] > 0:
        for e in range(at, at + kept):
            seen[columns[e] >> 6] = 0
    return kept


@njit(cache=True)
def _gather_buckets(buckets, weight, shape, ticket, gathered, scratch, scratch_weight, seen, place):
    entries, columns, bucket_begin, above, up_to = buckets
    row_begin, row_size, kept = gathered
    log_b, group, bits, _ = shape
    rows = row_begin.shape[0] >> log_b
    ratio = entries.itemsize // columns.itemsize
    b = atomic_add(ticket, 0, 1)
    while b < kept.shape[0]:
        lo, hi = bucket_begin[b], bucket_begin[b + 1]
        if above < hi - lo <= up_to:
            ends = row_begin[b * rows : (b + 1) * rows]
            _sort_bucket(entries, weight, lo, hi, bits, ends, scratch, scratch_weight)
            begin, at = np.int64(0), lo * ratio
            for q in range(rows):
                end = ends[q]
                ends[q] = at
                size = _keep_lightest(
                    scratch, scratch_weight, begin, end, columns, weight, at, at - lo * ratio + lo, seen, place
                )
                position = (q >> group << log_b | b) << group | q & ((1 << group) - 1)
                if position < row_size.shape[0]:
                    row_size[position] = size
                begin = end
                at += size
            kept[b] = at - lo * ratio
        b = atomic_add(ticket, 0, 1)


@njit(cache=True, parallel=True)
def gather_weighted_step(buckets, weight, shape, ticket, gathered, scratch, scratch_weight, seen, place):
    """As ``gather_rows_step``; of repeated columns the first stays, with the smallest weight.

    Invariant  in addition: the weights of a bucket's columns follow each other from weight[buckets.begin[b]] on.
    Races      in addition: scratch_weight[lane] (as scratch) and place[lane] (int32 per position) are the lane's own.
    Work       as ``gather_rows_step``, and random access within ``place``.
    """
    for lane in prange(scratch.shape[0]):
        _gather_buckets(
            buckets, weight, shape, ticket, gathered, scratch[lane], scratch_weight[lane], seen[lane], place[lane]
        )
