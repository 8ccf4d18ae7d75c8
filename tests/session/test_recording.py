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
    SystemPrompt,
    decode_event,
    encode,
)
from ladechat.session.recordings import recorder as recording
from ladechat.session.recordings.recorder import Recorder, default_path
from ladechat.session.recordings.recording import Recording
from tests.session.conversations import take_away
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
    monkeypatch.setattr("ladechat.session.recordings.recorder.MOST_REMEMBERED", 2 * len(turn(1)) + 2)
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
    monkeypatch.setattr("ladechat.session.recordings.recorder.MOST_REMEMBERED", len(events))
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


def test_a_recording_that_begins_in_the_middle_has_the_system_prompt_of_its_conversation(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.record(HEADER)
    recorder.record_own(SystemPrompt(text="Be brief."))
    recorder.record_own(Asked(turn=1, text="One?"))
    recorder.record(HEADER)  # the engine was started anew
    assert [event.text for event in recorder.conversation() if isinstance(event, SystemPrompt)] == ["Be brief."]
    recorder.record_own(ConversationCleared())
    recorder.record_own(SystemPrompt(text=""))
    recorder.record_own(Asked(turn=2, text="Two?"))
    assert [event.text for event in recorder.conversation() if isinstance(event, SystemPrompt)] == [""]


def test_a_full_disk_ends_the_recording_with_an_error_and_not_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int, __: bytes) -> None:
        raise OSError(28, "No space left on device")

    recorder, failures = Recorder(), list[OSError]()
    recorder.failed = failures.append
    recorder.start(tmp_path / "talk.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(recording, "write_whole", full)
        recorder.record(HEADER)
    assert (
        [error.strerror for error in failures] == ["No space left on device"]
        and recorder.path is None
        and recorder.left == tmp_path / "talk.jsonl"
    )
    for event in stream(*turn(1)):
        recorder.record(event)


def test_a_file_that_cannot_be_closed_ends_the_recording_with_an_error_and_not_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, failures = Recorder(), list[OSError]()
    recorder.failed = failures.append
    recorder.start(tmp_path / "talk.jsonl")
    recorder.record(HEADER)
    close = os.close

    def over_quota(descriptor: int) -> None:
        close(descriptor)
        raise OSError(122, "Disk quota exceeded")

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", over_quota)
        assert recorder.stop() is None
    assert [error.strerror for error in failures] == ["Disk quota exceeded"] and recorder.path is None


@pytest.mark.parametrize("how", ["file", "folder", "another"])
@pytest.mark.parametrize("when", ["in the middle", "before its end"])
def test_a_recording_that_is_removed_is_written_anew_with_all_that_was_in_it(
    tmp_path: Path, how: str, when: str
) -> None:
    recorder, path = Recorder(), tmp_path / "new" / "talk.ladechat.jsonl"
    recorder.start(path)
    events = stream(*turn(1))
    for place, event in enumerate([*events, None]):
        if place == (2 if when == "in the middle" else len(events)):
            take_away(path, how)
        if event is not None:
            recorder.record(event)
    left = recorder.stop()
    assert left == (path.with_name("talk-2.ladechat.jsonl") if how == "another" else path)
    *recorded, closed = written(left)
    assert recorded == events and isinstance(closed, Closed)
    assert stat.S_IMODE(left.stat().st_mode) == 0o600


def test_a_recording_that_cannot_be_written_anew_ends_with_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "new" / "talk.jsonl"
    recorder.start(path)
    recorder.record(HEADER)
    take_away(path, "folder")
    path.parent.write_text("in the way")
    failures = list[OSError]()
    recorder.failed = failures.append
    recorder.record(stream(*turn(1))[1])
    assert [error.strerror for error in failures] == ["File exists"] and recorder.path is None and recorder.left is None


@pytest.mark.parametrize("model", ["demo", "meta-llama/Llama-2-7b-chat-hf", "../strange name/"])
def test_the_default_name_says_when_and_which_model(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = default_path(model)
    assert path.name.endswith(".ladechat.jsonl") and " " not in path.name
    assert tmp_path in path.parents and path.parent.name == "recordings"
