"""A loop over a model's own decoder layers, in which hidden states can be read, and rows added, between layers.

The model is not patched: its layers are called as its `forward` calls them. Whether that gives the same logits
is checked when a model is loaded (`ladechat.model.loading.self_check`).
"""

import inspect
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from ladechat.model.runners.cache_argument import cache_argument

Masks = torch.Tensor | dict[str, torch.Tensor]


class NoLayerLoop(ValueError):
    """A model whose layers cannot be called one by one; the message is the reason, and follows the model's name."""


class LayerLoop:
    """The parts of a decoder-only model: embedding, layers, final norm, output layer.

    Args:
        model: in evaluation mode.

    Attributes:
        depth: the number of decoder layers.
        width: d, the size of hidden states.

    Raises:
        NoLayerLoop: the model does not have these parts under their usual names.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config: Any = model.config.get_text_config(decoder=True)
        decoder: Any = model.get_decoder()
        self._head: Any = model.get_output_embeddings()
        missing = [name for name in ("embed_tokens", "layers", "norm", "rotary_emb") if not hasattr(decoder, name)]
        if missing or self._head is None:
            raise NoLayerLoop(f"has no part called {missing[0] if missing else 'lm_head'}")
        self._decoder = decoder
        self._kinds: list[str | None] = list(getattr(config, "layer_types", None) or [None] * len(decoder.layers))
        self.depth, self.width = len(decoder.layers), int(config.hidden_size)
        if len(self._kinds) != self.depth:
            raise NoLayerLoop("has other layers than its config.json says")
        self._angles_by_kind = "layer_type" in inspect.signature(decoder.rotary_emb.forward).parameters
        self._cache_argument = cache_argument(decoder.layers[0].forward)
        self._scale = float(getattr(config, "embedding_multiplier", None) or 1.0)
        self._logit_scale = float(getattr(config, "logit_scale", None) or 1.0)
        self._logit_divisor = float(getattr(config, "logits_scaling", None) or 1.0)
        self._cap: float | None = getattr(config, "final_logit_softcapping", None)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the hidden states (1, T, d) of tokens (1, T) before the first layer."""
        embedded: torch.Tensor = self._decoder.embed_tokens(tokens)
        return embedded if self._scale == 1.0 else embedded * self._scale

    def angles(self, hidden: torch.Tensor, positions: torch.Tensor) -> dict[str | None, Any]:
        """Return the rotary angles at positions (1, T) for each kind of layer; `hidden` gives type and device."""
        rotary = self._decoder.rotary_emb
        if self._angles_by_kind:
            return {kind: rotary(hidden, positions, kind) for kind in set(self._kinds)}
        return dict.fromkeys(self._kinds, rotary(hidden, positions))

    def through(
        self,
        layer: int,
        hidden: torch.Tensor,
        mask: Masks | None,
        positions: torch.Tensor,
        angles: dict[str | None, Any],
        cache: Cache | None,
    ) -> torch.Tensor:
        """Return hidden states (1, T, d) after one decoder layer; its keys and values go into the cache.

        Args:
            layer: index of the layer, from 0.
            hidden: hidden states before it.
            mask: (1, 1, T, cached + T), or one for each kind of layer.
            positions: (1, T).
            angles: see `angles`.
            cache: the KV cache that the rows see in addition to each other.
        """
        kind = self._kinds[layer]
        own = mask[kind or ""] if isinstance(mask, dict) else mask
        output = self._decoder.layers[layer](
            hidden,
            attention_mask=own,
            position_ids=positions,
            **{self._cache_argument: cache},
            use_cache=cache is not None,
            position_embeddings=angles[kind],
        )
        after: torch.Tensor = output[0] if isinstance(output, tuple) else output
        return after

    def final(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the final norm of hidden states (…, d) after the last layer: the input of the output layer."""
        normed: torch.Tensor = self._decoder.norm(hidden)
        return normed

    def read(self, final: torch.Tensor) -> torch.Tensor:
        """Return the logits (…, vocabulary) of final hidden states (…, d)."""
        logits: torch.Tensor = self._head(final)
        if self._logit_scale != 1.0:
            logits = logits * self._logit_scale
        if self._logit_divisor != 1.0:
            logits = logits / self._logit_divisor
        return logits if self._cap is None else torch.tanh(logits / self._cap) * self._cap
