"""Reads a checkpoint's config.json, without what it says about which code or which files are to be used."""

from pathlib import Path
from typing import Any

from transformers import AutoConfig

from ladechat.model.checkpoint.files import INDEX, OTHER_COPY, SINGLE_FILE, LoadError


def read_config(folder: Path) -> Any:
    """The configuration of a checkpoint, running no code that comes with it or that it names.

    The implementation of attention and of experts is dropped: it may be the name of a repository whose code
    transformers would fetch and run.

    Raises:
        LoadError: its weights are to be read from another file than usual.
        Exception: whatever transformers raises for a file that it cannot read.
    """
    config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    config._attn_implementation = None  # also of all parts
    config._experts_implementation = None
    weights = getattr(config, "transformers_weights", None)
    if weights not in (None, SINGLE_FILE, INDEX):
        message = f"config.json puts the weights into {str(weights)[:80]!r}, and ladechat reads them from {SINGLE_FILE}"
        raise LoadError("no_safetensors", f"{message} or what {INDEX} names.", OTHER_COPY)
    return config
