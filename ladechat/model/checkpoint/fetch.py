"""Finds the files of a checkpoint by its name, downloading them if needed. Imports no torch."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from ladechat.installing import command_for_extra
from ladechat.model.checkpoint.faults import faults_said, import_explained, import_libraries
from ladechat.model.checkpoint.files import (
    ByteProgress,
    LoadError,
    check_kinds,
    check_names,
    check_searchable,
    is_gguf,
    known_path,
    local_folder,
    local_gguf,
    only_gguf,
    weight_files,
)
from ladechat.model.llama_cpp.library import PACKAGE, is_installed, wait_briefly

UNPACKING_PACKAGES = ("gguf", "accelerate")
"""The packages with which transformers unpacks a GGUF file, where llama.cpp is not installed."""


def fetch(name: str, progress: ByteProgress) -> Path:
    """Return the folder of a checkpoint, or its GGUF file, after a download if it is on the hub and not cached yet.

    Args:
        name: "demo", a folder, a GGUF file, or a hub id such as owner/name; of GGUF files owner/name:quantisation.
        progress: called with the bytes of a download so far and in total.

    Raises:
        LoadError: there is no such folder, file or hub id, it has no safetensors weights, a package that reads GGUF
            files is missing, or the download failed.
    """
    with faults_said(name, passed_on=lambda error: isinstance(error, MemoryError)):
        checkpoint = local_files(name)
        if checkpoint is None:
            with import_explained("huggingface_hub"):  # takes half a second, which local models avoid
                from ladechat.model.checkpoint.hub import download
                from ladechat.model.checkpoint.hub_gguf import download_gguf

            if ":" in name:
                check_reader(name)
            checkpoint = download_gguf(name, progress) if ":" in name else download(name, progress)
        if not is_gguf(checkpoint):
            check_kinds(name, checkpoint)
            check_names(name, [path.name for path in checkpoint.iterdir()])
            weight_files(checkpoint)  # refuses an index that leads out of the folder
        return checkpoint


def local_files(name: str) -> Path | None:
    """Return the folder or GGUF file of a checkpoint on this machine, also where that is the only one of the named
    folder; None for what must be a hub id.

    Raises:
        LoadError: it names a folder or file that does not exist, or a package that reads GGUF files is missing.
    """
    folder = local_folder(name)
    if folder is not None:
        file = only_gguf(folder)
        if file is not None:
            check_reader(name)
        return file or folder
    gguf = is_gguf(Path(name))
    is_path = name.count("/") > 1 or name.startswith((".", "/", "~")) or name.endswith("/") or os.sep not in name
    if gguf or is_path:
        check_searchable(name)
    if gguf:
        return _gguf(name)
    if is_path:
        hint = "Check the path, or give a hub id such as owner/name."
        path = known_path(name)
        is_file = path is not None and path.is_file()
        message = f"{name} is a file, but no GGUF file." if is_file else f"There is no folder {name}."
        raise LoadError("model_not_found", message, hint)
    return None


def check_reader(name: str) -> None:
    """Refuse a GGUF file where nothing is installed that reads it.

    Raises:
        LoadError: nothing is.
    """
    if not is_installed() and any(importlib.util.find_spec(package) is None for package in UNPACKING_PACKAGES):
        message = f"{name} is a GGUF file, and what reads it is not installed: {PACKAGE}."
        raise LoadError("missing_package", message, f"Install it beside ladechat: {command_for_extra('llama-cpp')}")


def _gguf(name: str) -> Path:
    check_reader(name)
    path = local_gguf(name)
    if path is None:
        raise LoadError("model_not_found", f"There is no file {name}.", "Check the path; of the hub, fetch it first.")
    return path


def stays_packed(checkpoint: Path) -> bool:
    """Return whether llama.cpp, which is installed, runs a checkpoint: a GGUF file."""
    return is_gguf(checkpoint) and is_installed()


def start_libraries(checkpoint: Path, begin: Callable[[str], object]) -> None:
    """Import the libraries that load a checkpoint, which takes seconds; `begin` is called with that stage."""
    packed = stays_packed(checkpoint)
    begin("starting PyTorch" if packed else "starting PyTorch and transformers")
    if packed:
        wait_briefly()
    import_libraries(packed)
