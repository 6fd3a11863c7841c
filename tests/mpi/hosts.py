"""Machines for tests, on this one: a network and a name of its own for each, on one switch, reached as ssh would.

A machine is a process that waits in new network and UTS namespaces (``unshare``), one veth link from the bridge of a
further such process. Nothing is named outside of them: when the processes end, the kernel takes links, bridge and
namespaces away, and they end with the test even if it is killed, for they wait at a pipe from it. Files, memory and
CPUs are shared, as if the machines had one file system.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

NETWORK = "10.199.73"  # of nobody else: no way leads out of it
_LIMIT_S = 20
_AGENT = """#!/bin/sh
# mpirun calls this as it would call ssh: a host, then words for that host's shell.
host=$1
shift
case "$host" in
{cases}
*) echo "no such host: $host" >&2; exit 255 ;;
esac
exec nsenter --target "$target" --net --uts -- sh -c "$*"
"""


class NoHosts(Exception):
    """This machine does not let us have such machines; the reason."""


class Refused(Exception):
    """A command failed on a machine."""


class Host:
    """A process that holds a machine's namespaces."""

    def __init__(self, name: str, enter: Sequence[str], unshare: Sequence[str]) -> None:
        self.name = name
        command = [*enter, "unshare", *unshare, "--", "sh", "-c", 'hostname "$1" && echo ready && exec cat', "sh", name]
        self._holder = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._holder.pid

    def await_ready(self) -> None:
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if self._holder.stdout.readline() != "ready\n":
            raise NoHosts(f"no network namespace can be made here: {self._holder.stderr.read().strip()}")

    def close(self) -> None:
        try:
            self._holder.communicate(timeout=_LIMIT_S)  # closes its stdin
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.communicate()


class Hosts:
    """Machines on one switch; ``close`` takes them away."""

    def __init__(self, folder: Path, count: int) -> None:
        if missing := [tool for tool in ("unshare", "nsenter", "ip", "hostname") if shutil.which(tool) is None]:
            raise NoHosts(f"not installed: {', '.join(missing)}")
        self._folder = folder
        self._root = os.geteuid() == 0
        self._made: list[Host] = []
        mark = uuid.uuid4().hex[:6]
        try:
            # Without root's rights, all of it goes into a user namespace in which this user has them.
            self._switch = self._make(f"tt-{mark}-switch", (), [] if self._root else ["--user", "--map-root-user"])
            self.machines = tuple(
                self._make(f"tt-{mark}-{letter}", self._user(), []) for letter in "abcdefgh"[:count]
            )  # fmt: skip
            self._connect()
        except BaseException:
            self.close()
            raise
        self.agent = self._write_agent()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(machine.name for machine in self.machines)

    def close(self) -> None:
        for host in reversed(self._made):
            host.close()

    def at(self, name: str, command: Sequence[str]) -> list[str]:
        """The command that runs ``command`` on a machine."""
        machine = next(one for one in self.machines if one.name == name)
        return [*self._user(), "nsenter", "--target", str(machine.pid), "--net", "--uts", "--", *command]

    def mpirun_args(self) -> list[str]:
        """What Open MPI must be told: whom to call instead of ssh, and to use this network, not shared memory."""
        network = f"{NETWORK}.0/24"
        launching = {"plm_ssh_agent": str(self.agent), "plm_ssh_no_tree_spawn": "1", "oob_tcp_if_include": network}
        talking = {"btl": "tcp,self", "btl_tcp_if_include": network, "pml": "ob1", "mpi_yield_when_idle": "1"}
        words = [word for name, value in launching.items() for word in ("--prtemca", name, value)]
        return words + [word for name, value in talking.items() for word in ("--mca", name, value)]

    def write_hostfile(self, slots: int) -> Path:
        path = self._folder / "hosts.txt"
        path.write_text("".join(f"{name} slots={slots}\n" for name in self.names))
        return path

    def slow_down(self, name: str, delay_ms: int, rate_mbit: int) -> str:
        """Make a machine's link slow in both directions: late by netem if the kernel has it, else narrow by tbf."""
        number = self.names.index(name)
        ends = [(self._switch, f"port{number}"), (self.machines[number], "eth0")]
        kinds = [["netem", "delay", f"{delay_ms}ms"]]
        kinds.append(["tbf", "rate", f"{rate_mbit}mbit", "burst", "4kb", "latency", "2s"])
        problems = []
        for kind in kinds if shutil.which("tc") else []:
            try:
                for at, link in ends:
                    self._run(at, "tc", "qdisc", "replace", "dev", link, "root", *kind)
            except Refused as problem:
                problems.append(str(problem))
            else:
                return " ".join(kind)
        raise NoHosts(f"no link can be made slow here: {'; '.join(problems) or 'not installed: tc'}")

    def _make(self, name: str, enter: Sequence[str], unshare: Sequence[str]) -> Host:
        host = Host(name, enter, [*unshare, "--net", "--uts"])
        self._made.append(host)
        host.await_ready()
        return host

    def _connect(self) -> None:
        """Only what the kernel may lack is a reason to do without; anything else is a defect of this file."""
        switch = self._switch
        try:
            self._run(switch, "ip", "link", "add", "bridge", "type", "bridge")
            for number, machine in enumerate(self.machines):
                peer = ("peer", "name", "eth0", "netns", str(machine.pid))
                self._run(switch, "ip", "link", "add", f"port{number}", "type", "veth", *peer)
        except Refused as problem:
            raise NoHosts(f"no link between network namespaces can be made here: {problem}") from problem
        self._run(switch, "ip", "link", "set", "bridge", "up")
        for number, machine in enumerate(self.machines):
            self._run(switch, "ip", "link", "set", f"port{number}", "master", "bridge", "up")
            self._run(machine, "ip", "address", "add", f"{NETWORK}.{number + 1}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                self._run(machine, "ip", "link", "set", link, "up")

    def _user(self) -> list[str]:
        """How to become the user of the user namespace, if there is one."""
        if self._root:
            return []
        return ["nsenter", "--target", str(self._made[0].pid), "--user", "--preserve-credentials", "--"]

    def _run(self, host: Host, *command: str) -> None:
        entered = [*self._user(), "nsenter", "--target", str(host.pid), "--net", "--", *command]
        done = subprocess.run(entered, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode != 0:
            raise Refused(f"`{' '.join(command)}` failed: {done.stderr.strip()}")

    def _write_agent(self) -> Path:
        path = self._folder / "agent"
        cases = "\n".join(f"{machine.name}) target={machine.pid} ;;" for machine in self.machines)
        path.write_text(_AGENT.format(cases=cases))
        path.chmod(0o755)
        return path


@contextlib.contextmanager
def hosts_in(folder: Path, count: int) -> Iterator[Hosts]:
    """``NoHosts`` where this machine does not allow it."""
    hosts = Hosts(folder, count)
    try:
        yield hosts
    finally:
        hosts.close()
