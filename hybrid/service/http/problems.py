"""What a client is answered when something cannot be done: RFC 9457 problem documents with cause and fix."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from cpu_engine.errors import ExplainedError, shorten
from cpu_engine.graph.formats.bounds import TooLarge
from hybrid.errors import EnvironmentProblem, NotCertified

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The request cannot be understood",
    401: "A token is needed",
    403: "Not allowed",
    404: "There is no such thing",
    405: "Not possible here",
    406: "No such form of the result",
    408: "Too slow",
    409: "Not in this state",
    413: "Too large",
    415: "Not this kind of content",
    422: "The request does not make sense",
    429: "Too many at once",
    431: "Too large a head",
    500: "A defect of Tandem",
    503: "Not ready",
    504: "Too late",
    507: "Not enough memory or disk",
}
_STATUS_OF: dict[type, int] = {  # the nearest class of an error counts
    ExplainedError: 422,
    TooLarge: 413,
    EnvironmentProblem: 507,
    NotCertified: 500,
}
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Problem(Exception):
    """A refusal: status, what is wrong, and how to mend it."""

    def __init__(self, status: int, detail: str, fix: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(f"{detail}. Fix: {fix}")
        self.status, self.detail, self.fix, self.retry_after_s = status, detail, fix, retry_after_s

    def document(self) -> dict[str, Any]:
        return {
            "type": "about:blank", "title": TITLES.get(self.status, "Refused"), "status": self.status,
            "detail": self.detail, "fix": self.fix,
        }  # fmt: skip

    def headers(self) -> dict[str, str]:
        """What goes with it: when to come again, or how to sign in."""
        if self.retry_after_s is not None:
            return {"Retry-After": str(self.retry_after_s)}
        return {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}


def shutting_down() -> Problem:
    return Problem(503, "the service is shutting down", "ask again when it is back", retry_after_s=5)


def problem_of(error: BaseException) -> Problem:
    """An error of the engines as a client may see it: no path of this machine is in it."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ExplainedError):
        value = "" if error.value is None else f" (value {shorten(error.value)})"
        line = "" if error.line is None else f"line {error.line}: "
        status = next(_STATUS_OF[kind] for kind in type(error).__mro__ if kind in _STATUS_OF)
        fix = _without_folder(error.fix or "change the request", error.path)
        return Problem(status, _without_folder(f"{line}{error.reason}{value}", error.path), fix)
    if isinstance(error, MemoryError):
        return Problem(507, "not enough memory", "unload a graph, or ask for less")
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return Problem(
            507, f"the service's disk cannot take it: {error.strerror}", "free space on its disk, or ask later"
        )
    if isinstance(error, OSError):
        return Problem(500, f"a file could not be used: {error.strerror}", "see the service's log")
    return Problem(500, "something went wrong inside", "see the service's log, and report it")


def _without_folder(text: str, path: str | Path | None) -> str:
    """A sentence about a file without the folder that the file is in, which is not the client's to know."""
    folder = "" if path is None else str(Path(path).parent)
    return text if folder in ("", ".", "/") else text.replace(f"{folder}/", "").replace(folder, Path(folder).name)
