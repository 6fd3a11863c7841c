"""What is asked for in ``bench soak``: graphs, jobs of all twelve algorithms, and requests that must be refused."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.soak.reference import Reference
from benchmarks.soak.tally import Spec
from cpu_engine.graph import generators
from cpu_engine.graph.edges import EdgeList

_SOURCES = 40  # of each graph, that questions and jobs are about
_WEIGHTED = "roads.wel"
_ODD = 7  # ids of the weighted graph are not dense


@dataclass(frozen=True)
class Subject:
    """A graph that is there all the time."""

    reference: Reference
    sources: list[int]
    specs: list[Spec]

    @property
    def name(self) -> str:
        return self.reference.name


@dataclass(frozen=True)
class Guest:
    """A graph that comes and goes: a request, its body and the reference."""

    reference: Reference
    upload: bytes | None
    generator: dict[str, Any] | None


def from_edges(name: str, edges: EdgeList) -> Reference:
    """The reference of a generated graph."""
    assert edges.id_range is not None
    return Reference(name, np.arange(edges.id_range[1]), edges.src, edges.dst, None, directed=False)


def make_subjects(data: Path, scales: tuple[int, ...], side: int) -> list[Subject]:
    """Kronecker graphs, a grid, and a directed one with weights in a file below ``data``. The first is preloaded."""
    found = [from_edges(f"kronecker-s{scale}-ef16-seed1", generators.kronecker(scale, 16, 1)) for scale in scales]
    found.append(from_edges(f"grid-{side}x{side}", generators.grid(side, side)))
    found.append(_weighted(data / _WEIGHTED, 3000, 15000))
    return [_subject(reference, seed) for seed, reference in enumerate(found)]


def requests_for(subject: Subject, side: int) -> dict[str, Any]:
    """How the service is asked to open a subject that it does not have."""
    if subject.name.startswith("grid"):
        return {"id": subject.name, "generator": {"kind": "grid", "rows": side, "cols": side}}
    if subject.name == _WEIGHTED:
        return {"id": subject.name, "path": _WEIGHTED, "directed": True}
    scale = int(subject.name.partition("-s")[2].partition("-")[0])
    return {"id": subject.name, "generator": {"kind": "kronecker", "scale": scale, "edge_factor": 16, "seed": 1}}


def _weighted(path: Path, vertices: int, edges: int) -> Reference:
    draw = np.random.default_rng(11)
    ends = draw.integers(0, vertices, (2, edges)) * _ODD + 5
    weight = draw.integers(1, 100, edges)
    np.savetxt(path, np.stack((*ends, weight), axis=1), fmt="%d")
    return Reference(_WEIGHTED, np.unique(ends), ends[0], ends[1], weight, directed=True)


def _subject(reference: Reference, seed: int) -> Subject:
    draw = np.random.default_rng(seed)
    degree = np.diff(reference.joined.indptr)
    some = draw.choice(np.flatnonzero(degree), _SOURCES, replace=False)
    alone = np.flatnonzero(degree == 0)[:2]  # a vertex without edges is a source, too
    sources = [int(reference.ids[at]) for at in (*some, *alone)]
    return Subject(reference, sources, _specs(reference, sources))


def _specs(reference: Reference, sources: list[int]) -> list[Spec]:
    """Every algorithm, with options; those with npu.mode are the service's and its worker's, the others the ranks'."""
    share, quiet = {"npu.mode": "share"}, {"npu.mode": "share", "compare.enabled": False}
    few = sorted(sources[:4])
    wanted: list[tuple[str, dict[str, Any], Any]] = [
        ("bfs", {}, sources[0]), ("bfs", {}, sources[-1]), ("bfs", {}, sources[1:4]), ("bfs", {}, "random:2"),
        ("bfs", quiet, sources[2]), ("bfs", share, sources[3]), ("bfs", quiet, sources[4:20]),
        ("bfs", {"npu.mode": "race"}, sources[5]), ("bfs", {"npu.mode": "auto"}, sources[6]),
        ("sssp", {}, sources[0]), ("sssp", {}, sources[7:9]), ("sssp", {"sssp.strategy": "push"}, sources[1]),
        ("sssp", {"sssp.strategy": "pull"}, sources[2]), ("sssp", quiet, sources[3]),
        ("wcc", {}, None), ("wcc", quiet, None), ("scc", {}, None),
        ("pagerank", {}, None), ("pagerank", {"pagerank.iterations": 25}, None), ("pagerank", quiet, None),
        ("pagerank", {"pagerank.definition": "gap", "pagerank.iterations": 100}, None),
        ("pagerank", {"pagerank.damping": 0.5, "pagerank.iterations": 5}, None),
        ("cdlp", {}, None), ("cdlp", {"cdlp.iterations": 3}, None), ("kcore", {}, None),
        ("triangles", {}, None), ("lcc", {}, None), ("louvain", {}, None),
        ("louvain", {"louvain.resolution": 0.5, "louvain.seed": 3}, None),
        ("closeness", {"centrality.sources": few}, None),
        ("closeness", {"centrality.sources": few, "centrality.harmonic": True}, None),
        ("betweenness", {"centrality.sources": few}, None),
        ("betweenness", {"centrality.sources": few, "centrality.normalised": False}, None),
    ]  # fmt: skip
    if reference.n < 1 << 12:
        wanted.append(("closeness", {}, None))
    return [Spec(reference.name, algorithm, options, source) for algorithm, options, source in wanted]


def precompute(subject: Subject) -> None:
    """Every answer that will be needed, before anything is asked."""
    for source in subject.sources:
        subject.reference.hops(source)
        subject.reference.costs(source)
    for spec in subject.specs:
        if spec.algorithm not in ("bfs", "sssp", "louvain") and spec.options.get("pagerank.definition") != "gap":
            subject.reference.expected(spec.algorithm, spec.options)


def make_guests(count: int = 6) -> list[Guest]:
    """Uploads, some of them packed, and generated graphs."""
    found = []
    for seed in range(count):
        draw = np.random.default_rng(100 + seed)
        name = f"guest-{seed}"
        if seed % 3 == 2:
            edges = generators.uniform(8, 4, seed)
            wanted = {"kind": "uniform", "scale": 8, "edge_factor": 4, "seed": seed}
            found.append(Guest(from_edges(name, edges), None, wanted))
            continue
        ends = draw.integers(0, 400, (2, 900)) * 3
        text = "".join(f"{a} {b}\n" for a, b in ends.T.tolist()).encode()
        content = gzip.compress(text, mtime=0) if seed % 3 == 1 else text
        reference = Reference(name, np.unique(ends), ends[0], ends[1], None, directed=False)
        found.append(Guest(reference, content, None))
    return found


@dataclass(frozen=True)
class Refused:
    """A request that must be refused, with one of these statuses."""

    method: str
    path: str
    statuses: tuple[int, ...]
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


def refused_requests(graph: str, vertex: int) -> list[Refused]:
    """Nonsense of many kinds."""
    jobs, graphs = "/v1/jobs", "/v1/graphs"
    ask, known = f"/v1/graphs/{graph}", f'{{"graph": "{graph}", '

    def job(rest: str, *statuses: int) -> Refused:
        return Refused("POST", jobs, statuses, (known + rest).encode())

    binary = (("Content-Type", "application/octet-stream"),)
    return [
        Refused("POST", jobs, (422,), b'{"graph": "'),
        Refused("POST", jobs, (422,), b"\xff\xfe\x00 not json"),
        Refused("POST", jobs, (422,), b"[]"),
        Refused("POST", jobs, (400, 422), b"[" * 20000),
        Refused("POST", jobs, (404,), b'{"graph": "nobody", "algorithm": "wcc"}'),
        job('"algorithm": "magic"}', 422),
        job('"algorithm": "bfs"}', 422),
        job('"algorithm": "wcc", "source": 1}', 422),
        job('"algorithm": "wcc", "options": {"threads": 64}}', 422),
        job('"algorithm": "pagerank", "options": {"pagerank.damping": 7}}', 422),
        job('"algorithm": "pagerank", "options": {"pagerank.iterations": "many"}}', 422),
        job('"algorithm": "bfs", "source": 9007199254740993}', 422),
        job('"algorithm": "bfs", "source": -1}', 422),
        job('"algorithm": "bfs", "source": 1e300}', 422),
        job(f'"algorithm": "bfs", "source": {[vertex] * 2000}}}', 413),
        job('"algorithm": "wcc", "deadline_s": 0}', 422),
        job('"algorithm": "wcc", "surprise": true}', 422),
        Refused("POST", jobs, (413,), b" " * (1 << 20 | 1)),
        Refused("GET", f"{jobs}/0123456789abcdef", (404,)),
        Refused("GET", f"{jobs}/0123456789abcdef/result", (404,)),
        Refused("GET", f"{jobs}/..%2f..%2flock", (404,)),
        Refused("POST", f"{jobs}/0123456789abcdef/cancel", (404,)),
        Refused("DELETE", f"{jobs}/0123456789abcdef", (404,)),
        Refused("PUT", jobs, (405,), b"{}"),
        Refused("GET", f"{jobs}?limit=0", (422,)),
        Refused("GET", "/v1/events?job=nobody", (404,)),
        Refused("GET", f"{ask}/distance?source=0", (422,)),
        Refused("GET", f"{ask}/distance?source=a&target=b", (422,)),
        Refused("GET", f"{ask}/distance?source=0&target=99999999999", (422,)),
        Refused("GET", f"{ask}/levels?source=18446744073709551616", (422,)),
        Refused("GET", f"{ask}/neighbours?source=0&hops=-1", (422,)),
        Refused("GET", f"{ask}/levels?source=0&deadline_s=-3", (422,)),
        Refused("GET", f"{ask}/levels?source=0", (403,), None, (("Host", "example.org"),)),
        Refused("GET", "/v1/graphs/nobody/levels?source=0", (404,)),
        Refused("GET", "/v1/nothing", (404,)),
        Refused("GET", "/page/..%2fservice.py", (404,)),
        Refused("DELETE", f"{graphs}/nobody", (404,)),
        Refused("POST", graphs, (422,), b"{}"),
        Refused("POST", graphs, (404, 422), b'{"path": "../journal/lock"}'),
        Refused("POST", graphs, (404,), b'{"path": "/etc/passwd"}'),
        Refused("POST", graphs, (422,), b'{"path": "\\u0000"}'),
        Refused("POST", graphs, (422, 507), b'{"generator": {"kind": "kronecker", "scale": 30, "edge_factor": 1024}}'),
        Refused("POST", graphs, (409,), f'{{"id": "{graph}", "generator": {{"scale": 3}}}}'.encode()),
        Refused("POST", f"{graphs}/upload?id=BAD/NAME", (422,), b"0 1\n", binary),
        Refused("POST", f"{graphs}/upload?id={graph}", (409,), b"0 1\n", binary),
        Refused("POST", f"{graphs}/upload?id=large", (413,), b"0 1\n" * (1 << 19), binary),
        Refused("POST", jobs, (403,), b"{}", (("Content-Type", "application/json"), ("Sec-Fetch-Site", "cross-site"))),
    ]  # fmt: skip
