"""Delta-stepping: bucket after bucket, by a team that stays awake over all of them.

Vertices wait in bins by bucket of distance (bins.py). A round takes the nearest bucket: members take its blocks one at
a time; what a member lowers within the same bucket it expands itself, unless that has become much. ``bound``:
only edges that lead nearer than this are looked at - rows are lightest first, so they are a prefix - and pull.py makes
up for those beyond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from cpu_engine.intrinsics.atomics import atomic_add
from cpu_engine.intrinsics.borrowed import borrow
from cpu_engine.intrinsics.lines import ask_for_line
from cpu_engine.intrinsics.team import join_team, leave_team, meet_team
from cpu_engine.sssp.kernels.bins import (
    BLOCK,
    LOST,
    NO_ROOM,
    NONE,
    clear_bins,
    detach_bin,
    first_bin,
    free_chain,
    put_in_bin,
)
from cpu_engine.sssp.kernels.values import bucket_of, lower_value, weight_of

FUSED_BLOCKS = 16  # what a member expands by itself; more is shared
VOTE_BIN, VOTE_EDGES, VOTE_EXPANDED, VOTE_LOST, VOTE_WORK, READY, HELD = range(7)  # columns of the board
NOTHING_LEFT, OUT_OF_ROUNDS, ENOUGH_WORK, REFILL = range(4)  # why a run ended
APART = 8  # tickets, so that they do not share a cache line
FEW_ROUNDS = 32  # run by a team that is not complete, before another is called together
ASIDE = 256  # edges whose targets are asked for before the first of them is lowered


class Search(NamedTuple):
    """What the rounds of one launch read and lower: Rows, distances and Scale, flat as parallel loops need them."""

    offsets: np.ndarray
    words: np.ndarray
    weights: np.ndarray | None
    bits: Any
    dist: np.ndarray
    expanded: np.ndarray  # the distance at which a vertex's edges were looked at last
    base: Any
    width: Any
    bound: Any
    core: int  # edges inside [0, core) are not looked at


class Aside(NamedTuple):
    """Edges of each lane whose targets' distances are on their way into the cache: [lane, ASIDE]."""

    targets: np.ndarray
    reaches: np.ndarray


class Schedule(NamedTuple):
    """How the members of a team share the blocks of a round."""

    board: np.ndarray  # [lane]: what the lane found, and how many of its blocks are ready
    blocks: np.ndarray  # [lane]: the blocks that are ready
    tickets: np.ndarray  # which of them is next; for this round and the one after


@njit(cache=True)
def relax_aside(lane, count, search, bucket, alone, aside, bins):
    """Lower the distances that were put aside, all below the bound, and add each lowered vertex to its bin.

    A vertex that falls within a later bucket is in that bin already, unless it falls from the bound or beyond: the
    bound may lie inside a bucket, and whatever is not below it is in no bin.
    """
    dist, base, width, bound = search.dist, search.base, search.width, search.bound
    targets, reaches = aside
    pool, fill, bin_count = bins.pool, bins.fill, bins.head.shape[1]
    for i in range(count):
        v, reach = targets[lane, i], reaches[lane, i]
        old = dist[v]
        if reach < old:
            if alone:
                dist[v] = reach
            else:
                old = lower_value(dist, v, reach)
                if old <= reach:
                    continue
            new = bucket_of(reach, base, width)
            if new == bucket or old >= bound or new < bucket_of(old, base, width):
                at = fill[lane, new] if new < bin_count else 0
                if at & (BLOCK - 1) != 0:  # there is room: nearly always, and the call is not for free
                    pool[at] = v
                    fill[lane, new] = at + 1
                else:
                    put_in_bin(bins, lane, new, v)


@njit(cache=True)
def expand_block(lane, first, last, search, bucket, alone, aside, bins):
    """Relax the edges of those in pool[first:last] that belong to the bucket; return (edges looked at, how many)."""
    offsets, words, weights, bits, dist, expanded, base, width, bound, core = search
    targets, reaches = aside
    pool = bins.pool
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    looked, taken, count = 0, 0, 0
    for i in range(first, last):  # a bin's vertices are all over memory: first ask for everything, then look at it
        ask_for_line(dist, pool[i])
        ask_for_line(expanded, pool[i])
        ask_for_line(offsets, pool[i])
    for i in range(first, last):
        ask_for_line(words, offsets[pool[i]])
    for i in range(first, last):
        u = np.uint64(pool[i])
        near = dist[u]
        if bucket_of(near, base, width) != bucket or expanded[u] == near:
            continue  # it was lowered further, and is in another bin as well
        expanded[u] = near
        taken += 1
        skip = np.uint64(core if u < np.uint64(core) else 0)
        e, stop = np.uint64(offsets[u]), np.uint64(offsets[u + np.uint64(1)])
        while e < stop:
            word = words[e]
            reach = near + weight_of(word, weights, e, bits)
            if not 0 <= reach < bound:  # a sum of int64 that overflows is negative
                break
            e += np.uint64(1)
            looked += 1
            v = np.uint64(word) & mask
            if v >= skip:
                ask_for_line(dist, v)
                targets[lane, count] = v
                reaches[lane, count] = reach
                count += 1
                if count == ASIDE:
                    relax_aside(lane, count, search, bucket, alone, aside, bins)
                    count = 0
    relax_aside(lane, count, search, bucket, alone, aside, bins)
    return looked, taken


@njit(cache=True)
def is_long(bins, lane, number):
    """Whether a bin has more than FUSED_BLOCKS blocks."""
    block, count = bins.head[lane, number], 0
    while block != NONE and count <= FUSED_BLOCKS:
        block = bins.link[block]
        count += 1
    return count > FUSED_BLOCKS


@njit(cache=True)
def edges_in_bin(bins, lane, number, offsets):
    """The edges of a bin's vertices."""
    pool, link, head, fill, _ = bins
    block, edges = head[lane, number], 0
    held = fill[lane, number] - block * BLOCK
    while block != NONE:
        for at in range(block * BLOCK, block * BLOCK + held):
            u = pool[at]
            edges += offsets[u + 1] - offsets[u]
        block, held = link[block], BLOCK
    return edges


@njit(cache=True)
def cast_votes(me, size, bins, bucket, offsets, board, weigh):
    """Write to the board each own lane's first bin that is not empty, and if ``weigh`` the edges of its vertices."""
    for lane in range(me, board.shape[0], size):
        nearest = first_bin(bins.head, lane, bucket)
        board[lane, VOTE_BIN] = nearest
        board[lane, VOTE_LOST] = bins.state[lane, LOST]
        if weigh and nearest < bins.head.shape[1]:
            board[lane, VOTE_WORK] = edges_in_bin(bins, lane, nearest, offsets)


@njit(cache=True)
def count_votes(board, bin_count, enough):
    """(the nearest bin, why to stop now or -1)."""
    bucket, edges, lost = bin_count, 0, 0
    for lane in range(board.shape[0]):
        bucket = min(bucket, board[lane, VOTE_BIN])
        edges += board[lane, VOTE_EDGES]
        lost = max(lost, board[lane, VOTE_LOST])
    if lost == NO_ROOM or (bucket == bin_count and lost):
        return bucket, REFILL
    if bucket == bin_count:
        return bucket, NOTHING_LEFT
    if enough >= 0:
        for lane in range(board.shape[0]):
            if board[lane, VOTE_BIN] == bucket:
                edges += board[lane, VOTE_WORK]
        if edges > enough:
            return bucket, ENOUGH_WORK
    return bucket, -1


@njit(cache=True)
def lay_out_blocks(me, size, bins, bucket, schedule, over):
    """Free the blocks of the last round; unless all is ``over``, make the own lanes' blocks of the bucket ready.

    board[lane] says how many there are, and how many entries the first one holds.
    """
    board, blocks = schedule.board, schedule.blocks
    for lane in range(me, board.shape[0], size):
        if board[lane, READY] > 0:
            free_chain(bins, lane, blocks[lane, 0])
        count = 0
        if not over:
            block, board[lane, HELD] = detach_bin(bins, lane, bucket)
            while block != NONE:
                blocks[lane, count] = block
                count += 1
                block = bins.link[block]
        board[lane, READY] = count


@njit(cache=True)
def take_block(schedule, turn_of, owner, me):
    """The next block that is ready, how many entries it holds, and whose it was; (-1, 0, ...) if there is none.

    The own lanes' come first: those vertices lie where the member has been before, and so in its cache.
    """
    board, blocks, tickets = schedule
    lanes = board.shape[0]
    while owner < me + lanes:
        lane = owner % lanes
        if tickets[turn_of + lane * APART] < board[lane, READY]:
            turn = atomic_add(tickets, turn_of + lane * APART, 1)
            if turn < board[lane, READY]:
                return blocks[lane, turn], (board[lane, HELD] if turn == 0 else BLOCK), owner
        owner += 1
    return NONE, 0, owner


@njit(cache=True)
def expand_bucket(me, search, bucket, schedule, turn_of, alone, aside, bins):
    """Take blocks that are ready as long as there are any, then expand the own bin while it is short."""
    looked, taken = 0, 0
    chain = NONE
    block, held, owner = take_block(schedule, turn_of, me, me)
    shared = block != NONE
    while True:
        if not shared and block == NONE:
            free_chain(bins, me, chain)
            if bins.head[me, bucket] == NONE or is_long(bins, me, bucket):
                break
            chain, held = detach_bin(bins, me, bucket)
            block = chain
        more, others = expand_block(me, block * BLOCK, block * BLOCK + held, search, bucket, alone, aside, bins)
        looked += more
        taken += others
        if shared:
            block, held, owner = take_block(schedule, turn_of, owner, me)
            shared = block != NONE
        else:
            block, held = bins.link[block], BLOCK
    schedule.board[me, VOTE_EDGES] += looked
    schedule.board[me, VOTE_EXPANDED] += taken


@njit(cache=True)
def run_rounds_share_step(me, size, gate, search, bucket, schedule, aside, bins, rounds, enough):
    """Member ``me``'s part of run_rounds_step; return (bucket, why it ended, rounds).

    Invariant, races, work: see run_rounds_step.
    """
    gate, search, schedule, aside, bins = borrow(gate), borrow(search), borrow(schedule), borrow(aside), borrow(bins)
    board, lanes = schedule.board, schedule.board.shape[0]
    for lane in range(me, lanes, size):
        board[lane, READY] = 0
    done = 0
    while True:
        cast_votes(me, size, bins, bucket, search.offsets, board, enough >= 0)
        meet_team(gate, size, 2 * done + 1)
        bucket, end = count_votes(board, bins.head.shape[1], enough)
        if end < 0 and (done >= rounds or leave_team(gate, 2 * done + 1)):
            end = OUT_OF_ROUNDS
        # No member reads the last round's blocks any more.
        lay_out_blocks(me, size, bins, bucket, schedule, end >= 0)
        if end >= 0:
            return bucket, end, done
        for lane in range(me, lanes, size):
            schedule.tickets[((done + 1) % 2 * lanes + lane) * APART] = 0
        meet_team(gate, size, 2 * done + 2)
        expand_bucket(me, search, bucket, schedule, done % 2 * lanes * APART, size == 1, aside, bins)
        done += 1


@njit(cache=True, parallel=True)
def run_rounds_step(team, wanted, patience, search, bucket, schedule, aside, bins, rounds, enough):
    """Expand bucket after bucket, from ``bucket`` on; return (the bucket that is next, why it ended, rounds run).

    Ends when nothing waits, after ``rounds`` rounds, if a member had to wait long for another (``team[1, 1]``), when
    entries were lost (fill the bins again), or if ``enough`` is not negative before a round that would bring the edges
    looked at above it. board[:, VOTE_EDGES] and board[:, VOTE_EXPANDED] are added to.

    Invariant  ``team`` and the tickets are 0 before. dist[v] is the length of a path, and only falls. Let b be the
               present bucket; every vertex below the bound and before b is expanded (dist[v] == expanded[v]).
               (1) A vertex below the bound whose bucket is b and that is not expanded is in bin b.
               (2) A vertex below the bound whose bucket is after b is in the bin of its bucket, expanded or not.
               Each holds, or the lost entry is flagged. Proof: v falls from ``old`` to ``reach`` < bound, in a bucket
               c >= b. If c = b, v is put in bin c: (1). If c > b and old >= bound, too: (2). Else old < bound lies
               in c or later, so after b, and by (2) v is in the bin of old's bucket: that is bin c, or v is
               put there. When bin b is empty, (1) says that all of b are expanded, and for the next bin that is not
               empty (2) implies (1). So when no bin holds an entry and none was lost, every vertex below the bound
               is expanded at its distance, and no edge among those below the bound can lower one of them.
    Races      dist is lowered by an atomic minimum, and the thread that did it puts the vertex in its bin; expanded[v]
               may be written by two members, but each relaxes all edges from the value that it writes. Member t alone
               writes to lanes t, t + size, ...; blocks that are ready are only read, and freed after all have met.
    Work       the prefixes of the rows below the bound, some more than once; two meetings per round.
    """
    bucket_then, end_then, rounds_then = 0, 0, 0
    for _ in prange(schedule.board.shape[0]):
        me, size = join_team(team[0], wanted, patience)
        found = (0, 0, 0)
        if me >= 0:
            most = rounds if size == wanted else min(rounds, FEW_ROUNDS)
            found = run_rounds_share_step(me, size, team[1], search, bucket, schedule, aside, bins, most, enough)
        bucket_then = max(bucket_then, found[0])
        end_then = max(end_then, found[1])
        rounds_then = max(rounds_then, found[2])
    return bucket_then, end_then, rounds_then


@njit(cache=True)
def refill_share(lane, first, last, dist, scale, bins):
    """One lane's part of refill_bins_step."""
    base, width, bound = scale
    clear_bins(bins, lane)
    for v in range(first, last):
        if base <= dist[v] < bound:
            put_in_bin(bins, lane, bucket_of(dist[v], base, width), v)


@njit(cache=True, parallel=True)
def refill_bins_step(bins, dist, scale):
    """Empty the bins, and fill them with every vertex from the scale's base on that is nearer than its bound.

    They get vertices that are expanded already as well: distances may have been lowered from outside, so that expanded
    vertices lie in later buckets, and rule (2) of run_rounds_step promises an entry for those as well.

    Invariant  every vertex nearer than the base is expanded. A lane's share fits into its pool.
    Races      lane t alone writes bins of lane t.   Work  one look per vertex.
    """
    lanes, n = bins.head.shape[0], dist.size
    for lane in prange(lanes):
        refill_share(lane, n * lane // lanes, n * (lane + 1) // lanes, dist, scale, bins)


@njit(cache=True, parallel=True)
def find_nearest_step(dist, expanded, nearest):
    """Lower nearest[lane] to the smallest distance of a waiting vertex in the lane's share, if there is one.

    Invariant  dist and expanded are only read.   Races  lane t alone writes nearest[t].   Work  one look per vertex.
    """
    lanes, n = nearest.size, dist.size
    for lane in prange(lanes):
        least = nearest[lane]
        for v in range(n * lane // lanes, n * (lane + 1) // lanes):
            if dist[v] != expanded[v]:
                least = min(least, dist[v])
        nearest[lane] = least


@njit(cache=True, parallel=True)
def forget_distances_step(dist, expanded, bins, unreached):
    """Reset a search: no vertex has a distance, none waits.

    Invariant  the bins are empty.   Races  lane t writes its share.   Work  two writes per vertex.
    """
    lanes, n = bins.head.shape[0], dist.size
    for lane in prange(lanes):
        clear_bins(bins, lane)
        first, last = n * lane // lanes, n * (lane + 1) // lanes
        dist[first:last] = unreached
        expanded[first:last] = unreached
