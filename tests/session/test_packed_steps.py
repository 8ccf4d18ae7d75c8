"""The steps that are saved with an answer come back as they were; damaged ones are as good as none."""

import random
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from ladechat.protocol import Step, encode, packed, unpacked
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import exchange
from tests.widgets.sample_steps import answer, step

STEPS = [replace(one, turn=7) for one in answer(5, 3, 5)]
PACKED = packed(STEPS)


def test_steps_come_back_with_all_that_their_panels_show_as_those_of_another_turn() -> None:
    assert unpacked(PACKED, -3) == [replace(one, turn=-3) for one in STEPS]
    assert len(PACKED) < sum(len(encode(one)) for one in STEPS) / 5


def test_steps_that_go_on_with_others_are_numbered_on() -> None:
    both = packed([*STEPS, *(replace(one, turn=8) for one in STEPS)])
    assert [one.index for one in unpacked(both, 1)] == list(range(2 * len(STEPS)))


@given(st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=4), max_size=12))
def test_any_texts_come_back(said: list[list[str]]) -> None:
    steps = [step(pieces, index=index) for index, pieces in enumerate(said)]
    assert unpacked(packed(steps), 1) == steps


@given(st.integers(0, len(PACKED) - 1), st.binary(max_size=3), st.integers(0, 5))
def test_damaged_steps_are_none_or_whole_ones(place: int, put: bytes, left_out: int) -> None:
    found = unpacked(PACKED[:place] + put + PACKED[place + left_out :], 7)
    assert all(isinstance(one, Step) for one in found)


def test_too_many_steps_are_not_saved() -> None:
    dice = random.Random(0)
    words = ("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=400)) for _ in range(4000))
    assert packed(step([word]) for word in words) == b""


def test_a_file_that_is_large_gets_answers_without_their_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.session.conversations.store.MOST_BYTES", 16 * len(PACKED))
    store = ConversationStore(tmp_path)
    for number in range(9):
        store.add(replace(exchange(f"{number}?"), steps=PACKED))
    (kept,) = ConversationStore(tmp_path).conversations()
    saved = [bool(one.steps) for one in kept.exchanges]
    assert len(saved) == 9 and saved[0] and not saved[-1] and saved == sorted(saved, reverse=True)
