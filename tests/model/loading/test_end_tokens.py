"""An answer ends where the checkpoint says, and where its chat template ends a turn."""

import json
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from ladechat.model.loading.token_ids import KNOWN_ENDS, end_tokens
from tests.engine import chat_templates
from tests.llama2 import CHAT_TEMPLATE as LLAMA_2
from tests.scripted_checkpoint import CHATML, byte_tokenizer

GLM = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
"""Its turns end where the next one begins, and its models write that."""
HARMONY = (
    "{% for m in messages %}{{ '<|start|>' + m['role'] + '<|message|>' + m['content'] }}"
    "{% if loop.last and m['role'] == 'assistant' %}<|return|>{% else %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
)
"""`<|end|>` ends a part of an answer there: behind its thinking, the answer follows."""
THINKING = (
    "{% for m in messages %}{% set said = m['content'].split('</think>')[-1] %}"
    "{{ '<|User|>' + said if m['role'] == 'user' else '<|Assistant|>' + said + '<|end▁of▁sentence|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|Assistant|><think>\n' }}{% endif %}"
)


def tokenizer(template: str | None, *special: str, **options: Any) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer("", special), chat_template=template, **options)


def ends(template: str | None, *special: str, named: object = ()) -> set[str]:
    """The tokens that end an answer, where the checkpoint names these ids."""
    made = tokenizer(template, *special)
    found = end_tokens([named], made, len(made))
    return {str(made.convert_ids_to_tokens(token_id)) for token_id in found.ids}


@pytest.mark.parametrize(
    ("template", "special", "end"),
    [
        (CHATML, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), "<|im_end|>"),
        (LLAMA_2, ("<s>", "</s>"), "</s>"),
        (
            chat_templates.LLAMA_3,
            ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
            "<|eot_id|>",
        ),
        (chat_templates.GEMMA, ("<eos>", "<start_of_turn>", "<end_of_turn>"), "<end_of_turn>"),
        (chat_templates.PHI, ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|end|>"), "<|end|>"),
        (GLM, ("<|endoftext|>", "<|user|>", "<|assistant|>"), "<|user|>"),
        (HARMONY, ("<|start|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"), "<|return|>"),
        (THINKING, ("<|User|>", "<|Assistant|>", "<|end▁of▁sentence|>"), "<|end▁of▁sentence|>"),
    ],
    ids=["chatml", "llama 2", "llama 3", "gemma", "phi", "glm", "harmony", "thinking"],
)
def test_the_token_that_the_template_puts_behind_an_answer_ends_one(
    template: str, special: tuple[str, ...], end: str
) -> None:
    assert ends(template, *special) - {"<|endoftext|>"} == {end}


def test_a_checkpoint_that_names_no_end_which_it_has_ends_its_answers_at_the_known_ones_too() -> None:
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    made = tokenizer(CHATML, *special)
    found = end_tokens([10**6, -1], made, len(made))
    assert {made.convert_ids_to_tokens(token_id) for token_id in found.ids} == {"<|im_end|>", "<|endoftext|>"}
    assert len([notice for notice in found.notices if "is left out" in notice]) == 2
    named = end_tokens([made.convert_tokens_to_ids("<|im_end|>")], made, len(made))
    assert {made.convert_ids_to_tokens(token_id) for token_id in named.ids} == {"<|im_end|>"}


def test_a_mark_that_the_tokenizer_takes_for_a_usual_token_ends_an_answer_by_its_text() -> None:
    backend = byte_tokenizer("", ("<|endoftext|>", "<|im_start|>"))
    content = json.loads(backend.to_str())
    content["model"]["vocab"]["<|im_end|>"] = len(content["model"]["vocab"])
    content["added_tokens"] = [{**token, "id": token["id"] + 1} for token in content["added_tokens"]]
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)), chat_template=CHATML, eos_token="<|endoftext|>"
    )
    assert "<|im_end|>" not in map(str, made.added_tokens_decoder.values())
    found = end_tokens([made.eos_token_id], made, len(made))
    assert {made.convert_ids_to_tokens(token_id) for token_id in found.ids} == {"<|im_end|>", "<|endoftext|>"}


@pytest.mark.parametrize(
    ("template", "why"), [("{{ 1 / 0 }}", "division by zero"), ("constant", "leaves out what the question says")]
)
def test_a_template_that_writes_no_conversation_is_said_before_the_first_question(template: str, why: str) -> None:
    made = tokenizer(template, "<|im_end|>")
    notices = end_tokens([], made, len(made)).notices
    assert [notice for notice in notices if "writes no conversation" in notice and why in notice]


def test_of_two_tokens_that_begin_alike_the_longer_one_is_meant() -> None:
    template = "{% for m in messages %}{{ m['content'] + '<end><of>' }}{% endfor %}"
    assert ends(template, "<end>", "<end><of>") == {"<end><of>"}


@pytest.mark.parametrize(
    "template",
    [None, "", "{{ raise_exception('no') }}", "{{ messages[0]['content'] }}", "{{ 1 / 0 }}", "{% for %}"],
    ids=["none", "empty", "it refuses", "it leaves answers out", "it fails", "it is no template"],
)
def test_where_no_template_tells_the_names_that_are_known_do(template: str | None) -> None:
    assert ends(template, "<|im_start|>", "<|im_end|>", "<|eot_id|>") == {"<|im_end|>", "<|eot_id|>"}
    assert ends(template, "<start>", "<stop>") == set()


def test_the_end_of_a_part_of_an_answer_is_no_end_where_whole_turns_have_one() -> None:
    assert ends(None, "<|end|>") == {"<|end|>"}
    assert ends(None, "<|end|>", "<|return|>") == {"<|return|>"}


def test_a_known_name_that_is_plain_text_to_the_tokenizer_is_none() -> None:
    made = tokenizer(CHATML, "<|im_start|>")
    assert all(name not in made.get_vocab() for name in KNOWN_ENDS)
    assert end_tokens([], made, len(made)).ids == frozenset()


def test_what_is_found_is_said_and_what_the_checkpoint_names_itself_is_not() -> None:
    made = tokenizer(CHATML, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    text, turn = (made.convert_tokens_to_ids(name) for name in ("<|endoftext|>", "<|im_end|>"))
    found = end_tokens([text], made, len(made))
    assert found.ids == {text, turn}
    (notice,) = found.notices
    assert "<|im_end|>" in notice and "<|endoftext|>" not in notice
    assert end_tokens([text, [turn, text], None], made, len(made)).notices == ()


@pytest.mark.parametrize("named", [10**6, -1, "</s>", 2.5, True, {"a": 1}], ids=str)
def test_an_end_that_no_token_of_the_model_can_be_is_left_out_and_said(named: object) -> None:
    made = tokenizer(CHATML, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    turn = made.convert_tokens_to_ids("<|im_end|>")
    found = end_tokens([[named, turn]], made, len(made))
    assert found.ids == {turn}
    (notice,) = found.notices
    assert str(named) in notice


def test_a_token_that_the_model_has_no_logit_for_ends_nothing() -> None:
    made = tokenizer(CHATML, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    turn = made.convert_tokens_to_ids("<|im_end|>")
    assert isinstance(turn, int)
    assert turn not in end_tokens([], made, turn).ids
