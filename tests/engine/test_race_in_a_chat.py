"""Races between the answers of a chat, in its engine: the chat does not notice them, and no lane knows the chat."""

import dataclasses
import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from ladechat.engine.plain_cost import PlainStepCost
from ladechat.engine.service import Service
from ladechat.model.loaded import LoadedModel
from ladechat.model.runners.tree import TreeRunner
from ladechat.protocol import (
    Command,
    Configure,
    Event,
    Failed,
    Generate,
    Message,
    Settings,
    SettingsApplied,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
)
from tests.checkpoints import LOOKAHEAD, load_on_cpu
from tests.engine.asking import Scripted, end_of, failure, of_kind, said_by
from tests.engine.messages import user

LENGTH = 16
LANES = ("autoregressive", "lookahead", "suffix")


@pytest.fixture(autouse=True)
def _nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainStepCost, "refresh", lambda *_: 0.0)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # many tests' objects: it would take most of the time


class Chat(Scripted):
    """A conversation with an engine, and races in it."""

    def __init__(self, loaded: LoadedModel, settings: Settings = LOOKAHEAD) -> None:
        runner = TreeRunner(loaded.model, loaded.context_length)
        super().__init__(Service.of(dataclasses.replace(loaded, runner=runner), settings))
        self.messages: list[Message] = []

    def say(self, text: str) -> list[Event]:
        """Ask, and add the answer to the conversation."""
        self.messages.append(user(text))
        events = self.ask(*self.messages, turn=9, max_new_tokens=LENGTH, seed=3)
        self.messages.append(said_by(end_of(events)))
        return events

    def race(self, messages: Sequence[Message], during: Sequence[Command] = ()) -> list[Event]:
        """All lanes, on the last of these messages."""
        lanes = [
            Generate(turn=0, messages=list(messages), max_new_tokens=LENGTH, fresh=True, seed=0, decoder=name)
            for name in LANES
        ]
        return self.carry_out(*lanes, during=during)

    def cached(self) -> tuple[list[int], list[torch.Tensor]]:
        """The cached tokens, with their keys and values."""
        runner: Any = self.service.loaded.runner
        runner.take_back()
        return list(runner.tokens), [row.clone() for row in runner.cache.all_rows(len(runner.tokens))]


@pytest.fixture(scope="module")
def loaded(checkpoint: Path) -> LoadedModel:
    return load_on_cpu(checkpoint)


def untimed(events: Sequence[Event]) -> list[Any]:
    """What events say, but for what was measured."""
    measured = {"timing", "prefill_seconds", "decode_seconds", "estimated_speedup", "memory"}
    said = [msgspec.to_builtins(event) for event in events]
    return [{name: value for name, value in one.items() if name not in measured} for one in said]


@pytest.mark.parametrize("temperature", [0.0, 1.2])
@pytest.mark.parametrize("again", [True, False], ids=["the last question", "another question"])
def test_a_race_leaves_no_trace_in_the_next_answer(loaded: LoadedModel, again: bool, temperature: float) -> None:
    settings = msgspec.structs.replace(LOOKAHEAD, temperature=temperature)
    undisturbed, chat = Chat(loaded, settings), Chat(loaded, settings)
    for each in (undisturbed, chat):
        each.say("One, two, three?")
        each.say("And then?")
    assert len(chat.race(chat.messages[:-1] if again else [*chat.messages, user("Or what?")])) > 2 * len(LANES)
    (tokens, rows), (expected, expected_rows) = chat.cached(), undisturbed.cached()
    assert tokens == expected
    assert all(torch.equal(row, other) for row, other in zip(rows, expected_rows, strict=True))
    assert chat.service.decoders.settings == undisturbed.service.decoders.settings
    assert untimed(chat.say("What next?")) == untimed(undisturbed.say("What next?"))


def test_the_cache_comes_back_after_races_on_several_texts_and_after_one_that_was_stopped(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    chat.say("One, two, three?")
    chat.say("And then?")
    tokens, rows = chat.cached()
    chat.race([user("Who?")], during=[Stop()])
    chat.race(chat.messages[:-1])
    chat.race([user("Whose long question is this, and what is it good for?"), *chat.messages[1:2], user("So?")])
    again, restored = chat.cached()
    assert again == tokens and all(torch.equal(row, other) for row, other in zip(rows, restored, strict=True))


def test_lanes_draft_what_they_would_in_an_engine_of_their_own(loaded: LoadedModel) -> None:
    chat, alone = Chat(loaded), Chat(loaded)
    chat.say("One, two, three?")
    chat.say("And then?")
    question = chat.messages[:-1]
    raced, apart = (
        [msgspec.structs.replace(step, logprobs=[]) for step in of_kind(each.race(question), Step)]
        for each in (chat, alone)  # one has read the prompt in several passes, so probabilities are rounded differently
    )
    assert untimed(raced) == untimed(apart)


def test_the_first_lane_reads_the_prompt_and_the_others_have_it(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    started = of_kind(chat.race([user("One, two, three?")]), TurnStarted)
    assert [one.settings.decoder for one in started] == list(LANES)
    length = len(started[0].prompt_ids)
    assert started[0].cached_tokens == 0 and {one.cached_tokens for one in started[1:]} == {length}


def test_a_decoder_for_one_answer_is_no_change_of_settings_and_changes_wait_for_its_end(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    chat.say("One?")
    before = chat.service.decoders.settings
    events = chat.race([user("One?")], during=[Configure(temperature=0.5)])
    assert [type(event) for event in events if isinstance(event, TurnFinished | SettingsApplied)] == [
        TurnFinished,
        SettingsApplied,
        *[TurnFinished] * (len(LANES) - 1),
    ]
    assert chat.service.decoders.settings == msgspec.structs.replace(before, temperature=0.5)


def test_a_decoder_that_there_is_not_is_refused_for_that_answer_alone(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    (failed,) = chat.carry_out(Generate(turn=4, messages=[user("One?")], decoder="magic"))
    assert isinstance(failed, Failed) and failed.turn == 4 and "'magic'" in failed.message
    assert end_of(chat.say("One?")).turn == 9


def test_a_lane_that_uses_up_the_memory_changes_no_settings_and_the_chat_goes_on(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, chat = Chat(loaded), Chat(loaded)
    for each in (undisturbed, chat):
        each.say("One, two, three?")
    forward = chat.service.loaded.runner.forward

    def failing(tree: Any) -> Any:
        monkeypatch.setattr(chat.service.loaded.runner, "forward", forward)
        raise MemoryError

    monkeypatch.setattr(chat.service.loaded.runner, "forward", failing)
    events = chat.race(chat.messages[:-1])
    failed = failure(events)
    assert (failed.code, failed.turn, failed.fatal) == ("out_of_memory", 0, False)
    assert not of_kind(events, SettingsApplied)
    assert end_of(chat.say("And then?")).token_ids == end_of(undisturbed.say("And then?")).token_ids
