"""Every path on the pages, and in the architecture's drawing, is a file or folder of the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
PAGE, DRAWING = ROOT / "docs" / "architecture.md", ROOT / "docs" / "architecture.svg"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
_PATH = re.compile(r"[a-z_0-9]+(?:/[a-z_0-9]+)*(?:\.[a-z]+)?")
_TOP = "hybrid|cpu_engine|npu_engine|exchange|benchmarks|tests|configs|examples|docs"
_MENTION = re.compile(rf"(?<![\w/.-])(?:{_TOP})/[\w./-]*\w")


@pytest.fixture(scope="module")
def there() -> set[str]:
    """Every file of the repository, and every folder above one."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: git's list of files is missing")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {str(part) for name in listed for part in (Path(name), *Path(name).parents)}


def cells(heading: str, column: int) -> list[str]:
    """The cells of a column of the table whose first heading is this."""
    table = re.search(
        rf"^\| {re.escape(heading)} .*?(?=^$)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert table is not None
    rows = table[0].splitlines()[2:]
    return [row.strip("|").split("|")[column] for row in rows]


def paths(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize(("heading", "column", "least"), [("folder", 0, 20), ("you want to change", 1, 25)])
def test_every_path_of_the_tables_is_there(there: set[str], heading: str, column: int, least: int) -> None:
    rows = cells(heading, column)
    assert len(rows) >= least
    for row in rows:
        assert paths(row), f"no path in {row!r}"
        assert set(paths(row)) <= there, set(paths(row)) - there


def test_the_folders_named_beside_a_folder_are_below_it(there: set[str]) -> None:
    for owner, text in zip(cells("folder", 0), cells("folder", 1), strict=True):
        for below in (name for name in paths(text) if name.endswith("/")):
            places = {f"{folder}/{below.rstrip('/')}" for folder in paths(owner)}
            assert places & there, f"{owner}: no {below}"


def test_every_folder_of_the_drawing_is_there(there: set[str]) -> None:
    drawn = [element.text or "" for element in ElementTree.parse(DRAWING).iter() if element.get("class") == "path"]
    named = [name for text in drawn for name in _PATH.findall(text) if "/" in name]
    assert len(named) >= 18
    assert set(named) <= there, set(named) - there


def test_every_package_with_code_of_its_own_is_in_the_table(there: set[str]) -> None:
    listed = {name for cell in cells("folder", 0) for name in paths(cell)}
    rooms = {
        name
        for name in there
        if re.fullmatch(r"(hybrid|cpu_engine)/[a-z_0-9]+", name) and f"{name}/__init__.py" in there
    }
    assert rooms - listed == set(), "these folders have no row"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_in_the_text_is_there(there: set[str], page: Path) -> None:
    named = {name for name in _MENTION.findall(page.read_text(encoding="utf-8")) if "NAME" not in name}
    assert named <= there, named - there
