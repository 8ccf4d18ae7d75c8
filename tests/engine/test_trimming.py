"""What of a conversation fits the context: the oldest turns are left out whole, and what can never fit is refused."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from transformers import PreTrainedTokenizerBase

from ladechat.engine.chat_format import ChatFormat, MessageTooLong
from ladechat.model.checkpoint.chat_template import Encoded
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import CHATML, FAMILIES, answered, families, forgotten, system, user, with_template
from tests.engine.tokenizers import encoded


def turns(tokenizer: PreTrainedTokenizerBase, count: int, words: int = 10) -> list[Message]:
    """So many answered turns, each a little different."""
    messages = []
    for index in range(count):
        messages.append(user(f"question {index} " + "the cat " * words))
        messages.append(answered(tokenizer, encoded(tokenizer, f"answer {index} " + "sat on the mat " * words)))
    return messages


def test_a_conversation_that_fits_stays_whole() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    messages = [system("Be brief."), *turns(tokenizer, 3), user("why?")]
    prompt = chat.fit(messages, context_length=2048, max_new_tokens=100)
    assert prompt.messages == messages
    assert prompt.token_ids == chat.encode(messages)
    assert (prompt.dropped_turns, prompt.dropped_messages) == (0, 0)
    assert prompt.tokens_before == len(prompt.token_ids)


@families
@pytest.mark.parametrize("dropped", [1, 2, 3])
def test_trimming_drops_the_oldest_turns_whole_and_keeps_the_system_message(family: str, dropped: int) -> None:
    tokenizer = FAMILIES[family]()
    chat = ChatFormat(tokenizer)
    head, last = system("Be brief."), user("why?")
    history = turns(tokenizer, 3)
    kept = [head, *history[2 * dropped :], last]
    # The least context in which these stay, whatever the quarter of it that is left out at a time comes to.
    context_length = math.ceil((len(chat.encode(kept)) + 9) * 4 / 3)
    prompt = chat.fit([head, *history, last], context_length, max_new_tokens=10)
    assert prompt.messages == kept
    assert prompt.token_ids == chat.encode(kept)
    assert (prompt.dropped_turns, prompt.dropped_messages) == (dropped, 2 * dropped)
    assert prompt.tokens_before == len(chat.encode([head, *history, last]))


def test_one_token_less_of_room_drops_one_turn_more() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    messages = [*turns(tokenizer, 3), user("why?")]
    length = len(chat.encode(messages))
    assert chat.fit(messages, length + 10, max_new_tokens=10).dropped_turns == 0
    assert chat.fit(messages, length + 9, max_new_tokens=10).dropped_turns == 1


def test_what_is_left_out_stays_the_same_for_several_turns_so_that_the_cache_is_of_use() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    history = turns(tokenizer, 30, words=5)
    fitted = [chat.fit([*history[: 2 * n], user("why?")], 512, max_new_tokens=32) for n in range(31)]
    trimmed = [prompt for prompt in fitted if prompt.dropped_turns]
    grown = trimmed[-1].tokens_before - trimmed[0].tokens_before
    assert grown > 512
    assert len({prompt.dropped_turns for prompt in trimmed}) <= grown // (512 // 4) + 2
    for before, after in pairwise(trimmed):
        same = after.dropped_turns == before.dropped_turns
        assert same == (after.token_ids[:100] == before.token_ids[:100])
        assert after.dropped_turns >= before.dropped_turns
        assert len(after.token_ids) > 512 // 2 - 100


def test_hundreds_of_turns_are_trimmed_without_writing_each_of_them_out_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    written: list[int] = []
    encode = chat.template.encode

    def counted(messages: Sequence[Message]) -> Encoded:
        written.append(len(messages))
        return encode(messages)

    monkeypatch.setattr(chat.template, "encode", counted)
    messages = [*turns(tokenizer, 150, words=5), user("why?")]
    prompt = chat.fit(messages, context_length=1024, max_new_tokens=100)
    assert prompt.dropped_turns > 100
    assert sum(written) < 2.5 * len(messages)


def test_a_long_answer_that_is_wanted_costs_no_more_than_a_quarter_of_the_context_in_history() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    messages = [*turns(tokenizer, 1), user("why?")]
    length = len(chat.encode(messages))
    context_length = -(-length * 4 // 3) + 1
    assert chat.fit(messages, context_length, max_new_tokens=10**6).dropped_turns == 0


def test_system_messages_stay_wherever_they_are() -> None:
    early, late = system("Be brief."), system("Be kind.")
    messages = [early, user("a " * 99), late, Message(role="assistant", content="b"), user("c")]
    prompt = ChatFormat(with_template(CHATML)).fit(messages, context_length=150, max_new_tokens=10)
    assert prompt.messages == [early, late, user("c")]
    assert (prompt.dropped_turns, prompt.dropped_messages) == (1, 2)


def test_a_message_that_alone_is_too_long_is_refused_with_the_numbers() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    message = user("the cat " * 1000)
    tokens = len(chat.encode([message]))
    with pytest.raises(MessageTooLong) as caught:
        chat.fit([*turns(tokenizer, 2), message], context_length=1024, max_new_tokens=10)
    assert f"{tokens:,} tokens" in str(caught.value)
    assert "1,024" in str(caught.value)


@st.composite
def conversations(draw: st.DrawFn, tokenizer: PreTrainedTokenizerBase) -> list[Message]:
    messages = [system("Be brief. " * draw(st.integers(1, 5)))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 5))):
        messages.append(user("the cat " * draw(st.integers(1, 30))))
        if draw(st.integers(0, 4)):
            answer = answered(tokenizer, encoded(tokenizer, "sat on the mat " * draw(st.integers(1, 20))))
            messages.append(answer if draw(st.booleans()) else forgotten(answer))
    return [*messages, user("why? " * draw(st.integers(1, 60)))]


@families
@given(data=st.data(), context_length=st.integers(1, 400), max_new_tokens=st.integers(1, 500))
def test_any_conversation_fits_or_is_refused(
    family: str, data: st.DataObject, context_length: int, max_new_tokens: int
) -> None:
    tokenizer = FAMILIES[family]()
    chat = ChatFormat(tokenizer)
    messages = data.draw(conversations(tokenizer))
    shortest = [message for message in messages if message.role == "system"] + messages[-1:]
    try:
        prompt = chat.fit(messages, context_length, max_new_tokens)
    except MessageTooLong:
        assert len(chat.encode(shortest)) >= context_length
        return
    assert len(prompt.token_ids) < context_length
    assert prompt.token_ids == chat.encode(prompt.messages)
    assert prompt.messages[-1] == messages[-1]
    assert [m for m in prompt.messages if m.role == "system"] == [m for m in messages if m.role == "system"]
    assert len(prompt.messages) + prompt.dropped_messages == len(messages)
    users = [message for message in messages if message.role == "user"]
    assert prompt.dropped_turns == len(users) - sum(message.role == "user" for message in prompt.messages)
    assert prompt.tokens_before == len(chat.encode(messages))
    kept = [message for message in prompt.messages if message.role != "system"]
    assert kept[0].role == "user"
    assert kept == messages[len(messages) - len(kept) :]
