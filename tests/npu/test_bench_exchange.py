"""``bench exchange`` on a tiny graph: real rounds, no time asserted."""

from __future__ import annotations

import argparse
import importlib

from benchmarks.options import add_benchmarks


def test_every_program_is_measured() -> None:
    parser = argparse.ArgumentParser()
    add_benchmarks(parser)
    words = ["exchange", "--scale", "8", "--core", "32", "--repeats", "2", "--batches", "1", "3", "--device", "cpu"]
    words += ["--formats", "binary", "--index", "--threads", "1", "--programs", "min-plus", "plus-times", "or-and"]
    options = parser.parse_args(words)
    report = importlib.import_module(options.benchmark_module).execute(options)
    rows = report.data["rounds"]
    assert [(row["program"], row["batch"]) for row in rows] == [
        ("min-plus", 1), ("min-plus", 3), ("plus-times", 1), ("plus-times", 3), ("or-and", 1), ("or-and", 3),
        ("index", 32),
    ]  # fmt: skip
    assert all(row["best_seconds"] > 0 for row in rows)
    assert "index, binary" in report.lines[-1]
