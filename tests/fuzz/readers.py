"""Hostile graph files: every format, damaged, cut, packed, or made of words that readers know.

One case is one file. A reader returns an edge list that can be built, or raises InputError with one printable line.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cpu_engine.errors import InputError
from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.build.extent import path_extent
from cpu_engine.graph.formats import read_graph, sniff
from tests.fuzz import require_one_line

SAMPLES = Path(__file__).parent.parent / "graphs"
WORDS = [
    b"0", b"1", b"-1", b"2147483648", b"9223372036854775807", b"18446744073709551616", b"9" * 40, b"1e308", b"nan",
    b"inf", b" ", b"\t", b"\n", b"\r\n", b",", b"#", b"%", b"c", b"p sp 3 2", b"a 1 2 3",
    b"%%MatrixMarket matrix coordinate", b"real", b"pattern", b"symmetric", b"general", b"3 3 2", b"WEIGHTED",
    b"graph.x.directed = true",
    b"graph.x.edge-file = ../x", b"graph.x.vertex-file = \0", b"# Nodes: 3 Edges: 2", b"\x00", b"\xff", b"\x1b[2J",
    b"\xef\xbb\xbf", b"\x1f\x8b", b"\xfd7zXZ\x00", b"AdjacencyGraph", b"WeightedAdjacencyGraph", b" " * 300,
]  # fmt: skip
_folder = Path()
_samples: list[tuple[str, bytes]] = []


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """A folder for all cases, and the samples in memory; one read of each compiles the readers."""
    global _folder
    _samples[:] = [(file.name, file.read_bytes()) for file in sorted(SAMPLES.iterdir())]
    for file in sorted(SAMPLES.iterdir()):
        with contextlib.suppress(InputError):
            for directed in (True, False):
                build_graph(read_graph(file), directed=directed)
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-") as folder:
        _folder = Path(folder)
        yield


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content after a few random changes."""
    text = bytearray(content)
    for _ in range(rng.choice([0, 1, 1, 2, 5, 20])):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(text):
            text[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del text[at : at + rng.choice([1, 2, 8, 100])]
        elif kind == 2:
            text[at:at] = rng.choice(WORDS)
        elif kind == 3:
            text[at : at + 8] = rng.randbytes(8)
        else:
            text[at:at] = text[: rng.randrange(64)] * rng.choice([1, 3])
    return bytes(text)


def as_parts(rng: random.Random, file: Path, content: bytes) -> Path:
    """The file in pieces, in a folder with what else may lie in one; the folder, or a pattern."""
    folder = _folder / "parts"
    folder.mkdir()
    at = rng.randrange(len(content) + 1)
    for name, part in (("a", content[:at]), ("b", content[at:]), (rng.choice(["_c", "\x1b[2J", "\udcff"]), content)):
        part = rng.choice([part, part, damaged(rng, part), gzip.compress(part)])
        (folder / name).write_bytes(part)
    kind = rng.randrange(12)
    if kind == 0:
        os.mkfifo(folder / "pipe")
    elif kind == 1:
        (folder / "link").symlink_to(rng.choice(["link", "absent", "/dev/zero", str(file), "."]))
    elif kind == 2:
        (folder / "inner").mkdir()
    return rng.choice(
        [folder, folder, folder / "*", folder / "[a-b]", _folder / "p?rts" / "*", folder / "**", folder / "["]
    )


def case(rng: random.Random) -> None:
    """Read one hostile file, by its content or by a format that it may not have."""
    name, content = rng.choice(_samples)
    if rng.random() < 0.15:
        content = b"".join(rng.choice(WORDS) + rng.choice([b" ", b"\n", b""]) for _ in range(rng.randrange(40)))
    content = damaged(rng, content)
    if rng.random() < 0.1:
        content = damaged(rng, rng.choice([gzip.compress, lzma.compress])(content))
    file = _folder / name
    file.write_bytes(content)
    path = file if rng.random() < 0.85 else as_parts(rng, file, content)
    formats = [
        "auto",
        "auto",
        "auto",
        "edge-list",
        "matrix-market",
        "metis",
        "galois",
        "gap",
        "dimacs",
        "ldbc",
        "graph500",
        "adjacency",
    ]
    try:
        with contextlib.suppress(InputError):
            sniff(file)
        with contextlib.suppress(InputError):
            path_extent(path, rng.choice(formats))
        edges = read_graph(path, format=rng.choice(formats))
        if edges.src.size < 10_000:
            build_graph(edges, directed=rng.choice([True, False, None]))
    except InputError as error:
        require_one_line(error)
    finally:
        file.unlink(missing_ok=True)
        shutil.rmtree(_folder / "parts", ignore_errors=True)
