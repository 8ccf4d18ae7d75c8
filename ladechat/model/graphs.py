"""Passes as CUDA graphs: all that a GPU has to do for one, recorded once and started by a single call.

Started one by one, the operations of a pass keep a GPU waiting for Python most of the time. A recording has a fixed
shape, so there is one for each of some numbers of slots and of places, made when the shape is in use: between two
steps, after its second pass, and until then the model runs as it is. A layout is filled up with slots that nobody sees.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from ladechat.decoder.verify_mask import StepLayout, causal_layout
from ladechat.model.attention import Clock, fastest
from ladechat.model.eager import EagerRunner
from ladechat.model.fixed_pass import Body, Inputs, ModelBody, filled_up
from ladechat.model.kv_cache import SlabCache
from ladechat.model.llama_body import Compile, LlamaBody, as_it_is
from ladechat.model.passes import Masks
from ladechat.model.self_check import alike

SLOT_COUNTS = (1, 8, 16, 32, 64, 96, 128, 192, 256)
"""The numbers of slots that passes are recorded for. A larger pass runs as the model does."""

SMALLEST_CONTEXT = 512
"""Places are counted in this many, then half as many more, then twice as many, and so on: see `context_for`."""

EAGER_USES = 2
"""So many passes of a number of slots before one is recorded."""

MOST_GRAPHS = 32
"""Recordings kept; the one that was used the longest ago makes room."""

Replay = Callable[[], None]
Record = Callable[[Callable[[], None]], Replay]
"""Runs a function that computes on fixed memory, and gives one that does the same again."""

Choose = Callable[[int, int], str]
"""The name of a way of attention, one of `ladechat.model.attention.WAYS`, for so many slots and places."""

logger = logging.getLogger(__name__)


def unrecorded(function: Callable[[], None]) -> Replay:
    """No recording: the same computation, each time anew. What a recording must equal."""
    function()
    return function


class CudaGraphs:
    """Records CUDA graphs, which share what memory they need for what lies in between: one runs at a time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], None]) -> Replay:
        """See `Record`.

        Raises:
            RuntimeError: something in it cannot be recorded, or the memory does not suffice.
        """
        with torch.cuda.device(self._device):
            self._warm_up(function)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                function()
        replay: Replay = graph.replay
        return replay

    def clock(self, function: Callable[[], object], repeats: int = 5) -> float:
        """The seconds that it takes within a recording. Its results are thrown away."""

        def repeated() -> None:
            for _ in range(repeats):
                function()

        replay = self(repeated)
        replay()
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        replay()
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1000 / repeats

    def _warm_up(self, function: Callable[[], None]) -> None:
        """What libraries do at their first call, and compilers, must not be recorded."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(2):
                function()
        current.wait_stream(self._stream)


@dataclass(frozen=True)
class Recorded:
    """A recording that was made: its shape, how attention is computed in it, and what making it took."""

    slots: int
    context: int
    way: str
    seconds: float


class GraphPasses:
    """The recorded passes of one model over one cache.

    Args:
        body: the model as a function of tensors.
        cache: whose rows the passes read and write. When it grows, all recordings are dropped.
        vocabulary: the number of logits.
        dtype: of the model.
        record: makes a recording.
        choose: how attention is computed in a pass, where the body has a choice.

    Attributes:
        history: all recordings that were made.
    """

    def __init__(
        self,
        body: Body,
        cache: SlabCache,
        vocabulary: int,
        dtype: torch.dtype,
        record: Record,
        choose: Choose,
    ) -> None:
        device = cache.rows(0, 1)[0].device
        self.history: list[Recorded] = []
        self._body, self._cache, self._record, self._choose = body, cache, record, choose
        self._inputs = Inputs(SLOT_COUNTS[-1], device)
        self._logits = torch.zeros(SLOT_COUNTS[-1], vocabulary, dtype=dtype, device=device)
        self._graphs: OrderedDict[tuple[int, int], Replay] = OrderedDict()
        self._useless: set[tuple[int, int]] = set()
        self._uses: Counter[int] = Counter()
        self._latest: int | None = None
        self._growths = cache.growths
        cache.wipe()

    @property
    def sizes(self) -> list[int]:
        """See `Passes.sizes`. Always the same: a pass costs what its recording does, from its third time on."""
        return list(SLOT_COUNTS)

    def look(self) -> None:
        """See `Passes.look`: what an overflow has left behind must not spoil another answer."""
        self._cache.wipe()

    @torch.inference_mode()
    def forward(self, layout: StepLayout, cache: SlabCache, masks: Masks) -> Tensor | None:
        """See `Passes.forward`."""
        slots = next((slots for slots in SLOT_COUNTS if slots >= len(layout)), None)
        self._latest = slots
        if slots is None:
            return None
        self._uses[slots] += 1
        shape = self._shape(slots)
        replay = self._graphs.get(shape)
        if replay is None:
            return None
        self._graphs.move_to_end(shape)
        self._inputs.fill(filled_up(layout, slots), cache.length)
        try:
            replay()
        except RuntimeError as error:
            self._leave(shape, error)
            return None
        return self._logits[: len(layout)]

    def read(self, logits: Tensor) -> None:
        """See `ladechat.model.passes.Passes.read`: on a GPU torch reads both in one piece."""

    def prepare(self) -> None:
        """See `Passes.prepare`."""
        for slots in SLOT_COUNTS:
            self._record_next(slots)

    def rest(self) -> None:
        """See `Passes.rest`: record the pass that is likely to come next, if its number of slots is in use."""
        slots, self._latest = self._latest, None
        if slots is not None and self._uses[slots] >= EAGER_USES:
            self._record_next(slots)

    @torch.inference_mode()
    def _record_next(self, slots: int) -> None:
        """Record the pass of so many slots behind what is cached, if that was not done, and did not fail."""
        try:
            shape = self._shape(slots)
        except torch.OutOfMemoryError:  # if the slabs have to grow, the next pass will say so itself
            return
        if shape in self._graphs or shape in self._useless:
            return
        try:
            self._graphs[shape] = self._recorded(*shape)
        except Exception as error:  # a compiler may raise anything, and a pass can always be had from the model
            self._leave(shape, error)
        if len(self._graphs) > MOST_GRAPHS:
            self._graphs.popitem(last=False)

    def _shape(self, slots: int) -> tuple[int, int]:
        """Slots and places of a pass behind what is cached, for which there is room from then on."""
        self._cache.reserve(slots)
        if self._growths != self._cache.growths:  # the recordings' addresses are those of slabs that are gone
            self._growths = self._cache.growths
            self._graphs.clear()
            self._cache.wipe()
        return slots, min(context_for(self._cache.length + slots), self._cache.capacity)

    def _recorded(self, slots: int, context: int) -> Replay:
        started = time.perf_counter()
        way = self._choose(slots, context)
        given, rows = self._inputs.of(slots), self._cache.all_rows(context)
        logits = self._logits[:slots]
        # While it is recorded, the pass is run too: behind what is cached.
        self._inputs.clear(slots, self._cache.length)
        replay = self._record(lambda: _into(logits, self._body(given, rows, way)))
        self.history.append(Recorded(slots, context, way, time.perf_counter() - started))
        return replay

    def _leave(self, shape: tuple[int, int], error: Exception) -> None:
        self._graphs.pop(shape, None)
        self._useless.add(shape)
        logger.warning("The pass of %s slots and %s places runs as the model does: %s", *shape, error)


def context_for(places: int) -> int:
    """How many places a pass reads that needs so many: 512, 768, 1024, 1536, 2048, 3072 …"""
    context = SMALLEST_CONTEXT
    while context < places:
        context = context * 3 // 2 if context & (context - 1) == 0 else context * 4 // 3
    return context


def graph_passes(
    runner: EagerRunner, compiling: bool, record: Record | None = None, choose: Choose | None = None
) -> GraphPasses | None:
    """Passes as graphs for the model of a runner; None if they are not for it.

    Args:
        runner: of a model on a CUDA device, if nothing else is said by `record`.
        compiling: whether torch's compiler may fuse the operations of a model that is built like a Llama, which takes
            a while, once: now.
        record: makes recordings; by default CUDA graphs.
        choose: see `GraphPasses`; by default by measurement if CUDA graphs are recorded, else torch's own attention.
    """
    model = runner.model
    quantised = getattr(model.config, "quantization_config", None) is not None
    if not runner.fixed_angles or model.config._attn_implementation != "sdpa" or quantised:
        return None
    if record is None:
        record = cuda = CudaGraphs(model.device)
        choose = choose or by_measurement(runner, cuda.clock)
    return with_body(runner, choose_body(runner, compiling), record, choose or _by_torch)


def with_body(runner: EagerRunner, body: Body, record: Record, choose: Choose) -> GraphPasses:
    """Passes for a runner, by a body of its model."""
    vocabulary: int = runner.model.config.get_text_config(decoder=True).vocab_size
    return GraphPasses(body, runner.cache, vocabulary, runner.model.dtype, record, choose)


@torch.inference_mode()
def choose_body(runner: EagerRunner, compiling: bool) -> Body:
    """The fastest function of tensors that computes what the model does: compiled if that is wanted and can be had."""
    model = runner.model
    as_is = ModelBody(model, runner.windows)
    if any(runner.windows.values()) or not LlamaBody.takes(model):
        return as_is
    compilers: list[Compile] = [torch.compile, as_it_is] if compiling else [as_it_is]
    for compiler in compilers:
        try:
            body = LlamaBody(model, compiler)
            if all(_agree(body, as_is, runner, slots) for slots in (1, 8)):
                return body
            logger.warning("The passes of this model are not put together anew: they would compute something else.")
        except Exception as error:  # a compiler may raise anything, and a pass can always be had from the model
            logger.warning("The operations of a pass are not fused: %s", error)
    return as_is


def _agree(body: Body, model_body: Body, runner: EagerRunner, slots: int) -> bool:
    """Whether both say the same about some tokens in a row behind a cached one, and cache the same."""
    dice = torch.Generator(runner.model.device).manual_seed(0)
    empty = [torch.zeros_like(row) for row in runner.cache.all_rows(1 + slots)]
    inputs = Inputs(slots, runner.model.device)
    inputs.fill(causal_layout(range(3, 3 + slots)), 1)
    found = []
    for one in (model_body, body):
        rows = [row.normal_(generator=dice.manual_seed(0)) for row in map(torch.clone, empty)]
        found.append([one(inputs.of(slots), rows, "in one"), *rows])
    return all(alike(mine.float(), other.float(), runner.model) for mine, other in zip(*found, strict=True))


def by_measurement(runner: EagerRunner, clock: Clock) -> Choose:
    """The way of attention that is the fastest here."""
    model = runner.model
    _, heads, head_dim = runner.cache.rows(0, 1)[0].shape
    groups: int = model.config.get_text_config(decoder=True).num_attention_heads // heads

    @lru_cache(None)
    @torch.inference_mode()
    def choose(slots: int, context: int) -> str:
        return fastest(heads, groups * slots, slots, context, head_dim, model.dtype, model.device, clock)

    return choose


def _by_torch(_slots: int, _context: int) -> str:
    return "in one"


def _into(target: Tensor, result: Tensor) -> None:
    target.copy_(result)
