"""Reads a checkpoint's config.json, without what it says about which code or which files are to be used."""

import re
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from ladechat.model.checkpoint.files import INDEX, OTHER_COPY, SINGLE_FILE, LoadError, first_sentence

SIZES = {
    "num_hidden_layers": ("layers", 1),
    "num_attention_heads": ("attention heads", 1),
    "hidden_size": ("numbers in a hidden state", 1),
    "vocab_size": ("tokens", 1),
    "max_position_embeddings": ("positions", -1),  # as XLNet says that it has no most
    "sliding_window": ("positions in a sliding window", 0),
}
"""Entries that have to be whole numbers: what they count, and the least that can be."""

MOST = 2**31 - 1
MOST_OF_A_VALUE = 80
"""Characters of it in a message."""


def read_config(folder: Path) -> Any:
    """The configuration of a checkpoint, running no code that comes with it or that it names.

    The implementation of attention and of experts is dropped: it may be the name of a repository whose code
    transformers would fetch and run.

    Raises:
        LoadError: its weights are to be read from another file than usual.
        Exception: whatever transformers raises for a file that it cannot read.
    """
    config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    for part in {id(one): one for one in (config, config.get_text_config())}.values():
        padding, vocabulary = getattr(part, "pad_token_id", None), getattr(part, "vocab_size", None)
        if isinstance(padding, int) and isinstance(vocabulary, int) and not -vocabulary <= padding < vocabulary:
            part.pad_token_id = None  # nothing is padded here, and torch refuses embeddings with such a place
    config._attn_implementation = None  # also of all parts
    config._experts_implementation = None
    weights = getattr(config, "transformers_weights", None)
    if weights not in (None, SINGLE_FILE, INDEX):
        message = f"config.json puts the weights into {str(weights)[:80]!r}, and ladechat reads them from {SINGLE_FILE}"
        raise LoadError("no_safetensors", f"{message} or what {INDEX} names.", OTHER_COPY)
    return config


def unusable_size(config: Any) -> str | None:
    """What a configuration says that no model can have, as "has -3 layers (num_hidden_layers)"; None if nothing is."""
    for key, (what, least) in SIZES.items():
        value = getattr(config, key, None)
        if value is not None and (not isinstance(value, int) or not least <= value <= MOST):
            return f"has {str(value)[:MOST_OF_A_VALUE]} {what} ({key})"
    return None


def what_is_wrong(error: Exception) -> str:
    """What transformers says of a configuration that it refuses, as the end of a sentence."""
    field = re.match(r"Validation error for (?:field|parameter) '(\w+)'", str(error))
    if field:
        return f"its {field[1]} is not of the kind that belongs there."
    return re.sub(r"^Class validation error for validator '\w+': \w+: ", "", first_sentence(error))
