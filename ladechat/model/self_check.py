"""Before a model may answer: does it follow a step's mask and positions? Asked of the model itself, once, at load."""

from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.verify_mask import StepLayout, column_guess, lay_out
from ladechat.model.cache_probe import PlainDecodingOnly, UnsupportedModel, name_of, plain_only
from ladechat.model.eager import EagerRunner
from ladechat.model.memory import memory_is_used_up

COARSE = 0.1
LARGEST_DEVIATION = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: COARSE, torch.bfloat16: COARSE}
"""Mean |Δlogit| over the spread of the logits: well above what rounding does in each type, well below a wrong mask."""

OTHER_WAYS = "does not follow explicit positions with a 4-D attention mask"


@torch.inference_mode()
def check_layouts(runner: EagerRunner) -> None:
    """Compare slots of a mixed pass with plain passes over what they see. The cache is empty afterwards.

    Raises:
        PlainDecodingOnly: the model ignores or refuses explicit positions or a 4-D mask (as models with ALiBi do).
    """
    prompt = [token % runner.model.config.get_text_config().vocab_size for token in (11, 7, 5, 3, 13, 2)]
    layout = _mixed_layout(prompt[-1])
    try:
        for _ in runner.prefill(prompt):
            pass
        logits = runner.forward(layout).float()
        runner.keep([])
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
        if memory_is_used_up(error):
            raise
        raise _not_followed(runner) from error
    for slot in (layout.fresh_slots[-1], layout.node_slots[-1]):
        seen = sorted(layout.mask[slot].nonzero()[0], key=lambda other: layout.positions[other])
        text = [*prompt[:-1], *(layout.tokens[other] for other in seen)]
        ids = torch.tensor([text], device=runner.model.device)
        positions = torch.arange(len(text), device=ids.device)[None]
        plain = runner.model(input_ids=ids, position_ids=positions).logits[0, -1].float()
        if not alike(logits[slot], plain, runner.model):
            raise _not_followed(runner)
    for _ in runner.prefill(prompt[:1]):
        pass


def _mixed_layout(last_token: int) -> StepLayout:
    window = JacobiWindow(last_token, 3, 4, lambda token: (token + 1) % 16)
    tree = CandidateTree()
    tree.add(column_guess(window), "window")
    tree.add([1, 2, 3], "prompt")
    tree.add([1, 4], "prompt")
    return lay_out(last_token, window, tree)


def _not_followed(runner: EagerRunner) -> PlainDecodingOnly:
    ways = "adds ALiBi by the place of a token in the cache" if uses_alibi(runner.model.config) else OTHER_WAYS
    return plain_only(runner.model, ways)


def uses_alibi(config: Any) -> bool:
    """Does a model tell positions by ALiBi: biases that grow with the distance of two places in the cache?"""
    return config.model_type in ("bloom", "mpt") or bool(getattr(config, "alibi", False))


@torch.inference_mode()
def check_one_direction(model: PreTrainedModel) -> None:
    """Make sure that what a model says about a token does not hang on the tokens after it.

    Raises:
        UnsupportedModel: it is an encoder, whatever head it has.
    """
    text = torch.tensor([[token % model.config.get_text_config().vocab_size for token in (11, 7, 5, 3)]])
    text = text.to(model.device)
    whole, begun = (
        model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :3].float() for ids in (text, text[:, :3])
    )
    if whole.shape != begun.shape or not all(alike(*rows, model) for rows in zip(whole, begun, strict=True)):
        raise UnsupportedModel(f"{name_of(model)} reads a text in both directions, so it cannot write one.")


def alike(logits: torch.Tensor, expected: torch.Tensor, model: PreTrainedModel) -> bool:
    """Whether two computations of the same logits, in float32, differ by no more than the model's type explains."""
    allowed = LARGEST_DEVIATION.get(model.dtype, COARSE)
    if getattr(model, "is_quantized", False):  # its activations may be rounded as coarsely as its weights
        allowed = COARSE
    return bool((logits - expected).abs().mean() <= allowed * expected.std())
