"""The interface of a runner that the engine loads: the decode loop's, and what the engine itself asks of a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from ladechat.decoder.runner import Runner

if TYPE_CHECKING:
    from ladechat.model.runners.layer_loop import LayerLoop


class Cache(Protocol):
    """A KV cache whose size is known."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        ...


class ModelRunner(Runner, Protocol):
    """A runner of one model. The tree runner, the single-token runner, rank 0's and the packed runner satisfy it.

    One that can draft with some of its layers skipped is a `ladechat.decoder.layer_skipping_model.LayerSkippingModel`,
    too.
    """

    @property
    def loop(self) -> "LayerLoop | None":
        """The model's layers one by one; None where passes give logits alone."""
        ...

    @property
    def device(self) -> torch.device:
        """The model's device; of a shared model, that of this process's shard."""
        ...

    @property
    def cache(self) -> Cache | None:
        """The KV cache; None where its size is unknown."""
        ...

    def cached_prefix(self, tokens: Sequence[int]) -> int:
        """Return how many of these tokens, from the first, need not be read again: up to all of them.

        Cached tokens do not count where reading all of these would give them other values, as rotary angles that
        depend on the length of the text do.
        """
        ...

    def set_aside(self, tokens: Sequence[int]) -> None:
        """Copy what the prompt `tokens` and its answer are about to overwrite in the cache, for `take_back`.

        Called again for further prompts before `take_back`, the text of the first call is the one restored. A runner
        that cannot restore a text may do nothing: the next prompt is then read again.
        """
        ...

    def take_back(self) -> None:
        """Restore the cached text that was set aside, bit for bit; do nothing where none was copied."""
        ...

    def save_memory(self) -> None:
        """Free the cache after the memory was used up, by whatever pass; the next prompt is read from its beginning."""
        ...

    def use_graphs(self) -> None:
        """Replay CUDA graphs of passes from now on, where the device and the model allow it."""
        ...
