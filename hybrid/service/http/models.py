"""What requests and answers look like: the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from hybrid.registry import ALGORITHMS

_BIGGEST = 2**63 - 1
VertexId = Annotated[int, Field(ge=0, le=_BIGGEST, description="a vertex, by your own id")]
_NAMES = tuple(ALGORITHMS)
Algorithm = Literal[_NAMES]  # type: ignore[valid-type]
GraphId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class Strict(BaseModel):
    """A request; unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class GeneratorRequest(Strict):
    kind: Literal["kronecker", "uniform", "grid"] = "kronecker"
    scale: int = Field(16, ge=0, le=30, description="log2 of the vertices (kronecker, uniform)")
    edge_factor: int = Field(16, ge=1, le=1024)
    seed: int = Field(1, ge=0, le=2**31 - 1)
    rows: int = Field(256, ge=1, le=2**20)
    cols: int = Field(256, ge=1, le=2**20)


class GraphRequest(Strict):
    """Either a path below a data root or a generator."""

    id: GraphId | None = None
    path: str | None = Field(None, max_length=1000, description="relative to a data root")
    generator: GeneratorRequest | None = None
    format: str = Field("auto", max_length=32)
    directed: bool | None = Field(None, description="null: what the file says, else directed")


class ProblemDocument(BaseModel):
    """RFC 9457, with the fix."""

    type: str
    title: str
    status: int
    detail: str
    fix: str


class GraphAnswer(BaseModel):
    id: str
    state: Literal["waiting", "loading", "ready", "failed"]
    origin: dict[str, Any]
    created: float
    seconds: float
    problem: ProblemDocument | None
    vertices: int | None
    edges: int | None
    isolated: int | None
    directed: bool | None
    weighted: bool | None
    bytes: int | None


class GraphDetails(GraphAnswer):
    facts: dict[str, Any]
    core: dict[str, Any] = Field(description="share of edges inside cores of k hubs, and the chosen core")


GraphList = create_model("GraphList", graphs=list[GraphAnswer])
FileList = create_model("FileList", files=list[str])


class JobRequest(Strict):
    graph: GraphId
    algorithm: Algorithm
    source: (
        VertexId
        | Annotated[list[VertexId], Field(min_length=1, max_length=65536)]
        | Annotated[str, Field(pattern=r"^random(:[1-9][0-9]{0,5})?$")]
        | None
    ) = Field(None, description="bfs and sssp: a vertex, several, or random:N")
    options: dict[str, bool | int | float | str | list[VertexId] | None] = Field(
        default_factory=dict, max_length=32, description="keys of the configuration, such as pagerank.iterations"
    )
    deadline_s: float | None = Field(None, gt=0, le=86400, description="stop the job after so long")


class Progress(BaseModel):
    done: int
    total: int


class JobAnswer(BaseModel):
    id: str
    graph: str
    algorithm: str
    options: dict[str, Any]
    source: Any
    deadline_s: float | None
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    phase: str
    progress: Progress
    created: float
    started: float | None
    finished: float | None
    summary: dict[str, Any] | None
    problem: ProblemDocument | None


JobList = create_model("JobList", jobs=list[JobAnswer], total=int)
TraceAnswer = create_model("TraceAnswer", job=str, events=list[dict[str, Any]])


class ResultPage(BaseModel):
    """Some rows of a result. A value that was not reached is null."""

    job: str
    run: int
    runs: int
    total: int
    offset: int
    vertex: list[int]
    columns: dict[str, list[float | int | None]]


class LevelsAnswer(BaseModel):
    source: int
    reached: int
    depth: int
    sizes: list[int] = Field(description="vertices at distance 0, 1, 2, ...")


class DistanceAnswer(BaseModel):
    source: int
    target: int
    distance: int | None = Field(description="edges on a shortest path; null: there is none")


class PathAnswer(DistanceAnswer):
    path: list[int] | None


NeighboursAnswer = create_model(
    "NeighboursAnswer", source=int, hops=int, total=int, offset=int, vertex=list[int], distance=list[int]
)
Health = create_model("Health", status=Literal["ok"])
WorkerState = Literal["off", "starting", "ready", "busy", "restarting", "failed"]


class WorkerAnswer(BaseModel):
    """A resident NPU worker."""

    state: WorkerState
    why: str = Field(description="what it does, or what became of it")
    device: str
    simulated: str | None = Field(description="null: a process; else the model of a device that is not there")
    graph: str | None = Field(description="whose dense core it holds")
    core_size: int | None
    pid: int | None
    rounds: int
    searches: int = Field(description="jobs and batches that it was lent to")
    refused: int = Field(description="times that a check refused what it said")
    restarts: int
    deaths: int
    last_death: str = Field(description="the cause of the last one; empty: none")


class RanksAnswer(BaseModel):
    """The rank pool: ranks that compute jobs together."""

    wanted: int
    alive: int
    restarts: int
    state: Literal["starting", "up", "restarting", "failed", "ending"] = Field(
        description="restarting: jobs for the ranks wait; failed: the service computes them alone until there are ranks"
    )
    reason: str = Field(description="why its ranks ended the last time; empty: they have not")


class Readiness(BaseModel):
    ready: bool = Field(description="every graph can be asked; a worker is not waited for")
    reasons: list[str]
    worker: WorkerState = Field(description="of the worker that is best off")
    workers: list[WorkerAnswer]
    graphs: dict[str, str]
    ranks: RanksAnswer | None = Field(None, description="null: there is one rank, the service itself")


class AlgorithmAnswer(BaseModel):
    name: str
    title: str
    sourced: bool
    check: str
    options: dict[str, Any]
    columns: dict[str, str]


AlgorithmList = create_model("AlgorithmList", algorithms=list[AlgorithmAnswer])
