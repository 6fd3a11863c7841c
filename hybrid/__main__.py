"""``python -m hybrid``: the same program as ``tandem``."""

import sys

from hybrid.cli import main

sys.exit(main())
