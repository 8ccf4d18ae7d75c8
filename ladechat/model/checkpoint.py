"""Where a model's files are, and whether they are such as can be loaded. Imports no torch: the engine asks at once."""

import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Literal

DEMO = "demo"
"""The name of the bundled model."""

WANTED_FILES = ("*.safetensors", "*.json", "*.model", "*.jinja", "tokenizer*", "merges.txt", "vocab*")
UNSAFE_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt")

LoadErrorCode = Literal["model_not_found", "no_safetensors", "unsupported_architecture", "load_failed", "out_of_memory"]


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
    path = Path(name).expanduser()
    return path if path.is_dir() else None


def fetch(name: str) -> Path:
    """The folder that holds a checkpoint, after a download if it is a hub id that is not cached yet.

    Raises:
        LoadError: there is no such folder or hub id, or the hub cannot be asked, or it has no safetensors weights.
    """
    folder = local_folder(name)
    if folder is None:
        if _looks_like_a_path(name):
            raise LoadError(
                "model_not_found", f"There is no folder {name}.", "Check the path, or give a hub id such as owner/name."
            )
        folder = _download(name)
    if not (folder / "config.json").is_file():
        raise LoadError(
            "model_not_found",
            f"{name} has no config.json, so it is not a checkpoint in the Hugging Face format.",
            "Give the folder that holds config.json, the tokenizer and the *.safetensors files.",
        )
    if not list(folder.glob("*.safetensors")):
        found = sorted(path.name for pattern in UNSAFE_WEIGHTS for path in folder.glob(pattern))
        kind = f"only {found[0]}, a format that can run code when it is read" if found else "no weights"
        raise LoadError(
            "no_safetensors",
            f"{name} has no *.safetensors file ({kind}).",
            "Convert it with transformers: load it where you trust it, then model.save_pretrained(folder).",
        )
    return folder


def tokenizer_fingerprint(folder: Path) -> str | None:
    """The beginning of the SHA-256 of the tokenizer's file: equal fingerprints, equal token ids."""
    for file in ("tokenizer.json", "tokenizer.model", "vocab.json"):
        if (folder / file).is_file():
            return hashlib.sha256((folder / file).read_bytes()).hexdigest()[:16]
    return None


def _looks_like_a_path(name: str) -> bool:
    return name.count("/") > 1 or name.startswith((".", "/", "~")) or name.endswith("/") or os.sep not in name


def _download(name: str) -> Path:
    import httpx  # what huggingface_hub asks through; a connection lost on the way is none of its own errors
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return Path(snapshot_download(name, allow_patterns=list(WANTED_FILES)))
    except GatedRepoError as error:
        raise LoadError(
            "model_not_found",
            f"Access to {name} has to be granted by its owners first.",
            "Ask for it on the model's page of the hub, log in with `hf auth login`, then start again.",
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise LoadError(
            "model_not_found",
            f"There is no model {name} on the hub, or it is private, and no folder of that name here.",
            "Check the spelling (owner/name); for a private model log in with `hf auth login`.",
        ) from error
    except (LocalEntryNotFoundError, OSError, httpx.HTTPError) as error:
        raise LoadError(
            "model_not_found",
            f"{name} is not on this machine, and the hub cannot be reached.",
            "Check the network and start again, or give the folder of a checkpoint that you have.",
        ) from error
