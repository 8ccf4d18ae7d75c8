"""Checkpoints from a hub: what of a repository is needed, whether there is room for it, how it comes into the cache.

Imports no torch. The token, the endpoint and the place of the cache are huggingface_hub's: HF_TOKEN or `hf auth login`,
HF_ENDPOINT, HF_HOME.
"""

import contextlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # documented, but not marked

from ladechat.model.checkpoint.files import (
    INDEX,
    SINGLE_FILE,
    ByteProgress,
    LoadError,
    check_names,
    in_words,
    shards,
    weight_files,
)
from ladechat.model.checkpoint.hub_answers import (
    MOST_BYTES,
    at_most,
    check_answers,
    check_commit,
    checked_name,
    checked_size,
)
from ladechat.model.checkpoint.hub_errors import hub_refusal, no_room
from ladechat.model.checkpoint.transfer import RemoteFile, transfer

SECONDS_TO_ANSWER = 10.0
SMALL_SUFFIXES = (".json", ".jinja", ".model", ".tiktoken")
SMALL_FILES = ("merges.txt", "vocab.txt")
SHA256 = re.compile(r"[0-9a-f]{64}")


def download(name: str, progress: ByteProgress) -> Path:
    """The folder in the cache that holds a model of the hub, after fetching what is missing in it.

    Only configuration, tokenizer and safetensors weights are fetched. Where the hub cannot be asked, a complete copy in
    the cache will do.

    Args:
        name: owner/name.
        progress: told how many bytes of the weights are here, and how many they are. Not called if all are here.

    Raises:
        LoadError: there is no such model, or it may not or cannot be fetched, or there is no room for it.
    """
    disable_progress_bars()
    check_answers()
    try:
        repository = HfApi().model_info(name, files_metadata=True, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # what answers at the address of a hub may answer anything
        folder, missing = cached(name)
        if folder is None or missing:
            raise hub_refusal(name, error, missing) from error
        return folder
    try:
        listed = {checked_name(sibling.rfilename): sibling for sibling in repository.siblings or []}
        check_names(name, [file for file in listed if "/" not in file])
        return _bring(name, check_commit(repository.sha), listed, progress)
    except LoadError:
        raise
    except Exception as error:  # as above
        raise hub_refusal(name, error) from error


def cached(name: str) -> tuple[Path | None, str | None]:
    """The folder of a model's cached version, if any, and the name of a file that is missing in it, if any is."""
    try:
        config = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None, None
    if not isinstance(config, str):
        return None, None
    folder = Path(config).parent
    wanted = weight_files(folder) or [SINGLE_FILE]
    return folder, next((file for file in wanted if not (folder / file).is_file()), None)


def small_files(listed: Sequence[str]) -> list[str]:
    """Of the files of a repository, configuration and tokenizer: those in its root, and none that holds code."""
    return [
        file
        for file in listed
        if "/" not in file
        and (file.endswith(SMALL_SUFFIXES) or file in SMALL_FILES)
        and (not file.endswith(".index.json") or file == INDEX)
    ]


def _bring(name: str, commit: str, listed: dict[str, Any], progress: ByteProgress) -> Path:
    """Fetch a commit of a repository. Small files first: they tell at once that a model is gated."""

    def bring(file: str) -> Path:
        size = checked_size(listed[file].size, file)
        if size is not None and not file.endswith(".safetensors"):
            size = min(size, MOST_BYTES)  # of these it has no reason to list more
        with at_most(size):
            return Path(hf_hub_download(name, file, revision=commit, etag_timeout=SECONDS_TO_ANSWER))

    folder = bring("config.json").parent
    for file in small_files(list(listed)):
        bring(file)
    weights = _weights(name, folder, listed)
    _transfer_missing(name, commit, [listed[file] for file in weights], progress)
    for file in weights:
        bring(file)
    _find_offline(folder)
    return folder


def _find_offline(folder: Path) -> None:
    """Make this the version that is found offline.

    huggingface_hub would note the newest one, of which little is here if it was pushed during the download.
    """
    ref = folder.parents[1] / "refs" / constants.DEFAULT_REVISION
    with contextlib.suppress(OSError):  # all files are here, perhaps in a cache that cannot be written to
        if ref.is_file() and ref.read_text(encoding="utf-8") == folder.name:
            return
        ref.parent.mkdir(parents=True, exist_ok=True)
        partial = ref.with_name(f"{ref.name}.{uuid4().hex}.tmp")
        partial.write_text(folder.name, encoding="utf-8")
        partial.replace(ref)  # atomic: another process reads a whole name


def _weights(name: str, folder: Path, listed: dict[str, Any]) -> list[str]:
    """The files that hold the weights: the one that transformers would read, or those that the index names."""
    if SINGLE_FILE in listed:
        return [SINGLE_FILE]
    wanted = shards(folder) or [SINGLE_FILE]
    missing = next((file for file in wanted if file not in listed), None)
    if missing:
        message = f"{name} has no {missing}, which its weights should be in."
        raise LoadError("no_safetensors", message, "Choose another copy of the model, one that is complete.")
    return wanted


def _transfer_missing(name: str, commit: str, weights: Sequence[Any], progress: ByteProgress) -> None:
    cache = Path(constants.HF_HUB_CACHE).expanduser().resolve()
    repository = repo_folder_name(repo_id=name, repo_type="model")
    files = []
    for sibling in weights:
        # Without the checksum of large files a weight is as small as a config, and huggingface_hub fetches it.
        sha256 = str(sibling.lfs.sha256) if sibling.lfs else ""
        here = isinstance(try_to_load_from_cache(name, sibling.rfilename, revision=commit), str)
        if SHA256.fullmatch(sha256) and not here:
            url = hf_hub_url(name, sibling.rfilename, revision=commit)
            blob = cache / repository / "blobs" / sha256
            lock = cache / ".locks" / repository / f"{sha256}.lock"
            size = checked_size(sibling.lfs.size, sibling.rfilename) or 0
            files.append(RemoteFile(url, size, sha256, blob, lock))
    needed = sum(file.size - file.bytes_here() for file in files)
    free = shutil.disk_usage(next(place for place in (cache, *cache.parents) if place.exists())).free
    if needed > free:
        raise no_room(name, f"{in_words(needed)} more are needed, {in_words(free)} are free")
    if any(not file.blob.exists() for file in files):  # also where all bytes are here, and only the end was cut off
        transfer(files, progress)
