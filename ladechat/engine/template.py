"""A chat template rendered within limits. It is a program that comes with the checkpoint: jinja's sandbox keeps it from
files and processes, but not from filling the memory.

transformers compiles it, with what it adds to jinja for templates. Here the operations that can make much of little are
checked before they are carried out, and the text is counted as it is written.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

from jinja2 import Environment, Template
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.nodes import Concat
from transformers import PreTrainedTokenizerBase
from transformers.utils import chat_template_utils

MOST_CHARACTERS = 16_000_000
"""Of a rendered conversation, and of any text on the way: four times what a context of a million tokens holds."""
MOST_BITS = 4096
"""Of a whole number that a template computes: a larger one is no length, place or date."""
_WIDE = re.compile(r"\d{7}|\*")
"""A format that asks for millions of characters, or takes their number from elsewhere."""


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
    if type(tokenizer).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template:  # it knows better
        return str(tokenizer.apply_chat_template(list(messages), chat_template=source, tokenize=False, **options))
    template = _compiled(tokenizer.get_chat_template(source))
    given = {**tokenizer.special_tokens_map, **options, "messages": messages, "tools": None, "documents": None}
    return _joined(template.generate(**given))


@lru_cache(maxsize=8)
def _compiled(source: str) -> Template:
    """The template, each of its large operations checked."""
    # That of an empty template: compiling computes what is constant, with nothing checked yet.
    environment: Any = chat_template_utils._cached_compile_jinja_template("").environment
    call = environment.call
    environment.intercepted_binops = frozenset(["*", "**", "+", "%"])
    environment.call_binop = lambda _, operator, left, right: _operation(environment, operator, left, right)
    environment.call = lambda context, function, *args, **kwargs: call(
        context, function, *_checked(function, args), **kwargs
    )
    environment.filters = {name: _checking(one) for name, one in environment.filters.items()}
    environment.joined = _joined
    environment.code_generator_class = _Generator
    compiled: Template = Environment.from_string(environment, source)
    return compiled


class _Generator(CodeGenerator):
    """Writes `a ~ b` as a call, so that it is checked too."""

    def visit_Concat(self, node: Concat, frame: Frame) -> None:  # noqa: N802 - as jinja calls it
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


def _joined(parts: Any) -> str:
    """The parts as one text, unless that is too long."""
    texts: list[str] = []
    length = 0
    for part in parts:
        texts.append(str(part))
        length += len(texts[-1])
        _check_length(length)
    return "".join(texts)


def _operation(environment: Any, operator: str, left: Any, right: Any) -> Any:
    """Carry out an operation whose result is not too large."""
    if operator == "**" and isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * abs(right))
    elif operator == "*" and isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    elif operator == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(times, int) and hasattr(many, "__len__"):
                _check_length(len(many) * times)
    elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
        _check_length(len(left) + len(right))
    elif operator == "%" and isinstance(left, str):
        _check_format(left)
    return environment.binop_table[operator](left, right)


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, which refuses numbers that would make too much of a text."""

    @wraps(function)  # with the marks by which jinja knows what else it wants
    def checked(*args: Any, **kwargs: Any) -> Any:
        _checked(function, (*args, *kwargs.values()))
        return function(*args, **kwargs)

    return checked


def _checked(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call: no widths and counts in the millions, and no formats that hold such."""
    owner = getattr(getattr(function, "__wrapped__", function), "__self__", None)  # the sandbox wraps formats
    if isinstance(owner, str) and getattr(function, "__name__", "") in ("format", "format_map"):
        _check_format(owner)
    for arg in args:
        if isinstance(arg, int):
            _check_length(abs(arg))
    if getattr(function, "__name__", "") == "do_format" and args and isinstance(args[0], str):
        _check_format(args[0])
    return args


def _check_length(length: int) -> None:
    if length > MOST_CHARACTERS:
        raise SecurityError(f"it makes a text of more than {MOST_CHARACTERS:,} characters")


def _check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise SecurityError("it computes a number of thousands of digits")


def _check_format(text: str) -> None:
    if _WIDE.search(text):
        raise SecurityError("it has a format for a text of millions of characters")
