"""``partition`` on the command line: tables, the file, many ranks, and what is refused."""

from __future__ import annotations

import json

import pytest

from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG, EXIT_INPUT, EXIT_OK

SMALL = ["--set", "graph.generator.scale=8"]


def test_one_table_with_a_row_for_every_number_of_ranks_and_policy(capsys, tmp_path):
    words = ["partition", "--ranks", "2,4", "--ranks", "1024", "--json", str(tmp_path / "found.json"), *SMALL]
    assert main(words) == EXIT_OK
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 30
    assert text.count("arc imbalance") == 1
    assert "by rank" not in text
    found = json.loads((tmp_path / "found.json").read_text())
    expected = [(ranks, policy) for ranks in (2, 4, 1024) for policy in ("oec", "iec", "cvc", "uvc", "2d")]
    assert [(one["ranks"], one["policy"]) for one in found["partitions"]] == expected
    rows = [line.split() for line in text.splitlines() if " x " in line]
    assert [(int(row[0].replace(",", "")), row[4]) for row in rows] == expected
    for one, row in zip(found["partitions"], rows, strict=True):
        assert row[1:4] == [str(one["grid"][0]), "x", str(one["grid"][1])]
        assert row[5] == f"{one['replication']:.3f}"
        assert sum(one["by_rank"]["arcs"]) == found["m"]
        assert sum(one["by_rank"]["masters"]) == found["n"]
        assert all(len(values) == one["ranks"] for values in one["by_rank"].values())


def test_the_policy_that_sends_least_is_named(capsys, tmp_path):
    assert main(["partition", "--ranks", "4", "--json", str(tmp_path / "found.json"), *SMALL]) == EXIT_OK
    text = capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())["partitions"]
    sent = {one["policy"]: sum(one["by_rank"]["reduce_bytes"] + one["by_rank"]["broadcast_bytes"]) for one in found}
    least = " and ".join(policy for policy in sent if sent[policy] == min(sent.values()))
    assert f"4 ranks: least is sent by {least}, " in text
    assert "cluster.policy auto takes iec (engine async: iec for any number of ranks, it reduces nothing)\n" in text


def test_rows_of_the_ranks_when_asked(capsys):
    assert main(["partition", "--policy", "oec", "--ranks", "1,20", "--per-rank", *SMALL]) == EXIT_OK
    text = capsys.readouterr().out
    assert "oec, 1 rank, by rank" in text
    assert "oec, 20 ranks, by rank" in text
    assert [line.split()[0] for line in text.splitlines()[-20:]] == [str(rank) for rank in range(20)]


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
