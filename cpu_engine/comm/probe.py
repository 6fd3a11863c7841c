"""``mpirun -n P python -m mpi4py -m cpu_engine.comm.probe``: rank 0 prints one JSON line about the MPI that was found.

If launcher and library do not belong together, every process is rank 0 of 1 and prints a line: that is how it shows.
"""

from __future__ import annotations

import json

from mpi4py import MPI


def library_name() -> str:
    """Which MPI mpi4py uses, in a few words."""
    return MPI.Get_library_version().split(",")[0].split("\n")[0].strip()


def main() -> None:
    comm = MPI.COMM_WORLD
    total = comm.allreduce(comm.rank)
    if comm.rank == 0:
        print(json.dumps({"size": comm.size, "rank_sum": total, "library": library_name()}), flush=True)


if __name__ == "__main__":
    main()
