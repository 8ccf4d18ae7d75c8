"""A conversation becomes the text that the model was trained to read."""

import pytest
from tokenizers.processors import TemplateProcessing

from ladechat.engine.chat_format import ChatFormat, RefusedByTemplate
from ladechat.model.checkpoint import chat_template
from ladechat.model.checkpoint.chat_template import SECONDS_OF_A_TRIAL
from ladechat.model.checkpoint.template import TakesTooMuch
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import system, user, with_template
from tests.engine.tokenizers import encoded

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
    chat = ChatFormat(tokenizer, model=LLAMA_2)
    assert chat.encode(messages) == encoded(tokenizer, text)
    assert chat.encode([user("the cat")]) == encoded(tokenizer, "<s>[INST] the cat [/INST]")


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
    tokenizer.chat_template = {name: word + " {{ messages[0].content }}" for name, word in templates.items()}
    chat = ChatFormat(tokenizer)
    prompt = encoded(tokenizer, f"{taken} the cat")
    assert (chat.encode([user("the cat")]), chat.template.format.origin) == (prompt, origin)


# --- what a template makes of a message -------------------------------------------------------------------------------

PARTS_OF = (
    "{% for m in messages %}{{ '<' + m.role + '>' }}{% if m.role in roles %}{% for p in m.content %}"
    "{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("roles", [["user"], ["assistant"], ["system"], ["user", "assistant"], ["user", "system"]])
def test_whose_messages_a_template_reads_as_parts_is_found_for_each_role(roles: list[str]) -> None:
    chat = ChatFormat(with_template("{% set roles = " + repr(roles) + " %}" + PARTS_OF))
    talk = [system("Be brief."), user("the cat"), Message(role="assistant", content="sat"), user("why?")]
    assert chat.template.text(talk) == "<system>Be brief.<user>the cat<assistant>sat<user>why?"


@pytest.mark.parametrize(
    "template",
    [
        "constant",
        "{{ ''.nothing }}",
        "{% for m in messages %}{{ m.text }}{% endfor %}",
        "{% for m in messages %}{% for p in m.content %}{{ p.picture }}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_that_leaves_out_the_question_is_refused(template: str) -> None:
    with pytest.raises(RefusedByTemplate, match="it leaves out what the question says"):
        ChatFormat(with_template(template)).fit([user("the cat")], 1024, 10)


def test_a_template_that_writes_nothing_of_a_conversation_is_refused() -> None:
    long_only = "{% if messages | length < 2 %}{{ messages[0].content }}{% endif %}"
    talk = [user("the cat"), Message(role="assistant", content="sat"), user("why?")]
    with pytest.raises(RefusedByTemplate, match="it writes nothing"):
        ChatFormat(with_template(long_only)).fit(talk, 1024, 10)


def test_a_template_that_does_not_come_to_an_end_is_tried_once_and_for_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def never(source: str, messages: object, *, seconds: int | None = None, **values: object) -> str:
        asked.append(seconds)
        raise TakesTooMuch("it takes more than it may")

    monkeypatch.setattr(chat_template, "rendered", never)
    chat = ChatFormat(with_template("{{ 9 ** (9 ** 9) }}"))
    for _ in range(3):
        with pytest.raises(RefusedByTemplate, match="more than it may"):
            chat.fit([system("Be brief."), user("the cat")], 1024, 10)
    assert asked == [SECONDS_OF_A_TRIAL]
