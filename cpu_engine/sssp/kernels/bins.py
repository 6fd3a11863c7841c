"""Bins of waiting vertices: each lane has its own, chains of blocks out of one pool.

All blocks of a chain but the newest are full; every lane begins with as many blocks. An entry that finds no room or no
bin is lost, and the flag is set: the distances alone say which vertices wait, so the bins can be filled again.
Arrays are never sliced: threads that count references to the same array wait for one another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

BLOCK = 64  # vertices: what a thread takes at a time
FREE, LOST = 0, 1
NONE = -1
BEYOND, NO_ROOM = 1, 2  # what LOST says: beyond the last bin, or the pool is used up


class Bins(NamedTuple):
    """The arrays of all lanes' bins."""

    pool: np.ndarray  # the blocks' entries
    link: np.ndarray  # [block]: the next block of the same chain
    head: np.ndarray  # [lane, bin]: its newest block, NONE if it is empty
    fill: np.ndarray  # [lane, bin]: the index behind its newest entry, a multiple of BLOCK when there is no room
    state: np.ndarray  # [lane]: (first free block, why entries were lost)


@njit(cache=True)
def clear_bins(bins, lane):
    """Empty a lane's bins.

    Invariant  the lane's share of the blocks is free; all lanes are cleared together.   Races  the lane's owner only.
    Work       blocks + bins.
    """
    _, link, head, fill, state = bins
    blocks = link.size // head.shape[0]
    for block in range(lane * blocks, (lane + 1) * blocks):
        link[block] = block + 1
    link[(lane + 1) * blocks - 1] = NONE
    for number in range(head.shape[1]):
        head[lane, number] = NONE
        fill[lane, number] = 0
    state[lane, FREE] = lane * blocks
    state[lane, LOST] = 0


@njit(cache=True)
def put_in_bin(bins, lane, number, v):
    """Add ``v`` to a bin of the lane, or set the flag that it was lost.

    Invariant  see the module.   Races  the lane's owner only.   Work  constant.
    """
    pool, link, head, fill, state = bins
    if number >= head.shape[1]:
        state[lane, LOST] = max(state[lane, LOST], BEYOND)
        return
    at = fill[lane, number]
    if at & (BLOCK - 1) == 0:
        block = state[lane, FREE]
        if block == NONE:
            state[lane, LOST] = NO_ROOM
            return
        state[lane, FREE] = link[block]
        link[block] = head[lane, number]
        head[lane, number] = block
        at = block * BLOCK
    pool[at] = v
    fill[lane, number] = at + 1


@njit(cache=True)
def detach_bin(bins, lane, number):
    """Take a bin's chain away: its newest block and how many entries that one holds.

    Invariant  the bin is empty afterwards, its blocks are not free.   Races  the lane's owner only.   Work  constant.
    """
    head, fill = bins.head, bins.fill
    block = head[lane, number]
    held = fill[lane, number] - block * BLOCK
    head[lane, number] = NONE
    fill[lane, number] = 0
    return block, held


@njit(cache=True)
def free_chain(bins, lane, block):
    """Give a chain's blocks to the lane.

    Invariant  no thread reads them any more.   Races  the lane's owner only.   Work  the chain's blocks.
    """
    link, state = bins.link, bins.state
    while block != NONE:
        after = link[block]
        link[block] = state[lane, FREE]
        state[lane, FREE] = block
        block = after


@njit(cache=True)
def first_bin(head, lane, number):
    """The first bin from ``number`` on that is not empty, the count of bins if there is none."""
    while number < head.shape[1] and head[lane, number] == NONE:
        number += 1
    return number
