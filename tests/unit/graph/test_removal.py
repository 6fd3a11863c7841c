"""Removing what is in the way: any depth, no link followed, and what is not removable is left without a word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cpu_engine.graph.store import array_folder, removal
from cpu_engine.graph.store.array_folder import retire, sweep
from cpu_engine.graph.store.removal import remove_tree

DEEP = "d/" * 1500


def nested(folder: Path) -> Path:
    """A directory of 1,500 levels, with files, and links to what must stay."""
    kept = folder / "kept"
    kept.mkdir(exist_ok=True)
    (kept / "file").write_text("stays")
    tree = folder / ".tmp-x-1-0"
    subprocess.run(["mkdir", "-p", tree / DEEP, tree / "wide" / "a", tree / "wide" / "b"], check=True)
    for place in (tree, tree / "d", tree / "wide" / "a"):
        (place / "link").symlink_to(kept)
        (place / "file").write_text("goes")
    os.mkfifo(tree / "wide" / "pipe")
    return tree


def require_kept(folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["kept"]
    assert (folder / "kept" / "file").read_text() == "stays"


def test_any_depth_is_removed_and_no_link_followed(tmp_path: Path) -> None:
    remove_tree(nested(tmp_path))
    require_kept(tmp_path)


def test_leftovers_of_any_depth_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_folder, "ABANDONED_AFTER_S", -1)
    nested(tmp_path)
    sweep(tmp_path)
    require_kept(tmp_path)


def test_what_is_retired_may_be_anything(tmp_path: Path) -> None:
    retire(nested(tmp_path))
    link = tmp_path / "entry"
    link.symlink_to(tmp_path / "kept")
    retire(link)
    link.write_text("a file")
    retire(link)
    retire(link)  # nothing
    require_kept(tmp_path)


def test_a_link_to_a_directory_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_folder, "ABANDONED_AFTER_S", -1)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("stays")
    link = tmp_path / ".tmp-link"
    link.symlink_to(tmp_path / "kept")
    sweep(tmp_path)
    remove_tree(link)
    remove_tree(tmp_path / "absent")
    assert (link / "file").read_text() == "stays"


def test_what_cannot_be_removed_ends_the_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, unlink = nested(tmp_path), os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "file":
            raise PermissionError("not ours")
        unlink(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(removal.os, "unlink", refuse)
        remove_tree(tree)
    assert (tree / "file").read_text() == "goes"
    assert len(list(tree.rglob("file"))) == 3
    remove_tree(tree)
    require_kept(tmp_path)
