"""Which models have their passes recorded as CUDA graphs."""

from transformers import PreTrainedModel

from ladechat.model.runners.fixed_pass import FixedPass
from ladechat.model.runners.graphs import CudaGraphs, GraphPasses, Record
from ladechat.model.runners.tree import TreeRunner


def use_graphs(runner: object, model: PreTrainedModel) -> None:
    """Let a runner replay CUDA graphs of its passes, where its model is on a CUDA device and they can be recorded."""
    if isinstance(runner, TreeRunner) and runner.device.type == "cuda":
        runner.graphs = graph_passes(runner, model)


def graph_passes(runner: TreeRunner, model: PreTrainedModel, record: Record | None = None) -> GraphPasses | None:
    """Graphs of the passes of a model; None if they cannot be recorded.

    Args:
        runner: of the model, which is on a CUDA device unless `record` is given.
        model: in evaluation mode.
        record: records a graph; by default a CUDA graph.
    """
    quantised = getattr(model.config, "quantization_config", None) is not None
    if not runner.has_fixed_angles or model.config._attn_implementation != "sdpa" or quantised:
        return None
    vocabulary: int = model.config.get_text_config(decoder=True).vocab_size
    record = record or CudaGraphs(model.device)
    return GraphPasses(FixedPass(model, runner.windows), runner.cache, vocabulary, model.dtype, record)
