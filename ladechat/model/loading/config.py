"""Reads a checkpoint's config.json, ignoring entries that choose other code or other files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import INDEX, OTHER_COPY, SINGLE_FILE, LoadError, read_object
from ladechat.model.runners.rope import rope_parameters

MOST = 2**31 - 1
SIZES = {
    "num_hidden_layers": ("layers", 1),
    "num_attention_heads": ("attention heads", 1),
    "num_key_value_heads": ("heads for keys and values", 0),
    "head_dim": ("numbers in a head", 0),
    "hidden_size": ("numbers in a hidden state", 1),
    "vocab_size": ("tokens", 1),
    "max_position_embeddings": ("positions", 2),
    "sliding_window": ("positions in a sliding window", 1),
}
"""Entries that have to be integers: what they count, and the smallest valid value."""

LISTS = ("num_key_value_heads", "head_dim")
"""Those entries that some model types have as a list with a value for each layer."""

NO_MOST = (-1, 0)
"""Values by which XLNet declares that its positions are unlimited."""

MOST_LISTED = {"num_hidden_layers": 10_000, "n_layer": 10_000, "block_count": 10_000, "num_labels": 1_000_000}
"""The largest plausible values of entries for which transformers builds a list of that length before any check: it
could fill the memory."""

MOST_OF_A_VALUE = 80
"""The most characters of a value in a message."""


def read_config(folder: Path) -> Any:
    """Return the configuration of a checkpoint, without running code that comes with it or that it names.

    Its choice of attention and expert implementations is dropped: it may be the name of a repository whose code
    transformers would fetch and run.

    Raises:
        LoadError: it names an unusual weights file, or counts more of something than any model has.
        Exception: whatever transformers raises for a file that it cannot read.
    """
    check_listed(read_object(folder / "config.json"), "config.json")
    config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    for part in {id(one): one for one in (config, config.get_text_config())}.values():
        padding, vocabulary = getattr(part, "pad_token_id", None), getattr(part, "vocab_size", None)
        if isinstance(padding, int) and isinstance(vocabulary, int) and not -vocabulary <= padding < vocabulary:
            part.pad_token_id = None  # no text is padded, and torch refuses embeddings with such an index
    config.return_dict = True  # outputs with names
    config._attn_implementation = None  # applies to all sub-configurations too
    config._experts_implementation = None
    weights = getattr(config, "transformers_weights", None)
    if weights not in (None, SINGLE_FILE, INDEX):
        message = f"config.json puts the weights into {str(weights)[:80]!r}, and ladechat reads them from {SINGLE_FILE}"
        raise LoadError("no_safetensors", f"{message} or what {INDEX} names.", OTHER_COPY)
    return config


def unusable_size(config: Any) -> str | None:
    """Return the first impossible value of a configuration, as "has -3 layers (num_hidden_layers)"; None without."""
    for key, (what, least) in SIZES.items():
        value = getattr(config, key, None)
        if value is None or (key in LISTS and isinstance(value, list | tuple)):
            continue
        if key == "max_position_embeddings" and value in NO_MOST:
            continue
        if not isinstance(value, int) or not least <= value <= MOST:
            return f"has {str(value)[:MOST_OF_A_VALUE]} {what} ({key})"
    for rope in rope_parameters(config):
        factor = rope.get("factor")
        if factor is not None and not (isinstance(factor, int | float) and 0 < factor <= MOST):
            return f"stretches rotary positions by {str(factor)[:MOST_OF_A_VALUE]} (factor)"
    return None


def check_listed(entries: Mapping[str, Any], file: str) -> None:
    """Refuse a configuration, or a nested one, that counts more of something than any model has.

    Raises:
        LoadError: it does.
    """
    waiting: list[Any] = [entries]
    while waiting:
        part = waiting.pop()
        inside = part.values() if isinstance(part, Mapping) else part
        waiting += [one for one in inside if isinstance(one, Mapping | list)]
        for key, most in MOST_LISTED.items():
            value = part.get(key) if isinstance(part, Mapping) else None
            if isinstance(value, int | float) and value > most:
                message = f"{file} says {str(value)[:MOST_OF_A_VALUE]} for {key}, and no model has more than {most:,}."
                raise LoadError("unsupported_architecture", message, OTHER_COPY)


def what_is_wrong(error: Exception) -> str:
    """Return transformers' reason for refusing a configuration, as the end of a sentence."""
    field = re.match(r"Validation error for (?:field|parameter) '(\w+)'", str(error))
    if field:
        return f"its {field[1]} is not of the kind that belongs there."
    return re.sub(r"^Class validation error for validator '\w+': \w+: ", "", first_sentence(error))
