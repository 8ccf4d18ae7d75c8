"""Prompts of thousands of tokens, and contexts filled to their last position."""

from pathlib import Path

import pytest

from ladechat.engine.chat_format import MessageTooLong
from ladechat.engine.turn import Emit, Service, answer
from ladechat.model.load import load
from ladechat.protocol import (
    Event,
    Generate,
    HistoryTrimmed,
    Message,
    Prefilling,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
)
from tests.engine.messages import user
from tests.engine.tokenizers import byte_level
from tests.engine.wire import Wire
from tests.tiny import random_model

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

LONG_CONTEXT = 4096
BRIM = 160
LONGEST_STEP = 64


class Listener:
    """Lets a turn run, and stops it when it has been asked so many times."""

    def __init__(self, stop_after: int | None = None) -> None:
        self._left = stop_after

    def take_commands(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        return self._left < 0

    def until_due(self, _emit: Emit) -> float:
        return 0.0


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Random checkpoints by the length of their context. They never end an answer by themselves."""
    tokenizer = byte_level()
    made = {}
    for context in (LONG_CONTEXT, BRIM):
        folder = tmp_path_factory.mktemp(f"context-{context}")
        model = random_model(vocab_size=len(tokenizer), max_position_embeddings=context, eos_token_id=None)
        model.generation_config.eos_token_id = None
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made[context] = folder
    return made


def service_of(folder: Path, settings: Settings | None = None) -> Service:
    settings = settings or Settings()
    return Service.of(load(folder, "tiny", "cpu", "float32", lambda _: None, lambda _: None), settings)


def run(service: Service, *messages: Message, listener: Listener | None = None, limit: int = 4) -> list[Event]:
    """All that a turn says."""
    events: list[Event] = []
    command = Generate(turn=1, messages=list(messages), max_new_tokens=limit)
    answer(service, command, lambda *new: events.extend(new), listener or Listener())
    return events


def one(events: list[Event], kind: type[Event]) -> Event:
    [found] = [event for event in events if isinstance(event, kind)]
    return found


def prompt_of(events: list[Event]) -> TurnStarted:
    started = one(events, TurnStarted)
    assert isinstance(started, TurnStarted)
    return started


def end_of(events: list[Event]) -> TurnFinished:
    finished = one(events, TurnFinished)
    assert isinstance(finished, TurnFinished)
    return finished


LONG_QUESTION = user("the cat sat on the mat. " * 440)


def test_a_prompt_of_3000_tokens_is_read_in_chunks_with_progress(checkpoints: dict[int, Path]) -> None:
    events = run(service_of(checkpoints[LONG_CONTEXT]), LONG_QUESTION)
    length = len(prompt_of(events).prompt_ids)
    assert 3000 < length < LONG_CONTEXT
    progress = [event for event in events if isinstance(event, Prefilling)]
    assert len(progress) >= 5
    assert {event.total_tokens for event in progress} == {length - 1}
    done = [event.done_tokens for event in progress]
    assert done == sorted(set(done)) and done[-1] == length - 1
    assert end_of(events).reason == "max_new_tokens"


def test_a_stop_on_the_way_through_the_prompt_keeps_what_is_read_for_the_next_question(
    checkpoints: dict[int, Path],
) -> None:
    service = service_of(checkpoints[LONG_CONTEXT])
    events = run(service, LONG_QUESTION, listener=Listener(stop_after=3))
    done = [event.done_tokens for event in events if isinstance(event, Prefilling)]
    assert len(done) == 3 and done[-1] < len(prompt_of(events).prompt_ids) - 1
    end = end_of(events)
    assert (end.reason, end.token_ids, end.steps) == ("stopped", [], 0)
    again = run(service, LONG_QUESTION)
    assert prompt_of(again).cached_tokens == done[-1]
    fresh = run(service_of(checkpoints[LONG_CONTEXT]), LONG_QUESTION)
    assert end_of(again).token_ids == end_of(fresh).token_ids


class StopInTheFirstStep(Listener):
    """Stops a turn while its first step runs."""

    stop = False

    def take_commands(self) -> bool:
        return self.stop

    def until_due(self, _emit: Emit) -> float:
        self.stop = True
        return 0.0


@pytest.mark.parametrize(("limit", "reason"), [(1, "max_new_tokens"), (2, "stopped")])
def test_a_stop_in_the_step_that_ends_an_answer_anyway_is_not_what_ended_it(
    checkpoints: dict[int, Path], limit: int, reason: str
) -> None:
    plain = service_of(checkpoints[BRIM], Settings(decoder="autoregressive"))
    end = end_of(run(plain, user("a"), listener=StopInTheFirstStep(), limit=limit))
    assert (end.reason, len(end.token_ids)) == (reason, 1)


FIXED = Settings(decoder="lookahead", parameters={"window": 9, "ngram": 5, "guesses": 9})


@pytest.mark.parametrize("settings", [Settings(), FIXED], ids=["auto", "9,5,9"])
def test_an_answer_fills_the_context_to_its_last_position_and_is_that_of_plain_decoding(
    checkpoints: dict[int, Path], settings: Settings
) -> None:
    texts = []
    for each in (settings, Settings(decoder="autoregressive")):
        events = run(service_of(checkpoints[BRIM], each), user("the cat"), limit=10_000)
        end = end_of(events)
        assert end.reason == "context"
        assert len(prompt_of(events).prompt_ids) + len(end.token_ids) == BRIM
        steps = [event for event in events if isinstance(event, Step)]
        assert max(step.timing.cache_length for step in steps) >= BRIM - 2 - LONGEST_STEP
        texts.append(end.token_ids)
    assert texts[0] == texts[1]


def test_a_conversation_at_the_brim_goes_on_turn_by_turn_with_what_is_left_out_told(
    checkpoints: dict[int, Path],
) -> None:
    service, plain = (service_of(checkpoints[BRIM], each) for each in (Settings(), Settings(decoder="autoregressive")))
    messages: list[Message] = []
    trimmed = 0
    for number in range(8):
        messages.append(user(f"the dog sat {number}"))
        events = run(service, *messages, limit=30)
        end, started = end_of(events), prompt_of(events)
        for event in events:
            if isinstance(event, HistoryTrimmed):
                trimmed += 1
                assert event.tokens_before > event.tokens_after == len(started.prompt_ids)
                assert len(messages) - event.dropped_messages == len(started.messages)
        assert len(started.prompt_ids) + len(end.token_ids) <= BRIM
        assert end_of(run(plain, *messages, limit=30)).token_ids == end.token_ids
        messages.append(Message(role="assistant", content=end.text, token_ids=end.token_ids))
    assert trimmed >= 3


def test_a_message_larger_than_the_context_is_refused_and_the_next_one_answered(checkpoints: dict[int, Path]) -> None:
    service = service_of(checkpoints[BRIM])
    with pytest.raises(MessageTooLong, match=r"prompt of [\d,]+ tokens, but the model's context holds 160"):
        run(service, user("the cat sat on the mat " * 60))
    assert end_of(run(service, user("the cat"))).reason == "max_new_tokens"


@pytest.mark.full
@pytest.mark.parametrize("where", ["prefill", "step"])
def test_the_end_of_the_input_ends_an_engine_in_the_middle_of_a_pass(where: str, tmp_path: Path) -> None:
    """The pass takes for ever, as one of a large model on a small machine all but does."""
    script = tmp_path / "engine_that_takes_its_time.py"
    script.write_text(
        "import time\n"
        "from ladechat.engine.server import serve\n"
        "from ladechat.engine.turn import _Turn\n"
        "from ladechat.model.runners.tree import TreeRunner\n"
        "from ladechat.engine_options import EngineOptions\n"
        "def for_ever(self, *_, **__):\n"
        "    self._model(__import__('torch').tensor([[1]]))\n"
        "    time.sleep(3600)\n"
        f"stage = _Turn.{'prefill' if where == 'prefill' else 'decode'}\n"
        "def slow(self, listener):\n"
        "    TreeRunner._model_pass = for_ever\n"
        "    return stage(self, listener)\n"
        f"_Turn.{'prefill' if where == 'prefill' else 'decode'} = slow\n"
        "raise SystemExit(serve(EngineOptions('demo', 'cpu', 'float32')))\n"
    )
    wire = Wire(program=(str(script),))
    try:
        wire.generate("What is the n-gram pool?")
        wire.until(TurnStarted if where == "prefill" else Prefilling)
        assert wire.end() == 0
        assert not any(isinstance(event, Step) for event in wire.seen)
    finally:
        wire.close()
