"""One of two processes that share a model (FSDP): each writes another text through the door, and prints it.

``python -m tests.generate.sharded RANK STORE``; STORE is a file that both name.
"""

import json
import sys
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ladechat import lookahead_generate, lookahead_steps
from tests.generate.requests import PROMPT, generate
from tests.tiny import random_model

LENGTHS = (3, 24)
"""How many tokens each rank asks for."""


def main(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=len(LENGTHS))
    model: Any = random_model(1)
    mesh = init_device_mesh("cpu", (len(LENGTHS),))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model._is_fsdp_managed_module = True  # as transformers marks one that it has sharded itself
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = generate(
            model, PROMPT, max_new_tokens=LENGTHS[rank], eos_token_id=[], custom_generate=lookahead_generate
        )
        said += [str(one.message) for one in caught]
    try:
        lookahead_steps(model, PROMPT, max_new_tokens=3)
    except ValueError as error:
        said.append(str(error))
    dist.barrier()
    dist.destroy_process_group()
    assert isinstance(text, torch.Tensor)
    print(json.dumps({"text": text[0].tolist(), "said": said}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
