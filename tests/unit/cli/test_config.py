"""The configuration: defaults, file, overrides and documentation agree; mistakes are named with file, line and fix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cpu_engine.bfs.strategies.names import STRATEGIES
from cpu_engine.errors import LONGEST
from hybrid.config import configuration_page, describe_keys, dump_config, load_config
from hybrid.config.schema import DEFAULT_JOB_RANKS, Config, CoreConfig
from hybrid.errors import ConfigError


def test_default_file_schema_and_page_agree(project_root: Path) -> None:
    assert load_config(project_root / "configs" / "cluster.yaml") == replace(Config(), ranks=DEFAULT_JOB_RANKS)
    assert (project_root / "docs" / "reference" / "configuration.md").read_text() == configuration_page()
    written = yaml.safe_load((project_root / "configs" / "cluster.yaml").read_text())
    for name, *_ in describe_keys():
        inner = written
        for part in name.split("."):
            assert part in inner, f"{name} is not in configs/cluster.yaml"
            inner = inner[part]


def test_every_shipped_file_is_valid(project_root: Path) -> None:
    for path in (project_root / "configs").glob("*.yaml"):
        load_config(path)


def test_no_shipped_file_judges_the_npu_by_a_core_of_its_own_choice(project_root: Path) -> None:
    """A user's graph gets the automatic core; only the room for it may differ."""
    for path in (project_root / "configs").glob("*.yaml"):
        core = load_config(path).core
        assert replace(core, max_bytes=CoreConfig().max_bytes) == CoreConfig(), path.name


def test_what_is_saved_can_be_read_back(tmp_path: Path) -> None:
    config = load_config(None, ["source=[3, 1099511627776]", "npu.mode=off", "result.forms=[ldbc]", "core.size=7"])
    (tmp_path / "config.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "config.yaml") == config


def test_overrides_win_over_the_file_and_nest(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("source: 5\nnpu: {mode: race}\n")
    config = load_config(path, ["npu.mode=off", "graph.generator={scale: 4, seed: 2}"])
    assert (config.source, config.npu.mode, config.graph.generator.scale) == (5, "off", 4)


def test_a_bare_off_is_the_word() -> None:
    """YAML 1.1 reads off as false."""
    assert load_config(None, ["npu.mode=off"]).npu.mode == "off"


def test_numbers_as_people_write_them() -> None:
    config = load_config(None, ["npu.round_timeout_s=1e-3", "npu.start_timeout_s=5", "graph.path=2024"])
    assert (config.npu.round_timeout_s, config.npu.start_timeout_s, config.graph.path) == (0.001, 5.0, "2024")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("source: 1\nnpu:\n  mod: race\n", 3, "did you mean npu.mode?"),
        ("grap: {}\n", 1, "unknown key"),
        ("source: 1\nsource: 2\n", 2, "stands twice"),
        ("source: [1\n", 2, "not valid YAML"),
        ("- 1\n- 2\n", 1, "`key: value`"),
        ("npu: 5\n", 1, "group of keys"),
        ("source: 1.5\n", 1, "not a vertex id"),
        ("source: []\n", 1, "not a vertex id"),
        ("source: random:0\n", 1, "at least one"),
        ("ranks: -1\n", 1, "out of range"),
        ("ranks: true\n", 1, "whole number"),
        ("graph:\n  directed: perhaps\n", 2, "true | false | auto"),
        ("npu:\n  mode: sahre\n", 2, "did you mean share?"),
        ("npu:\n  device: null\n", 2, "needs a value"),
        ("result:\n  forms: [xml]\n", 2, "choose from text, ldbc"),
        ("graph:\n  generator:\n    scale: 31\n", 3, "from 0 to 30"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert f"job.yaml:{line}:" in str(caught.value)
    assert told in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("override", ["source", "=5", "source=[1", "core.size=x"])
def test_bad_overrides(override: str) -> None:
    with pytest.raises(ConfigError, match="Fix: "):
        load_config(None, [override])


def test_strategies_are_those_that_exist_and_belong_to_the_level_engine() -> None:
    words = next(words for name, words, *_ in describe_keys() if name == "bfs.strategy")
    assert set(words.split(" | ")) == set(STRATEGIES)
    assert load_config(None, ["bfs.strategy=pull", "engine=level"]).bfs.strategy == "pull"
    with pytest.raises(ConfigError, match="engine: level"):
        load_config(None, ["bfs.strategy=pull"])


def test_two_rules_for_the_core_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"core\.threshold and core\.size"):
        load_config(None, ["core.size=5", "core.threshold=9"])


HOSTILE = {
    "recursive": "graph: &a {generator: *a}",
    "brackets": "source: " + "[" * 500_000,  # a scanner whose time is quadratic would not come back
    "braces": "graph: " + "{a: " * 5000 + "1" + "}" * 5000,
    "dashes": "source:\n  " + "- " * 100_000 + "1",
    "laughs": "a0: &a0 [ha, ha]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
    "laughing groups": "a0: &a0 {x: 1}\n"
    + "".join(f"a{i}: &a{i} {{{', '.join(f'k{j}: *a{i - 1}' for j in range(9))}}}\n" for i in range(1, 12)),
    "laughs where a value belongs": "x: &x [ha, ha]\ny: &y [*x, *x]\nsource: [*y, *y]",
    "too large": "# " + "x" * (1 << 20) + "\nsource: 1",
    "NUL": 'output: "a\\0b"',
    "NUL in a list": 'cluster: {hosts: ["a\\0b"]}',
    "escapes": 'algorithm: "\\e[2J\\e[31mred"',
    "an endless number": "pagerank: {iterations: " + "9" * 401 + "}",
    "an infinite number": "louvain: {resolution: .inf}",
    "no number": "pagerank: {damping: .nan}",
    "a number beyond": "louvain: {resolution: 1e308}",
    "a whole number beyond": "louvain: {resolution: " + "9" * 401 + "}",
    "many iterations": "cdlp: {iterations: 10000000000000000000000}",
    "a source of 4,000 digits": "source: " + "7" * 4000,
    "a source of 5,000 digits": "source: " + "7" * 5000,
    "sources without end": "source: random:" + "9" * 5000,
    "no such day": "source: 2020-99-99",
    "seconds without end": "npu: {round_timeout_s: 1e300}",
    "a tab and bytes": "\tsource: \x01",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_one_short_line(kind, tmp_path):
    file = tmp_path / "hostile.yaml"
    file.write_text(HOSTILE[kind])
    with pytest.raises(ConfigError, match="Fix: ") as told:
        load_config(file)
    assert len(str(told.value)) <= LONGEST
    assert str(told.value).isprintable()


@pytest.mark.parametrize("value", ["[" * 3000, "{a: " * 3000, "7" * 5000, "2020-99-99", "&a {b: *a}", "\x00"])
def test_a_hostile_override_is_refused_in_one_short_line(value):
    with pytest.raises(ConfigError, match="Fix: ") as told:
        load_config(None, [f"louvain.resolution={value}"])
    assert len(str(told.value)) <= LONGEST


def test_whatever_is_waited_for_or_repeated_has_an_end():
    for name, words, _, _ in describe_keys():
        if name.endswith("_s") or name.endswith("iterations"):
            assert " to " in words, name
