"""Downloads large files of a hub into its cache, resuming so that no byte is fetched twice. Imports no torch.

huggingface_hub (1.33) restarts an interrupted download: 13 GB again after a laptop was closed. So the weights, and only
they, are downloaded by this module; huggingface_hub does not fetch files that it finds in its cache.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import get_session
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # documented, but not marked as exported
    WeakFileLock,
    build_hf_headers,
    hf_raise_for_status,
)

from ladechat.model.checkpoint.files import ByteProgress
from ladechat.model.checkpoint.hub_answers import httpx

AT_ONCE = 4
"""The number of parallel transfers: one connection rarely saturates a fast line."""

RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0, 8.0)
"""The pauses before a broken transfer is resumed; they start over once bytes have arrived."""

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
POLL_SECONDS = 0.1

log = logging.getLogger(__name__)


class Damaged(Exception):
    """The content of a file does not match the hub's checksum."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of the hub, and its path in the cache.

    The process that fetches it holds the lock file; huggingface_hub takes the same one.
    """

    url: str
    size: int  # in bytes
    sha256: str
    blob: Path
    lock: Path

    @property
    def partial(self) -> Path:
        """The file of its bytes until all have arrived, under a name that `hf cache prune` removes."""
        return self.blob.with_name(f"{self.blob.name}.ladechat.incomplete")

    def bytes_here(self) -> int:
        """Return how many of its bytes are on this machine, whichever process fetched them."""
        if self.blob.exists():
            return self.size
        try:
            return min(self.partial.stat().st_size, self.size)
        except OSError:
            return 0


def transfer(files: Sequence[RemoteFile], progress: ByteProgress) -> None:
    """Fetch the missing parts of these files, continuing where an earlier transfer ended.

    The process may end at any byte: those received so far stay on disk.

    Raises:
        httpx.TransportError: the connection broke repeatedly without a byte in between.
        HfHubHTTPError: the hub refuses a file.
        Damaged: a file came twice with a wrong checksum.
        OSError: a file cannot be written.
    """
    total = sum(file.size for file in files)
    stop = threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(_fetch, file, stop) for file in files}
        try:
            while running:
                progress(sum(file.bytes_here() for file in files), total)
                done, running = wait(running, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        finally:
            stop.set()
    progress(total, total)


def _fetch(file: RemoteFile, stop: threading.Event) -> None:
    """Fetch one file, or wait for another process that is fetching it."""
    for folder in (file.blob.parent, file.lock.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        while not stop.is_set():
            try:
                held.enter_context(WeakFileLock(file.lock, timeout=1.0))
            except TimeoutError:
                continue
            if not file.blob.exists():
                _complete(file, stop)
            return


def _complete(file: RemoteFile, stop: threading.Event) -> None:
    """Fetch until the file is complete and its checksum right, resuming after broken connections."""
    attempt = 0
    while not stop.is_set():
        before = file.bytes_here()
        try:
            digest = _continue(file, stop)
        except (httpx.TransportError, HfHubHTTPError) as error:
            attempt = 0 if file.bytes_here() > before else attempt
            if not _may_pass(error) or attempt == len(RETRY_SECONDS):
                raise
            log.warning("%s: %s; trying again", file.url, error)
            stop.wait(RETRY_SECONDS[attempt])
            attempt += 1
            continue
        if digest == file.sha256:
            file.partial.replace(file.blob)
            return
        if digest is not None:
            file.partial.unlink()
            if not before:
                raise Damaged(file.url)
            log.warning("%s: what was kept of an earlier transfer is damaged; fetching it anew", file.url)


def _continue(file: RemoteFile, stop: threading.Event) -> str | None:
    """Append the missing bytes to the partial file. Return the SHA-256 of all of it, "" if it gets too long, or None
    if stopped.
    """
    with file.partial.open("ab") as out:
        have = os.fstat(out.fileno()).st_size
        if have > file.size:
            out.truncate(0)
            have = 0
        with file.partial.open("rb") as begun:
            digest: Any = hashlib.file_digest(begun, "sha256") if have else hashlib.sha256()
        if have < file.size:
            headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
            if have:
                headers["Range"] = f"bytes={have}-"
            with get_session().stream("GET", file.url, headers=headers, timeout=TIMEOUT) as response:
                if response.is_error:
                    response.read()  # the body has the reason
                hf_raise_for_status(response)
                if have and response.status_code != httpx.codes.PARTIAL_CONTENT:
                    out.truncate(0)
                    have, digest = 0, hashlib.sha256()
                for chunk in response.iter_raw():
                    if stop.is_set():
                        return None
                    out.write(chunk)
                    out.flush()  # saved even if the process is killed now, and counted by the progress display
                    digest.update(chunk)
                    have += len(chunk)
                    if have > file.size:
                        return ""  # more bytes than the hub lists: a wrong file
        if have < file.size:
            raise httpx.RemoteProtocolError(f"The transfer ended after {have} of {file.size} bytes.")
        out.flush()
        os.fsync(out.fileno())
    return str(digest.hexdigest())


def _may_pass(error: Exception) -> bool:
    """Return whether a retry may succeed: after a connection error, or where the hub is overloaded or failing."""
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        return status >= 500 or status in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS)
    return not isinstance(error, httpx.UnsupportedProtocol | httpx.ProxyError)
