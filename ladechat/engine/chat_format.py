"""Turns a list of messages into the tokens of a prompt that fits the context."""

import bisect
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from ladechat.engine.detokenizer import UNDECODABLE
from ladechat.engine_process.thoughts import TOKENS_OF_A_MARK, Thoughts, thinking_switch
from ladechat.model.checkpoint.chat_template import ChatTemplate, Encoded
from ladechat.protocol import MOST_TEXT, Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OTHER_TEMPLATE = "Start a new conversation, or use another copy of the model, whose template is whole."
SHORTEN = "Shorten the question, or use a model with a longer context."

SHARE_FOR_THE_ANSWER = 4
"""At most one part in this many of the context is reserved for the answer when history is trimmed."""

SHARE_DROPPED_AT_ONCE = 4
"""History is dropped in steps of this part of the context. If every turn dropped exactly what it needs, every prompt
would begin differently, and nothing in the KV cache could be reused."""


MOST_MESSAGE, MOST_CONVERSATION = MOST_TEXT, 4 * MOST_TEXT
"""Limits in characters: of the last message, and of all messages together. Tokenizing a million characters takes 2
seconds and 200 MB."""


class MessageTooLong(ValueError):
    """A conversation that is too long to be answered: the message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class NothingToAnswer(ValueError):
    """A conversation that does not end with a message to answer."""


class RefusedByTemplate(ValueError):
    """A conversation that the model's chat template cannot format: the message says why, `hint` what to do."""

    def __init__(self, why: TemplateError | str) -> None:
        sentence = f"The model's chat template cannot write this conversation: {why}"
        super().__init__(sentence if sentence[-1] in ".!?" else f"{sentence}.")
        self.hint = OTHER_TEMPLATE


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Tokens for the model, and what was left out to make them fit.

    Attributes:
        token_ids: the prompt, up to where the answer begins.
        answer: the tokens that the answer already has, where it is continued; else empty.
        system_folded: whether the system message is part of a question, because the template has no place for it.
    """

    token_ids: list[int]
    messages: list[Message]
    dropped_turns: int
    dropped_messages: int
    tokens_before: int
    answer: list[int] = field(default_factory=list)
    system_folded: bool = False

    @property
    def all_ids(self) -> list[int]:
        """The prompt and the tokens that the answer already has."""
        return [*self.token_ids, *self.answer]


class ChatFormat:
    """Selects the messages that fit into a prompt, and formats them with a checkpoint's chat template.

    Args:
        tokenizer: the checkpoint's tokenizer.
        eos_ids: the tokens that end an answer; an answer that ends with one of them cannot be continued.
        model: the model's name, see `ChatTemplate`.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", eos_ids: Collection[int] = (), model: str = "") -> None:
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self.template = ChatTemplate(tokenizer, model)

    def fit(self, messages: Sequence[Message], context_length: int, max_new_tokens: int) -> EncodedPrompt:
        """Return the prompt for these messages, without the oldest turns if an answer would not fit after them.

        The number of dropped tokens is rounded up to whole steps of `SHARE_DROPPED_AT_ONCE`, so that it stays the same
        for several turns. A turn is a user's message with its answer. System messages and the last user message always
        stay.

        Raises:
            MessageTooLong: the last message alone leaves no room for one token of an answer, or the text is longer than
                the limits above.
            NothingToAnswer: the last message is neither the user's nor an answer that can be continued.
            RefusedByTemplate: the template cannot format the conversation.
        """
        if messages and messages[-1].role == "assistant":
            return self._fit_continued(messages, context_length, max_new_tokens)
        if not messages or messages[-1].role != "user":
            raise NothingToAnswer("the last message of a conversation has to be the user's, or an answer that goes on")
        _check_characters(messages)
        room = context_length - min(max_new_tokens, context_length // SHARE_FOR_THE_ANSWER)
        included, dropped_turns = list(messages), 0
        token_ids, folded = self._encode(included)
        before = len(token_ids)
        if before > room:
            step = max(context_length // SHARE_DROPPED_AT_ONCE, 1)
            most = max(before - math.ceil((before - room) / step) * step, 0)
            included, dropped_turns = self._newest_turns(messages, most)
            token_ids, folded = self._encode(included)
        if len(token_ids) >= context_length:
            raise MessageTooLong(
                f"This question makes a prompt of {len(token_ids):,} tokens, but the model's context holds "
                f"{context_length:,} with the answer.",
                SHORTEN,
            )
        dropped_messages = len(messages) - len(included)
        return EncodedPrompt(token_ids, included, dropped_turns, dropped_messages, before, system_folded=folded)

    def _fit_continued(self, messages: Sequence[Message], context_length: int, max_new_tokens: int) -> EncodedPrompt:
        """Return the prompt that the answer began with and the answer's tokens; a shorter prompt if both do not fit."""
        *before, answer = messages
        if not before or before[-1].role != "user":
            raise NothingToAnswer("an answer that goes on has to stand behind the question that it answers")
        _check_characters(before)
        text, stop = self._text_of(answer.token_ids), self.template.format.stop
        if answer.token_ids and (answer.token_ids[-1] in self._eos_ids or (stop and stop in (text or ""))):
            raise NothingToAnswer("the answer is complete, the model itself has ended it")
        if not answer.token_ids or text is None or _whole(answer.content) not in text:
            raise NothingToAnswer("an answer goes on from its tokens, and these are another model's or another text's")
        room = context_length - len(answer.token_ids)
        try:
            prompt = self.fit(before, context_length, max_new_tokens)
            if len(prompt.token_ids) >= room:
                prompt = self.fit(before, max(room, 0), max_new_tokens)
        except MessageTooLong as error:
            message = f"The answer and its question fill the model's context of {context_length:,} tokens."
            raise MessageTooLong(message, "Ask for the rest in a new conversation.") from error
        return replace(prompt, messages=[*prompt.messages, answer], answer=answer.token_ids)

    @cached_property
    def takes_thinking(self) -> bool:
        """Whether its template has a switch for thinking before the answer."""
        return self.template.distinguishes(thinking_switch("on"), thinking_switch("off"))

    def thoughts(self, prompt: EncodedPrompt) -> Thoughts | None:
        """Return what takes thoughts apart from where the answer begins or goes on; None if the model has no marks."""
        if (marks := self.template.thought_marks) is None:
            return None
        end = str(self._tokenizer.decode(prompt.token_ids[-TOKENS_OF_A_MARK:]))
        thoughts = Thoughts(marks, begun=end.rstrip().endswith(marks[0]))
        thoughts.divide([str(self._tokenizer.decode(prompt.answer))])
        return thoughts

    def _newest_turns(self, messages: Sequence[Message], most: int) -> tuple[list[Message], int]:
        """Return as many of the newest turns as fit into `most` tokens, but at least one; and how many were dropped.

        The search starts with few turns: what fits is short, however long the conversation is.
        """
        turns = sum(message.role == "user" for message in messages)

        def too_many(count: int) -> bool:
            return count > turns or len(self.encode(_without_oldest_turns(messages, turns - count))) > most

        beyond = 2
        while not too_many(beyond):
            beyond *= 2
        # The first number of turns that is too large; the one before it fits, or is the minimum.
        count = bisect.bisect_left(range(beyond), True, lo=beyond // 2 + 1, key=too_many) - 1
        return _without_oldest_turns(messages, turns - count), turns - count

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation as the template formats it, up to where the next answer begins.

        Raises:
            RefusedByTemplate: the template cannot format it.
        """
        return self._encode(messages).token_ids

    def _encode(self, messages: Sequence[Message]) -> Encoded:
        try:
            encoded = self.template.encode(messages)
        except TemplateError as error:
            raise RefusedByTemplate(error) from error
        if not encoded.token_ids:
            raise RefusedByTemplate("it writes nothing")
        return encoded

    def _text_of(self, token_ids: list[int] | None) -> str | None:
        """Return the text of tokens, less an incomplete character at the end; None for no tokens or unknown ids."""
        if not token_ids or max(token_ids) >= len(self._tokenizer) or min(token_ids) < 0:
            return None
        text = self._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return _whole(str(text))


def _whole(text: str) -> str:
    """Return the text without an incomplete character at its end."""
    return text.rstrip(UNDECODABLE)


def _check_characters(messages: Sequence[Message]) -> None:
    last = len(messages[-1].content)
    if last > MOST_MESSAGE:
        raise MessageTooLong(
            f"This question has {last:,} characters, and no more than {MOST_MESSAGE:,} are read.", SHORTEN
        )
    together = sum(len(message.content) for message in messages)
    if together > MOST_CONVERSATION:
        message = f"This conversation has {together:,} characters, and no more than {MOST_CONVERSATION:,} are read."
        raise MessageTooLong(message, "Start a new conversation.")


def _without_oldest_turns(messages: Sequence[Message], count: int) -> list[Message]:
    """Return the conversation without its `count` oldest turns. System messages stay."""
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    first, rest = users[0], users[count]
    stays = [message for message in messages[first:rest] if message.role == "system"]
    return [*messages[:first], *stays, *messages[rest:]]
