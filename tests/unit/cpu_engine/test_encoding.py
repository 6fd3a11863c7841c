"""Updates of agreed lists: what goes in comes out, in every encoding, in the bytes that were promised."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.encoding import (
    HEADER_BYTES,
    AgreedList,
    Encoding,
    Packed,
    Room,
    choose_encoding,
    encoded_bytes,
    pack_improved,
    unpack_min,
    value_bytes_for,
)
from cpu_engine.comm.errors import CommError

MOST = 0xFFFFFFFF
EXAMPLES = 30 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 150
SPANS = {0: 0, 1: 255, 2: 65_535, 4: 1 << 20}


def possible(encoding: Encoding, count: int, total: int) -> bool:
    if encoding == Encoding.NOTHING:
        return count == 0
    if encoding == Encoding.WHOLE:
        return count == total
    return encoding != Encoding.OFFSETS16 or total <= 1 << 16


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.sampled_from([0, 1, 2, 4]))
@settings(max_examples=500)
def test_the_choice_is_the_cheapest(one: int, other: int, value_bytes: int) -> None:
    count, total = min(one, other), max(one, other)
    chosen = choose_encoding(count, total, value_bytes)
    assert possible(chosen, count, total)
    costs = [encoded_bytes(each, count, total, value_bytes) for each in Encoding if possible(each, count, total)]
    assert encoded_bytes(chosen, count, total, value_bytes) == min(costs)
    assert chosen != Encoding.IDS, "ids travel only where nothing was agreed"


def test_ids_where_nothing_was_agreed() -> None:
    assert choose_encoding(5, 5, 1, memoised=False) == Encoding.IDS
    assert choose_encoding(0, 5, 1, memoised=False) == Encoding.NOTHING


@pytest.mark.parametrize(("span", "expected"), [(0, 0), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_width_of_values(span: int, expected: int) -> None:
    assert value_bytes_for(7, 7 + span) == expected


@st.composite
def lists(draw: st.DrawFn) -> tuple[AgreedList, int]:
    """A list, and how many local vertices there are."""
    size = draw(st.integers(1, 400))
    if draw(st.booleans()):
        begin = draw(st.integers(0, size - 1))
        ids = np.arange(begin, draw(st.integers(begin + 1, size)), dtype=np.int32)
    else:
        random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
        ids = np.sort(random.permutation(size)[: draw(st.integers(1, size))]).astype(np.int32)
    names = ids * 3 + 5
    return AgreedList.of(ids, names), size


@st.composite
def updates(draw: st.DrawFn) -> tuple[AgreedList, np.ndarray, np.ndarray]:
    """A list, values by local id, and what was last sent by position."""
    agreed, size = draw(lists())
    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    lowest = draw(st.sampled_from([0, 3, 1 << 16, MOST - (1 << 21)]))
    values = (lowest + random.integers(0, SPANS[draw(st.sampled_from([0, 1, 2, 4]))] + 1, size)).astype(np.uint32)
    news = random.random(agreed.total) < draw(st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]))
    last_sent = np.where(news, MOST, values[agreed.local_ids()]).astype(np.uint32)
    return agreed, values, last_sent


def check_update(
    agreed: AgreedList, values: np.ndarray, last_sent: np.ndarray, packed: Packed, theirs: np.ndarray
) -> None:
    """``theirs`` lowered by the payload equals what a loop would make of it."""
    ids = agreed.local_ids()
    is_new = values[ids] < last_sent
    expected = theirs.copy()
    expected[ids[is_new]] = np.minimum(theirs[ids[is_new]], values[ids[is_new]])
    before = theirs.copy()
    changed = unpack_min(packed.payload, agreed, theirs, Room(agreed.total))
    assert np.array_equal(theirs, expected)
    assert changed.tolist() == np.flatnonzero(expected < before).tolist()


@pytest.mark.jitless
@given(updates(), st.sampled_from([None, *(each for each in Encoding if each != Encoding.NOTHING)]), st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_round_trip(
    update: tuple[AgreedList, np.ndarray, np.ndarray], forced: Encoding | None, data: st.DataObject
) -> None:
    agreed, values, last_sent = update
    ids = agreed.local_ids()
    count = int((values[ids] < last_sent).sum())
    if forced is not None and not possible(forced, count, agreed.total):
        forced = None
    sent = last_sent.copy()
    packed = pack_improved(agreed, values, sent, Room(agreed.total), forced=forced)
    assert packed.count == count
    assert np.array_equal(sent, np.minimum(last_sent, values[ids]))
    if count == 0:
        assert packed.payload.size == 0
        assert packed.encoding == Encoding.NOTHING
    else:
        new = values[ids][values[ids] < last_sent]
        value_bytes = value_bytes_for(int(new.min()), int(new.max()))
        assert packed.encoding == (choose_encoding(count, agreed.total, value_bytes) if forced is None else forced)
        assert packed.payload.size == encoded_bytes(packed.encoding, count, agreed.total, value_bytes)
        numbers = packed.payload[:HEADER_BYTES].view("<u4").tolist()
        assert numbers == [int(packed.encoding) | value_bytes << 8, count, int(new.min()), agreed.total]
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    theirs = np.where(random.random(values.size) < 0.5, MOST, random.permutation(values)).astype(np.uint32)
    check_update(agreed, values, last_sent, packed, theirs)
    again = pack_improved(agreed, values, sent, Room(agreed.total))
    assert again.count == 0, "what was sent is not sent again"


@pytest.mark.parametrize("total", [70_000, 65_536])
@pytest.mark.parametrize("density", [0.0005, 0.04, 0.7, 1.0])
def test_round_trip_of_long_lists(total: int, density: float) -> None:
    random = np.random.default_rng(total)
    agreed = AgreedList.of(np.arange(10, 10 + total, dtype=np.int32))
    values = np.where(random.random(total + 20) < density, random.integers(2, 6, total + 20), MOST).astype(np.uint32)
    last_sent = np.full(total, MOST, np.uint32)
    packed = pack_improved(agreed, values, last_sent.copy(), Room(total))
    check_update(agreed, values, last_sent, packed, np.full(total + 20, MOST, np.uint32))


# ------------------------------------------------------------------------------ what does not fit is refused


def packed_in(encoding: Encoding, total: int = 100) -> tuple[AgreedList, np.ndarray]:
    ids = np.arange(total, dtype=np.int32)
    agreed = AgreedList.of(ids, ids)
    values = ids.astype(np.uint32)
    last_sent = np.where((ids % 3 == 0) | (encoding == Encoding.WHOLE), MOST, 0).astype(np.uint32)
    return agreed, pack_improved(agreed, values, last_sent, Room(total), forced=encoding).payload


FORMATS = [each for each in Encoding if each != Encoding.NOTHING]


@pytest.mark.jitless
@pytest.mark.parametrize("encoding", FORMATS)
def test_a_list_of_another_length_is_refused(encoding: Encoding) -> None:
    _, payload = packed_in(encoding)
    other = AgreedList.of(np.arange(99, dtype=np.int32), np.arange(99, dtype=np.int32))
    values = np.full(100, MOST, np.uint32)
    with pytest.raises(CommError, match=r"another length.*Fix: "):
        unpack_min(payload, other, values, Room(100))
    assert (values == MOST).all()


@pytest.mark.jitless
@pytest.mark.parametrize("encoding", FORMATS)
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_damage_never_reaches_beyond_the_list(encoding: Encoding, data: st.DataObject) -> None:
    """Whatever bytes come: refused or applied within the list, and nothing else is touched."""
    agreed, payload = packed_in(encoding)
    payload = payload[: data.draw(st.integers(1, payload.size) | st.just(payload.size))].copy()
    for _ in range(data.draw(st.integers(0, 4))):
        payload[data.draw(st.integers(0, payload.size - 1))] = data.draw(st.integers(0, 255))
    values = np.full(200, MOST, np.uint32)
    with contextlib.suppress(CommError):
        unpack_min(payload.copy(), agreed, values, Room(100))
    assert (values[100:] == MOST).all()


@pytest.mark.parametrize("encoding", [Encoding.OFFSETS16, Encoding.OFFSETS32])
def test_a_position_outside_is_refused(encoding: Encoding) -> None:
    agreed, payload = packed_in(encoding)
    payload[HEADER_BYTES] = 100
    with pytest.raises(CommError, match="not in the list"):
        unpack_min(payload, agreed, np.full(100, MOST, np.uint32), Room(100))


def test_bits_beyond_the_end_are_refused() -> None:
    agreed, payload = packed_in(Encoding.BITSET)
    payload[HEADER_BYTES] ^= 1
    payload[HEADER_BYTES + 15] |= 0x80
    with pytest.raises(CommError, match="not in the list"):
        unpack_min(payload, agreed, np.full(100, MOST, np.uint32), Room(100))


def test_an_unknown_vertex_is_refused() -> None:
    _, payload = packed_in(Encoding.IDS)
    ids = np.arange(100, dtype=np.int32)
    strangers = AgreedList.of(ids, ids + 1)
    with pytest.raises(CommError, match="not in the list"):
        unpack_min(payload, strangers, np.full(100, MOST, np.uint32), Room(100))
