"""Checks a hub's answers before huggingface_hub uses them as file names, or writes them to disk. Imports no torch.

huggingface_hub (1.33) names the files of its cache by the hub's headers, and writes small files without a size limit.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from huggingface_hub import constants, errors, set_client_factory
from huggingface_hub.utils._http import default_client_factory  # nothing public makes its client

from ladechat.model.checkpoint.files import in_words

if TYPE_CHECKING:
    import httpx as httpx
else:  # huggingface_hub's HTTP library: from its version 2 on httpx2, which has the same names
    httpx = sys.modules[errors.HTTPError.__module__]

NAMING_HEADERS = (constants.HUGGINGFACE_HEADER_X_REPO_COMMIT, constants.HUGGINGFACE_HEADER_X_XET_HASH)
"""Headers, in addition to a file's ETags, that become parts of paths."""

NAME = re.compile(r"(?!\.{1,2}$)[\w.+=:-]{1,200}")
"""A valid part of a path: no separator, and neither `.` nor `..`."""

MOST_BYTES = 200_000_000
"""The most bytes of an answer whose size the hub does not list, and of any file without weights."""

MOST_OF_A_FILE = 2**50
"""The largest plausible size of a file, in bytes."""

ENCODINGS = ("identity", "gzip")
"""The allowed compressions of answers. 64 kB of gzip, unpacked at once, hold 64 MB; of other formats, gigabytes."""

_most: ContextVar[int] = ContextVar("_most", default=MOST_BYTES)


class UntrustedAnswer(Exception):
    """An implausible answer of a hub; the message follows "the hub"."""


@cache  # each call of `set_client_factory` closes the client that other threads may be using
def check_answers() -> None:
    """Check all answers to huggingface_hub in this process: from now on its functions, and requests of its client,
    raise an `UntrustedAnswer`.
    """
    constants.HF_HUB_DISABLE_XET = True  # Xet storage is accessed by another library, which bypasses the client
    set_client_factory(_checking_client)


@contextmanager
def at_most(size: int | None) -> Iterator[None]:
    """Accept at most `size` bytes of a file, in this thread; None where the hub lists no size."""
    before = _most.set(MOST_BYTES if size is None else size)
    try:
        yield
    finally:
        _most.reset(before)


def check_commit(commit: object) -> str:
    """Return the name of a commit, which becomes part of a path; raise an `UntrustedAnswer` if it is not valid."""
    if not NAME.fullmatch(str(commit)):
        raise UntrustedAnswer(f"names {str(commit)[:80]!r} as the commit")
    return str(commit)


def checked_name(file: object) -> str:
    """Return the name of a file in a repository; raise an `UntrustedAnswer` if it is no string."""
    if not isinstance(file, str):
        raise UntrustedAnswer(f"lists {str(file)[:80]} as the name of a file")
    return file


def checked_size(size: object, file: str) -> int | None:
    """Return the size of a file in bytes; None where it is not listed.

    Raises:
        UntrustedAnswer: no file can have this size, such as -5.
    """
    if size is None:
        return None
    if not isinstance(size, int) or not 0 <= size <= MOST_OF_A_FILE:
        raise UntrustedAnswer(f"lists {str(size)[:80]} bytes as the size of {file[:80]}")
    return size


def _checking_client() -> httpx.Client:
    """Return a checking client for huggingface_hub, which makes a new one after each failed connection."""
    client = default_client_factory()
    client.headers["Accept-Encoding"] = "gzip"
    client.event_hooks["response"].append(_check)
    return client


def _check(response: httpx.Response) -> None:
    if response.request.method == "HEAD":  # about a file; other answers may have any ETags
        _check_headers(response.headers)
        return
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() not in ENCODINGS:
        raise UntrustedAnswer(f"sends an answer compressed as {encoding[:80]!r}")
    most = _most.get() if response.is_success else MOST_BYTES
    # The decoded bytes are counted: a small compressed answer can become a large file.
    response.iter_bytes = _up_to(most, response.iter_bytes)  # type: ignore[method-assign]


def _check_headers(headers: httpx.Headers) -> None:
    # Of the two ETags huggingface_hub takes the linked one, and strips it like this; other headers it takes unchanged.
    linked = constants.HUGGINGFACE_HEADER_X_LINKED_ETAG
    tag = linked if linked in headers else "ETag"
    for header in (tag, *NAMING_HEADERS):
        value = headers.get(header)
        name = value.lstrip("W/").strip('"') if value and header == tag else value
        if name is not None and not NAME.fullmatch(name):
            raise UntrustedAnswer(f"sends {str(value)[:80]!r} as {header}")


def _up_to(most: int, parts: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
    """Return a function that yields the parts of an answer and raises an error beyond so many bytes."""

    def counted(*arguments: int, **options: int) -> Iterator[bytes]:
        come = 0
        for part in parts(*arguments, **options):
            come += len(part)
            if come > most:
                raise UntrustedAnswer(f"sends more bytes than the {in_words(most)} that this answer may have")
            yield part

    return counted
