"""What `generate` hands to a decoding loop, checked: rows without padding, and what cannot be done said at once."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers import GenerationConfig, MaxLengthCriteria, MaxTimeCriteria, PreTrainedModel
from transformers.generation.configuration_utils import GenerationMode

from ladechat.model.runners.rope import stretched_context

T = TypeVar("T")

ONE_ROW_ONLY = {
    "EncoderNoRepeatNGramLogitsProcessor": "keeps the prompts of all rows together",
    "EncoderRepetitionPenaltyLogitsProcessor": "keeps the prompts of all rows together",
    "PrefixConstrainedLogitsProcessor": "asks for each row by its number",
    "SynthIDTextWatermarkLogitsProcessor": "keeps a state of all rows together",
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "keeps a state of all rows together",
}
"""Processors that are right for one text at a time only, by their names in transformers, and why."""

KNOWN = (
    *("attention_mask", "position_ids", "past_key_values", "cache_params", "use_cache", "logits_to_keep"),
    *("output_attentions", "output_hidden_states", "inputs_embeds"),
)
"""What `generate` hands over of its own accord, and what is asked after by name."""

TOKEN_BY_TOKEN = {
    *(GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.ASSISTED_GENERATION),
    *(GenerationMode.BEAM_SEARCH, GenerationMode.BEAM_SAMPLE),
}
"""Ways to generate whose result does not hang on how tokens are drafted: assisted ones write what the first two do."""

NEEDS_TWO_TEXTS = ("ClassifierFreeGuidanceLogitsProcessor", "DiaClassifierFreeGuidanceLogitsProcessor")
"""Processors that compare two texts of one batch at every token."""


def rows_of(input_ids: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    """The texts of a batch, without the padding on their left.

    Args:
        input_ids: (B, n) int64.
        attention_mask: (B, n), 0 on padding; None if there is none.

    Raises:
        ValueError: padding elsewhere than on the left, or a row that is nothing else.
    """
    if attention_mask is None:
        return [row.tolist() for row in input_ids]
    rows = []
    for ids, mask in zip(input_ids, attention_mask.bool(), strict=True):
        length = int(mask.sum())
        if length == 0:
            raise ValueError("A row of input_ids is padding from end to end; each needs one token at least.")
        if not bool(mask[-length:].all()):
            raise ValueError(
                "The attention mask has zeros right of a token; lookahead_generate takes padding on the left only: set "
                "tokenizer.padding_side = 'left'."
            )
        rows.append(ids[-length:].tolist())
    return rows


def check_positions(position_ids: Tensor | None, attention_mask: Tensor | None) -> None:
    """Rows stand at positions from 0 on, as `generate` numbers them; others cannot be asked for.

    Args:
        position_ids: (B, n), if there are any.
        attention_mask: (B, n), if there is one.

    Raises:
        ValueError: other positions.
    """
    if position_ids is None:
        return
    mask = torch.ones_like(position_ids) if attention_mask is None else attention_mask.long()
    usual = mask.cumsum(-1) - 1
    if position_ids.shape != mask.shape or not bool((position_ids == usual)[mask.bool()].all()):
        raise ValueError("lookahead_generate counts positions from 0 on in each row; leave position_ids out.")


def refuse_mode(config: GenerationConfig) -> None:
    """Say what of the ways to generate is another algorithm.

    Raises:
        ValueError: contrastive or constrained search, DoLa, groups of beams.
    """
    mode = config.get_generation_mode()
    if mode not in TOKEN_BY_TOKEN:
        name = str(mode.value).replace("_", " ")
        raise ValueError(f"These options ask for {name}, which is no lookahead decoding; leave custom_generate out.")


def own_copies(those: Iterable[T]) -> list[T]:
    """Copies that share no state with the given processors or criteria, except the models that they may hold."""
    return [deepcopy(one, {id(part): part for part in _models_in(one)}) for one in those]


def _models_in(one: object) -> list[torch.nn.Module]:
    return [part for part in getattr(one, "__dict__", {}).values() if isinstance(part, torch.nn.Module)]


def refuse(
    model: PreTrainedModel,
    rows: int,
    processors: Iterable[object],
    criteria: Iterable[object],
    config: GenerationConfig,
    model_kwargs: dict[str, Any],
) -> None:
    """Say what of a request cannot be carried out exactly.

    Raises:
        ValueError: with one sentence.
    """
    if model.config.is_encoder_decoder:
        raise ValueError(f"{type(model).__name__} is an encoder-decoder model; lookahead needs a decoder-only one.")
    if model.training:
        raise ValueError("The model is in training mode, in which its passes are random; call model.eval() first.")
    if model_kwargs.get("inputs_embeds") is not None:
        raise ValueError("lookahead_generate takes input_ids, not inputs_embeds: its guesses are looked up by token.")
    past = model_kwargs.get("past_key_values")
    if past is not None and (past.get_seq_length() or getattr(past, "_is_user_defined", False)):
        raise ValueError("lookahead_generate keeps a KV cache of its own; leave past_key_values out.")
    for option in ("output_attentions", "output_hidden_states"):
        if getattr(config, option, False):
            raise ValueError(f"{option} is not supported: a pass holds guesses besides the tokens that are kept.")
    others = [name for name, value in model_kwargs.items() if name not in KNOWN and value is not None]
    if others:
        raise ValueError(f"lookahead_generate does not know what {others[0]} is to the model; leave it out.")
    if rows > 1 and any(isinstance(one, MaxTimeCriteria) for one in criteria):
        raise ValueError("max_time is one clock for all rows, and rows are decoded one by one; call it with one row.")
    if rows > 1 and not any(hasattr(one, "eos_token_id") for one in criteria):
        their_own = [type(one).__name__ for one in criteria if not isinstance(one, MaxLengthCriteria)]
        if their_own:
            raise ValueError(
                f"With {their_own[0]} and no eos_token_id, generate writes on in rows that have ended until all have; "
                "give an eos_token_id, or one row."
            )
    for processor in processors:
        name = type(processor).__name__
        if name in NEEDS_TWO_TEXTS:
            raise ValueError(f"{name} compares two texts at every token, and rows are decoded one by one.")
        if rows > 1 and name in ONE_ROW_ONLY:
            raise ValueError(f"{name} {ONE_ROW_ONLY[name]}, and rows are decoded one by one; call it with one row.")


def context_of(model: PreTrainedModel) -> int | None:
    """How many positions a model has, where its config says so."""
    config = model.config.get_text_config()
    longest = getattr(config, "max_position_embeddings", None)
    return None if longest is None else stretched_context(config, longest)


def padded(rows: Sequence[Sequence[int]], prompts: Tensor, pad: int) -> Tensor:
    """Prompts with their answers, the shorter ones filled up on the right, (B, n + longest) int64."""
    longest = max(map(len, rows))
    answers = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows], dtype=torch.long)
    return torch.cat([prompts, answers.to(prompts.device)], dim=1)
