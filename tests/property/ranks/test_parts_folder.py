"""A graph kept in parts: opened as it was, dealt again, and every kind of damage named."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

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
from cpu_engine.graph.distributed import parts_folder, shares
from cpu_engine.graph.distributed.assembly import BuiltPart
from cpu_engine.graph.distributed.build import build_on_ranks
from cpu_engine.graph.distributed.parts_folder import deal_again, keep_parts, open_parts, read_manifest
from cpu_engine.graph.distributed.shares import share_of_kronecker, share_of_list
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.partition import POLICIES
from tests.property.ranks.test_build_on_ranks import assert_same, edge_lists

EXAMPLES = 6 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 25
PARTS = 3


def infos(ranks: int, hosts: str | None = None) -> list[RankInfo]:
    return [RankInfo(rank, ranks, tuple(hosts or "a" * ranks)) for rank in range(ranks)]


def kept(edges: EdgeList, folder: Path, ranks: int, policy: str, *, directed: bool, weighted: bool = False) -> None:
    first, vertices = edges.id_range or (0, None)

    def driver(info: RankInfo) -> Driver[None]:
        share = share_of_list(info.rank, ranks, edges, first, vertices, directed)
        built = yield from build_on_ranks(info, share, policy, weighted=weighted)
        yield from keep_parts(info, folder, built, "the input")

    run_loopback([driver(info) for info in infos(ranks)])


def keep_kronecker(folders: list[Path], hosts: str, seed: int = 1) -> None:
    def driver(info: RankInfo) -> Driver[None]:
        built = yield from build_on_ranks(info, share_of_kronecker(info.rank, PARTS, 7, 8, seed), "cvc")
        yield from keep_parts(info, folders[info.rank], built, f"kronecker {seed}")

    run_loopback([driver(info) for info in infos(PARTS, hosts)])


def opened(folders: list[Path], hosts: str | None = None) -> list[BuiltPart | None]:
    return run_loopback([open_parts(info, folders[info.rank]) for info in infos(len(folders), hosts)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Kept parts of a small graph."""
    path = tmp_path / "cache" / "graph"
    keep_kronecker([path] * PARTS, "a" * PARTS)
    return path


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_parts_are_opened_as_they_were_and_dealt_again(data, tmp_path_factory):
    edges = data.draw(edge_lists(), label="edges")
    directed = data.draw(st.booleans(), label="directed")
    weighted = edges.weight is not None and data.draw(st.booleans(), label="with weights")
    before, after = (data.draw(st.integers(1, 5), label="ranks") for _ in range(2))
    policy, other = (data.draw(st.sampled_from(POLICIES), label="policy") for _ in range(2))
    folder = tmp_path_factory.mktemp("kept") / "graph"
    graph = build_graph(edges, directed=directed)
    if not graph.n:
        return
    kept(edges, folder, before, policy, directed=directed, weighted=weighted)
    found = [part for part in opened([folder] * before) if part is not None]
    assert len(found) == before
    assert_same(found, graph, policy, weighted=weighted)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shares, "PIECE_EDGES", data.draw(st.sampled_from([3, 1 << 20])))
        dealt = run_loopback([deal_again(info, folder, other, weighted=weighted) for info in infos(after)])
    assert_same([part for part in dealt if part is not None], graph, other, weighted=weighted)
    assert [name.name for name in folder.parent.iterdir()] == ["graph"]


def test_there_is_no_such_folder(tmp_path):
    assert opened([tmp_path / "none"] * 2) == [None, None]
    assert run_loopback([deal_again(info, tmp_path / "none", "oec") for info in infos(2)]) == [None, None]


def test_another_number_of_ranks(folder):
    with pytest.raises(AgreedInputError, match="holds 3 parts, and there are 2 ranks"):
        opened([folder] * 2)


def test_machines_that_share_nothing(tmp_path):
    """Each machine has the manifest and its own parts; dealt again, each part is read where it is."""
    folders = [tmp_path / host / "graph" for host in "aab"]
    keep_kronecker(folders, "aab")
    assert sorted(path.name for path in folders[0].iterdir()) == ["00000", "00001", "manifest.json"]
    assert sorted(path.name for path in folders[2].iterdir()) == ["00002", "manifest.json"]
    texts = {(path / "manifest.json").read_bytes() for path in folders}
    assert len(texts) == 1
    assert all(part is not None for part in opened(folders, "aab"))
    graph = build_graph(shares.kronecker(7, 8, 1))
    for hosts in ("ab", "aabb"):
        drivers = [deal_again(info, tmp_path / info.host / "graph", "iec") for info in infos(len(hosts), hosts)]
        assert_same([part for part in run_loopback(drivers) if part is not None], graph, "iec")


def test_what_is_kept_takes_the_place_of_what_was(folder):
    before = read_manifest(folder)
    keep_kronecker([folder] * PARTS, "aaa", seed=2)
    after = read_manifest(folder)
    assert (before.fingerprint, after.fingerprint) == ("kronecker 1", "kronecker 2")
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda folder: shutil.rmtree(folder / "00001"), "00001: this part of the graph is missing"),
    "a missing array": (lambda folder: (folder / "00002" / "user_ids.npy").unlink(), "00002/user_ids.npy: is missing"),
    "torn": (lambda folder: os.truncate(folder / "00001" / "in_sources.npy", 200), "it is torn"),
    "a flipped bit": (lambda folder: damage(folder / "00000" / "out_targets.npy"), "array out_targets is damaged"),
    "a flipped bit beside": (lambda folder: damage(folder / "00002" / "user_ids.npy"), "array user_ids is damaged"),
    "another part": (
        lambda folder: (shutil.rmtree(folder / "00001"), shutil.copytree(folder / "00002", folder / "00001")),
        "00001: this part is damaged, or another graph's",
    ),
    "a torn manifest": (lambda folder: os.truncate(folder / "manifest.json", 99), "not the manifest of a graph"),
    "a changed manifest": (
        lambda folder: (folder / "manifest.json").write_text(
            (folder / "manifest.json").read_text().replace('"loops": ', '"loops": 1')
        ),
        "its checksum is another",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named(name, folder):
    harm, message = DAMAGES[name]
    harm(folder)
    for attempt in (lambda: opened([folder] * PARTS), lambda: run_loopback(again(folder))):
        with pytest.raises(InputError, match=message) as found:
            attempt()
        assert found.value.fix is not None


def again(folder: Path) -> list[Driver[BuiltPart | None]]:
    return [deal_again(info, folder, "oec") for info in infos(2)]


def test_a_part_of_another_graph(folder, tmp_path):
    other = tmp_path / "other"
    keep_kronecker([other] * PARTS, "aaa", seed=2)
    shutil.rmtree(folder / "00001")
    shutil.copytree(other / "00001", folder / "00001")
    with pytest.raises(InputError, match="00001: this part is damaged, or another graph's"):
        opened([folder] * PARTS)


def test_folders_of_different_graphs(folder, tmp_path):
    other = tmp_path / "other"
    keep_kronecker([other] * PARTS, "aaa", seed=2)
    with pytest.raises(InputError, match="is another graph's at rank 2 than at rank 0"):
        opened([folder, folder, other])


@pytest.mark.parametrize("kind", ["the first", "again"])
@pytest.mark.parametrize("when", ["part", "manifest", "rename"])
def test_a_full_disk_on_one_rank_leaves_nothing(kind, when, tmp_path, monkeypatch):
    folders = [tmp_path / host / "graph" for host in "aab"]
    if kind == "again":
        keep_kronecker(folders, "aab")
    honest = parts_folder.save_part

    def full(folder: Path, part, more=None) -> str:
        if part.part == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return honest(folder, part, more)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if when == "part":
        monkeypatch.setattr(parts_folder, "save_part", full)
    else:
        monkeypatch.setattr(parts_folder, "write_flushed" if when == "manifest" else "retire", refuse)
    with pytest.raises(AgreedInputError, match="could not write its part"):
        keep_kronecker(folders, "aab", seed=2)
    monkeypatch.undo()
    left = {path.name for host in "ab" for path in (tmp_path / host).iterdir()}
    assert left == ({"graph"} if kind == "again" else set())
    if kind == "again":
        assert all(part is not None for part in opened(folders, "aab"))


def test_a_second_look_does_not_read_the_arrays(folder, tmp_path, monkeypatch):
    checked = tmp_path / "checked"
    monkeypatch.setattr("cpu_engine.graph.store.remembered.RACY_WINDOW_NS", 0)
    run_loopback([open_parts(info, folder, checked) for info in infos(PARTS)])
    monkeypatch.setattr("cpu_engine.graph.partition.store.check_checksums", None)  # not called again
    found = run_loopback([open_parts(info, folder, checked) for info in infos(PARTS)])
    assert all(part is not None for part in found)


def test_weights_that_were_not_kept(folder):
    with pytest.raises(InputError, match="no weights"):
        run_loopback([deal_again(info, folder, "oec", weighted=True) for info in infos(2)])


def test_internal_ids_of_64_bits_are_kept(tmp_path, monkeypatch):
    for module in ("numbering", "assembly"):
        monkeypatch.setattr(f"cpu_engine.graph.distributed.{module}.MAX_NARROW", 10)
    folder = tmp_path / "graph"
    keep_kronecker([folder] * PARTS, "aaa")
    found = [part for part in opened([folder] * PARTS) if part is not None]
    assert {part.part.internal_of.dtype for part in found} == {np.dtype(np.int64)}
    assert_same(found, build_graph(shares.kronecker(7, 8, 1)), "cvc")
