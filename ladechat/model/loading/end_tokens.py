"""The tokens that end an answer: those that the checkpoint names, and the one with which its template ends a turn."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from ladechat.model.checkpoint.chat_template import ChatTemplate, TemplateMessage
from ladechat.model.checkpoint.marks import is_role_mark

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


def end_tokens(named: Iterable[object], tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> Ends:
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
    ids: set[int] = set()
    vain: set[str] = set()
    for one in _each(named):
        sound = isinstance(one, int) and not isinstance(one, bool) and 0 <= one < vocabulary
        if sound:
            ids.add(one)  # type: ignore[arg-type]  # it is an int
        else:
            vain.add(str(one)[:40])
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
    known = list(_known_ends(added))
    found = known if end is None else [end, *(known if not ids else ())]
    new = [token for token in dict.fromkeys(found) if added[token] not in ids]
    if new:
        whence = "as its chat template has it" if end is not None else "as in the chat formats that are known"
        notices.append(f"Answers also end at {' and '.join(new)}, {whence}; its eos_token_id leaves that out.")
    return Ends(frozenset(ids | {added[token] for token in found}), tuple(notices))


def template_end(
    tokenizer: PreTrainedTokenizerBase, added: Mapping[str, int]
) -> tuple[str | None, TemplateError | None]:
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


def _known_ends(added: Mapping[str, int]) -> Iterator[str]:
    for token in KNOWN_ENDS:
        if token in added and not (token == END_OF_A_PART and WHOLE_TURNS & added.keys()):
            yield token


def _each(named: Iterable[object]) -> Iterator[object]:
    for one in named:
        if isinstance(one, list | tuple):
            yield from one
        elif one is not None:
            yield one
