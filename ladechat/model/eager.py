"""Runs an unmodified transformers model, eagerly, over the slots of a step."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from ladechat.decoder.verify_mask import StepLayout, causal_layout
from ladechat.model.kv_cache import SlabCache

PREFILL_CHUNK = 512


class UnsupportedModel(ValueError):
    """A model that lookahead decoding cannot run on, with the reason."""


class EagerRunner:
    """The `ladechat.decoder.runner.Runner` of any decoder-only transformers model with a KV cache.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.
        chunk: how many tokens of a prompt go through the model at once.

    Raises:
        UnsupportedModel: the model has no KV cache of plain or sliding-window attention layers.
    """

    def __init__(self, model: PreTrainedModel, context_length: int, chunk: int = PREFILL_CHUNK) -> None:
        self.model = model
        self.context_length = context_length
        self._chunk = chunk
        self._tokens: list[int] = []
        self._pending: StepLayout | None = None
        layers = _probe(model)
        self._sliding_windows = [getattr(layer, "sliding_window", None) for layer in layers]
        if len({window for window in self._sliding_windows if window is not None}) > 1:
            raise UnsupportedModel(f"{_name(model)} has layers with sliding windows of different lengths.")
        self._cache = SlabCache(
            [(_shape(layer.keys), _shape(layer.values)) for layer in layers],
            dtype=layers[0].keys.dtype,
            device=model.device,
            capacity_limit=2 * context_length,
        )
        last_only = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._prefill_options: dict[str, Any] = {"logits_to_keep": 1} if last_only else {}

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner.tokens`."""
        return self._tokens

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`.

        Raises:
            ValueError: no tokens, or more than the context holds.
        """
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        common = self.cached_prefix(wanted)
        del self._tokens[common:]
        self._cache.truncate(common)
        while len(self._tokens) < len(wanted):
            chunk = causal_layout(wanted[len(self._tokens) :][: self._chunk])
            self._pass(chunk, **self._prefill_options)
            self.keep(range(len(chunk)))
            yield len(self._tokens)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens the cache holds already."""
        pairs = zip(self._tokens, tokens, strict=False)
        return next(
            (index for index, (cached, token) in enumerate(pairs) if cached != token),
            min(len(self._tokens), len(tokens)),
        )

    def forward(self, layout: StepLayout) -> torch.Tensor:
        """See `Runner.forward`."""
        farthest = len(self._tokens) + int(layout.positions.max())
        if farthest >= self.context_length:
            raise ValueError(f"Position {farthest} is beyond a context of {self.context_length} tokens.")
        return self._pass(layout)

    def keep(self, slots: Sequence[int]) -> None:
        """See `Runner.keep`."""
        if self._pending is None:
            raise RuntimeError("There is no pass whose slots could be kept.")
        self._cache.keep(slots)
        self._tokens.extend(self._pending.tokens[slot] for slot in slots)
        self._pending = None

    @torch.inference_mode()
    def _pass(self, layout: StepLayout, **options: Any) -> torch.Tensor:
        self._cache.reserve(len(layout))
        self._pending = layout
        device = self.model.device
        output = self.model(
            input_ids=torch.tensor([layout.tokens], device=device),
            position_ids=torch.from_numpy(layout.positions + len(self._tokens))[None].to(device),
            attention_mask=self._attention_mask(layout),
            past_key_values=self._cache,
            use_cache=True,
            **options,
        )
        logits: torch.Tensor = output.logits[0]
        return logits

    def _attention_mask(self, layout: StepLayout) -> torch.Tensor | dict[str, torch.Tensor]:
        """The (1, 1, T, L + T) mask over L cached tokens and T slots; for hybrid models, one of each kind of layer."""
        cached = len(self._tokens)
        full = np.ones((len(layout), cached + len(layout)), np.bool_)
        full[:, cached:] = layout.mask
        window = next((window for window in self._sliding_windows if window is not None), None)
        if window is None:
            return self._as_attention_mask(full)
        positions = layout.positions + cached
        distance = positions[:, None] - np.concatenate([np.arange(cached), positions])[None, :]
        sliding = self._as_attention_mask(full & (distance < window))
        if None not in self._sliding_windows:
            return sliding
        return {"full_attention": self._as_attention_mask(full), "sliding_attention": sliding}

    def _as_attention_mask(self, visible: np.ndarray[Any, np.dtype[np.bool_]]) -> torch.Tensor:
        mask = torch.from_numpy(visible)[None, None].to(self.model.device)
        if self.model.config._attn_implementation != "eager":
            return mask
        # Eager attention adds its mask to the scores.
        lowest = torch.finfo(self.model.dtype).min
        return torch.zeros_like(mask, dtype=self.model.dtype).masked_fill_(~mask, lowest)


@torch.inference_mode()
def _probe(model: PreTrainedModel) -> list[Any]:
    """The cache layers that one token leaves behind: configurations do not all tell the shapes of keys and values."""
    if model.config.is_encoder_decoder:
        raise UnsupportedModel(f"{_name(model)} is an encoder-decoder model; ladechat needs a decoder-only one.")
    cache = DynamicCache(config=model.config)
    token = torch.zeros((1, 1), dtype=torch.long, device=model.device)
    try:
        model(input_ids=token, past_key_values=cache, use_cache=True)
    except TypeError as error:
        raise UnsupportedModel(f"{_name(model)} does not take a KV cache.") from error
    layers = list(cache.layers)
    if not layers or any(
        getattr(layer, "keys", None) is None or hasattr(layer, "recurrent_states") for layer in layers
    ):
        raise UnsupportedModel(
            f"{_name(model)} keeps a recurrent state instead of a KV cache, so drafts cannot be undone."
        )
    return layers


def _shape(states: torch.Tensor) -> tuple[int, int]:
    return states.shape[1], states.shape[3]


def _name(model: PreTrainedModel) -> str:
    return f"{type(model).__name__} (model type {model.config.model_type!r})"
