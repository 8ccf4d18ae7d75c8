"""Past answers enter a prompt as the tokens that were computed; where they cannot, as their text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from ladechat.engine.conversation import ChatFormat
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import (
    CHATML,
    FAMILIES,
    NO_SYSTEM_ROLE,
    answered,
    families,
    forgotten,
    system,
    user,
    with_template,
)
from tests.engine.tokenizers import RESERVED, decoded, encoded, token_id

SHOUTING = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] | upper + '\n' }}{% endfor %}"
FORGETFUL = "{{ bos_token + messages[-1]['content'] }}"


def contains(token_ids: list[int], part: list[int]) -> bool:
    return any(token_ids[start : start + len(part)] == part for start in range(len(token_ids) - len(part) + 1))


def unusual_answer(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Tokens that tokenizing their own text does not give back, so that only true ids can bring them into a prompt."""
    token_ids = [token_id(tokenizer, letter) for letter in "theat"]
    assert encoded(tokenizer, decoded(tokenizer, token_ids)) != token_ids
    return token_ids


@st.composite
def free_answers(draw: st.DrawFn, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """What a model may write before an end of text."""
    ids = st.integers(0, len(tokenizer) - 1).filter(lambda id_: id_ not in tokenizer.added_tokens_decoder)
    text = st.sampled_from(tokenizers.TEXTS).map(lambda text: encoded(tokenizer, text))
    return draw(st.one_of(text, st.lists(ids, min_size=1, max_size=12)))


@families
@settings(max_examples=50)
@given(data=st.data())
def test_the_prompt_of_a_turn_begins_with_all_that_the_turn_before_left_in_the_cache(
    family: str, data: st.DataObject
) -> None:
    tokenizer = FAMILIES[family]()
    chat = ChatFormat(tokenizer)
    messages = [system("Be brief.")] if data.draw(st.booleans()) else []
    for _ in range(data.draw(st.integers(2, 4))):
        messages.append(user(data.draw(st.sampled_from(tokenizers.TEXTS))))
        prompt = chat.encode(messages)
        ended = data.draw(st.booleans())
        answer = data.draw(free_answers(tokenizer)) + ([tokenizer.eos_token_id] if ended else [])
        messages.append(answered(tokenizer, answer))
        following = chat.encode([*messages, user("and then?")])
        assert following[: len(prompt) + len(answer)] == prompt + answer
        assert following.count(tokenizer.eos_token_id) == len(messages) // 2
        assert following.count(tokenizer.bos_token_id) == len(messages) // 2 + 1
        assert contains(following, encoded(tokenizer, "<s>[INST] and then? [/INST]"))


def test_past_answers_stay_tokens_where_the_system_message_is_folded_in() -> None:
    tokenizer = with_template(NO_SYSTEM_ROLE)
    chat = ChatFormat(tokenizer)
    first = [system("Be brief."), user("the cat")]
    answer = unusual_answer(tokenizer)
    assert contains(chat.encode([*first, answered(tokenizer, answer), user("why?")]), answer)


@families
@pytest.mark.parametrize("ended", [True, False])
def test_an_answer_is_closed_by_one_end_of_text_whether_it_brings_it_or_not(family: str, ended: bool) -> None:
    tokenizer = FAMILIES[family]()
    eos, bos = tokenizer.eos_token_id, tokenizer.bos_token_id
    answer = encoded(tokenizer, "on the mat") + ([eos] if ended else [])
    prompt = ChatFormat(tokenizer).encode([user("the cat"), answered(tokenizer, answer), user("why?")])
    assert prompt.count(eos) == 1
    assert prompt.count(bos) == 2
    assert prompt[prompt.index(eos) + 1] == bos


@pytest.mark.parametrize("template", [CHATML, CHATML.replace("</s>", RESERVED)])
def test_an_end_of_turn_that_an_answer_brings_is_not_written_again(template: str) -> None:
    """Also where it is a special token that the tokenizer knows in no role, as `<|eot_id|>` may be in Llama 3."""
    tokenizer = with_template(template)
    end = token_id(tokenizer, RESERVED if RESERVED in template else "</s>")
    chat = ChatFormat(tokenizer)
    first = [user("the cat")]
    answer = [*unusual_answer(tokenizer), end]
    following = chat.encode([*first, answered(tokenizer, answer), user("why?")])
    start = [*chat.encode(first), *answer]
    assert following[: len(start)] == start
    assert following.count(end) == 3


def prompt_by_text(chat: ChatFormat, messages: list[Message]) -> list[int]:
    return chat.encode([forgotten(message) for message in messages])


def test_an_answer_that_was_edited_is_tokenized_from_its_text() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    edited = Message(role="assistant", content="on the log", token_ids=encoded(tokenizer, "on the mat"))
    messages = [user("the cat"), edited, user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)


def test_an_answer_in_the_ids_of_another_tokenizer_is_tokenized_from_its_text() -> None:
    chat = ChatFormat(tokenizers.demo())
    other = tokenizers.sentencepiece()
    messages = [user("the cat"), answered(other, encoded(other, "sat on the mat")), user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)


@pytest.mark.parametrize("stray", [-1, 3072, 10**9])
def test_an_answer_with_ids_outside_the_vocabulary_is_tokenized_from_its_text(stray: int) -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    answer = Message(role="assistant", content="sat", token_ids=[*encoded(tokenizer, "sat"), stray])
    messages = [user("the cat"), answer, user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)


@pytest.mark.parametrize("template", [SHOUTING, FORGETFUL])
def test_an_answer_that_a_template_rewrites_or_leaves_out_is_tokenized_from_its_text(template: str) -> None:
    tokenizer = with_template(template)
    chat = ChatFormat(tokenizer)
    messages = [user("the cat"), answered(tokenizer, encoded(tokenizer, "sat on the mat")), user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)


def test_a_message_that_holds_the_mark_of_an_answer_is_kept_as_it_is_written() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    answer = answered(tokenizer, unusual_answer(tokenizer))
    messages = [user("what is ⟦answer 1⟧?"), answer, user("why?")]
    assert chat.encode(messages) == prompt_by_text(chat, messages)
    assert "⟦answer 1⟧" in decoded(tokenizer, chat.encode(messages))


def test_a_mark_of_no_answer_is_text_like_any_other() -> None:
    tokenizer = tokenizers.demo()
    answer = unusual_answer(tokenizer)
    prompt = ChatFormat(tokenizer).encode([user("⟦answer 7⟧"), answered(tokenizer, answer), user("why?")])
    assert contains(prompt, answer)
    assert "⟦answer 7⟧" in decoded(tokenizer, prompt)
