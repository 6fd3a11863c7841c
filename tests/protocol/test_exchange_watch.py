"""The watcher: told by events or by polling, never deaf, and no thread left."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exchange.errors import ExchangeError
from exchange.filesystem import watch
from exchange.filesystem.watch import Watcher

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    descriptors = len(os.listdir("/proc/self/fd"))
    yield
    assert set(threading.enumerate()) == before, "threads of the watcher outlive it (daemons too)"
    assert len(os.listdir("/proc/self/fd")) == descriptors


def wait_for(watcher: Watcher, there: Callable[[], bool]) -> bool:
    """The usage pattern: look, wait, look again."""
    for _ in range(int(PATIENCE_S / watch.EAGER_INTERVAL_S)):
        if there():
            return True
        watcher.wait(PATIENCE_S)
    return False


@pytest.mark.parametrize("mode", ["auto", "events", "poll"])
def test_a_round_made_after_the_start_is_noticed(tmp_path: Path, mode: watch.Mode) -> None:
    with Watcher(tmp_path, mode) as watcher:
        assert watcher.mode_in_use == ("poll" if mode == "poll" else "events")
        assert watcher.why
        for number in range(10):
            flag = tmp_path / f"round-{number}" / "ok.flag"

            def make(flag: Path = flag) -> None:
                flag.parent.mkdir()
                flag.touch()

            maker = threading.Thread(target=make)
            maker.start()
            assert wait_for(watcher, flag.exists)
            maker.join()
    assert sorted(os.listdir(tmp_path)) == [f"round-{number}" for number in range(10)], "the probe is removed"


@pytest.fixture
def events_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the safety net: only an event ends a wait early."""
    monkeypatch.setattr(watch, "SAFETY_INTERVAL_S", 10 * PATIENCE_S)
    monkeypatch.setattr(watch, "EAGER_INTERVAL_S", 10 * PATIENCE_S)


@pytest.mark.usefixtures("events_only")
def test_events_do_arrive(tmp_path: Path) -> None:
    (tmp_path / "round").mkdir()
    with Watcher(tmp_path, "events") as watcher:
        assert not watcher.wait(0.0)
        for name in ("stop.flag", "round/ok.flag"):
            (tmp_path / name).touch()
            assert watcher.wait(PATIENCE_S)
        (tmp_path / "round" / ".tmp").touch()
        os.rename(tmp_path / "round" / ".tmp", tmp_path / "round" / "data.txt")
        assert watcher.wait(PATIENCE_S)


@pytest.mark.usefixtures("events_only")
def test_looking_wakes_nobody(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1 2\n")
    with Watcher(tmp_path, "events") as watcher:
        for _ in range(20):
            os.listdir(tmp_path)
            (tmp_path / "data.txt").read_text()
        assert not watcher.wait(0.05)


def test_a_change_between_two_waits_is_not_missed(tmp_path: Path) -> None:
    with Watcher(tmp_path, "poll") as watcher:
        watcher.wake()
        assert watcher.wait(0.0), "set before the wait: it returns at once"
        assert not watcher.wait(0.0), "and is cleared by it"
        watcher.wake()
        assert watcher.wait(PATIENCE_S)


def test_the_safety_poll_covers_lost_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.Watcher, "_take", lambda self, name: None)
    with Watcher(tmp_path, "events") as watcher:
        flag = tmp_path / "ok.flag"
        maker = threading.Timer(0.02, flag.touch)
        maker.start()
        assert wait_for(watcher, flag.exists)
        maker.join()


def test_without_events_auto_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.Watcher, "_take", lambda self, name: None)
    monkeypatch.setattr(watch, "PROBE_TIMEOUT_S", 0.01)
    with Watcher(tmp_path) as watcher:
        assert watcher.mode_in_use == "poll"
        assert "probe" in watcher.why
        assert watcher.wait(PATIENCE_S)
    assert os.listdir(tmp_path) == []


class NoInotify:
    def __init__(self, *_: object) -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")


def test_without_inotify_auto_polls_and_events_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "DirectoryEvents", NoInotify)
    with Watcher(tmp_path) as watcher:
        assert watcher.mode_in_use == "poll"
        assert "instance limit" in watcher.why
    with pytest.raises(ExchangeError, match=r"instance limit.*Fix: raise fs\.inotify"):
        Watcher(tmp_path, "events").start()


def test_when_no_watch_can_be_added_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers import inotify_c

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(inotify_c, "inotify_add_watch", refuse)
    with Watcher(tmp_path) as watcher:
        assert watcher.mode_in_use == "poll"
        assert "watch limit" in watcher.why


@pytest.mark.parametrize(("kind", "mode"), [("nfs4", "poll"), ("ext4", "events")])
def test_network_file_systems_are_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str) -> None:
    mounts = tmp_path / "mountinfo"
    below = tmp_path / "shared folder"
    below.mkdir()
    mounts.write_text(
        "22 1 0:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        f"23 22 0:2 / {str(below).replace(' ', chr(92) + '040')} rw - {kind} server:/x rw\n"
        f"24 22 0:3 / {tmp_path}/shar rw - nfs server:/y rw\n"
        "a line of another kind\n"
    )
    monkeypatch.setattr(watch, "_MOUNTS", mounts)
    with Watcher(below) as watcher:
        assert watcher.mode_in_use == mode
    monkeypatch.setattr(watch, "_MOUNTS", tmp_path / "missing")
    with Watcher(below) as watcher:
        assert watcher.mode_in_use == "events"


def test_a_directory_that_cannot_be_probed_is_polled(tmp_path: Path) -> None:
    from tests.protocol.faulty_disk import FaultyDisk

    with Watcher(tmp_path, disk=FaultyDisk(3, code=errno.EROFS)) as watcher:
        assert watcher.mode_in_use == "poll"


def test_start_and_stop_again(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path)
    for _ in range(3):
        watcher.start()
        watcher.start()
        watcher.stop()
        watcher.stop()


def test_stop_wakes_the_waiter(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, "poll", poll_interval_s=10 * PATIENCE_S)
    watcher.start()
    waiter = threading.Thread(target=watcher.wait, args=(10 * PATIENCE_S,))
    waiter.start()
    watcher.stop()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive()


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode"):
        Watcher(tmp_path, "both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="poll_interval_s"):
        Watcher(tmp_path, poll_interval_s=0)
    with pytest.raises(ExchangeError, match="no such file or directory"):
        Watcher(tmp_path / "missing").start()
