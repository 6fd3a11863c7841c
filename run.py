"""``python run.py --config configs/cluster.yaml``: the same program as the ``tandem`` command."""

import sys
from pathlib import Path

OURS = ("hybrid", "cpu_engine", "npu_engine", "exchange", "benchmarks")


def start() -> int:
    """The command; a Python without Tandem's packages is told which one has them."""
    try:
        from hybrid.cli import main

        return main()
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in OURS:
            raise
        folder = Path(__file__).resolve().parent
        python = folder / ".venv" / "bin" / "python"
        fix = f"`make run` in {folder} makes an environment with everything"
        if python.exists() and Path(sys.prefix) != folder / ".venv":
            fix = f"use the environment's Python: {python} run.py ..."
        print(f"tandem: error: {sys.executable} has no package {missing.name}. Fix: {fix}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(start())
