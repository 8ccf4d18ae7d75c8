"""The choice of models whose passes are recorded as CUDA graphs."""

import logging

import torch
from transformers import PreTrainedModel

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.agreement import agree
from ladechat.model.runners.fixed_pass import FixedPass, Inputs, Pass
from ladechat.model.runners.graphs import CudaGraphs, GraphPasses, Record
from ladechat.model.runners.slots import Slots
from ladechat.model.runners.tree import TreeRunner

logger = logging.getLogger(__name__)


def use_graphs(runner: object, model: PreTrainedModel) -> None:
    """Make a runner replay CUDA graphs of its passes, where its model is on a CUDA device and they can be recorded."""
    if isinstance(runner, TreeRunner) and runner.device.type == "cuda":
        runner.graphs = graph_passes(runner, model)


def graph_passes(
    runner: TreeRunner, model: PreTrainedModel, record: Record | None = None, kernels: bool = True
) -> GraphPasses | None:
    """Return an empty set of graphs for the passes of a model; None if they cannot be recorded.

    Args:
        runner: the model's runner, on a CUDA device unless `record` is given.
        model: in evaluation mode.
        record: records a graph; by default a CUDA graph.
        kernels: whether to use our own kernels where they support the model.
    """
    quantised = getattr(model.config, "quantization_config", None) is not None
    if not runner.has_fixed_angles or model.config._attn_implementation != "sdpa" or quantised:
        return None
    config = model.config.get_text_config(decoder=True)
    record = record or CudaGraphs(model.device)
    compute = (_in_few_kernels(runner, model) if kernels else None) or FixedPass(model, runner.windows)
    return GraphPasses(compute, runner.cache, config.vocab_size, config.hidden_size, model.dtype, record)


def _in_few_kernels(runner: TreeRunner, model: PreTrainedModel) -> Pass | None:
    """Return the pass with our own kernels, where the model is on a CUDA device and the logits agree; else None."""
    if model.device.type == "cuda" and not any(runner.windows.values()):
        try:
            from ladechat.model.runners.llama_pass import LlamaPass

            compute = LlamaPass(model)
            if agrees(compute, runner, model):
                return compute
            logger.warning("Passes are the model's own: it computes something else than a Llama.")
        except Exception as error:  # without Triton, or on a GPU it does not support, the model itself can run
            logger.warning("Passes are the model's own: %s", error)
    return None


@torch.inference_mode()
def agrees(compute: Pass, runner: TreeRunner, model: PreTrainedModel) -> bool:
    """Return whether a pass gives the model's own logits, for one slot and for a tree. Empties the cache."""
    vocabulary: int = model.config.get_text_config(decoder=True).vocab_size
    text = [(500 + 977 * number) % vocabulary for number in range(12)]
    tree = SlotTree.chain(text[5:9])
    tree.add(tree.add(1, text[9]), text[10])
    same = True
    for one in (SlotTree.chain(text[5:6]), tree):
        for _ in runner.prefill(text[:6]):
            pass
        own = runner.forward(one).float().clone()
        runner.commit([])
        runner.cache.wipe()  # a pass with fixed shapes reads all places
        inputs = Inputs(len(one), model.device)
        inputs.fill(Slots.of_tree(one), runner.cache.length)
        logits, _ = compute(inputs.of(len(one)), runner.cache.all_rows(runner.cache.capacity))
        same = same and all(agree(*pair, model) for pair in zip(logits.float(), own, strict=True))
    for _ in runner.prefill(text[:1]):
        pass
    return same
