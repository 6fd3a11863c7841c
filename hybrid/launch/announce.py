"""What ranks tell the launcher that started them: lines on stderr, which it reads and does not show.

Through mpirun there is no other way back that works on every machine. Without our launcher nothing is announced.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

MARK = "tandem-rank: "


class Announcer:
    """Writes only if our launcher started this rank."""

    def __init__(self, listened_to: bool) -> None:
        self._listened_to = listened_to

    def met(self, hosts: list[str], pids: Sequence[int] = ()) -> None:
        """All ranks have found each other; ``hosts`` names each rank's machine, ``pids`` its process there."""
        self._say({"event": "met", "hosts": hosts, "pids": list(pids)})

    def made(self, *paths: object) -> None:
        """Folders that must not stay behind if this rank is killed."""
        self._say({"event": "made", "paths": [str(path) for path in paths]})

    def finished(self, *folder: object) -> None:
        """The result is written: under its name, or in a ``folder`` that the launcher shall put under the second."""
        self._say({"event": "finished", "folder": [str(path) for path in folder]})

    def failed(self, rank: int, host: str, text: str = "") -> None:
        """This rank says why it ends, and ends all."""
        self._say({"event": "failed", "rank": rank, "host": host}, text)

    def _say(self, message: dict[str, Any], text: str = "") -> None:
        """In one piece, so that no other output comes in between."""
        line = f"{MARK}{json.dumps(message)}\n" if self._listened_to else ""
        sys.stderr.write(line + text)
        sys.stderr.flush()


def alive_line(rank: int) -> str:
    """Said again and again by the process beside a rank, as long as that one runs."""
    return f"{MARK}{json.dumps({'event': 'alive', 'rank': rank})}\n"


def read_announcement(line: str) -> dict[str, Any] | None:
    """The message in a line, None if it is an ordinary one."""
    if not line.startswith(MARK):
        return None
    try:
        message = json.loads(line[len(MARK) :])
    except ValueError:
        return None  # two ranks wrote at once
    return message if isinstance(message, dict) else None
