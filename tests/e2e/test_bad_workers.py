"""Whatever a worker does, the answer is exact and the outcome says what happened: share mode, real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.results.record import Finished
from tests.e2e.conftest import (
    ScriptedWorker,
    answer,
    assert_exact,
    honest_values,
    kronecker_pairs,
    lines_of,
    read_pairs,
)

Run = Callable[..., tuple[Finished, ScriptedWorker]]


def honest(round_dir: Path) -> None:
    answer(round_dir, lines_of(honest_values(round_dir)))


def test_honest_worker_merges(with_worker: Run) -> None:
    finished, worker = with_worker(honest)
    assert_exact(finished, kronecker_pairs(), directed=False)
    npu = finished.summary["npu"]
    assert npu["rounds_merged"] == len(worker.served) >= 1
    assert npu["values_adopted"] > 0
    assert npu["values_rejected"] == 0
    assert not any((worker.directory).glob("round-*")), "a finished job leaves no rounds behind"


def test_answers_twice(with_worker: Run) -> None:
    def twice(round_dir: Path) -> None:
        honest(round_dir)
        (round_dir / "data.txt").write_text("0 0\n")
        (round_dir / "ok.flag").touch()

    finished, _ = with_worker(twice)
    assert_exact(finished, kronecker_pairs(), directed=False)


def torn(round_dir: Path) -> None:
    answer(round_dir, lines_of(honest_values(round_dir))[:-3])


def cut_at_a_line(round_dir: Path) -> None:
    sent = read_pairs(round_dir / "value.txt")
    answer(round_dir, lines_of({v: value for v, value in honest_values(round_dir).items() if v != min(sent)}))


def foreign(round_dir: Path) -> None:
    answer(round_dir, "{'not': 'a protocol'}\n")


def stale(round_dir: Path) -> None:
    answer(round_dir, "# round round-000001-deadbeef\n" + lines_of(honest_values(round_dir)))


def flag_only(round_dir: Path) -> None:
    (round_dir / "ok.flag").touch()


def not_a_number(round_dir: Path) -> None:
    answer(round_dir, lines_of(honest_values(round_dir)) + "1 nan\n")


def negative(round_dir: Path) -> None:
    answer(round_dir, lines_of(honest_values(round_dir)) + "1 -4\n")


def unknown_vertex(round_dir: Path) -> None:
    answer(round_dir, lines_of(honest_values(round_dir)) + "1099511627776 3\n")


def too_small(round_dir: Path) -> None:
    answer(round_dir, lines_of(dict.fromkeys(honest_values(round_dir), 0)))


def larger(round_dir: Path) -> None:
    answer(round_dir, lines_of({vertex: value + 1 for vertex, value in honest_values(round_dir).items()}))


def huge(round_dir: Path) -> None:
    answer(round_dir, "0 1\n" * (1 << 20))


def nothing(round_dir: Path) -> None:
    answer(round_dir, "")


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (torn, "torn"),
        (cut_at_a_line, "missing"),
        (foreign, "data.txt"),
        (stale, "belongs to round-000001-deadbeef"),
        (flag_only, "no such file"),
        (not_a_number, "nan"),
        (negative, "-4"),
        (unknown_vertex, "1099511627776"),
        (too_small, "too small"),
        (larger, "larger than sent"),
        (huge, "larger than"),
        (nothing, "missing"),
    ],
)
def test_bad_answer_is_refused_and_named(with_worker: Run, behaviour: Callable, told: str, engine: str) -> None:
    finished, _ = with_worker(behaviour, f"engine={engine}")
    assert_exact(finished, kronecker_pairs(), directed=False)
    npu = finished.summary["npu"]
    assert told in npu["outcome"]
    assert npu["rounds_merged"] == 0
    assert any(event["kind"] == "take_back" for event in finished_trace(finished))


def test_a_bad_answer_to_the_rehearsal_is_the_last(with_worker: Run) -> None:
    finished, worker = with_worker(torn, rehearses=False)
    assert_exact(finished, kronecker_pairs(), directed=False)
    npu = finished.summary["npu"]
    assert "torn" in npu["outcome"]
    assert npu["rounds_sent"] == 0
    assert len(worker.served) == 1
    assert not any(event["kind"] == "take_back" for event in finished_trace(finished)), "nothing was given"


def poison(round_dir: Path) -> None:
    """Plausible lies: every new value one less than the truth, and never below what is possible at first sight."""
    sent = read_pairs(round_dir / "value.txt")
    least = min(sent.values()) + 1
    truth = honest_values(round_dir)
    answer(round_dir, lines_of({v: sent.get(v, max(least, value - 1)) for v, value in truth.items()}))


def omit(round_dir: Path) -> None:
    """Sends back what it got: as if no core edge could improve anything."""
    answer(round_dir, lines_of(read_pairs(round_dir / "value.txt")))


@pytest.mark.parametrize("engine", ["async", "level"])
@pytest.mark.parametrize("behaviour", [poison, omit])
def test_plausible_lies_fail_the_certificate(with_worker: Run, behaviour: Callable, engine: str) -> None:
    finished, _ = with_worker(behaviour, f"engine={engine}", "source=random:4")
    assert_exact(finished, kronecker_pairs(), directed=False)
    told = finished.summary["npu"]["outcome"]
    assert "certificate" in told or "shorter than any path" in told
    repairs = [event for event in finished_trace(finished) if event["kind"] == "repair"]
    if behaviour is omit:
        assert repairs
        assert finished.summary["runs"][0]["repaired"] > 0


def silent(round_dir: Path) -> None:
    """Never answers."""


def test_a_lie_that_gets_smaller_for_ever_is_ended(with_worker: Run) -> None:
    """Each answer claims a little less for a vertex, so that a new round is due each time."""
    claims = iter(range(200, 0, -1))

    def creep(round_dir: Path) -> None:
        values = honest_values(round_dir)
        unreached = next((v for v in range(64) if v not in read_pairs(round_dir / "value.txt")), 63)
        answer(round_dir, lines_of({**values, unreached: max(min(values.values()) + 1, next(claims))}))

    finished, worker = with_worker(creep, "npu.max_rounds=3", "source=random:1")
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert len(worker.served) <= 4


def test_values_beyond_the_graph_are_refused(with_worker: Run) -> None:
    def far(round_dir: Path) -> None:
        answer(round_dir, lines_of({**honest_values(round_dir), 63: 1 << 30}))

    finished, _ = with_worker(far)
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert "1 value outside 0.." in finished.summary["npu"]["outcome"]


def test_hanging_worker_times_out(with_worker: Run) -> None:
    finished, _ = with_worker(silent, "npu.start_timeout_s=0.2", "npu.round_timeout_s=0.2")
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert "within 0.2 s" in finished.summary["npu"]["outcome"]


def test_late_answer_is_not_merged(with_worker: Run) -> None:
    """The first round is answered after its time: the CPU has gone on, and nothing of it is merged."""
    rounds: list[Path] = []

    def late(round_dir: Path) -> None:
        values = lines_of(honest_values(round_dir))
        while not (round_dir / "stop.flag").exists() and round_dir.exists():
            pass
        rounds.append(round_dir)
        answer(round_dir, values)

    finished, _ = with_worker(late, "npu.start_timeout_s=0.2", "npu.round_timeout_s=0.2")
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert finished.summary["npu"]["rounds_merged"] == 0


def test_race_without_any_answer_ends_at_once(with_worker: Run) -> None:
    finished, _ = with_worker(silent, "npu.mode=race")
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert finished.summary["npu"]["rounds_merged"] == 0
    assert "CPU converged" in finished.summary["npu"]["outcome"]


def finished_trace(finished: Finished) -> list[dict]:
    return [json.loads(line) for line in (finished.folder / "trace.jsonl").read_text().splitlines()]
