"""The coordinator's end of an exchange directory: arrays in, files out, and the other way round. No decisions.

Invariant: the order of writing. mind_graph before value, each whole or absent; value announces the round. The
coordinator removes only what carries its own token. The other end is ``worker_mailbox``.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.codec import binary, payload, text
from exchange.codec.index import CoreIndexArrays, index_arrays
from exchange.codec.text import Header, IntArray
from exchange.counted import plural
from exchange.errors import ExchangeError, RoundGone
from exchange.filesystem.disk import DISK, Disk
from exchange.filesystem.folder import Folder
from exchange.filesystem.owner_lock import DirectoryLock, lock_directory
from exchange.protocol import layout
from exchange.protocol.layout import Format
from exchange.protocol.programs import MIN_PLUS, ProgramFacts, Rows, program_facts, require_rows
from exchange.worker_facts import FACTS_BYTES, parse_facts
from exchange.worker_mailbox import DEFAULT_MAX_BYTES, CoreIdentity, WorkerMailbox, require_round_id

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
_PROBLEMS_SHOWN = 3


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
    """The coordinator's end. Between ``open`` and ``close``/``cleanup`` the directory belongs to this job alone.

    ``own_worker``: the worker is a process of this user, so only this user's answers are read. Otherwise an answer
    belongs to the user who announced it: ok.flag and data have one owner.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        format: Format = "text",
        max_bytes: int = DEFAULT_MAX_BYTES,
        token: str | None = None,
        durable: bool = False,
        own_worker: bool = False,
        disk: Disk = DISK,
    ) -> None:
        if format not in ("text", "binary"):
            raise ValueError(f"format is 'text' or 'binary', not {format!r}")
        if token is not None and not layout.is_token(token):
            raise ValueError(f"a token is 8 hexadecimal digits, not {token!r}")
        self.directory = Path(directory)
        self.token = token or layout.new_token()
        self.format: Format = format
        self._max_bytes, self._durable, self._own_worker, self._disk = max_bytes, durable, own_worker, disk
        self._lock: DirectoryLock | None = None
        self._top: Folder | None = None
        self._cores = 0
        self._core: Folder | None = None
        self._round: Folder | None = None  # the one that was looked at last
        self._answered_by: int | None = None  # the user who announced the answer in there
        self._indexed_by: int | None = None
        self._core_size = 0
        self._program: ProgramFacts = program_facts(MIN_PLUS)
        self._weighted = False

    def __enter__(self) -> CoordinatorMailbox:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Create the directory if needed, lock it, and take away an earlier job's stop.flag.

        ``DirectoryRefused`` when the directory cannot be made or is another job's; any other ExchangeError is about
        what another process put into it.
        """
        if self._lock is not None:
            return
        self._top = Folder.make(self.directory, self._disk)
        try:
            self._lock = lock_directory(self._top, self.token)
            self._top.remove(layout.STOP_FLAG)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the directory go and leave all files as they are."""
        self._let_go(remove=False)

    def _let_go(self, *, remove: bool) -> None:
        if self._lock is not None:
            self._lock.release(remove=remove)
        for folder in (self._round, self._core, self._top):
            if folder is not None:
                folder.close()
        self._lock = self._top = self._core = self._round = None

    def cleanup(self, keep: bool = False) -> list[str]:
        """Remove this job's rounds, cores and lock (nothing with ``keep``) and close; what failed, as sentences.

        stop.flag and worker.json stay, for a worker that has yet to look. Never raises: the result is already safe.
        """
        problems: list[str] = []
        if self._top is None:
            return problems
        if not keep:
            try:
                names = self._top.names()
            except ExchangeError as error:
                names = []
                problems.append(str(error))
            for name in names:
                if layout.belongs_to(name, self.token):
                    try:
                        self._top.retire(name)
                    except ExchangeError as error:
                        problems.append(str(error))
        self._let_go(remove=not keep)
        more = len(problems) - _PROBLEMS_SHOWN
        return [*problems[:_PROBLEMS_SHOWN], *([f"and {more} more"] if more > 0 else [])]

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
        top = self._open_top()
        facts = program_facts(program)
        weight = payload.core_weight(facts, weight, out_targets)
        self._cores += 1
        name = layout.mind_graph_name(self.format)
        data = payload.encode_core(self.format, out_offsets, out_targets, k, facts, weight)
        core = top.make_folder(layout.core_name(self._cores, self.token))
        try:
            core.write(name, data, durable=self._durable)
        except BaseException:
            core.close()
            raise
        if self._core is not None:
            self._core.close()
        self._core, self._core_size, self._indexed_by = core, k, None
        self._program, self._weighted = facts, weight is not None
        return core.path / name

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
                f"{plural(rows.shape[1], 'column')} for a core of {plural(self._core_size, 'vertex', 'vertices')}",
                fix="send a value per vertex of the published core",
            )
        if len(rows) > self.largest_batch:
            raise ExchangeError(
                f"a batch of {plural(len(rows), 'vector')} on a core of "
                f"{plural(self._core_size, 'vertex', 'vertices')} may take more than the "
                f"{self._max_bytes} bytes of exchange.max_bytes",
                path=self.directory,
                fix=f"send at most {plural(self.largest_batch, 'vector')} at once, or raise exchange.max_bytes",
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
        top = self._open_top()
        if self._core is None:
            raise ExchangeError(
                "no core was published", path=self.directory, fix="call publish_core before write_round"
            )
        require_round_id(round_id)
        self._look_at(top.make_folder(round_id))
        assert self._round is not None
        try:
            core_file = layout.mind_graph_name(self.format)
            self._round.link_or_copy(self._core, core_file, most=self._max_bytes, durable=self._durable)
            if meta is not None:
                self._round.write(layout.VALUE_META, meta, durable=self._durable)
            self._round.write(layout.value_name(self.format), data, durable=self._durable)
        except ExchangeError:
            # Never announced, so no worker looks at it; what cannot be removed either is left for cleanup.
            with contextlib.suppress(ExchangeError):
                top.retire(round_id)
            raise

    def ok_exists(self, round_id: str) -> bool:
        """Whether the worker says that its answer is complete."""
        folder = self._folder(round_id)
        flag = None if folder is None else folder.flag(layout.OK_FLAG)
        if flag is not None:
            self._answered_by = flag.st_uid
        return flag is not None

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
        folder = self._folder(round_id)
        if folder is None:
            raise RoundGone("the round is gone", path=self.directory / round_id, fix="nothing: it is not waited for")
        name = layout.data_name(self.format)
        per_vertex = _ANSWER_BYTES_PER_VERTEX + _ANSWER_BYTES_PER_VALUE * batch
        limit = min(self._max_bytes, _ANSWER_BYTES_EXTRA + per_vertex * self._core_size)
        owner = self._writer(self._answered_by)
        data = folder.read(name, limit, owner=owner)
        if self.format == "text":
            return folder.path / name, data, {}
        return folder.path / name, data, _meta(folder, layout.DATA_META, owner)

    def _writer(self, announced_by: int | None) -> int | None:
        """Whose an answer must be that this user has announced."""
        return self._lock.uid if self._own_worker and self._lock is not None else announced_by

    def abandon(self, round_id: str) -> None:
        """Tell workers not to bother with this round."""
        folder = self._folder(round_id)
        if folder is not None:
            with contextlib.suppress(RoundGone):
                folder.create_flag(layout.STOP_FLAG)

    def remove_round(self, round_id: str) -> None:
        """Remove a round that is over, so that the directory stays small in a long job."""
        require_round_id(round_id)
        self._open_top().retire(round_id)

    def tidy(self) -> None:
        """Remove this job's rounds, and cores that were published before the last; while no round is outstanding."""
        current = None if self._core is None else self._core.path.name
        top = self._open_top()
        for name in top.names():
            if layout.belongs_to(name, self.token) and name != current:
                top.retire(name)

    def write_stop(self) -> None:
        """Tell the worker and the other ranks that the NPU part is over."""
        self._open_top().create_flag(layout.STOP_FLAG)

    # ------------------------------------------------------------------------------------ the index

    def request_index(self) -> None:
        """Ask for the published core's index; ExchangeError when it cannot be had."""
        self._open_top()
        if self._core is None:
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
                f"the index of a core of {plural(self._core_size, 'vertex', 'vertices')} takes "
                f"{needed} bytes, and exchange.max_bytes is {self._max_bytes}",
                path=self.directory,
                fix="choose a smaller core, or raise exchange.max_bytes",
            )
        request = text.encode_header({"core": self._core_size})
        self._core.write(layout.INDEX_REQUEST, request, durable=self._durable)

    def index_exists(self) -> bool:
        """Whether the worker says that the index is complete."""
        flag = None if self._core is None else self._core.flag(layout.OK_FLAG)
        if flag is not None:
            self._indexed_by = flag.st_uid
        return flag is not None

    def read_index(self) -> CoreIndexArrays:
        """The published core's index: well formed, not yet checked against the core."""
        assert self._core is not None, "nothing was asked"
        owner = self._writer(self._indexed_by)
        data = self._core.read(layout.INDEX, self._core_size**2 + _HEADER_BYTES, owner=owner)
        distance = binary.parse_matrix(data, self._core.path / layout.INDEX, self._core_size)
        return index_arrays(distance, _meta(self._core, layout.INDEX_META, owner))

    def is_indexed_core(self, name: object) -> bool:
        """Whether that is the name of the published core."""
        return self._core is not None and self._core.path.name == name

    def abandon_index(self) -> None:
        """Say that this job waits for the index no more."""
        if self._core is not None:
            self._core.create_flag(layout.STOP_FLAG)

    # ------------------------------------------------------------------------------------ the worker

    def worker_facts(self) -> dict[str, object] | None:
        """What our worker says about itself (worker.json), fit to be shown; None when there is nothing readable."""
        if self._top is None:
            return None
        try:
            return parse_facts(self._top.read(layout.WORKER_FACTS, FACTS_BYTES, owner=self._writer(None)))
        except ExchangeError:
            return None

    def _open_top(self) -> Folder:
        if self._top is None or self._lock is None:
            raise ExchangeError("the exchange is not open", path=self.directory, fix="call open() first")
        return self._top

    def _folder(self, round_id: str) -> Folder | None:
        """The directory of a round, as it was when it was made; None when it is gone."""
        require_round_id(round_id)
        if self._round is None or self._round.path.name != round_id:
            try:
                self._look_at(self._open_top().folder(round_id))
            except RoundGone:
                return None
        return self._round

    def _look_at(self, folder: Folder) -> None:
        if self._round is not None:
            self._round.close()
        self._round, self._answered_by = folder, None


def _meta(folder: Folder, name: str, owner: int | None) -> Header:
    """The facts beside an answer, if there are any."""
    if not folder.has(name):
        return {}
    return text.parse_header(folder.read(name, FACTS_BYTES, owner=owner), folder.path / name)
