"""The check, when a model is loaded, that it follows the mask and the positions of a tree of slots."""

from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from ladechat.decoder.hidden import Want
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.swap import computes_in_integers
from ladechat.model.runners.cache_probe import SingleTokenOnly, UnsupportedModel, name_of, single_token_only
from ladechat.model.runners.kv_cache import CACHE
from ladechat.model.runners.layer_loop import LayerLoop, NoLayerLoop
from ladechat.model.runners.logits import COARSE, agree, deviation, fill, ordinary_tokens
from ladechat.model.runners.model_runner import ModelRunner
from ladechat.model.runners.out_of_memory import memory_is_used_up
from ladechat.model.runners.single_token import SingleTokenRunner, own_inputs
from ladechat.model.runners.tree import TreeRunner

CACHED = 5
"""The number of cached tokens before slot 0."""

FAULTS = (RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError)
"""The exceptions that a model's own code raises on unsupported arguments."""

NOT_FOLLOWED = "does not follow explicit positions with a 4-D attention mask"
BY_THE_WHOLE_PASS = (
    "gives a token other logits where later tokens are in the pass, as quantised activations do, or reading in both "
    "directions"
)
BY_THE_PLACE_IN_A_PASS = "gives a token other logits alone or last in a pass than among others, as hooks may do"


def choose_runner(model: PreTrainedModel, context_length: int) -> ModelRunner:
    """Return the runner for a model: one that verifies trees of drafts if the model can, else one token per pass.

    Raises:
        UnsupportedModel: it cannot be decoded at all.
    """
    try:
        return tree_runner(model, context_length)
    except SingleTokenOnly as error:
        check_one_direction(model)
        return SingleTokenRunner(model, context_length, str(error))


def tree_runner(model: PreTrainedModel, context_length: int) -> TreeRunner:
    """Return a `logits_runner` that gives hidden states too, where the model's layers can be called one by one."""
    runner = logits_runner(model, context_length)
    use_layers(runner, model)
    return runner


def logits_runner(model: PreTrainedModel, context_length: int) -> TreeRunner:
    """Return a runner that verifies trees of drafts, and gives logits only. The check draws no random numbers.

    Raises:
        SingleTokenOnly: the model cannot verify trees; the message says why.
        UnsupportedModel: it cannot be decoded at all.
    """
    if model.device.type == "meta":
        raise UnsupportedModel(f"{name_of(model)} has weights that are not in memory (offloaded), and no device.")
    runner = TreeRunner(model, context_length)
    check_trees(runner, model)
    return runner


@torch.inference_mode()
def check_trees(runner: TreeRunner, model: PreTrainedModel) -> None:
    """Compare slots of a tree with the model's own generation over the same tokens: slot 0 with its second pass, two
    leaves with first passes over the tokens that they see. Empties the cache.

    A model that computes in integers rounds its states, and amplifies the last bit in which its own passes differ from
    the kernels'. It is compared with itself, one token a pass.

    Raises:
        SingleTokenOnly: the model ignores or refuses explicit positions or a 4-D mask (as models with ALiBi do).
        UnsupportedModel: its logits are NaN or infinite.
    """
    tokens = ordinary_tokens(model)
    prompt, drafts = tokens[: CACHED + 1], tokens[CACHED + 1 :]
    tree = SlotTree.chain([prompt[-1], *drafts[:2]])
    leaves = (tree.add(tree.add(0, drafts[2]), drafts[3]), tree.add(tree.add(1, drafts[4]), drafts[5]))
    try:
        fill(runner, prompt)
        logits = runner.forward(tree).float()
        runner.commit([])
    except FAULTS as error:
        if memory_is_used_up(error):
            raise
        raise _not_followed(model) from error
    in_integers = computes_in_integers(model)
    for slot in (0, *leaves):
        seen = tree.mask[slot].nonzero()[0]  # a parent comes before its children
        text = [*prompt[:-1], *(tree.tokens[other] for other in seen)]
        own = (
            _one_by_one(runner, model, text) if in_integers else _own_logits(model, text, cached=0 if slot else CACHED)
        )
        if not agree(logits[slot], own, model):
            raise _not_followed(model)
    fill(runner, prompt[:1])


@torch.inference_mode()
def use_layers(runner: TreeRunner, model: PreTrainedModel) -> None:
    """Give the runner a loop over the model's layers, if that gives the model's logits; else record the reason.

    Empties the cache.
    """
    try:
        loop = LayerLoop(model, runner.windows)
        if not runner.has_fixed_angles:
            raise NoLayerLoop("has rotary angles that depend on the length of the text")
        tokens = ordinary_tokens(model)
        tree = SlotTree.chain(tokens[CACHED:-2])
        tree.add(tree.add(1, tokens[-2]), tokens[-1])
        fill(runner, tokens[: CACHED + 1])
        own = runner.forward(tree).float().clone()
        runner.loop = loop
        by_layers = runner.forward_hidden(tree, Want())[0].float()
        runner.commit([])
        if not _all_agree(by_layers, own, model):
            raise NoLayerLoop("computes something else than its layers one after the other")
        fill(runner, tokens[:1])
        runner.capabilities = Capabilities(logits_only=None)
    except FAULTS as error:
        if memory_is_used_up(error):
            raise
        why = str(error) if isinstance(error, NoLayerLoop) else "has layers that are called in another way than most"
        runner.loop = None
        runner.capabilities = Capabilities(logits_only=f"{name_of(model)} {why}.")


def _own_logits(model: PreTrainedModel, text: list[int], cached: int = 0) -> torch.Tensor:
    """Return the (vocabulary,) logits after a text, read as `generate` does, with the first `cached` tokens in a
    separate pass.

    Raises:
        UnsupportedModel: they are NaN or infinite.
    """
    ids = torch.tensor([text], device=model.device)
    state: dict[str, Any] = {}
    if cached:
        state = {CACHE: DynamicCache(config=model.config.get_text_config(decoder=True))}
        model(**{**own_inputs(model, ids[:, :cached], {}), **state})
    logits: torch.Tensor = model(**own_inputs(model, ids, state, use_cache=bool(cached))).logits[0, -1].float()
    _check_numbers(model, logits)
    return logits


def _one_by_one(runner: TreeRunner, model: PreTrainedModel, text: list[int]) -> torch.Tensor:
    """Return the (vocabulary,) logits after a text, read one token a pass.

    Raises:
        UnsupportedModel: they are NaN or infinite.
    """
    fill(runner, text[:1])
    for token in text:
        logits = runner.forward(SlotTree(token))[0].float()
        runner.commit([0])
    _check_numbers(model, logits)
    return logits


def _not_followed(model: PreTrainedModel) -> SingleTokenOnly:
    if uses_alibi(model.config):
        return single_token_only(model, "adds ALiBi by the place of a token in the cache")
    return single_token_only(model, _about_its_own_passes(model) or NOT_FOLLOWED)


def uses_alibi(config: Any) -> bool:
    """Return whether a model uses ALiBi: biases that grow with the distance of two places in the cache."""
    return config.model_type in ("bloom", "mpt") or bool(getattr(config, "alibi", False))


def _about_its_own_passes(model: PreTrainedModel) -> str | None:
    """Return why a model's own passes, without trees, do not agree with each other; None if they do."""
    try:
        whole, begun, _ = _with_and_without_a_later_token(model)
        alone = _own_logits(model, ordinary_tokens(model)[:4], cached=3)
    except UnsupportedModel:
        raise
    except FAULTS as error:
        if memory_is_used_up(error):
            raise
        return None
    if not _all_agree(whole[:2], begun[:2], model):
        return BY_THE_WHOLE_PASS
    alike = agree(begun[2], whole[2], model) and agree(alone, whole[3], model)
    return None if alike else BY_THE_PLACE_IN_A_PASS


@torch.inference_mode()
def check_one_direction(model: PreTrainedModel) -> None:
    """Check that a token does not see the tokens after it; they may change its rounding.

    Raises:
        UnsupportedModel: it sees them, as in an encoder; or its logits are NaN or infinite.
    """
    whole, begun, masked = _with_and_without_a_later_token(model)
    if len(whole) == 4:
        if _all_agree(whole[:2], begun[:2], model):
            return
        largest = max(deviation(*pair) for pair in zip(whole[:2], begun[:2], strict=True))
        if largest <= COARSE and not _all_agree(masked[:2], begun[:2], model):
            return
    raise UnsupportedModel(f"{name_of(model)} reads a text in both directions, so it cannot write one.")


def _with_and_without_a_later_token(model: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the logits of four tokens in a pass; of the first three alone; and of all four with the fourth masked.

    Raises:
        UnsupportedModel: they are NaN or infinite.
    """
    text = torch.tensor([ordinary_tokens(model)[:4]], device=model.device)
    seen = torch.ones_like(text)
    hidden = torch.tensor([[1, 1, 1, 0]], device=model.device)
    passes = [(text, seen), (text[:, :3], seen[:, :3]), (text, hidden)]
    whole, begun, masked = (model(input_ids=ids, attention_mask=mask).logits[0].float() for ids, mask in passes)
    _check_numbers(model, whole)
    return whole, begun, masked


def _all_agree(ones: torch.Tensor, others: torch.Tensor, model: PreTrainedModel) -> bool:
    return all(agree(*pair, model) for pair in zip(ones, others, strict=True))


def _check_numbers(model: PreTrainedModel, logits: torch.Tensor) -> None:
    if bool(logits.isnan().any()) or not bool(logits.amax(-1).isfinite().all()):
        raise UnsupportedModel(f"{name_of(model)} gives logits that are not numbers, so they choose no token.")
