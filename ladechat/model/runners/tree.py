"""The runner of an unmodified transformers model over trees of slots."""

import inspect
from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.largest import largest
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners import layer_loop
from ladechat.model.runners.cache_probe import LayerShape, probe_cache, single_token_only
from ladechat.model.runners.fixed_pass import WHOLE, Variant
from ladechat.model.runners.graphs import GraphPasses, Record, graph_passes
from ladechat.model.runners.kv_cache import Aside, SlabCache, cache_argument
from ladechat.model.runners.layer_loop import LayerLoop
from ladechat.model.runners.logits import argmax, argmax_with_log_probabilities
from ladechat.model.runners.out_of_memory import release_memory
from ladechat.model.runners.rope import rope_boundary
from ladechat.model.runners.slots import AttentionMasks, Slots

PREFILL_CHUNK = 512
SMALL_CHUNK = 64
"""Prompt tokens per pass once memory has run out."""


class TreeRunner:
    """The `ModelRunner` of any decoder-only transformers model with a KV cache.

    Args:
        model: in evaluation mode, on its device.
        context_length: the number of positions it may use.
        chunk: prompt tokens per pass.
        layers: the shapes that the model caches, where known; None: a pass determines them.

    Attributes:
        layer_shapes: the shapes that the model caches per token, by layer.
        windows: for each kind of layer its sliding window in positions; None: full attention.
        cache: the KV cache.
        capabilities: any tree of slots; hidden states with `loop`.
        loop: the model's layers one by one, where its logits were checked; to be assigned before the first pass.
        graphs: recorded passes of the model; may be assigned between two passes. Trees without a recorded pass run
            the model itself.

    Raises:
        UnsupportedModel: the model is an encoder-decoder.
        SingleTokenOnly: it has no KV cache of plain or sliding-window attention layers.
    """

    capabilities = Capabilities()
    graphs: GraphPasses | None = None
    loop: LayerLoop | None = None

    def __init__(
        self,
        model: PreTrainedModel,
        context_length: int,
        chunk: int = PREFILL_CHUNK,
        layers: Sequence[LayerShape] | None = None,
    ) -> None:
        self._model = model
        self.context_length = context_length
        self._chunk = chunk
        self._tokens: list[int] = []
        self._pending: Slots | None = None
        self._angles: list[int] = []
        self._aside: Aside | None = None
        self.layer_shapes = layers = probe_cache(model) if layers is None else layers
        self.windows = {layer.kind: layer.window for layer in layers}
        if len({layer.window for layer in layers} - {None}) > 1:
            raise single_token_only(model, "has sliding windows of different lengths")
        self._rope = rope_boundary(model.config.get_text_config(decoder=True))
        self._device = model.device  # stored, because asking a model for it takes longer than using it
        added = model.dtype if model.config._attn_implementation == "eager" else None
        self._masks = AttentionMasks(self.windows, model.device, added)
        self.cache = SlabCache(
            [(layer.keys, layer.values) for layer in layers],
            dtype=layers[0].dtype,
            device=model.device,
            capacity_limit=2 * context_length,
        )
        self._cache_argument = cache_argument(model.forward)
        has_option = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._last_only: dict[str, Any] = {"logits_to_keep": 1} if has_option else {}

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return self._device

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    @property
    def max_positions(self) -> int:
        position = len(self._tokens)
        room = max(1, self.context_length - position)
        same_angles = self._rope.max_positions(position) if self._rope else None
        return room if same_angles is None else min(room, same_angles)

    @property
    def has_fixed_angles(self) -> bool:
        """Whether the rotary angles of a position are the same in every text."""
        return self._rope is None

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        if not 0 < len(tokens) <= self.context_length:
            raise ValueError(f"A prompt of {len(tokens)} tokens does not fit a context of {self.context_length}.")
        wanted = list(tokens[:-1])
        common = min(self.cached_prefix(tokens), len(wanted))
        if self._rope and not common == len(wanted) == len(self._tokens):
            self._reset_angles()
        self._truncate(common)
        self.cache.reserve(len(wanted) - common)  # once: growing needs the old slabs and the new ones at the same time
        if self.graphs is not None:  # graphs read all places, and NaN left by an overflow must not spoil this answer
            self.cache.wipe()
        while len(self._tokens) < len(wanted):
            self._read(wanted[len(self._tokens) :][: self._chunk], len(tokens))
            yield len(self._tokens)

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """See `ModelRunner.cached_prefix`.

        Where angles depend on the length of the text, tokens of a shorter text with other angles do not count, unless
        this text only continues the cached one by one token.
        """
        known = self._tokens
        if self._rope:
            continued = len(known) == len(tokens) - 1
            angles = self._rope.angles(len(tokens))
            if not (continued and known == list(tokens[:-1])):
                known = known[: next((i for i, own in enumerate(self._angles) if own != angles), len(known))]
        return common_prefix(known, tokens)

    def prepare(self) -> None:
        if self.graphs is not None:
            self.graphs.record_all()

    def forward(self, tree: SlotTree) -> torch.Tensor:
        slots = self._checked(tree)
        if self._rope and self._rope.recomputes:
            self._recompute(len(self._tokens) + 1)
        logits = self._replayed(slots)
        if logits is None:
            return self._model_pass(slots)
        self._pending = slots
        return logits

    @torch.inference_mode()
    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        """See `Runner.forward_hidden`.

        Raises:
            ValueError: as `forward`; it has no `loop`; or the maps do not fit its layers or the size of its states.
        """
        if self.loop is None:
            raise ValueError(self.capabilities.logits_only)
        maps, own = want.maps, list(want.carriers)
        if maps and (maps.layers[-1] >= self.loop.depth or maps.weights.shape[1:] != (self.loop.width,) * 2):
            raise ValueError(f"Maps of shape {tuple(maps.weights.shape)} at layers {maps.layers} are of another model.")
        slots = self._checked(tree)
        rows = layer_loop.with_pseudo_rows(slots, own, len(maps.layers) if maps else 0)
        if self.graphs is not None and self.graphs.has_variants and not want.lens:
            logits = self._replayed(rows, Variant(maps), own)
            if logits is not None:
                self._pending = slots
                real, states = len(slots), self.graphs.states(logits)
                return logits[:real], layer_loop.hidden_of(self.loop, states, real, want)
        self.cache.reserve(len(rows))
        self._pending = slots
        positions = self._positions(rows)
        return layer_loop.run(self.loop, slots, self._masks.of(rows, len(self._tokens)), positions, self.cache, want)

    @property
    def layers(self) -> int:
        return 0 if self.loop is None else self.loop.depth

    @torch.inference_mode()
    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        loop = self.loop
        if loop is None:
            raise ValueError(self.capabilities.logits_only)
        chain = self._checked(SlotTree.chain([token] * most))
        self.cache.reserve(most)
        self._pending = None  # its keys are overwritten
        mask = self._masks.of(chain, len(self._tokens))
        positions = self._positions(chain)
        variant = Variant(skipped=frozenset(skipped))

        def skipping(token: int, row: int) -> tuple[int, float]:
            recorded = self.graphs is not None and self.graphs.has_variants
            logits = self._replayed(Slots.causal([token]), variant) if recorded else None
            if logits is None:
                seen, position = layer_loop.rows_of(mask, row, row + 1, most), positions[:, row : row + 1]
                logits = layer_loop.skipping_pass(loop, self.cache, token, skipped, seen, position)
            found = (self.graphs and self.graphs.argmax(logits)) or argmax_with_log_probabilities(logits)
            return found[0][0], found[1][0]

        drafted = layer_loop.draft(skipping, self.cache, token, most, threshold)
        if self.graphs is not None:  # a later graph reads these places, where overflowing drafts may have left NaN
            self.cache.wipe(most)
        return drafted

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        if self.loop is not None and self.loop.at_once is not None:
            found: tuple[list[int], list[float] | None] = self.loop.at_once.best(logits)
            return found
        return (self.graphs and self.graphs.argmax(logits)) or argmax(logits)

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        if self.loop is not None and self.loop.at_once is not None:
            found: NDArray[np.int64] = self.loop.at_once.largest(logits, count)
            return found
        return largest(logits, count)

    def commit(self, slots: Sequence[int]) -> None:
        if self._pending is None:
            raise RuntimeError("There is no pass whose slots could be committed.")
        self.cache.commit(slots)
        self._tokens += [self._pending.tokens[slot] for slot in slots]
        if self._rope:
            last = len(self._tokens) - len(slots) + int(self._pending.positions.max())
            self._angles.extend([self._rope.angles(last + 1)] * len(slots))
        self._pending = None
        if self.graphs is not None:
            self.graphs.record_next()

    def set_aside(self, tokens: Sequence[int]) -> None:
        """See `ModelRunner.set_aside`. A text with angles that depend on its length is read again."""
        if self._rope is None:
            self._aside = self._aside or Aside(self._tokens)
            self._aside.copy(self.cache, min(self.cached_prefix(tokens), len(tokens) - 1))

    def take_back(self) -> None:
        if self._aside is not None:
            self._aside.bring_back(self.cache)
            self._tokens, self._aside, self._pending = self._aside.tokens, None, None

    def save_memory(self) -> None:
        """See `ModelRunner.save_memory`. Prompts are read in smaller chunks from now on."""
        self._truncate(0)
        self._aside = self._pending = None
        self.cache.give_back()
        self._chunk = min(self._chunk, SMALL_CHUNK)
        release_memory(self._device)

    def use_graphs(self, record: Record | None = None, kernels: bool = True) -> None:
        """See `ModelRunner.use_graphs`.

        Args:
            record: records a graph, on any device; by default a CUDA graph, on a CUDA device.
            kernels: whether to use our own kernels where they support the model.
        """
        if self.has_fixed_angles and (record is not None or self.device.type == "cuda"):
            self.graphs = graph_passes(self, self._model, self.cache, self.windows, record, kernels)

    def _checked(self, tree: SlotTree) -> Slots:
        """Return the slots of a tree, if a pass may include their positions."""
        slots = Slots.of_tree(tree)
        last = len(self._tokens) + int(slots.positions.max())
        if last >= self.context_length:
            raise ValueError(f"Position {last} is beyond a context of {self.context_length} tokens.")
        if self._rope and slots.positions.max() >= self.max_positions:
            raise ValueError(f"A pass from position {len(self._tokens)} may not include {last}: the angles change.")
        return slots

    def _read(self, tokens: Sequence[int], length: int) -> None:
        """Append the next tokens of a prompt of `length` tokens to the cache."""
        slots = Slots.causal(tokens)
        if self._rope and self._rope.angles(len(self._tokens) + len(tokens)) != self._rope.angles(length):
            # A filler slot at the text's last position gives the pass the angles of the whole text.
            slots = slots.with_fillers(tokens[-1:], [length - 1 - len(self._tokens)])
        self._model_pass(slots, last_only=True)
        self.commit(range(len(tokens)))

    def _recompute(self, length: int) -> None:
        """Recompute the text, as the model's own generation does, if `length` tokens have just crossed the boundary."""
        if self._rope is not None and 0 in self._angles and self._rope.angles(length) != 0:
            tokens = list(self._tokens)
            self._truncate(0)
            while len(self._tokens) < len(tokens):
                self._read(tokens[len(self._tokens) :][: self._chunk], length)

    def _truncate(self, length: int) -> None:
        del self._tokens[length:]
        del self._angles[length:]
        self.cache.truncate(length)

    @torch.inference_mode()
    def _reset_angles(self) -> None:
        """Restore the usual angles: with dynamic ones, a model reuses those of the longest text until a short one."""
        zero = torch.zeros((1, 1), dtype=torch.long, device=self._device)
        self._model(input_ids=zero, position_ids=zero, use_cache=False)

    def _replayed(self, slots: Slots, variant: Variant = WHOLE, carriers: Sequence[int] = ()) -> torch.Tensor | None:
        """Return the logits of a recorded pass; None where none is recorded, or nothing is cached."""
        return self.graphs.forward(slots, variant, carriers) if self.graphs is not None and self._tokens else None

    @torch.inference_mode()
    def _model_pass(self, slots: Slots, last_only: bool = False) -> torch.Tensor:
        """Return the (T, vocabulary) logits of a pass; with `last_only`, where possible those of the last slot only."""
        self.cache.reserve(len(slots))
        self._pending = slots
        mask = self._masks.of(slots, len(self._tokens))
        if self.loop is not None and self.loop.at_once is not None:
            return self.loop.whole_pass(slots, mask, self.cache, 1 if last_only else len(slots))[0]
        output = self._model(
            input_ids=torch.tensor([slots.tokens], device=self._device),
            position_ids=self._positions(slots),
            attention_mask=mask,
            use_cache=True,
            **{self._cache_argument: self.cache},
            **(self._last_only if last_only else {}),
        )
        logits: torch.Tensor = output.logits[0]
        return logits

    def _positions(self, slots: Slots) -> torch.Tensor:
        """Return the (1, T) positions of slots in the text."""
        return torch.from_numpy(slots.positions + len(self._tokens))[None].to(self._device)
