"""Prompts of thousands of tokens, and contexts filled to their last position."""

from pathlib import Path

import pytest

from ladechat.engine.service import Service
from ladechat.protocol import (
    Event,
    HistoryTrimmed,
    Message,
    Prefilling,
    Settings,
    Step,
    TurnStarted,
)
from tests.checkpoints import save, service_of
from tests.engine.asking import Listener, ask, end_of, of_kind, said_by, stop_after
from tests.engine.messages import user
from tests.engine.tokenizers import byte_level
from tests.tiny import random_model

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

LONG_CONTEXT = 4096
BRIM = 160
LONGEST_STEP = 64


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Random checkpoints by the length of their context. They never end an answer by themselves."""
    made = {}
    for context in (LONG_CONTEXT, BRIM):
        model = random_model(vocab_size=len(byte_level()), max_position_embeddings=context, eos_token_id=None)
        model.generation_config.eos_token_id = None
        made[context] = save(tmp_path_factory.mktemp(f"context-{context}"), model)
    return made


def run(
    service: Service, *messages: Message, listener: Listener | None = None, limit: int = 4
) -> tuple[TurnStarted, list[Event]]:
    """How a turn begins, and all that it says."""
    events = ask(service, *messages, listener=listener, max_new_tokens=limit)
    (started,) = of_kind(events, TurnStarted)
    return started, events


LONG_QUESTION = user("the cat sat on the mat. " * 440)


def test_a_prompt_of_3000_tokens_is_read_in_chunks_with_progress(checkpoints: dict[int, Path]) -> None:
    started, events = run(service_of(checkpoints[LONG_CONTEXT]), LONG_QUESTION)
    length = len(started.prompt_ids)
    assert 3000 < length < LONG_CONTEXT
    progress = of_kind(events, Prefilling)
    assert len(progress) >= 5
    assert {event.total_tokens for event in progress} == {length - 1}
    done = [event.done_tokens for event in progress]
    assert done == sorted(set(done)) and done[-1] == length - 1
    assert end_of(events).reason == "max_new_tokens"


def test_a_stop_on_the_way_through_the_prompt_keeps_what_is_read_for_the_next_question(
    checkpoints: dict[int, Path],
) -> None:
    service = service_of(checkpoints[LONG_CONTEXT])
    started, events = run(service, LONG_QUESTION, listener=Listener(stop_at=4))
    done = [event.done_tokens for event in of_kind(events, Prefilling)]
    assert len(done) == 3 and done[-1] < len(started.prompt_ids) - 1
    end = end_of(events)
    assert (end.reason, end.token_ids, end.steps) == ("stopped", [], 0)
    again, rest = run(service, LONG_QUESTION)
    assert again.cached_tokens == done[-1]
    _, fresh = run(service_of(checkpoints[LONG_CONTEXT]), LONG_QUESTION)
    assert end_of(rest).token_ids == end_of(fresh).token_ids


@pytest.mark.parametrize(("limit", "reason"), [(1, "max_new_tokens"), (2, "stopped")])
def test_a_stop_in_the_step_that_ends_an_answer_anyway_is_not_what_ended_it(
    checkpoints: dict[int, Path], limit: int, reason: str
) -> None:
    plain = service_of(checkpoints[BRIM], Settings(decoder="autoregressive"))
    end = end_of(run(plain, user("a"), listener=stop_after(1), limit=limit)[1])
    assert (end.reason, len(end.token_ids)) == (reason, 1)


FIXED = Settings(decoder="lookahead", parameters={"window": 9, "ngram": 5, "guesses": 9})


@pytest.mark.parametrize("settings", [Settings(), FIXED], ids=["auto", "9,5,9"])
def test_an_answer_fills_the_context_to_its_last_position_and_is_that_of_plain_decoding(
    checkpoints: dict[int, Path], settings: Settings
) -> None:
    texts = []
    for each in (settings, Settings(decoder="autoregressive")):
        started, events = run(service_of(checkpoints[BRIM], each), user("the cat"), limit=10_000)
        end = end_of(events)
        assert end.reason == "context"
        assert len(started.prompt_ids) + len(end.token_ids) == BRIM
        assert max(step.timing.cache_length for step in of_kind(events, Step)) >= BRIM - 2 - LONGEST_STEP
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
        started, events = run(service, *messages, limit=30)
        end = end_of(events)
        for event in of_kind(events, HistoryTrimmed):
            trimmed += 1
            assert event.tokens_before > event.tokens_after == len(started.prompt_ids)
            assert event.dropped_messages == 2 * event.dropped_turns
            assert started.messages == messages[event.dropped_messages :]
        assert len(started.prompt_ids) + len(end.token_ids) <= BRIM
        assert end_of(run(plain, *messages, limit=30)[1]).token_ids == end.token_ids
        messages.append(said_by(end))
    assert trimmed >= 3
