"""Checks what a hub answers before huggingface_hub makes names of files of it, or writes it down. Imports no torch.

huggingface_hub (1.33) names the files of its cache by what the hub says in headers, and writes as much of a small file
as comes.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx  # what huggingface_hub asks through
from huggingface_hub import constants, get_session

from ladechat.model.checkpoint.files import in_words

NAMING_HEADERS = (
    constants.HUGGINGFACE_HEADER_X_LINKED_ETAG,
    constants.HUGGINGFACE_HEADER_X_REPO_COMMIT,
    constants.HUGGINGFACE_HEADER_X_XET_HASH,
)
"""Headers, besides ETag, that become parts of paths."""

NAME = re.compile(r"(?!\.{1,2}$)[\w.+=:-]{1,200}")
MOST_BYTES = 200_000_000
"""Of the list of files, and of a file whose size is not in it."""

_most: ContextVar[int] = ContextVar("_most", default=MOST_BYTES)


class UntrustedAnswer(Exception):
    """What a hub answers that no hub would, in words that follow "the hub"."""


def check_answers() -> None:
    """Have all answers to huggingface_hub checked in this process: it raises an `UntrustedAnswer` from here on."""
    session = get_session()
    hooks = session.event_hooks
    if _check not in hooks["response"]:
        session.event_hooks = {**hooks, "response": [*hooks["response"], _check]}


@contextmanager
def at_most(size: int | None) -> Iterator[None]:
    """Take no more bytes of a file than the hub lists, in this thread; None where it lists none."""
    before = _most.set(MOST_BYTES if size is None else size)
    try:
        yield
    finally:
        _most.reset(before)


def check_commit(commit: object) -> str:
    """The name of a commit, which becomes part of a path.

    Raises:
        UntrustedAnswer: it is none.
    """
    if not NAME.fullmatch(str(commit)):
        raise UntrustedAnswer(f"names {str(commit)[:80]!r} as the commit")
    return str(commit)


def _check(response: httpx.Response) -> None:
    if response.request.method == "HEAD":  # about a file; other answers have tags of any kind
        _check_headers(response.headers)
    elif response.is_success:
        # What is read is decoded: a small answer can become a large file.
        response.iter_bytes = _up_to(_most.get(), response.iter_bytes)  # type: ignore[method-assign]


def _check_headers(headers: httpx.Headers) -> None:
    # Of the two tags huggingface_hub takes the linked one.
    tag = () if constants.HUGGINGFACE_HEADER_X_LINKED_ETAG in headers else ("ETag",)
    for header in (*tag, *NAMING_HEADERS):
        value = headers.get(header)
        if value is not None and not NAME.fullmatch(value.removeprefix("W/").strip('"')):
            raise UntrustedAnswer(f"sends {value[:80]!r} as {header}")


def _up_to(most: int, parts: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
    """The parts of an answer, as long as they are not more than so many bytes."""

    def counted(*arguments: int, **options: int) -> Iterator[bytes]:
        come = 0
        for part in parts(*arguments, **options):
            come += len(part)
            if come > most:
                raise UntrustedAnswer(f"sends more bytes of a file than the {in_words(most)} that it lists")
            yield part

    return counted
