"""A conversation becomes the tokens that the model was trained to read, and those it has already computed."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase

from ladechat.engine.conversation import ChatFormat, MessageTooLong
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.tokenizers import RESERVED, decoded, encoded, token_id

FAMILIES: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "demo": tokenizers.demo,
    "sentencepiece": tokenizers.sentencepiece,
}
families = pytest.mark.parametrize("family", sorted(FAMILIES))

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '</s>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NO_SYSTEM_ROLE = (
    "{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
)
SHOUTING = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] | upper + '\n' }}{% endfor %}"
FORGETFUL = "{{ bos_token + messages[-1]['content'] }}"


def user(text: str) -> Message:
    return Message(role="user", content=text)


def system(text: str) -> Message:
    return Message(role="system", content=text)


def answered(tokenizer: PreTrainedTokenizerBase, token_ids: list[int]) -> Message:
    """An answer as the engine reports it."""
    return Message(role="assistant", content=decoded(tokenizer, token_ids), token_ids=token_ids)


def forgotten(message: Message) -> Message:
    """The same message, its tokens unknown."""
    return Message(role=message.role, content=message.content)


def with_template(template: str | None) -> PreTrainedTokenizerBase:
    """A SentencePiece-style tokenizer of its own that brings this template."""
    tokenizer = tokenizers.sentencepiece.__wrapped__()
    tokenizer.chat_template = template
    return tokenizer


# --- the format ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_without_a_template_gets_the_format_of_llama_2() -> None:
    tokenizer = tokenizers.sentencepiece()
    chat = ChatFormat(tokenizer)
    text = "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nWhat is a cat? [/INST]"
    assert not chat.from_checkpoint
    assert chat.encode([system("Be brief."), user("What is a cat?")]) == encoded(tokenizer, text)


def test_the_format_of_llama_2_over_several_turns() -> None:
    tokenizer = tokenizers.sentencepiece()
    messages = [
        system("Be brief."),
        user(" the cat \n"),
        Message(role="assistant", content=" sat "),
        user("where?"),
        Message(role="assistant", content="on the mat"),
        user("why?"),
    ]
    text = (
        "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nthe cat [/INST] sat </s>"
        "<s>[INST] where? [/INST] on the mat </s>"
        "<s>[INST] why? [/INST]"
    )
    assert ChatFormat(tokenizer).encode(messages) == encoded(tokenizer, text)


def test_the_format_of_llama_2_without_a_system_message() -> None:
    tokenizer = tokenizers.sentencepiece()
    assert ChatFormat(tokenizer).encode([user("the cat")]) == encoded(tokenizer, "<s>[INST] the cat [/INST]")


def test_a_checkpoint_with_a_template_is_written_to_in_its_own_format() -> None:
    tokenizer = with_template(CHATML)
    chat = ChatFormat(tokenizer)
    text = "<|im_start|>system\nBe brief.</s>\n<|im_start|>user\nthe cat</s>\n<|im_start|>assistant\n"
    assert chat.from_checkpoint
    assert chat.encode([system("Be brief."), user("the cat")]) == encoded(tokenizer, text)


def test_the_system_message_goes_into_the_first_one_where_a_template_refuses_its_role() -> None:
    tokenizer = with_template(NO_SYSTEM_ROLE)
    chat = ChatFormat(tokenizer)
    messages = [user("the cat"), Message(role="assistant", content="sat"), user("why?")]
    folded = [user("Be brief.\n\nthe cat"), *messages[1:]]
    assert chat.encode([system("Be brief."), *messages]) == chat.encode(folded)
    assert decoded(tokenizer, chat.encode(folded)).startswith("user: Be brief.\n\nthe cat\nassistant: sat\n")


def test_past_answers_stay_tokens_where_the_system_message_is_folded_in() -> None:
    tokenizer = with_template(NO_SYSTEM_ROLE)
    chat = ChatFormat(tokenizer)
    first = [system("Be brief."), user("the cat")]
    answer = unusual_answer(tokenizer)
    assert contains(chat.encode([*first, answered(tokenizer, answer), user("why?")]), answer)


# --- past answers ----------------------------------------------------------------------------------------------------


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


def test_a_prompt_begins_with_one_beginning_of_text_though_the_tokenizer_adds_one_of_its_own() -> None:
    tokenizer = with_template(None)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    assert tokenizer.encode("the cat")[0] == tokenizer.bos_token_id
    prompt = ChatFormat(tokenizer).encode([user("the cat")])
    assert prompt[0] == tokenizer.bos_token_id
    assert prompt.count(tokenizer.bos_token_id) == 1


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


# --- what fits -------------------------------------------------------------------------------------------------------


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
    history = turns(tokenizer, 60, words=5)
    fitted = [chat.fit([*history[: 2 * n], user("why?")], 1024, max_new_tokens=64) for n in range(61)]
    trimmed = [prompt for prompt in fitted if prompt.dropped_turns]
    grown = trimmed[-1].tokens_before - trimmed[0].tokens_before
    assert grown > 1024
    assert len({prompt.dropped_turns for prompt in trimmed}) <= grown // (1024 // 4) + 2
    for before, after in pairwise(trimmed):
        same = after.dropped_turns == before.dropped_turns
        assert same == (after.token_ids[:100] == before.token_ids[:100])
        assert after.dropped_turns >= before.dropped_turns
        assert len(after.token_ids) > 1024 // 2 - 100


def test_hundreds_of_turns_are_trimmed_without_writing_each_of_them_out_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    written: list[int] = []
    encode = chat.encode

    def counted(messages: Sequence[Message]) -> list[int]:
        written.append(len(messages))
        return encode(messages)

    monkeypatch.setattr(chat, "encode", counted)
    messages = [*turns(tokenizer, 150, words=5), user("why?")]
    prompt = chat.fit(messages, context_length=1024, max_new_tokens=100)
    assert prompt.dropped_turns > 100
    assert sum(written) < 2.5 * len(messages)


def test_a_question_that_was_never_answered_is_dropped_as_a_turn_too() -> None:
    tokenizer = tokenizers.demo()
    chat = ChatFormat(tokenizer)
    messages = [user("the cat " * 50), user("the dog " * 50), user("why?")]
    prompt = chat.fit(messages, context_length=100, max_new_tokens=10)
    assert prompt.messages == messages[-1:]
    assert (prompt.dropped_turns, prompt.dropped_messages) == (2, 2)


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


def test_a_message_is_refused_only_where_not_one_token_of_an_answer_fits() -> None:
    chat = ChatFormat(tokenizers.demo())
    message = user("the cat " * 20)
    tokens = len(chat.encode([message]))
    assert len(chat.fit([message], tokens + 1, max_new_tokens=100).token_ids) == tokens
    with pytest.raises(MessageTooLong):
        chat.fit([message], tokens, max_new_tokens=100)


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
