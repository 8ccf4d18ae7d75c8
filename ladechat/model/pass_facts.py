"""The facts on which the cost of a model's passes depends."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ladechat.model.load import LoadedModel
from ladechat.model.trained import fingerprint

COMPUTE = ("torch", "transformers", "torchao", "ladechat")
"""The packages whose code computes passes."""


def pass_facts(loaded: LoadedModel) -> dict[str, Any]:
    """Return the facts by which saved costs and skipped layers are looked up, except the processor.

    Raises:
        LoadError: the weights cannot be read; their fingerprint is one of the facts.
    """
    versions = {}
    for package in COMPUTE:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    model = loaded.model
    return {
        "config": {key: value for key, value in model.config.to_dict().items() if key != "_name_or_path"},
        "weights": fingerprint(loaded.folder),
        "device": loaded.device,  # includes the number of devices that share the model
        "dtype": loaded.dtype,
        "quantization": loaded.quantization,
        "attention": model.config._attn_implementation,
        "threads": loaded.threads._asdict(),
        "versions": versions,
    }
