"""An NPU worker of its own beside a job: both know nothing of each other but a directory (docs/reference/protocol.md).

Here both are started from one program; in earnest the worker is in another terminal, container or machine:

    python run.py worker --exchange /data/exchange
    python run.py --config configs/external_worker.yaml --set exchange.dir=/data/exchange

    python examples/external_worker.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = [sys.executable, str(ROOT / "run.py")]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        exchange, result = Path(folder) / "exchange", Path(folder) / "result"
        worker = subprocess.Popen(
            [*RUN, "worker", "--exchange", str(exchange), "--device", "cpu"],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            settings = {
                "exchange.dir": exchange, "output": result, "graph.generator.scale": 12, "source": "random:2",
                "compare.enabled": "false", "result.report": "false",
            }  # fmt: skip
            job = [*RUN, "--config", str(ROOT / "configs" / "external_worker.yaml")]
            for name, value in settings.items():
                job += ["--set", f"{name}={value}"]
            subprocess.run(job, check=True, cwd=ROOT)
            summary = json.loads((result / "summary.json").read_text())
        finally:
            worker.terminate()
            worker.wait()
    npu = summary["npu"]
    print(f"\nworker on {npu['device']}: {npu['outcome']}; {npu['values_adopted']} values taken from it")
    print(f"certified: {summary['certified']}")


if __name__ == "__main__":
    main()
