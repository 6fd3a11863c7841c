"""Lines of a batch: whatever is written comes back bit by bit, and whatever is not as agreed is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.codec import rows, text
from exchange.errors import ExchangeError

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def refused(data: bytes, kind: str = "int32") -> ExchangeError:
    with pytest.raises(ExchangeError) as caught:
        rows.parse_rows(data, "data.txt", kind)
    assert caught.value.fix
    return caught.value


@given(st.integers(1, 4), st.data())
@settings(max_examples=60, deadline=None)
def test_integers_come_back(batch: int, data: st.DataObject) -> None:
    line = st.tuples(*[st.integers(-1, 2**31 - 1)] * batch)
    found = data.draw(st.lists(line, min_size=1, max_size=8))
    columns = np.array(found, np.int32).reshape(-1, batch)
    vertices = np.array(data.draw(st.lists(st.integers(0, 10**18 - 1), min_size=len(found), max_size=len(found))))
    encoded = rows.encode_rows(vertices, columns, {"batch": batch, "round": "x"})
    for written in (encoded, encoded.replace(b" ", b"\t \t").replace(b"\n", b"\r\n") + b"# end 1\n\n"):
        names, values, header = rows.parse_rows(written, "data.txt", "int32")
        assert names.tolist() == vertices.tolist()
        assert values.dtype == np.int32
        assert values.tolist() == columns.tolist()
        assert header["round"] == "x"


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_floats_come_back_bit_by_bit(found: list[tuple[float, float]]) -> None:
    columns = np.array(found, np.float32).reshape(-1, 2)
    encoded = rows.encode_rows(np.arange(len(found)), columns)
    for written in (encoded, encoded.replace(b" ", b"  ")):
        values = rows.parse_rows(written, "data.txt", "float32")[1]
        assert values.tobytes() == columns.tobytes()


def test_a_single_vector_is_the_text_it_always_was() -> None:
    pairs = np.array([[3, 5], [7, 0]])
    assert rows.encode_rows(pairs[:, 0], pairs[:, 1:].astype(np.int32)) == text.encode_pairs(pairs)


def test_blocks_hang_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_STEP_BYTES", 16)
    columns = np.arange(80).reshape(40, 2).astype(np.int32)
    encoded = rows.encode_rows(np.arange(40), columns)
    torn = encoded[: len(encoded) // 2].rsplit(b"\n", 1)[0] + b"\n1 2 x\n"
    assert rows.parse_rows(encoded, "value.txt", "int32")[1].tolist() == columns.tolist()
    assert refused(torn).line == torn.count(b"\n")
    assert "2 columns where 3 belong" in refused(encoded + b"7 7\n").reason


def test_no_lines_at_all() -> None:
    assert rows.parse_rows(b"# batch 3\n", "value.txt", "int32")[1].shape == (0, 3)
    assert rows.parse_rows(b"", "value.txt", "float32")[1].shape == (0, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"0 1 2\n1 3", "torn"),
        (b"0 1 2\n1 3\n", "2 columns where 3 belong"),
        (b"0 1 2\n1 3 4 5\n", "4 columns where 3 belong"),
        (b"0\n", "1 column where 2 belong"),
        (b"0 1 -2\n", "neither a non-negative integer nor -1"),
        (b"0 1 -\n", "neither"),
        (b"0 1-1 2\n", "neither"),
        (b"0 -0 2\n", "neither"),
        (b"0 +1 2\n", "neither"),
        (b"0 1.0 2\n", "neither"),
        (b"0 nan 2\n", "neither"),
        (b"0 2147483648 2\n", "too large"),
        (b"0 99999999999999999999 2\n", "neither"),
        (b"-1 1 2\n", "not a vertex"),
        (b"x 1 2\n", "not a vertex"),
        (b"# batch 3\n0 1 2\n", "2 values per line where `# batch` announces others"),
        (b"\x7fELF\x02\n", "column"),
    ],
)
def test_bad_integers_are_refused(data: bytes, reason: str) -> None:
    assert reason in refused(data).reason


@pytest.mark.parametrize(
    "word", [b"nan", b"inf", b"-Infinity", b"1e39", b"0x1p3", b"1_0", b"-", b"1e", b".", b"1e5000"]
)
def test_bad_floats_are_refused(word: bytes) -> None:
    error = refused(b"0 0.5\n1 " + word + b"\n", "float32")
    assert (error.line, error.value) == (2, word.decode())


def test_float_lines_name_whole_vertices() -> None:
    assert "not a vertex" in refused(b"0.5 1\n", "float32").reason
    assert "not a vertex" in refused(b"9007199254740993 1\n", "float32").reason


@given(st.binary(max_size=60))
@settings(max_examples=150, deadline=None)
def test_garbage_is_refused_or_read_as_its_lines_say(data: bytes) -> None:
    for kind in ("int32", "float32"):
        try:
            names, values, _ = rows.parse_rows(data + b"\n", "x", kind)
        except ExchangeError:
            continue
        lines = [line.split() for line in (data + b"\n").split(b"\n")]
        lines = [words for words in lines if words and not words[0].startswith(b"#")]
        assert [int(words[0]) for words in lines] == names.tolist()
        assert [[np.float32(float(word)) for word in words[1:]] for words in lines] == values.astype(
            np.float32
        ).tolist()


def test_weighted_edges_come_back() -> None:
    offsets, targets = np.array([0, 2, 4, 5]), np.array([1, 2, 0, 9, 1], np.int32)
    weight = np.array([0.1, 3e-8, 1.0, 7.0, -2.5], np.float32)
    encoded = text.encode_edges(offsets, targets, 3, {"weights": "float32"}, weight)
    ends, found, header = rows.parse_weighted_edges(encoded, "mind_graph.txt")
    assert ends.tolist() == [[0, 1], [0, 2], [1, 0], [2, 1]]
    assert found.tobytes() == weight[[0, 1, 2, 4]].tobytes()
    assert header == {"weights": "float32"}
    with pytest.raises(ExchangeError, match="column"):
        rows.parse_weighted_edges(b"0 1 0.5 0.5\n", "mind_graph.txt")
