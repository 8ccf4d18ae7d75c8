"""The command line of `ladechat serve`, and the whole program: what it says, what it refuses, what it leaves behind."""

import asyncio
import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse
from typer.testing import CliRunner

from ladechat.serve.access import Access
from ladechat.serve.commands import address, explained
from ladechat.shell import cli
from tests.remote.scripted_server import ScriptedServer, vllm_stream
from tests.serve.fake_app import children, until_gone
from tests.session.streams import GOLDEN
from tests.waiting import patience

RECORDING = str(GOLDEN[-1])


# --- what is refused, and what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "65536"], "--port"),
        (["--tabs", "0"], "--tabs"),
        (["--model", "./no-such-folder"], "no folder ./no-such-folder"),
        (["--host", "no such host"], "no such host"),
        (["no-such-recording"], "no-such-recording cannot be read"),
        ([__file__], "first line"),
        ([RECORDING, "--decoder", "suffix"], "--decoder is for a chat"),
        ([RECORDING, "--no-save"], "--no-save is for a chat"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_served_is_refused_in_a_sentence(arguments: list[str], named: str) -> None:
    result = CliRunner().invoke(cli.app, ["serve", *arguments])
    assert result.exit_code == 2 and named in result.stderr, result.output
    assert result.stderr.count("\n") == 1 and not result.stdout


def test_a_port_that_is_taken_is_refused_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(cli.app, ["serve", RECORDING, "--port", port])
    assert result.exit_code == 2 and f"Port {port} of '127.0.0.1'" in result.stderr and "in use" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_its_packages_serve_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli.app, ["serve"])
    assert result.exit_code == 2 and "-m pip install 'aiohttp" in result.stderr


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]"), ("0.0.0.0", "workstation")],
)
def test_the_address_can_be_opened_as_it_stands(host: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "workstation")
    access = Access(host)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert address(access, listening) == f"http://{shown}:{port}/{access.token}/"
        says = " ".join(explained(access, listening, 4))
    assert ("unencrypted" in says) == (host == "0.0.0.0")
    assert access.token not in says


# --- the whole program ------------------------------------------------------------------------------------------------


class Program:
    """`ladechat serve` as a process, and the address that it printed."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    def open_tab(self, session: ClientSession) -> contextlib.AbstractAsyncContextManager[ClientWebSocketResponse]:
        host = self.url.split("/")[2]
        return session.ws_connect(f"{self.url}ws?width=100&height=30", headers={"Origin": f"http://{host}"})

    def apps(self) -> list[int]:
        """The processes of its tabs."""
        return children(self.process.pid)


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ladechat", "serve", "--port", "0", *arguments,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), patience())
        yield Program(process, line.decode().strip())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until_drawn(browser: ClientWebSocketResponse, text: bytes) -> None:
    seen = b""
    async with asyncio.timeout(patience()):
        while text not in seen:
            seen += await browser.receive_bytes()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), pytest.param(signal.SIGINT, 0, marks=pytest.mark.full)]
)
async def test_a_recording_is_shown_in_a_tab_until_the_server_is_told_to_end(number: signal.Signals, code: int) -> None:
    async with program(RECORDING) as served, ClientSession() as session:
        async with served.open_tab(session) as browser:
            await until_drawn(browser, b"Leave")
            apps = served.apps()
            assert len(apps) == 1
            served.process.send_signal(number)
            while not browser.closed:
                await browser.receive()
        output, errors = await asyncio.wait_for(served.process.communicate(), patience())
        assert served.process.returncode == code
        assert (output, errors.count(b"\n")) == (b"", 2), errors
        assert served.url.split("/")[3].encode() not in errors
        await until_gone(*apps)


async def test_in_a_tab_a_server_of_a_model_is_asked() -> None:
    with ScriptedServer(
        None, vllm_stream([(1, "The")], [(2, " pool"), (3, " keeps")], accepted=[1], drafted=5)
    ) as server:
        async with program("--server", server.url, "--no-save") as served, ClientSession() as session:
            async with served.open_tab(session) as browser:
                await until_drawn(browser, b"ready")
                await browser.send_json(["stdin", "Hi?\r"])
                await until_drawn(browser, b"2 passes")
            served.process.terminate()
            _, errors = await asyncio.wait_for(served.process.communicate(), patience())
        assert b"loads the model" not in errors
        assert [chat["messages"][-1]["content"] for chat in server.chats] == ["Hi?"]


@pytest.mark.full
async def test_no_app_and_no_engine_outlive_a_server_that_is_killed() -> None:
    async with program() as served, ClientSession() as session, served.open_tab(session) as browser:
        await until_drawn(browser, b"ready")
        apps = served.apps()
        engines = [engine for app in apps for engine in children(app)]
        assert len(engines) == 1
        os.kill(served.process.pid, signal.SIGKILL)
        await until_gone(*apps, *engines)
