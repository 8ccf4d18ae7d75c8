"""Runs a model one token a pass, in its own way: for those that cannot verify several tokens at once."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.decoder.reading import read
from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.memory import hand_back

STATE_NAMES = {
    "past_key_values": "past_key_values",
    "cache_params": "cache_params",
    "state": "state",
    "mems": "past_key_values",
}
"""How models name in their output what they carry from pass to pass, and the argument that takes it again.

Models that name none of these (openai-gpt, reformer) read the whole text in each pass."""


class StepwiseRunner:
    """The `ladechat.decoder.runner.Runner` of a model with a recurrent state, ALiBi or another memory of its own.

    The inputs of each pass are prepared by the model's own `prepare_inputs_for_generation`, and a prompt is read in one
    pass with its last token, as `generate` does it: some of these models read a text otherwise in two parts. So the
    first step of an answer takes the time of the prompt. What a pass has changed cannot be taken back: a text that does
    not go on from the last one is read anew.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.
        plain_only: why it is run so, in a sentence.
    """

    compiled = None
    """Its passes run as the model is."""
    cache = None
    """It has a memory of its own."""

    def __init__(self, model: PreTrainedModel, context_length: int, plain_only: str) -> None:
        self.model = model
        self.context_length = context_length
        self.plain_only = plain_only
        self._tokens: list[int] = []
        self._state: dict[str, Any] = {}
        self._pending: int | None = None
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner.tokens`."""
        return self._tokens

    @property
    def reach(self) -> int:
        """See `Runner.reach`."""
        return 1

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`. Nothing is computed yet: the first `forward` reads the prompt.

        Raises:
            ValueError: no tokens, or more than the context holds.
        """
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        if self._pending is not None or wanted != self._tokens:
            self._tokens, self._state, self._pending = wanted, {}, None
            yield len(wanted)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens need not be read again: all that are known, or none."""
        known = self._pending is None and list(tokens[: len(self._tokens)]) == self._tokens
        return len(self._tokens) if known and len(tokens) - len(self._tokens) <= 1 else 0

    def forward(self, layout: StepLayout) -> torch.Tensor:
        """See `Runner.forward`.

        Raises:
            ValueError: more than one slot, or a position beyond the context.
        """
        if len(layout) != 1:
            raise ValueError(self.plain_only)
        if len(self._tokens) >= self.context_length:
            raise ValueError(f"Position {len(self._tokens)} is beyond a context of {self.context_length} tokens.")
        if self._pending is not None:  # the pass before was not kept, or it failed half-way
            self._state = {}
        return self._pass([*self._tokens, layout.tokens[0]])

    def read(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """See `Runner.read`."""
        return read(logits)

    def keep(self, slots: Sequence[int]) -> None:
        """See `Runner.keep`."""
        if self._pending is None:
            raise RuntimeError("There is no pass whose slots could be kept.")
        if slots:
            self._tokens.append(self._pending)
            self._pending = None

    def save_memory(self) -> None:
        """Give back what is carried from pass to pass, after the memory was used up. The next prompt is read anew."""
        self._tokens, self._state, self._pending = [], {}, None
        hand_back(self.model.device)

    @torch.inference_mode()
    def _pass(self, text: Sequence[int]) -> torch.Tensor:
        """A pass over the last token of a text, or over all of it where nothing is carried from before."""
        self._pending = text[-1]
        ids = torch.tensor([text], device=self.model.device)
        own = {**self._state, "attention_mask": torch.ones_like(ids)}
        if self._takes_positions:
            own["position_ids"] = torch.arange(len(text), device=ids.device)[None]
        inputs = self.model.prepare_inputs_for_generation(  # type: ignore[operator]  # of a mixin, not seen by mypy
            ids,
            next_sequence_length=1 if self._state else None,
            is_first_iteration=not self._state,
            use_cache=True,
            **own,
        )
        output = self.model(**inputs, return_dict=True)
        self._state = {STATE_NAMES[name]: output[name] for name in STATE_NAMES if output.get(name) is not None}
        logits: torch.Tensor = output.logits[0, -1:]
        return logits
