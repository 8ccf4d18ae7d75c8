"""Each key of each table does what it is there for: on every screen, from the palette, and as a slash command."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import OptionList

from ladechat import keys
from ladechat.app import LadechatApp
from ladechat.commands import COMMANDS
from ladechat.lessons.progress import Progress
from ladechat.palette import Look
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.lists.models import ModelsScreen
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.reading import ReadingScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.views import View
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Stage, answered, ask, replaying, shows
from tests.app.test_learn import Room as Lessons
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.session.streams import GOLDEN
from tests.waiting import brings, press, until

SCREENS: list[type[Screen[Any]]] = [
    ChatScreen,
    ConversationsScreen,
    ExplainScreen,
    HelpScreen,
    LearnScreen,
    ModelsScreen,
    RaceScreen,
    ReadingScreen,
    ReplayScreen,
    SettingsScreen,
    SystemPromptScreen,
]
PAUSED = 9
"""The step at which an answer is paused."""


def bindings_of(screen: type[Screen[Any]]) -> list[Binding]:
    return [one for one in screen.BINDINGS if isinstance(one, Binding)]


def meanings(screen: type[Screen[Any]]) -> list[tuple[str, str]]:
    """Each key with each of its actions, in the order in which they are asked."""
    return [(key, one.action) for one in bindings_of(screen) for key in one.key.split(",")]


def acting(screen: Screen[Any]) -> set[tuple[str, str]]:
    """For each key the action that it has now."""
    found: dict[str, str] = {}
    for key, action in meanings(type(screen)):
        _, name, parameters = parse(action)
        if screen.check_action(name, parameters):
            found.setdefault(key, action)
    return set(found.items())


@pytest.mark.parametrize("screen", SCREENS)
def test_every_action_of_a_key_exists_and_no_two_keys_have_one_name(screen: type[Screen[Any]]) -> None:
    bindings = bindings_of(screen)
    for one in bindings:
        namespace, name, _ = parse(one.action)
        owner = LadechatApp if namespace == "app" else Stage().screen if screen is ChatScreen else screen
        assert callable(getattr(owner, f"action_{name}")), one
        assert one.tooltip and one.description
    assert not [name for name, times in Counter(one.id for one in bindings).items() if times > 1]


def test_every_table_of_keys_belongs_to_a_screen() -> None:
    bound = {(one.id, one.key, one.action) for screen in SCREENS for one in bindings_of(screen)}
    tables = vars(keys)
    for table in (value for name, value in tables.items() if name.endswith("_KEYS") and not name.startswith("_")):
        listed = [one for one in table if isinstance(one, Binding)]
        assert {(one.id, one.key, one.action) for one in listed} <= bound, table


def of_ours(kind: type[DOMNode] = DOMNode) -> Iterator[type[DOMNode]]:
    """Each kind of screen or widget of ours with keys of its own."""
    for one in kind.__subclasses__():
        yield from of_ours(one)
        if one.__module__.startswith("ladechat.") and "BINDINGS" in vars(one):
            yield one


def test_every_key_has_a_name_for_the_users_own_keys() -> None:
    nameless = [(one, key) for one in of_ours() for key in one.BINDINGS if not (isinstance(key, Binding) and key.id)]
    assert nameless == [] and {Prompt, *SCREENS} <= set(of_ours())


SEVERAL_MEANINGS = (ChatScreen, ConversationsScreen, LearnScreen)


@pytest.mark.parametrize("screen", [one for one in SCREENS if one not in SEVERAL_MEANINGS])
def test_no_key_means_two_things_on_a_screen(screen: type[Screen[Any]]) -> None:
    assert not [key for key, times in Counter(key for key, _ in meanings(screen)).items() if times > 1]


async def test_each_meaning_of_a_key_of_the_chat_has_its_time() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready(size=(120, 40)) as (pilot, stage):
        seen = acting(stage.screen)
        await pilot.press("x")
        seen |= acting(stage.screen)
        await press(pilot, "escape", brings=lambda: stage.prompt == "")
        async with brings(lambda: len(stage.app.query_one(SidePanels).answer) == PAUSED, pilot):
            await ask(pilot, "One?")
            await ask(pilot, "Two?")
            stage.engine.release(PAUSED)
        await pilot.press("space")
        seen |= acting(stage.screen)
        await pilot.press("left")
        seen |= acting(stage.screen)
        async with brings(lambda: not stage.asking, pilot):
            stage.engine.release()
            await pilot.press("escape", "space")
        await pilot.press("ctrl+t")
        seen |= acting(stage.screen)
        await pilot.press("escape", "alt+up")
        seen |= acting(stage.screen)
        assert seen == set(meanings(ChatScreen))


@pytest.mark.full
async def test_each_meaning_of_a_key_of_the_lessons_has_its_time() -> None:
    room = Lessons(FakeEngine(), progress=Progress("one_token", 2))
    async with room.app.run_test(size=(80, 24)) as pilot:
        await until(lambda: room.place == ("one_token", 2), pilot)
        seen = acting(room.screen)
        await press(pilot, "1", brings=lambda: room.screen.lesson.page.outcome is not None)
        seen |= acting(room.screen)
        await pilot.press("enter")
        seen |= acting(room.screen)
        twice = [key for key, times in Counter(key for key, _ in meanings(LearnScreen)).items() if times > 1]
        assert {(key, action) for key, action in meanings(LearnScreen) if key in twice} <= seen


@pytest.mark.full
async def test_each_key_of_the_list_of_conversations_has_its_time(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path, f"{number}", exchange(f"Question {number}?"))
    async with Stage(store=ConversationStore(tmp_path)).running(size=(80, 24)) as (pilot, stage):
        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        screen = stage.app.screen
        await until(lambda: screen.query_one(OptionList).option_count == 12, pilot)
        seen = acting(screen)
        await moves_by_keys(pilot)
        await pilot.press("f2")
        seen |= acting(screen)
        await press(pilot, "escape", "f8", brings=lambda: screen.query_one(OptionList).option_count == 11)
        assert seen | acting(screen) == set(meanings(ConversationsScreen))


async def moves_by_keys(pilot: Driver) -> None:
    """The arrow keys and those of pages mark another line of the list."""
    listed = pilot.app.screen.query_one(OptionList)
    listed.highlighted = 0
    marked = [0]
    for key in ("down", "pagedown", "up", "pageup"):
        await pilot.press(key)
        marked.append(listed.highlighted or 0)
    first, down, page_down, up, page_up = marked
    assert first == 0 and down == 1 and page_down > 2 and up == page_down - 1 and page_up < up


@pytest.mark.full
async def test_lists_move_by_keys_and_escape_leaves_them_as_it_leaves_the_system_prompt(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path, f"{number}", exchange(model=f"owner/model-{number}"))
    async with Stage(store=ConversationStore(tmp_path), system="Be brief.").ready(size=(80, 24)) as (pilot, stage):
        for command, opened in (("/settings", SettingsScreen), ("/model", ModelsScreen)):
            await ask(pilot, command, brings=shows(pilot, opened))
            await until(lambda: stage.app.screen.query_one(OptionList).option_count > 10, pilot)
            await moves_by_keys(pilot)
            await press(pilot, "escape", brings=stage.in_front)
        await ask(pilot, "/system", brings=shows(pilot, SystemPromptScreen))
        await press(pilot, "x", "escape", brings=stage.in_front)
        assert stage.session.conversation.system == "Be brief."
        assert [type(one).__name__ for one in stage.engine.commands] in ([], ["Watch"])


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_ctrl_q_leaves_from_every_screen_above_the_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    stage = Stage(store=ConversationStore(tmp_path))

    async def leave() -> None:
        left.append(type(stage.app.screen).__name__)

    monkeypatch.setattr(stage.app, "action_quit", leave)
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await answered(pilot, stage, "One?")
        wanted = []
        opened_by: list[tuple[type[Screen[Any]], Callable[[], Any]]] = [
            (HelpScreen, lambda: pilot.press("f1")),
            (ExplainScreen, lambda: pilot.press("question_mark")),
            (ConversationsScreen, lambda: pilot.press("ctrl+o")),
            (SettingsScreen, lambda: ask(pilot, "/settings")),
            (ModelsScreen, lambda: ask(pilot, "/model")),
            (SystemPromptScreen, lambda: ask(pilot, "/system")),
        ]
        for screen, open_it in opened_by:
            async with brings(shows(pilot, screen), pilot):
                await open_it()
            await press(pilot, "ctrl+q", "escape", brings=stage.in_front)
            wanted.append(screen.__name__)
        assert left == wanted


@pytest.mark.full
@pytest.mark.parametrize("key", ["ctrl+q", "ctrl+c"])
async def test_keys_that_lessons_are_left_by_and_scrolled_by(key: str) -> None:
    room = Lessons(FakeEngine(), progress=Progress("verification", 3))
    async with room.app.run_test(size=(80, 16)) as pilot:
        await until(lambda: room.at("verification", 3), pilot)
        predicted = []
        for answer in "43":  # there are three
            await pilot.press(answer)
            predicted.append(room.screen.lesson.page.choice)
        assert predicted == [None, 2]
        await pilot.press("pageup")
        transcript = room.screen.query_one(Transcript)
        assert transcript.scroll_offset.y == 0
        await until(lambda: transcript.max_scroll_y > 0, pilot)
        await press(pilot, "pagedown", brings=lambda: transcript.scroll_offset.y == transcript.max_scroll_y)
        await press(pilot, key, brings=lambda: room.app.return_code == 0)


@pytest.mark.full
@pytest.mark.parametrize("key", ["ctrl+c", "q", "ctrl+q"])
async def test_each_key_of_a_replay_that_it_shares_with_the_chat(key: str) -> None:
    async with replaying(Recording.read(GOLDEN[0]), size=(80, 24), playing=True) as (pilot, app, _):
        await pilot.press("end")
        transcript, side = app.query_one(Transcript), app.query_one(SidePanels)
        await until(lambda: transcript.follows_end and transcript.max_scroll_y > 0, pilot)
        bottom = transcript.scroll_offset.y
        await press(pilot, "pageup", brings=lambda: transcript.scroll_offset.y < bottom)
        await press(pilot, "pagedown", brings=lambda: transcript.scroll_offset.y == bottom)
        displayed = []
        for _ in range(2):
            await pilot.press("f2")
            displayed.append(side.display)
        assert displayed == [False, True]
        await press(pilot, "f4", "f10", "ctrl+g", brings=lambda: side.shown is View.MASK and transcript.formatted)
        assert app.palette.look is Look.DEMO
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        await press(pilot, "question_mark", brings=shows(pilot, ReplayScreen))
        await press(pilot, "f8", brings=lambda: app.clipboard)
        await press(pilot, key, brings=lambda: app.return_code == 0)


# --- commands and the palette -----------------------------------------------------------------------------------------


async def test_every_slash_command_and_every_entry_of_the_palette_runs_its_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    asked: list[str] = []

    async def run(action: Any, _namespace: object = None) -> bool:
        asked.append(action if isinstance(action, str) else ".".join(filter(None, action[:2])))
        return True

    async with stage.app.run_test(size=(120, 40)) as pilot:
        async with brings(lambda: stage.asking, pilot):
            await ask(pilot, "One?")  # a pause has something to act on
        monkeypatch.setattr(stage.app, "run_action", run)
        for command in COMMANDS:
            stage.app.query_one(Prompt).post_message(Prompt.Commanded(command.name + " 1" * command.needs_argument))
        await until(lambda: asked == [command.action for command in COMMANDS], pilot)

        asked.clear()
        now = [one for one in bindings_of(ChatScreen) if stage.screen.check_action(one.action, ())]
        by_title = {
            keys.TITLES.get(one.id or "", one.description): one.action
            for one in now
            if one.id not in ("quit", "interrupt")
        }
        by_title |= {one.title: one.action for one in COMMANDS if one.title}
        for entry in stage.app.get_system_commands(stage.app.screen):
            if entry.title in by_title:
                await entry.callback()
        assert set(asked) == set(by_title.values())
