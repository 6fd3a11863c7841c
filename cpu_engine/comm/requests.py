"""What a driver may ask of a transport. A driver is a generator: it yields requests and is sent the answers.

So the same driver runs on MPI (``mpi.MpiTransport.run``) and, P of them at once, in one process (``run_loopback``).

Payloads are contiguous uint8 arrays. What an answer holds may be looked at until the driver's next request and belongs
to the transport; a driver that keeps it copies it. What is handed to ``Exchange`` may be overwritten once it is
answered; what is handed to ``Progress`` must never be written again, as it may travel long after the answer.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

TAG_REDUCE = 1
TAG_BROADCAST = 2
TAG_CONTROL = 3
TAG_OUTSIDE_ROUND = 4  # a BSP round's messages of the hybrid hook, several in one payload
FIRST_OUTSIDE_TAG = 64  # tags from here to LAST_TAG belong to the user of the hybrid hook
LAST_TAG = 255

NO_BYTES = np.empty(0, np.uint8)
NO_BYTES.setflags(write=False)


@dataclass(slots=True)
class Message:
    """A payload to (when sent) or from (when received) a peer."""

    peer: int
    tag: int
    payload: np.ndarray


@dataclass(slots=True)
class Exchange:
    """Blocking. Answer: dict peer -> payload, one for each peer in ``expect``.

    The k-th payload to a peer answers the peer's k-th expectation of this rank, and both must name the same tag.
    ``patient``: the others may take long (seconds), so sleep rather than spin while waiting.
    """

    tag: int
    outgoing: dict[int, np.ndarray]
    expect: tuple[int, ...]
    patient: bool = False


@dataclass(slots=True)
class AllReduce:
    """Blocking, by all ranks. Answer: int64, element by element the sum, the largest or the smallest over the ranks."""

    values: np.ndarray
    op: Literal["sum", "max", "min"] = "sum"
    patient: bool = False


@dataclass(slots=True)
class Progress:
    """Send without waiting; answer: list of the messages that have arrived, in any order, possibly empty.

    ``wait``: nothing to do until a message comes, so the answer may take about a millisecond; it may still be empty.
    """

    outgoing: list[Message] = field(default_factory=list)
    wait: bool = False


Request = Exchange | AllReduce | Progress
T = TypeVar("T")
Driver = Generator[Request, Any, T]
