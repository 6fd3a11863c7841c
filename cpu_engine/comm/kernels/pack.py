"""Updates of agreed lists to bytes and back; the formats are described in cpu_engine/comm/encoding.py.

Values are uint32, smaller is better. Packing looks at a list's values side by side: those of a list
that is no range are gathered first. Then two steps: a survey, which marks the updates as bits in ``words`` and counts
them, and the writing, once the caller knows the format and has made room. Unpacking goes straight to the
places: ``begin + position``, or ``indices[position]`` where indices are given (None: a range). Arrays are copied and
reduced by loops: for a slice assigned to a slice numba compiles its error message, too, which takes seconds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cpu_engine.intrinsics.words import (
    WORD,
    count_bits,
    lowest_bit,
    note_smaller,
    word_of_smaller,
)

WHOLE, BITSET, OFFSETS16, OFFSETS32, IDS = 1, 2, 3, 4, 5
HEADER_BYTES = 16
BAD_LENGTH, BAD_TOTAL, BAD_MODE, BAD_POSITION = -1, -2, -3, -4

_MOST = np.uint32(0xFFFFFFFF)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True)
def forget_sent_step(last_sent):
    """Invariant  after: nothing was sent yet.   Races  none.   Work  O(entries)."""
    last_sent[:] = _MOST


@njit(cache=True)
def gather_step(indices, values, side_by_side):
    """Invariant  side_by_side[i] = values[indices[i]].   Races  none, serial.   Work  O(entries)."""
    unsigned = indices.view(np.uint32)  # spares numba the question whether an index counts from the end
    for i in range(unsigned.size):
        side_by_side[i] = values[unsigned[i]]


@njit(cache=True)
def survey_improved_step(values, begin, last_sent, words):
    """Note which values are smaller than last sent, and that they are sent now; return count, smallest, largest.

    Invariant  bit i of ``words`` is set iff values[begin + i] was smaller than ``last_sent[i]``; then they are equal.
               Nothing set: count is 0, and smallest and largest mean nothing.
    Races      none, serial.
    Work       64 entries at a time, without a branch per entry; unchanged entries are only read.
    """
    total = last_sent.size
    lows, highs = np.empty(WORD, np.uint32), np.empty(WORD, np.uint32)
    lows[:], highs[:] = _MOST, np.uint32(0)
    count, whole_words = 0, total // WORD
    for w in range(whole_words):
        word = word_of_smaller(values, begin + w * WORD, last_sent, w * WORD)
        words[w] = word
        if word != _NONE:
            count += count_bits(word)
            note_smaller(values, begin + w * WORD, last_sent, w * WORD, lows, highs)
    if whole_words < words.size:
        last = _NONE
        for i in range(whole_words * WORD, total):
            value = values[begin + i]
            if value < last_sent[i]:
                last_sent[i] = value
                last |= _ONE << np.uint64(i - whole_words * WORD)
                lows[0], highs[0] = min(lows[0], value), max(highs[0], value)
        words[whole_words] = last
        count += count_bits(last)
    for j in range(1, WORD):
        lows[0], highs[0] = min(lows[0], lows[j]), max(highs[0], highs[j])
    return count, lows[0], highs[0]


@njit(cache=True)
def bytes_before_values(mode, count, total):
    """Header and positions; -1 for an unknown mode."""
    if mode == WHOLE:
        return HEADER_BYTES
    if mode == BITSET:
        return HEADER_BYTES + 8 * ((total + WORD - 1) // WORD)
    if mode == OFFSETS16:
        return HEADER_BYTES + 4 * ((count + 1) // 2)
    if mode in (OFFSETS32, IDS):
        return HEADER_BYTES + 4 * count
    return -1


@njit(cache=True)
def write_positions_step(words, mode, value_bytes, count, lowest, total, names, payload):
    """Write header and positions of the updates that a survey found.

    Invariant  ``payload`` has exactly the bytes of this mode, count and width. ``names`` is looked at in mode IDS only.
    Races      none, serial.   Work  O(count + total / 64).
    """
    payload[0], payload[1], payload[2], payload[3] = mode, value_bytes, 0, 0
    numbers = payload[:HEADER_BYTES].view(np.uint32)
    numbers[1], numbers[2], numbers[3] = count, lowest, total
    where = payload[HEADER_BYTES : bytes_before_values(mode, count, total)]
    if mode == BITSET:
        bits = where.view(np.uint64)
        for w in range(words.size):
            bits[w] = words[w]
    elif mode == OFFSETS16:
        where[2 * count :] = 0
        list_bits(words, where.view(np.uint16))
    elif mode != WHOLE:
        places = where.view(np.uint32)
        list_bits(words, places)
        if mode == IDS:
            for k in range(count):
                places[k] = names[places[k]]


@njit(cache=True)
def list_bits(words, places):
    """The numbers of the bits that are set, ascending."""
    k = 0
    for w in range(words.size):
        word = words[w]
        while word != _NONE:
            places[k] = w * WORD + lowest_bit(word)
            k += 1
            word &= word - _ONE


@njit(cache=True)
def write_values_step(words, values, begin, lowest, out):
    """Write what is new less the lowest, in as many bytes each as ``out`` has.

    Invariant  out has as many elements as ``words`` has bits; they are wide enough.
    Races      none, serial.   Work  O(bits set); 64 at a time where all of them are.
    """
    base = np.uint32(lowest)
    k = 0
    for w in range(words.size):
        word, first = words[w], begin + w * WORD
        if word == _ALL:
            row, place = values[first : first + WORD], out[k : k + WORD]
            for j in range(WORD):
                place[j] = row[j] - base
            k += WORD
            continue
        while word != _NONE:
            out[k] = values[first + lowest_bit(word)] - base
            k += 1
            word &= word - _ONE


@njit(cache=True)
def check_payload(payload, total):
    """Bytes before the values, or what is wrong: a negative number."""
    if payload.size < HEADER_BYTES:
        return BAD_LENGTH
    numbers = payload[:HEADER_BYTES].view(np.uint32)
    mode, value_bytes, count = np.int64(payload[0]), payload[1], np.int64(numbers[1])
    if np.int64(numbers[3]) != total:
        return BAD_TOTAL
    at = bytes_before_values(mode, count, total)
    if at < 0 or value_bytes == 3 or value_bytes > 4:
        return BAD_MODE
    if payload.size != at + count * value_bytes or count > total or (mode == WHOLE and count != total):
        return BAD_LENGTH
    if mode == BITSET:
        words = payload[HEADER_BYTES:at].view(np.uint64)
        found = 0
        for w in range(words.size):
            found += count_bits(words[w])
        if found != count:
            return BAD_LENGTH
        if total % WORD and words[words.size - 1] >> np.uint64(total % WORD) != _NONE:
            return BAD_POSITION
    return at


@njit(cache=True)
def read_values(payload, at, value_bytes, base, updates):
    """The values of a payload as they were, uint32."""
    if value_bytes == 0:
        updates[:] = base
    elif value_bytes == 1:
        add_base(payload[at:], base, updates)
    elif value_bytes == 2:
        add_base(payload[at:].view(np.uint16), base, updates)
    else:
        add_base(payload[at:].view(np.uint32), base, updates)


@njit(cache=True)
def add_base(differences, base, updates):
    """What was subtracted, added again; damaged values may wrap around."""
    for k in range(updates.size):
        updates[k] = np.int64(differences[k]) + np.int64(base)


@njit(cache=True)
def lower_one(values, place, value, changed, size):
    """Lower a value if ``value`` is smaller, and then list it; return the new size of the list. No branch."""
    old = values[place]
    changed[size] = place
    values[place] = min(old, value)
    return size + np.int64(value < old)


@njit(cache=True)
def lower_bitset(words, updates, begin, indices, values, changed):
    """lower_one for each bit that is set."""
    size, k = 0, 0
    for w in range(words.size):
        word, first = words[w], w * WORD
        if word == _ALL:
            for j in range(WORD):
                place = begin + first + j if indices is None else np.int64(indices[first + j])
                size = lower_one(values, place, updates[k + j], changed, size)
            k += WORD
            continue
        while word != _NONE:
            position = first + lowest_bit(word)
            place = begin + position if indices is None else np.int64(indices[position])
            size = lower_one(values, place, updates[k], changed, size)
            k += 1
            word &= word - _ONE
    return size


@njit(cache=True)
def lower_sparse(positions, total, updates, begin, indices, values, changed):
    """lower_one for each position."""
    size = 0
    for k in range(updates.size):
        position = np.int64(positions[k])
        if position >= total:
            return BAD_POSITION
        place = begin + position if indices is None else np.int64(indices[position])
        size = lower_one(values, place, updates[k], changed, size)
    return size


@njit(cache=True)
def lower_all(updates, begin, indices, values, changed):
    """lower_one for the whole list."""
    size = 0
    for k in range(updates.size):
        place = begin + k if indices is None else np.int64(indices[k])
        size = lower_one(values, place, updates[k], changed, size)
    return size


@njit(cache=True)
def find_names(ids, names):
    """Replace each of the ids, which ascend, by its position in ``names``; whether all are there."""
    position = 0
    for k in range(ids.size):
        while position < names.size and names[position] < ids[k]:
            position += 1
        if position == names.size or names[position] != ids[k]:
            return False
        ids[k] = position
    return True


@njit(cache=True)
def unpack_min_step(payload, begin, indices, total, names, values, updates, changed):
    """Lower values to what a payload says; list the local ids that became smaller; return how many, or what is wrong.

    Invariant  a value never grows. A payload that does not fit the list is refused by a negative number, before
               anything is touched (a bad position: before it is used). ``updates`` and ``changed`` have room for
               ``total`` entries. A payload of ids is overwritten.
    Races      none, serial.
    Work       O(count + total / 64), of ids O(count + total).
    """
    at = check_payload(payload, total)
    if at < 0:
        return at
    numbers = payload[:HEADER_BYTES].view(np.uint32)
    mode, value_bytes, count = payload[0], payload[1], np.int64(numbers[1])
    where, came = payload[HEADER_BYTES:at], updates[:count]
    read_values(payload, at, value_bytes, numbers[2], came)
    if mode == WHOLE:
        return lower_all(came, begin, indices, values, changed)
    if mode == BITSET:
        return lower_bitset(where.view(np.uint64), came, begin, indices, values, changed)
    if mode == OFFSETS16:
        return lower_sparse(where.view(np.uint16), total, came, begin, indices, values, changed)
    places = where.view(np.uint32)
    if mode == IDS and not find_names(places, names):
        return BAD_POSITION
    return lower_sparse(places, total, came, begin, indices, values, changed)


@njit(cache=True)
def note_known_step(changed, begin, indices, total, values, last_sent):
    """Where a list holds a vertex of ``changed``, its peer knows the value already: count it as sent.

    Invariant  ``changed`` and the list ascend; ``last_sent`` never grows.   Races  none, serial.
    Work       O(changed), and the list up to the last of them if it is by index.
    """
    position = 0
    for i in range(changed.size):
        place = np.int64(changed[i])
        if indices is None:
            position = place - begin
            inside = 0 <= position < total
        else:
            while position < total and indices[position] < place:
                position += 1
            inside = position < total and indices[position] == place
        if inside:
            last_sent[position] = min(last_sent[position], values[place])
