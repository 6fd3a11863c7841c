"""``worker``: hands over to npu_engine, the program that a launched worker runs as well."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from exchange.isolated import isolated_command


def execute(words: list[str], program: str) -> NoReturn:
    """Become the worker: same process, none of the coordinator's modules. ``program``: its name in usage lines."""
    os.execv(sys.executable, [*isolated_command("npu_engine"), "--program", program, *words])  # noqa: S606 - our own module, no shell
