"""Several files read as one graph: the same edges as in one file, and errors that name the part."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_engine.errors import InputError
from cpu_engine.graph import memory
from cpu_engine.graph.formats import read_graph, rows
from cpu_engine.graph.formats.bounds import Bounds, TooLarge, bounded
from cpu_engine.graph.formats.part_files import files_of, name_of
from cpu_engine.graph.store.cache import file_digest
from hybrid.cli import main
from hybrid.config import load_config
from hybrid.errors import EXIT_OK
from hybrid.graphs.opening import open_graph
from hybrid.results.trace import Trace


def write_parts(folder: Path, lines: list[str], cuts: list[int], packed: list[bool]) -> Path:
    """Cut the lines at the given places into part files, some of them packed."""
    folder.mkdir(parents=True)
    bounds = [0, *sorted(cuts), len(lines)]
    for i, (start, end) in enumerate(pairwise(bounds)):
        text = "".join(f"{line}\n" for line in lines[start:end]).encode()
        (folder / f"part-{i:05d}").write_bytes(gzip.compress(text) if packed[i % len(packed)] else text)
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.crc").write_bytes(b"\x01\x02")
    return folder


edges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=60)


@settings(max_examples=40, deadline=None)
@given(pairs=edges, data=st.data())
def test_parts_are_the_graph_of_one_file(tmp_path_factory, pairs, data):
    lines = [f"{a} {b}" for a, b in pairs]
    cuts = data.draw(st.lists(st.integers(0, len(lines)), max_size=4))
    packed = data.draw(st.lists(st.booleans(), min_size=1, max_size=3))
    folder = write_parts(tmp_path_factory.mktemp("graph") / "edges", lines, cuts, packed)
    whole = folder.parent / "whole.txt"
    whole.write_text("\n".join(lines) + "\n")
    for path in (folder, folder / "part-*", folder.parent / "*" / "part-0*"):
        parts, one = read_graph(path, format="edge-list"), read_graph(whole, format="edge-list")
        assert np.array_equal(parts.src, one.src)
        assert np.array_equal(parts.dst, one.dst)
        assert (parts.weight, parts.directed) == (None, one.directed)


def test_weights_and_the_stated_direction_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 5\n2 3 7\n")
    (tmp_path / "b.txt").write_text("# Undirected graph\n3 4 2.5\n")
    (tmp_path / "c.txt").write_text("")
    read = read_graph(tmp_path)
    assert read.weight is not None
    assert read.weight.tolist() == [5.0, 7.0, 2.5]
    assert read.directed is False
    assert read.path == str(tmp_path)
    assert read.notes[0] == "3 files read as one graph"


def test_progress_counts_the_bytes_of_all_files(tmp_path):
    folder = write_parts(tmp_path / "edges", [f"{i} {i + 1}" for i in range(100)], [30, 60], [False])
    seen: list[tuple[int, int]] = []
    read_graph(folder, progress=lambda done, total: seen.append((done, total)))
    size = sum(file.stat().st_size for file in files_of(folder))
    assert {total for _, total in seen} == {size}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == size


@pytest.mark.parametrize(
    ("contents", "named", "told"),
    [
        ({"a.txt": "1 2\n", "b.txt": "2 3\n3 x\n"}, "b.txt:2", "vertex id"),
        ({"a.txt": "1 2\n", "b.txt": "2 3 4\n3 4 5\n"}, "b.txt", "has weights, but a.txt has none"),
        ({"a.txt": "1 2 9\n", "b.txt": "2 3\n3 4\n"}, "b.txt", "has no weights, but a.txt has some"),
        (
            {"a.txt": "# Directed graph\n1 2\n", "b.txt": "# Undirected graph\n2 3\n"},
            "b.txt",
            "undirected, but a.txt is directed",
        ),
        ({"a.txt": "1 2\n2 3\n", "b.gr": "p sp 2 1\na 1 2 3\n"}, "b.gr", "looks like dimacs, but a.txt like edge-list"),
        ({"a.gr": "p sp 2 1\na 1 2 3\n", "b.gr": "p sp 2 1\na 1 2 3\n"}, "", "format dimacs cannot be read as one"),
        ({"a.txt": "1 2\n", "more/b.txt": "1 2\n"}, "more", "is a directory among the part files"),
    ],
)
def test_an_error_names_the_part(tmp_path, contents, named, told):
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_graph(tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path / named) in str(caught.value)
    assert caught.value.fix


def test_a_damaged_packed_part_is_named(tmp_path):
    folder = write_parts(tmp_path / "edges", [f"{i} {i + 1}" for i in range(2000)], [900], [True])
    torn = folder / "part-00001"
    torn.write_bytes(torn.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"part-00001: the gzip data ends in the middle"):
        read_graph(folder)


def test_a_pattern_without_a_file_and_an_empty_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file fits this pattern"):
        read_graph(tmp_path / "*.txt")
    with pytest.raises(InputError, match="is an empty directory, not a graph"):
        read_graph(tmp_path)


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    odd = tmp_path / "edges[1].txt"
    odd.write_text("1 2\n")
    assert files_of(odd) == [odd]
    assert name_of(odd) == "edges[1].txt"
    assert name_of(Path("crawl/2026-*/part-*.gz")) == "crawl"


def test_a_changed_part_rebuilds_the_kept_graph(tmp_path):
    folder = write_parts(tmp_path / "edges", ["1 2", "2 3", "3 4"], [1], [False])
    settings = [f"graph.path={folder}", f"graph.cache_dir={tmp_path / 'cache'}"]
    config = load_config(None, settings).graph
    first = open_graph(config, Trace())
    assert first.name == "edges"
    assert first.graph.user_ids.size == 4
    (folder / "part-00001").write_text("2 3\n3 4\n4 5\n")
    assert open_graph(config, Trace()).graph.user_ids.size == 5
    (folder / "part-00002").write_text("5 6\n")
    assert open_graph(config, Trace()).graph.user_ids.size == 6


def test_the_command_line_takes_a_folder_and_a_pattern(tmp_path, capsys):
    folder = write_parts(tmp_path / "edges", ["1 2", "2 3", "3 4"], [1, 2], [True, False])
    for path in (folder, f"{folder}/part-*"):
        assert main(["info", str(path)]) == EXIT_OK
        assert "edges: 4 vertices (0 isolated), ids 1..4, 3 directed edges" in capsys.readouterr().out
    assert main(["convert", str(folder), str(tmp_path / "whole.el")]) == EXIT_OK
    assert read_graph(tmp_path / "whole.el").edge_count == 3


def spoil(folder: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(folder / "part")
    elif kind == "folder":
        (folder / "part").mkdir()
    elif kind == "bomb":
        (folder / "part").write_bytes(gzip.compress(b"1 2\n" * 100_000))
    else:
        (folder / "part").symlink_to({"loop": "part", "device": "/dev/zero", "absent": "nothing"}[kind])


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "absent"])
@pytest.mark.parametrize("pattern", ["", "p*", "**"])
def test_a_part_that_is_no_file_is_an_error_that_names_it(tmp_path, kind, pattern):
    """And nothing waits for it: neither a reader, nor what takes the digest for the cache."""
    folder = tmp_path / "edges"
    folder.mkdir()
    (folder / "a").write_text("0 1\n")
    (folder / "p").write_text("1 2\n")
    spoil(folder, kind)
    graph = load_config(None, [f"graph.path={folder / pattern}", f"graph.cache_dir={tmp_path / 'cache'}"]).graph
    for attempt in (lambda: read_graph(folder / pattern), lambda: open_graph(graph, Trace())):
        with pytest.raises(InputError) as caught:
            attempt()
        assert str(folder / "part") in str(caught.value)
        assert "empty" not in str(caught.value)


def test_no_digest_is_taken_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        file_digest(tmp_path / "pipe", tmp_path / "cache")


def test_a_packed_part_is_held_to_the_bounds_and_to_the_memory(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("0 1\n")
    spoil(tmp_path, "bomb")
    with bounded(Bounds(edges=50_000, vertices=10, text_bytes=1 << 20, line_bytes=100)), pytest.raises(TooLarge):
        read_graph(tmp_path)
    together = Bounds(edges=100_000, vertices=10, text_bytes=1 << 20, line_bytes=100)
    with bounded(together), pytest.raises(TooLarge):  # each part alone is small enough
        read_graph(tmp_path)
    little = tmp_path.with_name("meminfo")
    little.write_text("MemAvailable: 100 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", little)
    monkeypatch.setattr(rows, "ASKED_BYTES", 1 << 18)
    with pytest.raises(InputError, match="reading more of the edges needs about"):
        read_graph(tmp_path)


def test_names_of_parts_cannot_write_to_the_terminal(tmp_path, capsys):
    folder = tmp_path / "edges"
    folder.mkdir()
    for name in (b"a\x1b[2J\xff", b"b\x1b[31m"):
        (folder / os.fsdecode(name)).write_text("# Edges: 7\n0 1\n")
    assert main(["info", str(folder), "--set", f"graph.cache_dir={tmp_path / 'cache'}"]) == EXIT_OK
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "Edges: 7" in shown.err
