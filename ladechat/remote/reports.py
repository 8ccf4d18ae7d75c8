"""What is asked of a server, and what it tells, whatever its own words for it: plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ladechat.engine_process.thoughts import thinking_switch
from ladechat.protocol import FinishReason, Message, Rivals, ServerFigures, Settings
from ladechat.protocol.values import RIVALS
from ladechat.remote.faults import OF_TEMPLATE
from ladechat.remote.json_values import logprob_at, text_at

MOST_CHARACTERS = 200
"""How much of a token that was likely is shown."""


@dataclass(frozen=True)
class Asked:
    """An answer that is asked for.

    Attributes:
        messages: the conversation, its question last, or the answer that goes on.
        whole_length: whether a shorter limit than the user's was needed, since the context ends there.
        rivals: whether the likeliest tokens are wanted too.
    """

    model: str
    messages: Sequence[Message]
    settings: Settings
    seed: int
    most_tokens: int
    whole_length: bool = True
    rivals: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether an earlier answer is continued."""
        return bool(self.messages) and self.messages[-1].role == "assistant"

    @property
    def of_template(self) -> dict[str, Any]:
        """The field with variables of the chat template; none where the user has set none."""
        variables = thinking_switch(self.settings.thinking)
        return {OF_TEMPLATE: variables} if variables else {}

    def chat(self) -> list[dict[str, str]]:
        """Return the messages as every API takes them."""
        return [{"role": one.role, "content": one.content} for one in self.messages]


@dataclass(frozen=True)
class Prompt:
    """The prompt as the server has read it; None and empty for what it does not tell."""

    token_ids: Sequence[int] = ()
    tokens: int | None = None
    cached_tokens: int = 0


@dataclass(frozen=True)
class Progress:
    """How many tokens of the prompt are read."""

    done_tokens: int
    total_tokens: int


@dataclass(frozen=True)
class Tokens:
    """The tokens of one step.

    Attributes:
        pieces, token_ids, logprobs: an entry for each of them; rivals: the same, or none.
        reasoning: how many of them, at the beginning, are thoughts before the answer.
        passes: the forward passes that the step holds, as far as that is known.
        drafted: the tokens that were drafted for it; None if the server does not tell.
    """

    pieces: list[str]
    token_ids: list[int]
    logprobs: list[float]
    reasoning: int = 0
    passes: int = 1
    drafted: int | None = None
    rivals: list[Rivals] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """The end of an answer, as the server tells it.

    Attributes:
        reason: why it ended.
        figures: the server's own.
        pass_tokens: the tokens of each pass, if some steps turn out to have held several.
    """

    reason: FinishReason
    figures: ServerFigures = field(default_factory=ServerFigures)
    pass_tokens: list[int] = field(default_factory=list)


Report = Prompt | Progress | Tokens | Ended


def with_known(figures: ServerFigures, **known: float | int | None) -> ServerFigures:
    """Return figures with those that are not None."""
    return replace(figures, **{name: value for name, value in known.items() if value is not None})


def step_of(
    text: str, token_ids: Sequence[int], thought: str = "", texts: Sequence[str] = (), logprobs: Sequence[float] = ()
) -> Tokens:
    """Return the step of a chunk, of one pass as far as it is known.

    Args:
        text: the text that it adds to the answer.
        token_ids: its tokens.
        thought: the text that it adds to the reasoning before the answer.
        texts: the text of each token, if it is reported. They count where they make up the chunk's text, but for tokens
            at its end that are no text; where they do not, as inside a character, the last token has all of it.
        logprobs: of each token, if they are reported.
    """
    count = len(token_ids)
    if thought and text:  # the end of the thoughts and the beginning of the answer in one pass
        token_ids = [*token_ids, *([0] if count < 2 else [])]
        count = len(token_ids)
        pieces, reasoning = [*_at_the_end(thought, count - 1), text], count - 1
    else:
        whole = thought + text
        pieces = _pieces(whole, texts) if len(texts) == count else _at_the_end(whole, count)
        reasoning = count if thought else 0
    reported = list(logprobs) if len(logprobs) == count else [0.0] * count
    return Tokens(pieces, list(token_ids), reported, reasoning)


def rivals_of(reported: Sequence[Any], text: str | int, logprob: str | int) -> Rivals:
    """Return the likeliest tokens that a server reports, in any order; each has its text and log-probability there."""
    told = ((logprob_at(one, logprob), text_at(one, text)[:MOST_CHARACTERS]) for one in reported[: RIVALS + 1])
    logprobs, pieces = zip(*sorted(told, reverse=True), strict=True) if reported else ((), ())
    return Rivals(pieces=list(pieces), logprobs=list(logprobs))


def _pieces(whole: str, texts: Sequence[str]) -> list[str]:
    """Return the text of each token. The tokens at the end may be marks, such as that of the end, and have none."""
    reported = next((count for count in range(len(texts), 0, -1) if "".join(texts[:count]) == whole), None)
    return _at_the_end(whole, len(texts)) if reported is None else [*texts[:reported], *[""] * (len(texts) - reported)]


def _at_the_end(text: str, count: int) -> list[str]:
    return [*[""] * (count - 1), text]
