"""What is compared: one adapter per library, each optional but our own."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

from benchmarks.peers.adapter import Adapter
from hybrid.checkout import install_packages

OURS = "tandem"


@dataclass(frozen=True)
class Peer:
    """A library that may be installed: the adapter's name, the module it imports, and the package to install."""

    name: str
    module: str
    package: str

    @property
    def install(self) -> str:
        return install_packages(self.package)

    @property
    def present(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


PEERS = (
    Peer("networkit", "networkit", "networkit"),
    Peer("graphblas", "graphblas", "python-graphblas[suitesparse]"),
    Peer("igraph", "igraph", "igraph"),
    Peer("scipy", "scipy", "scipy"),
)


def adapter_named(name: str, threads: int) -> Adapter:
    """Import the library and make its adapter, set to ``threads`` threads."""
    module = importlib.import_module(f"benchmarks.peers.{name}")
    made: Adapter = module.make_adapter(threads)
    return made
