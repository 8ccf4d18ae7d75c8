"""The interface of a runner that the engine loads: the decode loop's, and what belongs to one model on one device."""

from collections.abc import Sequence
from typing import Protocol

import torch

from ladechat.decoder.runner import Runner
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.layer_loop import LayerLoop


class ModelRunner(Runner, Protocol):
    """A runner of one model. The tree runner, the single-token runner and rank 0's satisfy it."""

    @property
    def loop(self) -> LayerLoop | None:
        """The model's layers one by one; None where passes give logits alone."""
        ...

    @property
    def device(self) -> torch.device:
        """The model's device; of a shared model, that of this process's shard."""
        ...

    @property
    def cache(self) -> SlabCache | None:
        """The KV cache; None where the model has its own kind of state."""
        ...

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """Return how many of the first of these tokens are cached with the values that reading all of them gives."""
        ...

    def set_aside(self, tokens: Sequence[int]) -> None:
        """Let `take_back` restore the cached text later, although this prompt, with an answer, is read next.

        Called again for further prompts before `take_back`, the text of the first call is the one restored. What
        cannot be restored is read again.
        """
        ...

    def take_back(self) -> None:
        """Restore the cached text that was set aside, bit for bit; do nothing where none was."""
        ...

    def save_memory(self) -> None:
        """Free the cache after the memory was used up, by whatever pass; the next prompt is read from its beginning."""
        ...

    def use_graphs(self) -> None:
        """Replay CUDA graphs of passes from now on, where the device and the model allow it."""
        ...
