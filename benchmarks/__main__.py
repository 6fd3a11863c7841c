"""``python -m benchmarks NAME ...`` is ``python run.py bench NAME ...``."""

from __future__ import annotations

import sys

from hybrid.cli import main

sys.exit(main(["bench", *sys.argv[1:]]))
