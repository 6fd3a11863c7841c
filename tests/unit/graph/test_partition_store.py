"""Kept parts: the round trip, every kind of damage, foreign folders, and no right to write."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.partition import (
    Part,
    PartStore,
    assemble,
    graph_fingerprint,
    make_layout,
    open_part,
    partition_graph,
    save_part,
    slice_arcs,
)
from cpu_engine.graph.partition import store as part_store
from cpu_engine.graph.store.array_folder import TEMPORARY_PREFIX, array_checksum
from cpu_engine.graph.store.graph_store import open_store, save_store

ARRAYS = ("internal_of", "mirror_bounds", "out_offsets", "out_targets", "in_offsets", "in_sources", "has_out", "has_in")
NAMES = (*ARRAYS, "links_bounds", "links_masters", "links_roles")
LISTS = ("mirrored", "masters_read_at", "masters_written_at", "mirrors_with_out", "mirrors_with_in")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph(kronecker(8, 8, 3), directed=False)


@pytest.fixture(scope="module")
def parts(graph: Graph) -> list[Part]:
    return partition_graph(graph, "cvc", 4)


def assert_same(one: Part, other: Part) -> None:
    assert (one.part, one.masters) == (other.part, other.masters)
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in LISTS:
        for mine, theirs in zip(getattr(one, name), getattr(other, name), strict=True):
            assert np.array_equal(mine, theirs), name


def test_kept_parts_are_opened_as_they_were(tmp_path, graph, parts):
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    assert store.open(0) == (None, None)
    assert [store.keep(part) for part in parts] == [None] * 4
    again = PartStore(tmp_path, graph_fingerprint(graph), make_layout(graph, "cvc", 4))
    for part in parts:
        opened, remark = again.open(part.part)
        assert remark is None
        assert_same(opened, part)
    assert sorted(entry.name for entry in store.folder.iterdir()) == ["00000", "00001", "00002", "00003"]


def test_an_empty_part_is_kept_as_well(tmp_path, graph):
    parts = partition_graph(graph, "oec", 600)
    empty = next(part for part in parts if part.size == 0)
    save_part(tmp_path, empty)
    assert_same(open_part(tmp_path, empty.layout, empty.part), empty)


DAMAGES = {
    "torn array": lambda entry: os.truncate(entry / "out_targets.npy", 100),
    "missing array": lambda entry: (entry / "links_roles.npy").unlink(),
    "torn description": lambda entry: (entry / "meta.json").write_text("{"),
    "no description": lambda entry: (entry / "meta.json").unlink(),
    "not an object": lambda entry: (entry / "meta.json").write_text("[1]"),
    "another part": lambda entry: edit(entry, part=2),
    "another format": lambda entry: edit(entry, format="tandem-graph"),
    "another version": lambda entry: edit(entry, format_version=part_store.FORMAT_VERSION + 1),
    "another layout": lambda entry: edit(entry, layout={}),
    "masters do not fit": lambda entry: edit(entry, masters=3),
    "masters are no number": lambda entry: edit(entry, masters=None),
    "no arrays": lambda entry: edit(entry, arrays={}),
    "array of another length": lambda entry: swap(entry, "has_out", np.zeros(3, np.uint8)),
    "array of another type": lambda entry: swap(entry, "in_sources", np.zeros(3, np.int64)),
    "a matrix": lambda entry: swap(entry, "has_in", np.zeros((3, 3), np.uint8)),
    "not an array": lambda entry: (entry / "has_in.npy").write_bytes(b"x" * (entry / "has_in.npy").stat().st_size),
    "a file": lambda entry: (shutil.rmtree(entry), entry.write_text("a file where the folder was")),
}


def edit(entry: Path, **changes: object) -> None:
    meta = json.loads((entry / "meta.json").read_text())
    (entry / "meta.json").write_text(json.dumps(meta | changes))


def swap(entry: Path, name: str, array: np.ndarray) -> None:
    np.save(entry / f"{name}.npy", array)
    described = {"dtype": array.dtype.name, "shape": list(array.shape)}
    described["bytes"] = (entry / f"{name}.npy").stat().st_size
    edit(entry, arrays=json.loads((entry / "meta.json").read_text())["arrays"] | {name: described})


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_part_is_told_and_kept_anew(tmp_path, graph, parts, damage):
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    store.keep(parts[1])
    damage(store.folder / "00001")
    opened, remark = store.open(1)
    assert opened is None
    assert "damaged and is built again" in remark
    assert store.keep(parts[1]) is None
    opened, remark = store.open(1)
    assert remark is None
    assert_same(opened, parts[1])
    assert [entry.name for entry in store.folder.iterdir()] == ["00001"]


@pytest.mark.parametrize("name", NAMES)
def test_one_flipped_bit_of_any_array_is_found_when_the_part_is_opened(tmp_path, graph, parts, name):
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    store.keep(parts[1])
    file = store.folder / "00001" / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 4
    file.write_bytes(content)
    opened, remark = store.open(1)
    assert opened is None
    assert f"array {name} is damaged" in remark


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1, 2**31 - 1, 0])
def test_no_kernel_meets_a_false_number_though_its_checksum_fits(tmp_path, graph, parts, name, value):
    """Either the part is refused, or every number is one that a kernel can use as an index."""
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    store.keep(parts[1])
    entry = store.folder / "00001"
    array = np.load(entry / f"{name}.npy")
    array[array.size // 2] = np.array(value).astype(array.dtype)
    swap(entry, name, array)
    arrays = json.loads((entry / "meta.json").read_text())["arrays"]
    edit(entry, arrays=arrays | {name: arrays[name] | {"checksum": array_checksum(array)}})
    opened, _ = store.open(1)
    if opened is None:
        return
    size, links = opened.size, opened.links
    for ids, limit in (
        (opened.out_targets, size), (opened.in_sources, size), (links.masters, opened.masters),
        (opened.internal_of, opened.n),
    ):  # fmt: skip
        assert ids.min(initial=0) >= 0
        assert ids.max(initial=0) < limit
    for offsets, end in ((opened.out_offsets, opened.arcs), (opened.in_offsets, opened.arcs), (links.bounds, None)):
        assert offsets[0] == 0
        assert np.all(np.diff(offsets) >= 0)
        assert end is None or offsets[-1] == end


def test_what_a_killed_writer_left_is_not_opened_and_removed_in_time(tmp_path, graph, parts):
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    store.keep(parts[0])
    leftover = store.folder / f"{TEMPORARY_PREFIX}00001-1-abcd"
    os.rename(store.folder / "00000", leftover)
    assert store.open(0) == (None, None)
    assert store.open(1) == (None, None)
    store.keep(parts[0])
    assert leftover.exists(), "it may belong to a writer at work"
    os.utime(leftover, (0, 0))
    store.keep(parts[0])
    assert not leftover.exists()


def test_a_cache_that_cannot_be_written_is_a_note(tmp_path, graph, parts):
    (tmp_path / "parts").write_text("a file where the folder should be")
    store = PartStore(tmp_path, graph_fingerprint(graph), parts[0].layout)
    assert "could not be kept" in store.keep(parts[0])
    assert store.open(0) == (None, None)


def test_an_unlinked_part_is_not_kept(tmp_path, graph):
    layout = make_layout(graph, "oec", 2)
    part = assemble(layout, 0, [slice_arcs(graph, layout, reader)[0] for reader in range(2)])
    with pytest.raises(ValueError, match="once it is linked"):
        save_part(tmp_path, part)
    assert list(tmp_path.iterdir()) == []


def test_every_graph_policy_and_number_of_parts_has_its_own_folder(tmp_path, graph, monkeypatch):
    other = build_graph(kronecker(8, 8, 4), directed=False)
    prints = [graph_fingerprint(graph), graph_fingerprint(other)]
    layouts = [make_layout(graph, policy, parts) for policy in ("oec", "iec") for parts in (2, 4)]
    folders = {PartStore(tmp_path, one, layout).folder for one in prints for layout in layouts}
    layout = replace(layouts[0], bounds=layouts[0].bounds + 1)
    folders.add(PartStore(tmp_path, prints[0], layout).folder)
    monkeypatch.setattr(part_store, "FORMAT_VERSION", 1000)
    folders.add(PartStore(tmp_path, prints[0], layouts[0]).folder)
    assert len(folders) == 10


def test_the_fingerprint_is_of_the_content(tmp_path, graph):
    save_store(graph, tmp_path / "graph")
    opened = open_store(tmp_path / "graph")
    assert graph_fingerprint(opened) == graph_fingerprint(graph)
    assert graph_fingerprint(opened, tmp_path / "graph") == graph_fingerprint(graph)
    assert graph_fingerprint(graph, tmp_path / "nowhere") == graph_fingerprint(graph)
    relabelled = replace(graph, user_ids=graph.user_ids + 1)
    assert graph_fingerprint(relabelled) != graph_fingerprint(graph)
    weighted = replace(graph, weight=np.ones(graph.m, np.int64))
    assert graph_fingerprint(weighted) != graph_fingerprint(graph)


def test_opening_reports_what_is_wrong_with_a_fix(tmp_path, parts):
    with pytest.raises(InputError, match="Fix: remove the folder"):
        open_part(tmp_path, parts[0].layout, 0)
