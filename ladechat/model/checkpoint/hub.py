"""Downloads checkpoints from a hub: the files needed of a repository, the disk space check, the cache.

Imports no torch. The token, the endpoint and the location of the cache are huggingface_hub's: HF_TOKEN or `hf auth
login`, HF_ENDPOINT, HF_HOME.
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
    """Return the cache folder of a model of the hub, after fetching missing files.

    Only configuration, tokenizer and safetensors weights are fetched. Where the hub cannot be reached, a complete copy
    in the cache is used.

    Args:
        name: owner/name.
        progress: called with the bytes of weights downloaded so far, and in total. Not called if all are cached.

    Raises:
        LoadError: there is no such model, or access is denied, or the download fails, or the disk is too small.
    """
    disable_progress_bars()
    check_answers()
    try:
        repository = HfApi().model_info(name, files_metadata=True, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # a server at the hub's address may answer anything
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
    """Return the folder of a model's cached version, if any, and the name of a weight file missing in it, if any."""
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
    """Return the configuration and tokenizer files of a repository: those in its root, and none with code."""
    return [
        file
        for file in listed
        if "/" not in file
        and (file.endswith(SMALL_SUFFIXES) or file in SMALL_FILES)
        and (not file.endswith(".index.json") or file == INDEX)
    ]


def _bring(name: str, commit: str, listed: dict[str, Any], progress: ByteProgress) -> Path:
    """Fetch a commit of a repository; return its folder. Small files come first, so that a gated model fails early."""

    def bring(file: str) -> Path:
        size = checked_size(listed[file].size, file)
        if size is not None and not file.endswith(".safetensors"):
            size = min(size, MOST_BYTES)  # no such file is larger, whatever the hub lists
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
    """Make this the version found offline.

    huggingface_hub would record the newest one, of which little is cached if it was pushed during the download.
    """
    ref = folder.parents[1] / "refs" / constants.DEFAULT_REVISION
    with contextlib.suppress(OSError):  # all files are cached, perhaps in a read-only cache
        if ref.is_file() and ref.read_text(encoding="utf-8") == folder.name:
            return
        ref.parent.mkdir(parents=True, exist_ok=True)
        partial = ref.with_name(f"{ref.name}.{uuid4().hex}.tmp")
        partial.write_text(folder.name, encoding="utf-8")
        partial.replace(ref)  # atomic: another process reads a whole name


def _weights(name: str, folder: Path, listed: dict[str, Any]) -> list[str]:
    """Return the names of the weight files: the single one that transformers would read, or those in the index."""
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
        # A weight file without LFS checksum is as small as a config, and left to huggingface_hub.
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
    if any(not file.blob.exists() for file in files):  # also if only the last step is missing
        transfer(files, progress)
