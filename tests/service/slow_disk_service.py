"""``run.py`` on a disk that stands still while the file named by the first argument is there, for 100 s at most.

While something waits for the disk, there is a file of that name with ``.waits`` added.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from hybrid.cli import main

if __name__ == "__main__":
    hold = Path(sys.argv[1])
    waits = hold.with_name(f"{hold.name}.waits")
    flush = os.fsync

    def slow(descriptor: int) -> None:
        until = time.monotonic() + 100
        while hold.exists() and time.monotonic() < until:
            waits.touch()
            time.sleep(0.01)
        waits.unlink(missing_ok=True)
        flush(descriptor)

    os.fsync = slow
    sys.exit(main(sys.argv[2:]))
