"""What `generate` hands to a decoding loop, checked: rows without padding, and what cannot be done said at once."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import EosTokenCriteria, GenerationConfig, MaxLengthCriteria, PreTrainedModel
from transformers.generation.configuration_utils import GenerationMode

from ladechat.model.runners.rope import rope_boundary, stretched_context

TOKEN_BY_TOKEN = {
    *(GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE, GenerationMode.ASSISTED_GENERATION),
    *(GenerationMode.BEAM_SEARCH, GenerationMode.BEAM_SAMPLE),
}
"""Ways to generate whose result does not hang on how tokens are drafted: assisted ones write what the first two do."""

ASSISTANTS = ("prompt_lookup_num_tokens", "use_mtp", "assistant_early_exit")
"""Options with which `generate` drafts by itself."""


class Settings(NamedTuple):
    """W, N and G."""

    window: int
    ngram: int
    guesses: int

    def check(self) -> None:
        """Say which of them is out of range.

        Raises:
            ValueError: W < 0, N < 2 or G < 0, or no integer.
        """
        given: list[tuple[str, Any, int]] = [("W", self.window, 0), ("N", self.ngram, 2), ("G", self.guesses, 0)]
        for name, value, least in given:
            if type(value) is bool or not isinstance(value, Integral):
                raise ValueError(f"{name} must be an integer, not {value!r}.")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}.")


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


def refuse_mode(config: GenerationConfig) -> None:
    """Say what of the ways to generate is another algorithm.

    Raises:
        ValueError: contrastive or constrained search, DoLa, groups of beams.
    """
    mode = config.get_generation_mode()
    if mode not in TOKEN_BY_TOKEN:
        name = str(mode.value).replace("_", " ")
        raise ValueError(f"These options ask for {name}, which is no lookahead decoding; leave custom_generate out.")


def refuse(model: PreTrainedModel, config: GenerationConfig, model_kwargs: dict[str, Any]) -> None:
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


def refuse_unknown_ids(model: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor | None = None) -> None:
    """Say which token id has no embedding: on a GPU, looking it up would end the process. Padding is not read.

    Raises:
        ValueError: an id is below 0, or beyond the model's embeddings.
    """
    embeddings = getattr(model.get_input_embeddings(), "num_embeddings", None)
    if embeddings is None:
        return
    read = input_ids if attention_mask is None else input_ids[attention_mask.bool()]
    unknown = read[(read < 0) | (read >= embeddings)]
    if unknown.numel():
        raise ValueError(
            f"input_ids has {int(unknown[0])}, and the model has embeddings for the ids 0 to {embeddings - 1:,} only."
        )


def refuse_assistance(
    config: GenerationConfig, processors: Iterable[object], criteria: Iterable[object], assistant: object
) -> None:
    """Say where `generate`, drafting by itself, writes something else than without drafts.

    Raises:
        ValueError: sampling draws other random numbers there; stopping criteria are asked once a pass, and not once a
            token; processors see rejected drafts.
    """
    given = [name for name in ASSISTANTS if getattr(config, name, None)]
    given += ["assistant_model"] if assistant is not None else []
    if not given:
        return
    why = None
    if config.do_sample:
        why = "draws other random numbers"
    elif getattr(config, "assistant_ensemble_weight", None) is not None:
        why = "mixes the assistant's choice into the model's"
    elif any(type(one) not in (MaxLengthCriteria, EosTokenCriteria) for one in criteria):
        why = "asks stopping criteria once a pass, not once a token"
    elif any(type(one).__module__ != "transformers.generation.logits_process" for one in processors):
        why = "shows rejected drafts to processors"
    if why:
        raise ValueError(f"With {given[0]} generate {why}; leave it out, since lookahead_generate drafts by itself.")


def refuse_lost_text(
    model: PreTrainedModel, config: GenerationConfig, criteria: Iterable[object], input_ids: Tensor
) -> None:
    """Say where transformers 5.17 would go on from the last token alone: see `RECOMPUTED` in `rope.py`.

    Raises:
        ValueError: the text may outgrow the boundary of such a model.
    """
    boundary = rope_boundary(model.config.get_text_config(decoder=True))
    if boundary is None or not boundary.recomputes or config.use_cache is False:
        return
    read = longest_text(config, criteria, input_ids) - 1  # no pass reads the last token
    if input_ids.shape[1] <= boundary.length < read:
        raise ValueError(
            f"Where a text of this model outgrows {boundary.length} tokens, generate forgets it if it has a cache; "
            "give use_cache=False, or a lower max_new_tokens."
        )


def longest_text(config: GenerationConfig, criteria: Iterable[object], input_ids: Tensor) -> int:
    """How many tokens a row may come to, its padding included. A criterion of one's own takes the place of max_length.

    As in `generate`, one token is written before any criterion is asked.
    """
    limits = [one.max_length for one in criteria if isinstance(one, MaxLengthCriteria)]
    return max(min(limits, default=config.max_length), input_ids.shape[1] + 1)


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
