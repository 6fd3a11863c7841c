"""Who matters in a social graph: by links, by the paths between others, by nearness - and in which circle.

python examples/influence.py [GRAPH]      any graph file; Zachary's karate club if none is given
"""

from __future__ import annotations

import sys
from pathlib import Path

import hybrid


def main(path: str) -> None:
    club = hybrid.load(path, directed=False)
    print(club)
    measures = {
        "PageRank": club.pagerank(),
        "betweenness": club.betweenness(),
        "closeness": club.closeness(),
        "triangles": club.triangles(),
    }
    for name, found in measures.items():
        leaders = ", ".join(f"{vertex} ({value:.3g})" for vertex, value in found.top(5))
        print(f"{name:12} {leaders}   [{found.certificate.kind if found.certificate else 'not checked'}]")
    circles = club.louvain()
    print(f"\n{circles.headline}")
    for circle in circles.groups():
        ranks = measures["PageRank"]
        leader = max(circle, key=lambda member: ranks[member])
        near = club.personalised_pagerank(leader).top(4)[1:]
        print(f"  circle of {len(circle):2}, led by {leader}; closest to the leader: {[vertex for vertex, _ in near]}")
    core = club.k_core()
    print(f"inner core: {[vertex for vertex, k in core.to_dict().items() if k == core.values.max()]}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("karate.el")))
