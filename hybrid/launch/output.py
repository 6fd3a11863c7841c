"""What mpirun and the ranks say on stderr, line by line: what to show, what it means, how the job ended. No I/O.

Launchers explain failures in long framed texts. Those that are understood are held back and become one line with the
fix; those that are not are shown as they came.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field

from hybrid.errors import EXIT_CODES, EXIT_ENVIRONMENT, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, EnvironmentProblem
from hybrid.launch.announce import read_announcement

_ERROR = "tandem: error: "
_FRAME = re.compile(r"-{60,}")
_KILLED = re.compile(
    r"process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on\s+signal (?P<signal>\d+)", re.IGNORECASE
)
_HYDRA_KILLED = re.compile(
    r"RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)\s.*?KILLED BY SIGNAL: (?P<signal>\d+)", re.DOTALL
)
_SLOTS = re.compile(r"not enough slots.*?satisfy the\s+(?P<wanted>\d+)", re.DOTALL)
_LOST = re.compile(  # both are said of a daemon that has been there
    r"(daemon failed to report back|lost communication with).*?"
    r"Remote (host:|daemon: \[\S+\] on node)\s+(?P<host>\S+)",
    re.DOTALL,
)
_NOT_EVERYWHERE = (
    "the ranks could not be started on every machine",
    "try `ssh HOST true` for every host of cluster.hosts or cluster.hostfile, and have the same Python there",
)
_SEE_MACHINE = "check that machine and the network, then run again"
_CAUSES = (  # words of a launcher, what they mean, the fix
    ("daemon failed to report back", *_NOT_EVERYWHERE),
    ("unable to reliably start one or more daemons", *_NOT_EVERYWHERE),
    (
        "daemon has unexpectedly failed",
        "the launcher's daemon on another machine failed",
        "try `ssh HOST mpirun --version` for every host, and check firewalls between them",
    ),
    ("lost communication with a remote daemon", "the connection to another machine was lost", _SEE_MACHINE),
    (
        "not included in the current allocation",
        "cluster.hosts names machines that the allocation does not have",
        "leave cluster.hosts empty inside an allocation",
    ),
    (
        "processes to more cpus than are available",
        "there are more ranks than CPUs to tie them to",
        "set cluster.bind: none, or lower ranks",
    ),
    (
        "could not access an executable",
        "this Python was not found where a rank should start",
        "install Tandem at the same path on every machine, or on a shared file system",
    ),
)
# What Open MPI's library says in surviving ranks, but not its account of a crash.
_LIBRARY_LINE = re.compile(
    r"\[[^\]]+\] (\*\*\* (?!Process received|End of error)|\d+ more process|Delaying for \d+ seconds before aborting)"
)
_COLOUR_OFF = (
    "\x1b[0m"  # colorama's last word in every rank, where numba finds that package: mpirun gives ranks a terminal
)
_ACCOMPANYING = ("MPI_ABORT was invoked", "mpi-abort", 'calling "abort"', "non-zero", "peer process has unexpectedly")


@dataclass
class LaunchOutput:
    """Feed it every line; ask it for the end."""

    hosts: list[str] = field(default_factory=list)  # by rank, known once all have met
    pids: list[int] = field(default_factory=list)  # by rank, each on its machine
    beats: dict[int, int] = field(default_factory=dict)  # signs of life of ranks on other machines
    made: list[str] = field(default_factory=list)  # folders of the ranks that must not stay behind
    finished: bool = False  # the result is written
    folder: tuple[str, str] | None = None  # where it is, and its name once the launcher has ended well
    said_why: bool = False  # a rank has explained itself
    _killed: EnvironmentProblem | None = None  # a rank that could not explain itself
    _cause: EnvironmentProblem | None = None
    _errors: list[str] = field(default_factory=list)
    _consequences: list[str] = field(default_factory=list)
    _frame: list[str] | None = None
    _after_frame: bool = False

    @property
    def met(self) -> bool:
        return bool(self.hosts)

    def feed(self, line: str) -> list[str]:
        """Take a line without its end; the lines to show for it."""
        said = line.lstrip("\0").replace(_COLOUR_OFF, "")  # a NUL: the end of a text of prterun's, wherever that came
        if line and not said:
            return []
        line = said
        if self._after_frame:
            line = line.lstrip(" ")  # prterun ends its frames with lone blanks
        message = read_announcement(line)
        if message is not None:
            self._note(message)
            return []
        if _FRAME.fullmatch(line.strip()):
            if self._frame is None:
                self._frame = []
                return []
            return self._close_frame()
        if self._frame is not None or _LIBRARY_LINE.match(line):
            (self._consequences if self._frame is None else self._frame).append(line)
            return []
        if self._after_frame and not line:
            return []
        self._after_frame = False
        if line.startswith(_ERROR):
            again, self.said_why = line in self._errors, True
            self._errors.append(line)
            return [] if again else [line]  # what every rank comes to by itself is said once
        return [line]

    def finish(self) -> list[str]:
        """No more lines: what was held back and not explained."""
        shown = [] if self._frame is None else self._close_frame()
        explained = self.said_why or self._killed is not None or self._cause is not None
        return shown if explained else [*self._consequences, *shown]

    def verdict(self, code: int) -> tuple[int, EnvironmentProblem | None]:
        """The exit code of the job whose launcher ended with ``code``, and an error that no rank has reported."""
        if self.finished and (code == EXIT_OK or self.folder is None):  # what came after it changes no result
            return EXIT_OK, None
        if self._killed is not None:  # whatever other ranks said, they said because of it
            return EXIT_ENVIRONMENT, self._killed
        if self._cause is not None and not self.said_why:
            return EXIT_ENVIRONMENT, self._cause
        if code == EXIT_OK:  # mpirun says so even after it has lost a machine
            return EXIT_ENVIRONMENT, EnvironmentProblem(
                "the launcher ended before the job did, no result was written", fix="look at its lines above"
            )
        if self.said_why:
            return (code if code in EXIT_CODES else EXIT_INTERNAL), None
        if code == EXIT_INTERRUPTED:
            return EXIT_ENVIRONMENT, EnvironmentProblem(
                "a rank was told to stop from outside, and all of them have", fix="find out who did, then run again"
            )
        if self._consequences:
            return EXIT_ENVIRONMENT, EnvironmentProblem(
                "a rank ended without a word, or the connection to it was lost",
                fix="look at the lines above, and on the machines for lack of memory (dmesg)",
            )
        if code < 0 or code > 128:
            number = -code if code < 0 else code - 128
            return EXIT_ENVIRONMENT, EnvironmentProblem(
                f"the launcher ended by {_signal_name(number)}, no result was written",
                fix="find out who ended it (lack of memory: dmesg), then run again",
            )
        return EXIT_ENVIRONMENT, EnvironmentProblem(
            f"the launcher failed with exit code {code}" + ("" if self.met else " before the ranks had met"),
            fix="look at its lines above; `python run.py doctor` checks MPI on this machine",
        )

    def _note(self, message: dict[str, object]) -> None:
        match message:
            case {"event": "met", "hosts": [*hosts], **others}:
                self.hosts = [str(host) for host in hosts]
                pids = others.get("pids")
                self.pids = [int(pid) for pid in pids] if isinstance(pids, list) else []
            case {"event": "alive", "rank": int(rank)}:
                self.beats[rank] = self.beats.get(rank, 0) + 1
            case {"event": "made", "paths": [*paths]}:
                self.made += [str(path) for path in paths]
            case {"event": "finished", "folder": [partial, final]}:
                self.finished, self.folder = True, (str(partial), str(final))
            case {"event": "finished"}:
                self.finished = True
            case {"event": "failed"}:
                self.said_why = True

    def _close_frame(self) -> list[str]:
        lines, self._frame, self._after_frame = self._frame or [], None, True
        text = "\n".join(lines)
        if self._understand(text):
            return []
        frame = "-" * 74
        if any(word in " ".join(text.split()) for word in _ACCOMPANYING):
            self._consequences += [frame, *lines, frame]  # the cause may still come: ranks and launcher race
            return []
        return [frame, *lines, frame]

    def _understand(self, text: str) -> bool:
        killed = _KILLED.search(text) or _HYDRA_KILLED.search(text)
        if killed is not None:
            # Later ones are those whom the launcher ended because of the first.
            self._killed = self._killed or self._explain_kill(
                int(killed["rank"]), killed["host"], int(killed["signal"])
            )
            return True
        slots = _SLOTS.search(text)
        if slots is not None:
            self._cause = EnvironmentProblem(
                f"{slots['wanted']} ranks are wanted, and the machines have fewer slots",
                fix="give more slots (cluster.hosts: [name:8], slots=8 in cluster.hostfile, --ntasks of the "
                "allocation), lower ranks, or share the CPUs with cluster.mpirun_args: [--map-by, ':OVERSUBSCRIBE']",
            )
            return True
        lost = _LOST.search(text)
        if lost is not None and lost["host"] in self.hosts:
            self._cause = self._cause or self._explain_loss(lost["host"])
            return True
        for words, meaning, fix in _CAUSES:
            if words in " ".join(text.split()):
                self._cause = self._cause or EnvironmentProblem(meaning, fix=fix)
                return False  # its details (which host, what ssh said) are worth reading
        return False

    def _explain_kill(self, rank: int, host: str, number: int) -> EnvironmentProblem:
        where = self.hosts[rank] if rank < len(self.hosts) else host
        return EnvironmentProblem(
            f"rank {rank} on {where} was ended by {_signal_name(number)}; the other ranks were stopped, no result was "
            "written",
            fix="if the machine ran out of memory (see its dmesg), use more machines or fewer ranks on each"
            if number == signal.SIGKILL
            else "run again; if it happens twice, report it with the configuration",
        )

    def _explain_loss(self, host: str) -> EnvironmentProblem:
        ranks = [str(rank) for rank, where in enumerate(self.hosts) if where == host]
        named = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(ranks)}"
        return EnvironmentProblem(
            f"{host} was lost, and {named} with it; the other ranks were stopped, no result was written",
            fix=_SEE_MACHINE,
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
