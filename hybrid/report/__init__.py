"""The self-contained report.html of a finished job: verdict, time line, frontier, what the NPU changed.

Owns the presentation only: it reads a summary and a trace and decides nothing. Invariant: ``write_report`` never fails
on the content of summary or trace, and a reader of the folder sees either the old page or the whole new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid.report.page import render_page
from hybrid.results.atomic_write import atomic_write

__all__ = ["REPORT_NAME", "render_page", "write_report"]

REPORT_NAME = "report.html"


def write_report(
    folder: Path, summary: Mapping[str, Any], trace: Sequence[Mapping[str, Any]], config_text: str, *,
    final_name: Path | None = None,
) -> Path:  # fmt: skip
    """Write ``report.html`` into ``folder`` (to be renamed to ``final_name``, if given) and return its path.

    ``summary`` and ``trace`` are the contents of summary.json and trace.jsonl; ``config_text`` is the effective config.
    """
    target = Path(folder) / REPORT_NAME
    atomic_write(target, render_page(final_name or Path(folder), summary, trace, config_text))
    return target
