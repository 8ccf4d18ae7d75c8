"""Bursts are spread over frames: nothing is dropped, order is kept, and the screen never lags far behind."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ladechat.protocol import Event, Loading, Step
from ladechat.session.pacing import SMOOTHED_FRAMES, Pacer
from tests.widgets.sample_steps import plain_step

STEP = plain_step()
ARRIVALS = st.lists(st.lists(st.booleans(), max_size=40), max_size=20)
"""For each frame, what has arrived before it: True for a step, False for another event."""


def events(kinds: list[bool], first: int = 0) -> list[Event]:
    return [
        msgspec.structs.replace(STEP, seq=first + number)
        if is_step
        else Loading(seq=first + number, stage=1, stages=1, doing="loading")
        for number, is_step in enumerate(kinds)
    ]


def drain(pacer: Pacer, frames: int) -> list[list[Event]]:
    return [pacer.frame() for _ in range(frames)]


def steps_in(frame: list[Event]) -> int:
    return sum(isinstance(event, Step) for event in frame)


@given(ARRIVALS, st.integers(0, 5))
def test_nothing_is_dropped_and_the_order_is_kept(arrivals: list[list[bool]], frames_per_step: int) -> None:
    pacer = Pacer()
    pacer.frames_per_step = frames_per_step
    sent: list[Event] = []
    shown: list[Event] = []
    for kinds in arrivals:
        new = events(kinds, len(sent))
        sent += new
        for event in new:
            pacer.put(event)
        shown += pacer.frame()
    most = max(SMOOTHED_FRAMES * 10, len(sent) * (frames_per_step + 1))
    shown += [event for frame in drain(pacer, most) for event in frame]
    assert shown == sent


@given(st.integers(1, 2000))
def test_a_burst_is_shown_little_by_little_and_soon(steps: int) -> None:
    pacer = Pacer()
    for event in events([True] * steps):
        pacer.put(event)
    shares: list[int] = []
    while sum(shares) < steps:
        shares.append(steps_in(pacer.frame()))
        assert shares[-1] >= 1
    assert max(shares) <= -(-steps // SMOOTHED_FRAMES)
    # A share of what is left goes each frame; so the rest halves every ten frames or so.
    assert len(shares) <= SMOOTHED_FRAMES * (1 + steps.bit_length())


@given(st.integers(1, 8))
def test_a_steady_stream_never_lags_by_more_than_the_smoothing(steps_a_frame: int) -> None:
    pacer = Pacer()
    waiting = 0
    for _ in range(100):
        for event in events([True] * steps_a_frame):
            pacer.put(event)
        waiting += steps_a_frame - steps_in(pacer.frame())
        assert waiting <= steps_a_frame * SMOOTHED_FRAMES


@given(st.integers(1, 12), st.integers(1, 30))
def test_slow_motion_shows_one_step_in_so_many_frames(frames_per_step: int, steps: int) -> None:
    pacer = Pacer()
    pacer.frames_per_step = frames_per_step
    for event in events([True] * steps):
        pacer.put(event)
    shown = [steps_in(frame) for frame in drain(pacer, frames_per_step * steps)]
    assert shown == ([0] * (frames_per_step - 1) + [1]) * steps


def test_what_is_no_step_waits_for_the_steps_before_it_and_for_nothing_else() -> None:
    pacer = Pacer()
    pacer.frames_per_step = 3
    for event in events([False, True, False]):
        pacer.put(event)
    assert [[event.seq for event in frame] for frame in drain(pacer, 4)] == [[0], [], [1, 2], []]


def test_draining_gives_all_that_was_not_shown_in_its_order() -> None:
    pacer = Pacer()
    queued = events([True] * 40)
    for event in queued:
        pacer.put(event)
    shown = pacer.frame()
    assert shown + pacer.drain() == queued
    assert pacer.frame() == []
    pacer.put(STEP)
    assert pacer.frame() == [STEP]


def test_without_events_a_frame_is_empty() -> None:
    assert Pacer().frame() == []
