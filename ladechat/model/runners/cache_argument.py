"""What a KV cache is called: `past_key_values` for long, `cache` from transformers 5.24 on."""

import inspect
from collections.abc import Callable
from typing import Any

from transformers import GenerationMixin

CACHE, FORMER_OR_LATER = (
    ("cache", "past_key_values")
    if "cache" in inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
    else ("past_key_values", "cache")
)
"""What the installed transformers calls it, and what others do."""


def cache_argument(function: Callable[..., Any]) -> str:
    """The name of the argument by which a model, a layer or a preparation takes a KV cache.

    A name that it takes with a warning only, because it is on its way out, does not count.
    """
    named = inspect.signature(function).parameters
    return FORMER_OR_LATER if FORMER_OR_LATER in named and CACHE not in named else CACHE
