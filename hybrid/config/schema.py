"""The configuration's keys: name, type, default, range and meaning, each in one place.

The defaults are the default job; configs/cluster.yaml spells them out, with ``DEFAULT_JOB_RANKS`` (a test proves it).
Everything is frozen: a job's configuration never changes under it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hybrid.registry import ALGORITHMS

Rule = Literal["drop", "keep"]

LONGEST_S = 1e7  # seconds, of anything that is waited for
MOST_ITERATIONS = 1_000_000

DEFAULT_JOB_RANKS = (
    2  # of configs/cluster.yaml and of `run` without arguments; any other job has one unless it says more
)


def key(
    default: Any,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    also: tuple[object, ...] = (),
    family: str = "",
) -> Any:
    """A configuration value: its meaning, and what it may be.

    ``also`` lists values allowed besides its type, ``family`` names those besides the choices that have a check of
    their own.
    """
    metadata = {
        "doc": doc, "choices": choices, "minimum": minimum, "maximum": maximum, "also": also, "family": family,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


def duration(default: float | None, doc: str, *, minimum: float) -> Any:
    """Seconds that something is waited for."""
    return key(default, doc, minimum=minimum, maximum=LONGEST_S)


def section(kind: type) -> Any:
    """A nested group of keys."""
    return field(default_factory=kind)


@dataclass(frozen=True)
class GeneratorConfig:
    kind: str = key("kronecker", "which graph to generate", choices=("kronecker", "uniform", "grid"))
    scale: int = key(16, "log2 of the number of vertices (kronecker, uniform)", minimum=0, maximum=30)
    edge_factor: int = key(16, "edges per vertex (kronecker, uniform)", minimum=1, maximum=1024)
    seed: int = key(1, "the same seed gives the same graph on every machine", minimum=0)
    a: float = key(0.57, "Kronecker initiator, upper left (Graph500: 0.57)", minimum=0, maximum=1)
    b: float = key(0.19, "Kronecker initiator, upper right (Graph500: 0.19)", minimum=0, maximum=1)
    c: float = key(0.19, "Kronecker initiator, lower left (Graph500: 0.19)", minimum=0, maximum=1)
    rows: int = key(256, "rows of the grid", minimum=1)
    cols: int = key(256, "columns of the grid", minimum=1)


@dataclass(frozen=True)
class GraphConfig:
    path: str | None = key(
        None,
        "graph file in any known format, several (a folder of part files, or a pattern such as edges/*.txt.gz), "
        "or a stored graph; null = generate one",
    )
    format: str = key("auto", "how to read the file; auto = by its content (docs/reference/formats.md lists the names)")
    directed: bool | str = key("auto", "true, false, or auto = what the file says, else directed", also=("auto",))
    self_loops: Rule = key("drop", "edges from a vertex to itself", choices=("drop", "keep"))
    duplicates: Rule = key("drop", "repeated edges (the smallest weight stays)", choices=("drop", "keep"))
    cache: bool = key(True, "keep the built graph, so that the next run opens it in milliseconds")
    cache_dir: str | None = key(None, "where built graphs are kept; null = $TANDEM_CACHE, else ~/.cache/tandem")
    generator: GeneratorConfig = section(GeneratorConfig)


@dataclass(frozen=True)
class ClusterConfig:
    """How a job on several ranks is cut, kept in step and started. At most one of hosts and hostfile is given."""

    policy: str = key(
        "auto",
        "which rank holds an edge: oec, iec = the owner of its source, of its target; cvc, 2d = a grid of ranks; "
        "uvc = by the target's degree; auto = iec (engine: level from 16 ranks on: 2d)",
        choices=("auto", "oec", "iec", "cvc", "uvc", "2d"),
    )
    sync: str = key(
        "basp",
        "engine: async - basp = a rank goes on with what it has; bsp = all ranks in rounds",
        choices=("basp", "bsp"),
    )
    hosts: tuple[str, ...] = key(
        (), "machines for the ranks, `name` or `name:slots`; empty = this one, or what Slurm gave"
    )
    hostfile: str | None = key(None, "the same in a file, one `name slots=N` per line, as mpirun reads it")
    threads_per_rank: int | str = key(
        "auto", "CPU threads of each rank; auto = the machine's CPUs divided evenly", minimum=1, also=("auto",)
    )
    bind: str = key(
        "auto",
        "tie a rank to a core or socket; auto = none, for a tied rank would hold its threads and its worker there, too",
        choices=("auto", "none", "core", "socket"),
    )
    mpirun: str | None = key(None, "the launcher; null = the one beside this Python, else the first in PATH")
    mpirun_args: tuple[str, ...] = key((), "further arguments for it, for example [--mca, btl, 'tcp,self']")
    launch_timeout_s: float = duration(120.0, "all ranks must have met after this long", minimum=1)
    silence_timeout_s: float | None = duration(
        120.0,
        "a job ends with an error when a rank has not run at all for so long, or mpirun was stopped (SIGSTOP); "
        "null = never. Long computations are no silence",
        minimum=1,
    )
    partition_cache: bool = key(True, "keep each rank's part of the graph for the next run")
    build: str = key(
        "auto",
        "whole = one rank of each machine opens or builds the graph; shares = each rank makes its share of the edges, "
        "holds its part alone and proves it; auto = whole where that fits into the memory, else shares",
        choices=("auto", "whole", "shares"),
    )


@dataclass(frozen=True)
class BfsConfig:
    strategy: str = key(
        "auto",
        "engine: level - how a level is expanded; auto changes direction, fastest (docs/explanation/strategies.md)",
        choices=(
            "auto", "push", "push-private", "push-edge", "push-bucketed", "pull", "pull-numa", "edge-centric",
            "small-levels", "switching",
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class SsspConfig:
    strategy: str = key(
        "delta",
        "delta = delta-stepping, nearest first; push = the whole worklist; pull = every vertex looks at its in-edges "
        "(docs/explanation/sssp.md)",
        choices=("delta", "push", "pull"),
    )
    delta: float | None = key(
        None, "strategy: delta - width of a bucket of distances; null = by the weights", minimum=0
    )


@dataclass(frozen=True)
class PageRankConfig:
    definition: str = key(
        "ldbc",
        "ldbc = a fixed number of iterations, the rank of vertices without out-edges goes to all; gap = until the "
        "change is small, that rank is lost (docs/reference/algorithms.md)",
        choices=("ldbc", "gap"),
    )
    damping: float = key(0.85, "share of a vertex's rank that it hands on", minimum=0, maximum=1)
    tolerance: float | None = key(
        None, "definition: gap - stop when all ranks together change by less; null = 1e-4", minimum=0
    )
    iterations: int | None = key(
        None, "ldbc: so many, null = 10; gap: at most so many, null = 20", minimum=1, maximum=MOST_ITERATIONS
    )


@dataclass(frozen=True)
class CdlpConfig:
    iterations: int = key(10, "rounds of label propagation", minimum=0, maximum=MOST_ITERATIONS)


@dataclass(frozen=True)
class LouvainConfig:
    resolution: float = key(
        1.0, "above 1: more and smaller communities; below: fewer and larger", minimum=0, maximum=1e6
    )
    seed: int = key(0, "seed of the order in which vertices are looked at", minimum=0)


@dataclass(frozen=True)
class CentralityConfig:
    sources: int | str | tuple[int, ...] = key(
        "all",
        "closeness: of whom; betweenness: paths from whom - all (exact), random:N (drawn with source_seed), an id or a "
        "list of ids",
    )
    normalised: bool = key(True, "betweenness: as a share of the pairs of other vertices")
    harmonic: bool = key(False, "closeness: sum of reciprocal distances, instead of the reciprocal of their sum")


@dataclass(frozen=True)
class CoreConfig:
    """At most one of threshold, quantile and size is given; with none, the rule is automatic."""

    threshold: int | None = key(None, "the core is the vertices of at least this degree", minimum=0)
    quantile: float | None = key(None, "the core is the vertices above this quantile of degree", minimum=0, maximum=1)
    size: int | None = key(None, "the core is this many vertices of highest degree", minimum=0)
    max_bytes: int = key(4 << 20, "the core's matrix (4 bytes per pair) never takes more than this", minimum=4)
    min_density: float = key(0.02, "automatic rule: halve the core until it is this dense", minimum=0, maximum=1)


@dataclass(frozen=True)
class NpuConfig:
    mode: str = key(
        "share",
        "off = CPU only; race = the worker helps if it is in time; share = core edges are the worker's; auto = decide",
        choices=("off", "race", "share", "auto"),
    )
    device: str = key(
        "auto",
        "auto = Ascend if present, else MindSpore on the CPU; simulated:NAME = no device, but true values at the "
        "moment that a model of it says (docs/explanation/devices.md)",
        choices=("auto", "ascend", "cpu"),
        family="simulated:NAME",
    )
    device_id: int = key(0, "which Ascend device", minimum=0)
    worker: str = key("launch", "launch = start one; external = one is started by hand", choices=("launch", "external"))
    keep_worker: bool = key(False, "worker: external - leave it running after the job (no stop.flag)")
    threads: int = key(1, "CPU threads of a worker without an NPU, so that it does not starve the engine", minimum=1)
    memory_budget: int | None = key(
        None,
        "bytes that a core may take on the device; a larger one is worked on in compacted pieces; null = what is free",
        minimum=4096,
    )
    start_timeout_s: float = duration(60.0, "share: wait this long for a worker that is still starting", minimum=0)
    round_timeout_s: float = duration(10.0, "a round that takes longer ends the worker's part", minimum=0.001)
    max_rounds: int = key(1000, "rounds per traversal; a worker that needs more is done without", minimum=1)
    batch: int | str = key(
        1,
        "bfs: sources traversed at once, their core values in one round; auto = what the planner finds best",
        minimum=1,
        maximum=1024,
        also=("auto",),
    )
    index: str = key(
        "off",
        "bfs: on = the worker makes the distances between all core vertices once, kept for later jobs, and values "
        "follow without rounds; auto = use what is kept, make it for 64 searches or more",
        choices=("off", "auto", "on"),
    )
    stop_grace_s: float = duration(3.0, "stop.flag, this long, then SIGTERM, this long, then SIGKILL", minimum=0)


@dataclass(frozen=True)
class ExchangeConfig:
    dir: str | None = key(
        None, "directory shared with the worker; null = a fresh one in memory or in the temp directory"
    )
    format: str = key("text", "text = the interoperable files; binary = the .npy twin", choices=("text", "binary"))
    watch: str = key("auto", "how answers are noticed; poll for NFS", choices=("auto", "events", "poll"))
    poll_interval_s: float = key(0.002, "interval of watch: poll", minimum=0.0001, maximum=10)
    max_bytes: int = key(256 << 20, "an answer larger than this is refused unread", minimum=1024)
    keep: bool = key(False, "leave the rounds' files there afterwards")


@dataclass(frozen=True)
class ResultConfig:
    forms: tuple[str, ...] = key((), "further forms beside .npy: text, ldbc", choices=("text", "ldbc"))
    report: bool = key(True, "write report.html")
    arrays: str = key(
        "auto",
        "of a graph that ranks built from shares - merged = one file for each column, as always; parts = a file for "
        "each rank; auto = merged up to 64 Mi values in a column",
        choices=("auto", "merged", "parts"),
    )


@dataclass(frozen=True)
class CompareConfig:
    enabled: bool = key(True, "measure CPU-only beside hybrid and give a verdict (not in mode off)")
    repeats: int = key(3, "times each source is measured each way, in turns; the median counts", minimum=1, maximum=100)


@dataclass(frozen=True)
class ServiceConfig:
    """`serve`: where it listens, who may ask, and how much of the machine a request may take."""

    host: str = key("127.0.0.1", "address to listen on; beyond loopback only with a token, or open_to_network")
    port: int = key(8080, "port to listen on; 0 = any free one, printed at the start", minimum=0, maximum=65535)
    token: str | None = key(None, "who asks must send it (Authorization: Bearer ...); better in token_file")
    token_file: str | None = key(None, "file whose first line is the token")
    open_to_network: bool = key(False, "listen beyond loopback without a token: any client there may ask for anything")
    preload: bool = key(True, "open the graph of this configuration at the start")
    data_roots: tuple[str, ...] = key((), "folders below which graphs may be opened by path; empty = none may")
    journal_dir: str = key("results/service", "accepted jobs, results, uploads: what a restart goes on with")
    keep_jobs: int = key(256, "finished jobs that are kept; the oldest goes first", minimum=1)
    memory_share: float = key(0.5, "of the available memory, what one request may need", minimum=0.01, maximum=1)
    max_vertices: int = key(1 << 28, "vertices of a graph, whatever memory there is", minimum=1)
    max_graphs: int = key(16, "graphs in memory at once", minimum=1)
    max_upload_bytes: int = key(256 << 20, "size of an uploaded graph file", minimum=1)
    max_result_bytes: int = key(512 << 20, "size of a job's arrays together", minimum=1)
    disk_bytes: int = key(
        64 << 30, "results, uploads and the graphs built for clients, together; beyond it the oldest goes first",
        minimum=1 << 20,
    )  # fmt: skip
    max_sources: int = key(1024, "start vertices of one job", minimum=1)
    max_page: int = key(10000, "values in one page of a result", minimum=1)
    batching: bool = key(True, "answer single-source queries that come together in one pass over the graph")
    wait_ms: float = key(
        1.0,
        "how long a batch waits for one more query after the last; 16 times that in all, a lone client not at all",
        minimum=0,
        maximum=1000,
    )
    max_batch: int = key(64, "queries in one pass", minimum=1, maximum=64)
    query_queue: int = key(1024, "queries that may wait; further ones are refused for now (429)", minimum=1)
    job_queue: int = key(64, "jobs that may wait; further ones are refused for now (429)", minimum=1)
    deadline_s: float = duration(30.0, "a query that waited longer is given up (504)", minimum=0.001)
    job_deadline_s: float = duration(
        3600.0, "a job that asks for no deadline_s of its own is stopped after running for so long (504)", minimum=0.1
    )
    max_listeners: int = key(32, "open event streams", minimum=1)
    max_connections: int = key(
        1024,
        "open connections, at most 288 fewer than the process may have files; for one more the one is closed that has "
        "waited longest without a request",
        minimum=16,
        maximum=100_000,
    )
    request_s: float = duration(
        10.0,
        "time for the head of a request to arrive, and for its body (an upload: at least 16 KiB/s); else 408",
        minimum=0.1,
    )
    workers: int = key(
        1,
        "NPU workers kept warm, each on one graph's core; npu.mode says whether (docs/how-to/service.md); 0 = none",
        minimum=0,
        maximum=16,
    )
    drain_s: float = duration(10.0, "after SIGTERM: time for what runs; the rest is in the journal", minimum=0)


@dataclass(frozen=True)
class Config:
    graph: GraphConfig = section(GraphConfig)
    source: int | str | tuple[int, ...] = key(
        "random:8", "start vertex (your id), a list of them, or random:N = N different vertices that have an edge"
    )
    source_seed: int = key(1, "seed of source: random:N", minimum=0)
    algorithm: str = key("bfs", "what to compute (docs/reference/algorithms.md)", choices=tuple(ALGORITHMS))
    engine: str = key(
        "async",
        "async = asynchronous vertex-centric; level = level-synchronous, direction-optimised",
        choices=("async", "level"),
    )
    ranks: int = key(
        1,
        "MPI ranks; more than one = start them with mpirun, unless mpirun or srun has started them already; the "
        "default job (configs/cluster.yaml, or run without --config and --set) has 2",
        minimum=1,
    )
    threads: int | str = key("auto", "CPU threads; auto = all that the process may use", minimum=1, also=("auto",))
    cluster: ClusterConfig = section(ClusterConfig)
    bfs: BfsConfig = section(BfsConfig)
    sssp: SsspConfig = section(SsspConfig)
    pagerank: PageRankConfig = section(PageRankConfig)
    cdlp: CdlpConfig = section(CdlpConfig)
    louvain: LouvainConfig = section(LouvainConfig)
    centrality: CentralityConfig = section(CentralityConfig)
    core: CoreConfig = section(CoreConfig)
    npu: NpuConfig = section(NpuConfig)
    exchange: ExchangeConfig = section(ExchangeConfig)
    compare: CompareConfig = section(CompareConfig)
    output: str | None = key(None, "result folder; null = a fresh one under results/")
    result: ResultConfig = section(ResultConfig)
    service: ServiceConfig = section(ServiceConfig)
