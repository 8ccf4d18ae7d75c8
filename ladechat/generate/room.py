"""The number of positions that a model has, and that lookahead decoding needs."""

from transformers import PreTrainedModel

from ladechat.generate.request import DecodingSettings
from ladechat.model.runners.rope import stretched_context

LEAST_CONTEXT = 16
"""Positions that the check of a model takes, for configs that do not say how many there are."""


def context_of(model: PreTrainedModel) -> int | None:
    """Return the number of a model's positions; None if its config does not say it."""
    config = model.config.get_text_config()
    longest = getattr(config, "max_position_embeddings", None)
    return None if longest is None else stretched_context(config, longest)


def positions_for(model: PreTrainedModel, length: int, settings: DecodingSettings) -> int:
    """Return the positions that a decoder may use, for texts of up to `length` tokens and a window beyond them."""
    context = context_of(model)
    return length + LEAST_CONTEXT + settings.window + settings.ngram if context is None else context


def why_no_room(model: PreTrainedModel, prompt_length: int, length: int, settings: DecodingSettings) -> str | None:
    """Return why the model has too few positions for a text of up to `length` tokens, as a clause; None if enough."""
    context = context_of(model)
    if context is None:
        return None
    if length > context:
        return (
            f"prompt and new tokens may come to {length}, but the model has {context} positions (max_new_tokens sets "
            "how many)"
        )
    ahead = settings.window + settings.ngram - 3
    if prompt_length + ahead > context:
        return (
            f"window {settings.window} and ngram {settings.ngram} look {ahead} positions ahead, and after a prompt of "
            f"{prompt_length} tokens the model's {context} positions are fewer"
        )
    return None
