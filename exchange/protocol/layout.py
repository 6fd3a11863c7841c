"""Names in an exchange directory, and nothing else: no I/O here.

Invariant: a name that ``parse_round_id`` accepts is exactly one that ``round_id`` produces, so a directory of any other
name is never taken for a round.
"""

from __future__ import annotations

import re
import secrets
from typing import Literal, NamedTuple

Format = Literal["text", "binary"]

OWNER_LOCK = "owner.lock"
WORKER_FACTS = "worker.json"
STOP_FLAG = "stop.flag"
OK_FLAG = "ok.flag"
DATA_META = "data.meta"
VALUE_META = "value.meta"
# In a core's directory: a job wants its index; the index; its facts.
INDEX_REQUEST = "index_request.txt"
INDEX = "index.npy"
INDEX_META = "index.meta"

ROUND_PREFIX = "round-"
CORE_PREFIX = "core-"
# Names with a leading dot are temporary: no reader ever looks at them.
TEMPORARY_PREFIX = "."

_SUFFIX: dict[Format, str] = {"text": ".txt", "binary": ".npy"}
_ROUND_NAME = re.compile(r"round-([0-9]{6,12})-([0-9a-f]{8})", re.ASCII)
_CORE_NAME = re.compile(r"core-([0-9a-f]{8})-([0-9]{4,12})", re.ASCII)
_TOKEN = re.compile(r"[0-9a-f]{8}", re.ASCII)


class RoundName(NamedTuple):
    """A round's place in its job, and the job."""

    seq: int
    token: str


def mind_graph_name(format: Format) -> str:
    return "mind_graph" + _SUFFIX[format]


def value_name(format: Format) -> str:
    return "value" + _SUFFIX[format]


def data_name(format: Format) -> str:
    return "data" + _SUFFIX[format]


def new_token() -> str:
    """A fresh job token: 8 hexadecimal digits."""
    return secrets.token_hex(4)


def is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def round_id(seq: int, token: str) -> str:
    """The id of a round, which is also the name of its directory."""
    if seq < 0 or not is_token(token):
        raise ValueError(f"round ids need seq >= 0 and a token of 8 hexadecimal digits, not {seq!r} and {token!r}")
    return f"{ROUND_PREFIX}{seq:06d}-{token}"


def parse_round_id(name: str) -> RoundName | None:
    """The parts of a round id, or None when the name is not one."""
    match = _ROUND_NAME.fullmatch(name)
    if match is None:
        return None
    found = RoundName(int(match[1]), match[2])
    return found if round_id(*found) == name else None


def worker_scratch_prefix(pid: int) -> str:
    """How the folder begins in which a worker keeps its scratch files: the process that ends the worker removes it."""
    return f"{TEMPORARY_PREFIX}worker-{pid}-"


def core_name(core: int, token: str) -> str:
    """The directory that holds a core's mind_graph file; workers ignore it, since it is no round."""
    return f"{CORE_PREFIX}{token}-{core:04d}"


def core_token(name: str) -> str | None:
    """The job that a core's directory belongs to, or None when the name is not one."""
    match = _CORE_NAME.fullmatch(name)
    return None if match is None else match[1]


def removed_name(name: str, salt: str) -> str:
    """What a directory is called while it is being removed: hidden, unique, and still telling whose it was."""
    return f"{TEMPORARY_PREFIX}{name}.{salt}.removed"


def belongs_to(name: str, token: str) -> bool:
    """Whether a directory is a round or a core of the job ``token``, also one that is being removed."""
    visible = name.removeprefix(TEMPORARY_PREFIX).partition(".")[0]
    parts = parse_round_id(visible)
    return visible.startswith(f"{CORE_PREFIX}{token}-") if parts is None else parts.token == token
