"""Passes as CUDA graphs: all GPU work of a pass, recorded once and launched by a single call.

Launched one by one, the operations of a pass leave a GPU waiting for Python most of the time. A graph has a fixed
shape, so there is one for each of some numbers of slots and places, recorded between two steps once a shape has been
used twice; until then the model runs unrecorded. Smaller passes are padded with slots that no other slot sees.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.soft_cap import attention_for
from ladechat.model.runners.fixed_pass import WHOLE, FixedPass, Inputs, Pass, Variant
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.logits import agree, fill, in_lists, ordinary_tokens
from ladechat.model.runners.slots import Slots

SLOT_COUNTS = (1, 8, 16, 32, 64, 96, 128, 192, 256)
"""The numbers of slots for which passes are recorded. Larger passes run the model itself."""

SMALLEST_CONTEXT = 512
"""The smallest recorded number of places; further ones follow by factors of 3/2 and 4/3, see `context_for`."""

USES_BEFORE_RECORDING = 2
"""The passes with a number of slots before one is recorded."""

MOST_GRAPHS = 32
"""The most graphs in memory; beyond it, the least recently used one is dropped."""

Replay = Callable[[], None]
Record = Callable[[Callable[[], None]], Replay]
"""Runs a function that computes on fixed memory, and returns a function that repeats that computation."""

logger = logging.getLogger(__name__)


def unrecorded(function: Callable[[], None]) -> Replay:
    """Run `function` and return it: a `Record` without a recording, as a reference for graphs."""
    function()
    return function


class CudaGraphs:
    """Records CUDA graphs. They share the memory for intermediate results, so one runs at a time.

    Libraries allocate work space per stream. The recording stream is used for nothing else, so that its work space
    belongs to the graphs: other compiled code in the process (torch.compile with CUDA graphs) frees all others.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream, self._warm = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], None]) -> Replay:
        """See `Record`.

        Raises:
            RuntimeError: an operation cannot be recorded, or the memory does not suffice.
        """
        with torch.cuda.device(self._device):
            current = torch.cuda.current_stream()
            self._warm.wait_stream(current)
            with torch.cuda.stream(self._warm):
                for _ in range(2):  # unrecorded: the first-call work of libraries must not be recorded
                    function()
            current.wait_stream(self._warm)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                function()
        replay: Replay = graph.replay
        return replay


class Shape(NamedTuple):
    """The key of a recorded pass: its numbers of slots and of KV cache places, and its variant."""

    slots: int
    context: int
    variant: Variant


class Recorded(NamedTuple):
    """A recorded graph: its numbers of slots and places, and the seconds that recording took."""

    slots: int
    context: int
    seconds: float


class GraphPasses:
    """The recorded passes of one model over one cache.

    Args:
        compute: the model as a function of tensors.
        cache: the KV cache that passes read and write. When it grows, all graphs are dropped.
        vocabulary: the number of logits.
        width: d, the size of hidden states.
        dtype: the model's type.
        record: records a graph.

    Attributes:
        sizes: the numbers of slots to which passes are padded.
        history: all graphs recorded so far.
        has_variants: whether passes have variants, and `states` returns their hidden states.
    """

    sizes = SLOT_COUNTS

    def __init__(
        self, compute: Pass, cache: SlabCache, vocabulary: int, width: int, dtype: torch.dtype, record: Record
    ) -> None:
        device = cache.rows(0, 1)[0].device
        self.history: list[Recorded] = []
        self._compute, self._cache, self._record = compute, cache, record
        self.has_variants = compute.whole_cache
        self._inputs = Inputs(SLOT_COUNTS[-1], device)
        self._logits = torch.zeros(SLOT_COUNTS[-1], vocabulary, dtype=dtype, device=device)
        self._states = torch.zeros(SLOT_COUNTS[-1], width, dtype=dtype, device=device)
        self._best = torch.zeros(2, SLOT_COUNTS[-1], dtype=torch.float32, device=device)
        self._graphs: OrderedDict[Shape, Replay] = OrderedDict()
        self._failed: set[Shape] = set()
        self._uses: Counter[tuple[int, Variant]] = Counter()
        self._latest: set[tuple[int, Variant]] = set()
        self._growths = cache.growths
        cache.wipe()

    @torch.inference_mode()
    def forward(self, slots: Slots, variant: Variant = WHOLE, carriers: Sequence[int] = ()) -> Tensor | None:
        """Return the (T, vocabulary) logits of a pass after the cached tokens, valid until the next pass.

        The keys and values of slot i are written to the cache at place L + i, as the model itself does. Returns None if
        no graph is recorded for this number of slots and places: then the model itself has to run.

        Args:
            slots: the slots, and pseudo rows after them as in `ladechat.model.runners.layer_loop.with_pseudo_rows`.
            variant: how the pass differs from the model's own; where `has_variants`.
            carriers: the slots that carry the pseudo rows.
        """
        size = next((size for size in self.sizes if size >= len(slots)), None)
        if size is None:
            return None
        self._latest.add((size, variant))
        self._uses[size, variant] += 1
        shape = self._shape(size, variant)
        replay = self._graphs.get(shape)
        if replay is None:
            return None
        self._graphs.move_to_end(shape)
        self._inputs.fill(slots.filled_up(size), self._cache.length, entering(size, len(slots), variant, carriers))
        try:
            replay()
        except RuntimeError as error:
            self._give_up(shape, error)
            return None
        return self._logits[: len(slots)]

    def states(self, logits: Tensor) -> Tensor:
        """Return the (T, d) final hidden states from which these logits, of the latest pass, were computed."""
        return self._states[: len(logits)]

    def argmax(self, logits: Tensor) -> tuple[list[int], list[float]] | None:
        """Return each slot's argmax and its log-probability; None if these are not the logits of the latest pass."""
        if logits.data_ptr() != self._logits.data_ptr():
            return None
        return in_lists(self._best[:, : len(logits)])

    def record_all(self) -> None:
        """Record a graph of each size, after the cached tokens."""
        for size in self.sizes:
            self._record_size(size)

    def record_next(self) -> None:
        """Record the graphs that the next step is likely to need. Called between two steps."""
        latest, self._latest = self._latest, set()
        for size, variant in latest:
            if self._uses[size, variant] >= USES_BEFORE_RECORDING:
                self._record_size(size, variant)

    @torch.inference_mode()
    def _record_size(self, slots: int, variant: Variant = WHOLE) -> None:
        """Record a pass of `slots` slots after the cached tokens, unless that was done before, or failed."""
        try:
            shape = self._shape(slots, variant)
        except torch.OutOfMemoryError:  # if the slabs have to grow, the next pass raises it itself
            return
        if shape in self._graphs or shape in self._failed:
            return
        try:
            self._graphs[shape] = self._recorded(*shape)
        except Exception as error:  # libraries may raise anything, and the model itself can always run
            self._give_up(shape, error)
        if len(self._graphs) > MOST_GRAPHS:
            self._graphs.popitem(last=False)

    def _shape(self, slots: int, variant: Variant) -> Shape:
        """Return the recorded shape of a pass after the cached tokens. Reserves room in the cache."""
        self._cache.reserve(slots)
        if self._growths != self._cache.growths:  # the graphs hold addresses of freed slabs
            self._growths = self._cache.growths
            self._graphs.clear()
            self._cache.wipe()
        if self._compute.whole_cache:
            return Shape(slots, self._cache.capacity, variant)
        return Shape(slots, min(context_for(self._cache.length + slots), self._cache.capacity), variant)

    def _recorded(self, slots: int, context: int, variant: Variant) -> Replay:
        started = time.perf_counter()
        given, rows = self._inputs.of(slots), self._cache.all_rows(context)

        def run() -> None:
            logits, states = self._compute(given, rows, variant)
            self._logits[:slots].copy_(logits)
            self._best[:, :slots].copy_(self._compute.best(logits))
            if states is not None:
                self._states[:slots].copy_(states)

        # Warming up runs the pass too: its dummy tokens go after the cached ones. Their positions are 0.
        nowhere = np.full(slots, -self._cache.length)
        self._inputs.fill(
            Slots([0] * slots, nowhere, np.eye(slots, dtype=np.bool_)),
            self._cache.length,
            entering(slots, slots, variant, ()),
        )
        replay = self._record(run)
        self.history.append(Recorded(slots, context, time.perf_counter() - started))
        return replay

    def _give_up(self, shape: Shape, error: Exception) -> None:
        self._graphs.pop(shape, None)
        self._failed.add(shape)
        logger.warning("The pass of %s slots and %s places has no CUDA graph: %s", shape.slots, shape.context, error)


def entering(total: int, rows: int, variant: Variant, carriers: Sequence[int]) -> NDArray[np.int64] | None:
    """Return (2, total) of each row the map that makes it, -1 for none, and the slot that carries it, 0 for none.

    None for a variant without maps. The pseudo rows are the last of `rows`: map by map, one of each carrier.
    """
    if variant.maps is None:
        return None
    made = np.repeat([[-1], [0]], total, axis=1)
    count = len(variant.maps.layers)
    begin = rows - count * len(carriers)
    made[:, begin:rows] = np.repeat(range(count), len(carriers)), np.tile(np.asarray(carriers, np.int64), count)
    return made


def context_for(places: int) -> int:
    """Return `places` rounded up to a number for which passes are recorded: 512, 768, 1024, 1536, 2048, 3072 …"""
    context = SMALLEST_CONTEXT
    while context < places:
        context = context * 3 // 2 if context & (context - 1) == 0 else context * 4 // 3
    return context


def graph_passes(
    runner: Runner,
    model: PreTrainedModel,
    cache: SlabCache,
    windows: Mapping[str, int | None],
    record: Record | None = None,
    kernels: bool = True,
) -> GraphPasses | None:
    """Return an empty set of graphs for the passes of a model; None if they cannot be recorded.

    The angles of the runner's model are the same in every text. `record` records a graph, by default a CUDA graph, on a
    CUDA device. `kernels` says whether to use our own kernels where they support the model.
    """
    usual = model.config._attn_implementation == attention_for(model.config)
    if not usual or getattr(model.config, "quantization_config", None) is not None:
        return None
    config = model.config.get_text_config(decoder=True)
    own = _in_few_kernels(runner, model, cache) if kernels and not any(windows.values()) else None
    compute = own or FixedPass(model, windows)
    record = record or CudaGraphs(model.device)
    return GraphPasses(compute, cache, config.vocab_size, config.hidden_size, model.dtype, record)


def _in_few_kernels(runner: Runner, model: PreTrainedModel, cache: SlabCache) -> Pass | None:
    """Return the pass with our own kernels, where the model is on a CUDA device and the logits agree; else None."""
    if model.device.type == "cuda":
        try:
            from ladechat.model.runners.llama_pass import LlamaPass

            compute = LlamaPass(model)
            if agrees(compute, runner, model, cache):
                return compute
            logger.warning("Passes are the model's own: it computes something else than a Llama.")
        except Exception as error:  # without Triton, or on a GPU it does not support, the model itself can run
            logger.warning("Passes are the model's own: %s", error)
    return None


@torch.inference_mode()
def agrees(compute: Pass, runner: Runner, model: PreTrainedModel, cache: SlabCache) -> bool:
    """Return whether a pass gives the model's own logits, for one slot and for a tree. Empties the cache."""
    text = ordinary_tokens(model)
    tree = SlotTree.chain(text[5:9])
    tree.add(tree.add(1, text[9]), text[10])
    same = True
    for one in (SlotTree.chain(text[5:6]), tree):
        fill(runner, text[:6])
        own = runner.forward(one).float().clone()
        runner.commit([])
        cache.wipe()  # a pass with fixed shapes reads all places
        inputs = Inputs(len(one), model.device)
        inputs.fill(Slots.of_tree(one), cache.length)
        logits, _ = compute(inputs.of(len(one)), cache.all_rows(cache.capacity))
        same = same and all(agree(*pair, model) for pair in zip(logits.float(), own, strict=True))
    fill(runner, text[:1])
    return same
