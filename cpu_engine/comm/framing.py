"""Several messages in one payload: 16 bytes (tag, length as int64) before each, padded so that each begins aligned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cpu_engine.comm.errors import CommError
from cpu_engine.comm.requests import NO_BYTES, Message

_HEADER = 16
_ALIGNMENT = 8


def join_messages(messages: list[Message], peers: tuple[int, ...]) -> dict[int, np.ndarray]:
    """One payload for each of ``peers``, empty where there is no message for it."""
    pieces: dict[int, list[np.ndarray]] = {peer: [] for peer in peers}
    for message in messages:
        if message.peer not in pieces:
            raise CommError(
                f"a message of tag {message.tag} for rank {message.peer}, with which nothing was agreed",
                fix=f"name rank {message.peer} among outside_to, and this rank among its outside_from",
            )
        header = np.array([message.tag, message.payload.size], np.int64).view(np.uint8)
        padding = np.zeros(-message.payload.size % _ALIGNMENT, np.uint8)
        pieces[message.peer] += [header, message.payload, padding]
    return {peer: np.concatenate(parts) if parts else NO_BYTES for peer, parts in pieces.items()}


def split_messages(peer: int, payload: np.ndarray) -> Iterator[Message]:
    """The messages from ``peer`` again, in the order in which they were joined."""
    at = 0
    while at < payload.size:
        body = at + _HEADER
        tag, length = payload[at:body].view(np.int64).tolist() if body <= payload.size else (0, -1)
        if not 0 <= length <= payload.size - body:
            raise CommError(
                f"joined messages from rank {peer} end in the middle of one", fix="run the same version on all ranks"
            )
        yield Message(peer, tag, payload[body : body + length])
        at = body + length + -length % _ALIGNMENT
