"""The graph store: what goes in comes out, and what is torn, foreign or of another version is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numba
import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph import store
from cpu_engine.graph.build import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.generators import grid, kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store import is_store, open_store, save_store, verify_store

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
    verify_store(path)
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
    verify_store(folder)


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

    real = store._write_flushed
    monkeypatch.setattr(store, "_write_flushed", full_disk)
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


def test_a_flipped_bit_is_found_by_verify_and_named(folder):
    file = folder / "out_targets.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    open_store(folder)  # opening does not read the data
    with pytest.raises(InputError, match=r"array out_targets is damaged: its checksum is crc32:\w{8}, not crc32:\w{8}"):
        verify_store(folder)


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
    with pytest.raises(InputError, match="does not describe"):
        open_store(folder)
    file = tmp_path / "file"
    file.write_text("1 2\n")
    with pytest.raises(InputError, match="Fix: "):
        open_store(file)
