"""Settings that change all the time while answers are written: the text stays that of plain decoding."""

import random

import pytest
from msgspec.structs import replace

from ladechat import catalog
from ladechat.engine.service import Service
from ladechat.engine.turn import Emit
from ladechat.protocol import PolicyChoice, Settings, Step, TurnFinished, Value
from tests.checkpoints import save_tiny, service_of
from tests.engine.asking import Listener, ask, end_of, of_kind
from tests.made_up_maps import save_made_up

LENGTH = 120


class Changing(Listener):
    """Changes something before every step, at random, until it has done so often enough."""

    def __init__(self, service: Service, seed: int) -> None:
        super().__init__()
        self._service = service
        self._dice = random.Random(seed)
        self.changes = 0
        self.seen: set[str] = set()

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
    folder = save_tiny(tmp_path_factory.mktemp("with maps"))
    save_made_up(folder)
    return service_of(folder, Settings())


@pytest.mark.parametrize("changes", [150, pytest.param(1000, marks=pytest.mark.full)])
def test_random_changes_at_every_step_leave_the_text_alone(service: Service, changes: int) -> None:
    changing = Changing(service, seed=changes)
    decoders_seen = set()
    number = 0
    while changing.changes < changes:
        number += 1
        service.decoders.apply(Settings(decoder="autoregressive"))
        plain = end_of(ask(service, f"question {number}", max_new_tokens=LENGTH))
        service.decoders.apply(Settings())
        finished = end_of(ask(service, f"question {number}", listener=changing, max_new_tokens=LENGTH))
        assert (finished.token_ids, finished.reason) == (plain.token_ids, plain.reason)
        decoders_seen |= changing.seen
    assert decoders_seen == set(catalog.DECODERS)


def test_what_auto_chooses_is_told_behind_its_first_step_and_at_the_end(service: Service) -> None:
    service.decoders.apply(Settings(decoder="auto"))
    service.decoders.prepare()
    events = ask(service, "again and again and again", max_new_tokens=LENGTH)
    told = of_kind(events, PolicyChoice)
    kinds = [type(event) for event in events]
    assert told and kinds.index(Step) < kinds.index(PolicyChoice)
    assert kinds[-2:] == [PolicyChoice, TurnFinished]
    for event in told:
        tokens = [one.tokens for one in event.expected]
        assert event.slots >= 1 and tokens[0] == 1.0 and tokens == sorted(tokens)
        assert event.costs[0].slots == event.expected[0].slots == 1 and all(one.ms > 0 for one in event.costs)
        assert event.window == any(step.window is not None for step in of_kind(events, Step))
    service.decoders.apply(Settings(decoder="lookahead"))
    assert not of_kind(ask(service, "again"), PolicyChoice)
