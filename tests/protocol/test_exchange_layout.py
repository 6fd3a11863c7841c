"""Names: only the exact form of a round id is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.protocol import layout


@given(st.integers(0, 10**9), st.integers(0, 2**32 - 1).map(lambda n: f"{n:08x}"))
def test_round_ids_come_back(seq: int, token: str) -> None:
    assert layout.parse_round_id(layout.round_id(seq, token)) == (seq, token)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "round-",
        "round-1-0000abcd",
        "round-000001-0000ABCD",
        "round-000001-0000abc",
        "round-000001-0000abcd/../x",
        "round-000001-0000abcd\n",
        "round-0000001-0000abcd",
        "round-\u0660\u0660\u0660\u0660\u0660\u0661-0000abcd",
        "core-0000abcd-0001",
        ".round-000001-0000abcd",
    ],
)
def test_other_names_are_no_rounds(name: str) -> None:
    assert layout.parse_round_id(name) is None


def test_tokens() -> None:
    assert layout.is_token(layout.new_token())
    assert layout.new_token() != layout.new_token()
    with pytest.raises(ValueError):
        layout.round_id(1, "xyz")
    with pytest.raises(ValueError):
        layout.round_id(-1, "0000abcd")


@pytest.mark.parametrize("name", [layout.core_name(1, "0000abcd"), layout.round_id(1, "0000abcd")])
def test_directories_belong_to_their_job(name: str) -> None:
    for shown in (name, layout.removed_name(name, "12345678")):
        assert layout.belongs_to(shown, "0000abcd")
        assert not layout.belongs_to(shown, "1111abcd")
    assert layout.parse_round_id(layout.removed_name(name, "12345678")) is None
    assert not layout.belongs_to("notes.txt", "0000abcd")
    assert not layout.belongs_to(".value.txt.0000abcd.tmp", "0000abcd")
