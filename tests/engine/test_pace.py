"""Time belongs to the viewer: an engine that is paused, single-stepped or slowed down computes nothing ahead."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat import protocol
from ladechat.engine import server, turn as turn_module
from ladechat.engine_process import stream
from ladechat.engine_process.pace import StepPace
from ladechat.protocol import (
    Closed,
    Command,
    Configure,
    Failed,
    ProtocolError,
    SettingsApplied,
    Shutdown,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
    encode,
)
from ladechat.session.playing import Player
from ladechat.session.recordings.recording import Recording
from tests.engine.clock import Clock
from tests.engine.inside import Inside
from tests.engine.wire import Line, started

QUESTION = "What is the n-gram pool?"
PAUSE = protocol.Pace(steps_per_second=0)
ONE_STEP = protocol.Pace(steps_per_second=0, step=True)
FULL_SPEED = protocol.Pace()


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.floats(0.001, 1000), st.lists(st.floats(0, 10), max_size=5))
def test_steps_begin_so_many_a_second_whatever_they_take(rate: float, took: list[float]) -> None:
    clock = Ticks()
    pace = StepPace(clock)
    pace.change(protocol.Pace(steps_per_second=rate))
    assert pace.seconds_left() == 0, "nothing comes before the first step"
    for seconds in took:
        pace.begin_step()
        clock.now += seconds
        assert pace.seconds_left() == pytest.approx(max(0, 1 / rate - seconds), abs=1e-6)
        clock.now += pace.seconds_left() or 0


def test_while_it_is_paused_as_many_steps_are_due_as_were_asked_for() -> None:
    pace = StepPace(Ticks())
    for command in (ONE_STEP, ONE_STEP):
        pace.change(command)
    for left in (0, 0, None):
        assert pace.seconds_left() == left
        pace.begin_step()
    pace.change(ONE_STEP)
    pace.begin_answer()
    assert pace.seconds_left() is None, "it was asked for in the answer before"
    pace.change(ONE_STEP)
    pace.change(PAUSE)
    assert pace.seconds_left() is None
    pace.change(FULL_SPEED)
    assert pace.seconds_left() == 0


def test_another_pace_counts_from_the_step_before() -> None:
    clock = Ticks()
    pace = StepPace(clock)
    pace.begin_step()
    clock.now = 0.2
    pace.change(protocol.Pace(steps_per_second=1))
    assert pace.seconds_left() == pytest.approx(0.8)
    pace.change(protocol.Pace(steps_per_second=4))
    assert pace.seconds_left() == pytest.approx(0.05)
    pace.begin_answer()
    assert pace.seconds_left() == 0, "no answer waits for the step of another"


@pytest.fixture
def paced(engine: Inside) -> Iterator[Inside]:
    """An engine that goes at full speed again when the test has ended."""
    yield engine
    engine.send(Stop())
    engine.send(FULL_SPEED)
    engine.send(Configure())
    engine.until(SettingsApplied)


def heard(engine: Line) -> None:
    """It has carried out all that it was sent before: what is no command is answered in its turn."""
    engine.send(b"no command\n")
    engine.until(Failed)


def stopped(engine: Line, turn: int) -> TurnFinished:
    """The end of an answer that is stopped. It counts every step that was taken, seen or not."""
    engine.send(Stop())
    return engine.finish(turn)[1]


def steps_of(engine: Line, turn: int) -> list[Step]:
    return engine.of_turn(Step, turn)


def stepped_to_its_end(engine: Line, turn: int) -> TurnFinished:
    """The end of an answer that waits, step by step."""
    while not engine.of_turn(TurnFinished, turn):
        engine.step()
        heard(engine)
    return engine.of_turn(TurnFinished, turn)[0]


def test_paused_it_takes_no_step_and_one_for_each_that_is_asked_for(paced: Inside) -> None:
    turn = paced.begin(QUESTION, steps=0, max_new_tokens=60)
    heard(paced)
    assert steps_of(paced, turn) == []
    for number in range(1, 4):
        paced.step()
        heard(paced)
        assert len(steps_of(paced, turn)) == number
    assert stopped(paced, turn).steps == 3


def test_pausing_stepping_and_going_on_leave_the_text_as_it_is(paced: Inside) -> None:
    _, undisturbed = paced.ask(QUESTION, max_new_tokens=60)
    paced.send(PAUSE)
    turn = paced.generate(QUESTION, max_new_tokens=60)
    for pace in (ONE_STEP, ONE_STEP, protocol.Pace(steps_per_second=8), PAUSE, ONE_STEP):
        paced.send(pace)
        if pace is not PAUSE:
            paced.until(Step)
        heard(paced)
    paced.send(FULL_SPEED)
    _, finished = paced.finish(turn)
    assert (finished.token_ids, finished.text) == (undisturbed.token_ids, undisturbed.text)
    assert finished.text == "".join(piece for step in steps_of(paced, turn) for piece in step.pieces)


def test_a_slider_moved_between_two_steps_changes_the_window_of_the_very_next_one(paced: Inside) -> None:
    turn = paced.begin(QUESTION, max_new_tokens=60)
    for width in (7, 3, 9):
        paced.send(Configure(parameters={"window": width}))
        paced.until(SettingsApplied)
        step = paced.step()
        assert step.window is not None and len(step.window.rows[0]) == width
    assert stopped(paced, turn).steps == 4


@pytest.mark.parametrize(
    "slow", [protocol.Pace(steps_per_second=0.01), protocol.Pace(steps_per_second=5e-324), ONE_STEP]
)
def test_a_stop_while_it_waits_leaves_exactly_the_tokens_that_were_seen(paced: Inside, slow: protocol.Pace) -> None:
    """Also at the slowest pace that there is."""
    turn = paced.begin(QUESTION, steps=0, max_new_tokens=60)
    paced.send(slow)
    paced.until(Step)
    heard(paced)
    seen = [token for step in steps_of(paced, turn) for token in step.token_ids]
    paced.send(Stop())
    rest, finished = paced.finish(turn)
    assert rest == [] and finished.reason == "stopped"
    assert finished.token_ids == seen and finished.steps == 1


def test_a_stop_and_the_pace_of_the_next_answer_come_together(paced: Inside) -> None:
    """Esc in a pause sends a stop and then the usual pace: no step is taken between the two."""
    turn = paced.begin(QUESTION, steps=0, max_new_tokens=60)
    paced.send(Stop())
    paced.send(FULL_SPEED)
    steps, finished = paced.finish(turn)
    assert steps == [] and finished.reason == "stopped" and finished.token_ids == []
    assert paced.ask(QUESTION, max_new_tokens=5)[1].reason == "max_new_tokens"


def test_the_pace_holds_for_the_next_answer_and_another_question_is_refused_while_it_waits(paced: Inside) -> None:
    paced.send(PAUSE)
    for _ in range(2):
        turn = paced.generate(QUESTION, max_new_tokens=3)
        paced.until(TurnStarted)
        refused = paced.generate(QUESTION)
        failed = paced.until(Failed)
        assert (failed.code, failed.turn) == ("busy", refused)
        assert len(stepped_to_its_end(paced, turn).token_ids) == 3


def test_waiting_counts_neither_for_a_step_nor_for_the_answer(paced: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, server, turn_module)
    poll, waits = paced.inbox.poll, 0

    def poll_for_an_hour(seconds: float | None = 0.0) -> Command | ProtocolError | None:
        nonlocal waits
        command = poll(seconds)
        if seconds != 0:
            clock.forward += 3600
            waits += 1
        return command

    monkeypatch.setattr(paced.inbox, "poll", poll_for_an_hour)
    turn = paced.begin(QUESTION, steps=0, max_new_tokens=4)
    finished, steps = stepped_to_its_end(paced, turn), steps_of(paced, turn)
    assert waits and len(steps) > 1
    assert all(0 < step.timing.step_ms < 1000 * 1800 for step in steps)
    assert finished.decode_seconds < 1800


def test_a_recording_of_a_pause_has_the_pause_and_is_played_with_it(
    paced: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, stream)
    turn = paced.begin(QUESTION, max_new_tokens=60)
    heard(paced)
    before = len(steps_of(paced, turn))
    clock.forward += 5
    paced.send(FULL_SPEED)
    _, finished = paced.finish(turn)
    path = tmp_path / "talk.ladechat.jsonl"
    path.write_bytes(b"".join(map(encode, [*paced.seen, Closed(seq=paced.seen[-1].seq, t=paced.seen[-1].t)])))
    recording = Recording.read(path)
    assert recording.notices == [] and recording.events[-1] == finished
    steps = [place for place, event in enumerate(recording.events) if event in steps_of(paced, turn)]
    last, next_one = steps[before - 1 : before + 1]
    assert recording.times[next_one] - recording.times[last] > 5
    player = Player(recording)
    player.seek(last + 1)
    player.due(0.0)
    assert not any(isinstance(event, Step) for event in player.due(4.9))
    assert player.due(recording.seconds)[-1] == finished


@pytest.mark.parametrize(
    "fields", [b'"steps_per_second":-1', b'"steps_per_second":1001', b'"steps_per_second":"4"', b'"step":1']
)
def test_a_pace_that_is_none_is_refused_and_changes_nothing(paced: Inside, fields: bytes) -> None:
    turn = paced.begin(QUESTION, steps=0, max_new_tokens=60)
    paced.send(b'{"command":"pace",' + fields + b"}\n")
    assert paced.until(Failed).code == "bad_command"
    heard(paced)
    assert steps_of(paced, turn) == [] and stopped(paced, turn).steps == 0


@pytest.mark.full
@pytest.mark.parametrize("by_command", [True, False])
def test_a_shutdown_and_the_end_of_the_input_end_an_engine_that_is_paused(by_command: bool) -> None:
    wire, _ = started()
    wire.send(PAUSE)
    wire.generate(QUESTION)
    wire.until(TurnStarted)
    heard(wire)
    if by_command:
        wire.send(Shutdown())
    assert (wire.wait_for_end() if by_command else wire.end()) == 0
