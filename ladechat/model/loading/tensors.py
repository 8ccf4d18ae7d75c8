"""The check that a checkpoint's tensors are those of its model: none missing, none left over, all finite."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from ladechat.model.checkpoint.files import LoadError

COMPUTED_ELSEWHERE = re.compile(
    r"(inv_freq|freqs_cis|(cos|sin)_cached|position_ids|masked_bias|(attn|attention)\.bias|causal_mask|[qkv]_scale)$"
)
"""Tables that transformers computes itself but older versions saved, and the scales of an 8-bit KV cache."""

FILES_HINT = "Check that all files of the checkpoint are there and complete."

logger = logging.getLogger(__name__)


def check_tensors(name: str, model: PreTrainedModel, found: Any, packed: bool) -> None:
    """Refuse a loaded model that is not the one in its checkpoint, or that cannot compute.

    Args:
        name: its name in messages.
        model: the loaded model.
        found: transformers' loading info.
        packed: whether its weights are quantised, or unpacked from a GGUF file.

    Raises:
        LoadError: tensors are missing, have another shape, are left over (see `belongs_to_the_model`), or not finite.
    """
    wrong = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    if wrong:  # transformers fills these with random numbers
        message = f"{name} lacks {len(wrong)} of the weights that its config.json describes, such as {wrong[0]}."
        raise LoadError("load_failed", message, FILES_HINT)
    unused = sorted(found["unexpected_keys"])
    left_over = [key for key in unused if belongs_to_the_model(key, model, packed)]
    if left_over:
        what = f"{len(left_over)} weights that its config.json does not describe, such as {left_over[0][:80]!r}"
        hint = "Check num_hidden_layers and the other numbers in its config.json, or use another copy of the model."
        raise LoadError("load_failed", f"{name} has {what}: without them another model would be computed.", hint)
    if unused:
        logger.warning("%s: %d tensors of the checkpoint are not used, such as %r", name, len(unused), unused[0][:80])
    _check_finite(name, model)


def belongs_to_the_model(key: str, model: PreTrainedModel, packed: bool = False) -> bool:
    """Return whether a tensor without a place in the model belongs to it, so that it computes something else without.

    - In a layer beyond the last: yes, its config.json counts too few layers. Except the drafting layers that DeepSeek
      and GLM save after the others; config.json counts them as `num_nextn_predict_layers`.
    - In a layer, or in a module with weights of its own, such as a bias that config.json disables: yes. Except in
      packed weights, whose formats save more than needed (a bias of zeros, scales).
    - Computed by transformers itself, such as rotary frequencies and causal masks: no.
    - In modules that the model does not have, such as drafting layers (`mtp`), a value head or a vision encoder: no.
    """
    if COMPUTED_ELSEWHERE.search(key):
        return False
    return any(_is_inside(key, root, packed) for root in (model, model.base_model))


def _is_inside(key: str, module: Any, packed: bool) -> bool:
    *path, _ = key.split(".")
    drafting = getattr(module.config.get_text_config(), "num_nextn_predict_layers", None) or 0
    in_layer = False
    for part in path:
        is_list = isinstance(module, nn.ModuleList)
        if is_list and part.isdecimal() and int(part) >= len(module):
            return int(part) >= len(module) + drafting
        in_layer |= is_list
        if part not in module._modules:
            return in_layer and not packed
        module = module._modules[part]
    return not packed and (in_layer or any(True for _ in module.parameters(recurse=False)))


@torch.no_grad()
def _check_finite(name: str, model: PreTrainedModel) -> None:
    """Refuse NaN and infinite weights. A bias of the output layer may be -inf, which disables a token."""
    head = model.get_output_embeddings()
    switches = getattr(head, "bias", None)
    for weight_name, weight in _plain_weights(model):
        highest, lowest = weight.amax().item(), weight.amin().item()  # NaN if one of the weights is
        if abs(highest) < float("inf") and (abs(lowest) < float("inf") or weight is switches):
            continue
        kind = str(weight.dtype).removeprefix("torch.")
        message = f"{name} has weights that are no finite numbers (NaN or infinite), as {kind}, such as {weight_name}."
        hint = "Use another copy of the model; if it was loaded as float16, in which large numbers overflow, bfloat16."
        raise LoadError("load_failed", message, hint)


def _plain_weights(model: PreTrainedModel) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the plain weights: floating-point, not packed, and in memory."""
    for name, weight in model.named_parameters():
        plain = type(weight.data) is torch.Tensor and weight.dtype.itemsize > 1 and weight.is_floating_point()
        if plain and weight.numel() and weight.device.type != "meta":
            yield name, weight
