"""The graph store: what goes in comes out, and what is torn, foreign or of another version is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store import array_folder, remembered
from cpu_engine.graph.store import graph_store as store
from cpu_engine.graph.store.graph_store import is_store, map_store, open_store, save_store
from cpu_engine.graph.store.soundness import find_flaw

ARRAYS = (
    "out_offsets", "out_targets", "in_offsets", "in_sources", "best_in",
    "user_ids", "user_position", "internal_of_position",
)  # fmt: skip


def weighted() -> Graph:
    ends = np.array([[0, 5], [5, 2**40], [0, 2**40], [7, 7]], np.int64)
    return build_graph(EdgeList(ends[:, 0], ends[:, 1], np.array([1.5, 2.5, 0.5])[[0, 1, 2, 2]]), directed=True)


GRAPHS = {
    "undirected": lambda: build_graph(kronecker(8, 4), directed=None),
    "directed": lambda: build_graph(kronecker(6, 4), directed=True),
    "weighted, sparse ids": weighted,
    "64-bit ids": lambda: build_graph(kronecker(6, 4), directed=True, id_dtype=np.int64),
    "empty": lambda: build_graph(EdgeList(np.empty(0, np.int64), np.empty(0, np.int64)), directed=True),
    "one vertex": lambda: build_graph(grid(1, 1), directed=None),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "graph"
    save_store(build_graph(grid(6, 5), directed=None), path)
    return path


@pytest.mark.parametrize("kind", GRAPHS)
def test_round_trip(kind, tmp_path):
    graph = GRAPHS[kind]()
    path = tmp_path / "deep" / "down" / "graph"
    save_store(graph, path)
    again = open_store(path)
    assert (again.n, again.m, again.directed, again.meta) == (graph.n, graph.m, graph.directed, graph.meta)
    for name in ARRAYS:
        before, after = getattr(graph, name), getattr(again, name)
        assert np.array_equal(before, after), name
        assert numba.typeof(before) == numba.typeof(after), name  # else every kernel would be compiled twice
    assert (again.in_sources is again.out_targets) == (not graph.directed)
    assert again.hanging_start == graph.hanging_start
    assert (again.weight is None) == (graph.weight is None)
    if graph.weight is not None:
        assert np.array_equal(graph.weight, again.weight)
        assert graph.weight.dtype == again.weight.dtype
    assert os.listdir(path.parent) == ["graph"]


def test_anyone_can_read_the_arrays(folder):
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["format_version"] == store.FORMAT_VERSION
    for name, described in meta["arrays"].items():
        array = np.load(folder / f"{name}.npy")
        assert [array.dtype.name, list(array.shape)] == [described["dtype"], described["shape"]]
        assert (folder / f"{name}.npy").stat().st_size == described["bytes"]


def test_writing_to_an_opened_graph_leaves_the_files(folder):
    open_store(folder).out_targets[:] = 0
    open_store(folder)


def test_a_store_is_replaced_and_its_readers_keep_theirs(folder):
    reader = open_store(folder)
    before = reader.out_targets.tolist()
    save_store(build_graph(grid(2, 2), directed=None), folder)
    assert open_store(folder).n == 4
    assert reader.out_targets.tolist() == before
    assert os.listdir(folder.parent) == ["graph"]


def test_what_is_not_a_store_is_not_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("long work")
    with pytest.raises(InputError, match=r"not a graph store.*Fix: "):
        save_store(build_graph(grid(2, 2), directed=None), tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "long work"


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(file: Path, parts: list[bytes]) -> int:
        if file.name == "user_ids.npy":
            raise OSError(28, "No space left on device")
        return real(file, parts)

    real = array_folder.write_flushed
    monkeypatch.setattr(array_folder, "write_flushed", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_store(build_graph(grid(3, 3), directed=None), tmp_path / "graph")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["out_offsets", "out_targets", "user_ids", "user_position", "internal_of_position"])
def test_a_torn_array_is_named_on_opening(folder, name):
    file = folder / f"{name}.npy"
    os.truncate(file, file.stat().st_size - 4)
    with pytest.raises(
        InputError, match=rf"{name}\.npy: has \d+ bytes, not \d+: it is torn.*Fix: build the store again"
    ):
        open_store(folder)


def test_a_missing_array_is_named_on_opening(folder):
    (folder / "out_targets.npy").unlink()
    with pytest.raises(InputError, match=r"out_targets\.npy: is missing"):
        open_store(folder)


def test_a_flipped_bit_is_found_on_opening_and_named(folder):
    file = folder / "out_targets.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    map_store(folder)  # for ranks beside one that has checked it: it does not read the data
    with pytest.raises(InputError, match=r"array out_targets is damaged: its checksum is crc32:\w{8}, not crc32:\w{8}"):
        open_store(folder)


def test_a_damaged_header_is_found_on_opening(folder):
    file = folder / "out_targets.npy"
    content = bytearray(file.read_bytes())
    content[:6] = b"bogus!"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"out_targets\.npy: is not the array"):
        open_store(folder)


def test_an_array_of_another_kind_is_found_on_opening(folder):
    file = folder / "user_position.npy"
    array = np.load(file)
    np.save(file, array.view(np.float32))
    with pytest.raises(InputError, match=r"holds float32\[30\], not int32\[30\]"):
        open_store(folder)


def edit_meta(folder: Path, **changes: object) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    meta.update(changes)
    (folder / "meta.json").write_text(json.dumps(meta))


def test_another_version_is_told(folder):
    edit_meta(folder, format_version=99)
    with pytest.raises(
        InputError, match=r"format version 99, this program reads version 2\. Fix: build the store again"
    ):
        open_store(folder)
    assert is_store(folder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "other"}, "does not describe a graph store"),
        ({"n": "many"}, "inconsistent at n"),
        ({"hanging_start": None}, "inconsistent at hanging_start"),
        ({"hanging_start": 31}, "do not fit together: hanging_start"),
        ({"arrays": {}}, "inconsistent at best_in, internal_of_position"),
        ({"directed": True}, "inconsistent at in_offsets, in_sources"),
        ({"m": 3}, "do not fit together: out_targets"),
    ],
)
def test_meta_that_cannot_be_true(folder, changes, told):
    edit_meta(folder, **changes)
    with pytest.raises(InputError, match=told):
        open_store(folder)


def test_an_entry_without_its_fields(folder):
    meta = json.loads((folder / "meta.json").read_text())
    meta["arrays"]["out_targets"] = {}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match=r"out_targets\.npy: is not the array"):
        open_store(folder)


@pytest.mark.parametrize("damage", ["", "{", "[" * 100_000, "[1]", '{"format": "other"}'])
def test_a_damaged_meta_is_told_as_such(folder, damage):
    """Not as a directory in which a file should be named: its arrays are no graph files."""
    (folder / "meta.json").write_text(damage)
    with pytest.raises(InputError, match=r"meta\.json is damaged.*Fix: build the store again"):
        read_graph(folder)


def test_what_is_no_store(tmp_path, folder):
    with pytest.raises(InputError, match=r"no meta\.json"):
        open_store(tmp_path)
    (folder / "meta.json").write_bytes(b'{"format": "tandem')
    with pytest.raises(InputError, match="not valid JSON"):
        open_store(folder)
    assert not is_store(folder)
    assert not is_store(tmp_path / "absent")
    (folder / "meta.json").write_text("[]")
    assert not is_store(folder)
    with pytest.raises(InputError, match="does not hold one JSON object"):
        open_store(folder)
    (folder / "meta.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not valid JSON"):
        open_store(folder)
    (folder / "meta.json").unlink()
    os.mkfifo(folder / "meta.json")
    with pytest.raises(InputError, match="not a regular file"):
        open_store(folder)
    file = tmp_path / "file"
    file.write_text("1 2\n")
    with pytest.raises(InputError, match="Fix: "):
        open_store(file)


def forge(folder: Path, name: str, change: Callable[[np.ndarray], None]) -> None:
    """Change an array, and give it a checksum that fits."""
    array = np.load(folder / f"{name}.npy")
    change(array)
    np.save(folder / f"{name}.npy", array)
    meta = json.loads((folder / "meta.json").read_text())
    meta["arrays"][name]["checksum"] = array_folder.array_checksum(array)
    (folder / "meta.json").write_text(json.dumps(meta))


def put(at: int, value: int) -> Callable[[np.ndarray], None]:
    return lambda array: array.__setitem__(at, value)


def swap(array: np.ndarray) -> None:
    array[[0, 1]] = array[[1, 0]]


FORGED: dict[str, tuple[str, Callable[[np.ndarray], None], str]] = {
    "an entry beyond all vertices": (
        "out_targets",
        put(3, 99),
        r"out_targets.*entry 3 \(row 0\) is 99, but vertices are",
    ),
    "a negative entry": ("out_targets", put(3, -1), r"out_targets.*entry 3 \(row 0\) is -1, but vertices are"),
    "entries sorted": ("out_targets", np.ndarray.sort, "is damaged"),  # they are loops then
    "a row out of order": ("out_targets", swap, r"out_targets.*less than the one before it in its row"),
    "an arc of another graph": ("out_targets", put(3, 29), r"array out_targets is damaged: an edge .* lacks its other"),
    "falling offsets": ("out_offsets", put(4, 1), r"out_offsets.*entry 4 is 1, less than the one before it"),
    "offsets beyond the entries": ("out_offsets", put(-1, 5000), r"out_offsets.*leads from 0 to 5000"),
    "another best neighbour": ("best_in", put(2, 2), r"best_in.*entry 2 is 2, not the first"),
    "reversed user ids": ("user_ids", lambda ids: ids.__setitem__(slice(None), ids[::-1].copy()), r"user_ids.*entry 1"),
    "a user id twice": ("user_ids", put(1, 0), r"user_ids.*entry 1 is 0, not more than"),
    "a position beyond": ("user_position", put(5, 77), r"user_position.*entry 5 is 77"),
    "a position twice": ("user_position", lambda at: at.__setitem__(5, at[6]), r"user_position.*does not lead back"),
    "no way back": ("internal_of_position", put(0, -1), r"user_position|internal_of_position"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_arrays_that_are_no_graph_are_named_although_checksums_fit(folder, kind):
    name, change, told = FORGED[kind]
    forge(folder, name, change)
    with pytest.raises(InputError, match=told + ".*Fix: build the store again"):
        open_store(folder)


def test_rows_that_are_not_transposed_are_found(tmp_path):
    path = tmp_path / "graph"
    ends = np.array([[0, 1], [0, 2], [1, 2], [3, 0], [2, 3]])
    save_store(build_graph(EdgeList(ends[:, 0], ends[:, 1]), directed=True), path)
    sources = np.load(path / "in_sources.npy")
    forge(path, "in_sources", lambda array: array.__setitem__(slice(None), (sources + 1) % 4))
    with pytest.raises(InputError, match=r"in_sources is damaged"):
        open_store(path)


def test_an_edge_with_two_weights_is_found(tmp_path):
    path = tmp_path / "graph"
    edges = EdgeList(np.array([0, 1]), np.array([1, 2]), np.array([3, 4]))
    save_store(build_graph(edges, directed=False), path)
    forge(path, "weight", put(0, 9))
    with pytest.raises(InputError, match="has another weight there"):
        open_store(path)


def test_a_checked_store_is_not_read_again_until_it_changes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "RACY_WINDOW_NS", -1)
    memory, looked = tmp_path / "checked", []
    monkeypatch.setattr(store, "find_flaw", lambda graph: looked.append(graph))
    for _ in range(3):
        open_store(folder, memory)
    assert len(looked) == 1
    file = folder / "user_ids.npy"
    file.write_bytes(file.read_bytes())  # the same content, but who knows
    open_store(folder, memory)
    assert len(looked) == 2
    content = bytearray(file.read_bytes())
    content[-1] ^= 64
    file.write_bytes(content)
    for _ in range(2):  # a failed check is not remembered as passed
        with pytest.raises(InputError, match="array user_ids is damaged"):
            open_store(folder, memory)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_built_graphs_are_sound(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 40)), int(rng.integers(0, 90))
    weight = [None, rng.integers(0, 3, m), rng.random(m)][rng.integers(3)]
    rule = ["drop", "keep"][rng.integers(2)]
    edges = EdgeList(rng.integers(0, n, m), rng.integers(0, n, m), weight, vertices=np.arange(n))
    graph = build_graph(edges, directed=bool(rng.integers(2)), self_loops=rule, duplicates=rule)
    assert find_flaw(graph) is None
