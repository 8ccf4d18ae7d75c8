"""What the benchmark for GPUs runs: a random model, the ways to run its passes, and texts written through them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from ladechat.bench.methods import clock
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits, Step
from ladechat.model.runners.graphs import GraphPasses, unrecorded
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead

LLAMA_7B = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "tie_word_embeddings": False}  # fmt: skip
LLAMA_1B = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True}  # fmt: skip
TINY = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False}  # fmt: skip

LOOKAHEAD = (15, 5, 15)
CHANGES = (LOOKAHEAD, (0, 2, 0), (5, 3, 5), (7, 5, 7), (10, 5, 10))
"""W, N and G."""
STEPS_BETWEEN_CHANGES = 5


PERIOD = 32
"""Of the text that repeats, in tokens."""


@dataclass(frozen=True)
class Plan:
    """What is measured on which model: numbers of slots, of cached tokens, of tokens written, and how often."""

    shape: dict[str, Any]
    device: torch.device
    dtype: torch.dtype
    slots: tuple[int, ...] = (1, 8, 16, 32, 64, 120, 256)
    cached: tuple[int, ...] = (512, 2048)
    prompt: int = 128
    tokens: int = 256
    rounds: int = 5
    passes: int = 20


CHECK = Plan(TINY, torch.device("cpu"), torch.float32, (1, 8, 120), (20, 40), prompt=12, tokens=24, rounds=1, passes=2)


@dataclass(frozen=True)
class Ways:
    """A model, and the ways to run its passes besides as it is."""

    runner: TreeRunner
    model: PreTrainedModel

    def recorded(self, kernels: bool = True) -> GraphPasses | None:
        """CUDA graphs, of which none is recorded yet, of our kernels or the model's own; on a CPU as `unrecorded`."""
        record = None if self.model.device.type == "cuda" else unrecorded
        self.runner.use_graphs(record, kernels)
        return self.runner.graphs

    def unrecorded(self) -> GraphPasses | None:
        """The same passes, each run anew."""
        self.runner.use_graphs(unrecorded)
        return self.runner.graphs


def random_model(plan: Plan) -> PreTrainedModel:
    config = LlamaConfig(**plan.shape, max_position_embeddings=4096, eos_token_id=None, bos_token_id=None)
    with plan.device:
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=plan.dtype).eval()
    return model


@torch.no_grad()
def make_it_repeat(model: PreTrainedModel) -> None:
    """Set weights, in place, so that each of the first `PERIOD` tokens is followed by the next, any other by one of
    them. A pass does as much work as before.
    """
    model_: Any = model
    for layer in model_.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    embedding, head = model_.model.embed_tokens.weight, model_.lm_head.weight
    head.zero_()
    head[:PERIOD] = embedding[:PERIOD].roll(1, 0)


def ways_of(model: PreTrainedModel) -> Ways:
    return Ways(TreeRunner(model, 4096), model)


def random_text(plan: Plan, length: int) -> list[int]:
    dice = torch.Generator().manual_seed(length)
    text: list[int] = torch.randint(3, plan.shape["vocab_size"], (length,), generator=dice).tolist()
    return text


def write(
    runner: TreeRunner,
    how: GraphPasses | None,
    decoder: Decoder,
    prompt: list[int],
    plan: Plan,
    changing: bool = False,
) -> tuple[list[Step], list[float]]:
    """The steps of a text from an empty cache on, and when each was over. With `changing`, W, N and G do, too."""
    runner.graphs = how
    for _ in runner.prefill(prompt[:1]):
        pass
    now, steps, times = clock(runner.device), list[Step](), list[float]()
    for step in decoder.run(prompt, Limits(plan.tokens)):
        steps.append(step)
        times.append(now())
        if changing:
            numbers = CHANGES[len(steps) // STEPS_BETWEEN_CHANGES % len(CHANGES)]
            decoder.configure(dict(zip(("window", "ngram", "guesses"), numbers, strict=True)))
    return steps, times


def decoders(runner: TreeRunner) -> dict[str, Callable[[], Decoder]]:
    return {"plain": lambda: Decoder(runner), "lookahead": lambda: lookahead(runner, *LOOKAHEAD)}


def tokens_of(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]
