"""Settings that change all the time while answers are written: the text stays that of plain decoding."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from ladechat import catalog
from ladechat.engine import turn
from ladechat.engine.turn import Emit, Service, answer
from ladechat.model.load import load
from ladechat.protocol import Event, Generate, Message, PolicyChoice, Settings, Step, TurnFinished, Value
from tests.engine.clock import Clock
from tests.engine.tokenizers import byte_level
from tests.made_up_maps import save_made_up
from tests.tiny import random_model

LENGTH = 120


class Changing:
    """Changes something before every step, at random, until it has done so often enough."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service = service
        self._dice = random.Random(seed)
        self.changes = 0
        self.seen: set[str] = set()

    def take_commands(self) -> bool:
        return False

    def until_due(self, _emit: Emit) -> float:
        dice = self._dice
        values: dict[str, Value] = {
            "window": dice.choice((1, 2, 5, 9, 20)),
            "ngram": dice.randint(2, 7),
            "guesses": dice.choice((0, 1, 5, 12)),
            "nodes": dice.choice((1, 4, 16)),
            "carriers": dice.choice((1, 4, 64)),
            "pool_prompt": dice.random() < 0.8,
        }
        named = {name: values[name] for name in dice.sample(sorted(values), dice.randint(0, 3))}
        decoder = (
            dice.choice(list(catalog.DECODERS)) if dice.random() < 0.4 else self._service.decoders.settings.decoder
        )
        self._service.decoders.apply(replace(self._service.decoders.settings, decoder=decoder, parameters=named))
        self._service.decoders.watch(dice.random() < 0.5)
        self.changes += 1
        self.seen.add(decoder)
        return 0.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder, tokenizer = tmp_path_factory.mktemp("tiny"), byte_level()
    random_model(5, vocab_size=len(tokenizer)).save_pretrained(folder)
    save_made_up(folder)
    tokenizer.save_pretrained(folder)
    return Service.of(load(folder, "tiny", "cpu", "float32", lambda _: None, lambda _: None), Settings())


def events_of(service: Service, text: str, listener: Any) -> list[Event]:
    events: list[Event] = []
    question = Message(role="user", content=text)
    answer(
        service, Generate(turn=1, messages=[question], max_new_tokens=LENGTH), lambda *new: events.extend(new), listener
    )
    return events


@pytest.mark.parametrize("changes", [150, pytest.param(1000, marks=pytest.mark.full)])
def test_random_changes_at_every_step_leave_the_text_alone(service: Service, changes: int) -> None:
    class Still(Changing):
        def until_due(self, _emit: Emit) -> float:
            return 0.0

    changing = Changing(service, seed=changes)
    decoders_seen = set()
    number = 0
    while changing.changes < changes:
        number += 1
        service.decoders.apply(Settings(decoder="autoregressive"))
        *_, plain = events_of(service, f"question {number}", Still(service, 0))
        service.decoders.apply(Settings())
        events = events_of(service, f"question {number}", changing)
        finished = events[-1]
        assert isinstance(plain, TurnFinished) and isinstance(finished, TurnFinished)
        assert (finished.token_ids, finished.reason) == (plain.token_ids, plain.reason)
        decoders_seen |= changing.seen
    assert decoders_seen == set(catalog.DECODERS)


def test_what_auto_chooses_is_told_behind_its_first_step_and_at_the_end(service: Service) -> None:
    class Still(Changing):
        def until_due(self, _emit: Emit) -> float:
            return 0.0

    service.decoders.apply(Settings(decoder="auto"))
    service.decoders.prepare()
    events = events_of(service, "again and again and again", Still(service, 0))
    told = [event for event in events if isinstance(event, PolicyChoice)]
    kinds = [type(event) for event in events]
    assert told and kinds.index(Step) < kinds.index(PolicyChoice)
    assert kinds[-2:] == [PolicyChoice, TurnFinished]
    for event in told:
        assert event.expected[0].tokens == 1.0
        assert event.costs[0].slots == 1 and all(one.ms > 0 for one in event.costs)
        assert event.window == any(isinstance(step, Step) and step.window is not None for step in events)
    service.decoders.apply(Settings(decoder="lookahead"))
    assert not any(isinstance(event, PolicyChoice) for event in events_of(service, "again", Still(service, 0)))


def test_passes_that_are_timed_in_mid_answer_count_for_no_step(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever turns to `auto` in the middle of an answer has passes timed, which takes long on a large model."""
    clock = Clock(monkeypatch, turn)
    fresh = Service.of(service.loaded, Settings(decoder="lookahead"))
    costs = fresh.decoders._shared.costs
    monkeypatch.setattr(costs, "_file", None)

    def slowly() -> None:
        if not costs.known():
            costs._set({1: 0.001, 64: 0.002})
            clock.forward += 1000.0
            costs.timed_seconds += 1000.0

    monkeypatch.setattr(costs, "refresh", slowly)

    class ToAuto(Changing):
        def until_due(self, _emit: Emit) -> float:
            self.changes += 1
            if self.changes == 5:
                fresh.decoders.apply(Settings(decoder="auto"))
            return 0.0

    events = events_of(fresh, "again and again", ToAuto(fresh, 0))
    assert costs.timed_seconds == 1000.0
    assert max(event.timing.step_ms for event in events if isinstance(event, Step)) < 500_000
