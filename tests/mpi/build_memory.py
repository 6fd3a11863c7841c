"""Build a Kronecker graph on ranks and print, at rank 0, the largest peak of anonymous memory and the estimate."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import numpy as np
from mpi4py import MPI

from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.mpi import MpiTransport
from cpu_engine.graph.distributed.build import build_on_ranks, estimate_bytes
from cpu_engine.graph.distributed.shares import Share, share_of_kronecker


def anonymous_bytes() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024


def weighted_share(rank: int, ranks: int, scale: int) -> Share:
    made = share_of_kronecker(rank, ranks, scale)

    def pieces():
        for piece in made.pieces():
            yield replace(piece, weight=(piece.src.astype(np.int64) * 7 + piece.dst) % 255)

    return replace(made, pieces=pieces, weight_dtype="int64")


def main() -> None:
    scale, weighted = int(sys.argv[1]), sys.argv[2] == "weighted"
    transport = MpiTransport()
    rank, ranks = transport.rank, transport.size
    info = RankInfo(rank, ranks, ("here",) * ranks)
    share_of = weighted_share if weighted else share_of_kronecker
    transport.run(build_on_ranks(info, share_of(rank, ranks, 8), "iec", weighted=weighted))  # compiles
    before, peak, over = anonymous_bytes(), [0], threading.Event()

    def watch() -> None:
        while not over.is_set():
            peak[0] = max(peak[0], anonymous_bytes())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    transport.run(build_on_ranks(info, share_of(rank, ranks, scale), "iec", weighted=weighted))
    over.set()
    watcher.join()
    largest = MPI.COMM_WORLD.reduce(peak[0] - before, MPI.MAX)
    if rank == 0:
        print(f"{largest} of {estimate_bytes(16 << scale, 1 << scale, ranks, weighted=weighted)}", flush=True)


if __name__ == "__main__":
    main()
