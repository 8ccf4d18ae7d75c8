"""Conversations with a GGUF file that stays packed: turns, stops, races, full contexts and used-up memory."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind

from ladechat.engine.plain_cost import PlainStepCost
from ladechat.engine.service import Service
from ladechat.model.llama_cpp.context import Context
from ladechat.protocol import Generate, Message, Settings, Step, Stop, ThinkingSwitch, TurnFinished, TurnStarted
from tests.checkpoints import LOOKAHEAD, load_on_cpu
from tests.engine.asking import Scripted, assert_adds_up, end_of, failure, of_kind, said_by
from tests.engine.chat_templates import SWITCHED
from tests.engine.messages import user
from tests.engine.tokenizers import byte_level
from tests.gguf_files import write_gguf
from tests.packed import tiny_file, tiny_model

LENGTH = 16
LANES = ("autoregressive", "lookahead", "suffix", "recycling")
NEEDS_HIDDEN_STATES = ("hidden_transfer", "medusa", "layer_skip")


@pytest.fixture(autouse=True)
def _nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainStepCost, "refresh", lambda *_: 0.0)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # many tests' objects: it would take most of the time


class Chat(Scripted):
    """A conversation with an engine of a tiny file."""

    def __init__(self, settings: Settings = LOOKAHEAD, path: Path | None = None) -> None:
        loaded = load_on_cpu(path or tiny_file(1, kind=Kind.Q8_0), "auto")
        super().__init__(Service.of(loaded, settings))
        self.messages: list[Message] = []

    def say(self, text: str, during: Sequence[Any] = (), length: int = LENGTH) -> list[Any]:
        """Ask, and add the answer to the conversation."""
        self.messages.append(user(text))
        command = Generate(turn=9, messages=list(self.messages), max_new_tokens=length, seed=3)
        events = self.carry_out(command, during=during)
        self.messages.append(said_by(end_of(events)))
        return events

    def text(self, *questions: str) -> list[list[int]]:
        return [end_of(self.say(question)).token_ids for question in questions]


def test_all_turns_of_a_conversation_are_those_of_plain_decoding() -> None:
    expected = Chat(Settings(decoder="autoregressive")).text("One, two?", "And then?", "What next?")
    for decoder in ("lookahead", "prompt_lookup", "recycling"):
        chat = Chat(Settings(decoder=decoder))
        assert chat.text("One, two?", "And then?", "What next?") == expected
        assert_adds_up(chat.say("And last?"))


def test_thinking_is_turned_off_by_the_template_in_the_file(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "thinks.gguf", tiny_model(1), byte_level(), template=SWITCHED)
    choices: tuple[ThinkingSwitch, ...] = ("auto", "off")
    prompts = []
    for thinking in choices:
        chat = Chat(Settings(decoder="autoregressive", thinking=thinking), file)
        (started,) = of_kind(chat.say("Why?"), TurnStarted)
        prompts.append(str(chat.service.loaded.tokenizer.decode(started.prompt_ids)))
        assert chat.service.chat.takes_thinking
    assert prompts[1] == prompts[0] + "<think>\n\n</think>\n\n"


def test_a_turn_reads_only_what_is_new() -> None:
    chat = Chat()
    chat.say("One, two, three?")
    length = len(chat.service.loaded.runner.tokens)
    (started,) = of_kind(chat.say("And then?"), TurnStarted)
    assert length - LENGTH <= started.cached_tokens <= length + 1


def test_a_stopped_answer_is_the_beginning_of_the_whole_one_and_the_next_turn_answers() -> None:
    whole = end_of(Chat().say("One, two, three?")).token_ids
    chat = Chat()
    stopped = end_of(chat.say("One, two, three?", during=[Stop()]))
    assert stopped.reason == "stopped" and whole[: len(stopped.token_ids)] == stopped.token_ids
    assert end_of(chat.say("And then?")).reason != "stopped"


def test_a_race_leaves_no_trace_in_the_next_answer() -> None:
    undisturbed, chat = Chat(), Chat()
    for each in (undisturbed, chat):
        each.text("One, two, three?", "And then?")
    lanes = [
        Generate(turn=0, messages=[user("Who is it?")], max_new_tokens=LENGTH, fresh=True, seed=0, decoder=name)
        for name in LANES
    ]
    raced = chat.carry_out(*lanes)
    texts = [event.token_ids for event in of_kind(raced, TurnFinished)]
    assert len(texts) == len(LANES) and all(text == texts[0] for text in texts)
    assert chat.text("What next?") == undisturbed.text("What next?")


def test_a_conversation_longer_than_the_context_is_shortened_and_one_question_that_is_longer_is_refused() -> None:
    chat = Chat()
    for number in range(12):
        assert end_of(chat.say(f"What about the river number {number}, and of the dog beside it?")).token_ids
    assert len(chat.service.loaded.runner.tokens) <= chat.service.loaded.context_length
    assert failure(chat.ask("the river " * 500)).code == "message_too_long"


def test_used_up_memory_ends_an_answer_and_the_conversation_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    chat, decode, passes = Chat(), Context.decode, iter(range(100))

    def fails_once(self: Context, *arguments: Any, **options: Any) -> Any:
        if next(passes) == 6:
            raise MemoryError
        return decode(self, *arguments, **options)

    monkeypatch.setattr(Context, "decode", fails_once)
    failed = failure(chat.ask("One, two, three?", max_new_tokens=LENGTH))
    assert (failed.code, failed.fatal) == ("out_of_memory", False)
    monkeypatch.undo()
    again = end_of(chat.ask("One, two, three?", max_new_tokens=LENGTH, seed=3))
    assert again.token_ids == end_of(Chat().say("One, two, three?")).token_ids


def test_decoders_that_need_hidden_states_are_refused_in_a_sentence() -> None:
    chat = Chat()
    for name in NEEDS_HIDDEN_STATES:
        failed = failure(chat.ask("One?", decoder=name))
        assert "hidden states" in failed.message and not failed.fatal
    assert of_kind(chat.say("One?"), Step)


def test_memory_counts_the_cache() -> None:
    chat = Chat()
    chat.say("One, two, three?")
    memory = chat.service.memory()
    assert memory.cache_bytes and memory.resident_bytes and memory.cache_bytes < memory.resident_bytes


def test_what_loading_has_timed_need_not_be_timed_again() -> None:
    known = {1: 0.02, 2: 0.03, 8: 0.09}
    loaded = replace(load_on_cpu(tiny_file(2, kind=Kind.Q8_0), "auto"), pass_seconds=known)
    costs = Service.of(loaded, LOOKAHEAD).decoders.shared.costs
    costs.refresh()
    assert costs.known() == known and not costs.timed_seconds
