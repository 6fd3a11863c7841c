"""Exchange directories that another user, or a worker gone wild, may write to: links, pipes, depth, false owners."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from exchange.errors import ExchangeError
from exchange.escape import PrintableFormatter, printable
from exchange.filesystem.disk import Disk
from exchange.filesystem.folder import MOST_REMOVED, Folder
from exchange.filesystem.owner_lock import lock_directory, read_owner
from exchange.filesystem.watch import Watcher
from exchange.mailbox import CoordinatorMailbox, WorkerMailbox
from exchange.protocol import layout
from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG, explain_failure
from hybrid.service.logs import Lines
from hybrid.terminal import note, say
from tests.protocol.second_user import NO_SECOND_USER, NOBODY, Attack, attack, private, run_as, shared

__all__ = ["attack", "private", "shared"]

TOKEN = "0000abcd"
FIRST = layout.round_id(1, TOKEN)
CORE = layout.core_name(1, TOKEN)
OFFSETS, TARGETS = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0], np.int32)
ESCAPES = "\x1b[31mred\x07\r\n\x9b2J‮"
NEST = 'cd "$1"; mkdir -p "$(printf "d/%.0s" $(seq 1800))"'
REPLACE = 'mv "$1/$2" "$1/aside"; ln -s "$3" "$1/$2"'


class Immovable(Disk):
    """A disk on which no directory can be removed."""

    def rmdir(self, name: str, at: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.fixture
def coordinator(shared: Path) -> Iterator[CoordinatorMailbox]:
    mailbox = CoordinatorMailbox(shared, token=TOKEN)
    mailbox.open()
    mailbox.publish_core(OFFSETS, TARGETS, 3)
    mailbox.write_round(FIRST, np.array([0]), np.array([5]))
    yield mailbox
    mailbox.close()


def announce(attack: Attack, coordinator: CoordinatorMailbox) -> None:
    attack(': > "$1/ok.flag"', coordinator.directory / FIRST)
    assert coordinator.ok_exists(FIRST)


# ---------------------------------------------------------------------------------------------- removal


@pytest.mark.parametrize("name", [FIRST, CORE])
@pytest.mark.parametrize("how", ["remove_round", "tidy", "cleanup"])
def test_nothing_is_removed_through_a_link(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path, name: str, how: str
) -> None:
    """``private`` checks at its end that all of it is still there."""
    attack(REPLACE, coordinator.directory, name, private)
    if how == "remove_round":
        coordinator.remove_round(FIRST)
    elif how == "tidy":
        coordinator.tidy()
    assert coordinator.cleanup() == []
    assert sorted(os.listdir(coordinator.directory)) == ["aside"]


def test_links_inside_of_a_round_are_removed_not_followed(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path
) -> None:
    script = 'mkdir -p "$1/a/b"; ln -s "$2" "$1/a/b/link"; ln -s "$2/secret" "$1/data.txt"; ln -s loop "$1/loop"'
    attack(script, coordinator.directory / FIRST, private)
    assert coordinator.cleanup() == []
    assert os.listdir(coordinator.directory) == []


def test_any_depth_is_removed(coordinator: CoordinatorMailbox, attack: Attack) -> None:
    attack(NEST, coordinator.directory / FIRST)
    assert coordinator.cleanup() == []
    assert os.listdir(coordinator.directory) == []


def test_a_removal_is_bounded(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchange.filesystem.folder.MOST_REMOVED", 10)
    assert MOST_REMOVED > 10
    for folder in (shared / "wide", shared / "nested" / "wide"):
        folder.mkdir(parents=True)
        for number in range(12):
            (folder / str(number)).touch()
    with Folder.open(shared) as folder:
        for name in ("wide", "nested"):
            with pytest.raises(
                ExchangeError, match=r"more than 10 files to remove.*Fix: remove this directory by hand"
            ):
                folder.remove(name)


def test_what_cannot_be_removed_is_told_in_a_few_lines(shared: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    run_as(NOBODY, 'for i in 1 2 3 4 5 6; do mkdir "$1/round-00000$i-$2"; done', shared, TOKEN)
    mailbox = CoordinatorMailbox(shared, token=TOKEN, disk=Immovable())
    mailbox.open()
    problems = mailbox.cleanup()
    assert len(problems) == 4
    assert problems[-1] == "and 3 more"


# ------------------------------------------------------------------------------------------------- lock


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "directory", "foreign"])
def test_a_false_lock_is_neither_taken_nor_changed(shared: Path, private: Path, attack: Attack, kind: str) -> None:
    lock = shared / layout.OWNER_LOCK
    if kind == "hard link":
        os.link(private / "secret", lock)  # where the system lets a user link files of others
    elif kind == "foreign":
        if os.geteuid() != 0:
            pytest.skip(NO_SECOND_USER)
        run_as(NOBODY, 'echo "token 1111abcd" > "$1"', lock)
    else:
        make = {"link": 'ln -s "$2" "$1"', "pipe": 'mkfifo "$1"', "directory": 'mkdir "$1"'}[kind]
        attack(make, lock, private / "secret")
    with Folder.open(shared) as folder, pytest.raises(ExchangeError, match="Fix"):
        lock_directory(folder, TOKEN)
    mailbox = CoordinatorMailbox(shared)
    with pytest.raises(ExchangeError, match="Fix"):
        mailbox.open()
    assert mailbox.cleanup() == []


def test_a_lock_never_makes_what_a_link_names(shared: Path, private: Path, attack: Attack) -> None:
    attack('ln -s "$2/new" "$1/owner.lock"', shared, private)
    with Folder.open(shared) as folder, pytest.raises(ExchangeError, match="symbolic link"):
        lock_directory(folder, TOKEN)


@pytest.mark.parametrize(
    "script", ['mkdir -p "$1/stop.flag/a/b"', 'ln -s "$2" "$1/stop.flag"', 'mkfifo "$1/stop.flag"']
)
def test_whatever_is_called_stop_flag_goes(shared: Path, private: Path, attack: Attack, script: str) -> None:
    attack(script, shared, private)
    with CoordinatorMailbox(shared):
        assert os.listdir(shared) == [layout.OWNER_LOCK]


# ---------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("script", [
    'ln -s "$2/secret" "$1/data.txt"', 'ln -s loop "$1/loop"; mv "$1/loop" "$1/data.txt"', 'mkfifo "$1/data.txt"',
    'mkdir "$1/data.txt"', 'truncate -s 100G "$1/data.txt"', 'echo 0 5 > "$1/x"; ln "$1/x" "$1/data.txt"',
    'rm "$1/ok.flag"; mkdir "$1/ok.flag"; echo 0 5 > "$1/data.txt"',
])  # fmt: skip
def test_an_answer_is_a_plain_file_with_one_name(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path, script: str
) -> None:
    announce(attack, coordinator)
    attack(script, coordinator.directory / FIRST, private)

    def read() -> None:
        assert coordinator.ok_exists(FIRST)
        coordinator.read_data(FIRST)

    with pytest.raises(ExchangeError, match="Fix") as caught:
        read()
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("content", [b"# torn comment", b"# program min-plus\n# batch 2", b"#"])
def test_a_torn_comment_is_refused(coordinator: CoordinatorMailbox, content: bytes) -> None:
    second = layout.round_id(2, TOKEN)
    coordinator.write_rows(second, np.zeros((2, 3), np.int32))
    for name in ("data.txt", "value.txt"):
        (coordinator.directory / second / name).write_bytes(content)
    with pytest.raises(ExchangeError, match="torn"):
        coordinator.read_rows(second, 2)
    with pytest.raises(ExchangeError, match="torn"):
        WorkerMailbox(coordinator.directory).load_question(second)


@pytest.mark.parametrize("facts", ["# core 3\n# batch {}", "# core {}\n# batch 0", "# core {}\n# batch 2"])
def test_no_announced_number_is_too_large_to_be_refused(coordinator: CoordinatorMailbox, facts: str) -> None:
    (coordinator.directory / FIRST / "value.txt").write_text(facts.format("9" * 400) + "\n")
    with pytest.raises(ExchangeError, match="Fix"):
        WorkerMailbox(coordinator.directory).load_question(FIRST)


def test_a_round_that_was_replaced_is_not_looked_into(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path
) -> None:
    (private / "ok.flag").touch()
    (private / "data.txt").write_text("SECRET\n")
    attack(REPLACE, coordinator.directory, FIRST, private)
    assert not coordinator.ok_exists(FIRST)
    with pytest.raises(ExchangeError, match="Fix"):
        coordinator.read_data(FIRST)
    coordinator.abandon(FIRST)
    assert not (private / layout.STOP_FLAG).exists()
    for name in ("ok.flag", "data.txt"):
        (private / name).unlink()


def test_an_answer_belongs_to_the_user_who_announced_it(coordinator: CoordinatorMailbox) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    round_dir = coordinator.directory / FIRST
    run_as(NOBODY, 'echo 0 5 > "$1/data.txt"; : > "$1/ok.flag"', round_dir)
    assert coordinator.ok_exists(FIRST)
    assert coordinator.read_data(FIRST).pairs.tolist() == [[0, 5]], "a worker may run as another user"
    os.chown(round_dir / "data.txt", 0, 0)
    with pytest.raises(ExchangeError, match=f"belongs to user 0 and should belong to user {NOBODY}"):
        coordinator.read_data(FIRST)


def test_a_worker_of_ones_own_writes_as_oneself(shared: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    with CoordinatorMailbox(shared, token=TOKEN, own_worker=True) as mailbox:
        mailbox.publish_core(OFFSETS, TARGETS, 3)
        mailbox.write_round(FIRST, np.array([0]), np.array([5]))
        WorkerMailbox(shared).announce(state="ready")
        assert mailbox.worker_facts() is not None
        run_as(NOBODY, 'echo "{}" > "$1/x"; mv "$1/x" "$1/worker.json"; cd "$1/$2"; echo 0 5 > data.txt; : > ok.flag',
               shared, FIRST)  # fmt: skip
        assert mailbox.worker_facts() is None
        assert mailbox.ok_exists(FIRST)
        with pytest.raises(ExchangeError, match=f"belongs to user {NOBODY}"):
            mailbox.read_data(FIRST)
        mailbox.cleanup()


# ------------------------------------------------------------------------------------------- the worker


@pytest.mark.parametrize("name", ["value.txt", "mind_graph.txt"])
def test_the_worker_follows_no_link_either(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path, name: str
) -> None:
    worker = WorkerMailbox(coordinator.directory)
    attack(f'rm "$1/{name}"; ln -s "$2/secret" "$1/{name}"', coordinator.directory / FIRST, private)
    with pytest.raises(ExchangeError, match=r"symbolic link|not a plain file"):
        (worker.load_question if name == "value.txt" else worker.load_core)(FIRST)


def test_the_worker_reads_only_what_the_rounds_maker_wrote(coordinator: CoordinatorMailbox, private: Path) -> None:
    """A coordinator of another user links the worker's own secrets into a round."""
    if os.geteuid() != 0:
        pytest.skip(NO_SECOND_USER)
    round_dir = coordinator.directory / FIRST
    os.chown(round_dir, NOBODY, NOBODY)
    worker = WorkerMailbox(coordinator.directory)
    for read in (worker.load_question, worker.load_core):
        with pytest.raises(ExchangeError, match=f"belongs to user 0 and should belong to user {NOBODY}"):
            read(FIRST)
    for name in ("value.txt", "mind_graph.txt"):
        os.chown(round_dir / name, NOBODY, NOBODY)
    assert worker.load_question(FIRST).pairs is not None
    assert len(worker.load_core(FIRST)[0].edges) == 4, "a core has as many names as rounds"


def test_the_worker_passes_over_what_is_no_round(
    coordinator: CoordinatorMailbox, attack: Attack, private: Path
) -> None:
    worker = WorkerMailbox(coordinator.directory)
    other = [layout.round_id(number, TOKEN) for number in (2, 3, 4)]
    attack('cd "$1"; ln -s "$2" $3; : > $4; mkfifo $5', coordinator.directory, private, *other)
    for _ in range(2):
        assert worker.pending_rounds() == [FIRST]
    worker.write_data(FIRST, np.array([[0, 5]]), {})
    worker.create_ok(FIRST)
    assert coordinator.ok_exists(FIRST)


# --------------------------------------------------------------------------------------- text from outside


def test_no_escape_reaches_a_reader(coordinator: CoordinatorMailbox) -> None:
    directory = coordinator.directory
    (directory / "worker.json").write_text(json.dumps({"error": ESCAPES, "pid": 10**30, "deep": [[]], ESCAPES: 1}))
    facts = coordinator.worker_facts()
    assert facts is not None
    assert sorted(facts.values(), key=str) == [1, printable(ESCAPES)], "numbers of a machine and text; nothing nested"
    (directory / FIRST / "data.txt").write_text(f"# device {ESCAPES.replace(chr(10), '')}\n0 5\n")
    assert coordinator.read_data(FIRST).header["device"].isprintable()
    (directory / FIRST / "data.txt").write_text(f"0 {ESCAPES.replace(chr(10), '')}\n")
    with pytest.raises(ExchangeError) as caught:
        coordinator.read_data(FIRST)
    assert str(caught.value).isprintable()
    (directory / "owner.lock").write_text("token \x1b[2J\npid \x1b]0;x\x07\nhost \x9b31m\n")
    with Folder.open(directory) as folder:
        assert all(fact.isprintable() for fact in read_owner(folder).values())
    hidden = directory / f".{FIRST}.\x1b[31m\udc80"
    hidden.mkdir()
    (hidden / "x").touch()
    stubborn = CoordinatorMailbox(directory, token=TOKEN, disk=Immovable())
    coordinator.close()
    stubborn.open()
    problems = stubborn.cleanup()
    assert any("\\x1b[31m" in problem for problem in problems)
    assert all(problem.isprintable() for problem in problems)


def test_printable() -> None:
    assert printable("plain text, ünïcödé, 漢字") == "plain text, ünïcödé, 漢字"
    assert printable(ESCAPES) == "\\x1b[31mred\\x07\\r\\n\\x9b2J\\u202e"
    assert printable("\udc80\u2028​") == "\\udc80\\u2028\\u200b"
    assert printable("x" * 5000) == "x" * 2000 + "..."
    assert printable("\x00" * 5000, 10) == "\\x00" * 10 + "..."


def test_no_sink_lets_an_escape_through(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.LogRecord("x", logging.WARNING, "f", 1, "%s\tcell\nline", (ESCAPES,), None)
    for formatter in (PrintableFormatter("%(message)s"), Lines(None)):
        told = formatter.format(record)
        assert told.endswith("\tcell\nline")
        assert "\x1b" not in told
    say(f"{'wide' * 1000}{ESCAPES}")
    note(ESCAPES)
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "wide" * 1000 in shown.out, "a result is shown whole"
    assert "\x1b" not in explain_failure(OSError(2, ESCAPES, ESCAPES))[0]


@pytest.mark.parametrize("words", [[ESCAPES], ["info", "a", ESCAPES], ["run", f"--{ESCAPES}"], ["bench", ESCAPES]])
def test_no_name_on_the_command_line_reaches_the_terminal_raw(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell puts them there: ``validate *``."""
    with contextlib.suppress(SystemExit):
        assert main(words) == EXIT_CONFIG
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\\x1b" in shown.err


@pytest.mark.parametrize("content", [
    b"{" * 50_000, b"[" * 50_000, b'{"a":' * 9_000, b"1" * 10_000, b'{"pid": ' + b"9" * 5_000 + b"}", b"\xff\xfe", b"",
    b'"text"', b"null", b"x" * (1 << 17),
])  # fmt: skip
def test_a_false_worker_json_says_nothing(coordinator: CoordinatorMailbox, content: bytes) -> None:
    (coordinator.directory / "worker.json").write_bytes(content)
    assert coordinator.worker_facts() is None


# -------------------------------------------------------------------------------------------- the watch


@pytest.mark.parametrize("mode", ["auto", "events"])
def test_a_deep_directory_does_not_end_a_watch(shared: Path, attack: Attack, mode: str) -> None:
    attack(NEST, shared)
    with Watcher(shared, mode) as watcher:  # type: ignore[arg-type]
        assert watcher.mode_in_use == "events"
        (shared / "ok.flag").touch()
        assert watcher.wait(20)
