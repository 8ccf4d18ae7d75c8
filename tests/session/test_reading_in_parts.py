"""A recording that is read in parts is the one that is read at once, wherever the parts end."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.protocol import Asked, Closed, Header, Step, encode
from ladechat.session.playing import NotRead, Player
from ladechat.session.recordings import reading
from ladechat.session.recordings.recording import Recording
from tests.session.streams import HEADER, stream, turn, write

ASKED = [Asked(turn=number, text=f"Question {number}?") for number in (1, 2)]
LINES = [encode(event) for event in stream(ASKED[0], *turn(1), ASKED[1], *turn(2), Closed())]
BAD = b"{\n", b"\n", b"[1]\n", b'{"event":"step","turn":7}\n'
DAMAGE = st.sampled_from([*BAD, b'{"event":"new"}\n', encode(HEADER)])


def files(folder: Path, lines: list[bytes], cut: int) -> Path:
    data = b"".join(lines)
    return write(folder / "talk.jsonl", data[: len(data) - cut])


def everything(recording: Recording) -> tuple[object, ...]:
    """All that is known of a recording."""
    events, turns = list(recording.events), list(recording.turns)
    steps = [recording.step_at(place) for place in range(len(events))]
    found = [list(recording.places(text)) for text in ("question", "the n", "e")]
    return events, recording.times, turns, recording.steps_before, steps, found, recording.notices, recording.closed


@given(
    size=st.integers(1, 6000),
    damaged=st.dictionaries(st.integers(1, len(LINES) - 1), DAMAGE, max_size=6),
    cut=st.integers(0, 300),
    idle_limit=st.sampled_from([None, 0.5]),
)
def test_wherever_parts_end_the_whole_is_the_same(
    size: int,
    damaged: dict[int, bytes],
    cut: int,
    idle_limit: float | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines = [damaged.get(place, line) for place, line in enumerate(LINES)]
    path = files(tmp_path_factory.mktemp("parts"), lines, cut)
    whole = Recording.read(path, idle_limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PART_BYTES", size)
        parts = Recording(path, idle_limit)
        assert isinstance(parts.events[0], Header)
        shares = [parts.share]
        while not parts.complete:
            before = everything(parts)
            parts.take(parts.fetch())
            shares.append(parts.share)
            assert list(parts.events)[: len(before[0])] == before[0]  # type: ignore[arg-type]
    assert everything(parts) == everything(whole)
    assert shares == sorted(shares) and shares[-1] == 1.0


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """A recording of which the first question is read, and a step of its answer."""
    steps = next(place for place, event in enumerate(stream(ASKED[0], *turn(1))) if isinstance(event, Step))
    monkeypatch.setattr(reading, "PART_BYTES", sum(map(len, LINES[: steps + 1])))
    recording = Recording(write(tmp_path / "talk.jsonl", *LINES))
    assert recording.steps_before[-1] == 1 and not recording.complete
    return recording


def test_what_is_not_read_yet_is_not_answered_and_what_is_read_is(opened: Recording) -> None:
    player = Player(opened)
    assert player.step_forward() == len(opened.events) and player.next_turn() == 2
    player.seek(player.step_forward())
    assert not player.at_end and player.due(0.0) == [] == player.due(1e6) and player.playing
    for unknown in (player.step_forward, player.next_turn, player.end, lambda: player.place_at(1.0)):
        with pytest.raises(NotRead):
            unknown()
    with pytest.raises(NotRead):
        player.found("question")
    assert player.place_at(opened.share) == len(opened.events) and 0 < player.fraction < 1
    while not opened.complete:
        opened.take(opened.fetch())
    assert player.step_forward() == player.position + 1 and player.end() == player.place_at(1.0) == len(opened.events)
    assert player.next_turn() == opened.turns[1].position + 1 and player.found("question 2") == player.next_turn()


def test_a_disk_that_fails_leaves_what_was_read_and_says_so(opened: Recording) -> None:
    before = list(opened.events)
    opened.break_off(OSError(5, "Input/output error"))
    assert opened.complete and list(opened.events) == before and opened.share == 1.0
    assert opened.notices == [
        "The session was interrupted: the recording has no closing line.",
        "The rest of talk.jsonl cannot be read: Input/output error.",
    ]
