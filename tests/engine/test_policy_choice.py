"""What is told of `auto` is what it does, and the time that it takes to time passes belongs to no step."""

from pathlib import Path

import pytest

from ladechat.engine import turn
from ladechat.engine.service import Service
from ladechat.engine.turn import Emit
from ladechat.protocol import Event, PassCosts, PolicyChoice, Settings, Step
from tests.checkpoints import service_of
from tests.engine.asking import Listener, ask, of_kind
from tests.engine.clock import Clock

TIMING_SECONDS = 1000.0


class ToAuto(Listener):
    """Turns to `auto` before a step, counted from 0."""

    def __init__(self, service: Service, before: int) -> None:
        super().__init__()
        self._service, self._left = service, before

    def until_due(self, _emit: Emit) -> float:
        if self._left == 0:
            self._service.decoders.apply(Settings(decoder="auto"))
        self._left -= 1
        return 0.0


@pytest.fixture
def service(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A runner whose larger passes cost hardly more than small ones, and whose timing takes long."""
    clock = Clock(monkeypatch, turn)
    service = service_of(checkpoint)
    costs = service.decoders.shared.costs

    def refresh() -> None:
        if not costs.known():
            clock.forward += TIMING_SECONDS
            costs.timed_seconds += TIMING_SECONDS
            costs._set({1: 0.001, 64: 0.0011})

    monkeypatch.setattr(costs, "refresh", refresh)
    return service


def events_of(service: Service, to_auto_before: int) -> list[Event]:
    return ask(service, "again and again", listener=ToAuto(service, to_auto_before), max_new_tokens=40)


@pytest.mark.parametrize("before", [0, 5], ids=["at the beginning", "in the middle"])
def test_the_time_that_timing_passes_takes_is_no_steps_time(service: Service, before: int) -> None:
    steps = of_kind(events_of(service, before), Step)
    assert service.decoders.timed_seconds == TIMING_SECONDS
    for step in steps:
        assert step.timing.forward_ms <= step.timing.step_ms + 1e-3 < 1000 * TIMING_SECONDS / 2
    assert [step.decision is None for step in steps] == [step.index < before for step in steps]
    for step in steps[before:]:
        assert step.decision is not None
        assert (step.decision.why in ("paused", "none")) == (step.timing.slots == 1)


def test_what_passes_cost_is_reported_with_an_answer_where_somebody_watches_and_is_no_steps_time(
    service: Service,
) -> None:
    assert not of_kind(events_of(service, -1), PassCosts)
    service.decoders.watch(lens=False, costs=True)
    events = events_of(service, -1)
    (measured,) = of_kind(events, PassCosts)
    assert {one.slots: one.ms for one in measured.costs} == pytest.approx({1: 1.0, 64: 1.1})
    assert events.index(measured) < events.index(of_kind(events, Step)[0])
    assert all(step.timing.step_ms < 1000 * TIMING_SECONDS / 2 for step in of_kind(events, Step))


def test_the_window_is_told_to_take_part_exactly_where_it_does(service: Service) -> None:
    """It is chosen at the beginning, by what passes cost then; what is seen of costs later does not bring it back."""
    service.decoders.apply(Settings(decoder="auto"))
    service.decoders.prepare()
    costs = service.decoders.shared.costs
    for now in ({1: 0.001, 64: 0.1}, {1: 0.001, 64: 0.001}):
        costs._set(now)
        events = events_of(service, -1)
        shown = any(step.window is not None for step in of_kind(events, Step))
        told = {event.window for event in of_kind(events, PolicyChoice)}
        assert told == {shown} == {True}
