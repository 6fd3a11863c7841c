"""Generators: reproducible to the byte, shaped as specified, refusing what cannot be."""

from __future__ import annotations

import hashlib

import numba
import numpy as np
import pytest

from cpu_engine.errors import InputError
from cpu_engine.graph import generators
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.formats import read_graph, write_graph
from cpu_engine.graph.generators import grid, kronecker, uniform
from cpu_engine.graph.kernels.generate import scramble


def fingerprint(edges: EdgeList) -> str:
    ends = [array.astype(np.int64).tobytes() for array in (edges.src, edges.dst)]
    return hashlib.blake2b(b"".join(ends), digest_size=8).hexdigest()


def test_kronecker_is_the_same_list_for_ever():
    assert fingerprint(kronecker(10, 16, seed=1)) == "86576ff978eaff2d"
    assert fingerprint(kronecker(10, 16, seed=2)) != "86576ff978eaff2d"


def test_uniform_is_the_same_list_for_ever():
    assert fingerprint(uniform(10, 16, seed=1)) == "bf9f5b25c6ac0b21"


@pytest.mark.jitless
def test_small_lists_are_the_same_with_and_without_jit():
    assert fingerprint(kronecker(5, 4, seed=7)) == "1953c29f18bbb4ef"
    assert fingerprint(uniform(5, 4, seed=7)) == "d739e39996dfd336"


def test_the_number_of_threads_does_not_matter():
    threads = numba.get_num_threads()
    many = fingerprint(kronecker(11, 8, seed=3))
    try:
        numba.set_num_threads(1)
        assert fingerprint(kronecker(11, 8, seed=3)) == many
    finally:
        numba.set_num_threads(threads)


def test_kronecker_declares_its_space():
    edges = kronecker(8, 16)
    assert edges.src.size == 16 * 256
    assert edges.src.dtype == edges.dst.dtype == np.int32
    assert edges.src.base is edges.dst.base  # one block, so that the build can use it again
    assert edges.id_range == (0, 256)
    assert edges.directed is False
    assert min(edges.src.min(), edges.dst.min()) >= 0
    assert max(edges.src.max(), edges.dst.max()) < 256


def test_kronecker_degrees_are_skewed_and_uniform_ones_are_not():
    def top_share(edges: EdgeList) -> float:
        degree = np.sort(np.bincount(np.concatenate([edges.src, edges.dst]), minlength=4096))[::-1]
        return degree[:40].sum() / degree.sum()

    assert top_share(kronecker(12, 16)) > 0.12  # the top 1 % of vertices
    assert top_share(uniform(12, 16)) < 0.02


def test_kronecker_quadrants_have_their_probabilities():
    # One bit per id: an edge is its quadrant.
    edges = kronecker(1, 1 << 16, seed=5)
    counts = np.bincount(2 * edges.src + edges.dst, minlength=4) / edges.src.size
    # Scrambling one bit is the identity or a swap of the two vertices.
    assert np.allclose(counts, [0.57, 0.19, 0.19, 0.05], atol=0.01) or np.allclose(
        counts, [0.05, 0.19, 0.19, 0.57], atol=0.01
    )


def test_the_upper_levels_of_the_recursion_are_independent():
    # The heaviest vertex has about E * (a + b)^scale out-edges, which fails if two levels share their randomness.
    edges = kronecker(12, 16)
    heaviest = np.bincount(edges.src, minlength=4096).max() / edges.src.size
    assert heaviest == pytest.approx(0.76**12, rel=0.15)


@pytest.mark.jitless
@pytest.mark.parametrize("scale", [0, 1, 2, 3, 7])
def test_scrambling_is_a_bijection(scale):
    keys = [generators._draw(99, i) for i in range(7)]
    factor = np.array([k | 1 for k in keys[1::2]], np.uint64)
    addend = np.array(keys[2::2], np.uint64)
    mask, shift = np.uint64(2**scale - 1), np.uint64((scale + 1) // 2 or 1)
    with np.errstate(over="ignore"):
        images = {int(scramble(np.uint64(x), mask, shift, factor, addend)) for x in range(2**scale)}
    assert images == set(range(2**scale))


@pytest.mark.jitless
def test_grid_joins_four_neighbours():
    edges = grid(3, 4)
    assert edges.id_range == (0, 12)
    pairs = set(zip(edges.src.tolist(), edges.dst.tolist(), strict=True))
    expected = {(r * 4 + c, r * 4 + c + 1) for r in range(3) for c in range(3)}
    expected |= {(r * 4 + c, r * 4 + c + 4) for r in range(2) for c in range(4)}
    assert pairs == expected
    assert edges.src.size == len(expected)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (1, 1)])
def test_grids_without_edges(shape):
    edges = grid(*shape)
    assert edges.src.size == 0
    assert edges.id_range == (0, shape[0] * shape[1])


@pytest.mark.parametrize("name", ["graph.el", "graph.txt", "graph.mtx", "graph.sg", "graph.gr"])
def test_every_writer_takes_narrow_ids(name, tmp_path):
    def pairs(edges: EdgeList) -> list[tuple[int, int]]:
        both = [*zip(edges.src.tolist(), edges.dst.tolist(), strict=True)]
        return sorted({(min(pair), max(pair)) for pair in both})

    edges = kronecker(7, 4, seed=8)
    write_graph(tmp_path / name, edges)
    assert pairs(read_graph(tmp_path / name)) == pairs(edges)


def test_scale_zero_is_one_vertex_with_loops():
    edges = kronecker(0, 3)
    assert edges.id_range == (0, 1)
    assert edges.src.tolist() == edges.dst.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: kronecker(31),
        lambda: kronecker(-1),
        lambda: kronecker(4, -1),
        lambda: kronecker(4, a=0.9, b=0.2),
        lambda: uniform(40, 1),
        lambda: grid(-1, 3),
        lambda: grid(1 << 20, 1 << 20),
        lambda: kronecker(30, 1 << 20),  # 16 PiB
    ],
)
def test_what_cannot_be_made_is_refused_with_a_fix(make):
    with pytest.raises(InputError, match=r"Fix: "):
        make()
