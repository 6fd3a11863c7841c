"""Commands on the pages name configuration files and keys that exist."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from hybrid.config import describe_keys

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KEYS = {name for name, *_ in describe_keys()}


def commands(page: Path) -> list[list[str]]:
    """The words of every command in a block that runs run.py, comments and continued lines taken into account."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if not language for line in block.replace("\\\n", " ").splitlines()]
    return [
        shlex.split(line.lstrip("$ "), comments=True) for line in lines if re.match(r"(\$ )?\S*python run\.py ", line)
    ]


def values(words: list[str], option: str) -> list[str]:
    return [after for word, after in pairwise(words) if word == option]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_files_and_keys_of_commands_exist(page: Path) -> None:
    for words in commands(page):
        for name in values(words, "--config"):
            assert not name.startswith("configs/") or (ROOT / name).is_file(), f"{page.name}: no {name}"
        for setting in values(words, "--set"):
            assert setting.partition("=")[0] in KEYS, f"{page.name}: no key {setting}"


def test_the_tutorials_have_commands() -> None:
    for name in ("one-machine", "ranks", "service"):
        assert commands(ROOT / "docs" / "tutorials" / f"{name}.md"), name
