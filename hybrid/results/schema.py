"""The records that leave a job: summary.json, and the events that are the lines of trace.jsonl.

Each record is a TypedDict, or a dataclass where it has a life before it is written. The JSON schema is made from them:
``python -m hybrid.results.schema`` prints it. Invariant: a record has no key that is not here, except for a ``Kind`` of
event that is open; ``docs/reference/results.schema.json`` is what this module prints (a test compares them, and checks
the records of real jobs).
"""

import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

Mode = Literal["off", "race", "share"]
Counts = dict[str, int | float | bool | str | None]  # by name, as the algorithm has them

# ------------------------------------------------------------------------------------------------- summary.json


class _GraphFacts(TypedDict):
    name: str
    vertices: int
    edges: Annotated[int, "as in the input: an undirected edge counts once"]
    isolated: Annotated[int, "vertices without edges"]
    directed: bool
    from_store: Annotated[bool, "it was built by an earlier job"]
    notes: list[str]


class GraphFacts(_GraphFacts, total=False):
    """The graph as it was opened."""

    directed_assumed: Annotated[bool, "neither the configuration nor the file says so"]
    self_loops_dropped: int
    duplicates_dropped: int


class _CoreFacts(TypedDict):
    size: int
    edges: Annotated[int, "inside the core"]
    density: float
    rule: Annotated[str, "how the size was chosen"]


class CoreFacts(_CoreFacts, total=False):
    """The dense core."""

    threshold: Annotated[int, "smallest degree inside"]


class Rounds(TypedDict):
    """What was exchanged with the core solver."""

    rounds_sent: int
    rounds_merged: int
    values_sent: int
    values_received: int
    values_adopted: Annotated[int, "smaller than what the CPU had"]
    values_rejected: Annotated[int, "proven false"]
    outcome: Annotated[str, "in words"]


class Simulated(TypedDict):
    """A simulated device."""

    device: str
    figures: Annotated[str, "`measured` or `model`"]
    source: Annotated[str, "where the figures are from"]
    exchange: str
    exchange_measured: bool
    rounds_delivered: int
    mean_round_s: float | None
    computed_on_clock: Annotated[int, "answers that had to be computed while the search waited"]
    on_clock_s: Annotated[float, "seconds for them"]


class _Prediction(TypedDict):
    device: str
    kind: Annotated[str, "`measured` on this machine, or a `model`"]
    mode: Mode
    reason: str


class Prediction(_Prediction, total=False):
    """What the planner expected; only the first four keys where it decided before any search was measured."""

    algorithm: str
    batch: Annotated[int, "sources searched at once"]
    cpu_only_s: Annotated[float, "of one search"]
    basis: Annotated[str, "what the CPU-only time is from"]
    k: Annotated[int, "size of the core"]
    hybrid_s: Annotated[float | None, "of one search; null in mode off"]
    round_s: float | None
    index: Annotated[bool, "the core's index instead of rounds"]
    gain: Annotated[float, "above 1: faster than the CPU alone"]
    searches: int
    cpu_only_seconds: Annotated[float, "of all searches"]
    hybrid_seconds: float | None
    measured_cpu_only_seconds: float | None
    measured_hybrid_seconds: float | None


class _Npu(Rounds):
    mode: Mode
    device: str


class Npu(_Npu, total=False):
    """Device, worker, and what they did over all runs."""

    worker: Annotated[str, "`launch`, `external` or `simulated`"]
    configured: Annotated[str, "the mode that was asked for"]
    start_seconds: float | None
    core: CoreFacts | None
    predicted: Prediction | None
    simulated: Simulated


class NpuOff(TypedDict):
    """In place of ``Npu`` where an algorithm runs on ranks without a worker."""

    mode: Literal["off"]
    device: str
    configured: str
    outcome: str


@dataclass(frozen=True)
class Verdict:
    """CPU-only against hybrid: sums over the sources of the medians."""

    cpu_only_seconds: float
    hybrid_seconds: float
    ratio: Annotated[float, "above 1: hybrid is faster"]
    ratio_low: float  # of its interval (hybrid/job/verdict.py)
    ratio_high: float
    pairs: Annotated[int, "runs without and with the NPU, one after the other"]
    pairs_agreeing: int  # in how many of them the same way was faster as in the medians
    cpu_only_worst_seconds: float  # the slowest repeat over all sources
    hybrid_worst_seconds: float
    repeats: int
    text: str

    def as_dict(self) -> Any:
        return asdict(self)


@dataclass(frozen=True)
class Repair:
    """A result that failed its check and was computed again."""

    algorithm: str
    source: int | None  # the user's id
    reason: str  # what the check said
    method: str  # how it was computed again
    changed: Annotated[int, "values that were wrong"]
    record: Annotated[Path | None, "folder with what is needed to see it fail again"]

    def as_dict(self) -> Any:
        return {**asdict(self), "record": None if self.record is None else str(self.record)}

    def __str__(self) -> str:
        about = self.algorithm if self.source is None else f"{self.algorithm} from {self.source}"
        kept = "nothing could be kept of it" if self.record is None else f"kept in {self.record}"
        return f"{about} failed its check and was computed again by {self.method}, which passed: {self.reason}; {kept}"


class Machine(TypedDict):
    """The machine before and after."""

    processor: str
    cores: int
    caches: Annotated[dict[str, int], "bytes by level"]
    load_before: float | None
    load_after: float | None
    warning: Annotated[str, "empty, or that it was busy"]
    stolen_share: float | None


class Traffic(TypedDict):
    """Messages of one phase in one encoding."""

    messages: int
    bytes: int


class RankSums(TypedDict, total=False):
    """Sums over the sources."""

    rounds: int
    compute_s: float
    pack_s: float
    wait_s: float
    edges_looked_at: int
    relaxations: int
    redundant_relaxations: int
    bytes: int
    parent_bytes: int
    messages: int
    updates: int
    waves: int
    pair_bytes: int
    traffic: Annotated[dict[str, dict[str, Traffic]], "by phase, then by encoding"]


class _RankRow(TypedDict):
    rank: int
    host: str


class RankRow(_RankRow, RankSums, total=False):
    """One rank."""

    arcs: int
    masters: int
    mirrors: int
    threads: int


class Ranks(TypedDict):
    """How the graph was cut, and what each rank did."""

    ranks: int
    hosts: dict[str, list[int]]
    policy: str
    grid: list[int]
    sync: Literal["basp", "bsp"]
    from_cache: bool
    replication: float
    arc_imbalance: float
    load_imbalance: float
    bytes_against_pairs: float | None
    totals: RankSums
    per_rank: list[RankRow]


class RunOnRanks(TypedDict):
    """One run's sums over the ranks."""

    rounds: int
    bytes: int
    messages: int
    bytes_against_pairs: float | None
    load_imbalance: float


class SearchSeconds(TypedDict):
    """Of one search."""

    traverse: float
    waited: Annotated[float, "of it, for the worker"]
    certify: float


class Batch(TypedDict):
    """The searches that were made at once with this one."""

    first: Annotated[int, "source of the batch's first search, which has the figures of all"]
    sources: int
    seconds: float


class _Search(TypedDict):
    source: int
    certified: bool
    reached: int
    max_level: int
    teps: float
    seconds: SearchSeconds
    npu: Rounds
    steps: int
    edges_looked_at: int
    repaired: int


class RunFurther(TypedDict, total=False):
    """What only some jobs know of a search."""

    batch: Batch
    ranks: RunOnRanks


class Search(_Search, RunFurther, total=False):
    """A BFS from one source."""


class RunSeconds(TypedDict):
    """Of one run."""

    run: float
    certify: float


class _AlgorithmRun(TypedDict):
    certified: bool
    facts: Counts
    counters: Annotated[dict[str, int | float | bool | str | RunOnRanks | None], "iterations and the like"]
    seconds: RunSeconds
    repaired: int


class AlgorithmRun(_AlgorithmRun, total=False):
    """A run of another algorithm; with a source where the algorithm has one."""

    source: int


class _Spread(TypedDict):
    what: Literal["groups", "values"]
    of: Annotated[str, "the array"]
    bins: Annotated[list[list[int | float]], "[low, high, how many]"]
    top: Annotated[list[list[int | float]], "[vertex or group, value] of the ten largest"]


class Spread(_Spread, total=False):
    """How the values of the first array are spread."""

    unreached: int


class _Seconds(TypedDict):
    open: float
    build: float
    compile: float
    certify: float
    write: float
    total: float


class Seconds(_Seconds, total=False):
    """Where the job's time went."""

    plan: float
    traverse: Annotated[float, "bfs"]
    run: Annotated[float, "the other algorithms"]
    compare: float
    await_worker: float
    partition: float
    gather: float


class _Established(TypedDict):
    threads: int
    sources: list[int]
    claims: Annotated[list[str], "what the check has established"]


class Findings(_Established):
    """What an algorithm found."""

    title: str
    headline: Annotated[str, "the result in a sentence"]
    facts: Counts
    check: Annotated[str, "how far the check goes"]
    columns: Annotated[dict[str, str], "the arrays, in words"]
    spread: Spread


class _Account(TypedDict):
    tandem: Annotated[str, "version"]
    certified: bool
    graph: GraphFacts
    seconds: Seconds
    repairs: list[Repair]
    verdict: Verdict | None


class _Sometimes(TypedDict, total=False):
    hint: str
    ranks: Ranks


class _Folder(TypedDict):
    format: Literal["tandem-result"]
    format_version: int
    machine: Machine


class BfsAccount(_Account, _Established, _Sometimes):
    """Of a BFS, before it is written."""

    algorithm: Literal["bfs"]
    engine: Annotated[str, "`level` or `async`"]
    strategy: Annotated[str | None, "of the level engine; null: the engine has none"]
    core: CoreFacts
    reached: Annotated[int, "over all sources"]
    max_level: int
    teps: Annotated[float, "harmonic mean over the sources"]
    npu: Npu
    runs: list[Search]
    predicted: Annotated[Prediction | None, "null: nothing is known to predict from"]


class AlgorithmAccount(_Account, Findings, _Sometimes):
    """Of the other algorithms, before it is written."""

    algorithm: str
    unfinished: Annotated[str, "empty, or how far from convergence the run ended"]
    options: Counts
    npu: Npu | NpuOff
    runs: list[AlgorithmRun]


class BfsSummary(BfsAccount, _Folder):
    """summary.json of a BFS."""


class AlgorithmSummary(AlgorithmAccount, _Folder):
    """summary.json of the other algorithms."""


Summary = BfsSummary | AlgorithmSummary

# ------------------------------------------------------------------------------------------------ trace.jsonl


class Event(TypedDict):
    """What every event has; ``EVENTS`` says what each kind has besides."""

    t0: Annotated[float, "seconds since the job began"]
    t1: float
    source: Annotated[int | None, "the vertex that is searched from"]
    actor: str
    kind: str


class Kind(NamedTuple):
    """Kinds of events of one actor, with the types of their further keys."""

    about: str
    actor: str
    kinds: tuple[str, ...]
    required: Mapping[str, Any] = {}
    optional: Mapping[str, Any] = {}
    open: bool = False  # it has counters of any name besides


_SENT, _RECEIVED = {"outcome": str, "values_sent": int}, {"values_received": int, "values_adopted": int}
_STEP = {"direction": str, "level": Annotated[int, "-1: the engine has none"], "frontier": int, "edges": int}
_ROUND = {"values_rejected": int, "iterations": float, "compute_s": float, "sources": Annotated[int, "of a batch"]}
_OPENED = {"graph": str, "path": str, "hit": Annotated[bool, "it was built by an earlier job"]}
EVENTS = (
    Kind("A phase of the job", "coordinator", ("compile", "plan", "certify", "write", "partition", "gather")),
    Kind("The graph is opened or built", "coordinator", ("open", "build"), {}, _OPENED),
    Kind("The job waits for the worker before its first search", "coordinator", ("await",), {"why": str}),
    Kind("Both ways are measured in turns", "coordinator", ("compare",), {"repeats": int}),
    Kind("A result failed its check", "coordinator", ("repair",), {"findings": str}, {"method": str, "changed": int}),
    Kind("A step of the engine", "cpu", ("step",), {"engine": str, **_STEP}),
    Kind("An algorithm other than BFS, with its counters", "cpu", ("run",), open=True),
    Kind("A part of a run beside the worker", "cpu", ("link", "sweep", "write_levels"), {}, {"edges": str}),
    Kind("An answer is merged", "cpu", ("merge",), {"round": str, "adopted": int}),
    Kind("The CPU waits for an answer, or takes the core's edges back", "cpu", ("wait", "take_back"), {"why": str}),
    Kind("The worker's start", "npu", ("start",), {"device": str}),
    Kind("The worker was asked to stop", "npu", ("stop",)),
    Kind("The worker is not asked again", "npu", ("death",), {"cause": str}),
    Kind("From the values sent to the answer", "npu", ("round",), {"round": str, **_SENT}, _RECEIVED | _ROUND),
    Kind("Work of a rank on its own part", "rank", ("step",), _STEP),
    Kind("A rank makes or reads messages, or is in communication", "rank", ("pack", "wait"), {}, {"what": str}),
    Kind("A round of the worker on the rank's machine", "rank", ("round",), _SENT, {"round": str} | _RECEIVED | _ROUND),
)

# ------------------------------------------------------------------------------------------------ the JSON schema

_PLAIN = {int: "integer", float: "number", str: "string", Path: "string", bool: "boolean", types.NoneType: "null"}


def json_schema() -> dict[str, Any]:
    """All records under ``$defs``; a document is a summary or an event."""
    defs: dict[str, Any] = {}
    summaries = [_schema_of(one, defs) for one in typing.get_args(Summary)]
    events = [_event_schema(one, defs) for one in EVENTS]
    defs |= {"Summary": {"anyOf": summaries}, "TraceEvent": {"anyOf": events}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tandem: summary.json, or a line of trace.jsonl",
        "anyOf": [{"$ref": "#/$defs/Summary"}, {"$ref": "#/$defs/TraceEvent"}],
        "$defs": dict(sorted(defs.items())),
    }


def _schema_of(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; records are put into ``defs`` and referred to."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return {**_schema_of(arguments[0], defs), "description": arguments[1]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema_of(one, defs) for one in arguments]}
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0], defs)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], defs)}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint.__name__ not in defs:
        fields = _fields(typing.get_type_hints(hint, include_extras=True), defs)
        required = fields if is_dataclass(hint) else hint.__required_keys__
        defs[hint.__name__] = _object_schema(hint.__doc__, fields, required)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _event_schema(kind: Kind, defs: dict[str, Any]) -> dict[str, Any]:
    common = typing.get_type_hints(Event, include_extras=True)
    device = {} if kind.actor in ("coordinator", "rank") else {"simulated": Annotated[str, "the device, if simulated"]}
    fields = _fields({**common, **kind.required, **kind.optional, **device}, defs)
    fields["actor"] = {"pattern": "^rank [0-9]+$"} if kind.actor == "rank" else {"enum": [kind.actor]}
    fields["kind"] = {"enum": list(kind.kinds)}
    return _object_schema(kind.about, fields, {*common, *kind.required}, kind.open)


def _object_schema(about: str, fields: dict[str, Any], required: Iterable[str], open: bool = False) -> dict[str, Any]:
    found = {"description": about, "type": "object", "properties": fields, "required": sorted(required)}
    return found if open else {**found, "additionalProperties": False}


def _fields(hints: Mapping[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    return {name: _schema_of(hint, defs) for name, hint in hints.items()}


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=1))
