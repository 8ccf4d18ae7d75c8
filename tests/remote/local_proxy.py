"""A proxy on loopback: it passes requests on, or refuses them, and remembers what it was asked."""

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class LocalProxy:
    """Listens in a thread of its own, while its context is entered.

    Args:
        refusal: the status line with which it refuses everything; "" passes it on.

    Attributes:
        asked: the first line of each request.
        heard: all bytes that came from clients.
    """

    def __init__(self, refusal: str = "") -> None:
        self.asked: list[str] = []
        self.heard = bytearray()
        self.port = 0
        self._refusal = refusal
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = starting.result(timeout=30)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heard += head
            first, _, rest = head.partition(b"\r\n")
            self.asked.append(first.decode())
            method, target, version = first.decode().split(" ")
            if self._refusal:
                writer.write(f"HTTP/1.1 {self._refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
            elif method == "CONNECT":
                host, _, port = target.partition(":")
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await self._tunnel(host, int(port), b"", reader, writer)
            else:  # the whole address instead of its path; the connection is then the client's alone
                parts = urlsplit(target)
                line = f"{method} {parts.path} {version}\r\n".encode()
                await self._tunnel(parts.hostname or "", parts.port or 80, line + rest, reader, writer)
        writer.close()

    async def _tunnel(
        self, host: str, port: int, begin: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        behind, sink = await asyncio.open_connection(host, port)
        sink.write(begin)

        async def carry(source: asyncio.StreamReader, to: asyncio.StreamWriter, heard: bytearray) -> None:
            while part := await source.read(1 << 16):
                heard += part
                to.write(part)
                await to.drain()
            to.close()

        await asyncio.gather(carry(reader, sink, self.heard), carry(behind, writer, bytearray()))
