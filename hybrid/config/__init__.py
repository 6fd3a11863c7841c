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
from typing import Any

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

    path: str
    line: int | None = None


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
    written: dict[str, tuple[Any, Place]] = {}
    written.update({name: (value, Place("command line")) for name, value in (defaults or {}).items()})
    if path is not None:
        written.update(_read_yaml(Path(path)))
    for override in overrides:
        name, value = _split_override(override)
        written.update(itertools.islice(_flatten(name, value, Place("--set")), MOST_VALUES))
    written.update({name: (value, Place("command line")) for name, value in (options or {}).items()})
    config: Config = _build(Config, "", written)
    chosen = [name for name in ("threshold", "quantile", "size") if getattr(config.core, name) is not None]
    if len(chosen) > 1:
        named = " and ".join(f"core.{name}" for name in chosen)
        raise ConfigError(f"{named} are given, which is one rule too many", path=path, fix="set all but one to null")
    if config.engine != "level" and config.bfs.strategy != "auto":
        raise ConfigError(
            "bfs.strategy: strategies belong to the level engine",
            path=path,
            value=config.bfs.strategy,
            fix="set engine: level as well",
        )
    _require_sense(config, path)
    if config.cluster.hosts and config.cluster.hostfile is not None:
        raise ConfigError("cluster.hosts and cluster.hostfile are both given", path=path, fix="leave one of them out")
    return config


def _require_sense(config: Config, path: str | Path | None) -> None:
    """What the chosen algorithm has no use for is refused where it was surely meant to matter."""
    pagerank, sssp = config.pagerank, config.sssp
    if config.ranks > 1:
        require_algorithm_on_ranks(config, path)
    if config.algorithm == "pagerank" and pagerank.definition == "ldbc" and pagerank.tolerance is not None:
        raise ConfigError(
            "pagerank.tolerance: definition ldbc makes a fixed number of iterations",
            path=path,
            value=pagerank.tolerance,
            fix="set pagerank.iterations instead, or pagerank.definition: gap",
        )
    if config.algorithm == "pagerank" and pagerank.damping == 1:
        raise ConfigError("pagerank.damping: must be below 1", path=path, value=pagerank.damping, fix="write 0.85")
    if config.algorithm == "sssp" and sssp.delta is not None and (sssp.delta == 0 or sssp.strategy != "delta"):
        reason = "must be more than 0" if sssp.delta == 0 else f"strategy {sssp.strategy} has no buckets"
        raise ConfigError(f"sssp.delta: {reason}", path=path, value=sssp.delta, fix="leave it null")
    if config.algorithm == "betweenness" and config.centrality.harmonic:
        raise ConfigError(
            "centrality.harmonic: belongs to closeness",
            path=path,
            value=True,
            fix="set it to false, or algorithm: closeness",
        )


def require_algorithm_on_ranks(config: Config, path: str | Path | None = None) -> None:
    """Several ranks together know only some algorithms."""
    if not ALGORITHMS[config.algorithm].on_ranks:
        raise ConfigError(
            f"ranks: {config.algorithm} runs on one rank (with all its threads), "
            "on a machine that holds the whole graph",
            path=path,
            value=config.ranks,
            fix="set ranks: 1 (--set ranks=1)",
        )
    if config.algorithm == "sssp" and config.sssp.strategy != "delta":
        raise ConfigError(
            "sssp.strategy: on several ranks there is only delta",
            path=path,
            value=config.sssp.strategy,
            fix="leave it on delta, or set ranks: 1 (--set ranks=1)",
        )


def require_automatic_strategy(config: Config) -> None:
    """On several ranks the level engine has one way to expand, which changes direction by itself."""
    if config.engine == "level" and config.bfs.strategy != "auto":
        raise ConfigError(
            "bfs.strategy: on several ranks there is only auto",
            value=config.bfs.strategy,
            fix="leave it on auto, or set ranks: 1 (--set ranks=1)",
        )


def dump_config(config: Config) -> str:
    """The effective configuration as YAML that load_config reads back to the same object."""
    text: str = yaml.safe_dump(_plain(dataclasses.asdict(config)), sort_keys=False, allow_unicode=True)
    return text


def describe_keys() -> Iterator[tuple[str, str, Any, str]]:
    """Every key: dotted name, type in words, default, meaning. Feeds docs/reference/configuration.md."""
    yield from _describe(Config, "")


def _read_yaml(path: Path) -> dict[str, tuple[Any, Place]]:
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
        reason = _why(error)
        line = None if mark is None else mark.line + 1
        raise ConfigError(f"not valid YAML: {reason}", path=path, line=line, fix="mend the syntax") from error
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
    if depth > DEEPEST:
        line = node.start_mark.line + 1
        raise ConfigError(f"more than {DEEPEST} groups within groups", path=path, line=line, fix="write plain keys")
    place = Place(str(path), node.start_mark.line + 1)
    if not isinstance(node, yaml.MappingNode):
        if not prefix:
            raise ConfigError(
                "the file must hold `key: value` lines", path=path, line=place.line, fix="see configs/cluster.yaml"
            )
        try:
            yield prefix, (_Loader("").construct_object(node, deep=True), place)
        except _NOT_YAML as error:
            raise ConfigError(
                f"{prefix}: not a value: {_why(error)}", path=path, line=place.line, fix="write a plain value"
            ) from error
        return
    if prefix and not node.value:
        yield prefix, (None, place)
    seen: set[str] = set()
    for key_node, value_node in node.value:
        name = f"{prefix}.{key_node.value}" if prefix else str(key_node.value)
        if name in seen:
            raise ConfigError(
                f"key {name} stands twice", path=path, line=key_node.start_mark.line + 1, fix="remove one"
            )
        seen.add(name)
        yield from _walk(value_node, name, path, depth + 1)


def _split_override(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(
            "an override must look like key=value", path="--set", value=text, fix="for example --set source=5"
        )
    try:
        return name.strip(), yaml.load(value, _Loader)  # noqa: S506 - a SafeLoader
    except _NOT_YAML as error:
        raise ConfigError(
            f"the value of {name} is not valid YAML", path="--set", value=value, fix="quote it"
        ) from error


def _flatten(name: str, value: Any, place: Place, depth: int = 0) -> Iterator[tuple[str, tuple[Any, Place]]]:
    if isinstance(value, dict):
        if depth > DEEPEST:
            raise ConfigError(f"more than {DEEPEST} groups within groups", path=place.path, fix="write plain keys")
        for inner, inner_value in value.items():
            yield from _flatten(f"{name}.{inner}", inner_value, place, depth + 1)
    else:
        yield name, (value, place)


def _build(kind: type, prefix: str, written: dict[str, tuple[Any, Place]]) -> Any:
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        name = prefix + item.name
        if dataclasses.is_dataclass(hints[item.name]):
            if name in written:
                value, place = written.pop(name)
                if value is not None:
                    raise ConfigError(
                        f"{name} is a group of keys",
                        path=place.path,
                        line=place.line,
                        value=value,
                        fix=f"write {name}.<key>",
                    )
            values[item.name] = _build(typing.cast(type, hints[item.name]), name + ".", written)
        elif name in written:
            value, place = written.pop(name)
            values[item.name] = _check(name, hints[item.name], item.metadata, value, place)
    if not prefix and written:
        _refuse_unknown(written)
    return kind(**values)


def _refuse_unknown(written: dict[str, tuple[Any, Place]]) -> typing.NoReturn:
    name, (_, place) = next(iter(written.items()))
    known = [known_name for known_name, *_ in describe_keys()]
    leaves = {known_name.rsplit(".", 1)[-1]: known_name for known_name in known}
    near = difflib.get_close_matches(name, known, 1, 0.5)
    near = near or [leaves[leaf] for leaf in difflib.get_close_matches(name.rsplit(".", 1)[-1], leaves, 1, 0.5)]
    fix = f"did you mean {near[0]}?" if near else "docs/reference/configuration.md lists every key"
    raise ConfigError("unknown key", path=place.path, line=place.line, value=name, fix=fix)


def _check(name: str, hint: Any, metadata: Any, value: Any, place: Place) -> Any:
    def refuse(reason: str, fix: str) -> typing.NoReturn:
        raise ConfigError(f"{name}: {reason}", path=place.path, line=place.line, value=value, fix=fix)

    if name in SOURCE_WORDS:
        return _check_source(value, refuse, SOURCE_WORDS[name])
    if name == "npu.device" and isinstance(value, str) and value.startswith(SIMULATED.rstrip(":")):
        return _check_simulated(value, refuse)
    choices, also = metadata["choices"], metadata["also"]
    if value in also and not isinstance(value, bool):
        return value
    kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
    if value is None:
        if types.NoneType in kinds:
            return None
        refuse("needs a value", f"write {_type_words(hint, metadata)}")
    if typing.get_origin(hint) is tuple:
        return _check_words(choices, value, refuse)
    if choices and isinstance(value, bool):
        value = next((word for word in _SWITCH_WORDS[value] if word in choices), value)
    if choices and value not in choices:
        near = difflib.get_close_matches(str(value), choices, 1)
        known = [*choices, metadata["family"]] if metadata["family"] else choices
        refuse("not one of " + ", ".join(known), f"did you mean {near[0]}?" if near else f"choose {choices[0]}")
    if choices:
        return value
    return _check_scalar(kinds, hint, metadata, value, refuse)


def _check_words(choices: tuple[str, ...], value: Any, refuse: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        refuse("not a list", "write [first, second]")
    if choices and any(word not in choices for word in words):
        refuse("not a list of known words", f"choose from {', '.join(choices)}")
    if any(isinstance(word, bool) or not isinstance(word, str | int | float) or "\0" in str(word) for word in words):
        refuse("not a list of words", "quote each of them")
    return tuple(str(word) for word in words)  # a host may be called 17


def _check_scalar(kinds: set[Any], hint: Any, metadata: Any, value: Any, refuse: Any) -> Any:
    if isinstance(value, bool):
        if bool not in kinds:
            refuse("not " + _type_words(hint, metadata), f"write {_type_words(hint, metadata)}")
        return value
    if float in kinds and isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", value):
        value = float(value)  # YAML 1.1 reads 1e-3 as a word
    if float in kinds and isinstance(value, int):
        value = float(value) if abs(value) <= LARGEST_WHOLE else math.inf  # which is out of range
    if (
        str in kinds
        and int not in kinds
        and bool not in kinds
        and not metadata["also"]
        and isinstance(value, int | float)
    ):
        value = str(value)
    if not isinstance(value, tuple(kind for kind in kinds if kind is not types.NoneType)) or (
        isinstance(value, str) and metadata["also"]
    ):
        refuse("not " + _type_words(hint, metadata), f"write {_type_words(hint, metadata)}")
    if isinstance(value, str) and "\0" in value:
        refuse("holds a NUL character", "leave it out")
    if isinstance(value, int | float):
        furthest = LARGEST_REAL if isinstance(value, float) else LARGEST_WHOLE
        low = -furthest if metadata["minimum"] is None else metadata["minimum"]
        high = furthest if metadata["maximum"] is None else metadata["maximum"]
        if not low <= value <= high:
            refuse("out of range", f"write {_type_words(hint, metadata)}")
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


def _type_words(hint: Any, metadata: Any) -> str:
    if typing.get_origin(hint) is tuple and not metadata["choices"]:
        return "list of words"
    if metadata["choices"]:
        listed = " | ".join([*metadata["choices"], *filter(None, [metadata["family"]])])
        return f"list of {listed}" if typing.get_origin(hint) is tuple else listed
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    names = {int: "a whole number", float: "a number", bool: "true | false", str: "text", types.NoneType: "null"}
    words = [names[kind] for kind in kinds if kind in names and not (kind is str and metadata["also"])]
    words += [str(value) for value in metadata["also"]]
    low, high = metadata["minimum"], metadata["maximum"]
    if high is not None:
        words[0] += f" from {low:g} to {high:g}"
    elif low is not None:
        words[0] += f", at least {low:g}"
    return " | ".join(words)


def _describe(kind: type, prefix: str) -> Iterator[tuple[str, str, Any, str]]:
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        name = prefix + item.name
        if dataclasses.is_dataclass(hints[item.name]):
            yield from _describe(typing.cast(type, hints[item.name]), name + ".")
        else:
            words = SOURCE_WORDS.get(name) or _type_words(hints[item.name], item.metadata)
            yield name, words, item.default, item.metadata["doc"]


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
