"""What another user of the machine does to a directory: a shell script, run as nobody where root runs the tests."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOBODY = 65534
NO_SECOND_USER = "a second user can only be played by root"
Attack = Callable[..., None]


def run_as(user: int | None, script: str, *arguments: object) -> None:
    """Run a POSIX shell script; its words $1, $2, ... are the arguments."""
    words = ["sh", "-euc", f"umask 0\n{script}", "sh", *map(str, arguments)]
    group: dict[str, object] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(words, capture_output=True, text=True, cwd="/", check=False, **group)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"


@pytest.fixture(params=["second user", "same user"])
def attack(request: pytest.FixtureRequest) -> Attack:
    """Runs a script as a user who shares the exchange directory, or as one's own worker would."""
    if request.param == "same user":
        return lambda script, *arguments: run_as(None, script, *arguments)
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    return lambda script, *arguments: run_as(NOBODY, script, *arguments)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that every user may reach and write, with files made for all."""
    before = os.umask(0)
    made = Path(tempfile.mkdtemp(prefix="tandem-test-"))
    made.chmod(0o777)
    try:
        yield made
    finally:
        os.umask(before)
        subprocess.run(["rm", "-rf", str(made)], check=True)
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def private() -> Iterator[Path]:
    """A directory with files of this user that no other user may read."""
    made = Path(tempfile.mkdtemp(prefix="tandem-test-"))
    (made / "inner").mkdir()
    for file in (made / "secret", made / "inner" / "secret"):
        file.write_text("SECRET WORDS\n")
        file.chmod(0o600)
    yield made
    assert sorted(str(path.relative_to(made)) for path in made.rglob("*")) == ["inner", "inner/secret", "secret"]
    assert {path.read_text() for path in made.rglob("secret")} == {"SECRET WORDS\n"}, "not written to either"
    shutil.rmtree(made)
