"""Jobs on two machines: network namespaces with names of their own, ranks started there by mpirun's own agent, TCP.

They share this machine's CPUs, so times say little and are printed only.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hybrid.config import load_config
from hybrid.job.driver import run_job
from tests.conftest import eventually
from tests.mpi.hosts import Hosts, NoHosts, hosts_in
from tests.mpi.jobs import Jobs, error_lines, finish, jobs_in

GRAPH = {"generator": {"scale": 12, "edge_factor": 8}}
SOURCES = {"source": "random:3"}
RANKS_PER_HOST = 2
BOTH = ("hostfile", "hosts")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    try:
        with hosts_in(tmp_path, 2) as made:
            yield made
    except NoHosts as reason:
        pytest.skip(f"several hosts on one machine: {reason}")


@pytest.fixture
def jobs(tmp_path: Path, hosts: Hosts) -> Iterator[Jobs]:
    """After the machines, so that the jobs end before these."""
    with jobs_in(tmp_path) as started:
        yield started


def start(jobs: Jobs, hosts: Hosts, told_by: str = "hosts", **settings: Any) -> Any:
    """A job on all machines, typed in at the first one."""
    cluster = {"threads_per_rank": 1, "mpirun_args": hosts.mpirun_args(), "launch_timeout_s": 60}
    if told_by == "hostfile":
        cluster["hostfile"] = str(hosts.write_hostfile(RANKS_PER_HOST))
    else:
        cluster["hosts"] = [f"{name}:{RANKS_PER_HOST}" for name in hosts.names]
    cluster |= settings.pop("cluster", {})
    config = {"graph": GRAPH, **SOURCES, "ranks": RANKS_PER_HOST * len(hosts.names), "result": {"report": False}}
    path = jobs.out.parent / "job.yaml"
    path.write_text(json.dumps(config | {"cluster": cluster} | settings))  # JSON is YAML
    command = [sys.executable, "run.py", "run", "--config", str(path), "--output", str(jobs.out)]
    scratch = jobs.out.parent / "tmp"  # a killed daemon leaves its folder behind
    scratch.mkdir(exist_ok=True)
    return jobs.start_command(hosts.at(hosts.names[0], command), {"TMPDIR": str(scratch)})


def summary_of(jobs: Jobs) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((jobs.out / "summary.json").read_text())
    return summary


def alone(folder: Path) -> np.ndarray:
    """The levels that one rank without a worker finds."""
    settings = [f"graph.generator.{name}={value}" for name, value in GRAPH["generator"].items()]
    settings += [f"source={SOURCES['source']}", "npu.mode=off", f"output={folder}", "result.report=false"]
    finished = run_job(load_config(None, settings))
    assert finished.summary["certified"] is True
    levels: np.ndarray = np.load(folder / "level.npy")
    return levels


def rounds_merged(jobs: Jobs) -> Counter[str]:
    """By the rank that drives a worker."""
    events = [json.loads(line) for line in (jobs.out / "trace.jsonl").read_text().splitlines()]
    return Counter(one["actor"] for one in events if one["kind"] == "round" and one["outcome"] == "merged")


@pytest.mark.parametrize("told_by", BOTH)
def test_a_worker_on_each_machine(jobs: Jobs, hosts: Hosts, tmp_path: Path, told_by: str) -> None:
    npu = {"mode": "share", "round_timeout_s": 30}
    done = finish(start(jobs, hosts, told_by, npu=npu, core={"size": 128}, compare={"repeats": 1}))
    assert done.returncode == 0, done.stderr
    summary, (first, second) = summary_of(jobs), hosts.names
    assert summary["certified"] is True
    assert summary["ranks"]["hosts"] == {first: [0, 1], second: [2, 3]}
    assert [one["host"] for one in summary["ranks"]["per_rank"]] == [first, first, second, second]
    assert "4 on 2 machines" in done.stdout
    merged = rounds_merged(jobs)
    assert set(merged) == {"rank 0", "rank 2"}, "the first rank of each machine has a worker"
    assert summary["npu"]["rounds_merged"] == sum(merged.values())
    told = [run["npu"]["outcome"] for run in summary["runs"]]
    assert any(f"{first}: merged " in one and f"{second}: merged " in one for one in told), told
    np.testing.assert_array_equal(np.load(jobs.out / "level.npy"), alone(tmp_path / "alone"))


@pytest.mark.heavy
def test_a_name_that_is_taken_costs_no_worker(jobs: Jobs, hosts: Hosts, tmp_path: Path) -> None:
    shared, second = tmp_path / "exchange", hosts.names[1]
    shared.mkdir()
    (shared / second).write_text("planted")
    npu = {"mode": "share", "round_timeout_s": 30}
    settings = {"npu": npu, "exchange": {"dir": str(shared)}, "core": {"size": 128}, "compare": {"enabled": False}}
    done = finish(start(jobs, hosts, **settings))
    assert done.returncode == 0, done.stderr
    assert summary_of(jobs)["certified"] is True
    assert set(rounds_merged(jobs)) == {"rank 0", "rank 2"}
    assert done.stderr.count(f"{second}: the worker uses a private exchange directory") == 1
    assert (shared / second).read_text() == "planted"


@pytest.mark.heavy
def test_slow_link(jobs: Jobs, hosts: Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        how = hosts.slow_down(hosts.names[1], delay_ms=2, rate_mbit=4)
    except NoHosts as reason:
        pytest.skip(str(reason))
    expected = alone(tmp_path / "alone")
    told = [f"\none of two machines behind {how}, 2 x 2 ranks:"]
    for sync in ("basp", "bsp"):
        done = finish(start(jobs, hosts, cluster={"sync": sync}, core={"size": 128}, compare={"repeats": 2}))
        assert done.returncode == 0, done.stderr
        summary = summary_of(jobs)
        assert summary["certified"] is True
        assert summary["ranks"]["sync"] == sync
        assert set(summary["ranks"]["hosts"]) == set(hosts.names)
        np.testing.assert_array_equal(np.load(jobs.out / "level.npy"), expected)
        totals, verdict = summary["ranks"]["totals"], summary["verdict"]
        told.append(
            f"  {sync}: {len(summary['sources'])} searches in {verdict['cpu_only_seconds'] * 1e3:.1f} ms, "
            f"with workers {verdict['hybrid_seconds'] * 1e3:.1f} ms; {totals['bytes']} bytes in "
            f"{totals['messages']} messages"
        )
    with capsys.disabled():
        print("\n".join(told))


@pytest.mark.heavy
def test_rank_killed_on_the_other_machine(jobs: Jobs, hosts: Hosts) -> None:
    process = start(jobs, hosts, source="random:1000", compare={"enabled": False}, npu={"mode": "share"})
    log = jobs.partial() / "log.txt"
    eventually(lambda: log.exists() and "part 0: " in log.read_text(), timeout_s=60)
    jobs.rank(3).kill()
    done = finish(process)
    assert done.returncode == 4, done.stderr
    lines = error_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert f"rank 3 on {hosts.names[1]} was ended by SIGKILL" in lines[0]
    eventually(lambda: not jobs.processes(), timeout_s=20)
    assert not jobs.out.exists()
    assert not list(jobs.out.parent.glob(".out.*"))


@pytest.mark.heavy
def test_machine_lost(jobs: Jobs, hosts: Hosts) -> None:
    """Everything on the other machine ends at once, the launcher's daemon included."""
    process = start(jobs, hosts, source="random:1000", compare={"enabled": False}, npu={"mode": "off"})
    log = jobs.partial() / "log.txt"
    eventually(lambda: log.exists() and "part 0: " in log.read_text(), timeout_s=60)
    there = network_of(jobs.rank(3))
    lost = [one for one in jobs.processes() if network_of(one) == there]
    assert any("prted" in one.name() for one in lost)
    for one in lost:
        one.kill()
    done = finish(process)
    assert done.returncode == 4, done.stderr
    assert len(error_lines(done.stderr)) == 1, done.stderr
    assert "Fix: " in done.stderr
    assert not jobs.out.exists()
    assert not list(jobs.out.parent.glob(".out.*"))


def network_of(process: psutil.Process) -> str:
    return str(Path(f"/proc/{process.pid}/ns/net").readlink())
