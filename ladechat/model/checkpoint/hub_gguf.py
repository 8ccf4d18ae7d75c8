"""Downloads GGUF files from a hub: the one quantisation of a repository that a name asks for. Imports no torch."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # documented, but not marked

from ladechat.model.checkpoint.files import GGUF, NO_MODEL, PART, ByteProgress, LoadError
from ladechat.model.checkpoint.hub import SECONDS_TO_ANSWER, find_offline, hub_refusal, transfer_missing
from ladechat.model.checkpoint.hub_answers import at_most, check_answers, check_commit, checked_name, checked_size

PLAIN_NAME = re.compile(r"(?:[\w][\w. +-]*/)*[\w][\w. +-]*\.gguf", re.IGNORECASE)
"""The name of a file inside its repository: no absolute path, no folder above."""

QUANTISATION = re.compile(
    r"(?:^|[-_./])((?:UD-)?(?:I?Q\d\w*|T?Q\d_\d|BF16|F16|F32|MXFP4\w*))(?=[-_.]|$)", re.IGNORECASE
)
MOST_NAMED = 20


def download_gguf(name: str, progress: ByteProgress) -> Path:
    """Return the file in the cache of a model of the hub, after fetching it if it is missing; of several, the first.

    Args:
        name: owner/name:quantisation, such as owner/name-GGUF:Q4_K_M.
        progress: called with the bytes downloaded so far, and in total. Not called if all are cached.

    Raises:
        LoadError: there is no such model or quantisation, access is denied, the download fails, the disk is too small.
    """
    repository_id, _, wanted = name.partition(":")
    disable_progress_bars()
    check_answers()
    try:
        repository = HfApi().model_info(repository_id, files_metadata=True, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # a server at the hub's address may answer anything
        file = cached_gguf(repository_id, wanted)
        if file is None:
            raise hub_refusal(repository_id, error) from error
        return file
    try:
        listed = {checked_name(sibling.rfilename): sibling for sibling in repository.siblings or []}
        files = files_of(wanted, listed)
        if not files:
            raise _no_such_file(repository_id, wanted, listed)
        return _bring(repository_id, check_commit(repository.sha), [listed[file] for file in files], progress)
    except LoadError:
        raise
    except Exception as error:  # as above
        raise hub_refusal(repository_id, error) from error


def files_of(wanted: str, names: Iterable[str]) -> list[str]:
    """Return the files of a quantisation among the files of a repository: one, or all parts in order.

    Where several models have it, those of the shortest name.
    """
    has_it = re.compile(rf"(?:^|[-_./]){re.escape(wanted)}(?=[-./]|$)", re.IGNORECASE)
    models: dict[str, list[str]] = {}
    for file in sorted(names):
        if PLAIN_NAME.fullmatch(file) and not any(word in file.lower() for word in NO_MODEL):
            whole = PART.sub("", file)
            if has_it.search(whole.removesuffix(whole[-len(GGUF) :])):
                models.setdefault(whole, []).append(file)
    return models[min(models, key=len)] if models else []


def cached_gguf(repository_id: str, wanted: str) -> Path | None:
    """Return the cached file of a quantisation, of several parts the first; None where it is missing or not whole."""
    folder = Path(constants.HF_HUB_CACHE).expanduser() / repo_folder_name(repo_id=repository_id, repo_type="model")
    try:
        commit = (folder / "refs" / constants.DEFAULT_REVISION).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    snapshot = folder / "snapshots" / commit
    files = files_of(wanted, (str(file.relative_to(snapshot)) for file in snapshot.rglob("*") if file.is_file()))
    part = PART.search(files[0]) if files else None
    return snapshot / files[0] if files and len(files) == (int(part[2]) if part else 1) else None


def _bring(repository_id: str, commit: str, siblings: list[Any], progress: ByteProgress) -> Path:
    transfer_missing(repository_id, commit, siblings, progress)
    places = []
    for sibling in siblings:
        with at_most(checked_size(sibling.size, sibling.rfilename)):
            place = hf_hub_download(repository_id, sibling.rfilename, revision=commit, etag_timeout=SECONDS_TO_ANSWER)
            places.append(Path(place))
    find_offline(places[0].parents[siblings[0].rfilename.count("/")])
    return places[0]


def _no_such_file(repository_id: str, wanted: str, names: Iterable[str]) -> LoadError:
    found = {match[1] for name in names if name.lower().endswith(GGUF) and (match := QUANTISATION.search(name[:-5]))}
    message = f"{repository_id} has no GGUF file of the quantisation {wanted[:40]!r}."
    there = ", ".join(sorted(found)[:MOST_NAMED])
    hint = f"It has {there}." if there else "Look at its files on the hub."
    return LoadError("model_not_found", message, hint)
