"""Which models have their passes recorded as CUDA graphs, and as which function of tensors."""

import logging
from functools import lru_cache
from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.model.runners.agreement import agree
from ladechat.model.runners.attention import Clock, fastest
from ladechat.model.runners.fixed_pass import Body, Inputs, ModelBody
from ladechat.model.runners.graphs import Choose, CudaGraphs, GraphPasses, Record
from ladechat.model.runners.llama_body import Compile, LlamaBody, uncompiled
from ladechat.model.runners.slots import Slots
from ladechat.model.runners.tree import TreeRunner

logger = logging.getLogger(__name__)


def use_graphs(runner: object, model: PreTrainedModel) -> None:
    """Let a runner replay CUDA graphs of its passes, where its model is on a CUDA device and they can be recorded.

    torch's compiler fuses the operations of a model that is built like a Llama, which takes some seconds, now.
    """
    if isinstance(runner, TreeRunner) and runner.device.type == "cuda":
        runner.graphs = graph_passes(runner, model, compiling=True)


def graph_passes(
    runner: TreeRunner,
    model: PreTrainedModel,
    compiling: bool,
    record: Record | None = None,
    choose: Choose | None = None,
) -> GraphPasses | None:
    """Graphs of the passes of a model; None if they cannot be recorded.

    Args:
        runner: of the model, which is on a CUDA device unless `record` is given.
        model: in evaluation mode.
        compiling: whether torch's compiler may fuse operations.
        record: records a graph; by default a CUDA graph.
        choose: see `GraphPasses`; by default measured for CUDA graphs, else torch's own attention.
    """
    quantised = getattr(model.config, "quantization_config", None) is not None
    if not runner.has_fixed_angles or model.config._attn_implementation != "sdpa" or quantised:
        return None
    if record is None:
        record = cuda = CudaGraphs(model.device)
        choose = choose or by_measurement(runner, model, cuda.clock)
    return with_body(runner, model, choose_body(runner, model, compiling), record, choose or _by_torch)


def with_body(runner: TreeRunner, model: PreTrainedModel, body: Body, record: Record, choose: Choose) -> GraphPasses:
    """Graphs of a body of a runner's model."""
    vocabulary: int = model.config.get_text_config(decoder=True).vocab_size
    return GraphPasses(body, runner.cache, vocabulary, model.dtype, record, choose)


@torch.inference_mode()
def choose_body(runner: TreeRunner, model: PreTrainedModel, compiling: bool) -> Body:
    """The fastest function of tensors that computes what the model does."""
    as_is = ModelBody(model, runner.windows)
    if any(runner.windows.values()) or not LlamaBody.takes(model):
        return as_is
    compilers: list[Compile] = [torch.compile, uncompiled] if compiling else [uncompiled]
    for compiler in compilers:
        try:
            body = LlamaBody(model, compiler)
            if all(_same(body, as_is, runner, model, slots) for slots in (1, 8)):
                return body
            logger.warning("The operations of a pass are not merged: they would compute something else.")
        except Exception as error:  # a compiler may raise anything, and the model itself can always run
            logger.warning("The operations of a pass are not fused: %s", error)
    return as_is


def _same(body: Body, model_body: Body, runner: TreeRunner, model: PreTrainedModel, slots: int) -> bool:
    """Whether both give the same logits, keys and values for some tokens in a row behind a cached one."""
    dice = torch.Generator(model.device).manual_seed(0)
    empty = [torch.zeros_like(row) for row in runner.cache.all_rows(1 + slots)]
    inputs = Inputs(slots, model.device)
    inputs.fill(Slots.causal(range(3, 3 + slots)), 1)
    found = []
    for one in (model_body, body):
        rows = [row.normal_(generator=dice.manual_seed(0)) for row in map(torch.clone, empty)]
        found.append([one(inputs.of(slots), rows, "in one"), *rows])
    return all(agree(mine.float(), other.float(), model) for mine, other in zip(*found, strict=True))


def by_measurement(runner: TreeRunner, model: PreTrainedModel, clock: Clock) -> Choose:
    """The way of attention that is the fastest here."""
    _, heads, head_dim = runner.cache.rows(0, 1)[0].shape
    config: Any = model.config.get_text_config(decoder=True)
    groups: int = config.num_attention_heads // heads

    @lru_cache(None)
    @torch.inference_mode()
    def choose(slots: int, context: int) -> str:
        return fastest(heads, groups * slots, slots, context, head_dim, model.dtype, model.device, clock)

    return choose


def _by_torch(_slots: int, _context: int) -> str:
    return "in one"
