"""Token ids: those that end an answer, and those of a tokenizer that a model has no embeddings for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from ladechat.model.checkpoint.chat_template import ChatTemplate, TemplateMessage
from ladechat.model.checkpoint.marks import is_role_mark

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

KNOWN_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<end_of_turn>", "<|end_of_turn|>", "<|return|>"),
    *("<|END_OF_TURN_TOKEN|>", "<|end_of_text|>", "<|endoftext|>", "<|end▁of▁sentence|>", "</s>", "<|end|>"),
)
"""The tokens that end a turn or a text in the chat formats of well-known models."""

END_OF_A_PART, WHOLE_TURNS = "<|end|>", {"<|return|>", "<|call|>"}
"""Where a format has one of `WHOLE_TURNS`, `END_OF_A_PART` ends only a part of an answer, such as its thinking."""

QUESTION, ANSWER = TemplateMessage("user", "Hello"), TemplateMessage("assistant", "ladechat")
TALKS = ([QUESTION, ANSWER], [QUESTION, ANSWER, QUESTION])


@dataclass(frozen=True)
class Ends:
    """The tokens that end an answer.

    Attributes:
        ids: all of them.
        notices: a sentence for each token found in addition to those the checkpoint names, and for each invalid one.
    """

    ids: frozenset[int]
    notices: tuple[str, ...]


def end_tokens(named: Iterable[object], tokenizer: "PreTrainedTokenizerBase", vocabulary: int) -> Ends:
    """Return the tokens that end an answer of a model.

    The template is examined because many checkpoints name only the end of a text as `eos_token_id`, while their turns
    end with another token: such an answer would run on to its length limit. A mark is recognised by its text, even
    where the tokenizer has it as a normal token. Where the checkpoint names no valid token, or its template shows none,
    `KNOWN_ENDS` are used too.

    Args:
        named: each `eos_token_id` of the checkpoint: an id, a list of them, or None.
        tokenizer: the checkpoint's, with its chat template.
        vocabulary: the number of ids that the model can generate: 0 up to this number.
    """
    lists = [one if isinstance(one, list | tuple) else [one] for one in named if one is not None]
    each = list(chain.from_iterable(lists))
    ids = {one for one in each if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < vocabulary}
    vain = {str(one)[:40] for one in each if isinstance(one, bool) or not isinstance(one, int) or one not in ids}
    notices = [
        f"{one} is named as a token that ends an answer, and the model has none of that id; it is left out."
        for one in sorted(vain)
    ]
    added = {str(token): token_id for token_id, token in tokenizer.added_tokens_decoder.items()}
    marks = {token: token_id for token, token_id in tokenizer.get_vocab().items() if is_role_mark(token)}
    added = {token: token_id for token, token_id in {**marks, **added}.items() if token_id < vocabulary}
    end, refusal = template_end(tokenizer, added)
    if refusal is not None:
        why = str(refusal).rstrip(".")
        notices.append(f"The chat template of this model writes no conversation, so it answers none: {why}.")
    parts = {END_OF_A_PART} if WHOLE_TURNS & added.keys() else set[str]()
    known = [token for token in KNOWN_ENDS if token in added and token not in parts]
    found = known if end is None else [end, *(known if not ids else ())]
    new = [token for token in dict.fromkeys(found) if added[token] not in ids]
    if new:
        whence = "as its chat template has it" if end is not None else "as in the chat formats that are known"
        notices.append(f"Answers also end at {' and '.join(new)}, {whence}; its eos_token_id leaves that out.")
    return Ends(frozenset(ids | {added[token] for token in found}), tuple(notices))


def template_end(tokenizer: "PreTrainedTokenizerBase", added: Mapping[str, int]) -> tuple[str | None, object]:
    """Return the added token that the template writes after an answer, if any; and its error if it writes none.

    Where no token follows the last answer of a conversation, the beginning of the next turn ends it, as in GLM's.
    """
    if not tokenizer.chat_template:
        return None, None
    template, refusals = ChatTemplate(tokenizer), list[TemplateError]()
    for talk in TALKS:
        try:
            text = template.finished(talk)
        except TemplateError as error:
            refusals.append(error)
            continue
        _, found, after = text.rpartition(ANSWER.text)
        marks = [token for token in added if token.strip() and after.lstrip().startswith(token)]
        if found and marks:
            return max(marks, key=len), None
    return None, refusals[0] if len(refusals) == len(TALKS) else None


class UnknownToken(ValueError):
    """A prompt with a token without embedding: the message names it, `hint` says what to do."""

    hint = "Leave it out, or use a copy of the model whose embeddings were resized to its tokenizer."


def check_ids(token_ids: Sequence[int], embeddings: int, tokenizer: "PreTrainedTokenizerBase") -> None:
    """Refuse a prompt that no pass could read: on a GPU, looking up such an id would end the engine.

    Raises:
        UnknownToken: an id has no embedding.
    """
    unknown = next((token_id for token_id in token_ids if not 0 <= token_id < embeddings), None)
    if unknown is not None:
        only = f"and the model has embeddings for the ids 0 to {embeddings - 1:,} only."
        raise UnknownToken(f"The prompt has {_named(unknown, tokenizer)}, {only}")


def beyond_embeddings(embeddings: int, tokenizer: "PreTrainedTokenizerBase") -> str | None:
    """Return a sentence about the tokenizer's tokens without embedding; None where there are none."""
    beyond = sorted(token_id for token_id in tokenizer.get_vocab().values() if token_id >= embeddings)
    if not beyond:
        return None
    first = _named(beyond[0], tokenizer)
    return f"{len(beyond):,} tokens of the tokenizer are beyond the model's embeddings, as {first}."


def _named(token_id: int, tokenizer: "PreTrainedTokenizerBase") -> str:
    token = tokenizer.convert_ids_to_tokens(token_id) if token_id >= 0 else None
    return f"the token id {token_id}" if token is None else f"the token {str(token)[:80]!r} (id {token_id})"
