"""The coordinator's end of an exchange directory: arrays in, files out, and the other way round. No decisions.

Invariant: the order of writing. mind_graph before value, each whole or absent; value announces the round. The
coordinator removes only what carries its own token. The other end is ``worker_mailbox``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange import binary, files, layout, payload, text
from exchange.disk import DISK, Disk
from exchange.errors import ExchangeError, RoundGone
from exchange.index import CoreIndexArrays, index_arrays
from exchange.layout import Format
from exchange.programs import MIN_PLUS, ProgramFacts, Rows, program_facts, require_rows
from exchange.text import Header, IntArray
from exchange.worker_mailbox import DEFAULT_MAX_BYTES, FACTS_BYTES, CoreIdentity, WorkerMailbox, round_path

__all__ = ["DEFAULT_MAX_BYTES", "Answer", "CoordinatorMailbox", "CoreIdentity", "WorkerMailbox"]

# An answer is at most one line per core vertex: `vertex value` takes at most 31 bytes of text, 16 of .npy, and every
# further vector of a batch at most 17 more. The rest is room for comments. It keeps a runaway worker from filling
# this process's memory.
_ANSWER_BYTES_PER_VERTEX = 40
_ANSWER_BYTES_PER_VALUE = 24
_ANSWER_BYTES_EXTRA = 1 << 20
# What an honest answer takes at most, by the form of its numbers: a vertex and its values, and some facts.
_LONGEST_VERTEX, _LONGEST_VALUE = 12, {"int32": 11, "float32": 17}
_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Answer:
    """What a worker returned for a round: well formed, not yet checked against the question."""

    vertices: IntArray
    values: IntArray
    header: Header

    @property
    def pairs(self) -> IntArray:
        """[r, 2] rows `vertex value`, as ``check_answer`` takes them."""
        return np.column_stack((self.vertices, self.values))


class CoordinatorMailbox:
    """The coordinator's end. Between ``open`` and ``close``/``cleanup`` the directory belongs to this job alone."""

    def __init__(
        self,
        directory: str | Path,
        *,
        format: Format = "text",
        max_bytes: int = DEFAULT_MAX_BYTES,
        token: str | None = None,
        durable: bool = False,
        disk: Disk = DISK,
    ) -> None:
        if format not in ("text", "binary"):
            raise ValueError(f"format is 'text' or 'binary', not {format!r}")
        if token is not None and not layout.is_token(token):
            raise ValueError(f"a token is 8 hexadecimal digits, not {token!r}")
        self.directory = Path(directory)
        self.token = token or layout.new_token()
        self.format: Format = format
        self._max_bytes, self._durable, self._disk = max_bytes, durable, disk
        self._lock: files.DirectoryLock | None = None
        self._cores = 0
        self._core_path: Path | None = None
        self._core_size = 0
        self._program: ProgramFacts = program_facts(MIN_PLUS)
        self._weighted = False

    def __enter__(self) -> CoordinatorMailbox:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Create the directory if needed, lock it, and take away an earlier job's stop.flag."""
        if self._lock is not None:
            return
        files.make_directory(self.directory, self._disk)
        lock = files.lock_directory(self.directory, self.token, disk=self._disk)
        try:
            files.remove_file(self.directory / layout.STOP_FLAG, disk=self._disk)
        except ExchangeError:
            lock.release(remove=False)
            raise
        self._lock = lock

    def close(self) -> None:
        """Let the directory go and leave all files as they are."""
        if self._lock is not None:
            self._lock.release(remove=False)
            self._lock = None

    def cleanup(self, keep: bool = False) -> list[str]:
        """Remove this job's rounds, cores and lock (nothing with ``keep``) and close; what failed, as sentences.

        stop.flag and worker.json stay, for a worker that has yet to look. Never raises: the result is already safe.
        """
        problems: list[str] = []
        if self._lock is None:
            return problems
        if not keep:
            try:
                names = files.list_names(self.directory, disk=self._disk)
            except ExchangeError as error:
                names = []
                problems.append(str(error))
            for name in names:
                if layout.belongs_to(name, self.token):
                    try:
                        files.remove_tree(self.directory / name, disk=self._disk)
                    except ExchangeError as error:
                        problems.append(str(error))
        self._lock.release(remove=not keep)
        self._lock = None
        return problems

    def publish_core(
        self,
        out_offsets: npt.NDArray[np.integer],
        out_targets: npt.NDArray[np.integer],
        k: int,
        *,
        program: str = MIN_PLUS,
        weight: npt.NDArray[Any] | None = None,
    ) -> Path:
        """Write the edges among the vertices [0, k) once; the rounds that follow link to this file.

        They ask for ``program``. ``weight`` is aligned with ``out_targets``; None is 1 each.
        """
        self._require_open()
        facts = program_facts(program)
        weight = payload.core_weight(facts, weight, out_targets)
        self._cores += 1
        directory = self.directory / layout.core_name(self._cores, self.token)
        path = directory / layout.mind_graph_name(self.format)
        data = payload.encode_core(self.format, out_offsets, out_targets, k, facts, weight)
        files.make_round_dir(directory, self._disk)
        files.write_atomic(path, data, durable=self._durable, disk=self._disk)
        self._core_path, self._core_size = path, k
        self._program, self._weighted = facts, weight is not None
        return path

    def write_round(self, round_id: str, vertices: npt.NDArray[np.integer], values: npt.NDArray[np.integer]) -> None:
        """Write a round of min-plus on a single vector: `vertex value` pairs."""
        pairs = np.column_stack((vertices, values)).astype(np.int64, copy=False)
        if self.format == "text":
            data = text.encode_pairs(pairs, {"round": round_id, "core": self._core_size})
        else:
            data = binary.encode_pairs(pairs)
        self._write_round(round_id, data, None)

    def write_rows(self, round_id: str, rows: Rows) -> None:
        """Write a round of the core's program on rows [B, k]."""
        require_rows(self._program, rows)
        if rows.shape[1] != self._core_size:
            raise ExchangeError(
                f"{rows.shape[1]} columns for a core of {self._core_size} vertices",
                fix="send a value per vertex of the published core",
            )
        if len(rows) > self.largest_batch:
            raise ExchangeError(
                f"a batch of {len(rows)} vectors on a core of {self._core_size} vertices may take more than the "
                f"{self._max_bytes} bytes of exchange.max_bytes",
                path=self.directory,
                fix=f"send at most {self.largest_batch} vectors at once, or raise exchange.max_bytes",
            )
        facts: dict[str, str | int | float] = {"round": round_id, "core": self._core_size}
        self._write_round(round_id, *payload.encode_rows(self.format, self._program, rows, facts))

    @property
    def largest_batch(self) -> int:
        """The most vectors of a batch on the published core whose answer is sure to stay within ``max_bytes``."""
        room = self._max_bytes - _HEADER_BYTES
        if self.format == "binary":
            return max(0, room // max(1, 4 * self._core_size))
        room -= _LONGEST_VERTEX * self._core_size
        return max(0, room // max(1, _LONGEST_VALUE[self._program.kind] * self._core_size))

    def _write_round(self, round_id: str, data: bytes, meta: bytes | None) -> None:
        """The directory, the link to the core, then the values, which announce the round."""
        self._require_open()
        if self._core_path is None:
            raise ExchangeError(
                "no core was published", path=self.directory, fix="call publish_core before write_round"
            )
        directory = self._round_path(round_id)
        files.make_round_dir(directory, self._disk)
        try:
            files.link_or_copy(
                self._core_path,
                directory / self._core_path.name,
                max_bytes=self._max_bytes,
                durable=self._durable,
                disk=self._disk,
            )
            if meta is not None:
                self._write(directory / layout.VALUE_META, meta)
            self._write(directory / layout.value_name(self.format), data)
        except ExchangeError:
            # Never announced, so nobody looks at it; what cannot be removed either is left for cleanup.
            self._try_remove(directory)
            raise

    def ok_exists(self, round_id: str) -> bool:
        """Whether the worker says that its answer is complete."""
        return files.exists(self._round_path(round_id) / layout.OK_FLAG, disk=self._disk)

    def read_data(self, round_id: str) -> Answer:
        """The worker's answer to pairs; ExchangeError when it is missing, torn, malformed or huge."""
        path, data, header = self._read_answer(round_id, 1)
        if self.format == "text":
            pairs, header = text.parse_pairs(data, path)
        else:
            pairs = binary.parse_pairs(data, path)
        return Answer(vertices=pairs[:, 0].copy(), values=pairs[:, 1].copy(), header=header)

    def read_rows(self, round_id: str, batch: int) -> tuple[Rows, Header]:
        """The worker's answer to rows, [batch, k], and its facts; ExchangeError when anything is wrong with it."""
        path, data, meta = self._read_answer(round_id, batch)
        shape = batch, self._core_size
        return payload.parse_answer_rows(self.format, data, meta, path, self._program, shape)

    def _read_answer(self, round_id: str, batch: int) -> tuple[Path, bytes, Header]:
        directory = self._round_path(round_id)
        path = directory / layout.data_name(self.format)
        per_vertex = _ANSWER_BYTES_PER_VERTEX + _ANSWER_BYTES_PER_VALUE * batch
        limit = min(self._max_bytes, _ANSWER_BYTES_EXTRA + per_vertex * self._core_size)
        data = files.read_bytes(path, limit, disk=self._disk)
        meta = directory / layout.DATA_META
        if self.format == "text" or not files.exists(meta, disk=self._disk):
            return path, data, {}
        return path, data, text.parse_header(files.read_bytes(meta, FACTS_BYTES, disk=self._disk), meta)

    def abandon(self, round_id: str) -> None:
        """Tell workers not to bother with this round."""
        try:
            files.create_flag(self._round_path(round_id) / layout.STOP_FLAG, disk=self._disk)
        except RoundGone:
            return

    def remove_round(self, round_id: str) -> None:
        """Remove a round that is over, so that the directory stays small in a long job."""
        files.remove_tree(self._round_path(round_id), disk=self._disk)

    def tidy(self) -> None:
        """Remove this job's rounds, and cores that were published before the last; while no round is outstanding."""
        current = None if self._core_path is None else self._core_path.parent.name
        for name in files.list_names(self.directory, disk=self._disk):
            if layout.belongs_to(name, self.token) and name != current:
                files.remove_tree(self.directory / name, disk=self._disk)

    def write_stop(self) -> None:
        """Tell the worker and the other ranks that the NPU part is over."""
        files.create_flag(self.directory / layout.STOP_FLAG, disk=self._disk)

    # ------------------------------------------------------------------------------------ the index

    def request_index(self) -> None:
        """Ask for the published core's index; ExchangeError when it cannot be had."""
        self._require_open()
        if self._core_path is None:
            raise ExchangeError("no core was published", path=self.directory, fix="call publish_core first")
        if self._program.name != MIN_PLUS or self._weighted:
            raise ExchangeError(
                "an index counts edges, and this core has weights or another program",
                value=self._program.name,
                fix="publish the core for min-plus without weights",
            )
        needed = self._core_size**2 + _HEADER_BYTES
        if needed > self._max_bytes:
            raise ExchangeError(
                f"the index of a core of {self._core_size} vertices takes {needed} bytes, and exchange.max_bytes is "
                f"{self._max_bytes}",
                path=self.directory,
                fix="choose a smaller core, or raise exchange.max_bytes",
            )
        request = text.encode_header({"core": self._core_size})
        self._write(self._core_path.parent / layout.INDEX_REQUEST, request)

    def index_exists(self) -> bool:
        """Whether the worker says that the index is complete."""
        return self._core_path is not None and files.exists(self._core_path.parent / layout.OK_FLAG, disk=self._disk)

    def read_index(self) -> CoreIndexArrays:
        """The published core's index: well formed, not yet checked against the core."""
        assert self._core_path is not None, "nothing was asked"
        directory, limit = self._core_path.parent, self._core_size**2 + _HEADER_BYTES
        path, meta = directory / layout.INDEX, directory / layout.INDEX_META
        distance = binary.parse_matrix(files.read_bytes(path, limit, disk=self._disk), path, self._core_size)
        facts: Header = {}
        if files.exists(meta, disk=self._disk):
            facts = text.parse_header(files.read_bytes(meta, FACTS_BYTES, disk=self._disk), meta)
        return index_arrays(distance, facts)

    def is_indexed_core(self, name: object) -> bool:
        """Whether that is the name of the published core."""
        return self._core_path is not None and self._core_path.parent.name == name

    def abandon_index(self) -> None:
        """Nobody waits for the index any more."""
        if self._core_path is not None:
            files.create_flag(self._core_path.parent / layout.STOP_FLAG, disk=self._disk)

    # ------------------------------------------------------------------------------------ the worker

    def worker_facts(self) -> dict[str, object] | None:
        """What our worker says about itself (worker.json); None when there is nothing readable."""
        try:
            found = json.loads(files.read_bytes(self.directory / layout.WORKER_FACTS, FACTS_BYTES, disk=self._disk))
        except (ExchangeError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _round_path(self, round_id: str) -> Path:
        return round_path(self.directory, round_id)

    def _write(self, path: Path, data: bytes) -> None:
        files.write_atomic(path, data, durable=self._durable, disk=self._disk)

    def _require_open(self) -> None:
        if self._lock is None:
            raise ExchangeError("the exchange is not open", path=self.directory, fix="call open() first")

    def _try_remove(self, directory: Path) -> None:
        try:
            files.remove_tree(directory, disk=self._disk)
        except ExchangeError:
            return
