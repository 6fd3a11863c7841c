"""The parse kernels against Python's own reading of the same text, compiled; one of them also without the compiler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cpu_engine.graph.formats.rows import RaggedLayout, RowLayout, read_ragged, read_rows
from cpu_engine.graph.formats.source import TextSource
from cpu_engine.graph.kernels import parse

ids = st.one_of(st.integers(0, 9), st.integers(0, 10**6), st.integers(0, 2**63 - 1))
separators = st.sampled_from([" ", "\t", ",", "  ", " , ", "\t\t"])
ends = st.sampled_from(["\n", "\r\n", " \n", " # c\n", "\n\n", "\n# c 1 2\n"])
fractions = st.floats(allow_nan=False, allow_infinity=False).map(repr)
weights = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1).map(str), fractions, st.from_regex(r"[0-9]{1,19}\.[0-9]{1,19}", fullmatch=True)
)


@given(st.lists(st.tuples(ids, separators, ids, ends), max_size=20), st.integers(16, 200))
@settings(max_examples=60, deadline=None)
def test_pairs(tmp_path_factory, rows, block_bytes):
    path = tmp_path_factory.mktemp("pairs") / "graph"
    path.write_text("".join(f"{u}{gap}{v}{end}" for u, gap, v, end in rows), newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", block_bytes)
        with TextSource(path) as source:
            found = read_rows(source, RowLayout(2))
    assert found.src.tolist() == [row[0] for row in rows]
    assert found.dst.tolist() == [row[2] for row in rows]


@pytest.mark.jitless
@given(st.lists(weights, min_size=1, max_size=20))
@example(["99999999999999999", "0.99999999999999999", "9007199254740993.5", "1e22", "1e23", "-0.0", "5e-324"])
@settings(max_examples=100, deadline=None)
def test_weights(tmp_path_factory, tokens):
    path = tmp_path_factory.mktemp("weights") / "graph"
    path.write_text("".join(f"1 2 {token}\n" for token in tokens))
    with TextSource(path) as source:
        found = read_rows(source, RowLayout(3, weight_column=2)).weight
    whole = all(token.lstrip("-").isdigit() for token in tokens)
    assert found.dtype == (np.int64 if whole else np.float64)
    assert found.tolist() == [int(token) if whole else float(token) for token in tokens]


@given(st.integers(0, parse.DIVIDEND_LIMIT - 1), st.integers(1, parse.DIVISOR_DIGITS))
@example(2**53 + 1, 1)
@example(parse.DIVIDEND_LIMIT - 1, 1)
@example(parse.DIVIDEND_LIMIT - 1, parse.DIVISOR_DIGITS)
@settings(max_examples=300, deadline=None)
def test_division_is_rounded_correctly(mantissa, digits):
    assert parse.divide_exactly(np.int64(mantissa), digits) == float(f"{mantissa}e-{digits}")


@given(st.lists(st.lists(ids, min_size=1, max_size=6), max_size=12), st.integers(16, 200))
@settings(max_examples=60, deadline=None)
def test_adjacency(tmp_path_factory, lines, block_bytes):
    path = tmp_path_factory.mktemp("ragged") / "graph"
    path.write_text("\n".join(" ".join(map(str, line)) for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpu_engine.graph.formats.source.BLOCK_BYTES", block_bytes)
        with TextSource(path, longest_line=None) as source:
            found, owners = read_ragged(source, RaggedLayout())
    assert owners.tolist() == [line[0] for line in lines]
    assert found.src.tolist() == [line[0] for line in lines for _ in line[1:]]
    assert found.dst.tolist() == [v for line in lines for v in line[1:]]


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_parsed_or_stopped_within_bounds(data):
    text = np.frombuffer(data, np.uint8)
    lines = data.count(b"\n") + 1
    src, dst, weight = np.empty(lines, np.int64), np.empty(lines, np.int64), np.empty(lines, np.int64)
    out = np.zeros(parse.OUT_FIELDS, np.int64)
    nothing, no_hard = np.empty(0), np.empty((0, 3), np.int64)
    parsed = parse.EdgeArrays(src, dst, weight, nothing, no_hard, out)
    parse.parse_rows(text, RowLayout(3, weight_column=2).spec(False), parsed)
    assert 0 <= out[parse.ROWS] <= lines
    assert 0 <= out[parse.POSITION] <= len(data)
