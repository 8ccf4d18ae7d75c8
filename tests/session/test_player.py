"""Playing a recording: at its own pace or faster, and from step to step and question to question."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.protocol import Asked, Closed, Step
from ladechat.session.playing import Player
from ladechat.session.recordings.recording import Recording
from tests.session.streams import recorded, turn


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
