"""Hostile stores: headers, contents and meta.json of a stored graph, changed at random, with checksums that fit or not.

One case opens one store. It is refused with an InputError of one printable line, or it is a graph: every kernel may
trust it, which a search with its certificate shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cpu_engine.bfs.asynchronous import AsyncBfs
from cpu_engine.bfs.certificate import certify
from cpu_engine.bfs.traversal import CoreSplit
from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.generators import kronecker
from cpu_engine.graph.store.array_folder import array_checksum
from cpu_engine.graph.store.graph_store import is_store, open_store, save_store
from cpu_engine.graph.store.npy import map_npy, open_regular
from hybrid.offload.traverse import traverse_alone
from tests.fuzz import require_one_line
from tests.fuzz.readers import damaged

VALUES = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    1e300,
    "",
    "x",
    "\x1b[2J",
    [],
    {},
    [[[[]]]],
    "int8",
    "int32",
    "crc32:0",
]
_base = Path()


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Two stores, one of each direction, that every case copies."""
    global _base
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-", dir=memory if memory.is_dir() else None) as folder:
        _base = Path(folder)
        for name, directed in (("directed", True), ("undirected", False)):
            save_store(build_graph(kronecker(5, 4), directed=directed), _base / name)
            search(_base / name)
        yield


def search(path: Path) -> None:
    """Open and search; the certificate must hold."""
    graph = open_store(path)
    if graph.n:
        found = traverse_alone(AsyncBfs(CoreSplit(graph)), 0)
        assert certify(graph, found.level, found.parent, 0).holds
        graph.edge_list()


def change_array(rng: random.Random, store: Path) -> None:
    """Bytes anywhere, or one value; then perhaps a checksum that fits."""
    file = rng.choice(sorted(store.glob("*.npy")))
    if rng.random() < 0.5:
        with open_regular(file) as stream:
            content = damaged(rng, stream.read())
        file.write_bytes(content)
    else:
        array = np.array(map_npy(file))
        for _ in range(rng.choice([1, 1, 2, 5])):
            value = rng.choice([-1, 0, 1, 2, array.size, 2**31 - 1, int(rng.choice(array))])
            array[rng.randrange(array.size)] = value
        np.save(file, array)
    if rng.random() < 0.7:
        with contextlib.suppress(ValueError, OSError):
            array = np.asarray(map_npy(file))
            edit(store, lambda meta: meta["arrays"][file.stem].update(checksum=array_checksum(array)))
            edit(store, lambda meta: meta["arrays"][file.stem].update(bytes=file.stat().st_size))


def edit(store: Path, change: object) -> None:
    """Change meta.json, if it can still be read."""
    file = store / "meta.json"
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        with open_regular(file) as stream:
            meta = json.loads(stream.read(1 << 20))
        change(meta)  # type: ignore[operator]
        file.write_text(json.dumps(meta))


def change_meta(rng: random.Random, store: Path) -> None:
    """A value somewhere in meta.json, or bytes of it."""
    if rng.random() < 0.3:
        with open_regular(store / "meta.json") as stream:
            content = stream.read(1 << 20)
        (store / "meta.json").write_bytes(damaged(rng, content))
        return

    def change(meta: dict) -> None:
        where = meta
        while True:
            key = rng.choice(sorted(where))
            if isinstance(where[key], dict) and where[key] and rng.random() < 0.8:
                where = where[key]
                continue
            where[key] = rng.choice(VALUES)
            return

    edit(store, change)


def change_files(rng: random.Random, store: Path) -> None:
    """A file that is missing, another's, a link, a FIFO, or too short."""
    file = rng.choice(sorted(store.iterdir()))
    kind = rng.randrange(5)
    if kind == 0:
        file.unlink()
    elif kind == 1:
        os.replace(rng.choice(sorted(store.iterdir())), file)
    elif kind == 2:
        file.unlink()
        os.mkfifo(file)
    elif kind == 3:
        os.truncate(file, rng.randrange(file.stat().st_size))
    else:
        file.unlink()
        file.symlink_to(rng.choice(["/dev/zero", "/dev/null", file.name, "absent"]))


def case(rng: random.Random) -> None:
    """Open one changed store."""
    store = _base / "case"
    shutil.copytree(_base / rng.choice(["directed", "undirected"]), store)
    try:
        for _ in range(rng.choice([1, 1, 2])):
            with contextlib.suppress(OSError, ValueError):  # what the last change left cannot be changed further
                rng.choices([change_array, change_meta, change_files], [5, 3, 1])[0](rng, store)
        is_store(store)
        search(store)
    except InputError as error:
        require_one_line(error)
    finally:
        shutil.rmtree(store)
