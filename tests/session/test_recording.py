"""Writing a recording down: nothing is lost that was written, whenever it began and however it ends."""

import os
import stat
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from ladechat.protocol import (
    Asked,
    Closed,
    ConversationCleared,
    Event,
    Header,
    Loading,
    Settings,
    SettingsApplied,
    decode_event,
    encode,
)
from ladechat.session.recording import Recorder, default_path
from ladechat.session.replay import Recording
from tests.session.streams import HEADER, stream, turn, untimed, write

OWN = (Asked, ConversationCleared)


def written(path: Path) -> list[Event]:
    events = [decode_event(line) for line in path.read_bytes().splitlines()]
    return [event for event in events if event is not None]


def test_the_file_is_the_stream_as_it_stands_and_is_there_line_by_line(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "new" / "talk.jsonl"
    recorder.start(path)
    expected = b""
    for event in stream(*turn(1)):
        recorder.record(event)
        expected += encode(event)
        assert path.read_bytes() == expected
    recorder.stop()
    assert recorder.path is None
    rest = path.read_bytes().removeprefix(expected)
    assert rest.count(b"\n") == 1 and isinstance(decode_event(rest), Closed)


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(tmp_path / "talk.jsonl")
    assert stat.S_IMODE((tmp_path / "talk.jsonl").stat().st_mode) == 0o600
    recorder.stop()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", b"precious")
    with pytest.raises(FileExistsError):
        Recorder().start(path)
    assert path.read_bytes() == b"precious"


def late_recording(path: Path, *before: Event, after: list[Event]) -> Recording:
    """What is read of a recording that was switched on between these events."""
    recorder = Recorder()
    events = stream(*before, *after, pace=10.0)
    own = list(accumulate(isinstance(event, OWN) for event in events))
    events = [msgspec.structs.replace(event, seq=event.seq - added) for event, added in zip(events, own, strict=True)]
    split = len(events) - len(after)
    for event in events[:split]:
        (recorder.record_own if isinstance(event, OWN) else recorder.record)(event)
    recorder.start(path)
    for event in events[split:]:
        recorder.record(event)
    recorder.stop()
    return Recording.read(path)


def test_a_recording_that_begins_in_the_middle_has_the_conversation_so_far_at_time_0(tmp_path: Path) -> None:
    changed = SettingsApplied(settings=Settings(parameters={"window": 9}))
    first, second = [Asked(turn=1, text="Question 1?"), *turn(1)], [Asked(turn=2, text="Question 2?"), *turn(2)]
    before = (Loading(stage=1, stages=1, doing="loading"), changed, *first, *second[:3])
    recording = late_recording(tmp_path / "talk.jsonl", *before, after=second[3:])
    header, *rest = untimed(recording.events)
    assert isinstance(header, Header)
    assert rest == [changed, *first, *second]
    assert recording.notices == [] and recording.closed
    late = len(second[3:])
    assert set(recording.times[:-late]) == {0.0}
    assert recording.times[-late:] == pytest.approx([10.0 * (1 + place) for place in range(late)], abs=1.0)


def test_what_was_cleared_before_is_not_in_it(tmp_path: Path) -> None:
    before = (Asked(turn=1, text="Question 1?"), *turn(1), ConversationCleared())
    recording = late_recording(tmp_path / "talk.jsonl", *before, after=turn(2))
    assert untimed(recording.events)[1:] == turn(2)


def test_a_conversation_of_two_engines_is_at_time_0_too(tmp_path: Path) -> None:
    again = msgspec.structs.replace(HEADER, started="2030-01-01T13:00:00.000+00:00")
    before = (Asked(turn=1, text="Question 1?"), *turn(1), again, Asked(turn=2, text="Question 2?"))
    recording = late_recording(tmp_path / "talk.jsonl", *before, after=turn(2))
    assert [event.text for event in recording.events if isinstance(event, Asked)] == ["Question 1?", "Question 2?"]
    assert set(recording.times[: -len(turn(2))]) == {0.0}


def test_of_a_long_conversation_the_last_turns_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.session.recording.MOST_REMEMBERED", 2 * len(turn(1)) + 2)
    changed = SettingsApplied(settings=Settings(parameters={"window": 9}))
    turns = [[Asked(turn=number, text=f"Question {number}?"), *turn(number)] for number in (1, 2, 3)]
    recording = late_recording(tmp_path / "talk.jsonl", *turns[0], changed, *turns[1], *turns[2], after=turn(4))
    assert untimed(recording.events)[1:] == [changed, *turns[1], *turns[2], *turn(4)]


def test_a_conversation_that_is_not_recorded_can_be_had_with_its_times_as_long_as_it_is_not_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    assert recorder.conversation() == []
    header, *events = stream(Asked(turn=1, text="One?"), *turn(1))
    recorder.record(header)
    assert recorder.conversation() == []
    for event in events:
        recorder.record(event)
    *conversation, closed = recorder.conversation()
    assert conversation == [header, *events] and isinstance(closed, Closed)
    shortened = [recorder.shortened]
    monkeypatch.setattr("ladechat.session.recording.MOST_REMEMBERED", len(events))
    for event in stream(Asked(turn=2, text="Two?"), *turn(2), Asked(turn=3, text="Three?"))[1:]:
        recorder.record(event)
        shortened.append(recorder.shortened)
    assert [event.text for event in recorder.conversation() if isinstance(event, Asked)] == ["Two?", "Three?"]
    recorder.record_own(ConversationCleared())
    shortened.append(recorder.shortened)
    assert recorder.conversation() == [] and shortened == [*[False] * len(events), False, True, False]


def test_what_the_user_adds_repeats_the_number_before_and_time_never_falls(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "talk.jsonl"
    recorder.start(path)
    recorder.record_own(Asked(turn=1, text="Before there is a header?"))
    for event in stream(*turn(1), pace=100.0):
        recorder.record(event)
    recorder.record_own(ConversationCleared())
    recorder.stop()
    events = written(path)
    assert [type(event) for event in events[:2]] == [Header, Asked]
    assert [event.t for event in events] == sorted(event.t for event in events)
    assert [event.seq for event in events] == [0, *range(len(events) - 3), *[len(events) - 4] * 2]


def test_what_the_user_adds_has_the_engines_time_also_where_the_engines_header_came_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    recorder, path = Recorder(), tmp_path / "talk.jsonl"
    recorder.start(path)
    for event in (HEADER, Loading(stage=1, stages=1, doing="loading", t=30.0)):
        recorder.record(event)
    now += 5
    recorder.record_own(Asked(turn=1, text="One?"))
    recorder.stop()
    assert [event.t for event in written(path)] == [0.0, 30.0, 35.0, 35.0]


def test_without_a_word_of_the_engine_no_file_is_left(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(tmp_path / "talk.jsonl")
    recorder.stop()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_the_recording_with_an_error_and_not_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(os, "open", lambda *_: full)
    recorder = Recorder()
    recorder.start(Path("talk.jsonl"))
    with pytest.raises(OSError, match="No space left"):
        recorder.record(HEADER)
    assert recorder.path is None
    recorder.record(HEADER)
    recorder.stop()


@pytest.mark.parametrize("model", ["demo", "meta-llama/Llama-2-7b-chat-hf", "../strange name/"])
def test_the_default_name_says_when_and_which_model(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = default_path(model)
    assert path.name.endswith(".ladechat.jsonl") and " " not in path.name
    assert tmp_path in path.parents and path.parent.name == "recordings"
