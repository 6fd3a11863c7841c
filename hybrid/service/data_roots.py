"""Which files a client may name: those below the data roots, links followed; and which of them describe others."""

from __future__ import annotations

from pathlib import Path

from cpu_engine.errors import InputError
from cpu_engine.graph.formats import ldbc, sniff
from cpu_engine.graph.store.graph_store import is_store
from hybrid.service.http.problems import Problem

_NOT_THERE = "name a file below a data root, relative to it"


class DataRoots:
    """The folders below which graphs may be opened."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = [Path(folder).expanduser().resolve() for folder in folders]

    def find(self, name: str) -> Path:
        """The real path of a file that exists below a root; Problem otherwise, the same for "no" and "not yours"."""
        if not self._folders:
            raise Problem(403, "no data root is configured", "set service.data_roots, or upload the graph")
        if "\0" in name or not name.strip():
            raise Problem(422, "this is no file name", _NOT_THERE)
        for folder in self._folders:
            real = self._inside(folder / name)
            if real is not None and _exists(real):
                self._require_parts_inside(real)
                return real
        raise Problem(404, "there is no such file below a data root", _NOT_THERE)

    def _inside(self, path: Path) -> Path | None:
        try:
            real = path.resolve()
        except (OSError, RuntimeError):
            return None
        return real if any(real.is_relative_to(folder) for folder in self._folders) else None

    def _require_parts_inside(self, path: Path) -> None:
        """A description may name further files: they must be below a root as well."""
        if is_store(path):
            outside = [part for part in path.iterdir() if self._inside(part) is None]
        elif path.is_file():
            outside = [part for part in ldbc_parts(path) if self._inside(part) is None]
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
                if _can_be_named(path) and _is_file(path) and self._inside(path) is not None:
                    found.append(str(path.relative_to(folder)))
        return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for the file system
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # in a folder that this user may not look into
        return False


def _can_be_named(path: Path) -> bool:
    """Whether a client can write the name, which then is UTF-8, and is meant to."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return not path.name.startswith(".")


def ldbc_parts(path: Path) -> list[Path]:
    """The files that an LDBC description names; none for other formats."""
    try:
        described = ldbc.describe(path) if sniff(path) == ldbc.NAME else None
    except (InputError, OSError):
        return []  # reading it will raise the error
    if described is None:
        return []
    parts = (described.vertex_file, described.edge_file, described.properties_file)
    return [part for part in parts if part is not None]
