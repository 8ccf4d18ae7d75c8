"""The runner of models that cannot verify several tokens at once: one token per pass, as `generate` does."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.largest import largest
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.kv_cache import CACHE
from ladechat.model.runners.logits import argmax
from ladechat.model.runners.out_of_memory import release_memory

STATE_ARGUMENTS = {CACHE: CACHE, "state": "state", "mems": CACHE}
if CACHE == "past_key_values":
    STATE_ARGUMENTS["cache_params"] = "cache_params"  # recurrent states; later versions call them a cache too
"""The names of the states that models return for the next pass, with the argument that takes each.

Models that return none of these (openai-gpt, reformer) read the whole text in each pass."""


class SingleTokenRunner:
    """The `ModelRunner` of a model with a recurrent state, ALiBi or another kind of state.

    The model's own `prepare_inputs_for_generation` makes the inputs of each pass, and a prompt is read in one pass
    with its last token, as `generate` does: some of these models give another result for a text read in two parts. So
    the first step of an answer includes the time of the prompt. The changes of a pass cannot be undone: a text that
    does not continue the last one is read from its beginning.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.
        reason: why it takes one token per pass, as a sentence.

    Attributes:
        capabilities: one slot per pass.
        loop: None; its passes give logits alone.
        cache: None; the model has its own kind of state.
    """

    loop = cache = None

    def __init__(self, model: PreTrainedModel, context_length: int, reason: str) -> None:
        self._model = model
        self.context_length = context_length
        self.capabilities = Capabilities(single_token=reason)
        self._tokens: list[int] = []
        self._state: dict[str, Any] = {}
        self._pending: int | None = None
        self._aside: tuple[list[int], dict[str, Any], int | None] | None = None

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return self._model.device

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def max_positions(self) -> int:
        return 1

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`. Nothing is computed yet: the first `forward` reads the prompt."""
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        if self._pending is not None or wanted != self._tokens:
            self._tokens, self._state, self._pending = wanted, {}, None
            yield len(wanted)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """See `ModelRunner.cached_prefix`: all tokens read so far, or none."""
        known = self._pending is None and list(tokens[: len(self._tokens)]) == self._tokens
        return len(self._tokens) if known and len(tokens) - len(self._tokens) <= 1 else 0

    def prepare(self) -> None:
        """See `Runner.prepare`; nothing to do."""

    def forward(self, tree: SlotTree) -> torch.Tensor:
        if len(tree) != 1:
            raise ValueError(self.capabilities.single_token)
        if len(self._tokens) >= self.context_length:
            raise ValueError(f"Position {len(self._tokens)} is beyond a context of {self.context_length} tokens.")
        if self._pending is not None:  # the last pass was not committed, or it failed half-way
            self._state = {}
        return self._pass([*self._tokens, tree.tokens[0]])

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        raise ValueError(self.capabilities.logits_only)

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        return argmax(logits)

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        return largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        if self._pending is None:
            raise RuntimeError("There is no pass whose slots could be committed.")
        if slots:
            self._tokens.append(self._pending)
            self._pending = None

    def set_aside(self, tokens: Sequence[int]) -> None:
        """See `ModelRunner.set_aside`. Another text gets a new state, so nothing is copied."""
        if self._aside is None:
            self._aside = self._tokens, self._state, self._pending
            self._tokens, self._state, self._pending = [], {}, None

    def take_back(self) -> None:
        if self._aside is not None:
            self._tokens, self._state, self._pending = self._aside
            self._aside = None

    def save_memory(self) -> None:
        """See `ModelRunner.save_memory`: frees the model's state."""
        self._aside = None
        self._tokens, self._state, self._pending = [], {}, None
        release_memory(self.device)

    def use_graphs(self) -> None:
        """See `ModelRunner.use_graphs`; there are none."""

    @torch.inference_mode()
    def _pass(self, text: Sequence[int]) -> torch.Tensor:
        """Run a pass over the last token of a text, or over all of it where there is no state."""
        self._pending = text[-1]
        inputs = own_inputs(self._model, torch.tensor([text], device=self.device), self._state)
        output = self._model(**inputs, return_dict=True)
        self._state = {STATE_ARGUMENTS[name]: output[name] for name in STATE_ARGUMENTS if output.get(name) is not None}
        logits: torch.Tensor = output.logits[0, -1:]
        return logits


def own_inputs(
    model: PreTrainedModel, ids: torch.Tensor, state: Mapping[str, Any], use_cache: bool = True
) -> dict[str, Any]:
    """Return `generate`'s inputs for a text without padding: its last token, or all of it where there is no state.

    The text is (1, n) int64; the state is what the pass before returned, empty in a first pass.
    """
    own: dict[str, Any] = {**state, "attention_mask": torch.ones_like(ids)}
    if "position_ids" in inspect.signature(model.forward).parameters:
        own["position_ids"] = torch.arange(ids.shape[1], device=ids.device)[None]
    inputs: dict[str, Any] = model.prepare_inputs_for_generation(  # type: ignore[operator]  # of a mixin
        ids, next_sequence_length=1 if state else None, is_first_iteration=not state, use_cache=use_cache, **own
    )
    return inputs
