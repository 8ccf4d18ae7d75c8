"""A server without a model: it answers as a script says, well or badly, and counts who is connected."""

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

EVENTS = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json"}


class Hold:
    """A place in an answer where the server waits for `ScriptedServer.release`."""


class Cut:
    """A place where it closes the connection."""


HOLD, CUT = Hold(), Cut()
Part = bytes | Hold | Cut


@dataclass(frozen=True)
class Reply:
    """An answer: its status and headers, and its body in the parts in which it is sent."""

    parts: Sequence[Part] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(EVENTS))


@dataclass(frozen=True)
class Request:
    """What it was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def event(value: Any) -> bytes:
    """An event of a stream."""
    return f"data: {json.dumps(value)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def page(value: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON page."""
    return Reply([json.dumps(value).encode()], status, {**JSON, **headers})


def chunk(text: str = "", finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of an OpenAI stream."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return {"model": "tiny", "choices": [choice], **more}


def openai_stream(*texts: str, finish: str = "stop", **usage: int) -> list[bytes]:
    """The stream of a server with the OpenAI API."""
    last = {"model": "tiny", "choices": [], "usage": usage or {"prompt_tokens": 9, "completion_tokens": len(texts)}}
    return [*(event(chunk(text)) for text in texts), event(chunk(finish=finish)), event(last), DONE]


def vllm_chunk(tokens: Iterable[tuple[int, str]], **delta: str) -> dict[str, Any]:
    """A chunk of vLLM, with its tokens."""
    tokens = list(tokens)
    logprobs = [{"token": text, "logprob": -0.5, "bytes": list(text.encode())} for _, text in tokens]
    made = chunk("".join(text for _, text in tokens))
    made["choices"][0] |= {"token_ids": [one for one, _ in tokens], "logprobs": {"content": logprobs}}
    if delta:
        made["choices"][0]["delta"] = delta
    return made


def vllm_stream(
    *chunks: Sequence[tuple[int, str]], accepted: Sequence[int] | None = None, drafted: int = 0, finish: str = "stop"
) -> list[bytes]:
    """The stream of a vLLM server; with the figures of speculative decoding, if it says which drafts were accepted."""
    first = {**chunk(), "prompt_token_ids": [1, 2, 3]}
    tokens = sum(map(len, chunks))
    last: dict[str, Any] = {"model": "tiny", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": tokens}}
    if accepted is not None:
        speculative = {
            "per_step_accepted": list(accepted),
            "num_draft_tokens": drafted,
            "num_accepted_draft_tokens": sum(accepted),
        }
        last["metrics"] = {"speculative_decoding": speculative}
    return [event(first), *(event(vllm_chunk(one)) for one in chunks), event(chunk(finish=finish)), event(last), DONE]


def pages_of(owner: str, *models: str, **more: Any) -> dict[str, Reply]:
    """What a server says of itself, by path."""
    listed = [{"id": name, "object": "model", "owned_by": owner, **more} for name in models]
    return {"/v1/models": page({"object": "list", "data": listed})}


VLLM = {**pages_of("vllm", "tiny", max_model_len=1024), "/version": page({"version": "0.32.0"})}
OPENAI = pages_of("somebody", "tiny")
CHAT = "/v1/chat/completions"


class ScriptedServer:
    """Listens on loopback in a thread of its own, while its context is entered.

    Args:
        pages: what it answers, by path. A path that is not there is answered by 404.
        replies: the answers to the chat requests, in turn; the last one again and again.
        tls: speaks https with this certificate; None: http.

    Attributes:
        requests: all that it was asked.
        running: how many chat requests have a connection now.
    """

    def __init__(
        self,
        pages: dict[str, Reply] | None = None,
        *replies: Reply | Sequence[Part],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.pages = dict(VLLM if pages is None else pages)
        self.replies = deque(one if isinstance(one, Reply) else Reply(one) for one in replies)
        self.requests: list[Request] = []
        self.running = 0
        self.port = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/v1"

    @property
    def chats(self) -> list[Any]:
        """The bodies of the chat requests."""
        return [one.body for one in self.requests if one.method == "POST" and one.path in (CHAT, "/generate")]

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Listen, at the port that it had before if it was stopped."""
        self._run(self._listen())

    def stop(self) -> None:
        """Stop listening, and break off all connections."""
        self._run(self._close())

    def release(self) -> None:
        """Send on after a `HOLD`."""
        self._loop.call_soon_threadsafe(self._released.set)

    def _run(self, work: Any) -> Any:
        done: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(timeout=30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 24, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (request := await self._request(reader)) is not None:
                self.requests.append(request)
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    @staticmethod
    async def _request(reader: asyncio.StreamReader) -> Request | None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Request(method, path, headers, json.loads(body) if body else None)

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if request.path in self.pages:
            await self._send(self.pages[request.path], writer)
            return
        if request.method != "POST" or not self.replies:
            await self._send(page({"detail": "Not Found"}, 404), writer)
            return
        reply = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        self.running += 1
        gone = asyncio.ensure_future(reader.read(1))
        sending = asyncio.ensure_future(self._send(reply, writer))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.running -= 1
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
        raise ConnectionError("one answer a connection")

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        headers = {**reply.headers, "Transfer-Encoding": "chunked"}
        lines = [f"HTTP/1.1 {reply.status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        for part in reply.parts:
            if isinstance(part, Hold):
                await writer.drain()
                await self._released.wait()
                self._released.clear()
            elif isinstance(part, Cut):
                await writer.drain()
                writer.transport.close()
                return
            elif part:
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


class Endless(Sequence[Part]):
    """A sequence of one part, again and again."""

    def __init__(self, part: bytes) -> None:
        self._part = part

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, place: Any) -> Any:
        return self._part
