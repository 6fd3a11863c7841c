"""``partition`` on the command line: tables, the file, many ranks, and what is refused."""

from __future__ import annotations

import json

import pytest

from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG, EXIT_INPUT, EXIT_OK

SMALL = ["--set", "graph.generator.scale=8"]


def test_every_policy_has_a_row_and_every_rank(capsys, tmp_path):
    assert main(["partition", "--ranks", "4", "--json", str(tmp_path / "found.json"), *SMALL]) == EXIT_OK
    text = capsys.readouterr().out
    assert "4 ranks, grid 2 x 2" in text
    found = json.loads((tmp_path / "found.json").read_text())
    assert [one["policy"] for one in found["partitions"]] == ["oec", "iec", "cvc", "uvc", "2d"]
    for one in found["partitions"]:
        assert f"{one['policy']}, by rank" in text
        assert f"{one['replication']:.3f}" in text
        assert sum(one["by_rank"]["arcs"]) == found["m"]
        assert sum(one["by_rank"]["masters"]) == found["n"]
        assert all(len(values) == 4 for values in one["by_rank"].values())


def test_several_numbers_of_ranks_and_a_thousand_without_rows(capsys):
    assert main(["partition", "--policy", "cvc", "--ranks", "2,3", "--ranks", "1024", *SMALL]) == EXIT_OK
    text = capsys.readouterr().out
    assert [line.split(";")[0] for line in text.splitlines() if " ranks, grid " in line] == [
        "2 ranks, grid 1 x 2",
        "3 ranks, grid 1 x 3",
        "1,024 ranks, grid 32 x 32",
    ]
    assert text.count("cvc, by rank") == 2


def test_rows_for_many_ranks_when_asked(capsys):
    assert main(["partition", "--policy", "oec", "--ranks", "20", "--per-rank", *SMALL]) == EXIT_OK
    assert "oec, by rank" in capsys.readouterr().out


def test_a_file_of_the_user(capsys, project_root):
    graph = str(project_root / "tests" / "graphs" / "house.el")
    assert main(["partition", graph, "--policy", "iec", "--ranks", "2"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("house.el: ")


@pytest.mark.parametrize("ranks", ["0", "two", "2,,4", "-1"])
def test_numbers_that_are_none_are_refused(capsys, ranks):
    assert main(["partition", f"--ranks={ranks}", *SMALL]) == EXIT_CONFIG
    assert "as in 2,4,1024" in capsys.readouterr().err


def test_a_missing_graph_is_an_input_error(capsys):
    assert main(["partition", "no-such-file.el", "--ranks", "2"]) == EXIT_INPUT
    assert "Fix:" in capsys.readouterr().err
