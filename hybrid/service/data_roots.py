"""Which files a client may name: those below the data roots, links followed; and which of them describe others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cpu_engine.errors import InputError
from cpu_engine.graph.formats import ldbc, sniff
from cpu_engine.graph.formats.reading import AUTO
from cpu_engine.graph.store.graph_store import is_store
from hybrid.service.http.problems import Problem

_NOT_THERE = "name a file below a data root, relative to it"


class DataRoots:
    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = [Path(folder).expanduser().resolve() for folder in folders]

    def find(self, name: str, format: str = AUTO) -> Path:
        """The real path of a file that exists below a root; Problem otherwise, the same for "no" and "not yours"."""
        if not self._folders:
            raise Problem(403, "no data root is configured", "set service.data_roots, or upload the graph")
        if "\0" in name or not name.strip():
            raise Problem(422, "this is no file name", _NOT_THERE)
        for folder in self._folders:
            real = self._inside(folder / name)
            if real is not None and _holds(real.exists):
                self._require_parts_inside(real, format)
                return real
        raise Problem(404, "there is no such file below a data root", _NOT_THERE)

    def _inside(self, path: Path) -> Path | None:
        try:
            real = path.resolve()
        except (OSError, RuntimeError):
            return None
        return real if any(real.is_relative_to(folder) for folder in self._folders) else None

    def _require_parts_inside(self, path: Path, format: str) -> None:
        """A description may name further files: they must be below a root as well."""
        if is_store(path):
            outside = [part for part in path.iterdir() if self._inside(part) is None]
        elif path.is_file():
            outside = [part for part in ldbc_parts(path, format) if self._inside(part) is None]
        else:
            raise Problem(422, "this is neither a file nor a stored graph", "name a graph file")
        if outside:
            raise Problem(403, "the graph refers to a file outside of the data roots", "put all its files below one")

    def listing(self, most: int = 500) -> list[str]:
        """Files that may be named, relative to their root."""
        found: list[str] = []
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                if len(found) >= most:
                    return found
                if _can_be_named(path) and _holds(path.is_file) and self._inside(path) is not None:
                    found.append(str(path.relative_to(folder)))
        return found


def _holds(question: Callable[[], bool]) -> bool:
    """False also for a name that is too long, or in a folder that this user may not look into."""
    try:
        return question()
    except OSError:
        return False


def _can_be_named(path: Path) -> bool:
    """Whether a client can write the name, which then is UTF-8, and is meant to."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return not path.name.startswith(".")


def ldbc_parts(path: Path, format: str = AUTO) -> list[Path]:
    """The files that an LDBC description names; none for other formats. A named ``format`` is not looked for."""
    try:
        described = ldbc.describe(path) if (sniff(path) if format == AUTO else format) == ldbc.NAME else None
    except (InputError, OSError):
        # Reading it will raise the error, which shows lines of these: they must be below a root for that.
        return [part for name in ("e", "v", "properties") if (part := ldbc.sibling(path, name)) is not None]
    if described is None:
        return []
    parts = (described.vertex_file, described.edge_file, described.properties_file)
    return [part for part in parts if part is not None]
