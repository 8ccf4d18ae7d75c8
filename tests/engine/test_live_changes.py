"""Settings that change all the time while answers are written: the text stays that of plain decoding."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from ladechat.engine.turn import Emit, Service, answer
from ladechat.model.loading import load
from ladechat.protocol import DECODERS, Event, Generate, Message, Settings, Step, Tuned, TurnFinished
from tests.engine.tokenizers import byte_level
from tests.tiny import random_model

LENGTH = 120


class Changing:
    """Changes something before every step, at random, until it has done so often enough."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service = service
        self._dice = random.Random(seed)
        self.changes = 0
        self.seen: set[Settings] = set()

    def stop_wanted(self) -> bool:
        return False

    def apply_changes(self, _emit: Emit) -> None:
        dice = self._dice
        changed: dict[str, Any] = {
            "window": dice.choice((1, 2, 5, 9, 20)),
            "ngram": dice.randint(2, 7),
            "guesses": dice.choice((0, 1, 5, 12)),
            "auto": dice.random() < 0.5,
            "pool_prompt": dice.random() < 0.8,
            "decoder": dice.choice(("lookahead", "lookahead", *DECODERS)),
        }
        names = dice.sample(sorted(changed), dice.randint(1, 3))
        before = self._service.decoders.settings
        self._service.decoders.apply(replace(before, **{name: changed[name] for name in names}))
        self.changes += 1
        self.seen.add(self._service.decoders.settings)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder, tokenizer = tmp_path_factory.mktemp("tiny"), byte_level()
    random_model(5, vocab_size=len(tokenizer)).save_pretrained(folder)
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
        def apply_changes(self, _emit: Emit) -> None:
            pass

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
        decoders_seen |= {settings.decoder for settings in changing.seen}
    assert decoders_seen == set(DECODERS)
    assert {settings.auto for settings in changing.seen} == {False, True}


def test_what_auto_takes_is_told_at_the_beginning_and_at_the_end_and_is_among_what_it_expects(
    service: Service,
) -> None:
    class Still(Changing):
        def apply_changes(self, _emit: Emit) -> None:
            pass

    service.decoders.apply(Settings(auto=True))
    service.decoders.measure_at_rest()
    events = events_of(service, "again and again and again", Still(service, 0))
    told = [event for event in events if isinstance(event, Tuned)]
    kinds = [type(event) for event in events]
    assert len(told) >= 2
    assert kinds.index(Tuned) < kinds.index(Step)
    assert kinds[-2:] == [Tuned, TurnFinished]
    for event in told:
        expected = {(one.window, one.ngram, one.guesses) for one in event.expectations}
        assert (event.window, event.ngram, event.guesses) in expected
        plain = event.expectations[0]
        assert (plain.window, plain.guesses, plain.tokens_per_step) == (0, 0, 1.0)
        assert event.costs[0].slots == 1 and all(one.ms > 0 for one in event.costs)
    service.decoders.apply(Settings())
    assert not any(isinstance(event, Tuned) for event in events_of(service, "again", Still(service, 0)))
