"""The files of a checkpoint: where local ones are, which are needed, and what can be wrong with them. No torch."""

import hashlib
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

DEMO = "demo"
"""The name of the bundled model."""

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
"""Which file of a checkpoint in shards holds which weight."""

OTHER_WEIGHTS = {
    **dict.fromkeys((".bin", ".pt", ".pth", ".ckpt"), "a format that can run code when it is read"),
}

GGUF = ".gguf"

PLAIN_NAME = re.compile(r"[\w. +-]+\.safetensors")
"""The name of a file of weights: without a path, so that it is in the folder of the checkpoint."""

OTHER_COPY = "Use another copy of the model, one as transformers saves it."

PYTHONS_OWN = (TypeError, AttributeError, LookupError, RecursionError, AssertionError, ArithmeticError)
PYTHONS_WORDS = re.compile(r"invalid literal for|could not convert|<class |TypeError|Overflow when unpacking")

LoadErrorCode = Literal[
    "model_not_found",
    "gated",
    "hub_unreachable",
    "no_safetensors",
    "unsupported_architecture",
    "missing_package",
    "load_failed",
    "disk_full",
    "out_of_memory",
]

ByteProgress = Callable[[int, int], None]
"""Called with the bytes of a download that are here, and their total."""


class LoadError(Exception):
    """A model that cannot be loaded: what and why in the message, what to do in `hint`."""

    def __init__(self, code: LoadErrorCode, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def local_folder(name: str) -> Path | None:
    """The folder of the bundled model or of a local checkpoint; None for what must be a hub id."""
    if name == DEMO:
        return Path(str(files("ladechat") / "demo"))
    path = known_path(name)
    return path if path is not None and path.is_dir() else None


def local_gguf(name: str) -> Path | None:
    """The GGUF file of this name on this machine, if there is one."""
    path = known_path(name)
    return path if path is not None and is_gguf(path) and path.is_file() else None


def known_path(name: str) -> Path | None:
    """The path of this name; None where the system knows no such path, as one of thousands of characters."""
    try:
        path = Path(name).expanduser()
        path.is_dir()
    except (OSError, RuntimeError, ValueError):
        return None
    return path


def is_gguf(checkpoint: Path) -> bool:
    """Whether a checkpoint is a GGUF file rather than a folder."""
    return checkpoint.suffix.lower() == GGUF and not checkpoint.is_dir()


def check_names(name: str, found: list[str]) -> None:
    """Refuse what is no checkpoint, by the names of its files.

    Raises:
        LoadError: no config.json, or no weights in the safetensors format.
    """
    packed = sorted(file for file in found if file.lower().endswith(GGUF))
    if packed and not any(file.endswith(".safetensors") for file in found):
        message = f"{name} has no *.safetensors file, but GGUF files such as {packed[0]}."
        raise LoadError("no_safetensors", message, f"Name one of them, as in --model {name.rstrip('/')}/{packed[0]}.")
    if "config.json" not in found:
        raise LoadError(
            "model_not_found",
            f"{name} has no config.json, so it is not a checkpoint in the Hugging Face format.",
            "Give the folder or the hub id that has config.json, the tokenizer and the *.safetensors files.",
        )
    if not any(file.endswith(".safetensors") for file in found):
        others = sorted(file for file in found if Path(file).suffix in OTHER_WEIGHTS)
        kind = f"only {others[0]}, {OTHER_WEIGHTS[Path(others[0]).suffix]}" if others else "no weights"
        raise LoadError(
            "no_safetensors",
            f"{name} has no *.safetensors file ({kind}).",
            "Convert it with transformers: load it where you trust it, then model.save_pretrained(folder).",
        )


def shards(folder: Path) -> list[str] | None:
    """The names of the files that a checkpoint's index puts its weights into; None where there is no (whole) index.

    Raises:
        LoadError: one of them is not in the folder, or no safetensors file.
    """
    try:
        index: Any = json.loads((folder / INDEX).read_bytes())
        names = sorted({str(file) for file in index["weight_map"].values()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    elsewhere = next((name for name in names if not PLAIN_NAME.fullmatch(name)), None)
    if elsewhere is not None:
        message = f"{INDEX} puts weights into {elsewhere[:80]!r}, and only *.safetensors files beside it are read."
        raise LoadError("no_safetensors", message, OTHER_COPY)
    return names


def weight_files(folder: Path) -> list[str] | None:
    """The names of the files that a checkpoint's weights are read from, as transformers chooses them; None without any.

    Raises:
        LoadError: as `shards`.
    """
    return [SINGLE_FILE] if (folder / SINGLE_FILE).is_file() else shards(folder)


def in_words(count: int) -> str:
    """A number of bytes in words: GB are 10⁹ bytes, as disks are sold and hubs count."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def first_sentence(error: Exception) -> str:
    """The first sentence of what a library says, as the end of a sentence of ours.

    Python's own words are replaced: they are about a program, where the fault is an entry of a file.
    """
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        return f"nothing is known of {words[:80]}."
    if isinstance(error, PYTHONS_OWN) or PYTHONS_WORDS.search(words):
        return "an entry of its files is not of the kind that belongs there."
    return re.split(r"(?<=[.!?])\s", words)[0].rstrip(".") + "."


def tokenizer_fingerprint(folder: Path) -> str | None:
    """The beginning of the SHA-256 of the tokenizer's file: equal fingerprints, equal token ids."""
    for file in ("tokenizer.json", "tokenizer.model", "vocab.json"):
        if (folder / file).is_file():
            return hashlib.sha256((folder / file).read_bytes()).hexdigest()[:16]
    return None
