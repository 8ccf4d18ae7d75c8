"""Before a model may answer: does it follow a step's mask and positions? Asked of the model itself, once, at load."""

import torch

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.verify_mask import StepLayout, column_guess, lay_out
from ladechat.model.eager import EagerRunner, UnsupportedModel
from ladechat.model.memory import memory_is_used_up

COARSE = 0.1
LARGEST_DEVIATION = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: COARSE, torch.bfloat16: COARSE}
"""Mean |Δlogit| over the spread of the logits: well above what rounding does in each type, well below a wrong mask."""


@torch.inference_mode()
def check_layouts(runner: EagerRunner) -> None:
    """Compare slots of a mixed pass with plain passes over what they see. The cache is empty afterwards.

    Raises:
        UnsupportedModel: the model ignores or refuses explicit positions or a 4-D mask (as models with ALiBi do).
    """
    prompt = [token % runner.model.config.get_text_config().vocab_size for token in (11, 7, 5, 3, 13, 2)]
    layout = _mixed_layout(prompt[-1])
    allowed = LARGEST_DEVIATION.get(runner.model.dtype, COARSE)
    if getattr(runner.model, "is_quantized", False):  # its activations may be rounded as coarsely as its weights
        allowed = COARSE
    try:
        for _ in runner.prefill(prompt):
            pass
        logits = runner.forward(layout).float()
        runner.keep([])
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
        if memory_is_used_up(error):
            raise
        raise _unsupported(runner) from error
    for slot in (layout.fresh_slots[-1], layout.node_slots[-1]):
        seen = sorted(layout.mask[slot].nonzero()[0], key=lambda other: layout.positions[other])
        text = [*prompt[:-1], *(layout.tokens[other] for other in seen)]
        plain = runner.model(input_ids=torch.tensor([text], device=runner.model.device)).logits[0, -1].float()
        if not (logits[slot] - plain).abs().mean() <= allowed * plain.std():
            raise _unsupported(runner)
    for _ in runner.prefill(prompt[:1]):
        pass


def _mixed_layout(last_token: int) -> StepLayout:
    window = JacobiWindow(last_token, 3, 4, lambda token: (token + 1) % 16)
    tree = CandidateTree()
    tree.add(column_guess(window), "window")
    tree.add([1, 2, 3], "prompt")
    tree.add([1, 4], "prompt")
    return lay_out(last_token, window, tree)


def _unsupported(runner: EagerRunner) -> UnsupportedModel:
    model_type = runner.model.config.model_type
    return UnsupportedModel(
        f"Models of type {model_type!r} do not follow explicit positions with a 4-D attention mask (those with ALiBi "
        "or chunked attention do not), and without these several tokens cannot be verified in one pass."
    )
