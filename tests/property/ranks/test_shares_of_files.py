"""Shares of files: over any number of ranks the graph, the notes and the errors of the file read as a whole."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.comm.agreement import AgreedInputError
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.comm.requests import Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.distributed import shares
from cpu_engine.graph.distributed.build import BuiltPart, build_on_ranks
from cpu_engine.graph.distributed.reading import share_of_path
from cpu_engine.graph.edges import EdgeList, with_direction
from cpu_engine.graph.formats import read_graph, source, write_graph
from cpu_engine.graph.graph import Graph
from tests.property.ranks.test_build_on_ranks import assert_same

T = TypeVar("T")
GRAPHS = Path(__file__).parents[2] / "graphs"
EXAMPLES = 10 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 60


def read_whole(path: Path, directed: bool | None, format: str = "auto", **rules: bool) -> Graph:
    edges = read_graph(path, format=format)
    if directed:
        edges = with_direction(edges, True)
    keep = {name: "keep" if rules.get(name) else "drop" for name in ("self_loops", "duplicates")}
    graph = build_graph(edges, directed=directed, **keep)  # type: ignore[arg-type]
    return graph


def read_on_ranks(
    path: Path, directed: bool | None, ranks: int, *, weighted: bool = False, format: str = "auto", **rules: bool
) -> list[BuiltPart]:
    def driver(info: RankInfo) -> Driver[BuiltPart]:
        share = yield from share_of_path(info, path, format=format, directed=directed, weighted=weighted)
        dropped = {f"drop_{name}": not rules.get(long) for name, long in (("loops", "self_loops"),)}
        dropped["drop_duplicates"] = not rules.get("duplicates")
        return (yield from build_on_ranks(info, share, "oec", weighted=weighted, **dropped))

    return run_loopback([driver(RankInfo(rank, ranks, ("here",) * ranks)) for rank in range(ranks)])


def outcome(read: Callable[[], T]) -> T | str:
    """What it returns, or the message."""
    try:
        return read()
    except InputError as error:
        return str(error)


def compare(path: Path, directed: bool | None, ranks: int, format: str = "auto", **rules: bool) -> None:
    """The same parts, or the same error."""
    graph = outcome(lambda: read_whole(path, directed, format, **rules))
    if isinstance(graph, str):
        assert outcome(lambda: read_on_ranks(path, directed, ranks, format=format, **rules)) == graph
        return
    weighted = graph.weight is not None
    built = read_on_ranks(path, directed, ranks, weighted=weighted, format=format, **rules)
    for key in ("notes", "directed", "weighted", "directed_assumed", "format", "path", "vertices", "input_edges"):
        assert {one.meta[key] if key != "notes" else tuple(one.meta[key]) for one in built} == {
            tuple(graph.meta[key]) if key == "notes" else graph.meta[key]
        }, key
    if graph.n:
        graph.meta["directed"] = graph.directed
        assert_same(built, graph, "oec", weighted=weighted)


def shipped() -> list[Path]:
    return sorted(path for path in GRAPHS.rglob("*") if path.is_file() and path.suffix != ".md")


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.name)
def test_every_shipped_graph(path):
    for directed in (None, True, False):
        for ranks in (1, 2, 5):
            compare(path, directed, ranks)


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.name)
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_every_shipped_graph_packed(path, pack, tmp_path):
    if path.suffix in (".gz", ".xz") or path.name.endswith((".properties", ".v", ".e")):
        pytest.skip("packed already, or one of several files")
    packed = tmp_path / path.name
    packed.write_bytes(pack(path.read_bytes()))
    for ranks in (1, 3):
        compare(packed, None, ranks)


lines = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda pair: f"{pair[0]} {pair[1]}"),
        st.sampled_from(["# a comment", "", "% 1 2", "3\t4", "5,6", "7 7", "1 99999999999", "4 5 # behind"]),
    ),
    max_size=40,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(text=lines, data=st.data())
def test_edge_lists_cut_anywhere(text, data, tmp_path_factory):
    if data.draw(st.booleans(), label="a header, perhaps"):
        text = [f"{data.draw(st.integers(0, 14))} {len(text) + data.draw(st.integers(-2, 1))}", *text]
    if data.draw(st.booleans(), label="weights"):
        text = [f"{line} {data.draw(st.sampled_from(['3', '2.5', '7']))}" for line in text]
    if data.draw(st.integers(0, 3), label="damage") == 0:
        text.insert(data.draw(st.integers(0, len(text))), data.draw(st.sampled_from(["x 1", "1", "1 -2", "1 2 3 4"])))
    start = data.draw(st.sampled_from(["", "\ufeff", "# Undirected graph\n"]), label="in front")
    end = data.draw(st.sampled_from(["\n", "\r\n"]), label="line end")
    path = tmp_path_factory.mktemp("lines") / "graph.txt"
    content = (start + end.join(text) + data.draw(st.sampled_from(["", end]), label="last")).encode()
    path.write_bytes(content)
    parts = data.draw(st.integers(1, 6), label="ranks")
    rules = {name: data.draw(st.booleans(), label=f"keep {name}") for name in ("self_loops", "duplicates")}
    directed = data.draw(st.sampled_from([None, False]), label="directed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "BLOCK_BYTES", data.draw(st.sampled_from([64, 1 << 20]), label="block"))
        compare(path, directed, parts, "edge-list", **rules)
        packed = path.with_name("packed.gz")
        packed.write_bytes(gzip.compress(content))
        compare(packed, directed, parts, "edge-list", **rules)


@settings(max_examples=EXAMPLES, deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), max_size=20), data=st.data())
def test_adjacency_lists_cut_anywhere(rows, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "graph.adj"
    path.write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    compare(path, data.draw(st.sampled_from([None, False])), data.draw(st.integers(1, 6)), "adjacency")


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_part_files(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    pairs = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12)
    format = data.draw(st.sampled_from(["edge-list", "adjacency", "graph500"]), label="format")
    for i in range(data.draw(st.integers(1, 6), label="files")):
        part = data.draw(pairs, label=f"file {i}")
        if format == "graph500":
            (folder / f"part-{i}").write_bytes(np.array(part, "<i8").tobytes())
            continue
        text = "".join(f"{u} {v}\n" for u, v in part)
        if format == "edge-list":
            text = data.draw(st.sampled_from(["", "# Undirected graph\n", f"21 {len(part)}\n"]), label="head") + text
        packed = data.draw(st.booleans(), label="packed")
        (folder / f"part-{i}").write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    compare(folder, data.draw(st.sampled_from([None, True, False])), data.draw(st.integers(1, 6)), format)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(data=st.data())
def test_written_files_of_every_format(data, tmp_path_factory):
    n = data.draw(st.integers(1, 12), label="vertices")
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=30))
    directed = data.draw(st.booleans(), label="directed")
    name = data.draw(st.sampled_from(["g.sg", "g.wsg", "g.gr", "g.mtx", "g.wel", "g.el"]), label="file")
    weight = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs))), np.int64)
    if name.endswith(("gr", "mtx", "wel")) and data.draw(st.booleans(), label="fractions"):
        weight = weight + 0.5
    src, dst = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    edges = EdgeList(src, dst, None if name in ("g.sg", "g.el") else weight, id_range=(0, n), directed=directed)
    path = tmp_path_factory.mktemp("written") / name
    write_graph(path, edges)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shares, "PIECE_EDGES", data.draw(st.sampled_from([3, 1 << 20])))
        wanted = data.draw(st.sampled_from([None, True, False]), label="wanted")
        compare(path, wanted, data.draw(st.integers(1, 6), label="ranks"))


def test_a_malformed_line_in_the_range_of_a_later_rank(tmp_path):
    """The message has the file and the line number in the whole file, and every rank raises it."""
    path = tmp_path / "graph.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(1000)) + "1 two\n" + "3 4\n" * 99)
    ended = []

    def driver(info: RankInfo) -> Driver[None]:
        try:
            yield from share_of_path(info, path)
        except AgreedInputError as error:
            ended.append(str(error))

    run_loopback([driver(RankInfo(rank, 4)) for rank in range(4)])
    assert len(ended) == 4
    assert set(ended) == {ended[0]}
    assert ended[0].startswith(f"{path}:1001: ")


def test_of_two_malformed_lines_the_first_is_named(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("1 2\n" * 50 + "a b\n" + "3 4\n" * 50 + "c d\n")
    for ranks in (1, 2, 3, 6):
        with pytest.raises(InputError, match=":51: "):
            read_on_ranks(path, None, ranks)


def test_ranks_that_see_different_files(tmp_path):
    for name, text in (("a", "1 2\n"), ("b", "1 3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graph.txt").write_text(text)
    drivers = [share_of_path(RankInfo(rank, 3), tmp_path / "aab"[rank] / "graph.txt") for rank in range(3)]
    with pytest.raises(AgreedInputError, match="rank 2 sees another file than rank 0"):
        run_loopback(drivers)


def test_a_file_that_is_missing_on_one_machine(tmp_path):
    (tmp_path / "graph.txt").write_text("1 2\n")
    drivers = [share_of_path(RankInfo(rank, 3), tmp_path / ("graph.txt", "gone.txt")[rank == 1]) for rank in range(3)]
    with pytest.raises(AgreedInputError, match="there is no such file"):
        run_loopback(drivers)


def test_more_ranks_than_lines(tmp_path):
    path = tmp_path / "graph.txt"
    for text in ("", "# nothing\n", "1 2", "1 2\n2 3\n"):
        path.write_text(text)
        for directed in (None, False):
            compare(path, directed, 6, "edge-list")


def test_a_header_of_sparse_ids_across_ranks(tmp_path):
    path = tmp_path / "graph.txt"
    ids = [10**12 + 7 * i for i in range(30)]
    text = "".join(f"{u} {v}\n" for u, v in pairwise(ids))
    path.write_text(f"30\t29\n{text}")
    for ranks in (1, 2, 4):
        compare(path, False, ranks, "edge-list")


def test_vertices_of_later_part_files_are_kept(tmp_path):
    (tmp_path / "a").write_text("1 2 3\n2 1\n")
    (tmp_path / "b").write_text("3 1\n9\n")
    read = read_graph(tmp_path, format="adjacency")
    assert read.vertices is not None
    assert set(read.vertices.tolist()) == {1, 2, 3, 9}
    compare(tmp_path, None, 3, "adjacency")


@pytest.mark.parametrize("what", ["twice", "missing"])
def test_ldbc_files_that_do_not_fit_together(what, tmp_path):
    (tmp_path / "g.v").write_text("1\n2\n3\n" + ("2\n" if what == "twice" else ""))
    (tmp_path / "g.e").write_text("1 2\n" + ("3 4\n" if what == "missing" else ""))
    for ranks in (1, 3):
        compare(tmp_path / "g.e", None, ranks)


def test_one_rank_reads_a_packed_file_and_holds_no_more_than_its_share(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 4096)
    path = tmp_path / "graph.txt.gz"
    path.write_bytes(gzip.compress("".join(f"{i} {i * 7 % 5000}\n" for i in range(5000)).encode()))

    def driver(info: RankInfo) -> Driver[int]:
        share = yield from share_of_path(info, path)
        return sum(piece.src.size for piece in share.pieces())

    held = run_loopback([driver(RankInfo(rank, 4)) for rank in range(4)])
    assert sum(held) == 5000
    assert max(held) < 1300
