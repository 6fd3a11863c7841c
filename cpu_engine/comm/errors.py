"""What goes wrong between ranks, with what to do about it."""

from __future__ import annotations


class CommError(Exception):
    """Ranks that do not understand one another: mismatched lists, unmatched requests, a message out of its run."""

    def __init__(self, reason: str, *, fix: str) -> None:
        self.reason, self.fix = reason, fix
        super().__init__(f"{reason}. Fix: {fix}")
