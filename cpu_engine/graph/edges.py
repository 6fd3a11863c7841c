"""The edge list: what a reader or generator hands over, before anything is dropped, renumbered or sorted.

Invariant: ids, direction and weights are exactly what the file says; nothing is inferred that it does not say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges in the user's ids, in the order of the file.

    ``vertices`` is the full list of ids where the format has one; ``id_range`` = (first, count) is a declared dense id
    space. Either may name vertices without edges. ``directed`` is None when the file does not say;
    ``symmetric_stored`` means undirected with each edge already present in both directions.
    """

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray | None = None
    vertices: np.ndarray | None = None
    id_range: tuple[int, int] | None = None
    directed: bool | None = None
    symmetric_stored: bool = False
    format: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.src), len(self.dst)} | ({len(self.weight)} if self.weight is not None else set())
        if len(lengths) != 1:
            raise ValueError(f"src, dst and weight differ in length: {sorted(lengths)}")

    @property
    def edge_count(self) -> int:
        """Entries in the list (an undirected edge stored in both directions counts twice)."""
        return len(self.src)
