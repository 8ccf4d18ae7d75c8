"""Races between the answers of a chat, in its engine: the chat does not notice them, and no lane knows the chat."""

import dataclasses
import gc
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import torch

from ladechat.engine.plain_cost import PlainStepCost
from ladechat.engine.server import Engine
from ladechat.engine.turn import Service
from ladechat.model.load import LoadedModel, load
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
from tests.engine.messages import user
from tests.engine.tokenizers import byte_level
from tests.tiny import random_model

LENGTH = 16
LANES = ("autoregressive", "lookahead", "suffix")
LOOKAHEAD = Settings(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder, tokenizer = tmp_path_factory.mktemp("tiny"), byte_level()
    random_model(5, vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load(folder, "tiny", "cpu", "float32", lambda _: None, lambda _: None)


@pytest.fixture(autouse=True)
def _nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainStepCost, "refresh", lambda *_: 0.0)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # many tests' objects: it would take most of the time


class Chat:
    """An engine without a process: it is its own stream, and an inbox that keeps to a script."""

    def __init__(self, loaded: LoadedModel, settings: Settings = LOOKAHEAD) -> None:
        runner = TreeRunner(loaded.model, loaded.context_length)
        self.service = Service.of(dataclasses.replace(loaded, runner=runner), settings)
        self.events: list[Event] = []
        self.messages: list[Message] = []
        self._script: deque[tuple[Command, Sequence[Command]]] = deque()
        self._during: deque[Command] = deque()
        self._engine = Engine(self.service, self, self)  # type: ignore[arg-type]

    def emit(self, *events: Event) -> None:
        self.events += events

    def wait(self) -> Command:
        if not self._script:
            raise SystemExit
        command, during = self._script.popleft()
        self._during.extend(during)
        return command

    def poll(self, _seconds: float | None = None) -> Command | None:
        return self._during.popleft() if self._during else None

    def carry_out(self, *commands: Command, during: Sequence[Command] = ()) -> list[Event]:
        """What the engine says to these commands, one after another; `during` comes while it carries out the first."""
        before = len(self.events)
        self._script.extend((command, during if place == 0 else ()) for place, command in enumerate(commands))
        with pytest.raises(SystemExit):
            self._engine.run()
        return self.events[before:]

    def ask(self, text: str) -> list[Event]:
        """Ask, and add the answer to the conversation."""
        self.messages.append(user(text))
        events = self.carry_out(Generate(turn=9, messages=list(self.messages), max_new_tokens=LENGTH, seed=3))
        said = next(event for event in events if isinstance(event, TurnFinished))
        self.messages.append(Message(role="assistant", content=said.text, token_ids=said.token_ids))
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
        each.ask("One, two, three?")
        each.ask("And then?")
    assert len(chat.race(chat.messages[:-1] if again else [*chat.messages, user("Or what?")])) > 2 * len(LANES)
    (tokens, rows), (expected, expected_rows) = chat.cached(), undisturbed.cached()
    assert tokens == expected
    assert all(torch.equal(row, other) for row, other in zip(rows, expected_rows, strict=True))
    assert chat.service.decoders.settings == undisturbed.service.decoders.settings
    assert untimed(chat.ask("What next?")) == untimed(undisturbed.ask("What next?"))


def test_the_cache_comes_back_after_races_on_several_texts_and_after_one_that_was_stopped(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    chat.ask("One, two, three?")
    chat.ask("And then?")
    tokens, rows = chat.cached()
    chat.race([user("Who?")], during=[Stop()])
    chat.race(chat.messages[:-1])
    chat.race([user("Whose long question is this, and what is it good for?"), *chat.messages[1:2], user("So?")])
    again, restored = chat.cached()
    assert again == tokens and all(torch.equal(row, other) for row, other in zip(rows, restored, strict=True))


def test_lanes_draft_what_they_would_in_an_engine_of_their_own(loaded: LoadedModel) -> None:
    chat, alone = Chat(loaded), Chat(loaded)
    chat.ask("One, two, three?")
    chat.ask("And then?")
    question = chat.messages[:-1]
    raced, apart = (
        [msgspec.structs.replace(event, logprobs=[]) for event in each.race(question) if isinstance(event, Step)]
        for each in (chat, alone)  # one has read the prompt in several passes, so probabilities are rounded differently
    )
    assert untimed(raced) == untimed(apart)


def test_the_first_lane_reads_the_prompt_and_the_others_have_it(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    started = [event for event in chat.race([user("One, two, three?")]) if isinstance(event, TurnStarted)]
    assert [one.settings.decoder for one in started] == list(LANES)
    length = len(started[0].prompt_ids)
    assert started[0].cached_tokens == 0 and {one.cached_tokens for one in started[1:]} == {length}


def test_a_decoder_for_one_answer_is_no_change_of_settings_and_changes_wait_for_its_end(loaded: LoadedModel) -> None:
    chat = Chat(loaded)
    chat.ask("One?")
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
    assert chat.ask("One?")[-1].turn == 9  # type: ignore[attr-defined]


def test_a_lane_that_uses_up_the_memory_changes_no_settings_and_the_chat_goes_on(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, chat = Chat(loaded), Chat(loaded)
    for each in (undisturbed, chat):
        each.ask("One, two, three?")
    forward = chat.service.loaded.runner.forward

    def failing(tree: Any) -> Any:
        monkeypatch.setattr(chat.service.loaded.runner, "forward", forward)
        raise MemoryError

    monkeypatch.setattr(chat.service.loaded.runner, "forward", failing)
    events = chat.race(chat.messages[:-1])
    failures = [event for event in events if isinstance(event, Failed)]
    assert [(one.code, one.turn, one.fatal) for one in failures] == [("out_of_memory", 0, False)]
    assert not any(isinstance(event, SettingsApplied) for event in events)
    said, expected = chat.ask("And then?"), undisturbed.ask("And then?")
    assert said[-1].token_ids == expected[-1].token_ids  # type: ignore[attr-defined]
