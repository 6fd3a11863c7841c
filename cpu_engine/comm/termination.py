"""When may all ranks stop? Mattern's four-counter rule on a binary tree of ranks, as a state machine without I/O.

A wave collects, from every rank at a moment when it was passive, how many messages it had sent and received in all. If
two waves, the second begun after the first was complete, both find the same number sent as received, and the same
number as each other, then nothing was in flight and no rank was active when the first wave ended, and so ever after.
Every rank joins the first wave by itself as soon as it is passive; later ones are asked for by the root. At most one
control message is under way per tree edge, so their order does not matter.

Invariant: ``over`` becomes true on a rank only after the rule was met at the root; a rank contributes to each wave
once, while passive, with counters that were exact at that moment. Control messages are not counted.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import TAG_CONTROL, Message

ASK, ANSWER, OVER = 1, 2, 3
_FIELDS = 4  # kind, wave, sent, received


class Termination:
    """One run on one rank: feed it ``passive``, ``active`` and control messages; send what it returns."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.over = False
        self.waves = 0  # completed, known to the root only
        self._parent = (rank - 1) // 2
        self._children = tuple(child for child in (2 * rank + 1, 2 * rank + 2) if child < size)
        self._wave = 1
        self._answers = 0
        self._sent_below = self._received_below = 0
        self._contributed = False
        self._counters: tuple[int, int] | None = None  # of this rank, while passive
        self._before: int | None = None  # the root's: what the last wave found, if sent and received agreed

    def passive(self, sent: int, received: int) -> list[Message]:
        """Nothing to do here, after so many messages sent and received in all since the run began."""
        self._counters = (sent, received)
        return self._advance()

    def active(self) -> None:
        """A message came, or work appeared."""
        self._counters = None

    def handle(self, message: Message) -> list[Message]:
        """Take a control message."""
        if message.payload.size != 8 * _FIELDS:
            raise self._out_of_turn(message, "is not of the right size")
        kind, wave, sent, received = message.payload.view(np.int64).tolist()
        if kind == ANSWER and wave == self._wave and message.peer in self._children and self._answers < 2:
            self._answers += 1
            self._sent_below += sent
            self._received_below += received
            return self._advance()
        if kind == ASK and wave == self._wave + 1 and message.peer == self._parent and self._contributed:
            return [*self._begin(wave), *self._advance()]
        if kind == OVER and message.peer == self._parent:
            self.over = True
            return self._to_children(OVER)
        raise self._out_of_turn(message, f"(kind {kind}, wave {wave}) does not fit wave {self._wave}")

    def _begin(self, wave: int) -> list[Message]:
        self._wave, self._answers, self._contributed = wave, 0, False
        self._sent_below = self._received_below = 0
        return self._to_children(ASK)

    def _advance(self) -> list[Message]:
        """Contribute to the wave if it is this rank's turn and the rank is passive."""
        messages: list[Message] = []
        while self._counters and not self._contributed and not self.over and self._answers == len(self._children):
            self._contributed = True
            sent, received = self._sent_below + self._counters[0], self._received_below + self._counters[1]
            if self.rank != 0:
                return [self._message(self._parent, ANSWER, sent, received)]
            self.waves += 1
            agreed = sent if sent == received else None
            if agreed is not None and agreed == self._before:
                self.over = True
                return self._to_children(OVER)
            self._before = agreed
            messages += self._begin(self._wave + 1)
            if agreed is None and not self._children:
                break  # alone, with a message to itself: the next wave would find the same
        return messages

    def _to_children(self, kind: int) -> list[Message]:
        return [self._message(child, kind) for child in self._children]

    def _message(self, peer: int, kind: int, sent: int = 0, received: int = 0) -> Message:
        return Message(peer, TAG_CONTROL, np.array([kind, self._wave, sent, received], np.int64).view(np.uint8))

    def _out_of_turn(self, message: Message, what: str) -> CommError:
        return CommError(
            f"rank {self.rank}: control message from rank {message.peer} {what}",
            fix="give every rank the same number of ranks and one Termination per run",
        )
