"""The cache of built graphs: hit, miss, damage, two processes at once, and no right to write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import grid
from cpu_engine.graph.graph import Graph
from cpu_engine.graph.store import array_folder, cache
from cpu_engine.graph.store.cache import cached_graph, file_digest, graph_key

KEY = {"generator": "grid", "rows": 4, "cols": 5, "directed": None}


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Graph:
        self.calls += 1
        return build_graph(grid(4, 5), directed=None)


def test_built_once_then_opened(tmp_path):
    make = Maker()
    first, missed = cached_graph(KEY, make, tmp_path)
    second, found = cached_graph(KEY, make, tmp_path)
    assert make.calls == 1
    assert (missed.hit, found.hit) == (False, True)
    assert missed.path == found.path
    assert missed.seconds_build > 0
    assert found.seconds_build == 0
    assert (missed.note, found.note) == (None, None)
    assert np.array_equal(first.out_targets, second.out_targets)
    assert first.meta == second.meta


def test_the_key_is_every_part_and_both_versions(monkeypatch):
    assert graph_key(KEY) == graph_key(dict(reversed(KEY.items())))
    keys = {graph_key(KEY), graph_key(KEY | {"directed": True}), graph_key(KEY | {"more": 1})}
    monkeypatch.setattr(cache, "FORMAT_VERSION", 1000)
    keys.add(graph_key(KEY))
    monkeypatch.setattr(cache, "BUILD_VERSION", 1000)
    keys.add(graph_key(KEY))
    assert len(keys) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: os.truncate(entry / "out_targets.npy", 100),
        lambda entry: (entry / "meta.json").write_text("{"),
        lambda entry: (entry / "user_ids.npy").unlink(),
        lambda entry: (shutil.rmtree(entry), entry.write_text("a file where the folder was")),
    ],
)
def test_a_damaged_entry_is_built_again_with_a_note(tmp_path, damage):
    make = Maker()
    _, info = cached_graph(KEY, make, tmp_path)
    damage(info.path)
    graph, again = cached_graph(KEY, make, tmp_path)
    assert make.calls == 2
    assert graph.n == 20
    assert not again.hit
    assert "damaged and is built again" in again.note
    assert cached_graph(KEY, make, tmp_path)[1].hit
    assert [entry.name for entry in info.path.parent.iterdir()] == [info.path.name]


def test_a_cache_that_cannot_be_written_is_a_note_not_an_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder can be made below this")
    graph, info = cached_graph(KEY, Maker(), blocked / "cache")
    assert graph.n == 20
    assert info.path is None
    assert "could not be kept" in info.note


@pytest.mark.parametrize("name", ["out_targets", "out_offsets", "user_ids"])
def test_a_flipped_bit_in_an_entry_is_noticed_and_the_graph_built_again(name, tmp_path):
    make = Maker()
    first, info = cached_graph(KEY, make, tmp_path)
    assert info.path is not None
    file = info.path / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[-2] ^= 8
    file.write_bytes(content)
    again, info = cached_graph(KEY, make, tmp_path)
    assert not info.hit
    assert f"built again (array {name} is damaged" in str(info.note)
    assert np.array_equal(again.out_targets, first.out_targets)
    assert cached_graph(KEY, make, tmp_path)[1].hit


def test_a_full_disk_is_a_note_and_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(*args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cpu_engine.graph.store.array_folder.write_flushed", full_disk)
    graph, info = cached_graph(KEY, Maker(), tmp_path)
    assert graph.n == 20
    assert info.path is None
    assert "No space left on device" in info.note
    assert list((tmp_path / "graphs").iterdir()) == []


def test_a_failing_build_is_the_callers_affair_and_leaves_nothing(tmp_path):
    def fail() -> Graph:
        raise InputError("no graph here")

    with pytest.raises(InputError, match="no graph here"):
        cached_graph(KEY, fail, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_killed_writers_left_is_swept_when_old(tmp_path):
    old, new = tmp_path / "graphs" / ".tmp-old", tmp_path / "graphs" / ".tmp-new"
    for leftover in (old, new):
        leftover.mkdir(parents=True)
        (leftover / "out_targets.npy").write_bytes(b"torn")
    long_ago = time.time() - 2 * array_folder.ABANDONED_AFTER_S
    os.utime(old, (long_ago, long_ago))
    cached_graph(KEY, Maker(), tmp_path)
    assert not old.exists()
    assert new.exists()


BUILDER = """
import os, sys, time
from pathlib import Path
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.store.cache import cached_graph
from cpu_engine.graph.generators import grid

folder, me, other = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def make():
    graph = build_graph(grid(4, 5), directed=None)
    (folder / me).touch()
    deadline = time.monotonic() + 50
    while not (folder / other).exists():  # both are past the look-up before either writes
        if time.monotonic() > deadline:
            sys.exit("the other process never came")
        time.sleep(0.001)
    return graph

graph, info = cached_graph({"k": 1}, make, folder / "cache")
print(graph.m, info.hit, info.path is not None, info.note)
"""


def test_two_processes_building_the_same_entry_both_succeed(tmp_path, project_root):
    environment = os.environ | {"PYTHONPATH": str(project_root)}
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", BUILDER, str(tmp_path), *names], env=environment, stdout=subprocess.PIPE, text=True
        )
        for names in (("a", "b"), ("b", "a"))
    ]
    told = [builder.communicate(timeout=100)[0].strip() for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert told == ["62 False True None"] * 2
    graph, info = cached_graph({"k": 1}, Maker(), tmp_path / "cache")
    assert info.hit
    assert graph.m == 62
    assert len(list(info.path.parent.iterdir())) == 1


@pytest.fixture
def settled_file(tmp_path: Path) -> Path:
    """A file whose last change is long enough ago to be trusted."""
    file = tmp_path / "graph.el"
    file.write_text("1 2\n")
    backdate(file)
    return file


def backdate(file: Path, seconds: int = 100) -> None:
    then = time.time_ns() - seconds * 10**9
    os.utime(file, ns=(then, then))


def test_an_unchanged_file_is_read_once(settled_file, tmp_path, monkeypatch):
    digest = file_digest(settled_file, tmp_path / "cache")

    def unexpected(*args: object, **kwargs: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(cache, "open", unexpected, raising=False)
    assert file_digest(settled_file, tmp_path / "cache") == digest
    link = tmp_path / "link.el"
    link.symlink_to(settled_file)
    assert file_digest(link, tmp_path / "cache") == digest


def test_a_changed_file_is_read_again(settled_file, tmp_path):
    first = file_digest(settled_file, tmp_path / "cache")
    settled_file.write_text("1 3\n")
    backdate(settled_file, 50)
    second = file_digest(settled_file, tmp_path / "cache")
    assert first != second
    settled_file.write_text("1 2\n")
    backdate(settled_file, 25)
    assert file_digest(settled_file, tmp_path / "cache") == first


def test_a_file_that_has_just_changed_is_not_trusted_yet(tmp_path):
    file = tmp_path / "graph.el"
    file.write_text("1 2\n")
    first = file_digest(file, tmp_path / "cache")
    stamp = file.stat().st_mtime_ns
    file.write_text("1 3\n")
    os.utime(file, ns=(stamp, stamp))  # as if within one tick of the file system's clock
    assert file_digest(file, tmp_path / "cache") != first


def test_a_damaged_or_unwritable_index_only_costs_time(settled_file, tmp_path):
    digest = file_digest(settled_file, tmp_path / "cache")
    for index in (tmp_path / "cache" / "digests").iterdir():
        index.write_text("[1,")
    assert file_digest(settled_file, tmp_path / "cache") == digest
    assert file_digest(settled_file, settled_file / "cache") == digest


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InputError, match=r"absent\.el: cannot be read: No such file.*Fix: "):
        file_digest(tmp_path / "absent.el", tmp_path)
