"""Steps that are emitted together say what they say one by one, in the same order, whatever happens between them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ladechat.decoder.verify_mask import SlotTree
from ladechat.engine import step_events, turn
from ladechat.engine.service import Service
from ladechat.engine.turn import Emit
from ladechat.protocol import Event, Failed, Settings, SettingsApplied, Step
from tests.checkpoints import LOOKAHEAD, load_on_cpu, service_of
from tests.engine.asking import Listener, ask, assert_adds_up, end_of, of_kind
from tests.engine.messages import user
from tests.made_up_maps import save_made_up

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

LENGTH = 40
NEVER = 99
SAID = user("again and again")
ONE_BY_ONE, ALL_AT_ONCE = -1.0, 1e9


class Acting(Listener):
    """Changes the decoder after one step, and wants a stop after another."""

    def __init__(self, service: Service, change: int, stop: int) -> None:
        super().__init__(stop + 2)  # it is asked before the prompt, and after its only part
        self._service, self._change = service, change + 2

    def until_due(self, emit: Emit) -> float:
        if self.asked == self._change and self._service.decoders.settings.decoder != "autoregressive":
            self._service.decoders.apply(Settings(decoder="autoregressive"))
            emit(SettingsApplied(settings=self._service.decoders.settings))
        return 0.0


def emitted(
    checkpoint: Path, together: float, change: int, stop: int, fail: int, settings: Settings = LOOKAHEAD
) -> list[Event]:
    """All that a turn says; its pass number `fail`, counted over steps, yields no numbers."""
    service = service_of(checkpoint, settings)
    runner: Any = service.loaded.runner
    forward, passes = runner.forward, 0

    def failing(tree: SlotTree) -> Any:
        nonlocal passes
        passes += len(runner.tokens) >= prompt
        logits = forward(tree)
        return logits * float("nan") if passes == fail else logits

    prompt = len(service.chat.fit([SAID], service.loaded.context_length, LENGTH).token_ids) - 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "FRAME_SECONDS", together)
        patch.setattr(service.cost, "refresh", lambda *_: 0.0)  # its passes would count
        patch.setattr(runner, "forward", failing)
        return ask(service, SAID, listener=Acting(service, change, stop), max_new_tokens=LENGTH)


def untimed(event: Event) -> Any:
    """What an event says, but for what was measured."""
    measured = {"timing", "prefill_seconds", "decode_seconds", "estimated_speedup", "memory", "t", "seed"}
    return {name: value for name, value in msgspec.to_builtins(event).items() if name not in measured}


NOTHING_ELSE = (NEVER, NEVER, NEVER)
CASES = [NOTHING_ELSE, (7, NEVER, NEVER), (NEVER, 9, NEVER), (5, 11, NEVER), (NEVER, NEVER, 8), (3, NEVER, 6)]


@pytest.mark.parametrize(("change", "stop", "fail"), CASES)
def test_steps_emitted_together_say_what_they_say_one_by_one(
    checkpoint: Path, change: int, stop: int, fail: int
) -> None:
    one_by_one, together = (emitted(checkpoint, way, change, stop, fail) for way in (ONE_BY_ONE, ALL_AT_ONCE))
    assert [untimed(event) for event in together] == [untimed(event) for event in one_by_one]
    assert len(assert_adds_up(together)) > 4
    assert end_of(together).reason == ("failed" if fail < NEVER else "stopped" if stop < NEVER else "max_new_tokens")
    assert bool(of_kind(together, Failed)) == (fail < NEVER)
    assert bool(of_kind(together, SettingsApplied)) == (change < NEVER)


@pytest.mark.parametrize(("change", "stop"), [(NEVER, NEVER), (7, NEVER), (NEVER, 9), (5, 11), (2, 3)])
def test_steps_of_auto_are_emitted_in_order_wherever_it_stops_drafting(
    checkpoint: Path, change: int, stop: int
) -> None:
    """How much auto drafts depends on what passes take: only the text is the same."""
    events = emitted(checkpoint, ALL_AT_ONCE, change, stop, fail=10**6, settings=Settings())
    undisturbed = emitted(checkpoint, ALL_AT_ONCE, NEVER, NEVER, NEVER)
    assert_adds_up(events)
    finished = end_of(events)
    assert finished.token_ids == end_of(undisturbed).token_ids[: len(finished.token_ids)]
    whole = len(finished.token_ids) == LENGTH
    assert finished.reason in {"max_new_tokens"} if stop == NEVER else {"stopped", *["max_new_tokens"] * whole}


def test_where_a_step_has_no_text_those_before_it_are_emitted_and_the_turn_ends(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_of, calls = step_events.step_event, 0

    def failing(*arguments: Any, **named: Any) -> Step:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ValueError("no such token")
        return event_of(*arguments, **named)

    monkeypatch.setattr(turn, "step_event", failing)
    events = emitted(checkpoint, ALL_AT_ONCE, *NOTHING_ELSE)
    assert [step.index for step in of_kind(events, Step)][:3] == [0, 1, 2]
    assert isinstance(events[-2], Failed) and "no such token" in events[-2].message
    assert end_of(events).reason == "failed"


@pytest.mark.parametrize("together", [ONE_BY_ONE, 0.005])
def test_plain_passes_are_timed_for_all_larger_steps_but_the_last(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, together: float
) -> None:
    service, asked_for = service_of(checkpoint), list[float]()
    monkeypatch.setattr(turn, "FRAME_SECONDS", together)

    def refresh(seconds: float = 0.0) -> float:
        asked_for.append(seconds)
        assert len(service.loaded.runner.tokens) < service.loaded.context_length
        return 0.0

    monkeypatch.setattr(service.cost, "refresh", refresh)
    steps = of_kind(ask(service, SAID, max_new_tokens=LENGTH), Step)
    larger = [step.timing.step_ms / 1000 for step in steps if step.timing.slots > 1]
    if together == ONE_BY_ONE:
        assert asked_for == pytest.approx([0.0, *larger[:-1]], abs=2e-6)
    else:
        assert asked_for[0] == 0.0 and sum(asked_for) <= sum(larger[:-1]) + 1e-4


@pytest.mark.parametrize("decoder", ["autoregressive", "hidden_transfer", "medusa"])
def test_a_pass_of_one_slot_with_hidden_states_is_no_measure_of_plain_decoding(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoder: str
) -> None:
    """It takes longer, as does what is shown of it, so the speedup would look higher."""
    loaded = load_on_cpu(checkpoint, maps=save_made_up(checkpoint, tmp_path))
    service, timed = Service.of(loaded, Settings(decoder=decoder)), list[int]()
    monkeypatch.setattr(service.cost, "refresh", lambda _seconds=0.0: 0.0)
    monkeypatch.setattr(service.cost, "observe", lambda cached, *_seconds: timed.append(cached))
    steps = of_kind(ask(service, SAID, max_new_tokens=8), Step)
    alone = [step.timing.cache_length for step in steps if step.timing.slots == 1]
    assert alone, "the first pass has no drafts"
    assert timed == (alone if decoder == "autoregressive" else [])
