"""Shortest paths on a road map: a grid of streets with travel times, and a few closed roads.

python examples/road_map.py [SIDE]
"""

from __future__ import annotations

import sys

import numpy as np

import hybrid


def city(side: int) -> hybrid.Graph:
    """A crossing per vertex, r * side + c; minutes per street; every tenth street is closed."""
    crossing = np.arange(side * side).reshape(side, side)
    source = np.concatenate([crossing[:, :-1].ravel(), crossing[:-1].ravel()])
    target = np.concatenate([crossing[:, 1:].ravel(), crossing[1:].ravel()])
    random = np.random.default_rng(7)
    open_streets = random.random(source.size) > 0.1
    minutes = random.integers(1, 10, source.size)
    return hybrid.from_edges(
        source[open_streets], target[open_streets], minutes[open_streets],
        directed=False, vertices=crossing.ravel(),
    )  # fmt: skip


def main(side: int) -> None:
    roads = city(side)
    home, work = 0, side * side - 1
    print(roads)
    by_time, by_streets = roads.sssp(home), roads.bfs(home)
    print(by_time)
    if work not in by_time.to_dict():
        print(f"no road leads from {home} to {work}")
        return
    route = by_time.path(work)
    print(f"\nquickest: {by_time[work]} minutes over {len(route) - 1} streets: {route[:6]} ... {route[-3:]}")
    print(f"fewest streets: {by_streets[work]}")
    within = {
        minutes: int(np.count_nonzero(by_time.reached & (by_time.distance <= minutes))) for minutes in (10, 20, 40)
    }
    print("crossings within", ", ".join(f"{minutes} minutes: {count}" for minutes, count in within.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
