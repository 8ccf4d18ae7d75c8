"""Past answers enter a prompt as what the template makes of their text, and the cache is used as far as they agree."""

import pytest
from hypothesis import given, settings, strategies as st

from ladechat.engine.chat_format import ChatFormat
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import FAMILIES, answered, families, forgotten, system, user
from tests.engine.tokenizers import decoded, encoded, token_id


def prompt_by_text(chat: ChatFormat, messages: list[Message]) -> list[int]:
    return chat.encode([forgotten(message) for message in messages])


@families
@settings(max_examples=50)
@given(data=st.data())
def test_a_prompt_depends_on_what_answers_say_and_not_on_how_they_were_generated(
    family: str, data: st.DataObject
) -> None:
    tokenizer = FAMILIES[family]()
    chat = ChatFormat(tokenizer)
    ids = st.integers(0, len(tokenizer) - 1).filter(lambda id_: id_ not in tokenizer.added_tokens_decoder)
    messages = [system("Be brief.")] if data.draw(st.booleans()) else []
    for _ in range(data.draw(st.integers(1, 3))):
        messages.append(user(data.draw(st.sampled_from(tokenizers.TEXTS))))
        ended = [tokenizer.eos_token_id] if data.draw(st.booleans()) else []
        messages.append(answered(tokenizer, data.draw(st.lists(ids, min_size=1, max_size=12)) + ended))
    messages.append(user("and then?"))
    assert chat.encode(messages) == prompt_by_text(chat, messages)


@pytest.mark.parametrize("text", tokenizers.TEXTS)
def test_a_prompt_begins_with_all_that_the_turn_before_left_in_the_cache(text: str) -> None:
    """Where the tokens of the answer are those of its text, as what a trained model writes mostly is."""
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    messages = [user("the cat")]
    for _ in range(3):
        prompt = chat.encode(messages)
        answer = encoded(tokenizer, f" {text.strip()}")  # as the bundled model begins one
        messages += [answered(tokenizer, [*answer, tokenizer.eos_token_id]), user("and then?")]
        assert chat.encode(messages)[: len(prompt) + len(answer)] == prompt + answer


def test_an_answer_that_was_generated_in_other_tokens_than_those_of_its_text_is_cached_up_to_there() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    unusual = [token_id(tokenizer, letter) for letter in "theat"]
    assert encoded(tokenizer, decoded(tokenizer, unusual)) != unusual
    first = [user("the cat")]
    following = chat.encode([*first, answered(tokenizer, unusual), user("why?")])
    prompt = chat.encode(first)
    assert following[: len(prompt)] == prompt
    assert following[len(prompt) :][: len(unusual)] != unusual


@families
@pytest.mark.parametrize("ended", [True, False])
def test_an_answer_is_closed_by_one_end_of_text_whether_it_brings_it_or_not(family: str, ended: bool) -> None:
    tokenizer = FAMILIES[family]()
    eos = tokenizer.eos_token_id
    answer = encoded(tokenizer, "on the mat") + ([eos] if ended else [])
    question = [user("the cat"), answered(tokenizer, encoded(tokenizer, "on the mat")), user("why?")]
    prompt = ChatFormat(tokenizer, model="Llama-2-7b-chat").encode(
        [question[0], answered(tokenizer, answer), question[2]]
    )
    assert prompt == ChatFormat(tokenizer, model="Llama-2-7b-chat").encode(question)
    assert prompt.count(eos) == 1


@pytest.mark.parametrize("stray", [-1, 3072, 10**9])
def test_an_answer_with_ids_outside_the_vocabulary_is_its_text(stray: int) -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    answer = Message(role="assistant", content="sat", token_ids=[*encoded(tokenizer, "sat"), stray])
    messages = [user("the cat"), answer, user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)
