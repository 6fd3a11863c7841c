"""Tells when something in an exchange directory may have changed: by file-system events, or by polling.

Invariant: no change is ever missed for longer than the safety interval, events or not; and after ``stop`` no thread is
left. A wake-up says "look now", never "this happened": the caller looks at the disk and decides by what is there.

    with Watcher(directory) as watcher:
        while not done():                 # look at the disk
            watcher.wait(remaining_s)     # returns when looking again makes sense

``wait`` clears the change mark before it returns, so a change that happens while the caller looks sets it again and the
next ``wait`` returns at once: clear, look, wait - nothing falls in between.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from pathlib import Path
from typing import Literal

from exchange.errors import ExchangeError
from exchange.filesystem.disk import DISK, Disk
from exchange.filesystem.folder import Folder
from exchange.filesystem.inotify import DirectoryEvents
from exchange.protocol import layout

Mode = Literal["auto", "events", "poll"]

SAFETY_INTERVAL_S = 0.05
# After an event the next looks come at 0.5, 1, 2, ... ms: a file renamed into place makes its event when it is closed
# under its temporary name, a moment before the rename; and a new round's first files may precede its watch.
EAGER_INTERVAL_S = 0.0005
PROBE_TIMEOUT_S = 0.3
# Changes made by another machine raise no event here, although a local probe does.
NETWORK_FILE_SYSTEMS = frozenset(
    [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb2",
        "smb3",
        "smbfs",
        "virtiofs",
        "wekafs",
    ]
)
_MOUNTS = Path("/proc/self/mountinfo")


class Watcher:
    """Waits for changes below a directory. One thread waits at a time; ``wake`` may be called from any."""

    def __init__(
        self,
        directory: str | Path,
        mode: Mode = "auto",
        poll_interval_s: float = 0.002,
        *,
        disk: Disk = DISK,
    ) -> None:
        if mode not in ("auto", "events", "poll"):
            raise ValueError(f"mode is 'auto', 'events' or 'poll', not {mode!r}")
        if not poll_interval_s > 0:
            raise ValueError(f"poll_interval_s must be above 0, not {poll_interval_s!r}")
        self.directory = Path(directory)
        self.mode: Mode = mode
        self.poll_interval_s = poll_interval_s
        self._disk = disk
        self._mark = threading.Event()
        self._events: DirectoryEvents | None = None
        self._probe_name, self._probe_seen = "", threading.Event()
        self._started = False
        self._why = "not started"
        self._interval_s = SAFETY_INTERVAL_S

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def mode_in_use(self) -> Literal["events", "poll"]:
        """What ``start`` settled on."""
        return "poll" if self._events is None else "events"

    @property
    def why(self) -> str:
        """Why ``mode_in_use`` is what it is, for the log."""
        return self._why

    def start(self) -> None:
        """Begin to watch. ``auto`` takes events if a probe file's event arrives in time, and polls otherwise."""
        if self._started:
            return
        with Folder.open(self.directory, self._disk) as folder:
            self._start(folder)

    def _start(self, folder: Folder) -> None:
        self._started = True
        if self.mode == "poll":
            self._why = "polling was asked for"
            return
        file_system = _file_system_of(self.directory)
        if self.mode == "auto" and file_system in NETWORK_FILE_SYSTEMS:
            self._why = f"events of other machines do not travel over {file_system}"
            return
        self._probe_name = f"{layout.TEMPORARY_PREFIX}watch-probe-{secrets.token_hex(4)}"
        self._probe_seen.clear()
        try:
            self._events = DirectoryEvents(str(self.directory), self._take)
        except OSError as error:
            self._why = f"no events: {error}"
            if self.mode == "events":
                self._started = False
                raise ExchangeError(
                    f"cannot watch by events: {error}",
                    path=self.directory,
                    fix="raise fs.inotify.max_user_watches and max_user_instances, or use `watch: poll`",
                ) from error
            return
        if self.mode == "auto" and not self._probe(folder):
            self._stop_events()
            self._why = f"no event of a probe file within {PROBE_TIMEOUT_S:g} s"
            return
        self._why = "events were asked for" if self.mode == "events" else "a probe file's event arrived"

    def stop(self) -> None:
        """End the watch and its threads; a thread in ``wait`` returns. May be called again."""
        self._stop_events()
        self._started = False
        self._mark.set()

    def wake(self) -> None:
        """Make the current or next ``wait`` return at once (something happened outside the directory)."""
        self._mark.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until a look at the disk makes sense (True) or ``timeout_s`` passed (False)."""
        pause = self.poll_interval_s if self._events is None else self._interval_s
        marked = self._mark.wait(max(0.0, min(pause, timeout_s)))
        # Cleared before the caller looks: see the module's docstring.
        self._mark.clear()
        if marked:
            self._interval_s = EAGER_INTERVAL_S
        else:
            self._interval_s = min(2 * self._interval_s, SAFETY_INTERVAL_S)
        return marked or pause <= timeout_s

    def _take(self, name: str) -> None:
        if name == self._probe_name:
            self._probe_seen.set()
        self._mark.set()

    def _probe(self, folder: Folder) -> bool:
        with contextlib.suppress(ExchangeError):  # a directory that cannot be written to cannot be probed: poll
            folder.create_flag(self._probe_name)
            seen = self._probe_seen.wait(PROBE_TIMEOUT_S)
            folder.unlink(self._probe_name)
            return seen
        return False

    def _stop_events(self) -> None:
        if self._events is not None:
            self._events.stop()
            self._events = None


def _file_system_of(path: Path) -> str:
    """The type of the file system that holds ``path``; empty when the system does not say."""
    try:
        mounts = _MOUNTS.read_text()
        place = path.resolve()
    except OSError:
        return ""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if "-" not in fields or len(fields) < 10:
            continue
        mount = fields[4].replace("\\040", " ")
        # The last of equal mount points is the one on top.
        if len(mount) >= len(best) and place.is_relative_to(mount):
            best, kind = mount, fields[fields.index("-", 6) + 1]
    return kind
