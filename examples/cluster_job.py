"""A job on several ranks, started from Python: mpirun cuts the graph, every rank searches its part, one result.

    python examples/cluster_job.py [RANKS]        on this machine; configs/hostfile_cluster.yaml is for several

The same from a shell: python run.py --config configs/cpu_only.yaml --set ranks=2
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def main(ranks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        settings = {
            "ranks": ranks, "graph.generator.scale": 12, "source": 1, "result.report": "false", "output": result,
        }  # fmt: skip
        command = [sys.executable, str(ROOT / "run.py"), "--config", str(ROOT / "configs" / "cpu_only.yaml")]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        subprocess.run(command, check=True, cwd=ROOT)
        summary = json.loads((result / "summary.json").read_text())
        vertex, level = np.load(result / "vertex.npy"), np.load(result / "level.npy")
    print(f"\ncertified: {summary['certified']}; {summary['reached']} reached in {summary['max_level']} steps")
    if "ranks" in summary:
        sent = summary["ranks"]["totals"]
        print(f"{summary['ranks']['ranks']} ranks sent {sent['bytes']} bytes in {sent['messages']} messages")
    amounts = np.bincount(level[level >= 0])
    print("vertices per level:", dict(enumerate(amounts.tolist())), "not reached:", int(np.count_nonzero(level < 0)))
    assert vertex.size == 2**12


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
