"""YAML and ``--set`` to one typed, frozen, validated configuration; the only module that knows YAML.

Invariant: what leaves this module has passed every check of the schema, and an error names file, line, key and fix.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from hybrid.config.schema import Config
from hybrid.devices.profiles import ORACLE, PROFILES, SIMULATED, parse_device, simulation_names
from hybrid.errors import ConfigError
from hybrid.registry import ALGORITHMS

LARGEST_FILE = 1 << 20  # bytes; configs/cluster.yaml has some thousand
DEEPEST, MOST_VALUES = 32, 10_000  # groups within groups; values in all. Aliases can make a small file endless
LARGEST_WHOLE, LARGEST_REAL = 2**63 - 1, 1e100  # of keys that have no narrower limit
_NOT_YAML = (yaml.YAMLError, ValueError, RecursionError, OverflowError)
_SWITCH_WORDS = {False: ("off", "no"), True: ("on", "yes")}  # YAML 1.1 reads these words as booleans
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true | false", str: "text"}
_TOO_DEEP = f"more than {DEEPEST} groups within groups", "write plain keys"
SOURCE_WORDS = {
    "source": "a vertex id | list of ids | random:N",
    "centrality.sources": "a vertex id | list of ids | random:N | all",
}


class _Loader(yaml.SafeLoader):
    """YAML whose brackets are nested at most DEEPEST deep: the scanner's time grows with the square of the depth."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        if self.flow_level >= DEEPEST:
            raise yaml.scanner.ScannerError(None, None, "it is nested too deeply", self.get_mark())
        super().fetch_flow_collection_start(TokenClass)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a value was written."""

    path: str | Path
    line: int | None = None

    def refuse(self, reason: str, fix: str, value: object = None) -> NoReturn:
        raise ConfigError(reason, path=self.path, line=self.line, value=value, fix=fix)


Written = dict[str, tuple[Any, Place]]
_COMMAND_LINE = Place("command line")


def load_config(
    path: str | Path | None,
    overrides: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Config:
    """Read a YAML file (None: the defaults), apply ``key=value`` overrides, then ``options``; check everything.

    ``options`` are values as they are (a command's own arguments, which no YAML parser should see), ``defaults`` those
    of a command that differ from the schema's.
    """
    written: Written = {name: (value, _COMMAND_LINE) for name, value in (defaults or {}).items()}
    if path is not None:
        written.update(_read_yaml(Path(path)))
    for override in overrides:
        name, value = _split_override(override)
        written.update(itertools.islice(_flatten(name, value, Place("--set")), MOST_VALUES))
    written.update({name: (value, _COMMAND_LINE) for name, value in (options or {}).items()})
    config: Config = _build(Config, "", written)
    for reason, value, fix in _contradictions(config):
        raise ConfigError(reason, path=path, value=value, fix=fix)
    return config


Contradiction = tuple[str, object, str]  # reason, value, fix
_ONE_RANK = "set ranks: 1 (--set ranks=1)"


def _contradictions(config: Config) -> Iterator[Contradiction]:
    """Keys that cannot be meant together, and what the chosen algorithm has no use for but was surely meant to have."""
    pagerank, sssp = config.pagerank, config.sssp
    chosen = [name for name in ("threshold", "quantile", "size") if getattr(config.core, name) is not None]
    if len(chosen) > 1:
        named = " and ".join(f"core.{name}" for name in chosen)
        yield f"{named} are given, which is one rule too many", None, "set all but one to null"
    if config.engine != "level" and config.bfs.strategy != "auto":
        reason = "bfs.strategy: strategies belong to the level engine"
        yield reason, config.bfs.strategy, "set engine: level as well"
    if config.ranks > 1:
        yield from _not_on_ranks(config)
    if config.algorithm == "pagerank" and pagerank.definition == "ldbc" and pagerank.tolerance is not None:
        reason = "pagerank.tolerance: definition ldbc makes a fixed number of iterations"
        yield reason, pagerank.tolerance, "set pagerank.iterations instead, or pagerank.definition: gap"
    if config.algorithm == "pagerank" and pagerank.damping == 1:
        yield "pagerank.damping: must be below 1", pagerank.damping, "write 0.85"
    if config.algorithm == "sssp" and sssp.delta is not None and (sssp.delta == 0 or sssp.strategy != "delta"):
        reason = "must be more than 0" if sssp.delta == 0 else f"strategy {sssp.strategy} has no buckets"
        yield f"sssp.delta: {reason}", sssp.delta, "leave it null"
    if config.algorithm == "betweenness" and config.centrality.harmonic:
        yield "centrality.harmonic: belongs to closeness", True, "set it to false, or algorithm: closeness"
    if config.cluster.hosts and config.cluster.hostfile is not None:
        yield "cluster.hosts and cluster.hostfile are both given", None, "leave one of them out"


def _not_on_ranks(config: Config) -> Iterator[Contradiction]:
    """Several ranks together know only some algorithms."""
    if not ALGORITHMS[config.algorithm].on_ranks:
        reason = f"ranks: {config.algorithm} runs on one rank (with all its threads)"
        yield f"{reason}, on a machine that holds the whole graph", config.ranks, _ONE_RANK
    if config.algorithm == "sssp" and config.sssp.strategy != "delta":
        reason = "sssp.strategy: on several ranks there is only delta"
        yield reason, config.sssp.strategy, f"leave it on delta, or {_ONE_RANK}"


def require_ranks(config: Config) -> None:
    """The job can be done by several ranks: also where not the configuration but a launcher says that there are some.

    The level engine has one way to expand there, which changes direction by itself.
    """
    for reason, value, fix in _not_on_ranks(config):
        raise ConfigError(reason, value=value, fix=fix)
    if config.engine == "level" and config.bfs.strategy != "auto":
        reason = "bfs.strategy: on several ranks there is only auto"
        raise ConfigError(reason, value=config.bfs.strategy, fix=f"leave it on auto, or {_ONE_RANK}")


def dump_config(config: Config) -> str:
    """The effective configuration as YAML that load_config reads back to the same object."""
    text: str = yaml.safe_dump(_plain(dataclasses.asdict(config)), sort_keys=False, allow_unicode=True)
    return text


def describe_keys() -> Iterator[tuple[str, str, Any, str]]:
    """Every key: dotted name, type in words, default, meaning. Feeds docs/reference/configuration.md."""
    for key in _all_keys(Config):
        yield key.name, key.words, key.default, key.facts["doc"]


def _read_yaml(path: Path) -> Written:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ValueError(f"a configuration has at most {LARGEST_FILE} bytes")
        node = yaml.compose(content.decode("utf-8"), _Loader)
    except OSError as error:
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.yaml")], 1)
        hint = (
            f"did you mean {path.parent / near[0]}?" if near else "check the path; configs/ has one file per situation"
        )
        raise ConfigError(f"cannot read the configuration: {error.strerror}", path=path, fix=hint) from error
    except _NOT_YAML as error:
        mark = getattr(error, "problem_mark", None)
        Place(path, None if mark is None else mark.line + 1).refuse(f"not valid YAML: {_why(error)}", "mend the syntax")
    if node is None:
        return {}
    found = dict(itertools.islice(_walk(node, "", path), MOST_VALUES + 1))
    if len(found) > MOST_VALUES:
        raise ConfigError(f"more than {MOST_VALUES} values", path=path, fix="see configs/cluster.yaml")
    return found


def _why(error: Exception) -> str:
    nested = isinstance(error, RecursionError)
    return "it is nested too deeply" if nested else str(getattr(error, "problem", None) or error)


def _walk(node: yaml.Node, prefix: str, path: Path, depth: int = 0) -> Iterator[tuple[str, tuple[Any, Place]]]:
    place = Place(path, node.start_mark.line + 1)
    if depth > DEEPEST:
        place.refuse(*_TOO_DEEP)
    if not isinstance(node, yaml.MappingNode):
        if not prefix:
            place.refuse("the file must hold `key: value` lines", "see configs/cluster.yaml")
        try:
            yield prefix, (_Loader("").construct_object(node, deep=True), place)
        except _NOT_YAML as error:
            place.refuse(f"{prefix}: not a value: {_why(error)}", "write a plain value")
        return
    if prefix and not node.value:
        yield prefix, (None, place)
    seen: set[str] = set()
    for key_node, value_node in node.value:
        name = f"{prefix}.{key_node.value}" if prefix else str(key_node.value)
        if name in seen:
            Place(path, key_node.start_mark.line + 1).refuse(f"key {name} stands twice", "remove one")
        seen.add(name)
        yield from _walk(value_node, name, path, depth + 1)


def _split_override(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        Place("--set").refuse("an override must look like key=value", "for example --set source=5", text)
    try:
        return name.strip(), yaml.load(value, _Loader)  # noqa: S506 - a SafeLoader
    except _NOT_YAML:
        Place("--set").refuse(f"the value of {name} is not valid YAML", "quote it", value)


def _flatten(name: str, value: Any, place: Place, depth: int = 0) -> Iterator[tuple[str, tuple[Any, Place]]]:
    if isinstance(value, dict):
        if depth > DEEPEST:
            place.refuse(*_TOO_DEEP)
        for inner, inner_value in value.items():
            yield from _flatten(f"{name}.{inner}", inner_value, place, depth + 1)
    else:
        yield name, (value, place)


class _Key:
    """A field of the schema: what it may be, by its annotation and by what ``key`` says besides."""

    def __init__(self, prefix: str, item: Any, hint: Any) -> None:
        self.name, self.field, self.default, self.facts = prefix + item.name, item.name, item.default, item.metadata
        self.group: Any = hint if dataclasses.is_dataclass(hint) else None
        self.listed = typing.get_origin(hint) is tuple
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        self.optional = types.NoneType in kinds
        # A text beside numbers is one of the words of ``also``.
        self.kinds = tuple(kind for kind in kinds if kind in _KINDS and not (kind is str and self.facts.get("also")))

    @property
    def words(self) -> str:
        """Its type and range."""
        if self.name in SOURCE_WORDS:
            return SOURCE_WORDS[self.name]
        choices, low, high = (self.facts[name] for name in ("choices", "minimum", "maximum"))
        if choices:
            listed = " | ".join([*choices, *filter(None, [self.facts["family"]])])
            return f"list of {listed}" if self.listed else listed
        if self.listed:
            return "list of words"
        words = [*(_KINDS[kind] for kind in self.kinds), *(["null"] if self.optional else [])]
        if high is not None:
            words[0] += f" from {low:g} to {high:g}"
        elif low is not None:
            words[0] += f", at least {low:g}"
        return " | ".join([*words, *map(str, self.facts["also"])])


def _keys(kind: type, prefix: str) -> Iterator[_Key]:
    """The keys and groups of a group."""
    hints = typing.get_type_hints(kind)
    return (_Key(prefix, item, hints[item.name]) for item in dataclasses.fields(kind))


def _all_keys(kind: type, prefix: str = "") -> Iterator[_Key]:
    for key in _keys(kind, prefix):
        yield from [key] if key.group is None else _all_keys(key.group, f"{key.name}.")


def _build(kind: type, prefix: str, written: Written) -> Any:
    values: dict[str, Any] = {}
    for key in _keys(kind, prefix):
        value, place = written.pop(key.name, (None, None))
        if key.group is not None:
            if place is not None and value is not None:
                place.refuse(f"{key.name} is a group of keys", f"write {key.name}.<key>", value)
            values[key.field] = _build(key.group, f"{key.name}.", written)
        elif place is not None:
            values[key.field] = _check(key, value, place)
    if not prefix and written:
        _refuse_unknown(*next(iter(written.items())))
    return kind(**values)


def _refuse_unknown(name: str, written: tuple[Any, Place]) -> NoReturn:
    known = [key.name for key in _all_keys(Config)]
    leaves = {known_name.rsplit(".", 1)[-1]: known_name for known_name in known}
    near = difflib.get_close_matches(name, known, 1, 0.5)
    near = near or [leaves[leaf] for leaf in difflib.get_close_matches(name.rsplit(".", 1)[-1], leaves, 1, 0.5)]
    fix = f"did you mean {near[0]}?" if near else "docs/reference/configuration.md lists every key"
    written[1].refuse("unknown key", fix, name)


def _check(key: _Key, value: Any, place: Place) -> Any:
    def refuse(reason: str, fix: str = f"write {key.words}") -> NoReturn:
        place.refuse(f"{key.name}: {reason}", fix, value)

    if key.name in SOURCE_WORDS:
        return _check_source(value, refuse, key.words)
    if key.name == "npu.device" and isinstance(value, str) and value.startswith(SIMULATED.rstrip(":")):
        return _check_simulated(value, refuse)
    if value in key.facts["also"] and not isinstance(value, bool):
        return value
    if value is None:
        return None if key.optional else refuse("needs a value")
    choices = key.facts["choices"]
    if key.listed:
        return _check_words(choices, value, refuse)
    return _check_choice(key, choices, value, refuse) if choices else _check_scalar(key, value, refuse)


def _check_choice(key: _Key, choices: tuple[str, ...], value: Any, refuse: Any) -> Any:
    if isinstance(value, bool):
        value = next((word for word in _SWITCH_WORDS[value] if word in choices), value)
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, 1)
        known = [*choices, *filter(None, [key.facts["family"]])]
        refuse("not one of " + ", ".join(known), f"did you mean {near[0]}?" if near else f"choose {choices[0]}")
    return value


def _check_words(choices: tuple[str, ...], value: Any, refuse: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        refuse("not a list", "write [first, second]")
    if choices and any(word not in choices for word in words):
        refuse("not a list of known words", f"choose from {', '.join(choices)}")
    if any(isinstance(word, bool) or not isinstance(word, str | int | float) or "\0" in str(word) for word in words):
        refuse("not a list of words", "quote each of them")
    return tuple(str(word) for word in words)  # a host may be called 17


def _check_scalar(key: _Key, value: Any, refuse: Any) -> Any:
    if isinstance(value, bool):
        return value if bool in key.kinds else refuse("not " + key.words)
    if float in key.kinds and isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", value):
        value = float(value)  # YAML 1.1 reads 1e-3 as a word
    if float in key.kinds and isinstance(value, int):
        value = float(value) if abs(value) <= LARGEST_WHOLE else math.inf  # which is out of range
    if key.kinds == (str,) and isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, key.kinds):
        refuse("not " + key.words)
    if isinstance(value, str) and "\0" in value:
        refuse("holds a NUL character", "leave it out")
    if isinstance(value, int | float):
        low, high = key.facts["minimum"], key.facts["maximum"]
        furthest = LARGEST_REAL if isinstance(value, float) else LARGEST_WHOLE
        if not (-furthest if low is None else low) <= value <= (furthest if high is None else high):
            refuse("out of range")
    return value


def _check_source(value: Any, refuse: Any, words: str) -> Any:
    advice = f"write {words.replace(' |', ',')}"
    if value == "all" and words.endswith("all"):
        return value
    if isinstance(value, str):
        drawn = re.fullmatch(r"random(?::(\d{1,18}))?", value)
        if drawn is None:
            refuse("not a vertex id", advice)
        elif drawn[1] is not None and int(drawn[1]) < 1:
            refuse("needs at least one source", advice)
        return value
    ids = value if isinstance(value, list | tuple) else [value]
    if not ids or not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
        refuse("not a vertex id", advice)
    if not all(-LARGEST_WHOLE <= one <= LARGEST_WHOLE for one in ids):
        refuse("not a vertex id of 64 bits", advice)
    return tuple(ids) if isinstance(value, list | tuple) else value


def _check_simulated(value: str, refuse: Any) -> str:
    names = ", ".join(simulation_names())
    try:
        simulation = parse_device(value)
    except ValueError as error:
        near = difflib.get_close_matches(value.removeprefix(SIMULATED).split(":")[0], [*PROFILES, ORACLE], 1)
        asked = f"did you mean {SIMULATED}{near[0]}?" if near else f"for example {SIMULATED}{next(iter(PROFILES))}"
        refuse(str(error), asked)
    if simulation is None:
        refuse("a simulated device needs the name of a profile", f"write {SIMULATED}NAME, NAME one of {names}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def configuration_page() -> str:
    """docs/reference/configuration.md: every key, made from the schema."""
    lines = [
        "# Configuration",
        "",
        "Made from the schema by `python -m hybrid.config > docs/reference/configuration.md`; do not edit by hand.",
        "",
        "A configuration is a YAML file; `configs/cluster.yaml` holds every key. On the command line,",
        "`--set key=value` changes one key and wins over the file; the value is read as YAML (`--set source=[1,2]`).",
        "An unknown key is an error that names the nearest one. The effective configuration is saved with every result",
        "as `config.yaml` and can be run again.",
        "",
        "| key | value | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, words, default, doc in describe_keys():
        shown = yaml.safe_dump(_plain(default), default_flow_style=True).splitlines()[0]
        lines.append(f"| `{name}` | {words.replace('|', 'or')} | `{shown}` | {doc.replace('|', 'or')} |")
    return "\n".join(lines) + "\n"
