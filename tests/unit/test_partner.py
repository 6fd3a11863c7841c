"""Directories that killed jobs left in memory are swept; those of living jobs are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exchange.files import lock_directory
from hybrid import exchange_directory


def test_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, young, held, foreign = (
        tmp_path / name for name in ("tandem-exchange-a", "tandem-exchange-b", "tandem-exchange-c", "x")
    )
    for folder in (old, young, held, foreign):
        folder.mkdir()
        (folder / "value.txt").write_text("0 0\n")
    lock = lock_directory(held, "0123abcd")
    for folder in (old, held, foreign):
        os.utime(folder, (1, 1))
    monkeypatch.setattr(exchange_directory, "_MEMORY", tmp_path)
    fresh = exchange_directory.fresh_directory()
    lock.release(remove=True)
    assert sorted(tmp_path.iterdir()) == sorted([young, held, foreign, fresh])
