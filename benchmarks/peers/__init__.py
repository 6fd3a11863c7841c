"""Who is compared: one adapter per library, each optional but our own."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

from benchmarks.peers.adapter import Adapter

OURS = "tandem"


@dataclass(frozen=True)
class Peer:
    """A library that may be installed: the adapter's name, the module it imports, and how to get it."""

    name: str
    module: str
    install: str

    @property
    def present(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


PEERS = (
    Peer("networkit", "networkit", "pip install networkit"),
    Peer("graphblas", "graphblas", "pip install 'python-graphblas[suitesparse]'"),
    Peer("igraph", "igraph", "pip install igraph"),
    Peer("scipy", "scipy", "pip install scipy"),
)


def adapter_named(name: str, threads: int) -> Adapter:
    """Import the library and make its adapter, set to ``threads`` threads."""
    module = importlib.import_module(f"benchmarks.peers.{name}")
    made: Adapter = module.make_adapter(threads)
    return made
