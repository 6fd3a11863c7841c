"""The audit of installed packages: what fails it, and what only limits it."""

from __future__ import annotations

import pytest

from tests import audit

SOUND = {"name": "numpy", "version": "1.26.4", "vulns": []}
UNKNOWN = {"name": "tandem-graph", "skip_reason": "not found"}
HOLED = {
    "name": "thing",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1"]}],
}


def test_a_known_hole_fails_it_and_names_the_fix() -> None:
    passed, lines = audit.judge([SOUND, HOLED, UNKNOWN])
    assert not passed
    assert lines[0] == "thing 1.0: PYSEC-1, fixed in 1.1"
    assert lines[-1] == "pip-audit: 2 packages audited, 1 not known to the advisory database"


def test_an_accepted_advisory_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(audit.ACCEPTED, "CVE-1", "the function is not called")
    assert audit.judge([HOLED])[0]


def test_no_database_is_said() -> None:
    for answer in (None, [UNKNOWN]):
        passed, lines = audit.judge(answer)
        assert passed
        assert "cannot be reached" in lines[0]
