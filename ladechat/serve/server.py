"""The web server: one page, the websocket of its terminal, and the files of that terminal."""

import asyncio
import contextlib
import json
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from string import Template

import textual_serve
from aiohttp import WSMsgType, web

from ladechat.serve.access import Access
from ladechat.serve.tab import SECONDS_TO_END, Tab
from ladechat.terminal import leave_on_signals, say

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SECONDS_FOR_A_PLACE = 10.0
"""How long a tab waits for another to end: when a page is reloaded, its old tab ends meanwhile."""
SECONDS_TO_CLOSE = 1.0
"""How long the server waits for a browser when it closes the websocket."""
HEARTBEAT_SECONDS = 15.0
"""The interval between two pings of a browser; one that does not answer is disconnected."""
LONGEST_MESSAGE = 16 << 20
"""In bytes; enough for a pasted text of the maximum length of a question."""
NOT_STARTED = "The app did not start; the terminal of ladechat serve says why.\r\n"
USUAL_SIZE, MOST_SIZE = (80, 24), (1000, 500)


@dataclass(frozen=True)
class Served:
    """The configuration of a server.

    Attributes:
        command: the command line of the app, of which each tab runs one process.
        access: who may open a tab.
        tabs: the most that may be open.
    """

    command: Sequence[str]
    access: Access
    tabs: int


class Server:
    """The request handlers, and the open tabs."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._places = asyncio.Semaphore(served.tabs)
        self._open: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        """Return the application for aiohttp."""
        application = web.Application(middlewares=[self._guard])
        root = f"/{self._served.access.token}"
        application.add_routes(
            [
                web.get(root, self._page),
                web.get(f"{root}/", self._page),
                web.get(f"{root}/page.css", partial(_own_file, "page.css", "text/css")),
                web.get(f"{root}/page.js", partial(_own_file, "page.js", "text/javascript")),
                web.get(f"{root}/ws", self._terminal),
                web.static(f"{root}/static", str(files(textual_serve) / "static")),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        application.on_shutdown.append(self._close)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check access before anything else, even before whether there is such a page."""
        websocket = "upgrade" in request.headers.get("Connection", "").lower()
        origin = request.headers.get("Origin")
        refusal = self._served.access.refusal(request.path, request.host, origin, websocket=websocket)
        if refusal is not None:
            raise web.HTTPForbidden(text=f"{refusal}\n")
        return await handler(request)

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._served.access.headers(request.host))

    async def _page(self, request: web.Request) -> web.Response:
        root = f"/{self._served.access.token}"
        text = Template(_own_text("page.html")).substitute(root=root, socket=f"ws://{request.host}{root}/ws")
        return web.Response(text=text, content_type="text/html")

    async def _terminal(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app for a tab that was opened, as soon as there is a place."""
        browser = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, timeout=SECONDS_TO_CLOSE, max_msg_size=LONGEST_MESSAGE
        )
        await browser.prepare(request)
        self._open.add(browser)
        try:
            if await self._has_place():
                try:
                    await self._show(browser, _size(request.query.get("width"), request.query.get("height")))
                finally:
                    self._places.release()
            else:
                await _end_with(browser, self._no_place())
        finally:
            self._open.discard(browser)
        return browser

    async def _has_place(self) -> bool:
        try:
            async with asyncio.timeout(SECONDS_FOR_A_PLACE):
                return await self._places.acquire()
        except TimeoutError:
            return False

    def _no_place(self) -> str:
        most = self._served.tabs
        inside = "One tab is open" if most == 1 else f"{most} tabs are open"
        return (
            f"{inside}, and no more fit: each has a model in memory.\r\n\r\n"
            "Close one and begin another session here, or start ladechat serve with --tabs.\r\n"
        )

    async def _show(self, browser: web.WebSocketResponse, size: tuple[int, int]) -> None:
        try:
            tab = await Tab.start(self._served.command, *size)
        except OSError as error:  # out of files, processes or memory
            say(f"The app of a tab cannot be started: {error.strerror or error}.")
            await _end_with(browser, NOT_STARTED)
            return
        drawing = asyncio.create_task(_draw(tab, browser))
        try:
            async for message in browser:
                if message.type == WSMsgType.TEXT:
                    await pass_on(message.data, tab)
        finally:
            drawing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await drawing
            await tab.end()

    async def _close(self, _application: web.Application) -> None:
        """Close all websockets when the server ends, and with each its app."""
        await asyncio.gather(*(browser.close(message=b"The server has ended.") for browser in self._open))


def _own_text(name: str) -> str:
    return (files("ladechat.serve") / name).read_text(encoding="utf-8")


async def _own_file(name: str, kind: str, _request: web.Request) -> web.Response:
    return web.Response(text=_own_text(name), content_type=kind)


async def _end_with(browser: web.WebSocketResponse, text: str) -> None:
    """Show a text instead of an app, and end the session."""
    await browser.send_bytes(text.encode())
    await browser.close()


async def _draw(tab: Tab, browser: web.WebSocketResponse) -> None:
    """Send what the app draws; when it has ended, close the websocket."""
    seen = False
    with contextlib.suppress(ConnectionError):
        async for data in tab.drawn():
            seen = True
            await browser.send_bytes(data)
        if not seen:
            await _end_with(browser, NOT_STARTED)
        await browser.close()


async def pass_on(message: str, tab: Tab) -> None:
    """Pass a message of the page on to the app: `["stdin", text]`, `["resize", {…}]`, `["focus"]` or `["blur"]`.

    Other messages are ignored.
    """
    try:
        match json.loads(message):
            case ["stdin", str(text)]:
                await tab.type(text)
            case ["resize", {"width": width, "height": height}]:
                columns, rows = _size(width, height)
                await tab.tell("resize", width=columns, height=rows)
            case ["focus" | "blur" as kind, *_]:
                await tab.tell(kind)
    except (ValueError, RecursionError):  # no JSON, numbers of thousands of digits, brackets without end
        return


def _size(width: object, height: object) -> tuple[int, int]:
    """Return the columns and rows that a browser requests, within the limits of an app."""
    columns, rows = (
        min(int(str(given)), most) if re.fullmatch("[1-9][0-9]{0,5}", str(given)) else usual
        for given, usual, most in zip((width, height), USUAL_SIZE, MOST_SIZE, strict=True)
    )
    return columns, rows


async def run(served: Served, listening: socket.socket, started: Callable[[], None]) -> int:
    """Serve until Ctrl+C or a signal; then end all apps and return the exit code. `started` is called when pages can be
    opened.
    """
    left: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def leave(code: int) -> None:
        if not left.done():
            left.set_result(code)

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, leave, 0)
    leave_on_signals(leave)
    # No access log: it would repeat the token.
    runner = web.AppRunner(Server(served).application(), access_log=None, shutdown_timeout=SECONDS_TO_END + 1)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    started()
    try:
        return await left
    finally:
        await runner.cleanup()
