"""A worker's end of an exchange directory: files in, arrays out, and the other way round. No decisions.

Invariant: the order of writing. data before ok.flag, each whole or absent; ok.flag announces the answer. What is read
in a round belongs to the user who made the round's directory: a link to another user's file is never read.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.codec import binary, payload, text
from exchange.codec.payload import CoreFile, Question
from exchange.errors import ExchangeError, RoundGone
from exchange.filesystem.disk import DISK, Disk, disk_error
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import read_owner
from exchange.protocol import layout
from exchange.protocol.layout import Format
from exchange.protocol.programs import ProgramFacts, Rows
from exchange.worker_facts import FACTS_BYTES, encode_facts

DEFAULT_MAX_BYTES = 1 << 30
# What opening a link, a file or a directory of a user who shares nothing gives: none of them is a coordinator's round.
_NO_ROUND = (errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM)
CoreIdentity = tuple[int, int, int, int]


class WorkerMailbox:
    """A worker's end. It needs no lock: rounds are announced to any worker that serves the directory.

    ``ignore_old_stop``: a stop.flag that is there already when this object is made was meant for an earlier worker.
    Right for a worker started by hand; a worker started by a coordinator leaves it False, since its coordinator took
    old flags away before and may have stopped again since.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        durable: bool = False,
        ignore_old_stop: bool = False,
        disk: Disk = DISK,
    ) -> None:
        self.directory = Path(directory)
        self._max_bytes, self._durable, self._disk = max_bytes, durable, disk
        self._facts: dict[str, object] = {"pid": os.getpid(), "host": socket.gethostname()}
        self._over: set[str] = set()
        self._indexed: set[str] = set()
        self._top: Folder | None = None
        self._round: Folder | None = None  # the round or core that was looked at last
        self._old_stop = self._stop_identity() if ignore_old_stop else None

    def announce(self, **facts: object) -> None:
        """Write worker.json: pid and host, the facts announced before, and these."""
        self._facts.update(facts)
        self._open_top().write(layout.WORKER_FACTS, encode_facts(self._facts), durable=self._durable)

    def close(self) -> None:
        """Give the descriptors back."""
        for folder in (self._round, self._top):
            if folder is not None:
                folder.close()
        self._round = self._top = None

    def pending_rounds(self) -> list[str]:
        """Announced rounds without answer and not abandoned, lowest number first.

        Only those of the job that owns the directory, as far as owner.lock names it: no job waits
        for what a dead one left.
        """
        top = self._open_top()
        owner = read_owner(top).get("token")
        listed = top.rounds()
        self._over.intersection_update(listed)  # forget what is removed, so that this set does not grow for ever
        pending: list[str] = []
        for round_id in listed:
            parts = layout.parse_round_id(round_id)
            if round_id in self._over or (owner is not None and parts is not None and parts.token != owner):
                continue
            try:
                with top.folder(round_id) as folder:
                    names = folder.names()
            except RoundGone:
                continue
            except ExchangeError as error:
                if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_ROUND:
                    raise
                self._over.add(round_id)
                continue
            if layout.OK_FLAG in names or layout.STOP_FLAG in names:
                self._over.add(round_id)
            elif layout.value_name("text") in names or layout.value_name("binary") in names:
                pending.append(round_id)
        return pending

    def core_identity(self, round_id: str) -> CoreIdentity:
        """What a core file is known by (device, inode, size, mtime), from a mere stat: links share it."""
        folder = self._folder(round_id)
        return self._identity(folder, layout.mind_graph_name(_format(folder)))

    def load_core(self, round_id: str) -> tuple[CoreFile, CoreIdentity]:
        """The core with its weights, of whichever type, and the file's identity."""
        folder = self._folder(round_id)
        return self._load_core(folder, _format(folder))

    def load_question(self, round_id: str) -> Question:
        """The round: its program, and pairs or rows."""
        folder = self._folder(round_id)
        format = _format(folder)
        path = folder.path / layout.value_name(format)
        data = folder.read(path.name, self._max_bytes, owner=folder.uid)
        meta = None
        if format == "binary" and folder.has(layout.VALUE_META):
            raw = folder.read(layout.VALUE_META, FACTS_BYTES, owner=folder.uid)
            meta = text.parse_header(raw, folder.path / layout.VALUE_META)
        question = payload.parse_question(format, data, meta, path, self._max_bytes)
        if question.header.get("round", round_id) != round_id:
            raise ExchangeError(
                "these values belong to another round",
                path=path,
                value=question.header["round"],
                fix="name the round's own directory in its `# round` line, or leave the line out",
            )
        return question

    def write_data(self, round_id: str, pairs: npt.NDArray[np.integer], header: payload.Facts) -> None:
        """Write the answer to pairs, in the format of the question. Not yet the flag."""
        folder = self._folder(round_id)
        facts: dict[str, str | int | float] = {"round": round_id, **header}
        if _format(folder) == "text":
            self._write_answer(folder, "text", text.encode_pairs(pairs, facts), None)
        else:
            self._write_answer(folder, "binary", binary.encode_pairs(pairs), text.encode_header(facts))

    def write_rows(self, round_id: str, program: ProgramFacts, rows: Rows, header: payload.Facts) -> None:
        """Write the answer to rows, in the format of the question. Not yet the flag."""
        folder = self._folder(round_id)
        format = _format(folder)
        facts: dict[str, str | int | float] = {"round": round_id, **header}
        written = payload.encode_rows(format, program, rows, facts, every_vertex=not program.closes)
        self._write_answer(folder, format, *written)

    def _write_answer(self, folder: Folder, format: Format, data: bytes, meta: bytes | None) -> None:
        if meta is not None:
            folder.write(layout.DATA_META, meta, durable=self._durable)
        folder.write(layout.data_name(format), data, durable=self._durable)

    def create_ok(self, round_id: str) -> None:
        """Announce the answer, which must have been written."""
        self._folder(round_id).create_flag(layout.OK_FLAG)
        self._over.add(round_id)

    # ------------------------------------------------------------------------------------ indexes

    def pending_indexes(self) -> list[str]:
        """Cores whose index is asked for, by name; as for rounds, only those of the job that owns the directory."""
        top = self._open_top()
        owner = read_owner(top).get("token")
        listed = top.names()
        self._indexed.intersection_update(listed)
        pending: list[str] = []
        for name in sorted(listed):
            token = layout.core_token(name)
            if token is None or name in self._indexed or (owner is not None and token != owner):
                continue
            try:
                with top.folder(name) as folder:
                    names = folder.names()
            except ExchangeError:  # gone in this moment, or no directory
                continue
            if layout.OK_FLAG in names or layout.STOP_FLAG in names:
                self._indexed.add(name)
            elif layout.INDEX_REQUEST in names:
                pending.append(name)
        return pending

    def load_indexed_core(self, name: str) -> tuple[CoreFile, CoreIdentity]:
        """The core of a pending index, and the file's identity."""
        folder = self._core(name)
        return self._load_core(folder, _indexed_format(folder))

    def indexed_size(self, name: str) -> int:
        """The k of a pending index: its request says `# core k`."""
        folder = self._core(name)
        path = folder.path / layout.INDEX_REQUEST
        header = text.parse_header(folder.read(path.name, FACTS_BYTES, owner=folder.uid), path)
        k = payload.core_size(header, path)
        if k * k > self._max_bytes:
            raise ExchangeError(
                f"an index of {k} x {k} bytes is over the limit of {self._max_bytes}",
                path=path,
                fix="ask for a smaller core",
            )
        return k

    def indexed_identity(self, name: str) -> CoreIdentity:
        folder = self._core(name)
        return self._identity(folder, layout.mind_graph_name(_indexed_format(folder)))

    def write_index(self, name: str, distance: npt.NDArray[np.uint8], header: payload.Facts) -> None:
        """Write index and facts, then the flag that announces them."""
        folder = self._core(name)
        folder.write(layout.INDEX_META, text.encode_header(header), durable=self._durable)
        folder.write(layout.INDEX, binary.encode_array(distance), durable=self._durable)
        folder.create_flag(layout.OK_FLAG)
        self._indexed.add(name)

    def skip_index(self, name: str) -> None:
        """Never look at this one again."""
        self._indexed.add(name)

    def index_abandoned(self, name: str) -> bool:
        """Whether the job no longer waits for this index."""
        try:
            return _is_abandoned(self._core(name))
        except ExchangeError:
            return True

    # ------------------------------------------------------------------------------------ the end

    def stop_requested(self) -> bool:
        """Whether the worker is to leave: a (new) stop.flag is there, or the whole directory is gone."""
        if not self._is_there():
            return True
        found = self._stop_identity()
        return found is not None and found != self._old_stop

    def round_abandoned(self, round_id: str) -> bool:
        """Whether the job no longer waits for this round."""
        try:
            return _is_abandoned(self._folder(round_id))
        except RoundGone:
            return True

    def _is_there(self) -> bool:
        """Whether there is an exchange directory; another one that took its place is opened from now on."""
        if self._top is None or not self._top.is_there():
            self.close()
            try:
                self._disk.stat(self.directory)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                raise disk_error(error, self.directory, "look for the directory") from error
        return True

    def _stop_identity(self) -> tuple[int, int] | None:
        try:
            info = self._open_top().lstat(layout.STOP_FLAG)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error(error, self.directory / layout.STOP_FLAG, "look for the file") from error
        return info.st_ino, info.st_mtime_ns

    def _identity(self, folder: Folder, name: str) -> CoreIdentity:
        info = folder.info(name)
        return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

    def _load_core(self, folder: Folder, format: Format) -> tuple[CoreFile, CoreIdentity]:
        name = layout.mind_graph_name(format)
        identity = self._identity(folder, name)
        data = folder.read(name, self._max_bytes, owner=folder.uid, linked=True)
        return payload.parse_core(format, data, folder.path / name), identity

    def _open_top(self) -> Folder:
        if self._top is None:
            self._top = Folder.open(self.directory, self._disk)
        return self._top

    def _folder(self, round_id: str) -> Folder:
        require_round_id(round_id)
        return self._look_at(round_id)

    def _core(self, name: str) -> Folder:
        if layout.core_token(name) is None:
            raise ValueError(f"not a core's name: {name!r}")
        return self._look_at(name)

    def _look_at(self, name: str) -> Folder:
        if self._round is None or self._round.path.name != name:
            found = self._open_top().folder(name)
            if self._round is not None:
                self._round.close()
            self._round = found
        return self._round


def require_round_id(round_id: str) -> None:
    if layout.parse_round_id(round_id) is None:
        raise ValueError(f"not a round id: {round_id!r}")  # and so never a path that leads elsewhere


def _is_abandoned(folder: Folder) -> bool:
    return folder.has(layout.STOP_FLAG) or not folder.is_there()


def _format(folder: Folder) -> Format:
    """The format that the coordinator chose: the one of its values."""
    return "binary" if folder.has(layout.value_name("binary")) else "text"


def _indexed_format(folder: Folder) -> Format:
    formats: tuple[Format, Format] = ("binary", "text")
    for format in formats:
        if folder.has(layout.mind_graph_name(format)):
            return format
    raise ExchangeError("there is no core to index", path=folder.path, fix="write mind_graph first")
