"""``run.py`` of a Tandem that has the toy."""

from __future__ import annotations

import sys

from hybrid.registry import ALGORITHMS, Entry

if __name__ == "__main__":
    ALGORITHMS["degrees"] = Entry("tests.toy.degrees:Degrees")  # the one line
    from hybrid.cli import main  # after it, as a line in the registry would be

    sys.exit(main(sys.argv[1:]))
