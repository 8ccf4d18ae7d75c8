"""A conversation becomes the text that the model was trained to read."""

from tokenizers.processors import TemplateProcessing

from ladechat.engine.conversation import ChatFormat
from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.messages import CHATML, NO_SYSTEM_ROLE, system, user, with_template
from tests.engine.tokenizers import decoded, encoded


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


def test_a_prompt_begins_with_one_beginning_of_text_though_the_tokenizer_adds_one_of_its_own() -> None:
    tokenizer = with_template(None)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    assert tokenizer.encode("the cat")[0] == tokenizer.bos_token_id
    prompt = ChatFormat(tokenizer).encode([user("the cat")])
    assert prompt[0] == tokenizer.bos_token_id
    assert prompt.count(tokenizer.bos_token_id) == 1
