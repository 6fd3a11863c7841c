"""What every rank of test_transport runs: ``python -m mpi4py ranks_transport.py NAME [chunk bytes]``."""

from __future__ import annotations

import sys

import numpy as np

from cpu_engine.comm.mpi import CHUNK_BYTES, MpiTransport
from cpu_engine.comm.requests import AllReduce, Driver, Exchange, Message, Progress

SIZES = (0, 1, 10, 999, 1_000, 1_001, 4_096, 4_097, 70_000, 1 << 20)


def payload_of(sender: int, receiver: int, size: int) -> np.ndarray:
    """Any receiver can tell what it should have got."""
    return (np.arange(size) * 7 + 31 * sender + 3 * receiver).astype(np.uint8)


def exchanging(rank: int, size: int) -> Driver[int]:
    """Everybody with everybody, every size; then only to the right neighbour; the buffers are reused at once."""
    others = tuple(peer for peer in range(size) if peer != rank)
    total = 0
    for length in (*SIZES, *reversed(SIZES)):
        outgoing = {peer: payload_of(rank, peer, length + peer) for peer in others}
        answer = yield Exchange(9, outgoing, others, patient=length == 10)
        for buffer in outgoing.values():
            buffer[:] = 0
        assert tuple(answer) == others
        for peer, payload in answer.items():
            assert np.array_equal(payload, payload_of(peer, rank, length + rank)), (rank, peer, length)
            total += payload.size
    right, left = (rank + 1) % size, (rank - 1) % size
    for i in range(50):
        answer = yield Exchange(1 + i % 3, {right: payload_of(rank, right, i)}, (left,))
        assert np.array_equal(answer[left], payload_of(left, rank, i))
    return total


def reducing(rank: int, size: int) -> Driver[None]:
    for patient in (False, True):
        values = np.array([rank, -rank, 1 << 40], np.int64)
        added = yield AllReduce(values, patient=patient)
        largest = yield AllReduce(values, "max", patient=patient)
        smallest = yield AllReduce(values, "min", patient=patient)
        assert added.tolist() == [size * (size - 1) // 2, -size * (size - 1) // 2, size << 40]
        assert largest.tolist() == [size - 1, 0, 1 << 40]
        assert smallest.tolist() == [0, 1 - size, 1 << 40]


def messaging(rank: int, size: int) -> Driver[int]:
    """All sizes to all others, several under way at once, and nobody stops before all have come."""
    outgoing = [
        Message(peer, 64 + i, payload_of(rank, peer, length))
        for i, length in enumerate(SIZES)
        for peer in range(size)
        if peer != rank
    ]
    expected = {(peer, 64 + i) for peer in range(size) if peer != rank for i in range(len(SIZES))}
    while expected or outgoing:
        now, outgoing = outgoing[:5], outgoing[5:]
        arrived = yield Progress(now, wait=not outgoing)
        for message in arrived:
            expected.remove((message.peer, message.tag))
            length = SIZES[message.tag - 64]
            assert np.array_equal(message.payload, payload_of(message.peer, rank, length)), (message.peer, length)
    return 0


def one_word(rank: int, size: int, run: int) -> Driver[int]:
    """Send one word to all higher ranks, hear one from all lower ones: rank 0 is done at once."""
    outgoing = [Message(peer, 70, np.array([run], np.int64).view(np.uint8)) for peer in range(rank + 1, size)]
    heard: list[int] = []
    while outgoing or len(heard) < rank:
        arrived = yield Progress(outgoing, wait=True)
        outgoing = []
        heard += [int(message.payload.view(np.int64)[0]) for message in arrived]
    assert heard == [run] * rank, f"run {run} heard of {heard}"
    return run


def wrong_tags(rank: int, size: int) -> Driver[None]:
    yield Exchange(1 + rank, {1 - rank: payload_of(0, 0, 3)}, (1 - rank,))


def too_late(rank: int, size: int) -> Driver[None]:
    if rank == 0:
        yield Progress([Message(1, 70, payload_of(0, 1, 3))])


def failing(rank: int, size: int) -> Driver[None]:
    """The last rank fails; the others wait for it."""
    if rank == size - 1:
        raise RuntimeError("the last rank fails")
    yield AllReduce(np.zeros(1, np.int64))


def main(name: str, chunk_bytes: int) -> None:
    transport = MpiTransport(chunk_bytes=chunk_bytes)
    rank, size = transport.rank, transport.size
    if name == "everything":
        total = transport.run(exchanging(rank, size))
        assert transport.statistics.of(9).bytes_received == total
        transport.run(reducing(rank, size))
        transport.run(messaging(rank, size))
        sent = sum(transport.statistics.of(64 + i).bytes_sent for i in range(len(SIZES)))
        assert sent == sum(SIZES) * (size - 1)
    elif name == "runs":
        for run in range(100):
            assert transport.run(one_word(rank, size, run)) == run
            if run % 10 == 0:  # the number of a run is kept modulo 32; nobody may be further ahead than half of that
                transport.run(reducing(rank, size))
    elif name == "too late":
        transport.run(too_late(rank, size))
        transport.run(reducing(rank, size))
        transport.run(messaging(rank, size))
    else:
        transport.run({"wrong tags": wrong_tags, "failing": failing}[name](rank, size))
    transport.run(reducing(rank, size))
    transport.close()
    print(f"rank {rank} of {size} is content", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else CHUNK_BYTES)
