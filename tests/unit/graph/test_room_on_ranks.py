"""Memory on ranks: every machine's ranks are counted together, and all ranks raise the same error."""

from __future__ import annotations

import pytest

from cpu_engine.comm.agreement import AgreedInputError
from cpu_engine.comm.collectives import RankInfo
from cpu_engine.comm.loopback import run_loopback
from cpu_engine.graph import memory
from cpu_engine.graph.build.extent import Extent, generated_extent
from cpu_engine.graph.distributed.build import estimate_bytes
from cpu_engine.graph.distributed.room import require_room_on_ranks

EXTENT = generated_extent("kronecker", scale=20, edge_factor=16)


def ask(hosts: str, extent: Extent = EXTENT, **how: bool) -> None:
    run_loopback(
        [require_room_on_ranks(RankInfo(rank, len(hosts), tuple(hosts)), extent, **how) for rank in range(len(hosts))]
    )


def test_all_ranks_of_a_machine_count(monkeypatch):
    each = estimate_bytes(EXTENT.edges, EXTENT.vertices, 3)
    monkeypatch.setattr(memory, "available_bytes", lambda: each + 1)
    ask("abc")
    with pytest.raises(AgreedInputError, match=r"building 2 of the 3 parts .* on b needs"):
        ask("abb")


def test_weights_and_directions_count(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: estimate_bytes(EXTENT.edges, EXTENT.vertices, 1))
    ask("a")
    with pytest.raises(AgreedInputError, match=r"of memory, but only .* is available"):
        ask("a", weighted=True)
    ask("a", directed=True)


def test_more_ranks_need_less_each():
    needed = [estimate_bytes(1 << 30, 1 << 26, ranks) for ranks in (1, 4, 8)]
    assert needed[1] < 0.4 * needed[0]
    assert needed[2] < 0.25 * needed[0]
