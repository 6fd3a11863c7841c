"""What all experiments have in common: times measured in turns with the CPU alone, and the three files they leave."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hybrid.job.verdict import Comparison, Times, compare
from hybrid.results.atomic_write import atomic_write


class Measured:
    """A device against the CPU alone: every repeat's seconds, of both in turns."""

    cpu_only: Times
    hybrid: Times

    @cached_property
    def compared(self) -> Comparison:
        return compare(self.cpu_only, self.hybrid)

    @property
    def cpu_only_s(self) -> float:
        return self.compared.first_s

    @property
    def hybrid_s(self) -> float:
        return self.compared.second_s

    @property
    def gain(self) -> float:
        """Above 1: faster than the CPU alone; the quotient of the two times above."""
        return self.compared.gain

    @property
    def spread(self) -> tuple[float, float]:
        """The interval that the gain is in (hybrid/job/verdict.py)."""
        return self.compared.spread

    @property
    def pays(self) -> bool:
        """Faster for certain, and by more than counts as equal; what was measured once never is."""
        return self.compared.faster


def write_files(
    folder: Path, names: tuple[str, str, str], rows: Sequence[dict[str, Any]], whole: dict[str, Any], page: str
) -> None:
    """The rows as CSV, everything as JSON, and the page, each whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for name, content in zip(names, (text.getvalue(), json.dumps(whole, indent=1) + "\n", page), strict=True):
        atomic_write(folder / name, content)
