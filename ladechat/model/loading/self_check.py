"""Whether a model follows the mask and the positions of a tree of slots: checked once, when it is loaded."""

from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.agreement import agree
from ladechat.model.runners.cache_probe import SingleTokenOnly, UnsupportedModel, name_of, single_token_only
from ladechat.model.runners.out_of_memory import memory_is_used_up
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner

TOKENS = tuple(500 + 977 * number for number in range(12))
"""Taken modulo the vocabulary. Ordinary tokens: on a text of special ones, the lowest ids, some models amplify rounding
by a factor of a thousand."""

CACHED = 5
"""Tokens before slot 0."""

NOT_FOLLOWED = "does not follow explicit positions with a 4-D attention mask"


def choose_runner(model: PreTrainedModel, context_length: int) -> TreeRunner | SingleTokenRunner:
    """The runner for a model: one that verifies trees of drafts if the model can, or else one token a pass.

    Raises:
        UnsupportedModel: it cannot be decoded at all.
    """
    try:
        runner = TreeRunner(model, context_length)
        check_trees(runner, model)
    except SingleTokenOnly as error:
        check_one_direction(model)
        return SingleTokenRunner(model, context_length, str(error))
    return runner


@torch.inference_mode()
def check_trees(runner: TreeRunner, model: PreTrainedModel) -> None:
    """Compare two slots of a tree with plain passes over the tokens that they see. The cache is empty afterwards.

    Raises:
        SingleTokenOnly: the model ignores or refuses explicit positions or a 4-D mask (as models with ALiBi do).
    """
    tokens = _tokens(model)
    prompt, drafts = tokens[: CACHED + 1], tokens[CACHED + 1 :]
    tree = SlotTree.chain([prompt[-1], *drafts[:2]])
    leaves = (tree.add(tree.add(0, drafts[2]), drafts[3]), tree.add(tree.add(1, drafts[4]), drafts[5]))
    try:
        for _ in runner.prefill(prompt):
            pass
        logits = runner.forward(tree).float()
        runner.commit([])
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
        if memory_is_used_up(error):
            raise
        raise _not_followed(model) from error
    for slot in leaves:
        seen = tree.mask[slot].nonzero()[0]  # a parent comes before its children
        text = [*prompt[:-1], *(tree.tokens[other] for other in seen)]
        ids = torch.tensor([text], device=model.device)
        positions = torch.arange(len(text), device=ids.device)[None]
        plain = model(input_ids=ids, position_ids=positions).logits[0, -1].float()
        if not agree(logits[slot], plain, model):
            raise _not_followed(model)
    for _ in runner.prefill(prompt[:1]):
        pass


def _tokens(model: PreTrainedModel) -> list[int]:
    return [token % model.config.get_text_config().vocab_size for token in TOKENS]


def _not_followed(model: PreTrainedModel) -> SingleTokenOnly:
    alibi = "adds ALiBi by the place of a token in the cache"
    return single_token_only(model, alibi if uses_alibi(model.config) else NOT_FOLLOWED)


def uses_alibi(config: Any) -> bool:
    """Whether a model adds ALiBi: biases that grow with the distance of two places in the cache."""
    return config.model_type in ("bloom", "mpt") or bool(getattr(config, "alibi", False))


@torch.inference_mode()
def check_one_direction(model: PreTrainedModel) -> None:
    """Make sure that the logits of a token do not depend on the tokens after it.

    Raises:
        UnsupportedModel: they do, as in an encoder, whatever head it has.
    """
    text = torch.tensor([_tokens(model)[:4]], device=model.device)
    whole, begun = (
        model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :3].float() for ids in (text, text[:, :3])
    )
    if whole.shape != begun.shape or not all(agree(*rows, model) for rows in zip(whole, begun, strict=True)):
        raise UnsupportedModel(f"{name_of(model)} reads a text in both directions, so it cannot write one.")
