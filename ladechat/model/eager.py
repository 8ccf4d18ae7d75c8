"""Runs an unmodified transformers model over the slots of a step: eagerly, or through ready-made passes of it."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from ladechat.decoder.reading import read
from ladechat.decoder.verify_mask import StepLayout, causal_layout
from ladechat.model.cache_probe import plain_only, probe_cache
from ladechat.model.compiled import MOST_PARAMETERS
from ladechat.model.kv_cache import SlabCache
from ladechat.model.memory import hand_back
from ladechat.model.passes import Passes
from ladechat.model.rope import rope_boundary

PREFILL_CHUNK = 512
SMALL_CHUNK = 64
"""How many tokens of a prompt go through the model at once when memory is short."""


class EagerRunner:
    """The `ladechat.decoder.runner.Runner` of any decoder-only transformers model with a KV cache.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.
        chunk: how many tokens of a prompt go through the model at once.

    Raises:
        UnsupportedModel: the model is an encoder-decoder.
        PlainDecodingOnly: it has no KV cache of plain or sliding-window attention layers.
    """

    plain_only: str | None = None
    compiled: Passes | None = None
    """May be assigned between any two passes. One that has no pass for a layout leaves it to the model itself."""

    def __init__(self, model: PreTrainedModel, context_length: int, chunk: int = PREFILL_CHUNK) -> None:
        self.model = model
        self.context_length = context_length
        self._chunk = chunk
        self._tokens: list[int] = []
        self._pending: StepLayout | None = None
        self._angles: list[int] = []
        layers = probe_cache(model)
        self._window_of = {layer.kind: layer.window for layer in layers}
        self._slides = any(self._window_of.values())
        self._all_seen = np.ones((1, 1, 1, 1), np.bool_)
        if len({layer.window for layer in layers} - {None}) > 1:
            raise plain_only(model, "has sliding windows of different lengths")
        self._rope = rope_boundary(model.config.get_text_config(decoder=True))
        # Kept: to ask a model for them takes longer than to use them.
        self._device = model.device
        self._adds_masks = model.config._attn_implementation == "eager"
        self._cache = SlabCache(
            [(layer.keys, layer.values) for layer in layers],
            dtype=layers[0].dtype,
            device=model.device,
            capacity_limit=2 * context_length,
        )
        last_only = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._prefill_options: dict[str, Any] = {"logits_to_keep": 1} if last_only else {}

    @property
    def tokens(self) -> Sequence[int]:
        """See `Runner.tokens`."""
        return self._tokens

    @property
    def reach(self) -> int:
        """See `Runner.reach`."""
        position = len(self._tokens)
        room = max(1, self.context_length - position)
        shared = self._rope.reach(position) if self._rope else None
        return room if shared is None else min(room, shared)

    @property
    def cache(self) -> SlabCache:
        """Where keys and values are."""
        return self._cache

    @property
    def windows(self) -> dict[str, int | None]:
        """The kinds of its layers, and how far those of each kind look back; None for as far as there is text."""
        return self._window_of

    @property
    def fixed_angles(self) -> bool:
        """Whether the rotary angles of a position are the same in every text."""
        return self._rope is None

    @property
    def compilable(self) -> bool:
        """Whether compiled passes are for this model: a small one, on a CPU, in whole precision, whose angles stay."""
        return (
            self._device.type == "cpu"
            and self.fixed_angles
            and self.model.config._attn_implementation == "sdpa"
            and self.model.dtype in (torch.float32, torch.float64)
            and getattr(self.model.config, "quantization_config", None) is None
            and self.model.num_parameters() <= MOST_PARAMETERS
        )

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """See `Runner.prefill`.

        Raises:
            ValueError: no tokens, or more than the context holds.
        """
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        common = min(self.cached_prefix(tokens), len(wanted))
        if self._rope and not common == len(wanted) == len(self._tokens):
            self._forget_stretched_angles()
        self._truncate(common)
        self._cache.reserve(len(wanted) - common)  # once: every growth takes the old slabs and the new ones together
        while len(self._tokens) < len(wanted):
            self._read(wanted[len(self._tokens) :][: self._chunk], len(tokens))
            yield len(self._tokens)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the first of these tokens the cache holds as a model would that reads all of them at once.

        Where angles hang on the length of the text, that is none of a shorter text with others; but a text that is just
        being continued goes on with those that it has.
        """
        known = self._tokens
        if self._rope:
            continued = len(known) == len(tokens) - 1
            angles = self._rope.angles(len(tokens))
            if not (continued and known == list(tokens[:-1])):
                known = known[: next((i for i, own in enumerate(self._angles) if own != angles), len(known))]
        pairs = zip(known, tokens, strict=False)
        return next(
            (index for index, (cached, token) in enumerate(pairs) if cached != token),
            min(len(known), len(tokens)),
        )

    def forward(self, layout: StepLayout) -> torch.Tensor:
        """See `Runner.forward`."""
        farthest = len(self._tokens) + (int(layout.positions.max()) if len(layout) > 1 else 0)
        if farthest >= self.context_length:
            raise ValueError(f"Position {farthest} is beyond a context of {self.context_length} tokens.")
        if self._rope and layout.positions.max() >= self.reach:
            raise ValueError(f"A pass from position {len(self._tokens)} may not reach {farthest}: the angles change.")
        if self._rope and self._rope.starts_afresh:
            self._read_afresh(len(self._tokens) + 1)
        return self._pass(layout)

    def read(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """See `Runner.read`."""
        found = None if self.compiled is None else self.compiled.read(logits)
        return read(logits) if found is None else found

    def keep(self, slots: Sequence[int]) -> None:
        """See `Runner.keep`."""
        if self._pending is None:
            raise RuntimeError("There is no pass whose slots could be kept.")
        self._cache.keep(slots)
        self._tokens += [self._pending.tokens[slot] for slot in slots]
        if self._rope:
            farthest = len(self._tokens) - len(slots) + int(self._pending.positions.max())
            self._angles.extend([self._rope.angles(farthest + 1)] * len(slots))
        self._pending = None
        if self.compiled is not None:
            self.compiled.rest()

    def save_memory(self) -> None:
        """Give back what the cache takes, after the memory was used up, and read prompts in smaller chunks from now on.

        The next prompt is read anew. It is right after any pass that failed, whatever that had done by then.
        """
        self._truncate(0)
        self._pending = None
        self._cache.give_back()
        self._chunk = min(self._chunk, SMALL_CHUNK)
        hand_back(self._device)

    def _read(self, tokens: Sequence[int], length: int) -> None:
        """Append the next tokens of a prompt of `length` tokens to the cache."""
        layout = causal_layout(tokens)
        if self._rope and self._rope.angles(len(self._tokens) + len(tokens)) != self._rope.angles(length):
            # A slot at the end of the text, seen by none of the others, gives the pass the angles of the whole.
            layout = _with_slot_at(layout, length - 1 - len(self._tokens))
        self._pass(layout, **self._prefill_options)
        self.keep(range(len(tokens)))

    def _read_afresh(self, length: int) -> None:
        """As the model's own generation does it, when a text of `length` tokens has just outgrown the boundary."""
        if self._rope is not None and 0 in self._angles and self._rope.angles(length) != 0:
            tokens = list(self._tokens)
            self._truncate(0)
            while len(self._tokens) < len(tokens):
                self._read(tokens[len(self._tokens) :][: self._chunk], length)

    def _truncate(self, length: int) -> None:
        del self._tokens[length:]
        del self._angles[length:]
        self._cache.truncate(length)

    @torch.inference_mode()
    def _forget_stretched_angles(self) -> None:
        """Bring back the usual angles: a model with dynamic ones keeps those of the longest text until a short one."""
        zero = torch.zeros((1, 1), dtype=torch.long, device=self._device)
        self.model(input_ids=zero, position_ids=zero, use_cache=False)

    def _pass(self, layout: StepLayout, **options: Any) -> torch.Tensor:
        if self.compiled is not None and self._tokens and not options:
            compiled = self.compiled.forward(layout, self._cache, self._masks)
            if compiled is not None:
                self._pending = layout
                return compiled
        return self._eager_pass(layout, **options)

    @torch.inference_mode()
    def _eager_pass(self, layout: StepLayout, **options: Any) -> torch.Tensor:
        self._cache.reserve(len(layout))
        self._pending = layout
        device = self._device
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

    def _masks(self, layout: StepLayout) -> list[torch.Tensor]:
        mask = self._attention_mask(layout)
        return list(mask.values()) if isinstance(mask, dict) else [mask]

    def _attention_mask(self, layout: StepLayout) -> torch.Tensor | dict[str, torch.Tensor]:
        """The (1, 1, T, L + T) mask over L cached tokens and T slots; for hybrid models, one of each kind of layer."""
        cached = len(self._tokens)
        if len(layout) == 1 and not self._slides:
            return self._as_attention_mask(self._seen_by_one(cached + 1))
        full = np.ones((1, 1, len(layout), cached + len(layout)), np.bool_)
        full[..., cached:] = layout.mask
        if not self._slides:
            return self._as_attention_mask(full)
        positions = layout.positions + cached
        distance = positions[:, None] - np.concatenate([np.arange(cached), positions])[None, :]
        masks = {
            kind: self._as_attention_mask(full & (distance < window) if window else full)
            for kind, window in self._window_of.items()
        }
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _seen_by_one(self, places: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The mask of one slot that sees them all: a piece of one that is kept."""
        if self._all_seen.size < places:
            self._all_seen = np.ones((1, 1, 1, 2 * places), np.bool_)
        return self._all_seen[..., :places]

    def _as_attention_mask(self, visible: np.ndarray[Any, np.dtype[np.bool_]]) -> torch.Tensor:
        mask = torch.from_numpy(visible)
        if self._device.type != "cpu":
            mask = mask.to(self._device)
        if not self._adds_masks:
            return mask
        # Eager attention adds its mask to the scores.
        lowest = torch.finfo(self.model.dtype).min
        return torch.zeros_like(mask, dtype=self.model.dtype).masked_fill_(~mask, lowest)


def _with_slot_at(layout: StepLayout, position: int) -> StepLayout:
    """The layout with one slot more, at `position`, that sees itself only and is seen by no other."""
    slots = len(layout)
    mask = np.zeros((slots + 1, slots + 1), np.bool_)
    mask[:slots, :slots] = layout.mask
    mask[slots, slots] = True
    positions = np.append(layout.positions, position)
    return StepLayout((*layout.tokens, layout.tokens[-1]), positions, mask, layout.fresh_slots, layout.node_slots)
