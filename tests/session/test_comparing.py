"""Two recordings side by side: which answers are shown, and what is said of them."""

from pathlib import Path

import msgspec
import pytest

from ladechat.protocol import Event, Message, Settings, TurnStarted, encode
from ladechat.session.race import Comparison, NothingToCompare
from ladechat.session.recordings.recording import Recording
from tests.session.streams import HEADER, recorded, stream, turn, write


def answered(number: int, question: str, decoder: str = "lookahead", steps: int = 3) -> list[Event]:
    """What an engine says to a question of these words."""
    started, *rest = turn(number, steps)
    assert isinstance(started, TurnStarted)
    messages = [Message(role="user", content=question)]
    return [msgspec.structs.replace(started, messages=messages, settings=Settings(decoder=decoder)), *rest]


def recording(folder: Path, name: str, *events: Event) -> Recording:
    folder = folder / name
    folder.mkdir()
    path = recorded(folder, *events)
    return Recording.read(path.rename(path.with_name(f"{name}.ladechat.jsonl")))


def test_the_latest_question_that_both_have_answered_is_shown_and_sealed(tmp_path: Path) -> None:
    one = recording(tmp_path, "one", *answered(1, "Shared?"), *answered(2, "Why?"), *answered(3, "Alone?"))
    other = recording(tmp_path, "other", *answered(1, "Why?", "suffix"), *answered(2, "Shared?"), *answered(3, "More?"))
    compared = Comparison(one, other)
    assert compared.question == "Why?"
    assert [lane.label for lane in compared.lanes] == ["lookahead (one)", "suffix matching (other)"]
    tokens = len(compared.lanes[0].token_ids)
    assert compared.conclusions()[0] == f"✓ {tokens} of {tokens} tokens identical"


def test_answers_to_different_questions_are_shown_as_they_are_without_a_seal(tmp_path: Path) -> None:
    one = recording(tmp_path, "one", *answered(1, "First?"), *answered(2, "Why?", steps=2))
    other = recording(tmp_path, "other", *answered(1, "How?"))
    compared = Comparison(one, other)
    assert compared.question == "one: Why? · other: How?"
    assert [len(lane.steps) for lane in compared.lanes] == [2, 3]
    assert compared.conclusions()[0] == "The questions differ, so the answers are not compared."
    assert not any("identical" in sentence for sentence in compared.conclusions())


def test_tokens_of_different_models_are_not_compared(tmp_path: Path) -> None:
    one = recording(tmp_path, "one", *answered(1, "Why?"))
    events = stream(*answered(1, "Why?"))
    lines = [encode(msgspec.structs.replace(HEADER, model="another")), *map(encode, events[1:])]
    other = Recording.read(write(tmp_path / "other.jsonl", *lines))
    assert Comparison(one, other).conclusions()[0] == "Two models have answered, so their tokens are not compared."


def test_a_recording_without_an_answer_is_refused_by_its_name(tmp_path: Path) -> None:
    one = recording(tmp_path, "one", *answered(1, "Why?"))
    with pytest.raises(NothingToCompare, match=r"none\.ladechat\.jsonl has no answer"):
        Comparison(one, recording(tmp_path, "none"))


def going_on(number: int, question: str) -> list[Event]:
    """What an engine says to an answer that goes on."""
    started, *rest = answered(number, question)
    assert isinstance(started, TurnStarted)
    said = Message(role="assistant", content="Yes", token_ids=[5])
    return [msgspec.structs.replace(started, messages=[*started.messages, said]), *rest]


def test_an_answer_that_went_on_is_compared_as_one(tmp_path: Path) -> None:
    without_an_answer = answered(2, "Stopped at once?", steps=0)
    one = recording(tmp_path, "one", *answered(1, "Shared?"), *without_an_answer, *going_on(1, "Shared?"))
    other = recording(tmp_path, "other", *answered(1, "Shared?"))
    lanes = Comparison(one, other).lanes
    assert [len(lane.steps) for lane in lanes] == [6, 3]


def test_an_answer_whose_beginning_was_not_recorded_is_added_to_no_other(tmp_path: Path) -> None:
    one = recording(tmp_path, "one", *answered(1, "Shared?"), *going_on(2, "Earlier?"))
    other = recording(tmp_path, "other", *answered(1, "Shared?"))
    assert [len(lane.steps) for lane in Comparison(one, other).lanes] == [3, 3]
    with pytest.raises(NothingToCompare):
        Comparison(recording(tmp_path, "only", *going_on(1, "Earlier?")), other)
