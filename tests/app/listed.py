"""Conversations that people keep, and an app in which their list is open."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.strip import Strip
from textual.widgets import Label, OptionList

from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Stage
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import press

ANSWERS = ("first answer", "second answer", "third answer")


def new_stage(tmp_path: Path, *answers: str, opened: SavedConversation | None = None) -> Stage:
    engine = FakeEngine(answers=answers or ANSWERS)
    return Stage(engine, store=ConversationStore(tmp_path / "talks"), opened=opened)


def kept(tmp_path: Path) -> list[SavedConversation]:
    return ConversationStore(tmp_path / "talks").conversations()


def three(tmp_path: Path) -> None:
    """Three conversations of other days."""
    write(tmp_path / "talks", "a", exchange("What is the pool?", "A store of n-grams."), when="2020-01-03T12:00:00")
    write(tmp_path / "talks", "b", exchange("Why W?", "The width.", model="org/Llama"), when="2020-01-02T12:00:00")
    write(tmp_path / "talks", "c", exchange("Hello?"), exchange("Again?"), when="2020-01-01T12:00:00")


def rows(stage: Stage) -> list[str]:
    listed = stage.app.screen.query_one(OptionList)
    return [str(option.prompt) for option in listed.options]


def shown(transcript: Transcript) -> list[Strip]:
    """The lines of a conversation that are in view."""
    return transcript.render_lines(transcript.size.region)


def said(stage: Stage) -> str:
    return str(stage.app.screen.query_one("#said", Label).content)


async def show_list(pilot: Driver, stage: Stage, count: int) -> None:
    await press(pilot, "ctrl+o", brings=lists(stage, count))


@asynccontextmanager
async def listed(stage: Stage, count: int) -> AsyncIterator[tuple[Driver, Stage]]:
    """Run an app whose list of so many conversations is open."""
    async with stage.ready() as (pilot, _):
        await show_list(pilot, stage, count)
        yield pilot, stage


@asynccontextmanager
async def three_listed(tmp_path: Path) -> AsyncIterator[tuple[Driver, Stage]]:
    """Run an app whose list of three conversations is open."""
    three(tmp_path)
    async with listed(new_stage(tmp_path), 3) as room:
        yield room


def lists(stage: Stage, count: int) -> Callable[[], bool]:
    """Are so many conversations on the list?"""
    return lambda: isinstance(stage.app.screen, ConversationsScreen) and len(rows(stage)) == count
