"""Messages, past answers in tokens, and tokenizers that bring a chat template."""

from collections.abc import Callable

import pytest
from transformers import PreTrainedTokenizerBase

from ladechat.protocol import Message
from tests.engine import tokenizers
from tests.engine.tokenizers import decoded

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
