"""Reading a recording back: all that is whole, in its time, and damage is named."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from ladechat.protocol import (
    MAX_LINE_BYTES,
    Asked,
    Closed,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    ExchangeRestored,
    Failed,
    Step,
    TurnFinished,
    encode,
)
from ladechat.session.recordings import reading
from ladechat.session.recordings.reading import UnreadableRecording
from ladechat.session.recordings.recording import Recording
from tests.session.conversations import exchange
from tests.session.streams import GOLDEN, HEADER, recorded, stream, turn, untimed, write


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    events = [Asked(turn=1, text="Question 1?"), *turn(1), Closed()]
    recording = Recording.read(recorded(tmp_path, *events))
    assert untimed(recording.events) == [HEADER, *events[:-1]]
    assert recording.closed and recording.notices == []
    assert [turn.question for turn in recording.turns] == ["Question 1?"]


def test_questions_of_a_stream_that_a_program_wrote_down_are_those_of_its_prompts(tmp_path: Path) -> None:
    recording = Recording.read(recorded(tmp_path, *turn(1), *turn(2)))
    assert [(turn.number, turn.question) for turn in recording.turns] == [(1, "Question 1?"), (2, "Question 2?")]


@given(cut=st.integers(min_value=1))
def test_a_file_cut_anywhere_behind_its_header_plays_up_to_the_last_complete_line(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [encode(event) for event in stream(*turn(1))]
    data = b"".join(lines)
    end = len(lines[0]) + cut % (len(data) - len(lines[0]))
    path = write(tmp_path_factory.mktemp("cut") / "talk.jsonl", data[:end])
    recording = Recording.read(path)
    complete = data[:end].count(b"\n")
    assert recording.events == stream(*turn(1))[:complete]
    assert not recording.closed
    said_so = any("the last line is not complete" in notice for notice in recording.notices)
    assert said_so == (not data[:end].endswith(b"\n"))
    assert any("interrupted" in notice for notice in recording.notices)


@pytest.mark.parametrize("damage", [b"{", b"", b"\xff\xfe", b'{"event":"step","turn":"one"}', b"[1]", b"null"])
def test_a_bad_line_in_the_middle_is_named_by_its_number_and_the_rest_is_played(tmp_path: Path, damage: bytes) -> None:
    lines = [encode(event) for event in stream(*turn(1), Closed())]
    lines[4] = damage + b"\n"
    recording = Recording.read(write(tmp_path / "talk.jsonl", *lines))
    assert len(recording.events) == len(lines) - 2
    assert len(recording.notices) == 1 and "line 5 cannot be read" in recording.notices[0]


def test_a_file_cut_exactly_before_the_end_of_its_header_line_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match="ends within its header"):
        Recording.read(write(tmp_path / "talk.jsonl", encode(HEADER).rstrip()))


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"event":"step","turn":' + b"[" * 100_000])
def test_a_line_that_is_nested_too_deeply_is_one_bad_line(tmp_path: Path, line: bytes) -> None:
    lines = [encode(event) for event in stream(*turn(1), Closed())]
    recording = Recording.read(write(tmp_path / "talk.jsonl", *lines[:4], line + b"\n", *lines[4:]))
    assert recording.events == stream(*turn(1))
    assert [notice for notice in recording.notices if "line 5 cannot be read" in notice] == recording.notices


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([ConversationCleared()], []),
        ([ConversationOpened(exchanges=[])], []),
        ([ExchangeRemoved()], []),
        ([ExchangeRestored(exchange=exchange())], []),
        ([], [ConversationCleared()]),
        ([Failed(code="internal", message="It broke.", hint="", fatal=True)], []),
    ],
    ids=[
        "conversation cleared",
        "another opened",
        "an exchange removed",
        "one restored",
        "before the turn",
        "the engine ended",
    ],
)
def test_a_step_that_belongs_to_no_turn_is_left_out_by_its_line(
    tmp_path: Path, before: list[Event], after: list[Event]
) -> None:
    started, read, step, *_ = turn(1)
    events = [started, read, *before, step, *after] if before else [step, started, read, *after]
    recording = Recording.read(recorded(tmp_path, *events, Closed()))
    assert not any(isinstance(event, Step) for event in recording.events)
    assert len(recording.events) == len(events)  # the header, and all but the step
    assert any("question 1 is not being answered" in notice for notice in recording.notices)


def test_an_answer_whose_beginning_is_lost_is_read_where_its_question_is_there(tmp_path: Path) -> None:
    _, *rest = turn(1)
    recording = Recording.read(recorded(tmp_path, Asked(turn=1, text="Question 1?"), *rest, Closed()))
    assert untimed(recording.events) == [HEADER, Asked(turn=1, text="Question 1?"), *rest]


def test_a_line_that_is_too_long_is_left_out_and_the_rest_is_played(tmp_path: Path) -> None:
    lines = [encode(event) for event in stream(*turn(1), Closed())]
    long = b'{"event":"loading","doing":"' + b"x" * (MAX_LINE_BYTES + 100_000) + b'"}\n'
    recording = Recording.read(write(tmp_path / "talk.jsonl", *lines[:4], long, *lines[4:]))
    assert recording.events == stream(*turn(1))
    assert any("line 5" in notice and "longer than 64 MiB" in notice for notice in recording.notices)


def test_of_a_recording_without_end_a_part_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_EVENTS", 4)
    recording = Recording.read(recorded(tmp_path, *turn(1)))
    assert recording.events == stream(*turn(1))[:4]
    assert any("more than 4 are not shown" in notice for notice in recording.notices)


def test_what_is_no_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes to waits for ever, and some devices have no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UnreadableRecording, match="a device or a pipe, not a file"):
            Recording.read(path)


def test_much_damage_is_told_in_few_words(tmp_path: Path) -> None:
    lines = [encode(event) for event in stream(Closed())]
    path = write(tmp_path / "talk.jsonl", lines[0], *[b"{\n"] * 40, lines[1])
    assert Recording.read(path).notices[-1] == "And 37 more such places."


def test_missing_lines_are_told_of(tmp_path: Path) -> None:
    lines = [encode(event) for event in stream(*turn(1), Closed())]
    del lines[3:5]
    notices = Recording.read(write(tmp_path / "talk.jsonl", *lines)).notices
    assert len(notices) == 1 and "2 of the engine's events are missing before line 4" in notices[0]


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"{}\n", b'{"event":"header"}\n', b"\x00\x01\x02", b'[{"version":2}]\n', b"\n\n"]
)
def test_a_foreign_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnreadableRecording, match=r"is not a recording of ladechat: .* --record\."):
        Recording.read(write(tmp_path / "talk.jsonl", content))


def header_line(**changes: object) -> bytes:
    return json.dumps({**json.loads(encode(HEADER)), **changes}).encode() + b"\n"


def test_a_newer_minor_version_is_read_on_with_a_remark(tmp_path: Path) -> None:
    path = write(
        tmp_path / "talk.jsonl",
        header_line(version="4.99", colour="new"),
        b'{"event":"hologram","seq":1,"t":0.5}\n',
        *map(encode, stream(*turn(1), Closed())[1:]),
    )
    recording = Recording.read(path)
    assert untimed(recording.events) == [msgspec.structs.replace(HEADER, version="4.99"), *turn(1)]
    assert len(recording.notices) == 1 and "4.99" in recording.notices[0]


def test_a_newer_major_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match=r"version 5\.0, and this ladechat reads up to version 4"):
        Recording.read(write(tmp_path / "talk.jsonl", header_line(version="5.0", settings="another form")))


def test_a_header_that_lost_its_fields_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match="header of the recording cannot be read"):
        Recording.read(write(tmp_path / "talk.jsonl", header_line(settings=7)))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_the_golden_recording_of_every_version_is_read_without_a_remark(path: Path) -> None:
    recording = Recording.read(path)
    assert recording.notices == [] and recording.closed
    assert len(recording.turns) == 2
    assert {type(event).__name__ for event in recording.events} >= {"Header", "Ready", "Asked", "TurnStarted", "Step"}
    ends = [event for event in recording.events if isinstance(event, TurnFinished)]
    for number in {end.turn for end in ends}:
        steps = [event for event in recording.events if isinstance(event, Step) and event.turn == number]
        parts = [end for end in ends if end.turn == number]  # several of an answer that went on
        assert "".join(piece for step in steps for piece in step.pieces) == "".join(part.text for part in parts)
        assert [step.index for step in steps] == list(range(sum(part.steps for part in parts)))


# --- time -------------------------------------------------------------------------------------------------------------


def test_an_engine_that_was_started_anew_goes_on_in_time(tmp_path: Path) -> None:
    second = msgspec.structs.replace(HEADER, started="2030-01-01T12:01:00.500+00:00")
    lines = [encode(event) for event in (*stream(*turn(1)), second, *stream(*turn(2))[1:])]
    recording = Recording.read(write(tmp_path / "talk.jsonl", *lines))
    half = len(recording.events) // 2
    assert recording.times[half] == 60.5
    assert recording.times[half + 1] == 61.0


@pytest.mark.parametrize("started", ["soon", "2029-01-01T00:00:00+00:00", "2030-01-01T12:00:00"])
def test_time_never_falls_whatever_the_clock_said(tmp_path: Path, started: str) -> None:
    second = msgspec.structs.replace(HEADER, started=started)
    lines = [encode(event) for event in (*stream(*turn(1)), second, *stream(*turn(2))[1:])]
    times = Recording.read(write(tmp_path / "talk.jsonl", *lines)).times
    assert times == sorted(times)


def test_pauses_can_be_shortened(tmp_path: Path) -> None:
    lines = [encode(event) for event in stream(*turn(1), pace=100.0)]
    path = write(tmp_path / "talk.jsonl", *lines)
    assert Recording.read(path).seconds == 100.0 * (len(lines) - 1)
    assert Recording.read(path, idle_limit=2.0).seconds == 2.0 * (len(lines) - 1)
