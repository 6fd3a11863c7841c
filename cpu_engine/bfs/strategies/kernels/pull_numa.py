"""Bottom-up level for machines of several memory nodes: threads ask a copy of ``visited`` that lies on their own node.

What is asked at random is a bitmap, an eighth of a byte per vertex; copying it turns remote random reads into remote
sequential ones. Best in-neighbour first, and hanging vertices have no second one (Yasui 2014).
Encoding invariant: bit v of ``words`` is set iff ``0 <= level[v] <= depth``, and all copies are equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

BLOCK = 1024  # vertices per turn: low ids are hubs


@njit(cache=True)
def is_set(words, v):
    """Whether bit v is set."""
    return (words[v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != 0


@njit(cache=True)
def node_of(t, threads, nodes):
    """The node of thread t: threads are spread over the nodes in order."""
    return t * nodes // threads


@njit(cache=True, parallel=True)
def pack_visited_step(level, depth, words):
    """Set bit v iff v is within ``depth``.

    Invariant  see the module.   Races  none: a word is written by one thread.   Work  O(n), sequential.
    """
    for w in prange(words.size):
        word = np.uint64(0)
        for v in range(w * 64, min(w * 64 + 64, level.size)):
            if 0 <= level[v] <= depth:
                word |= np.uint64(1) << np.uint64(v & 63)
        words[w] = word


@njit(cache=True, parallel=True)
def copy_visited_step(words, copies, threads):
    """Copy the bitmap to every node, each node's part by the node's own threads, so that its pages settle there.

    Invariant  every row of ``copies`` equals ``words``.
    Races      a node's threads share its row out among themselves.
    Work       one bitmap per node.
    """
    nodes, size = copies.shape
    for t in prange(threads):
        node = node_of(t, threads, nodes)
        first = (node * threads + nodes - 1) // nodes  # the node's first thread, and the next node's
        after = ((node + 1) * threads + nodes - 1) // nodes
        for w in range(size * (t - first) // (after - first), size * (t - first + 1) // (after - first)):
            copies[node, w] = words[w]


@njit(cache=True)
def pull_local_share_step(t, threads, rows, visited, tree, depth):
    """Thread t's blocks, asking ``visited``; return finds and edges looked at.

    Invariant, races, work: see pull_local_step.
    """
    row_begin, row_end, sources, best_in = rows.begin, rows.end, rows.sources, rows.best
    n, level, parent = tree.level.size, tree.level, tree.parent
    found, looked = 0, 0
    for block in range(t * BLOCK, n, threads * BLOCK):
        for v in range(block, min(block + BLOCK, n)):
            if level[v] != -1:
                continue
            u = best_in[v]
            looked += 1
            if not is_set(visited, u):
                u = -1
                if v < rows.hanging_start:
                    for e in range(row_begin[v] + 1, row_end[v]):
                        looked += 1
                        if is_set(visited, sources[e]):
                            u = sources[e]
                            break
            if u >= 0:
                level[v] = depth + 1
                parent[v] = u
                found += 1
    return found, looked


@njit(cache=True, parallel=True)
def pull_local_step(rows, copies, tree, depth, found, looked):
    """Give ``depth + 1`` to each unvisited vertex with a visited in-neighbour.

    Invariant  "visited" serves as "in the frontier": an unvisited vertex has no neighbour in an earlier level.
    Races      iteration v writes level[v] and parent[v] only and reads no other level; the bitmaps are only read.
    Work       O(n), and one look per unvisited vertex in the good case, its whole in-list in the bad one.
    """
    threads = found.size
    for t in prange(threads):
        found[t], looked[t] = pull_local_share_step(
            t, threads, rows, copies[node_of(t, threads, copies.shape[0])], tree, depth
        )


@njit(cache=True)
def read_at_random_step(words, reads):
    """Test ``reads`` bits in an order that no prefetcher knows; return how many were set. For measuring, nothing else.

    Invariant  nothing changes.   Races  none, serial.   Work  O(reads), a cache miss each where the bitmap is large.
    """
    bits = words.size * 64
    state, seen = np.uint64(88172645463325252), 0
    for _ in range(reads):
        state ^= state << np.uint64(13)  # xorshift64, Marsaglia 2003
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        seen += is_set(words, np.int64(state % np.uint64(bits)))
    return seen
