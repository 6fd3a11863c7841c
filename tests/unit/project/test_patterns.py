"""No pattern takes quadratic time: two endless repetitions of the same characters never stand together.

Text from outside meets these patterns. One such pair takes a minute on 60,000 spaces; a split at a character does not.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants as constants
    import sre_parse as parser

PACKAGES = ("cpu_engine", "exchange", "hybrid", "npu_engine")
CALLS = ("compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer")
CHARACTERS = [chr(code) for code in range(256)]


def patterns(root: Path) -> Iterator[tuple[str, str]]:
    """(where it stands, the pattern) of every pattern that is written out."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
                    owner = node.func.value
                    if isinstance(owner, ast.Name) and owner.id == "re" and node.args:
                        written = node.args[0]
                        if isinstance(written, ast.Constant):
                            text = written.value if isinstance(written.value, str) else written.value.decode("latin-1")
                            yield f"{file.relative_to(root)}:{node.lineno}", text


def characters_of(item: tuple) -> frozenset[str]:
    """The characters that a single item can be."""
    kind, value = item
    if kind is constants.LITERAL:
        return frozenset(chr(value))
    if kind is constants.SUBPATTERN:
        return frozenset().union(*map(characters_of, value[-1]))
    if kind is constants.BRANCH:
        return frozenset().union(*(characters_of(one) for branch in value[1] for one in branch))
    if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
        return frozenset().union(*map(characters_of, value[2]))
    if kind is constants.ANY:
        return frozenset(CHARACTERS) - {"\n"}
    if kind is constants.NOT_LITERAL:
        return frozenset(CHARACTERS) - {chr(value)}
    if kind is constants.IN:
        return frozenset(one for one in CHARACTERS if any(fits(one, part) for part in value) != negated(value))
    return frozenset()  # an anchor


def negated(parts: list) -> bool:
    return bool(parts) and parts[0][0] is constants.NEGATE


def fits(one: str, part: tuple) -> bool:
    kind, value = part
    if kind is constants.LITERAL:
        return ord(one) == value
    if kind is constants.RANGE:
        return value[0] <= ord(one) <= value[1]
    if kind is constants.CATEGORY:
        written = {"DIGIT": "\\d", "SPACE": "\\s", "WORD": "\\w"}
        name = str(value).removeprefix("CATEGORY_")
        found = re.match(written[name.removeprefix("NOT_")], one) is not None
        return found != name.startswith("NOT_")
    return False


def scan(items: list, before: frozenset[str]) -> tuple[bool, frozenset[str]]:
    """(whether two endless repetitions share characters and may touch, the characters of those that may touch the end).

    ``before``: characters of the endless repetitions that may touch the first item.
    """
    twice = False
    for item in items:
        kind, value = item
        if kind is constants.SUBPATTERN:
            inside, after = scan(value[-1], before)
            twice, before = twice or inside, after
        elif kind is constants.BRANCH:
            ends = [scan(branch, before) for branch in value[1]]
            twice, before = twice or any(one for one, _ in ends), frozenset().union(*(after for _, after in ends))
        elif kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            low, high, parts = value
            if high == constants.MAXREPEAT:
                characters = characters_of(item)
                twice = twice or bool(characters & before)
                before = characters | (before if low == 0 else frozenset())
            else:
                inside, after = scan(parts, before)
                twice, before = twice or inside, after | (before if low == 0 else frozenset())
        elif characters_of(item):
            before = frozenset()
    return twice, before


def stands_twice(pattern: str) -> bool:
    """Whether two endless repetitions that share characters stand together, or with nothing needed between them."""
    return scan(list(parser.parse(pattern)), frozenset())[0]


def test_no_pattern_takes_quadratic_time(project_root: Path) -> None:
    found = list(patterns(project_root))
    assert len(found) > 20
    assert [place for place, text in found if stands_twice(text)] == []


@pytest.mark.parametrize(
    ("pattern", "twice"),
    [
        (r"^\s*graph\.(?P<key>[^=:\s]+)\s*[=:]\s*(?P<value>.*?)\s*$", True),
        (r"a+b*a+", True), (r"\s*,?\s*", True), (r"(\d+)(\w*)", True),
        (r"\s*[=:]\s*", False), (r"[a-z]+\d+", False), (r"a{1,9}a*", False), (r"\d+(?:\.\d+)?", False),
    ],
)  # fmt: skip
def test_the_rule(pattern: str, twice: bool) -> None:
    assert stands_twice(pattern) == twice
