"""A graph kept as a folder of parts and a manifest, written and opened by all ranks at once.

    <folder>/manifest.json   P, policy, ranges, the input's fingerprint, and of each part its sizes and its digest
    <folder>/00000/ ...      one part each (partition/store.py), with positions and the user's ids beside it

Invariants: the folder is written under a temporary name and renamed when every part is in it, so that nothing half-
written has its name; where machines share no disk, each has a folder with the same manifest and its own ranks' parts.
A part is known by its digest: one that is damaged, or another graph's, is an InputError that names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cpu_engine.comm.agreement import agree, together
from cpu_engine.comm.collectives import RankInfo, barrier, broadcast_facts, share_facts
from cpu_engine.comm.requests import AllReduce, Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.distributed.assembly import BuiltPart
from cpu_engine.graph.distributed.build import build_on_ranks
from cpu_engine.graph.distributed.shares import Share
from cpu_engine.graph.distributed.stored_arcs import StoredPart, pieces_of
from cpu_engine.graph.partition.layout import Layout
from cpu_engine.graph.partition.part import Part
from cpu_engine.graph.partition.store import describe_layout, open_part_with, part_digest, part_name, save_part
from cpu_engine.graph.store.array_folder import (
    META_BYTES,
    TEMPORARY_PREFIX,
    retire,
    sweep,
    sync_directory,
    write_flushed,
)
from cpu_engine.graph.store.npy import open_regular
from cpu_engine.graph.store.removal import remove_tree

FORMAT_NAME = "tandem-parts"
FORMAT_VERSION = 1  # raised whenever the same graph would be cut or written differently
MANIFEST_NAME = "manifest.json"
_BESIDE = ("position_of", "user_ids", "isolated")
_REBUILD = "remove the folder; the parts are built again from the input"
_NUMBERS = ("n", "m", "parts", "threshold")


@dataclass(frozen=True, eq=False)
class Manifest:
    """What a folder of parts says of all of them."""

    layout: Layout
    fingerprint: str  # of the input and of the rules that it was built by
    vertices: int
    loops: int
    first: int | None
    meta: dict[str, Any]
    digests: tuple[str, ...]  # by part


# ------------------------------------------------------------------------------------------------ writing


def keep_parts(info: RankInfo, folder: Path, built: BuiltPart, fingerprint: str) -> Driver[None]:
    """Write all parts, each rank its own, instead of what may be there; if one rank cannot, nothing is kept."""
    token = yield from broadcast_facts(info, secrets.token_hex(6) if info.rank == 0 else None)
    temporary = folder.parent / f"{TEMPORARY_PREFIX}{folder.name}-{token}"
    made: list[Path] = []  # by this rank: one per file system

    def make_folder() -> None:
        if not temporary.is_dir():
            temporary.parent.mkdir(parents=True, exist_ok=True)
            sweep(temporary.parent)
            with contextlib.suppress(FileExistsError):  # another rank of this file system came first
                temporary.mkdir()
                made.append(temporary)

    try:
        for turn in (info.rank == 0, info.rank == info.first_here != 0, info.rank != info.first_here):
            yield from together(info, _on_disk(info, make_folder if turn else lambda: None, folder))
            yield from barrier()
        more = {name: np.ascontiguousarray(getattr(built, name), np.int64) for name in _BESIDE}
        digest = yield from together(info, _on_disk(info, lambda: save_part(temporary, built.part, more), folder))
        part = built.part
        mine = {"masters": part.masters, "mirrors": part.mirrors, "arcs": part.arcs, "digest": digest}
        parts = yield from share_facts(info, mine)

        def finish() -> None:
            if made:
                content = _manifest(built, fingerprint, parts)
                write_flushed(temporary / MANIFEST_NAME, [json.dumps(content, indent=1).encode()])
                sync_directory(temporary)
                retire(folder)
                os.rename(temporary, folder)
                sync_directory(folder.parent)

        yield from together(info, _on_disk(info, finish, folder))
    finally:
        for path in made:
            remove_tree(path)  # unless it has its name


def _on_disk(info: RankInfo, work: Callable[[], Any], folder: Path) -> Callable[[], Any]:
    """The work, whose OSError becomes an InputError."""

    def guarded() -> Any:
        try:
            return work()
        except OSError as error:
            where = f" on {info.host}" if info.hosts else ""
            raise InputError(
                f"rank {info.rank}{where} could not write its part ({error.strerror or error}); no part is kept",
                path=folder,
                fix="make room on that disk, or choose another folder",
            ) from error

    return guarded


def _manifest(built: BuiltPart, fingerprint: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    layout = built.part.layout
    content = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "fingerprint": fingerprint,
        "layout": {**describe_layout(layout), "weighted": layout.weighted, "ranges": layout.bounds.tolist()},
        "vertices": built.vertices,
        "loops": built.loops,
        "first": built.first,
        "graph": built.meta,
        "parts": parts,
    }
    return {**content, "checksum": _digest(content)}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


# ------------------------------------------------------------------------------------------------ opening


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of parts; FileNotFoundError if there is none, InputError if it is damaged."""
    file = folder / MANIFEST_NAME
    try:
        with open_regular(file) as stream:
            content = json.loads(stream.read(META_BYTES + 1))
        checksum = content.pop("checksum")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file, fix="check its permissions") from error
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise InputError("is not the manifest of a graph in parts, or torn", path=file, fix=_REBUILD) from error
    if content.get("format") != FORMAT_NAME or content.get("format_version") != FORMAT_VERSION:
        version = str(content.get("format_version"))[:20]
        raise InputError(f"is of another format or version ({version})", path=file, fix=_REBUILD)
    if checksum != _digest(content):
        raise InputError("is damaged: its checksum is another", path=file, fix=_REBUILD)
    try:
        told = content["layout"]
        numbers: dict[str, Any] = {name: int(told[name]) for name in _NUMBERS}
        bounds = np.array(told["ranges"], np.int64)
        layout = Layout(
            **numbers, policy=str(told["policy"]), grid=tuple(told["grid"]), bounds=bounds,
            owner_of=np.empty(0, np.uint16), weighted=bool(told["weighted"]),
        )  # fmt: skip
        digests = tuple(str(one["digest"]) for one in content["parts"])
        if len(digests) != layout.parts or bounds.size != layout.parts + 1:
            raise ValueError("parts")
        return Manifest(
            layout, str(content["fingerprint"]), int(content["vertices"]), int(content["loops"]), content["first"],
            content["graph"], digests,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"is incomplete or inconsistent at {error}", path=file, fix=_REBUILD) from error


def open_parts(info: RankInfo, folder: Path, checked: Path | None = None) -> Driver[BuiltPart | None]:
    """Each rank its own part, as it was kept by as many ranks; None if a rank has no such folder."""
    manifest = yield from _agreed_manifest(info, folder)
    if manifest is None:
        return None
    parts = manifest.layout.parts

    def look() -> StoredPart:
        if parts != info.size:
            fix = "deal the parts again, or start as many ranks"
            raise InputError(f"holds {parts} parts, and there are {info.size} ranks", path=folder, fix=fix)
        return _open_one(folder, manifest, info.rank, checked)

    found = yield from together(info, look)
    return BuiltPart(
        found.part, manifest.vertices, found.position_of, manifest.loops, found.user_ids, manifest.first,
        found.isolated, manifest.meta,
    )  # fmt: skip


def deal_again(
    info: RankInfo, folder: Path, policy: str, *, weighted: bool = False, checked: Path | None = None
) -> Driver[BuiltPart | None]:
    """Parts for this many ranks and this policy out of those in the folder, without the input; None as above."""
    manifest = yield from _agreed_manifest(info, folder)
    if manifest is None:
        return None
    share = yield from share_of_parts(info, folder, manifest, checked)
    built = yield from build_on_ranks(info, share, policy, drop_loops=False, drop_duplicates=False, weighted=weighted)
    return replace(built, loops=manifest.loops, meta=manifest.meta)


def share_of_parts(info: RankInfo, folder: Path, manifest: Manifest, checked: Path | None = None) -> Driver[Share]:
    """This rank's arcs of the parts that its machine has: those of each are shared by all ranks that see it."""
    parts = manifest.layout.parts
    here = [q for q in range(parts) if (folder / part_name(q)).is_dir()]
    seen = yield from share_facts(info, here)
    readers = [[rank for rank in range(info.size) if q in seen[rank]] for q in range(parts)]

    def look() -> list[StoredPart]:
        gone = [q for q in range(parts) if not readers[q]]
        if gone:
            path = folder / part_name(gone[0])
            raise InputError("this part of the graph is missing: no rank has it", path=path, fix=_REBUILD)
        return [
            _open_one(folder, manifest, q, checked, check=readers[q][q % len(readers[q])] == info.rank) for q in here
        ]

    found = yield from together(info, look)
    turns = [(readers[q].index(info.rank), len(readers[q])) for q in here]
    dtypes = {str(one.part.out_weight.dtype) for one in found if one.part.out_weight is not None and one.part.arcs}
    floats = yield AllReduce(np.array(["float64" in dtypes], np.int64), "max")
    dtype = None if not manifest.layout.weighted else "float64" if floats[0] else "int64"
    first, vertices = (0, None) if manifest.first is None else (manifest.first, manifest.vertices)
    return Share(
        first, vertices, bool(manifest.meta["directed"]), lambda: pieces_of(found, turns), dtype, manifest.layout.m,
        mirror=False, about={"path": str(folder)},
    )  # fmt: skip


def _agreed_manifest(info: RankInfo, folder: Path) -> Driver[Manifest | None]:
    """The manifest that every rank sees; None if one sees none."""
    manifest, error = None, None
    try:
        manifest = read_manifest(folder)
    except FileNotFoundError:
        pass
    except InputError as wrong:
        error = wrong
    yield from agree(info, error)
    marks = yield from share_facts(info, None if manifest is None else [manifest.fingerprint, *manifest.digests])
    if any(mark is None for mark in marks):
        return None

    def same() -> None:
        odd = [rank for rank in range(info.size) if marks[rank] != marks[0]]
        if odd:
            raise InputError(f"is another graph's at rank {odd[0]} than at rank 0", path=folder, fix=_REBUILD)

    yield from together(info, same)
    return manifest


def _open_one(folder: Path, manifest: Manifest, part: int, checked: Path | None, *, check: bool = True) -> StoredPart:
    path = folder / part_name(part)
    try:
        digest = part_digest(path)
    except FileNotFoundError as error:
        raise InputError("this part of the graph is missing", path=path, fix=_REBUILD) from error
    except (OSError, ValueError) as error:
        raise InputError(f"this part of the graph cannot be read: {error}", path=path, fix=_REBUILD) from error
    if digest != manifest.digests[part]:
        raise InputError("this part is damaged, or another graph's", path=path, fix=_REBUILD)
    opened, beside = open_part_with(folder, manifest.layout, part, _BESIDE, checked, check=check)
    _require_names(path, opened, beside)
    return StoredPart(opened, *(beside[name] for name in _BESIDE))


def _require_names(path: Path, part: Part, beside: dict[str, np.ndarray]) -> None:
    if any(beside[name].size != part.size for name in _BESIDE[:2]):
        raise InputError("the arrays do not fit together", path=path, fix=_REBUILD)
