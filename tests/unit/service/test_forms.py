"""A result that was damaged on the service's disk: every form of it is refused with the array's name and a fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service is not installed: pip install -c constraints.txt -e '.[service]'")

from hybrid.results.trace import Trace
from hybrid.service.http.forms import Result
from hybrid.service.http.problems import Problem
from hybrid.service.queue.jobs import DONE, Job
from hybrid.service.queue.journal import Journal

FORMS: dict[str, Callable[[Journal, Job], Any]] = {
    "page": lambda journal, job: Result(journal, job).page(0, 10),
    "npy": lambda journal, job: b"".join(Result(journal, job).npy("component")),
    "size": lambda journal, job: Result(journal, job).bytes_of_form,
    "ldbc": lambda journal, job: Result(journal, job).ldbc(),
    "arrow": lambda journal, job: Result(journal, job).table("arrow"),
}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut off": _cut,
    "false head": lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535),
    "other length": lambda path: np.save(path, np.zeros((1, 2, 3), np.int64)),
    "no array": lambda path: np.save(path, np.float64(1)),
}


def _finished(folder: Path) -> tuple[Journal, Job]:
    job = Job("g", "wcc", {}, None)
    job.state = DONE
    journal = Journal(folder)
    journal.open()
    journal.write_job(job.id, job.to_dict())
    journal.write_result(job.id, {"vertex": np.arange(5), "component": np.zeros(5, np.int64)}, Trace())
    return journal, job


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_array_is_named_in_the_problem(tmp_path: Path, form: str, damage: str) -> None:
    journal, job = _finished(tmp_path)
    assert FORMS[form](journal, job), "the whole result can be had"
    for name in ("vertex",) if form == "size" else ("component", "vertex"):
        DAMAGES[damage](journal.job_folder(job.id) / f"{name}.npy")
        with pytest.raises(Problem, match=f"'{name}' of this result is damaged or gone. Fix: submit the job again"):
            FORMS[form](journal, job)
    journal.close()
