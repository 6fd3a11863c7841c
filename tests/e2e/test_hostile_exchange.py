"""Whole jobs on exchange directories that somebody else spoils: the job goes on, alone if need be, and says so."""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.results.record import Finished
from tests.e2e.conftest import ScriptedWorker, answer, assert_exact, honest_values, kronecker_pairs, lines_of
from tests.protocol.second_user import NO_SECOND_USER, NOBODY, Attack, attack, private, shared

__all__ = ["attack", "private", "shared"]

ESCAPES = "\x1b]0;title\x07\x1b[31m\x9b2Jred"
SHORT = ("npu.mode=share", "npu.round_timeout_s=1", "npu.start_timeout_s=4")  # a worker without an answer is not ready
Run = Callable[..., tuple[Finished, ScriptedWorker]]


def require_clean(finished: Finished, caplog: pytest.LogCaptureFixture) -> str:
    """The result is right, and whatever is told of the worker is fit for a terminal; the outcome."""
    assert_exact(finished, kronecker_pairs(), directed=False)
    assert all(record.getMessage().isprintable() for record in caplog.records)
    for name in ("summary.json", "log.txt", "report.html", "trace.jsonl"):
        text = (finished.folder / name).read_text(encoding="utf-8") if (finished.folder / name).exists() else ""
        assert "\x1b" not in text
        assert "SECRET" not in text
    outcome = finished.summary["npu"]["outcome"]
    assert isinstance(outcome, str)
    assert "SECRET" not in outcome
    assert outcome.isprintable()
    return outcome


@pytest.mark.parametrize(("script", "words"), [
    ('ln -s "$2/secret" "$1/owner.lock"', "owner.lock: cannot lock the exchange directory: this is a symbolic link"),
    ('mkdir "$1/owner.lock"', "owner.lock"), ('mkfifo "$1/owner.lock"', "owner.lock: this is not a plain file"),
    ('mkdir -p "$1/stop.flag/deep"', "within 0.2 s"), ('ln -s "$2" "$1/stop.flag"', "within 0.2 s"),
    ('ln -s worker.json "$1/worker.json"', "within 0.2 s"), ('truncate -s 1G "$1/worker.json"', "within 0.2 s"),
    ('mkdir -p "$1/$(printf "d/%.0s" $(seq 1200))"', "within 0.2 s"),
    ('ln -s "$2" "$1/round-000001-00000000"; ln -s /dev "$1/core-00000000-0001"', "within 0.2 s"),
])  # fmt: skip
def test_what_lies_in_the_directory_does_not_end_the_job(
    job: Callable[..., Finished], shared: Path, private: Path, attack: Attack, script: str, words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.WARNING)
    attack(script, shared, private)
    settings = ["npu.worker=external", f"exchange.dir={shared}", "npu.start_timeout_s=0.2", "npu.mode=share"]
    assert words in require_clean(job(*settings), caplog)


def spoil(script: str, private: Path) -> Callable[[Path], None]:
    def behave(round_dir: Path) -> None:
        status = os.spawnlp(os.P_WAIT, "sh", "sh", "-euc", script, "sh", str(round_dir), str(private))
        assert status == 0 or not round_dir.exists(), "unless the job has waited long enough and taken its round away"

    return behave


@pytest.mark.parametrize("script", [
    'ln -s "$2/secret" "$1/data.txt"; : > "$1/ok.flag"', 'mkfifo "$1/data.txt"; : > "$1/ok.flag"',
    'mkdir "$1/data.txt"; : > "$1/ok.flag"', 'mkdir "$1/ok.flag"', 'ln -s ok.flag "$1/ok.flag"',
    'truncate -s 1T "$1/data.txt"; : > "$1/ok.flag"', 'ln -s /dev/zero "$1/data.txt"; : > "$1/ok.flag"',
    'mkdir -p "$1/$(printf "d/%.0s" $(seq 1200))"; echo x > "$1/data.txt"; : > "$1/ok.flag"',
    'mv "$1" "${1%/*}/.aside.$$"; ln -s "$2" "$1"', 'rm -rf "$1"; : > "$1"',
    f'printf "# device {ESCAPES}\\n0 {ESCAPES}\\n" > "$1/data.txt"; : > "$1/ok.flag"',
])  # fmt: skip
def test_no_answer_ends_the_job(
    with_worker: Run, tmp_path: Path, private: Path, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    finished, worker = with_worker(spoil(script, private), *SHORT)
    assert worker.served
    assert require_clean(finished, caplog)
    assert not list((tmp_path / "exchange").glob("core-*")), "what is one's own is cleaned up"


def test_words_of_a_worker_are_escaped(with_worker: Run, caplog: pytest.LogCaptureFixture) -> None:
    def leave(round_dir: Path) -> None:
        facts = {"state": "ready", "pid": 10**4000, "device": ESCAPES, "host": "elsewhere", "heartbeat": time.time()}
        told = {**facts, "skipped_round": round_dir.name, "skipped_reason": ESCAPES}
        (round_dir.parent / "worker.json").write_text(json.dumps(told))

    caplog.set_level(logging.WARNING)
    finished, _ = with_worker(leave, "npu.mode=share", "npu.round_timeout_s=5")
    assert "\\x1b[31m" in require_clean(finished, caplog)


def test_a_directory_that_vanishes_does_not_end_the_job(with_worker: Run, caplog: pytest.LogCaptureFixture) -> None:
    finished, worker = with_worker(lambda round_dir: shutil.rmtree(round_dir.parent), *SHORT)
    assert worker.served
    assert require_clean(finished, caplog)


def test_a_worker_of_another_user_serves(
    job: Callable[..., Finished], shared: Path, project_root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    script = (project_root / "tests" / "protocol" / "foreign_worker.sh").read_text()
    worker = subprocess.Popen(["sh", "-c", script, "sh", str(shared)], cwd="/", user=NOBODY, group=NOBODY, umask=0)
    try:
        finished = job("npu.worker=external", f"exchange.dir={shared}", "npu.mode=share", "npu.start_timeout_s=60")
        assert worker.wait(60) == 0, "stop.flag ends it"
    finally:
        worker.kill()
        worker.wait()
    assert "merged" in require_clean(finished, caplog)
    assert os.listdir(shared) == ["stop.flag"]


def test_results_and_logs_obey_the_umask(with_worker: Run, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        finished, _ = with_worker(lambda round_dir: answer(round_dir, lines_of(honest_values(round_dir))))
    finally:
        os.umask(before)
    written = [finished.folder, *finished.folder.rglob("*"), *(tmp_path / "exchange").glob("*.flag")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in written} == {0}
