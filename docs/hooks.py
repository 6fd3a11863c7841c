"""Pages of the documentation site that are made from the code: command line, API reference, examples.

The files of these names in docs/ say where to look without the site; the site has the made text in their place.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_UPWARD = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]*)[^)]*\)")


def on_page_read_source(page: Any, config: Any) -> str | None:
    """The made text of a page; None leaves it to its file."""
    make = MADE.get(page.file.src_uri)
    return None if make is None else make()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the project that are no pages become plain text."""
    folder = (DOCS / page.file.src_uri).parent

    def plain(link: re.Match[str]) -> str:
        return link[0] if (folder / link[2]).resolve().is_relative_to(DOCS) else link[1]

    return _UPWARD.sub(plain, markdown)


def command_line() -> str:
    """What ``--help`` says, of every command."""
    from hybrid.cli import main

    text = _help(main, [])
    commands = re.findall(r"^    ([a-z][a-z0-9-]*)\b", text.partition("positional arguments")[2], re.MULTILINE)
    parts = ["# Command line\nMade from `python run.py --help`; `tandem` is the same program.\n", f"```\n{text}```\n"]
    for name in commands:
        parts.append(f"## {name}\n```\n{_help(main, [name])}```\n")
    return "\n".join(parts)


def _help(main: Any, command: list[str]) -> str:
    if command == ["worker"]:  # a program of its own, which would take this process's place
        asked = [sys.executable, "-m", "npu_engine", "--program", "tandem worker", "--help"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603 - our own worker
    caught = io.StringIO()
    with contextlib.redirect_stdout(caught), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return caught.getvalue()


def api_reference() -> str:
    """Directives for mkdocstrings, which reads the docstrings without importing anything."""
    import hybrid

    sections = {
        "Graphs": ["hybrid.api.opening", "hybrid.api.graph"],
        "Algorithms": ["hybrid.api.algorithms"],
        "Results": ["hybrid.api.results"],
        "Errors": ["hybrid.errors", "cpu_engine.errors"],
    }
    parts = [
        "# API reference",
        f"Version {hybrid.__version__}. `hybrid.NAME` gives all functions and `Graph`; the algorithms are methods of "
        "`Graph`, too.",
    ]
    for title, modules in sections.items():
        parts += [f"## {title}", *(f"::: {module}" for module in modules)]
    return "\n\n".join(parts) + "\n"


def examples() -> str:
    """The programs in examples/, each with its description."""
    parts = [
        "# Examples\n`python examples/NAME.py` runs one; a test runs them all. `examples/tour.ipynb` is a notebook.\n"
    ]
    for path in sorted((ROOT / "examples").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        first = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        parts.append(f"## {path.relative_to(ROOT / 'examples')}\n{first}\n\n```python\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


MADE = {
    "reference/command-line.md": command_line,
    "reference/api-reference.md": api_reference,
    "how-to/examples.md": examples,
}
