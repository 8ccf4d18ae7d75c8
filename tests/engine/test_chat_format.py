"""A conversation becomes the text that the model was trained to read."""

import pytest
from tokenizers.processors import TemplateProcessing

from ladechat.engine.conversation import ChatFormat
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import CHATML, NO_SYSTEM_ROLE, system, user, with_template
from tests.engine.tokenizers import decoded, encoded

LLAMA_2 = "Llama-2-7b-chat"


@pytest.mark.parametrize("model", ["meta-llama/Llama-2-7b-chat-hf", "models/llama2-13B-Chat"])
def test_a_llama_2_chat_without_a_template_gets_its_format(model: str) -> None:
    tokenizer = tokenizers.sentencepiece()
    chat = ChatFormat(tokenizer, model=model)
    text = "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nWhat is a cat? [/INST]"
    assert chat.template.format.origin == "llama-2 (built in)"
    assert chat.encode([system("Be brief."), user("What is a cat?")]) == encoded(tokenizer, text)


@pytest.mark.parametrize("model", ["meta-llama/Llama-2-7b-hf", "gpt2", ""])
def test_any_other_model_without_a_template_gets_plain_text_with_roles(model: str) -> None:
    tokenizer = tokenizers.sentencepiece()
    chat = ChatFormat(tokenizer, model=model)
    talk = [system("Be brief."), user("What is a cat?"), Message(role="assistant", content=" A pet."), user("Why?")]
    text = "Be brief.\n\nUser: What is a cat?\nAssistant: A pet.\nUser: Why?\nAssistant:"
    assert chat.template.format.origin == "plain text (built in)"
    assert chat.encode(talk) == encoded(tokenizer, text)


def test_plain_text_begins_as_the_tokenizer_begins_a_text() -> None:
    tokenizer = with_template(None)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    assert ChatFormat(tokenizer).encode([user("the cat")]) == tokenizer.encode("User: the cat\nAssistant:")


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
    assert ChatFormat(tokenizer, model=LLAMA_2).encode(messages) == encoded(tokenizer, text)


def test_the_format_of_llama_2_without_a_system_message() -> None:
    tokenizer = tokenizers.sentencepiece()
    chat = ChatFormat(tokenizer, model=LLAMA_2)
    assert chat.encode([user("the cat")]) == encoded(tokenizer, "<s>[INST] the cat [/INST]")


def test_a_checkpoint_with_a_template_is_written_to_in_its_own_format() -> None:
    tokenizer = with_template(CHATML)
    chat = ChatFormat(tokenizer)
    text = "<|im_start|>system\nBe brief.</s>\n<|im_start|>user\nthe cat</s>\n<|im_start|>assistant\n"
    assert chat.template.format.origin == "checkpoint"
    assert chat.encode([system("Be brief."), user("the cat")]) == encoded(tokenizer, text)


def test_the_system_message_goes_into_the_first_one_where_a_template_refuses_its_role() -> None:
    tokenizer = with_template(NO_SYSTEM_ROLE)
    chat = ChatFormat(tokenizer)
    messages = [user("the cat"), Message(role="assistant", content="sat"), user("why?")]
    folded = [user("Be brief.\n\nthe cat"), *messages[1:]]
    assert chat.encode([system("Be brief."), *messages]) == chat.encode(folded)
    assert decoded(tokenizer, chat.encode(folded)).startswith("user: Be brief.\n\nthe cat\nassistant: sat\n")


def test_a_prompt_begins_with_one_beginning_of_text_though_the_tokenizer_adds_one_of_its_own() -> None:
    tokenizer = with_template("{{ bos_token + messages[0]['content'] }}")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    assert tokenizer.encode("the cat")[0] == tokenizer.bos_token_id
    prompt = ChatFormat(tokenizer).encode([user("the cat")])
    assert prompt[0] == tokenizer.bos_token_id
    assert prompt.count(tokenizer.bos_token_id) == 1


@pytest.mark.parametrize(
    ("templates", "taken", "origin"),
    [
        ({"rag": "rag", "default": "usual"}, "usual", "checkpoint"),
        ({"tool_use": "tools", "rag": "rag", "chat": "usual"}, "usual", "checkpoint (chat)"),
        ({"tool_use": "tools"}, "tools", "checkpoint (tool_use)"),
    ],
)
def test_of_several_named_templates_the_one_for_conversations_is_taken_and_that_is_said(
    templates: dict[str, str], taken: str, origin: str
) -> None:
    tokenizer = with_template(None)
    tokenizer.chat_template = templates
    chat = ChatFormat(tokenizer)
    assert (chat.encode([user("the cat")]), chat.template.format.origin) == (encoded(tokenizer, taken), origin)
