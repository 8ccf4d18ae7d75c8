"""Requests to a server, within bounds of time and size. Whatever goes wrong is a `ServerFault`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx

from ladechat.remote.event_lines import EventLines, EventTooLarge
from ladechat.remote.faults import ASK_AGAIN, NotThere, ServerFault, refused, shortened, unreachable
from ladechat.remote.json_values import NotJson, at, count_at, decoded, text_at
from ladechat.remote.key import Key
from ladechat.server_address import ServerAddress

MOST_BYTES = 4 << 20
"""The largest answer that is no stream: a list of models, an error."""
EVENTS = "text/event-stream"
DONE = b"[DONE]"
NO_STREAM = "A program between may be in the way, or the server does not stream."


@dataclass(frozen=True)
class Patience:
    """Seconds until a silent server counts as gone.

    Attributes:
        connecting: until it takes the connection.
        asking: for short questions, such as which models there are.
        first: from the request to the first event of its answer, while it reads a long prompt or has others to serve.
        next: between two events.
    """

    connecting: float = 10.0
    asking: float = 20.0
    first: float = 600.0
    next: float = 90.0


class Connection:
    """Asks one server. It is closed by `close`.

    Attributes:
        model: the name of the model in later faults; "" before one was chosen.

    Raises:
        ServerFault: no connection can be made as the environment wants it.
    """

    def __init__(self, address: ServerAddress, key: Key, patience: Patience | None = None) -> None:
        self.address = address
        self.model = ""
        self._key = key
        self._patience = patience or Patience()
        headers = {"Accept-Encoding": "identity", "User-Agent": "ladechat", **key.headers()}
        timeout = httpx.Timeout(None, connect=self._patience.connecting)
        # A server may close an idle connection in the moment in which the next question is sent on it.
        limits = httpx.Limits(max_keepalive_connections=0)
        try:
            self._client = httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits)
        except (ValueError, ImportError, OSError) as error:  # of a proxy or certificates; it may name a password
            hint = "Look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE."
            what = f"The environment's proxy or certificates cannot be used ({type(error).__name__})."
            raise ServerFault(what, hint, "load_failed") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def fetch(self, url: str, body: dict[str, Any] | None = None) -> Any:
        """Return the JSON at an address, or that answers a body which is posted there.

        Raises:
            NotThere: there is nothing.
            ServerFault: it is no JSON, or the server cannot be asked.
        """
        try:
            async with asyncio.timeout(self._patience.asking), self._opened(url, body) as response:
                content = await _whole(response, self.address)
        except TimeoutError:
            raise self._silent(self._patience.asking) from None
        try:
            return decoded(content)
        except NotJson:
            hint = "Is it the address of an OpenAI-compatible server?"
            raise NotThere(
                f"{self.address.host} answers with something that is no JSON.", hint, "load_failed"
            ) from None

    async def stream(self, url: str, body: dict[str, Any]) -> AsyncGenerator[Any]:
        """Yield the JSON of each event that answers a request. Closing the generator aborts the request.

        Raises:
            ServerFault: the server refuses, breaks off, is silent for too long, or sends what is no stream of events.
        """
        patience = self._patience.first
        async with contextlib.aclosing(self._events(url, body)) as events:
            while True:
                try:
                    async with asyncio.timeout(patience):
                        event = await anext(events, None)
                except TimeoutError:
                    raise self._silent(patience) from None
                if event is None:
                    return
                patience = self._patience.next
                yield self._understood(event)

    async def _events(self, url: str, body: dict[str, Any]) -> AsyncGenerator[bytes]:
        async with self._opened(url, body) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith(EVENTS):
                what = shortened(kind) or "something without a type"
                raise ServerFault(f"{self.address.host} answers with {what}, not with a stream of events.", NO_STREAM)
            lines = EventLines()
            try:
                async for part in response.aiter_raw():
                    for event in lines.feed(part):
                        if event.strip() == DONE:
                            return
                        yield event
            except EventTooLarge:
                raise ServerFault(f"{self.address.host} sent a chunk of the answer that is far too large.") from None
            except (httpx.HTTPError, OSError) as error:
                raise unreachable(error, self.address) from None

    @contextlib.asynccontextmanager
    async def _opened(self, url: str, body: dict[str, Any] | None) -> AsyncIterator[httpx.Response]:
        try:
            request = self._client.build_request("GET" if body is None else "POST", url, json=body)
            response = await self._client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise unreachable(error, self.address) from None
        try:
            if response.status_code != 200:
                raise await self._refused(response)
            yield response
        finally:
            await response.aclose()

    async def _refused(self, response: httpx.Response) -> ServerFault:
        says = ""
        with contextlib.suppress(ServerFault, TimeoutError):
            async with asyncio.timeout(self._patience.asking):
                says = _words(await _whole(response, self.address))
        return refused(
            response.status_code,
            self._key.hide(says),
            response.headers,
            self.address,
            keyed=bool(self._key),
            model=self.model,
        )

    def _understood(self, event: bytes) -> Any:
        """Return the value of an event, in which the key is hidden."""
        try:
            value = decoded(self._key.hide(event.decode()).encode())
        except (NotJson, UnicodeDecodeError):
            hint = f"A program between may have damaged it. {ASK_AGAIN}"
            raise ServerFault(f"{self.address.host} sent a part of the answer that cannot be read.", hint) from None
        if (error := at(value, "error")) is not None:
            code = count_at(error, "code") or 500
            raise refused(code, _message(error), {}, self.address, keyed=bool(self._key), model=self.model)
        return value

    def _silent(self, seconds: float) -> ServerFault:
        return ServerFault(
            f"{self.address.host} has sent nothing for {seconds:g} s.", f"It may be overloaded. {ASK_AGAIN}"
        )


async def _whole(response: httpx.Response, address: ServerAddress) -> bytes:
    """Return all of an answer that is no stream."""
    content = bytearray()
    try:
        async for part in response.aiter_raw():
            content += part
            if len(content) > MOST_BYTES:
                raise ServerFault(f"{address.host} answers with more than {MOST_BYTES >> 20} MiB where a few lines do.")
    except (httpx.HTTPError, OSError) as error:
        raise unreachable(error, address) from None
    return bytes(content)


def _words(content: bytes) -> str:
    """Return what the body of an error says: the message in its JSON, or its text, unless that is a page."""
    try:
        return _message(decoded(content))
    except NotJson:
        text = content.decode(errors="replace").strip()
        return "" if text.startswith("<") else text


def _message(error: Any) -> str:
    if isinstance(error, str):
        return error
    found = next((at(error, *path) for path in _MESSAGES if at(error, *path)), "")
    return found if isinstance(found, str) else text_at(found, "msg") or str(found)


_MESSAGES = (("error", "message"), ("message",), ("error",), ("detail", 0), ("detail",))
"""Where servers put the words of an error."""
