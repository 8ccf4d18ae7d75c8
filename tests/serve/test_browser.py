"""In a real browser: a chat and a recording as `ladechat serve` shows them, and the pages that exports make.

The terminal in the page is drawn on canvases: what is seen there are pixels.
"""

import asyncio
import io
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright
from typer.testing import CliRunner

from ladechat.export.lesson_page import lesson_page
from ladechat.export.race_page import race_page
from ladechat.palette import HUES
from ladechat.shell import cli
from tests.export.test_lesson_page import shown
from tests.export.test_races import measured
from tests.serve.test_command import RECORDING, program

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SIZE = (1280, 800)
DEADLINE_SECONDS = 150
"""Until a picture that must come is given up. Loading torch on a busy machine takes long."""
LEAST_PIXELS = 20
"""Of a hue, that it counts as seen. The strokes of a letter have it in their middle."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        assert not os.environ.get("LADECHAT_TESTS_NEED_CHROMIUM"), "Chromium is missing"
        pytest.skip("needs Chromium: tools/chromium.sh installs it on Debian and Ubuntu")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=options)
        yield browser
        await browser.close()


async def opened(browser: Browser, url: str, asked: set[str], dark: Literal["dark", "light"] = "dark") -> Page:
    """A page; every address that it asks for is added to `asked`."""
    page = await browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=dark)
    page.on("request", lambda request: asked.add(request.url))
    page.on("websocket", lambda socket: asked.add(socket.url))
    await page.goto(url)
    return page


async def hues(page: Page, left: float, right: float) -> set[str]:
    """The hues of steps that are seen in a part of the page, as shares of its width."""
    picture = Image.open(io.BytesIO(await page.screenshot())).convert("RGB")
    part = picture.crop((int(left * SIZE[0]), 0, int(right * SIZE[0]), SIZE[1]))
    counted = {colour: count for count, colour in part.getcolors(SIZE[0] * SIZE[1]) or []}
    seen = {f"#{red:02x}{green:02x}{blue:02x}": n for (red, green, blue), n in counted.items()}  # type: ignore[misc]  # RGB
    return {hue for hue in HUES[True] if seen.get(hue, 0) >= LEAST_PIXELS}


async def until_coloured(page: Page) -> None:
    """Wait for steps in several hues in the conversation, which is on the left, and for one in the panels beside it."""
    for _ in range(DEADLINE_SECONDS * 2):
        if len(await hues(page, 0.0, 0.5)) >= 3 and await hues(page, 0.6, 1.0):
            return
        await asyncio.sleep(0.5)
    raise AssertionError(f"the hues {await hues(page, 0.0, 0.5)} and {await hues(page, 0.6, 1.0)} were seen")


async def test_a_question_typed_in_a_browser_is_answered_in_colours_and_nothing_is_asked_of_another_host() -> None:
    asked: set[str] = set()
    async with program() as served, chromium() as browser:
        page = await opened(browser, served.url, asked)
        await page.wait_for_selector("body.-first-byte", timeout=DEADLINE_SECONDS * 1000)
        assert await hues(page, 0.0, 0.5) == set()
        await page.keyboard.type("What is the n-gram pool?")
        await page.keyboard.press("Enter")
        await until_coloured(page)
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(served.url).netloc}
    assert any(url.startswith("ws://") for url in asked) and any(url.endswith(".ttf") for url in asked)


async def test_a_recording_plays_in_a_browser_and_its_end_is_said() -> None:
    asked: set[str] = set()
    async with program(RECORDING) as served, chromium() as browser:
        page = await opened(browser, served.url, asked)
        await until_coloured(page)
        assert not await page.is_visible("#ended")
        served.process.terminate()
        await page.wait_for_selector("#ended", state="visible")
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(served.url).netloc}


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_an_exported_page_has_the_colours_of_steps_and_asks_for_nothing(
    scheme: Literal["dark", "light"], tmp_path: Path
) -> None:
    target = tmp_path / "talk.html"
    assert CliRunner().invoke(cli.app, ["export", RECORDING, str(target)]).exit_code == 0
    asked: set[str] = set()
    async with chromium() as browser:
        page = await opened(browser, target.as_uri(), asked, scheme)
        colours = await page.evaluate(
            "[...new Set([...document.querySelectorAll('*')].map(one => getComputedStyle(one).color))]"
        )
    expected = {
        f"rgb({', '.join(str(int(hue[at : at + 2], 16)) for at in (1, 3, 5))})" for hue in HUES[scheme == "dark"]
    }
    assert len(expected & set(colours)) >= 3
    assert asked == {target.as_uri()}


async def playing(browser: Browser, page_file: Path, faults: list[str]) -> Page:
    """A page that plays, and what its script complains about."""
    page = await browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="dark")
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    await page.goto(page_file.as_uri())
    await page.wait_for_selector("html.live")
    return page


@pytest.fixture
def pages_that_play(tmp_path: Path) -> Path:
    """A folder with a race and the lessons."""
    (tmp_path / "race.html").write_text(race_page(measured()), encoding="utf-8")
    (tmp_path / "learn.html").write_text(lesson_page(shown()), encoding="utf-8")
    return tmp_path


async def test_the_page_of_a_race_plays_to_its_end_and_goes_pass_by_pass_on_both_clocks(pages_that_play: Path) -> None:
    race, faults = pages_that_play / "race.html", list[str]()
    async with chromium() as browser:
        page = await playing(browser, race, faults)
        await page.wait_for_selector(".conclusions:not(.unwritten)", timeout=DEADLINE_SECONDS * 1000)
        assert await page.locator(".answer .unwritten").count() == 0
        assert any("✓ 1st" in name for name in await page.locator(".lane h2").all_inner_texts())
        for _ in range(2):
            await page.keyboard.press("ArrowLeft")
            assert await page.locator(".answer .unwritten").count() > 0
            await page.keyboard.press("ArrowRight")
            assert await page.locator(".answer .unwritten").count() == 0
            await page.keyboard.press("c")
        await page.locator(".answer > span").first.click()
        assert await page.locator(".conclusions.unwritten").count() == 1
        assert await page.locator(".answer > span.here").first.evaluate("one => one.previousElementSibling === null")
        await page.keyboard.press("Space")
        await page.wait_for_selector(".conclusions:not(.unwritten)", timeout=DEADLINE_SECONDS * 1000)
    assert not faults


async def test_the_page_of_the_lessons_plays_and_waits_for_a_prediction(pages_that_play: Path) -> None:
    lessons, faults = pages_that_play / "learn.html", list[str]()
    async with chromium() as browser:
        page = await playing(browser, lessons, faults)
        card = page.locator(".scene:not([hidden]) .card:not([hidden])")
        for _ in range(20):
            if await card.locator(".choices").count():
                break
            await page.keyboard.press("Enter")
        assert not await card.locator(".text").is_visible()
        drawn = await page.locator(".scene:not([hidden]) .now").inner_text()
        assert "tokens" in drawn
        await page.keyboard.press("1")
        await card.locator(".text").wait_for(state="visible", timeout=DEADLINE_SECONDS * 1000)
        assert await card.locator("[data-mark='✓']").count() == 1
        await page.keyboard.press("ArrowLeft")
        assert not await card.locator(".text").is_visible()
    assert not faults
