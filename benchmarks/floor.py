"""The least time that a pass can take on this machine: what its memory and its arithmetic units allow.

Run as `python -m benchmarks.floor [--model FOLDER] [--device cuda] [--dtype bfloat16] [--weights bfloat16]
[--json FILE]`. A pass of T tokens at L cached ones reads every weight once and every cached key and value once, and
multiplies each token with each weight. Whichever takes longer, the reading or the arithmetic, is the floor: no decoder
of that model in that dtype can go below. Bandwidth is measured at the model's own size, since weights that fit a
processor's cache are read faster.

On a CPU our kernels compute in float32 with weights as they are saved, say `--weights bfloat16`. Where AMX multiplies
these, a product in float32 is `PARTS` of its own.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from benchmarks.common import BUNDLED, command_line, written
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.large_pages import LargePages
from ladechat.model.kernels.library import load_library
from ladechat.model.loading.device import leave_a_core_free

PASSES = (1, 4, 8, 15, 30, 60, 120)
REPEATS = 9
PIECE_BYTES = 64 * 1024 * 1024
"""The largest of the buffers that bandwidth is measured with; those of a smaller model are as large as it is."""
SQUARE = {"cpu": 1024, "cuda": 8192}
PARTS = 3
"""The parts in bfloat16 of a number in float32, see `ladechat/model/kernels/csrc/tiles.h`."""


@dataclass(frozen=True)
class Machine:
    """What was measured: bytes read and multiply-adds done a second, each at its best."""

    bandwidth: float
    matrix_rate: float


@dataclass(frozen=True)
class Work:
    """What a pass of a model has to do."""

    weight_bytes: int
    weights: int
    cached_bytes_per_token: int
    attention_per_pair: int
    """Multiply-adds of one token that looks at one other."""

    def seconds(self, tokens: int, cached: int, machine: Machine) -> float:
        """The floor of a pass of `tokens` tokens at `cached` cached ones."""
        read = self.weight_bytes + self.cached_bytes_per_token * cached
        multiplied = tokens * (self.weights + self.attention_per_pair * (cached + tokens))
        return max(read / machine.bandwidth, multiplied / machine.matrix_rate)


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = command_line(__doc__)
    parser.add_argument("--model", type=Path, default=BUNDLED, help="a checkpoint, or a config.json alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--weights", help="the type in which weights are read; --dtype if none is given")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    leave_a_core_free()
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    weights: torch.dtype = getattr(torch, arguments.weights or arguments.dtype)
    work = work_of(arguments.model, dtype, weights)
    tiles = device.type == "cpu" and amx_runs()
    machine = Machine(bandwidth(work.weight_bytes, dtype, device), product_rate(dtype, weights, device, tiles))
    lengths = (0, 512, 2048)
    rows = {tokens: [1000 * work.seconds(tokens, cached, machine) for cached in lengths] for tokens in PASSES}
    show(machine, work, lengths, rows)
    about = {"device": str(device), "dtype": arguments.dtype, "model": arguments.model.name}
    about |= {"weights": str(weights).removeprefix("torch."), "amx": tiles}
    written({**about, **asdict(machine), **asdict(work), "cached": lengths, "milliseconds": rows}, arguments.json)


def work_of(folder: Path, dtype: torch.dtype, weights: torch.dtype) -> Work:
    """What a pass of this model has to do, from its configuration alone; no weights are loaded."""
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return work_of_model(model, weights)


def work_of_model(model: PreTrainedModel, read_as: torch.dtype | None = None) -> Work:
    """What a pass has to do. Of an embedding that is not the output head too, only the rows of the tokens are read.

    Weights are read in the type `read_as`, by default the model's own.
    """
    config: PretrainedConfig = model.config.get_text_config(decoder=True)
    embedding = model.get_input_embeddings()
    assert isinstance(embedding, nn.Embedding)
    weights = sum(parameter.numel() for parameter in model.parameters())
    if not config.tie_word_embeddings:
        weights -= embedding.weight.numel()
    heads: int = config.num_attention_heads
    head_dim: int = getattr(config, "head_dim", None) or config.hidden_size // heads
    kv_heads: int = getattr(config, "num_key_value_heads", None) or heads
    layers: int = config.num_hidden_layers
    size = model.dtype.itemsize
    return Work(
        weight_bytes=weights * (read_as or model.dtype).itemsize,
        weights=weights,
        cached_bytes_per_token=2 * layers * kv_heads * head_dim * size,
        attention_per_pair=2 * layers * heads * head_dim,
    )


def bandwidth(total_bytes: int, dtype: torch.dtype, device: torch.device) -> float:
    """Bytes read a second where `total_bytes` are read in turn: the best of products of a vector with matrices.

    On a CPU they lie in large pages, as our weights do. A GPU's sum of all of them is faster, so that counts there.
    """
    piece = min(total_bytes, PIECE_BYTES) // dtype.itemsize
    width = max(256, int(math.sqrt(piece)) // 64 * 64)
    count = max(1, total_bytes // (width * width * dtype.itemsize))
    empty = LargePages().empty if device.type == "cpu" else partial(torch.empty, device=device)
    matrices = [empty((width, width), dtype=dtype).fill_(1) for _ in range(count)]
    vector = torch.ones(width, dtype=dtype, device=device)
    best = fastest(lambda: [matrix @ vector for matrix in matrices], device)
    if device.type == "cuda":
        together = torch.stack(matrices)
        best = min(best, fastest(lambda: torch.sum(together, dtype=torch.float32), device))
    return count * width * width * dtype.itemsize / best


def matrix_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Multiply-adds a second in products of large matrices."""
    width = SQUARE.get(device.type, 2048)
    one, other = (torch.ones(width, width, dtype=dtype, device=device) for _ in range(2))
    return width**3 / fastest(lambda: one @ other, device)


def product_rate(dtype: torch.dtype, weights: torch.dtype, device: torch.device, tiles: bool) -> float:
    """Multiply-adds a second of numbers of `dtype` with weights of another type; `tiles`: AMX can be used."""
    own = matrix_rate(dtype, device)
    if not tiles or (dtype, weights) != (torch.float32, torch.bfloat16):
        return own
    return max(own, matrix_rate(weights, device) / PARTS)


def amx_runs() -> bool:
    """Whether our kernels multiply in tiles on this machine."""
    try:
        return load_library(Build(), 1).tiles
    except BuildError:
        return False


def fastest(act: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of some runs, after one to warm up."""
    act()
    taken = []
    for _ in range(REPEATS):
        _wait_for(device)
        started = time.perf_counter()
        act()
        _wait_for(device)
        taken.append(time.perf_counter() - started)
    return min(taken)


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def show(machine: Machine, work: Work, lengths: tuple[int, ...], rows: dict[int, list[float]]) -> None:
    """The figures as a table."""
    console = Console()
    console.print(
        f"reads {machine.bandwidth / 1e9:.1f} GB/s, multiplies and adds {machine.matrix_rate / 1e9:.0f} billion times "
        f"a second; {work.weight_bytes / 1e6:.1f} MB of weights in every pass"
    )
    table = Table("tokens in the pass", *(f"ms at {cached} cached" for cached in lengths))
    for tokens, figures in rows.items():
        table.add_row(str(tokens), *(f"{figure:.3f}" for figure in figures))
    console.print(table)


if __name__ == "__main__":
    main()
