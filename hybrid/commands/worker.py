"""``worker``: hands over to ``python -m npu_engine``, the program that a launched worker runs as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import exchange


def execute(words: list[str]) -> NoReturn:
    """Become the worker: same process, none of the coordinator's modules."""
    root = str(Path(exchange.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.execv(sys.executable, [sys.executable, "-m", "npu_engine", *words])
