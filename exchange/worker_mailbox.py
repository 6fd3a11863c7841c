"""A worker's end of an exchange directory: files in, arrays out, and the other way round. No decisions.

Invariant: the order of writing. data before ok.flag, each whole or absent; ok.flag announces the answer.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange import binary, files, layout, payload, text
from exchange.disk import DISK, Disk
from exchange.errors import ExchangeError, RoundGone
from exchange.layout import Format
from exchange.payload import CoreFile, Question
from exchange.programs import ProgramFacts, Rows
from exchange.text import Header, IntArray

DEFAULT_MAX_BYTES = 1 << 30
FACTS_BYTES = 1 << 16
CoreIdentity = tuple[int, int, int, int]


class WorkerMailbox:
    """A worker's end. It needs no lock: rounds are announced to whoever serves the directory.

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
        self._old_stop = self._stop_identity() if ignore_old_stop else None

    def announce(self, **facts: object) -> None:
        """Write worker.json: pid and host, the facts announced before, and these."""
        self._facts.update(facts)
        data = json.dumps(self._facts, sort_keys=True).encode() + b"\n"
        files.write_atomic(self.directory / layout.WORKER_FACTS, data, durable=self._durable, disk=self._disk)

    def pending_rounds(self) -> list[str]:
        """Announced rounds without answer and not abandoned, lowest number first.

        Only those of the job that owns the directory, as far as owner.lock names it: a leftover of a dead job is not
        worth anyone's time.
        """
        owner = files.read_owner(self.directory, disk=self._disk).get("token")
        listed = files.list_rounds(self.directory, disk=self._disk)
        self._over.intersection_update(listed)  # forget what is removed, so that this set does not grow for ever
        pending: list[str] = []
        for round_id in listed:
            parts = layout.parse_round_id(round_id)
            if round_id in self._over or (owner is not None and parts is not None and parts.token != owner):
                continue
            try:
                names = files.list_names(self.directory / round_id, disk=self._disk)
            except RoundGone:
                continue
            if layout.OK_FLAG in names or layout.STOP_FLAG in names:
                self._over.add(round_id)
            elif layout.value_name("text") in names or layout.value_name("binary") in names:
                pending.append(round_id)
        return pending

    def core_identity(self, round_id: str) -> CoreIdentity:
        """What tells one core file from another (device, inode, size, mtime) by a mere stat: links share it."""
        return self._identity(self._core_file(round_id)[0])

    def load_core(self, round_id: str) -> tuple[IntArray, CoreIdentity]:
        """The core's edges, int64[e, 2] ([e, 3] when weighted), and the file's identity."""
        core, identity = self.load_core_file(round_id)
        return core.edges, identity

    def load_core_file(self, round_id: str) -> tuple[CoreFile, CoreIdentity]:
        """The core with its weights, of whichever type, and the file's identity."""
        return self._load_core(*self._core_file(round_id))

    def load_values(self, round_id: str) -> tuple[IntArray, Header]:
        """The values of a single vector of min-plus, int64[r, 2] rows `vertex value`, and the file's header."""
        question = self.load_question(round_id)
        if question.pairs is None:
            raise ExchangeError("these are rows of a batch", path=self._round_path(round_id), fix="use load_question")
        return question.pairs, question.header

    def load_question(self, round_id: str) -> Question:
        """The round: its program, and pairs or rows."""
        format = self._format(round_id)
        path = self._round_path(round_id) / layout.value_name(format)
        data = files.read_bytes(path, self._max_bytes, disk=self._disk)
        meta_path = self._round_path(round_id) / layout.VALUE_META
        meta = None
        if format == "binary" and files.exists(meta_path, disk=self._disk):
            meta = text.parse_header(files.read_bytes(meta_path, FACTS_BYTES, disk=self._disk), meta_path)
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
        format = self._format(round_id)
        facts: dict[str, str | int | float] = {"round": round_id, **header}
        if format == "text":
            self._write_answer(round_id, format, text.encode_pairs(pairs, facts), None)
        else:
            self._write_answer(round_id, format, binary.encode_pairs(pairs), text.encode_header(facts))

    def write_rows(self, round_id: str, program: ProgramFacts, rows: Rows, header: payload.Facts) -> None:
        """Write the answer to rows, in the format of the question. Not yet the flag."""
        format = self._format(round_id)
        facts: dict[str, str | int | float] = {"round": round_id, **header}
        written = payload.encode_rows(format, program, rows, facts, every_vertex=not program.closes)
        self._write_answer(round_id, format, *written)

    def _write_answer(self, round_id: str, format: Format, data: bytes, meta: bytes | None) -> None:
        directory = self._round_path(round_id)
        if meta is not None:
            self._write(directory / layout.DATA_META, meta)
        self._write(directory / layout.data_name(format), data)

    def create_ok(self, round_id: str) -> None:
        """Announce the answer, which must have been written."""
        files.create_flag(self._round_path(round_id) / layout.OK_FLAG, disk=self._disk)
        self._over.add(round_id)

    def write_answer(self, round_id: str, pairs: npt.NDArray[np.integer], header: payload.Facts) -> None:
        """``write_data``, then ``create_ok``."""
        self.write_data(round_id, pairs, header)
        self.create_ok(round_id)

    # ------------------------------------------------------------------------------------ indexes

    def pending_indexes(self) -> list[str]:
        """Cores whose index somebody waits for, by name; as for rounds, only those of the job that owns the place."""
        owner = files.read_owner(self.directory, disk=self._disk).get("token")
        listed = files.list_names(self.directory, disk=self._disk)
        self._indexed.intersection_update(listed)
        pending: list[str] = []
        for name in sorted(listed):
            token = layout.core_token(name)
            if token is None or name in self._indexed or (owner is not None and token != owner):
                continue
            try:
                names = files.list_names(self.directory / name, disk=self._disk)
            except ExchangeError:  # gone in this moment
                continue
            if layout.OK_FLAG in names or layout.STOP_FLAG in names:
                self._indexed.add(name)
            elif layout.INDEX_REQUEST in names:
                pending.append(name)
        return pending

    def load_indexed_core(self, name: str) -> tuple[CoreFile, CoreIdentity]:
        """The core of a pending index, and the file's identity."""
        return self._load_core(*self._indexed_file(name))

    def indexed_size(self, name: str) -> int:
        """The k of a pending index: its request says `# core k`."""
        path = self._core_path(name) / layout.INDEX_REQUEST
        header = text.parse_header(files.read_bytes(path, FACTS_BYTES, disk=self._disk), path)
        k = payload.core_size(header, path)
        if k * k > self._max_bytes:
            raise ExchangeError(
                f"an index of {k} x {k} bytes is over the limit of {self._max_bytes}",
                path=path,
                fix="ask for a smaller core",
            )
        return k

    def indexed_identity(self, name: str) -> CoreIdentity:
        return self._identity(self._indexed_file(name)[0])

    def write_index(self, name: str, distance: npt.NDArray[np.uint8], header: payload.Facts) -> None:
        """Write index and facts, then the flag that announces them."""
        directory = self._core_path(name)
        self._write(directory / layout.INDEX_META, text.encode_header(header))
        self._write(directory / layout.INDEX, binary.encode_array(distance))
        files.create_flag(directory / layout.OK_FLAG, disk=self._disk)
        self._indexed.add(name)

    def skip_index(self, name: str) -> None:
        """Never look at this one again."""
        self._indexed.add(name)

    def index_abandoned(self, name: str) -> bool:
        """Whether nobody waits for this index any more."""
        directory = self._core_path(name)
        if files.exists(directory / layout.STOP_FLAG, disk=self._disk):
            return True
        return not files.exists(directory, disk=self._disk)

    # ------------------------------------------------------------------------------------ the end

    def stop_requested(self) -> bool:
        """Whether the worker is to leave: a (new) stop.flag is there, or the whole directory is gone."""
        found = self._stop_identity()
        if found is None:
            return not files.exists(self.directory, disk=self._disk)
        return found != self._old_stop

    def round_abandoned(self, round_id: str) -> bool:
        """Whether nobody waits for this round any more."""
        directory = self._round_path(round_id)
        if files.exists(directory / layout.STOP_FLAG, disk=self._disk):
            return True
        return not files.exists(directory, disk=self._disk)

    def _stop_identity(self) -> tuple[int, int] | None:
        path = self.directory / layout.STOP_FLAG
        if not files.exists(path, disk=self._disk):
            return None
        try:
            info = files.file_stat(path, disk=self._disk)
        except ExchangeError:
            return None
        return info.st_ino, info.st_mtime_ns

    def _identity(self, path: Path) -> CoreIdentity:
        info = files.file_stat(path, disk=self._disk)
        return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

    def _load_core(self, path: Path, format: Format) -> tuple[CoreFile, CoreIdentity]:
        identity = self._identity(path)
        return payload.parse_core(format, files.read_bytes(path, self._max_bytes, disk=self._disk), path), identity

    def _write(self, path: Path, data: bytes) -> None:
        files.write_atomic(path, data, durable=self._durable, disk=self._disk)

    def _round_path(self, round_id: str) -> Path:
        return round_path(self.directory, round_id)

    def _core_path(self, name: str) -> Path:
        if layout.core_token(name) is None:
            raise ValueError(f"not a core's name: {name!r}")
        return self.directory / name

    def _indexed_file(self, name: str) -> tuple[Path, Format]:
        formats: tuple[Format, Format] = ("binary", "text")
        for format in formats:
            path = self._core_path(name) / layout.mind_graph_name(format)
            if files.exists(path, disk=self._disk):
                return path, format
        raise ExchangeError("there is no core to index", path=self._core_path(name), fix="write mind_graph first")

    def _format(self, round_id: str) -> Format:
        """The format that the coordinator chose: the one of its values."""
        binary_values = self._round_path(round_id) / layout.value_name("binary")
        return "binary" if files.exists(binary_values, disk=self._disk) else "text"

    def _core_file(self, round_id: str) -> tuple[Path, Format]:
        format = self._format(round_id)
        return self._round_path(round_id) / layout.mind_graph_name(format), format


def round_path(directory: Path, round_id: str) -> Path:
    """The directory of a round."""
    if layout.parse_round_id(round_id) is None:
        raise ValueError(f"not a round id: {round_id!r}")  # and so never a path that leads elsewhere
    return directory / round_id
