"""A chat template rendered within limits. It is a program that comes with the checkpoint: jinja's sandbox keeps it from
files and processes, but not from filling the memory. So the process may take only so much more while one is rendered.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase
from transformers.utils import chat_template_utils

from ladechat.model.checkpoint.memory_limit import within_memory

MOST_CHARACTERS = 16_000_000
"""Of a rendered conversation: four times what a context of a million tokens holds."""
MOST_BYTES = 320_000_000
"""That the process may take while a template is rendered. Eight million emoji, the longest conversation that is read,
took up to half of it.
"""


def rendered(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[dict[str, str]], source: str | None, **options: Any
) -> str:
    """The conversation as text, as `tokenizer.apply_chat_template` writes it.

    Args:
        tokenizer: whose template it is, and whose special tokens it may name.
        messages: role and content of each.
        source: another template; None takes the tokenizer's own.
        options: what the template is told besides.

    Raises:
        TemplateError: the template refuses the conversation, or would make too much of it.
    """

    def parts() -> Iterable[str]:
        if type(tokenizer).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template:  # it knows better
            return [str(tokenizer.apply_chat_template(list(messages), chat_template=source, tokenize=False, **options))]
        template: Any = chat_template_utils._compile_jinja_template(tokenizer.get_chat_template(source))
        given = {**tokenizer.special_tokens_map, **options, "messages": messages, "tools": None, "documents": None}
        # Not `generate`: where it fails, that makes a circle of frames, which keep what the template had made.
        return template.root_render_func(template.new_context(given))  # type: ignore[no-any-return]

    try:
        return within_memory(lambda: _joined(parts()), MOST_BYTES)
    except (MemoryError, OverflowError, ValueError) as error:  # the last two are Python's for sizes that cannot be
        raise TemplateError(str(error) or "it takes too much memory") from error


def _joined(parts: Iterable[str]) -> str:
    """The parts as one text, unless that is too long."""
    texts: list[str] = []
    length = 0
    for text in parts:
        texts.append(text)
        length += len(text)
        if length > MOST_CHARACTERS:
            raise TemplateError(f"it makes a text of more than {MOST_CHARACTERS:,} characters")
    return "".join(texts)
