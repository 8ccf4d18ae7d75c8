"""An app without a screen, and a browser without a window: they speak as Textual's web driver and its page do."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psutil
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType
from aiohttp.test_utils import TestServer

from ladechat.serve.access import Access
from ladechat.serve.server import Served, Server
from tests.terminal.tmux import still_runs
from tests.waiting import patience, until

APP = """
import os, sys
def draw(text):
    payload = text.encode()
    os.write(1, b"D" + len(payload).to_bytes(4, "big") + payload)
os.write(1, b"a line before\\n__GANGLION__\\n")
draw(f"{os.getpid()} {os.environ['COLUMNS']}x{os.environ['ROWS']} {os.environ['TERM']}")
while kind := sys.stdin.buffer.read(1):
    payload = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
    draw(kind.decode() + payload.decode())
"""
"""Draws its number and the size of its screen, and then what it is sent. Ends with its input."""


def program(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


class Site:
    """A server at a free port, and the browser's side."""

    def __init__(self, access: Access, server: TestServer, session: ClientSession) -> None:
        self.access = access
        self.host = f"127.0.0.1:{server.port}"
        self.session = session

    def url(self, path: str = "/", token: str | None = None) -> str:
        return f"http://{self.host}/{self.access.token if token is None else token}{path}"

    async def get(self, url: str, **headers: str) -> tuple[int, str, Any]:
        """Status, text and headers."""
        async with self.session.get(url, headers=headers) as response:
            return response.status, await response.text(), response.headers

    async def open_tab(self, query: str = "?width=100&height=30") -> ClientWebSocketResponse:
        return await self.session.ws_connect(self.url("/ws") + query, headers={"Origin": f"http://{self.host}"})


@asynccontextmanager
async def serving(command: Sequence[str] = (), tabs: int = 4) -> AsyncIterator[Site]:
    access = Access("127.0.0.1")
    server = TestServer(Server(Served(command or program(APP), access, tabs)).application())
    async with server, ClientSession() as session:
        yield Site(access, server, session)


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    return [process.pid for process in psutil.Process(parent).children()]


async def until_gone(*processes: int) -> None:
    """Wait for the end of processes, which nothing announces."""
    await until(lambda: not any(map(still_runs, processes)))


async def drawn(tab: ClientWebSocketResponse) -> str:
    """The next thing that is drawn; what the end of the session says, if that is next."""
    message = await asyncio.wait_for(tab.receive(), patience())
    return message.data.decode() if message.type is WSMsgType.BINARY else "the end"
