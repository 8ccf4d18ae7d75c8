"""A request to a decoding loop in one value, and the checks of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

from torch import Tensor
from transformers import GenerationConfig, MaxLengthCriteria, PreTrainedModel
from transformers.generation.configuration_utils import GenerationMode
from transformers.generation.streamers import BaseStreamer

from ladechat.generate.callers import LoopArguments

TOKEN_BY_TOKEN = {
    *(GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.ASSISTED_GENERATION),
    *(GenerationMode.BEAM_SEARCH, GenerationMode.BEAM_SAMPLE),
}
"""Generation modes that transformers has a loop for; for others it fetches one from the hub."""


class DecodingSettings(NamedTuple):
    """W, N and G of lookahead decoding."""

    window: int
    ngram: int
    guesses: int

    def check(self) -> None:
        """Check that each of them is in range.

        Raises:
            ValueError: W < 0, N < 2 or G < 0, or no integer.
        """
        for name, least in (("window", 0), ("ngram", 2), ("guesses", 0)):
            check_count(name, getattr(self, name), least)


def check_count(name: str, value: Any, least: int) -> None:
    """Check an argument that counts something.

    Raises:
        ValueError: it is no integer, or below `least`.
    """
    if type(value) is bool or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer, not {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}.")


@dataclass(frozen=True)
class Request:
    """A call of `generate`, as it prepares it for a decoding loop.

    Attributes:
        model: any model.
        input_ids: (B, n) int64.
        processors: the logits processors, in order.
        criteria: the stopping criteria; any of them ends the text.
        config: the generation config, with the special tokens.
        settings: W, N and G.
        streamer: receives the tokens, if there is one.
        greeted: whether the streamer has received the prompt.
        given: the other arguments of `generate`.
        model_kwargs: further inputs of the model.
    """

    model: PreTrainedModel
    input_ids: Tensor
    processors: Any
    criteria: Any
    config: GenerationConfig
    settings: DecodingSettings
    streamer: BaseStreamer | None = None
    greeted: bool = False
    given: LoopArguments = field(default_factory=LoopArguments)
    model_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def mode(self) -> GenerationMode:
        """The generation mode that the config selects."""
        return self.config.get_generation_mode(self.given.assistant_model)

    @property
    def longest(self) -> int:
        """The maximum number of tokens of the text, prompt included. A `MaxLengthCriteria` given replaces max_length.

        As in `generate`, one token is written before any criterion is called.
        """
        return longest_text(self.config, self.criteria, self.input_ids)

    def greet(self) -> None:
        """Pass the prompt to the streamer, which expects it first."""
        if self.streamer is not None and not self.greeted:
            self.streamer.put(self.input_ids.cpu())

    def refuse(self) -> None:
        """Refuse requests that `generate` itself cannot serve.

        Raises:
            ValueError: contrastive or constrained search, DoLa, groups of beams; a streamer with beams.
        """
        if self.mode not in TOKEN_BY_TOKEN:
            name = str(self.mode.value).replace("_", " ")
            raise ValueError(
                f"These options ask for {name}, which is no lookahead decoding; leave custom_generate out."
            )
        if self.config.num_beams > 1 and self.streamer is not None:
            raise ValueError("A streamer cannot follow beam search: which beam is the text is known at its end.")


def longest_text(config: GenerationConfig, criteria: Iterable[object], input_ids: Tensor) -> int:
    """Return the maximum number of tokens of a text, see `Request.longest`."""
    limits = [one.max_length for one in criteria if isinstance(one, MaxLengthCriteria)]
    return max(min(limits, default=config.max_length), input_ids.shape[1] + 1)


def refuse_unknown_ids(model: PreTrainedModel, input_ids: Tensor) -> None:
    """Refuse a token id that has no embedding: on a GPU, looking it up would end the process.

    Args:
        model: any model.
        input_ids: the ids of the text.

    Raises:
        ValueError: an id is below 0, or beyond the model's embeddings.
    """
    embeddings = getattr(model.get_input_embeddings(), "num_embeddings", None)
    if embeddings is None:
        return
    unknown = input_ids[(input_ids < 0) | (input_ids >= embeddings)]
    if unknown.numel():
        raise ValueError(
            f"input_ids has {int(unknown[0])}, and the model has embeddings for the ids 0 to {embeddings - 1:,} only."
        )
