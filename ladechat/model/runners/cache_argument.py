"""The argument name of the KV cache: `past_key_values`, or `cache` from transformers 5.24 on."""

import inspect
from collections.abc import Callable
from typing import Any

from transformers import GenerationMixin

CACHE, FORMER_OR_LATER = (
    ("cache", "past_key_values")
    if "cache" in inspect.signature(GenerationMixin.prepare_inputs_for_generation).parameters
    else ("past_key_values", "cache")
)
"""The name in the installed transformers, and the name in other versions."""


def cache_argument(function: Callable[..., Any]) -> str:
    """Return the name of the argument by which a model, a layer or a preparation takes a KV cache.

    A deprecated name that it still takes with a warning does not count.
    """
    named = inspect.signature(function).parameters
    return FORMER_OR_LATER if FORMER_OR_LATER in named and CACHE not in named else CACHE
