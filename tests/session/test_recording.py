"""Writing a recording down, and reading it back: nothing is lost that was written, and damage is named."""

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat import protocol
from ladechat.protocol import (
    Asked,
    Closed,
    ConversationCleared,
    Event,
    Header,
    Loading,
    Prefilling,
    Settings,
    SettingsApplied,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode,
)
from ladechat.session.recording import Recorder, default_path
from ladechat.session.replay import Player, Recording, UnreadableRecording
from tests.widgets.sample_steps import answer

GOLDEN = sorted(Path(__file__).parent.glob("golden-*.ladechat.jsonl"))
"""One of each version of the format, as it was written then."""

HEADER = Header(
    format="ladechat",
    version=protocol.VERSION,
    program="ladechat test",
    model="demo",
    tokenizer=None,
    device="cpu",
    dtype="float32",
    settings=Settings(),
    seed=None,
    started="2030-01-01T12:00:00.000+00:00",
)


def turn(number: int, steps: int = 3) -> list[Event]:
    """What an engine says to one question."""
    body = [msgspec.structs.replace(step, turn=number, index=i) for i, step in enumerate(answer(5, 3, 5)[:steps])]
    text = "".join(piece for step in body for piece in step.pieces)
    ids = [token for step in body for token in step.token_ids]
    return [
        TurnStarted(
            turn=number,
            messages=[protocol.Message(role="user", content=f"Question {number}?")],
            prompt_ids=[1, 2, 3],
            cached_tokens=0,
            max_new_tokens=100,
            settings=Settings(),
        ),
        Prefilling(turn=number, done_tokens=2, total_tokens=2),
        *body,
        TurnFinished(
            turn=number, reason="eos", text=text, token_ids=ids, steps=steps, prefill_seconds=0.1, decode_seconds=0.2
        ),
    ]


def stream(*events: Event, pace: float = 0.5) -> list[Event]:
    """The events as an engine numbers and times them, behind a header."""
    return [msgspec.structs.replace(event, seq=i, t=i * pace) for i, event in enumerate((HEADER, *events))]


def untimed(events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, seq=0, t=0.0) for event in events]


def written(path: Path) -> list[Event]:
    events = [decode_event(line) for line in path.read_bytes().splitlines()]
    return [event for event in events if event is not None]


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


# --- writing ----------------------------------------------------------------------------------------------------------


def test_the_file_is_the_stream_as_it_stands_and_is_there_line_by_line(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "new" / "talk.jsonl"
    recorder.start(path)
    expected = b""
    for event in stream(*turn(1)):
        recorder.heard(event)
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


def test_a_recording_that_begins_in_the_middle_has_what_a_reader_needs_and_the_whole_turn(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "talk.jsonl"
    changed = SettingsApplied(settings=Settings(window=9))
    first, second = turn(1), turn(2)
    for event in stream(Loading(stage=1, stages=1, doing="loading"), changed, *first):
        recorder.heard(event)
    recorder.added(Asked(turn=2, text="Question 2?"))
    for event in second[:3]:
        recorder.heard(event)
    recorder.start(path)
    for event in second[3:]:
        recorder.heard(event)
    recorder.stop()
    kept = untimed(written(path))
    assert kept == [HEADER, changed, Asked(turn=2, text="Question 2?"), *second, Closed()]
    assert Recording.read(path).notices == []


def test_what_the_user_adds_repeats_the_number_before_and_time_never_falls(tmp_path: Path) -> None:
    recorder, path = Recorder(), tmp_path / "talk.jsonl"
    recorder.start(path)
    recorder.added(Asked(turn=1, text="Before there is a header?"))
    for event in stream(*turn(1), pace=100.0):
        recorder.heard(event)
    recorder.added(ConversationCleared())
    recorder.stop()
    events = written(path)
    assert [type(event) for event in events[:2]] == [Header, Asked]
    assert [event.t for event in events] == sorted(event.t for event in events)
    assert [event.seq for event in events] == [0, *range(len(events) - 3), *[len(events) - 4] * 2]


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
        recorder.heard(HEADER)
    assert recorder.path is None
    recorder.heard(HEADER)
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


# --- reading ----------------------------------------------------------------------------------------------------------


def recorded(tmp_path: Path, *events: Event) -> Path:
    return write(tmp_path / "talk.jsonl", *map(encode, stream(*events)))


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
        header_line(version="2.99", colour="new"),
        b'{"event":"hologram","seq":1,"t":0.5}\n',
        *map(encode, stream(*turn(1), Closed())[1:]),
    )
    recording = Recording.read(path)
    assert untimed(recording.events) == [HEADER_OF_NEXT, *turn(1)]
    assert len(recording.notices) == 1 and "2.99" in recording.notices[0]


HEADER_OF_NEXT = msgspec.structs.replace(HEADER, version="2.99")


def test_a_newer_major_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match=r"version 3\.0, and this ladechat reads up to version 2"):
        Recording.read(write(tmp_path / "talk.jsonl", header_line(version="3.0", settings="another form")))


def test_a_header_that_lost_its_fields_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording, match="header of the recording cannot be read"):
        Recording.read(write(tmp_path / "talk.jsonl", header_line(settings=7)))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_the_golden_recording_of_every_version_is_read_without_a_remark(path: Path) -> None:
    recording = Recording.read(path)
    assert recording.notices == [] and recording.closed
    assert len(recording.turns) == 2
    assert {type(event).__name__ for event in recording.events} >= {"Header", "Ready", "Asked", "TurnStarted", "Step"}
    for finished in (event for event in recording.events if isinstance(event, TurnFinished)):
        steps = [event for event in recording.events if isinstance(event, Step) and event.turn == finished.turn]
        assert "".join(piece for step in steps for piece in step.pieces) == finished.text
        assert len(steps) == finished.steps


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


# --- playing ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    asked = [Asked(turn=number, text=f"Question {number}?") for number in (1, 2)]
    return Recording.read(recorded(tmp_path, asked[0], *turn(1), asked[1], *turn(2), Closed()))


def test_events_are_due_at_their_own_pace(recording: Recording) -> None:
    player = Player(recording)
    assert player.due(100.0) == recording.events[:1]
    assert player.due(100.9) == recording.events[1:2]
    assert player.due(102.0) == recording.events[2:5]
    assert player.due(1000.0) == recording.events[5:]
    assert player.at_end and not player.playing


def test_speed_and_pause(recording: Recording) -> None:
    player = Player(recording)
    player.due(0.0)
    player.change_speed(1)
    assert player.speed == 2.0 and len(player.due(1.0)) == 4
    player.playing = False
    assert player.due(50.0) == []
    player.playing = True
    assert player.due(50.1) == []
    player.change_speed(-99)
    assert player.speed == 0.1
    player.change_speed(99)
    assert player.speed == 16.0


def test_steps_forward_and_back_meet_every_step_once(recording: Recording) -> None:
    player = Player(recording)
    ends = [i + 1 for i, event in enumerate(recording.events) if isinstance(event, Step)]
    forward = []
    for _ in ends:
        player.seek(player.step_forward())
        forward.append(player.position)
    assert forward == ends
    player.seek(player.step_forward())
    assert player.at_end
    back = []
    for _ in ends:
        player.seek(player.step_back())
        back.append(player.position)
    assert back == ends[::-1]
    assert player.step_back() == 0


def test_jumps_from_question_to_question(recording: Recording) -> None:
    player = Player(recording)
    first, second = (turn.position + 1 for turn in recording.turns)
    player.seek(player.next_turn())
    assert player.position == first and player.turn and player.turn.number == 1
    player.seek(player.next_turn())
    assert player.position == second and player.turn and player.turn.number == 2
    assert player.next_turn() == len(recording.events)
    player.seek(second + 2)
    assert player.previous_turn() == second
    player.seek(second)
    assert player.previous_turn() == first
    player.seek(first)
    assert player.previous_turn() == 0


@given(moves=st.lists(st.tuples(st.sampled_from(["seek", "due", "forward", "back", "speed"]), st.integers(-3, 40))))
def test_wherever_one_goes_time_and_place_agree(
    moves: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    player = Player(Recording.read(recorded(tmp_path_factory.mktemp("r"), *turn(1), *turn(2), Closed())))
    now = 0.0
    for move, amount in moves:
        match move:
            case "seek":
                player.seek(amount)
            case "due":
                now += abs(amount) / 10
                player.due(now)
            case "forward":
                player.seek(player.step_forward())
            case "back":
                player.seek(player.step_back())
            case "speed":
                player.change_speed(amount)
        times = player.recording.times
        assert 0 <= player.position <= len(times)
        assert player.position == 0 or times[player.position - 1] <= player.seconds
        assert player.position == len(times) or player.seconds <= times[player.position] or player.position == 0
