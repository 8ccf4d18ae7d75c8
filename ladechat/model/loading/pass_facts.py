"""What the cost of a model's passes depends on."""

from typing import Any

import torch
import transformers
from transformers import PreTrainedModel


def pass_facts(model: PreTrainedModel, device: str) -> dict[str, Any]:
    """Facts by which kept costs are found again; the processor is not among them.

    Args:
        model: as it was loaded, with kernels if it uses some.
        device: in words, which say how many processes share the model.
    """
    place = model.device
    return {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else device,
        "dtype": str(model.dtype),
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
        "versions": [torch.__version__, transformers.__version__],
    }
