"""The model's arithmetic by hand, its limits, and how the command tells that it is one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from cpu_engine.graph.build.builder import build_graph
from cpu_engine.graph.edges import EdgeList
from cpu_engine.graph.partition import predict
from hybrid.cli import main
from hybrid.errors import EXIT_CONFIG, EXIT_OK
from hybrid.planning.cluster.model import Modelled, Network, agree_seconds, exchange_seconds, mean_of, model_search
from hybrid.planning.cluster.volume import PhaseVolume, search_volume

NETWORK = Network(latency_s=10.0, bandwidth_bytes_per_s=2.0, message_s=100.0, round_s=1000.0)
SMALL = ["--set", "graph.generator.scale=8"]


def phase(receivers, senders, bytes_out, bytes_in) -> PhaseVolume:
    return PhaseVolume(*(np.array(one) for one in (receivers, senders, bytes_out, bytes_in)), 0, 0)


def test_an_exchange_is_as_slow_as_its_slowest_rank_in_every_round():
    # Round 0: rank 0 takes in 8 bytes from one partner. Round 1: rank 1 sends 6 to two partners.
    volume = phase([1, 2], [1, 1], [[0, 0], [0, 6]], [[800, 0], [0, 0]])
    assert exchange_seconds(volume, NETWORK) == (10 + 100 + 400) + (10 + 200 + 3)


def test_nobody_to_talk_to_costs_nothing():
    assert exchange_seconds(phase([0, 0], [0, 0], [[0, 0]], [[0, 0]]), NETWORK) == 0


@pytest.mark.parametrize(("parts", "steps"), [(1, 0), (2, 1), (3, 2), (4, 2), (1024, 10)])
def test_agreeing_goes_up_and_down_a_tree(parts, steps):
    assert agree_seconds(parts, NETWORK) == 2 * steps * 10


def path() -> tuple:
    """0 - 1 - 2 - 3, cut in the middle, searched from one end."""
    graph = build_graph(EdgeList(np.array([0, 1, 2]), np.array([1, 2, 3])), directed=False)
    user_level = np.arange(4, dtype=np.int32)
    return graph, user_level[graph.user_position]


def test_a_path_by_hand():
    graph, level = path()
    prediction = predict(graph, "iec", 2)
    volume = search_volume(graph, prediction, level)
    # The owner of 1 tells the other part of it in round 0; the owner of 2 tells back in round 1.
    assert volume.rounds == 4
    assert (volume.spread.messages, volume.spread.updates) == (2, 2)
    assert volume.fold.updates == volume.wishes.bytes == 0
    owner = int(np.argmax(volume.spread.bytes_out[0]))
    assert (
        volume.spread.bytes_out.tolist()
        == [[16 * (one == owner) for one in (0, 1)]] + [[16 * (one != owner) for one in (0, 1)]] + [[0, 0]] * 2
    )
    modelled = model_search(prediction, volume, alone_s=60.0, network=NETWORK)
    assert modelled.compute_s == pytest.approx(60 / 2 + 4 * 1000)
    assert modelled.exchange_s == 4 * (10 + 100) + 2 * 16 / 2
    assert modelled.agree_s == 4 * 2 * 10
    assert modelled.parents_s == 0
    assert modelled.seconds == pytest.approx(30 + 4000 + 440 + 16 + 80)


def test_one_rank_takes_what_it_takes_alone():
    graph, level = path()
    for policy in ("oec", "uvc", "2d"):
        prediction = predict(graph, policy, 1)
        modelled = model_search(prediction, search_volume(graph, prediction, level), 3.0, NETWORK)
        assert (modelled.seconds, modelled.bytes, modelled.messages) == (3.0, 0, 0)


def test_more_ranks_than_vertices():
    graph, level = path()
    prediction = predict(graph, "cvc", 64)
    modelled = model_search(prediction, search_volume(graph, prediction, level), 3.0, NETWORK)
    assert modelled.ranks == 64
    assert modelled.messages > 0


def test_a_faster_network_is_never_slower():
    graph, level = path()
    prediction = predict(graph, "oec", 3)
    volume = search_volume(graph, prediction, level)
    slow = model_search(prediction, volume, 1.0, Network())
    for change in ({"latency_s": 1e-6}, {"bandwidth_bytes_per_s": 25e9}, {"message_s": 1e-6}):
        assert model_search(prediction, volume, 1.0, dataclasses.replace(Network(), **change)).seconds < slow.seconds


def test_the_mean_of_several_searches():
    first = Modelled(2, "oec", 4, 100, 3, 1.0, 2.0, 3.0, 4.0)
    second = Modelled(2, "oec", 6, 201, 5, 3.0, 2.0, 5.0, 0.0)
    assert mean_of([first, second]) == Modelled(2, "oec", 5, 150, 4, 2.0, 2.0, 4.0, 2.0)


# ----------------------------------------------------------------------------------------- the command


def test_the_command_says_that_it_is_a_model(capsys, tmp_path):
    words = ["partition", "--policy", "2d", "--ranks", "4,1024", "--model", "--json", str(tmp_path / "found.json")]
    assert main([*words, "--network", "30,10", *SMALL]) == EXIT_OK
    text = capsys.readouterr().out
    assert text.count("MODEL of a level-synchronous search") == 1
    assert "not a measurement" in text
    assert "latency 30 us, 10 Gbit/s" in text
    four, many = json.loads((tmp_path / "found.json").read_text())["partitions"]
    assert four["model"]["ranks"] == 4
    assert many["model"]["exchange_s"] > four["model"]["exchange_s"] > 0


def test_the_time_alone_can_be_given(capsys, tmp_path):
    words = ["partition", "--policy", "iec", "--ranks", "1", "--model", "--json", str(tmp_path / "x.json"), *SMALL]
    assert main([*words, "--alone-ms", "1500"]) == EXIT_OK
    assert "times follow from 1.50 s on one rank" in capsys.readouterr().out
    assert json.loads((tmp_path / "x.json").read_text())["partitions"][0]["model"]["seconds"] == pytest.approx(1.5)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "soon"])
def test_a_time_alone_that_is_none_is_refused(capsys, given):
    with pytest.raises(SystemExit):
        main(["partition", "--model", f"--alone-ms={given}", *SMALL])
    assert "--alone-ms" in capsys.readouterr().err


def test_no_model_unless_asked_for(capsys, tmp_path):
    assert main(["partition", "--policy", "2d", "--ranks", "4", "--json", str(tmp_path / "x.json"), *SMALL]) == EXIT_OK
    assert "MODEL" not in capsys.readouterr().out
    assert "model" not in json.loads((tmp_path / "x.json").read_text())["partitions"][0]


@pytest.mark.parametrize("network", ["fast", "2", "0,100", "2,-1", "2,nan", "1,2,3"])
def test_networks_that_are_none_are_refused(capsys, network):
    assert main(["partition", "--model", f"--network={network}", *SMALL]) == EXIT_CONFIG
    assert "as in 2,100" in capsys.readouterr().err


def test_a_source_without_edges(capsys, tmp_path):
    graph = tmp_path / "g.mtx"
    graph.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n")
    words = ["partition", str(graph), "--ranks", "2", "--model", "--set", "source=3"]
    assert main(words) == EXIT_CONFIG
    assert "no source has an edge" in capsys.readouterr().err
