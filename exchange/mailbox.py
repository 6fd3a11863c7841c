"""The two ends of an exchange directory: arrays in, files out, and the other way round. No decisions.

Invariant: the order of writing. mind_graph before value, data before ok.flag, each whole or absent; value announces the
round and ok.flag the answer. The coordinator's end removes only what carries its own token.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from exchange import binary, files, layout, text
from exchange.disk import DISK, Disk
from exchange.errors import ExchangeError, RoundGone
from exchange.layout import Format
from exchange.text import Header, IntArray

DEFAULT_MAX_BYTES = 1 << 30
CoreIdentity = tuple[int, int, int, int]

_FACTS_BYTES = 1 << 16
# An answer is at most one line per core vertex: `vertex value` takes at most 31 bytes of text, 16 of .npy. The rest is
# room for comments. It keeps a runaway worker from filling this process's memory.
_ANSWER_BYTES_PER_VERTEX = 64
_ANSWER_BYTES_EXTRA = 1 << 20


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

    def publish_core(self, out_offsets: npt.NDArray[np.integer], out_targets: npt.NDArray[np.integer], k: int) -> Path:
        """Write the edges among the vertices [0, k) once; the rounds that follow link to this file."""
        self._require_open()
        self._cores += 1
        directory = self.directory / layout.core_name(self._cores, self.token)
        path = directory / layout.mind_graph_name(self.format)
        if self.format == "text":
            data = text.encode_edges(out_offsets, out_targets, k, {"core": k})
        else:
            data = binary.encode_edges(out_offsets, out_targets, k)
        files.make_round_dir(directory, self._disk)
        files.write_atomic(path, data, durable=self._durable, disk=self._disk)
        self._core_path, self._core_size = path, k
        return path

    def write_round(self, round_id: str, vertices: npt.NDArray[np.integer], values: npt.NDArray[np.integer]) -> None:
        """Write a round: its directory, the link to the core, then the values, which announce it."""
        self._require_open()
        if self._core_path is None:
            raise ExchangeError(
                "no core was published", path=self.directory, fix="call publish_core before write_round"
            )
        pairs = np.column_stack((vertices, values)).astype(np.int64, copy=False)
        if self.format == "text":
            data = text.encode_pairs(pairs, {"round": round_id, "core": self._core_size})
        else:
            data = binary.encode_pairs(pairs)
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
            value_path = directory / layout.value_name(self.format)
            files.write_atomic(value_path, data, durable=self._durable, disk=self._disk)
        except ExchangeError:
            # Never announced, so nobody looks at it; what cannot be removed either is left for cleanup.
            self._try_remove(directory)
            raise

    def ok_exists(self, round_id: str) -> bool:
        """Whether the worker says that its answer is complete."""
        return files.exists(self._round_path(round_id) / layout.OK_FLAG, disk=self._disk)

    def read_data(self, round_id: str) -> Answer:
        """The worker's answer; ExchangeError when it is missing, torn, malformed or huge."""
        directory = self._round_path(round_id)
        path = directory / layout.data_name(self.format)
        limit = min(self._max_bytes, _ANSWER_BYTES_EXTRA + _ANSWER_BYTES_PER_VERTEX * self._core_size)
        data = files.read_bytes(path, limit, disk=self._disk)
        if self.format == "text":
            pairs, header = text.parse_pairs(data, path)
        else:
            pairs = binary.parse_pairs(data, path)
            meta = directory / layout.DATA_META
            header = {}
            if files.exists(meta, disk=self._disk):
                header = text.parse_header(files.read_bytes(meta, _FACTS_BYTES, disk=self._disk), meta)
        return Answer(vertices=pairs[:, 0].copy(), values=pairs[:, 1].copy(), header=header)

    def abandon(self, round_id: str) -> None:
        """Tell workers not to bother with this round."""
        try:
            files.create_flag(self._round_path(round_id) / layout.STOP_FLAG, disk=self._disk)
        except RoundGone:
            return

    def remove_round(self, round_id: str) -> None:
        """Remove a round that is over, so that the directory stays small in a long job."""
        files.remove_tree(self._round_path(round_id), disk=self._disk)

    def write_stop(self) -> None:
        """Tell the worker and the other ranks that the NPU part is over."""
        files.create_flag(self.directory / layout.STOP_FLAG, disk=self._disk)

    def worker_facts(self) -> dict[str, object] | None:
        """What our worker says about itself (worker.json); None when there is nothing readable."""
        try:
            found = json.loads(files.read_bytes(self.directory / layout.WORKER_FACTS, _FACTS_BYTES, disk=self._disk))
        except (ExchangeError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _round_path(self, round_id: str) -> Path:
        return _round_path(self.directory, round_id)

    def _require_open(self) -> None:
        if self._lock is None:
            raise ExchangeError("the exchange is not open", path=self.directory, fix="call open() first")

    def _try_remove(self, directory: Path) -> None:
        try:
            files.remove_tree(directory, disk=self._disk)
        except ExchangeError:
            return


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
        path, format = self._core_file(round_id)
        identity = self._identity(path)
        data = files.read_bytes(path, self._max_bytes, disk=self._disk)
        edges = text.parse_edges(data, path)[0] if format == "text" else binary.parse_edges(data, path)
        return edges, identity

    def load_values(self, round_id: str) -> tuple[IntArray, Header]:
        """The values to start from, int64[r, 2] rows `vertex value`, and the file's header."""
        format = self._format(round_id)
        path = self._round_path(round_id) / layout.value_name(format)
        data = files.read_bytes(path, self._max_bytes, disk=self._disk)
        pairs, header = text.parse_pairs(data, path) if format == "text" else (binary.parse_pairs(data, path), {})
        if header.get("round", round_id) != round_id:
            raise ExchangeError(
                "these values belong to another round",
                path=path,
                value=header["round"],
                fix="name the round's own directory in its `# round` line, or leave the line out",
            )
        return pairs, header

    def write_data(
        self, round_id: str, pairs: npt.NDArray[np.integer], header: Mapping[str, str | int | float]
    ) -> None:
        """Write the answer's data file, in the format of the question. Not yet the flag."""
        format = self._format(round_id)
        directory = self._round_path(round_id)
        facts: dict[str, str | int | float] = {"round": round_id, **header}
        if format == "text":
            data = text.encode_pairs(pairs, facts)
        else:
            data = binary.encode_pairs(pairs)
            meta = directory / layout.DATA_META
            files.write_atomic(meta, text.encode_header(facts), durable=self._durable, disk=self._disk)
        files.write_atomic(directory / layout.data_name(format), data, durable=self._durable, disk=self._disk)

    def create_ok(self, round_id: str) -> None:
        """Announce the answer, which must have been written."""
        files.create_flag(self._round_path(round_id) / layout.OK_FLAG, disk=self._disk)
        self._over.add(round_id)

    def write_answer(
        self, round_id: str, pairs: npt.NDArray[np.integer], header: Mapping[str, str | int | float]
    ) -> None:
        """``write_data``, then ``create_ok``."""
        self.write_data(round_id, pairs, header)
        self.create_ok(round_id)

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

    def _round_path(self, round_id: str) -> Path:
        return _round_path(self.directory, round_id)

    def _format(self, round_id: str) -> Format:
        """The format that the coordinator chose: the one of its values."""
        binary_values = self._round_path(round_id) / layout.value_name("binary")
        return "binary" if files.exists(binary_values, disk=self._disk) else "text"

    def _core_file(self, round_id: str) -> tuple[Path, Format]:
        format = self._format(round_id)
        return self._round_path(round_id) / layout.mind_graph_name(format), format


def _round_path(directory: Path, round_id: str) -> Path:
    if layout.parse_round_id(round_id) is None:
        raise ValueError(f"not a round id: {round_id!r}")  # and so never a path that leads elsewhere
    return directory / round_id
