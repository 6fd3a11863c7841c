"""``python run.py --config configs/cluster.yaml``: the same program as the ``tandem`` command."""

import sys

from hybrid.cli import main

if __name__ == "__main__":
    sys.exit(main())
