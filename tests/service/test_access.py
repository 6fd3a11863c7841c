"""Who may listen where, and what the log keeps to itself."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.config.schema import ServiceConfig
from hybrid.errors import EXIT_CONFIG, ConfigError
from hybrid.service.http.access import is_loopback, read_token
from hybrid.service.logs import Lines

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(("host", "own"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil.example", False), ("", False),
])  # fmt: skip
def test_loopback(host: str, own: bool) -> None:
    assert is_loopback(host) == own


def test_beyond_loopback_there_is_a_token_or_a_decision(tmp_path: Path) -> None:
    wide = ServiceConfig(host="0.0.0.0")
    with pytest.raises(ConfigError, match="token_file"):
        read_token(wide)
    assert read_token(dataclasses.replace(wide, open_to_network=True)) is None
    assert read_token(dataclasses.replace(wide, token=TOKEN)) == TOKEN
    (tmp_path / "token").write_text(TOKEN + "\nanything\n")
    assert read_token(dataclasses.replace(wide, token_file=str(tmp_path / "token"))) == TOKEN
    for weak in ("", "short"):
        with pytest.raises(ConfigError, match="shorter"):
            read_token(ServiceConfig(token=weak))


def test_the_command_refuses_with_the_fix(project_root: Path) -> None:
    command = [sys.executable, "run.py", "serve", "--set", "service.host=0.0.0.0"]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=60)
    assert done.returncode == EXIT_CONFIG
    assert "Fix: set service.token_file" in done.stderr


def test_secrets_are_starred() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "Authorization: Bearer %s", ("something",), None)
    record.facts = {"path": f"/v1?token={TOKEN}", "given": TOKEN}
    line = Lines(TOKEN).format(record)
    assert TOKEN not in line
    assert "something" not in line
    assert "Bearer ***" in line
