"""The text format: whatever goes out comes back, and every malformed line is named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.codec import text
from exchange.errors import ExchangeError

PAIRS = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)), max_size=60)


def refused(data: bytes, *, columns: int = 2) -> ExchangeError:
    with pytest.raises(ExchangeError) as caught:
        text.parse_pairs(data, "data.txt", columns=columns)
    assert caught.value.path == "data.txt"
    assert caught.value.fix
    assert str(caught.value).endswith(f"Fix: {caught.value.fix}")
    return caught.value


@given(PAIRS)
@settings(max_examples=100, deadline=None)
def test_pairs_come_back(pairs: list[tuple[int, int]]) -> None:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    data = text.encode_pairs(array, {"round": "round-000001-0000abcd", "read_s": 0.25, "iterations": 3})
    parsed, header = text.parse_pairs(data, "data.txt")
    assert parsed.dtype == np.int64
    assert parsed.tolist() == array.tolist()
    assert header == {"round": "round-000001-0000abcd", "read_s": "0.25", "iterations": "3"}


def plain_parse(data: bytes) -> list[list[int]] | None:
    """The format, said in five lines; None for anything that must be refused."""
    if data and not data.endswith(b"\n"):
        return None
    rows = []
    for line in data.split(b"\n"):
        words = line.strip(b" \t\r").replace(b"\t", b" ").split(b" ") if line.strip(b" \t\r") else []
        words = [word for word in words if word]
        if not words or words[0].startswith(b"#"):
            continue
        if len(words) != 2 or not all(set(word) <= set(b"0123456789") for word in words):
            return None
        row = [int(word) for word in words]
        if row[0] >= 2**63 or row[1] >= 2**31:
            return None
        rows.append(row)
    return rows


LINE = st.one_of(
    st.tuples(st.integers(0, 99999), st.integers(0, 99999)).map(lambda p: b"%d %d" % p),
    st.tuples(st.integers(0, 2**64), st.integers(0, 2**32)).map(lambda p: b"%d %d" % p),
    st.sampled_from([b"", b"# note", b"  # note 7", b" 1 2", b"1\t2", b"1  2 ", b"1 2\r", b"007 010", b"\r"]),
    st.sampled_from([b"1", b"1 2 3", b"-1 2", b"1 -2", b"1 2.0", b"nan 1", b"1 inf", b"1 +2", b"1,2", b"1_0 2", b"a"]),
    st.binary(max_size=6).filter(lambda raw: b"\n" not in raw),
)


@given(st.lists(LINE, max_size=12), st.sampled_from([b"\n", b"\n", b"\n", b""]), st.sampled_from([4, 16, 64, 1 << 18]))
@settings(max_examples=400, deadline=None)
def test_every_text_is_read_as_the_plain_definition_says(lines: list[bytes], end: bytes, step: int) -> None:
    data = b"\n".join(lines) + end if lines else b""
    expected = plain_parse(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_STEP_BYTES", step)  # blocks of any size give the same rows
        if expected is None:
            refused(data)
        else:
            assert text.parse_pairs(data, "data.txt")[0].tolist() == expected


@pytest.mark.parametrize(
    ("line", "reason", "value"),
    [
        (b"3 nan", "not a finite number", "nan"),
        (b"3 -inf", "not a finite number", "-inf"),
        (b"3 -1", "negative", "-1"),
        (b"-3 1", "negative", "-3"),
        (b"3 1.5", "not an integer", "1.5"),
        (b"3 1e3", "not an integer", "1e3"),
        (b"3 abc", "not a number", "abc"),
        (b"3 0x10", "not a number", "0x10"),
        (b"3 " + str(2**31).encode(), "too large", str(2**31)),
        (b"3 " + b"9" * 30, "too large", "9" * 30),
        (str(2**63).encode() + b" 1", "too large", str(2**63)),
        (b"9" * 5000 + b" 1", "too large", "9" * 60 + "..."),
        (b"3", "1 column where 2 belong", "3"),
        (b"3 4 5", "3 columns where 2 belong", "3 4 5"),
        (b"\x00\xff\x01", "not a number", "\\xff"),
    ],
)
@pytest.mark.parametrize("above", [0, 1, 50_000])
def test_a_bad_line_is_named_with_its_number(line: bytes, reason: str, value: str, above: int) -> None:
    data = b"# round round-000001-0000abcd\n" + b"1 2\n" * above + line + b"\n5 6\n"
    error = refused(data)
    assert error.line == above + 2
    assert reason in error.reason
    assert value in str(error.value)


def test_lines_are_counted_across_comments_and_blank_lines_of_earlier_blocks() -> None:
    data = (b"1 2\n# c\n\n" * 40_000) + b"1 x\n"
    assert refused(data).line == 120_001


@pytest.mark.parametrize("data", [b"1 2", b"1 2\n3 4", b"1 2\n#", b"\x00"])
def test_a_text_without_final_newline_is_torn(data: bytes) -> None:
    error = refused(data)
    assert "torn" in error.reason
    assert error.line == data.count(b"\n") + 1


def test_every_truncation_of_an_answer_is_refused_or_shorter_by_whole_lines() -> None:
    whole = text.encode_pairs(np.array([[10, 3], [11, 4], [12, 50]]), {"round": "round-000001-0000abcd"})
    for length in range(len(whole)):
        if length and not whole[:length].endswith(b"\n"):
            refused(whole[:length])


def test_an_empty_text_has_no_rows() -> None:
    rows, header = text.parse_pairs(b"", "data.txt")
    assert rows.shape == (0, 2)
    assert header == {}


def test_two_round_ids_in_one_file_are_refused() -> None:
    error = refused(b"# round round-000001-0000abcd\n1 2\n# round round-000002-0000abcd\n")
    assert error.line == 3
    same = b"# round round-000001-0000abcd\n" * 2
    assert text.parse_pairs(same, "data.txt")[1] == {"round": "round-000001-0000abcd"}


def test_a_long_header_does_not_fill_the_memory() -> None:
    data = b"".join(b"# key%d x\n" % i for i in range(1000)) + b"1 2\n"
    rows, header = text.parse_pairs(data, "data.txt")
    assert len(header) == text.MAX_HEADER_FACTS
    assert rows.tolist() == [[1, 2]]


@given(st.integers(1, 12), st.data())
@settings(max_examples=60, deadline=None)
def test_core_edges_come_back_and_no_others(k: int, data: st.DataObject) -> None:
    n = k + data.draw(st.integers(0, 5))
    rows = [sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=8))) for _ in range(n)]
    offsets = np.cumsum([0, *map(len, rows)])
    targets = np.array([v for row in rows for v in row], dtype=np.int32)
    edges, header = text.parse_edges(text.encode_edges(offsets, targets, k, {"core": k}), "mind_graph.txt")
    assert edges.tolist() == [[u, v] for u in range(k) for v in rows[u] if v < k]
    assert edges.shape[1] == 2
    assert header == {"core": str(k)}


def test_every_number_of_digits_is_read_right() -> None:
    numbers = [10**d + d for d in range(18)] + [10**18 - 1, 2**63 - 1]
    for columns in ([*numbers, 0], numbers):
        edges = [[a, b] for a in columns for b in columns]
        data = b"".join(b"%d %d\n" % (a, b) for a, b in edges)
        assert text.parse_edges(data, "mind_graph.txt")[0].tolist() == edges


def test_weighted_edges_have_three_columns_throughout() -> None:
    rows, _ = text.parse_edges(b"# w\n1 2 7\n2 3 9\n", "mind_graph.txt")
    assert rows.tolist() == [[1, 2, 7], [2, 3, 9]]
    with pytest.raises(ExchangeError, match="2 columns where 3 belong"):
        text.parse_edges(b"1 2 7\n2 3\n", "mind_graph.txt")
    with pytest.raises(ExchangeError, match="3 columns where 2 belong"):
        text.parse_edges(b"2 3\n1 2 7\n", "mind_graph.txt")


def test_only_comments_belong_in_a_meta_file() -> None:
    assert text.parse_header(b"# device CPU\n\n", "data.meta") == {"device": "CPU"}
    with pytest.raises(ExchangeError, match="only"):
        text.parse_header(b"# device CPU\n1 2\n", "data.meta")


@pytest.mark.parametrize("array", [np.zeros((2, 3), np.int64), np.zeros(4, np.int64), np.zeros((2, 2))])
def test_only_integer_pairs_are_written(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="pairs"):
        text.encode_pairs(array)
