"""``run.py`` with engines that are wrong: the first argument names the algorithms, the others are the command."""

from __future__ import annotations

import sys

from hybrid.cli import main
from tests.damage import break_engine

if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        break_engine(name)
    sys.exit(main(sys.argv[2:]))
