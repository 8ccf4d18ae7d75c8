"""A hub on this machine: what huggingface_hub asks of one, over HTTP, with the faults of real ones."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.waiting import patience

LARGE = (".safetensors", ".bin", ".gguf", ".pth")
CHUNK = 1 << 14


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class Repository:
    """A model repository. With a token it is private: whoever does not bring the token is told that there is none.

    Args:
        gated: whoever does not bring the token gets the list of files, but no file.
    """

    files: dict[str, bytes]
    token: str | None = None
    gated: bool = False

    @property
    def commit(self) -> str:
        content = b"".join(name.encode() + data for name, data in sorted(self.files.items()))
        return hashlib.sha1(content).hexdigest()


@dataclass
class Faults:
    """What goes wrong, until it is set otherwise.

    Args:
        status: answer everything with this, for the reason `message`, and with `headers`.
        page: answer everything with this page, as the login of a hotel does.
        break_after: of a large file, send this many bytes and close the connection; once an entry.
        hold_after: of a large file, send this many bytes, then nothing until `release` is set.
        ignore_range: send large files from the beginning, whatever is asked.
        garble: send large files with this byte instead of their first.
        headers: say this about every file, instead of what is so.
        sha: list this as the commit.
        listed: list this about every file, instead of what is so; "lfs" is an object of its own.
        surplus: send so many bytes more of a file than its size, and announce no length.
        compressed: send small files and errors compressed, with that many zeros behind their content.
    """

    status: int | None = None
    message: str | None = None
    break_after: list[int] = field(default_factory=list)
    hold_after: int | None = None
    release: threading.Event = field(default_factory=threading.Event)
    ignore_range: bool = False
    garble: bytes | None = None
    page: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    sha: str | None = None
    listed: dict[str, Any] = field(default_factory=dict)
    surplus: int = 0
    compressed: int = 0


class HubServer(ThreadingHTTPServer):
    """Serves repositories, and notes what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}
        self.versions: dict[tuple[str, str], Repository] = {}
        self.faults = Faults()
        self.log: list[Asked] = []

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, name: str, files: Mapping[str, bytes], token: str | None = None, gated: bool = False) -> Repository:
        """Have a repository of these files; earlier versions stay, under their commits."""
        repository = self.repositories[name] = Repository(dict(files), token, gated)
        self.versions[name, repository.commit] = repository
        return repository

    def environment(self, home: object) -> dict[str, str]:
        """What a process has to run with to use this hub, and a home of its own."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "*",
        }

    def fetched(self, ending: str = "") -> list[str]:
        """The names of the files whose content was asked for, in order."""
        paths = [asked.path for asked in self.log if asked.method == "GET" and "/resolve/" in asked.path]
        return [path.rsplit("/", 1)[1] for path in paths if path.endswith(ending)]

    def ranges(self, ending: str = ".safetensors") -> list[str | None]:
        """The ranges that were asked for of files that are kept elsewhere."""
        return [asked.range for asked in self.log if asked.path.startswith("/cdn/") and asked.path.endswith(ending)]


@contextmanager
def running_hub() -> Iterator[HubServer]:
    """A hub that runs for as long as the context does."""
    hub = HubServer()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.faults.release.set()
        hub.shutdown()
        hub.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        path = unquote(urlsplit(self.path).path)
        if path.startswith(("/api/models/", "/cdn/")) or "/resolve/" in path:  # huggingface_hub asks other things, too
            self.server.log.append(Asked(self.command, path, self.headers.get("Range"), token))
        faults = self.server.faults
        if faults.status is not None:
            about = {"X-Error-Message": faults.message} if faults.message else {}
            self._send_compressed(faults.status, b"", {**about, **faults.headers})
        elif faults.page is not None:
            self._send(200, faults.page)
        elif path.startswith("/api/models/"):
            self._list("/".join(path.split("/")[3:5]), token)
        elif path.startswith("/cdn/"):
            _, _, owner, name, file = path.split("/", 4)
            self._send_large(self.server.repositories[f"{owner}/{name}"].files[file])
        elif path.count("/") >= 5:
            self._file(path, token)
        else:
            self._send(404, b"")

    def _list(self, name: str, token: str | None) -> None:
        repository = self.server.repositories.get(name)
        if repository is None or (repository.token not in (None, token) and not repository.gated):
            self._send(401, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
            return
        siblings = [_listed(file, data, self.server.faults.listed) for file, data in repository.files.items()]
        sha = self.server.faults.sha or repository.commit
        answer = {"_id": "1", "id": name, "sha": sha, "private": False, "tags": [], "siblings": siblings}
        self._send(200, json.dumps({**answer, "downloads": 0, "likes": 0}).encode())

    def _file(self, path: str, token: str | None) -> None:
        _, owner, name, _, revision, file = path.split("/", 5)
        newest = self.server.repositories.get(f"{owner}/{name}")
        repository = self.server.versions.get((f"{owner}/{name}", revision), newest)
        if repository is None:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif repository.token not in (None, token):
            self._send(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": f"Access to {name} is restricted."})
        elif file not in repository.files:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": repository.commit})
        else:
            data = repository.files[file]
            about = {"X-Repo-Commit": repository.commit, "ETag": f'"{_etag(file, data)}"'}
            if file.endswith(LARGE):  # as the hub does it: large files are elsewhere, under another name of the host
                about["X-Linked-Etag"], about["X-Linked-Size"] = about.pop("ETag"), str(len(data))
                about["Location"] = f"http://localhost:{self.server.server_port}/cdn/{owner}/{name}/{file}"
                self._send(302, b"", {**about, **self.server.faults.headers})
            else:
                self._send_small(data, {**about, **self.server.faults.headers})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_small(self, data: bytes, about: dict[str, str]) -> None:
        faults = self.server.faults
        if faults.surplus and self.command == "GET":
            self._send_surplus(data, about)
        else:
            self._send_compressed(200, data, about)

    def _send_compressed(self, status: int, data: bytes, about: dict[str, str]) -> None:
        """Send with the zeros that are asked for, if they are."""
        zeros = self.server.faults.compressed
        if zeros and self.command == "GET":
            data, about = gzip.compress(data + bytes(zeros)), {**about, "Content-Encoding": "gzip"}
        self._send(status, data, about)

    def _send_surplus(self, data: bytes, about: Mapping[str, str]) -> None:
        """Send more than there is, and end by closing the connection."""
        self.send_response(200)
        for key, value in about.items():
            self.send_header(key, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self._write(data + bytes(self.server.faults.surplus))

    def _send_large(self, data: bytes) -> None:
        faults = self.server.faults
        if faults.surplus:
            self._send_surplus(data, {})
            return
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and not faults.ignore_range else 0
        body = data[start:] if faults.garble is None else (faults.garble + data[1:])[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        breaks = faults.break_after.pop(0) if faults.break_after else None
        self.close_connection = breaks is not None
        body = body[:breaks]
        if faults.hold_after is not None and not faults.release.is_set():
            self._write(body[: faults.hold_after])
            faults.release.wait(patience())
            body = body[faults.hold_after :]
        self._write(body)

    def _write(self, body: bytes) -> None:
        try:
            for start in range(0, len(body), CHUNK):
                self.wfile.write(body[start : start + CHUNK])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


def _etag(file: str, data: bytes) -> str:
    if file.endswith(LARGE):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _listed(file: str, data: bytes, instead: Mapping[str, Any]) -> dict[str, Any]:
    entry = {"rfilename": file, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
    if file.endswith(LARGE):
        entry["lfs"] = {"sha256": _etag(file, data), "size": len(data), "pointerSize": 134, **instead.get("lfs", {})}
    return {**entry, **{key: value for key, value in instead.items() if key != "lfs"}}
