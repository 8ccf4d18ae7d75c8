"""Which tokens end an answer: those that the checkpoint names, and the one that its chat template ends a turn with."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from ladechat.model.checkpoint.chat_template import ChatTemplate, Turn
from ladechat.model.checkpoint.marks import is_role_mark

KNOWN_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<end_of_turn>", "<|end_of_turn|>", "<|return|>"),
    *("<|END_OF_TURN_TOKEN|>", "<|end_of_text|>", "<|endoftext|>", "<|end▁of▁sentence|>", "</s>", "<|end|>"),
)
"""What ends a turn or a text in the chat formats of well-known models."""

END_OF_A_PART, WHOLE_TURNS = "<|end|>", {"<|return|>", "<|call|>"}
"""Where a format has one of the latter, the former ends a part of an answer, such as its thinking."""

QUESTION, ANSWER = Turn("user", "Hello"), Turn("assistant", "ladechat")
TALKS = ([QUESTION, ANSWER], [QUESTION, ANSWER, QUESTION])


@dataclass(frozen=True)
class Ends:
    """The tokens that end an answer.

    Attributes:
        ids: all of them.
        notices: in a sentence each, what was found that the checkpoint does not name, and what it names in vain.
    """

    ids: frozenset[int]
    notices: tuple[str, ...]


def end_tokens(named: Iterable[object], tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> Ends:
    """The tokens that end an answer of a model.

    The template is asked because many checkpoints name only the end of a text as `eos_token_id`, while their turns end
    with another token: such an answer would run on to its length limit. A mark counts by its text, also where the
    tokenizer takes it for a usual token. Where the checkpoint names no end that its model has, the known ones count.

    Args:
        named: each `eos_token_id` of the checkpoint: an id, a list of them, or None.
        tokenizer: of the checkpoint, with its template.
        vocabulary: ids from here on are none that the model can write.
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
    """The added token that follows an answer in a conversation as the template writes it, or None if none does; and why
    it writes none, if it does not.

    Where nothing follows the last answer of a conversation, what begins the next turn ends this one, as in GLM's.
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
