"""Turns questions into the prompts for every method, with the answers of plain decoding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jinja2 import TemplateError

from ladechat.bench.options import BenchRefused
from ladechat.bench.questions import Question
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.layer_search import JUDGED_QUESTION, JUDGED_TOKENS
from ladechat.model.checkpoint.chat_template import ChatTemplate
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading.token_ids import UnknownToken, check_ids
from ladechat.protocol import Message


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """The tokens that every method gets, and the answer of plain decoding."""

    kind: str
    name: str
    token_ids: list[int]
    expected: tuple[int, ...]


def make_prompts(
    loaded: LoadedModel, questions: Sequence[Question], max_new_tokens: int, tick: Callable[[], None]
) -> list[BenchPrompt]:
    """Return one prompt for each turn of each conversation; the model's own greedy answers are between the turns.

    `tick` is called after every turn.

    Raises:
        BenchRefused: a prompt that leaves no room for the answer in the model's context, that the model's chat template
            rejects, or that has a token without an embedding.
    """
    prompts, template = [], ChatTemplate(loaded.tokenizer, loaded.name)
    for question in questions:
        messages: list[Message] = []
        for number, turn in enumerate(question.turns, start=1):
            name = question.name if len(question.turns) == 1 else f"{question.name}, question {number}"
            messages.append(Message(role="user", content=turn))
            token_ids = _tokens(loaded, template, messages, name)
            _check_room(name, len(token_ids), max_new_tokens, loaded.context_length)
            answer = _plain_answer(loaded, token_ids, max_new_tokens)
            prompts.append(BenchPrompt(question.kind, name, token_ids, answer))
            text = loaded.tokenizer.decode(list(answer), skip_special_tokens=True, clean_up_tokenization_spaces=False)
            messages.append(Message(role="assistant", content=str(text), token_ids=list(answer)))
            tick()
    return prompts


def judged_prompt(loaded: LoadedModel) -> list[int]:
    """Return the prompt that judges sets of layers to skip: none of the measured questions.

    Raises:
        BenchRefused: as `make_prompts`.
    """
    name = "what layers are judged by"
    question = [Message(role="user", content=JUDGED_QUESTION)]
    token_ids = _tokens(loaded, ChatTemplate(loaded.tokenizer, loaded.name), question, name)
    _check_room(name, len(token_ids), JUDGED_TOKENS, loaded.context_length)
    return token_ids


def _tokens(loaded: LoadedModel, template: ChatTemplate, messages: Sequence[Message], name: str) -> list[int]:
    """Return the tokens of a conversation as the model's chat template formats it; as plain text if it has none."""
    try:
        token_ids = template.encode(messages).token_ids
        check_ids(token_ids, loaded.embeddings, loaded.tokenizer)
    except TemplateError as error:
        raise BenchRefused(
            f"The model's chat template refuses {name} ({error}); leave it out with --questions."
        ) from error
    except UnknownToken as error:
        raise BenchRefused(f"Of {name}: {error} {error.hint}") from error
    return token_ids


def _check_room(name: str, tokens: int, max_new_tokens: int, context_length: int) -> None:
    if tokens + max_new_tokens > context_length:
        raise BenchRefused(
            f"The prompt {name!r} has {tokens:,} tokens, and with an answer of {max_new_tokens:,} that is more than "
            f"the model's context of {context_length:,}; lower --max-new-tokens, or leave it out with --questions."
        )


def _plain_answer(loaded: LoadedModel, token_ids: list[int], max_new_tokens: int) -> tuple[int, ...]:
    steps = Decoder(loaded.runner).run(token_ids, Limits(max_new_tokens, loaded.eos_ids))
    return tuple(token for step in steps for token in step.tokens)
