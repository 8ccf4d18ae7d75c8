"""Downloads checkpoints from a hub: the files needed of a repository, the disk space check, the cache.

Imports no torch. The token, the endpoint and the location of the cache are huggingface_hub's: HF_TOKEN or `hf auth
login`, HF_ENDPOINT, HF_HOME.
"""

import contextlib
import errno
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, errors, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # documented, but not marked

from ladechat.files import replace_file
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
    UntrustedAnswer,
    at_most,
    check_answers,
    check_commit,
    checked_name,
    checked_size,
    httpx,
)
from ladechat.model.checkpoint.transfer import Damaged, RemoteFile, transfer

SECONDS_TO_ANSWER = 10.0
SMALL_SUFFIXES = (".json", ".jinja", ".model", ".tiktoken")
SMALL_FILES = ("merges.txt", "vocab.txt")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
LOG_IN = "log in with `hf auth login` (or set HF_TOKEN)"
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
    except errors.HFValidationError:
        return None, None
    if not isinstance(config, str):
        return None, None
    folder = Path(config).parent
    wanted = weight_files(folder) or [SINGLE_FILE]
    return folder, next((file for file in wanted if not (folder / file).is_file()), None)


def _bring(name: str, commit: str, listed: dict[str, Any], progress: ByteProgress) -> Path:
    """Fetch a commit of a repository; return its folder. Small files come first, so that a gated model fails early."""

    def bring(file: str) -> Path:
        size = checked_size(listed[file].size, file)
        if size is not None and not file.endswith(".safetensors"):
            size = min(size, MOST_BYTES)  # no such file is larger, whatever the hub lists
        with at_most(size):
            return Path(hf_hub_download(name, file, revision=commit, etag_timeout=SECONDS_TO_ANSWER))

    folder = bring("config.json").parent
    for file in listed:  # the configuration and tokenizer files in its root, and none with code
        small = "/" not in file and (file.endswith(SMALL_SUFFIXES) or file in SMALL_FILES)
        if small and (not file.endswith(".index.json") or file == INDEX):
            bring(file)
    weights = [SINGLE_FILE] if SINGLE_FILE in listed else shards(folder) or [SINGLE_FILE]  # as transformers chooses
    missing = next((file for file in weights if file not in listed), None)
    if missing:
        message = f"{name} has no {missing}, which its weights should be in."
        raise LoadError("no_safetensors", message, "Choose another copy of the model, one that is complete.")
    transfer_missing(name, commit, [listed[file] for file in weights], progress)
    for file in weights:
        bring(file)
    find_offline(folder)
    return folder


def find_offline(folder: Path) -> None:
    """Make this folder of a version the one found offline.

    huggingface_hub would record the newest one, of which little is cached if it was pushed during the download.
    """
    ref = folder.parents[1] / "refs" / constants.DEFAULT_REVISION
    with contextlib.suppress(OSError):  # all files are cached, perhaps in a read-only cache
        if not ref.is_file() or ref.read_text(encoding="utf-8") != folder.name:
            replace_file(ref, folder.name.encode())


def transfer_missing(name: str, commit: str, weights: Sequence[Any], progress: ByteProgress) -> None:
    """Fetch the large files of a commit that are not in the cache, given as the hub lists them.

    Raises:
        LoadError: the disk is too small.
        Exception: as `transfer`.
    """
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


def hub_refusal(name: str, error: BaseException, missing: str | None = None) -> LoadError:
    """Return the error for a model that cannot be downloaded; `missing` is what its cached copy lacks, if any."""
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return hub_refusal(name, error.__cause__, missing)
    if isinstance(error, errors.GatedRepoError):
        hint = f"Ask for it on {constants.ENDPOINT}/{name}, {LOG_IN}, then start again."
        return LoadError("gated", f"Access to {name} has to be granted by its owners first.", hint)
    if isinstance(error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError | errors.HFValidationError):
        message = f"There is no model {name} on the hub, or it is private, and no folder of that name here."
        return LoadError("model_not_found", message, f"Check the spelling (owner/name); for a private model {LOG_IN}.")
    if isinstance(error, errors.HfHubHTTPError):
        return _http_refusal(name, error, missing)
    if isinstance(error, UntrustedAnswer):
        message = f"The hub at {constants.ENDPOINT} {error}, which no hub does, so nothing more is fetched of {name}."
        hint = "Check HF_ENDPOINT, and whether what answers there is to be trusted."
        return LoadError("hub_unreachable", message, hint)
    if isinstance(error, Damaged):
        message = f"A file of {name} came twice as something else than the hub says it is."
        return LoadError("hub_unreachable", message, "Try again later, or from another network.")
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return no_room(name, "there was not enough room for all of it")
    if isinstance(error, OSError) and not isinstance(
        error, ConnectionError | errors.LocalEntryNotFoundError | TimeoutError
    ):
        message = f"{name} cannot be kept in {constants.HF_HUB_CACHE}: {error.strerror or type(error).__name__}."
        return LoadError("load_failed", message, "Set HF_HOME to a folder that you may write to, then start again.")
    if isinstance(error, errors.OfflineModeIsEnabled):
        hint = "Unset HF_HUB_OFFLINE and start again, or give the folder of a checkpoint that you have."
        return _unreachable(name, "the hub is switched off by HF_HUB_OFFLINE", missing, hint)
    if isinstance(error, httpx.ProxyError):
        return _refused_by_proxy(name, str(error), missing)
    if isinstance(error, httpx.HTTPError | OSError):
        return _unreachable(name, f"the hub at {constants.ENDPOINT} cannot be reached", missing)
    return _unreachable(name, f"what answers at {constants.ENDPOINT} is no hub", missing)


def no_room(name: str, how_much: str) -> LoadError:
    """Return the error for a disk too small for the cache."""
    hint = "Free some space there, or set HF_HOME to a folder on a larger disk; what has come already is kept."
    return LoadError("disk_full", f"{name} does not fit the disk of {constants.HF_HUB_CACHE}: {how_much}.", hint)


def _http_refusal(name: str, error: errors.HfHubHTTPError, missing: str | None) -> LoadError:
    status = error.response.status_code
    if status == httpx.codes.UNAUTHORIZED:
        message = f"The hub did not accept the access token of this machine when it was asked for {name}."
        hint = "Log in anew with `hf auth login`, or set HF_TOKEN to a token that is valid."
        return LoadError("model_not_found", message, hint)
    if status == httpx.codes.FORBIDDEN:
        said = " ".join((error.response.headers.get("X-Error-Message") or "").split())[:200].rstrip(".")
        message = f"The hub does not let this machine have {name}{': ' + said if said else ''}."
        hint = f"Look at {constants.ENDPOINT}/{name} and at what your access token may read; {LOG_IN}."
        return LoadError("gated", message, hint)
    if status == httpx.codes.NOT_FOUND:
        message = f"The hub at {constants.ENDPOINT} does not find {name}, or a file of it."
        return LoadError("model_not_found", message, "Check the spelling (owner/name), and HF_ENDPOINT if it is set.")
    if status == httpx.codes.PROXY_AUTHENTICATION_REQUIRED:
        return _refused_by_proxy(name, f"{status} {error.response.reason_phrase}", missing)
    return _unreachable(name, f"the hub at {constants.ENDPOINT} answers with error {status}", missing)


def _refused_by_proxy(name: str, said: str, missing: str | None) -> LoadError:
    """Return the error for a proxy that refuses connections. Its words, `said`, begin with the HTTP status."""
    words = " ".join(said.split())[:200].rstrip(".")
    hint = "Look at HTTPS_PROXY, or HTTP_PROXY and ALL_PROXY; NO_PROXY names hosts that are reached without it."
    if words.startswith(str(int(httpx.codes.PROXY_AUTHENTICATION_REQUIRED))):
        hint = "Put your name and password into HTTPS_PROXY (or HTTP_PROXY): http://NAME:PASSWORD@HOST:PORT."
    return _unreachable(name, f"the proxy in front of {constants.ENDPOINT} refuses ({words})", missing, hint)


def _unreachable(name: str, why: str, missing: str | None, hint: str = "") -> LoadError:
    here = f"is only partly on this machine ({missing} is missing)" if missing else "is not on this machine"
    hint = hint or "Check the name and the network, then try again: a download goes on where it ended."
    return LoadError("hub_unreachable", f"{name} {here}, and {why}.", hint)
