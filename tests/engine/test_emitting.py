"""Steps that are emitted together say what they say one by one, in the same order, whatever happens between them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ladechat.decoder.verify_mask import SlotTree
from ladechat.engine import step_events, turn
from ladechat.engine.turn import Emit, Service, answer
from ladechat.model.load import load
from ladechat.protocol import Event, Failed, Generate, Message, Settings, SettingsApplied, Step, TurnFinished
from tests.engine.tokenizers import byte_level
from tests.made_up_maps import save_made_up
from tests.tiny import random_model

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

LENGTH = 40
NEVER = 99
LOOKAHEAD = Settings(decoder="lookahead")
ONE_BY_ONE, ALL_AT_ONCE = -1.0, 1e9


class Acting:
    """Changes the decoder behind one step, and wants a stop behind another."""

    def __init__(self, service: Service, change: int, stop: int) -> None:
        self._service, self._change, self._stop = service, change, stop
        self._steps = -2  # it is asked before the prompt, and behind its only part

    def take_commands(self) -> bool:
        self._steps += 1
        return self._steps == self._stop

    def until_due(self, emit: Emit) -> float:
        if self._steps == self._change and self._service.decoders.settings.decoder != "autoregressive":
            self._service.decoders.apply(Settings(decoder="autoregressive"))
            emit(SettingsApplied(settings=self._service.decoders.settings))
        return 0.0


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, tokenizer = tmp_path_factory.mktemp("tiny"), byte_level()
    random_model(5, vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def emitted(
    checkpoint: Path, together: float, change: int, stop: int, fail: int, settings: Settings = LOOKAHEAD
) -> list[Event]:
    """All that a turn says; its pass number `fail`, counted over steps, yields no numbers."""
    service = Service.of(load(checkpoint, "tiny", "cpu", "float32", lambda _: None, lambda _: None), settings)
    runner: Any = service.loaded.runner
    forward, passes = runner.forward, 0

    def failing(tree: SlotTree) -> Any:
        nonlocal passes
        passes += len(runner.tokens) >= prompt
        logits = forward(tree)
        return logits * float("nan") if passes == fail else logits

    events: list[Event] = []
    said = Message(role="user", content="again and again")
    prompt = len(service.chat.fit([said], service.loaded.context_length, LENGTH).token_ids) - 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "FRAME_SECONDS", together)
        patch.setattr(service.cost, "refresh", lambda *_: 0.0)  # its passes would count
        patch.setattr(runner, "forward", failing)
        command = Generate(turn=1, messages=[said], max_new_tokens=LENGTH)
        answer(service, command, lambda *new: events.extend(new), Acting(service, change, stop))
    return events


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
    steps = [event for event in together if isinstance(event, Step)]
    assert [step.index for step in steps] == list(range(len(steps))) and len(steps) > 4
    finished = together[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.text == "".join(piece for step in steps for piece in step.pieces)
    assert finished.reason == ("failed" if fail < NEVER else "stopped" if stop < NEVER else "max_new_tokens")
    assert any(isinstance(event, Failed) for event in together) == (fail < NEVER)
    assert any(isinstance(event, SettingsApplied) for event in together) == (change < NEVER)


@pytest.mark.parametrize(("change", "stop"), [(NEVER, NEVER), (7, NEVER), (NEVER, 9), (5, 11), (2, 3)])
def test_steps_of_auto_are_emitted_in_order_wherever_it_stops_drafting(
    checkpoint: Path, change: int, stop: int
) -> None:
    """How much auto drafts depends on what passes take: only the text is the same."""
    events = emitted(checkpoint, ALL_AT_ONCE, change, stop, fail=10**6, settings=Settings())
    undisturbed = emitted(checkpoint, ALL_AT_ONCE, NEVER, NEVER, NEVER)
    *_, finished = events
    assert isinstance(finished, TurnFinished) and isinstance(undisturbed[-1], TurnFinished)
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.index for step in steps] == list(range(len(steps)))
    assert [token for step in steps for token in step.token_ids] == finished.token_ids
    assert finished.token_ids == undisturbed[-1].token_ids[: len(finished.token_ids)]
    assert finished.text == "".join(piece for step in steps for piece in step.pieces)
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
    assert [event.index for event in events if isinstance(event, Step)][:3] == [0, 1, 2]
    *_, failed, finished = events
    assert isinstance(failed, Failed) and "no such token" in failed.message
    assert isinstance(finished, TurnFinished) and finished.reason == "failed"


class Undisturbed:
    """Nobody stops or changes anything."""

    def take_commands(self) -> bool:
        return False

    def until_due(self, _emit: Emit) -> float:
        return 0.0


@pytest.mark.parametrize("together", [ONE_BY_ONE, 0.005])
def test_plain_passes_are_timed_for_all_larger_steps_but_the_last(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, together: float
) -> None:
    service = Service.of(load(checkpoint, "tiny", "cpu", "float32", lambda _: None, lambda _: None), LOOKAHEAD)
    steps, asked_for = list[Step](), list[float]()
    monkeypatch.setattr(turn, "FRAME_SECONDS", together)

    def refresh(seconds: float = 0.0) -> float:
        asked_for.append(seconds)
        assert len(service.loaded.runner.tokens) < service.loaded.context_length
        return 0.0

    def emit(*events: Event) -> None:
        steps.extend(event for event in events if isinstance(event, Step))

    monkeypatch.setattr(service.cost, "refresh", refresh)
    said = Message(role="user", content="again and again")
    answer(service, Generate(turn=1, messages=[said], max_new_tokens=LENGTH), emit, Undisturbed())
    larger = [step.timing.step_ms / 1000 for step in steps if step.timing.slots > 1]
    if together == ONE_BY_ONE:
        assert asked_for == pytest.approx([0.0, *larger[:-1]], abs=2e-6)
    else:
        assert asked_for[0] == 0.0 and sum(asked_for) <= sum(larger[:-1]) + 1e-4


@pytest.mark.parametrize("decoder", ["autoregressive", "hidden_transfer", "medusa"])
def test_a_pass_of_one_slot_with_hidden_states_is_no_measure_of_plain_decoding(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, decoder: str
) -> None:
    """It takes longer, so the speedup would look higher."""
    maps = save_made_up(checkpoint)
    loaded = load(checkpoint, "tiny", "cpu", "float32", lambda _: None, lambda _: None, maps=maps)
    service, timed, steps = Service.of(loaded, Settings(decoder=decoder)), list[int](), list[Step]()
    monkeypatch.setattr(service.cost, "refresh", lambda _seconds=0.0: 0.0)
    monkeypatch.setattr(service.cost, "observe", lambda cached, _seconds: timed.append(cached))

    def emit(*events: Event) -> None:
        steps.extend(event for event in events if isinstance(event, Step))

    said = Message(role="user", content="again and again")
    answer(service, Generate(turn=1, messages=[said], max_new_tokens=8), emit, Undisturbed())
    alone = [step.timing.cache_length for step in steps if step.timing.slots == 1]
    assert alone, "the first pass has no drafts"
    assert timed == (alone if decoder == "autoregressive" else [])
