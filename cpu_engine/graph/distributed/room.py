"""Memory for the ranks' parts, asked for before anything is made or read.

Invariant: the estimate is that of all ranks of a machine together, and every rank comes to the same answer.
"""

from __future__ import annotations

from cpu_engine.comm.agreement import together
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.requests import Driver
from cpu_engine.counted import plural
from cpu_engine.graph.build.extent import Extent
from cpu_engine.graph.distributed.build import estimate_bytes
from cpu_engine.graph.memory import require_bytes


def require_room_on_ranks(
    info: RankInfo, extent: Extent, directed: bool | None = None, *, weighted: bool = False
) -> Driver[None]:
    """InputError at every rank if the parts of one machine's ranks do not fit into the memory available there."""
    as_directed = directed if directed is not None else extent.directed is not False
    here, mirrored = len(info.local_ranks), not as_directed and not extent.symmetric_stored
    each = estimate_bytes(extent.edges, extent.vertices, info.size, mirrored=mirrored, weighted=weighted)
    size = f"a graph of about {plural(extent.edges, 'edge')} and {plural(extent.vertices, 'vertex')}"

    def look() -> None:
        if info.rank == info.first_here:
            purpose = f"building {here} of the {plural(info.size, 'part')} of {size} on {info.host}"
            require_bytes(here * each, purpose, "use more machines, or fewer ranks with more threads")

    yield from together(info, look)
