"""Every relative link and anchor of the documentation leads somewhere, in the repository and in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")


def links_of(page: Path) -> list[str]:
    found = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors_of(page: Path) -> set[str]:
    """The ids of the headings, as repository views make them; the site makes the same of those without odd signs."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_links_to_check() -> None:
    assert sum(len(links_of(page)) for page in PAGES) > 50
    assert anchors_of(ROOT / "docs" / "reference" / "protocol.md") >= {"programs", "the-heartbeat"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{page.name}: {link} leads out of the project"
        if anchor:
            assert anchor in anchors_of(target), f"{page.name}: {target.name} has no heading for #{anchor}"
        if page.is_relative_to(ROOT / "docs") and target.is_relative_to(ROOT / "docs"):
            assert target.suffix in {".md", ".svg", ".json"}, f"{page.name}: the site has no page for {link}"


def test_the_site_has_every_page_and_no_others() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, dict):
            return [name for part in entry.values() for name in pages(part)]
        return [name for part in entry for name in pages(part)] if isinstance(entry, list) else [str(entry)]

    class Loader(yaml.SafeLoader):
        """Leaves tags of plugins alone."""

    Loader.add_multi_constructor("", lambda loader, suffix, node: None)
    listed = pages(yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"])
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(listed) == written
    assert len(listed) == len(set(listed))
