"""Every address and query parameter in docs/how-to/service.md is one that the running service has."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.service.conftest import Running

_CALL = re.compile(r'^curl (?P<words>.*)"\$T(?P<address>/[^"]*)"(?P<comment>.*)$', re.MULTILINE)
_FILE = re.compile(r"\b\w+\.(?:npy|ldbc|arrow|parquet)\b")


def calls(text: str) -> list[tuple[str, str]]:
    """(method, address) of every curl line, and of the files that its comment names beside it."""
    found = []
    for call in _CALL.finditer(re.sub(r"\\\n\s*", " ", text)):
        sends = "-d " in call["words"] or "--data" in call["words"] or "-X POST" in call["words"]
        beside = [call["address"].rpartition("/")[0] + "/" + name for name in _FILE.findall(call["comment"])]
        found += [("post" if sends else "get", address) for address in (call["address"], *beside)]
    return found


def route_of(api: dict[str, Any], method: str, path: str) -> dict[str, Any] | None:
    """The operation that answers, with its parameters."""
    for template, operations in api["paths"].items():
        operation = operations.get(method)
        if operation is None:
            continue
        allowed = {
            one["name"]: "|".join(one["schema"].get("enum", ["[^/]+"])) for one in operation.get("parameters", [])
        }
        parts = re.split(r"\{(\w+)\}", template)
        pattern = "".join(re.escape(part) if at % 2 == 0 else f"({allowed[part]})" for at, part in enumerate(parts))
        if re.fullmatch(pattern, path):
            return dict(operation)
    return None


def test_every_documented_call_has_a_route(service: Running, project_root: Path) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/v1/openapi.json", timeout=30) as answer:
        api = json.load(answer)
    documented = calls((project_root / "docs" / "how-to" / "service.md").read_text())
    assert len(documented) > 15
    for method, address in documented:
        path, query = urlsplit(address).path, parse_qs(urlsplit(address).query)
        operation = route_of(api, method, path)
        assert operation is not None, f"{method} {path}"
        named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
        assert set(query) <= named, address


def test_each_form_of_a_result_is_there(service: Running, project_root: Path) -> None:
    """The forms named beside the calls, asked for really."""
    graph = service.client.generate("grid", rows=3, cols=3)
    job = service.client.submit(graph, "wcc")
    service.client.wait(job)
    text = (project_root / "docs" / "how-to" / "service.md").read_text()
    forms = set(re.findall(r"\b(result\.(?:ldbc|arrow|parquet))\b", text))
    assert len(forms) == 3
    for form in forms:
        with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/v1/jobs/{job}/{form}", timeout=30) as answer:
            assert answer.status == 200
            assert answer.read()
