"""The server of pages: nothing without the token, nothing from outside, an app for each tab, and an end to each."""

import asyncio
import errno
import json
import os
import re
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiohttp import ClientWebSocketResponse, WSServerHandshakeError
from hypothesis import given, strategies as st

from ladechat.serve import server, tab
from tests.serve.fake_app import APP, drawn, program, serving, until_gone
from tests.terminal.tmux import still_runs

SITES = ("/", "", "/page.js", "/page.css", "/static/js/textual.js", "/static/css/xterm.css")


async def process_of(browser: ClientWebSocketResponse) -> int:
    return int((await drawn(browser)).split()[0])


async def test_every_page_needs_the_token_and_says_no_more_without_it() -> None:
    async with serving() as site:
        for path in SITES:
            status, _, headers = await site.get(site.url(path))
            assert status == 200
            policy = headers["Content-Security-Policy"]
            assert (
                "default-src 'none'" in policy
                and f"connect-src 'self' ws://{site.host};" in policy
                and "allow-popups" not in policy
            )
            assert headers["Referrer-Policy"] == "no-referrer"
        for path in (*SITES, "/ws", "/no-such-page"):
            status, text, headers = await site.get(site.url(path, token="guessed"))
            assert status == 403 and "use the whole address" in text
            assert headers["Referrer-Policy"] == "no-referrer"
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert (await site.get(site.url(), **headers))[0] == 403
        for token, origin in (("guessed", f"http://{site.host}"), (None, "http://evil.example"), (None, "")):
            with pytest.raises(WSServerHandshakeError, match="403"):
                await site.session.ws_connect(site.url("/ws", token=token), headers={"Origin": origin})


async def test_what_the_page_names_is_on_the_server_itself() -> None:
    async with serving() as site:
        _, page, _ = await site.get(site.url())
        _, style, _ = await site.get(site.url("/page.css"))
        own = f"/{site.access.token}/"
        for address in re.findall(r'(?:href|src)="(.*?)"', page):
            assert address == "data:," or (
                address.startswith(own) and (await site.get(f"http://{site.host}{address}"))[0] == 200
            )
        for address in re.findall(r'url\("(.*?)"\)', style):
            async with site.session.get(site.url(f"/{address}")) as response:
                assert response.status == 200 and (await response.read())[:4] == b"\0\1\0\0"  # TrueType
        assert re.findall(r"\bwss?://[^\"]+|https?://[^\"]+", page + style) == [f"ws://{site.host}{own}ws"]


async def test_a_tab_has_an_app_of_the_size_of_its_window_that_gets_what_is_typed() -> None:
    async with serving() as site:
        browser = await site.open_tab("?width=123&height=45")
        process, *about = (await drawn(browser)).split()
        assert about == ["123x45", "xterm-256color"]
        await browser.send_json(["stdin", "Grüße\x1b[A"])
        assert await drawn(browser) == "DGrüße\x1b[A"
        await browser.send_json(["resize", {"width": 99999, "height": 20}])
        told = await drawn(browser)
        assert json.loads(told.removeprefix("M")) == {"type": "resize", "width": 1000, "height": 20}
        await browser.send_json(["focus"])
        assert await drawn(browser) == 'M{"type": "focus"}'
        await browser.close()
        await until_gone(int(process))


NO_MESSAGES = [
    "", "{", "[" * 100_000, "9" * 10_000, "null", '["stdin"]', '["stdin", 5]', '["quit"]', '["resize", 3]',
]  # fmt: skip


async def test_what_is_no_message_of_a_page_is_left_out() -> None:
    async with serving() as site:
        browser = await site.open_tab("?width=-1&height=many")
        assert "80x24" in await drawn(browser)
        for said in NO_MESSAGES:
            await browser.send_str(said)
        await browser.send_bytes(b"stdin")
        await browser.send_json(["stdin", "still here"])
        assert await drawn(browser) == "Dstill here"


class Deaf:
    """What an app is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def type(self, text: str) -> None:
        self.told.append(text)

    async def tell(self, kind: str, **fields: int) -> None:
        self.told.append((kind, fields))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["width", "height", "x"]), inner),
)


@given(
    message=st.text()
    | JSON.map(json.dumps)
    | st.tuples(st.sampled_from(["stdin", "resize", "blur"]), JSON).map(json.dumps)
)
def test_an_app_is_told_nothing_that_its_driver_does_not_know(message: str) -> None:
    app = Deaf()
    asyncio.run(server.pass_on(message, app))  # type: ignore[arg-type]
    for told in app.told:
        match told:
            case str() | ("blur", {}):
                pass
            case ("resize", {"width": width, "height": height}):
                assert 1 <= width <= 1000 and 1 <= height <= 500
            case _:
                raise AssertionError(told)


async def test_no_more_tabs_than_there_are_places_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SECONDS_FOR_A_PLACE", 0.05)
    async with serving(tabs=1) as site:
        first = await site.open_tab()
        process = await process_of(first)
        second = await site.open_tab()
        said = await drawn(second)
        assert said.startswith("One tab is open, and no more fit") and "--tabs" in said
        assert await drawn(second) == "the end"
        assert still_runs(process)


async def test_a_page_that_is_loaded_again_waits_for_its_own_place() -> None:
    async with serving(tabs=1) as site:
        first = await site.open_tab()
        process = await process_of(first)
        closing = asyncio.create_task(first.close())
        second = await site.open_tab()
        assert await process_of(second) != process
        await closing


async def test_an_app_that_ends_ends_its_page() -> None:
    async with serving(program(r"import os; os.write(1, b'__GANGLION__\nD\0\0\0\3bye')")) as site:
        browser = await site.open_tab()
        assert [await drawn(browser), await drawn(browser)] == ["bye", "the end"]


async def test_an_app_that_does_not_start_is_told_in_a_sentence() -> None:
    async with serving(program("raise SystemExit(1)")) as site:
        browser = await site.open_tab()
        assert (await drawn(browser)).startswith("The app did not start")
        assert await drawn(browser) == "the end"


@pytest.mark.parametrize(
    "stubborn", ["while True: time.sleep(9)", "while True: draw('x' * 100_000)"], ids=["deaf", "full pipe"]
)
async def test_an_app_that_does_not_end_is_ended(stubborn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab, "SECONDS_TO_END", 0.2)
    code = APP.partition("while kind")[0] + f"import time\n{stubborn}"
    async with serving(program(code)) as site:
        browser = await site.open_tab()
        process = await process_of(browser)
        await browser.close()
        await until_gone(process)


async def test_the_end_of_the_server_ends_every_app() -> None:
    async with serving() as site:
        browsers = [await site.open_tab() for _ in range(3)]
        processes = [await process_of(browser) for browser in browsers]
        goodbyes = [asyncio.create_task(browser.receive()) for browser in browsers]
    await asyncio.gather(until_gone(*processes), *goodbyes)


async def test_why_an_app_cannot_be_started_is_said_in_both_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the place is free for another tab."""
    async with serving(tabs=1) as site:
        with monkeypatch.context() as patched:
            error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            patched.setattr("asyncio.create_subprocess_exec", AsyncMock(side_effect=error))
            browser = await site.open_tab()
            assert "The app did not start; the terminal of ladechat serve says why." in await drawn(browser)
            assert await drawn(browser) == "the end"
        assert capsys.readouterr().err == "ladechat: The app of a tab cannot be started: Too many open files.\n"
        assert "80x24" in await drawn(await site.open_tab("?width=80&height=24"))
