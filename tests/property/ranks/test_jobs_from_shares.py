"""A job whose graph is built from shares: the result of the job on the whole graph, file by file, in one process.

Over real MPI it is tested in tests/mpi.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu_engine.ranks.algorithms import NAMES, PartFinding
from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.errors import ConfigError, NotCertified
from hybrid.job.driver import run_job
from hybrid.ranks import from_shares, writing
from hybrid.ranks.rendezvous import Agreed
from hybrid.results.parts import open_result
from hybrid.results.record import Finished
from tests.property.ranks.test_ranks_library_job import run_on as run_on_hosts

SMALL = ["graph.generator.scale=7", "graph.generator.edge_factor=4", "npu.mode=off", "result.report=false"]


def run_on(ranks: int, output: Path, *settings: str) -> Finished:
    """The whole job on so many ranks of two machines, without MPI."""
    config = load_config(None, [*SMALL, "cluster.build=shares", *settings, f"ranks={ranks}", f"output={output}"])
    return run_on_hosts((["a", "b"] * ranks)[:ranks], config)


def run_whole(output: Path, *settings: str) -> Finished:
    return run_job(load_config(None, [*SMALL, *settings, "ranks=1", "graph.cache=false", f"output={output}"]))


def assert_same(found: Finished, right: Finished, algorithm: str) -> None:
    mine, whole = open_result(found.folder), open_result(right.folder)
    assert set(mine) == set(whole)
    for name in whole:
        if name == "parent":
            continue  # any tree will do; ``validate`` proves it
        if algorithm == "pagerank" and name == "rank":
            assert np.allclose(mine[name], whole[name], rtol=1e-6)
        else:
            assert mine[name].dtype == whole[name].dtype
            assert np.array_equal(mine[name], whole[name]), name
    for name in ("vertices", "edges", "isolated", "directed"):
        assert found.summary["graph"][name] == right.summary["graph"][name]
    assert found.summary["sources"] == right.summary["sources"]


@pytest.mark.parametrize("kind", ["kronecker", "uniform", "grid"])
@pytest.mark.parametrize("algorithm", ["bfs", *NAMES])
def test_the_result_of_the_whole_graph(algorithm: str, kind: str, tmp_path: Path) -> None:
    settings = [f"algorithm={algorithm}", f"graph.generator.kind={kind}", "source=random:3"]
    settings += ["graph.generator.rows=9", "graph.generator.cols=11"]
    right = run_whole(tmp_path / "whole", *settings)
    for ranks in (1, 3):
        found = run_on(ranks, tmp_path / f"out{ranks}", *settings)
        assert_same(found, right, algorithm)
        assert validate_result(found.folder, []) == 0
        assert found.summary["ranks"]["ranks"] == ranks
        if algorithm != "bfs":
            assert found.summary["facts"] == pytest.approx(right.summary["facts"])
            if algorithm != "pagerank":
                assert found.summary["spread"] == right.summary["spread"]


@pytest.mark.parametrize("policy", ["oec", "cvc", "2d", "uvc"])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "wcc"])
def test_every_policy(algorithm: str, policy: str, tmp_path: Path) -> None:
    settings = [f"algorithm={algorithm}", "source=random:2", "graph.directed=true", f"cluster.policy={policy}"]
    found = run_on(5, tmp_path / "out", *settings)
    assert_same(found, run_whole(tmp_path / "whole", *settings), algorithm)
    assert validate_result(found.folder, []) == 0


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize("ranks", [2, 4, 6])
def test_both_engines(engine: str, ranks: int, tmp_path: Path) -> None:
    settings = [f"engine={engine}", "source=[5, 0, 127]"]
    found = run_on(ranks, tmp_path / "out", *settings)
    assert_same(found, run_whole(tmp_path / "whole", *settings), "bfs")
    assert found.summary["certified"] is True


def test_results_in_parts_with_their_forms(tmp_path: Path) -> None:
    settings = ["source=random:3", "result.forms=[text, ldbc]"]
    found = run_on(3, tmp_path / "out", *settings, "result.arrays=parts")
    merged = run_on(3, tmp_path / "merged", *settings)
    assert not (found.folder / "level.npy").exists()
    result, whole = open_result(found.folder), open_result(merged.folder)
    assert (result.parts, whole.parts) == (3, 1)
    for name in ("vertex", "level", "parent"):
        assert np.array_equal(result[name], np.load(merged.folder / f"{name}.npy"))
        rows = [result.part(part)[name] for part in range(3)]
        assert np.array_equal(np.concatenate(rows, axis=-1), whole[name])
    text = [sorted((found.folder / "parts" / f"{part:04d}").glob("*.txt")) for part in range(3)]
    names = [path.name for path in text[0]]
    assert len(names) == 6
    for name in names:
        lines = [(found.folder / "parts" / f"{part:04d}" / name).read_text().splitlines() for part in range(3)]
        together = [line for part in lines for line in part if not line.startswith("#")]
        right = (merged.folder / name).read_text().splitlines()
        assert together == [line for line in right if not line.startswith("#")]
    assert validate_result(found.folder, []) == 0


def test_merged_arrays_are_the_files_of_one_rank_to_the_byte(tmp_path: Path) -> None:
    found = run_on(3, tmp_path / "out", "source=[5, 9]")
    right = run_whole(tmp_path / "whole", "source=[5, 9]")
    for name in ("vertex.npy", "level.npy"):
        assert (found.folder / name).read_bytes() == (right.folder / name).read_bytes()
    assert not (found.folder / "parts").exists()


def test_a_machine_that_does_not_see_the_folder_sends_its_rows(tmp_path: Path, monkeypatch: Any) -> None:
    right = run_on(4, tmp_path / "near", "source=random:2", "result.arrays=parts")
    with monkeypatch.context() as patched:
        patched.setattr(writing, "_is_there", lambda info, path: info.rank % 2 == 0)
        found = run_on(4, tmp_path / "far", "source=random:2", "result.arrays=parts")
    for name in open_result(right.folder):
        assert np.array_equal(open_result(found.folder)[name], open_result(right.folder)[name])


def test_an_unknown_source_is_the_error_of_one_rank(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"vertex 500 is not in the graph \(ids 0..127, nearest 127\)") as alone:
        run_whole(tmp_path / "whole", "source=[1, 500]")
    with pytest.raises(Agreed) as found:
        run_on(3, tmp_path / "out", "source=[1, 500]")
    assert str(found.value.error) == str(alone.value)
    assert not (tmp_path / "out").exists()


def test_a_false_value_ends_the_job_on_all_ranks(tmp_path: Path, monkeypatch: Any) -> None:
    original = from_shares.FromShares.run_part

    def corrupt(self: Any, *arguments: Any) -> Any:
        finding, seconds, tally = yield from original(self, *arguments)
        if self.info.rank == 1:
            level = finding.arrays["level"].copy()
            level[level.size // 2] += 1
            finding = PartFinding({**finding.arrays, "level": level}, finding.statistics)
        return finding, seconds, tally

    monkeypatch.setattr(from_shares.FromShares, "run_part", corrupt)
    with pytest.raises(Agreed) as failed:
        run_on(3, tmp_path / "out", "source=5", "cluster.build=shares")
    assert isinstance(failed.value.error, NotCertified)
    assert not list(tmp_path.iterdir()), "nothing half-written is left"


def test_memory_is_asked_for_before_the_work(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("cpu_engine.graph.memory.available_bytes", lambda: 1 << 20)
    with pytest.raises(Exception, match=r"1 of 2 parts of kronecker-s20.*needs about .* of memory, but only"):
        run_on(2, tmp_path / "out", "graph.generator.scale=20")
    assert not list(tmp_path.iterdir())


def test_auto_builds_shares_where_the_whole_graph_does_not_fit(tmp_path: Path, monkeypatch: Any) -> None:
    auto = ["source=5", "cluster.build=auto", f"graph.cache_dir={tmp_path / 'cache'}"]
    monkeypatch.setattr(from_shares, "fits_whole", lambda config: False)
    found = run_on(2, tmp_path / "out", *auto)
    assert found.summary["graph"]["from_store"] is False
    kept = [one.name for one in (tmp_path / "cache").iterdir()]
    assert kept == ["parts"], "no rank has built the whole graph"


def test_parts_are_kept_and_dealt_again(tmp_path: Path) -> None:
    cache = f"graph.cache_dir={tmp_path / 'cache'}"
    settings = ["source=[5, 9]", cache]
    first = run_on(3, tmp_path / "first", *settings)
    again = run_on(3, tmp_path / "again", *settings)
    fewer = run_on(2, tmp_path / "fewer", *settings, "cluster.policy=oec")
    told = [one.summary["ranks"]["from_cache"] for one in (first, again, fewer)]
    assert told == [False, True, True]
    right = run_whole(tmp_path / "whole", *settings)
    for found in (first, again, fewer):
        assert_same(found, right, "bfs")
    (folder,) = (tmp_path / "cache" / "parts").iterdir()
    assert sorted(one.name for one in folder.iterdir()) == ["iec-3", "oec-2"]


def test_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"scc runs on one rank .*a machine that holds the whole graph"):
        run_on(2, tmp_path / "out", "algorithm=scc")
    with pytest.raises(ConfigError, match="shares are built by several ranks"):
        run_whole(tmp_path / "out", "cluster.build=shares")
    with pytest.raises(Agreed, match="needs every arc both ways"):
        run_on(2, tmp_path / "out", "algorithm=kcore", "graph.directed=true")
