"""What the cost of a model's passes depends on."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ladechat.model.load import LoadedModel
from ladechat.model.trained import fingerprint

COMPUTE = ("torch", "transformers", "torchao", "ladechat")
"""Packages with code that computes."""


def pass_facts(loaded: LoadedModel) -> dict[str, Any]:
    """Return the facts by which saved costs are found again, and layers to skip; the processor is not among them.

    Raises:
        LoadError: the weights, which are among them, cannot be read.
    """
    versions = {}
    for package in COMPUTE:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    model = loaded.model
    return {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "weights": fingerprint(loaded.folder),
        "device": loaded.device,  # it says how many share the model
        "dtype": loaded.dtype,
        "quantization": loaded.quantization,
        "attention": model.config._attn_implementation,
        "threads": loaded.threads._asdict(),
        "versions": versions,
    }
