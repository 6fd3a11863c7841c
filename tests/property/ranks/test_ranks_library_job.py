"""The library's job on ranks, all of them in this process: the result folder of one rank, value by value.

Over real MPI it is tested in tests/mpi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cpu_engine.comm.loopback import run_loopback
from cpu_engine.ranks.algorithms import NAMES
from hybrid.cli.commands.run import account
from hybrid.cli.commands.validate import validate_result
from hybrid.config import load_config
from hybrid.config.schema import Config
from hybrid.launch.announce import Announcer
from hybrid.ranks.backend import drive_on_rank
from hybrid.ranks.rendezvous import Agreed, rendezvous
from hybrid.registry import names_on_ranks
from hybrid.results.record import Finished, result_folder
from tests.e2e.test_algorithms import EXPECTED, LDBC, groups, ldbc_settings, pairs
from tests.small_graphs import write_tailed_triangle


def run_on(hosts: Sequence[str], config: Config) -> Finished:
    """The whole job, one rank per entry of ``hosts``, without MPI."""
    config = replace(config, ranks=len(hosts))
    met = run_loopback([rendezvous(rank, len(hosts), host, [0, 1]) for rank, host in enumerate(hosts)])
    with result_folder(config) as folder:
        jobs = [
            drive_on_rank(one.info, config, folder if rank == 0 else None, Announcer(False))
            for rank, one in enumerate(met)
        ]
        summaries = run_loopback(jobs)
    assert summaries[0] is not None
    return Finished(folder.final, summaries[0])


@pytest.fixture
def house(tmp_path: Path) -> Callable[..., Config]:
    """A triangle 10, 20, 30 with a tail to 40, a pair 50, 60, and 70 alone."""
    path = write_tailed_triangle(tmp_path)

    def make(algorithm: str, *settings: str) -> Config:
        usual = [f"graph.path={path}", f"algorithm={algorithm}", f"output={tmp_path / 'out'}"]
        usual.append("npu.mode=off")  # a worker beside them: tests/unit/ranks/test_job.py and tests/mpi
        return load_config(None, [*usual, "result.report=false", *settings])

    return make


def test_the_schema_knows_what_runs_on_ranks() -> None:
    assert set(names_on_ranks()) == {"bfs", *NAMES}


@pytest.mark.parametrize("policy", ["auto", "oec"])
@pytest.mark.parametrize("algorithm", [name for name in NAMES if name in EXPECTED])
def test_values_in_the_users_ids(house: Callable[..., Config], algorithm: str, policy: str) -> None:
    finished = run_on("aab", house(algorithm, "source=10", f"cluster.policy={policy}"))
    for name, values in EXPECTED[algorithm].items():
        assert np.load(finished.folder / f"{name}.npy").tolist() == values
    assert validate_result(finished.folder, []) == 0


@pytest.mark.parametrize("algorithm", ["bfs", *(name for name in NAMES if name in EXPECTED)])
def test_values_in_the_users_ids_from_shares_of_the_file(house: Callable[..., Config], algorithm: str) -> None:
    """Sparse ids, an isolated vertex and weights, none of which any rank has all of."""
    finished = run_on("aab", house(algorithm, "source=10", "cluster.build=shares"))
    for name, values in EXPECTED.get(algorithm, {"level": [0, 1, 1, 2, -1, -1, -1]}).items():
        assert np.load(finished.folder / f"{name}.npy").tolist() == values
    assert np.load(finished.folder / "vertex.npy").tolist() == list(range(10, 80, 10))
    assert finished.summary["graph"]["isolated"] == 1
    assert validate_result(finished.folder, []) == 0


def test_an_isolated_source_and_one_that_is_not_there_from_shares(house: Callable[..., Config]) -> None:
    finished = run_on("aab", house("bfs", "source=[70, 50]", "cluster.build=shares"))
    assert np.load(finished.folder / "level.npy").tolist() == [[-1] * 6 + [0], [-1] * 4 + [0, 1, -1]]
    assert validate_result(finished.folder, []) == 0
    with pytest.raises(Agreed, match=r"vertex 45 is not in the graph \(ids 10..70, nearest 40 and 50\)"):
        run_on("aab", house("bfs", "source=45", "cluster.build=shares"))


def test_a_malformed_line_in_a_share_is_named_by_all(house: Callable[..., Config], tmp_path: Path) -> None:
    path = tmp_path / "bad.el"
    path.write_text("1 2\n" * 50 + "3 x\n" + "1 2\n" * 9)
    with pytest.raises(Agreed, match=r"bad\.el") as failed:
        run_on("aab", house("wcc", f"graph.path={path}", "cluster.build=shares"))
    assert "51" in str(failed.value.error)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("algorithm", NAMES)
def test_a_whole_folder_with_what_the_ranks_did(house: Callable[..., Config], algorithm: str) -> None:
    config = replace(house(algorithm, "source=[10, 50, 70]", "result.forms=[text, ldbc]"))
    finished = run_on("ab", replace(config, result=replace(config.result, report=True)))
    ranks = finished.summary["ranks"]
    assert (ranks["ranks"], len(ranks["per_rank"]), ranks["policy"]) == (2, 2, "iec")
    assert ranks["sync"] == ("basp" if algorithm in ("sssp", "wcc") else "bsp")
    assert finished.summary["certified"] is True
    assert "2 ranks" in account(finished.summary, finished.folder) or "ranks    2" in account(
        finished.summary, finished.folder
    )
    assert (finished.folder / "report.html").stat().st_size > 0
    assert '"rank 1"' in (finished.folder / "trace.jsonl").read_text()
    again = run_on("ab", replace(config, output=str(finished.folder)))
    assert again.summary["ranks"]["from_cache"] is True


def test_refused_by_all_with_the_reason(house: Callable[..., Config]) -> None:
    with pytest.raises(Agreed, match="must be at one place"):
        run_on("ab", house("cdlp", "cluster.policy=2d"))


def test_ranks_that_do_not_settle_are_told_and_proven_as_such(house: Callable[..., Config]) -> None:
    short = house("pagerank", "pagerank.definition=gap", "pagerank.tolerance=1e-300", "pagerank.iterations=2")
    finished = run_on("ab", short)
    assert finished.summary["runs"][0]["counters"]["converged"] is False
    assert finished.summary["unfinished"].startswith("after 2 iterations")
    assert validate_result(finished.folder, []) == 0


def test_without_weights_every_edge_counts_as_one(house: Callable[..., Config], tmp_path: Path) -> None:
    path = tmp_path / "plain.el"
    path.write_text("10 20\n20 30\n10 30\n30 40\n")
    finished = run_on("ab", house("sssp", f"graph.path={path}", "graph.directed=false", "source=40"))
    assert np.load(finished.folder / "distance.npy").tolist() == [2, 2, 1, 0]


@pytest.mark.parametrize("algorithm", [name for name, ours in LDBC.items() if ours in NAMES])
def test_ldbc_outputs_on_three_ranks(algorithm: str, shared_data: Path, tmp_path: Path) -> None:
    for expected in sorted((shared_data / "ldbc-validation" / "example-data-sets").glob(f"*-{algorithm}")):
        properties = expected.with_name(expected.name.removesuffix(f"-{algorithm}") + ".properties")
        further = ["npu.mode=off", "result.forms=[ldbc]", "result.report=false", f"output={tmp_path / 'out'}"]
        finished = run_on("aab", load_config(None, [*ldbc_settings(properties, algorithm), *further]))
        found, right = pairs(finished.folder / "ldbc.txt"), pairs(expected)
        assert found.keys() == right.keys()
        if algorithm == "WCC":  # LDBC asks for the same groups, whatever they are called
            assert groups(found) == groups(right), expected.name
            continue
        allowed = {"CDLP": 0.0, "PR": 1e-4}.get(algorithm, 1e-9)
        for vertex, value in right.items():
            assert math.isclose(found[vertex], value, rel_tol=allowed), (expected.name, vertex)
