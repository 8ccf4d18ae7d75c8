"""Keys of the user's own, from the settings file: they act, and help, footer, palette and sentences name them."""

from pathlib import Path

from textual import events
from textual.widgets import Static

from ladechat.preferences import SettingsFile
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.bars.find_bar import FindBar
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Room, answered, ask, begun, entries, shows
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until


def room(folder: Path, keys: str, *engines: FakeEngine) -> Room:
    """A chat whose user has these keys."""
    path = folder / "settings.toml"
    path.write_text(f"[keys]\n{keys}\n")
    return Room(*engines, path=path, store=ConversationStore(folder / "talks"))


def help_text(stage: Room) -> str:
    stage.app.screen.query_one("VerticalScroll").styles.height = 400
    texts = [strip.text for each in stage.app.screen.query(Static) for strip in each.render_lines(each.size.region)]
    return " ".join(" ".join(texts).split())


async def test_own_keys_act_and_are_named_wherever_keys_are(tmp_path: Path) -> None:
    stage = room(tmp_path, 'conversations = "Alt+O"\nhelp = "f11"\nquit = "alt+q"')
    async with stage.ready(size=(120, 60)) as (pilot, _):
        await pilot.press("ctrl+o", "f1")
        assert stage.in_front(), "our keys are free"
        shown = {key.description: key.shown for key in stage.app.screen.query_one(KeyFooter).keys}
        assert shown["Help"] == "f11" and "alt+q" in shown["Quit"].lower()
        assert entries(stage.app)["Conversations"].help.startswith("Alt+O · Search the history")
        await press(pilot, *"/conv", brings=lambda: stage.app.query_one(Completions).option_count == 1)
        assert "Alt+O" in str(stage.app.query_one(Completions).options[0].prompt)
        await press(pilot, "f11", brings=shows(pilot, HelpScreen))
        text = help_text(stage)
        assert "Alt+O Search the history" in text and "F11 What is on the screen" in text and "Ctrl+O" not in text
        await press(pilot, "f11", brings=stage.in_front)
        async with brings(shows(pilot, ConversationsScreen), pilot):
            stage.app.post_message(events.Key("alt+o", "o"))  # as terminals send it
        await press(pilot, "escape", brings=stage.in_front)
        async with brings(lambda: stage.prompt == "/convx", pilot):
            stage.app.post_message(events.Key("alt+x", "x"))  # which has no action
        async with brings(lambda: stage.app.return_code == 0, pilot):
            stage.app.post_message(events.Key("alt+q", "q"))


async def test_sentences_name_own_keys(tmp_path: Path) -> None:
    stage = room(tmp_path, 'restart = "f11"\nconversations = "alt+o"\nstop = "alt+s"\nexplain = "alt+e"')
    async with stage.ready(size=(120, 40)) as (pilot, _):
        await answered(pilot, stage, "One?")
        await ask(pilot, "/new", brings=lambda: stage.notice == "The conversation is saved: Alt+O finds it.")
        await press(pilot, "alt+e", brings=shows(pilot, ExplainScreen))
        await press(pilot, "alt+e", brings=stage.in_front)
        await act(pilot, stage.engine.die, brings=lambda: "F11" in stage.status)
        assert "F11 starts the engine again" in " ".join(stage.text.split())


async def test_what_is_said_on_the_screen_itself_names_own_keys_too(tmp_path: Path) -> None:
    keys = 'fold = "f11"\nfollow = "alt+e"\nleave_steps = "alt+n"\nleave_editing = "alt+x"\nlook_on = "alt+k"'
    stage = room(tmp_path, keys + '\nlook_back = "alt+j"')
    async with stage.ready(size=(120, 24)) as (pilot, _):
        await answered(pilot, stage, "\n".join(f"line {number}" for number in range(12)))
        transcript = stage.app.query_one(Transcript)
        assert any("in all · click or F11" in line.text for line in transcript.lines)
        await press(pilot, "alt+j", brings=lambda: "Alt+J Alt+K · Alt+N newest" in stage.status)
        await press(pilot, "alt+n", brings=lambda: "newest" not in stage.status)
        await press(pilot, "ctrl+t", brings=lambda: bool(stage.prompt))
        where = stage.app.query_one("#editing", Static)
        await until(lambda: str(where.content).endswith("Alt+X cancels."), pilot)
        transcript.scroll_to(y=0, animate=False)
        await until(lambda: transcript.render_line(transcript.size.height - 1).text.strip().endswith("Alt+E"), pilot)


async def test_a_key_that_is_given_away_keeps_its_other_meanings(tmp_path: Path) -> None:
    stage = room(tmp_path, 'stop = "f11"\npause = "z"', FakeEngine(hold_steps=True))
    async with stage.ready(size=(120, 40)) as (pilot, _):
        await begun(pilot, stage, 3)
        await press(pilot, "z", brings=lambda: stage.session.pace.paused)
        await press(pilot, "left", brings=lambda: stage.screen.view.presenter.inspection.running)
        await press(pilot, "escape", brings=lambda: not stage.screen.view.presenter.inspection.running)
        await pilot.press("space", "x", "z")
        assert stage.asking and stage.session.pace.paused and stage.prompt == " xz", "z is typed too"
        async with brings(lambda: not stage.asking, pilot):
            await pilot.press("f11")
            stage.engine.release()


async def test_a_list_has_own_keys_too(tmp_path: Path) -> None:
    stage = room(tmp_path, 'quit = "alt+q"\nfind = "alt+f"')
    async with stage.ready() as (pilot, _):
        await press(pilot, "alt+f", brings=lambda: stage.app.query_one(FindBar).has_class("-open"))
        await press(pilot, "escape", brings=lambda: not stage.app.query_one(FindBar).has_class("-open"))
        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        await press(pilot, "alt+q", brings=lambda: stage.app.return_code == 0)


async def refused(pilot: Driver, stage: Room) -> str:
    await until(lambda: bool(stage.notices), pilot)
    return stage.notices[0]


async def test_what_cannot_be_a_key_is_said_with_its_line_and_the_rest_holds(tmp_path: Path) -> None:
    stage = room(tmp_path, 'new = "ctrl+r"\nfind = "alt+f"')
    async with stage.ready() as (pilot, _):
        assert await refused(pilot, stage) == (
            f"{tmp_path}/settings.toml, line 2: new: Ctrl+R is ‘Again’ in the chat. It is left out."
        )
        await press(pilot, "alt+f", brings=lambda: stage.app.query_one(FindBar).has_class("-open"))


async def test_several_refused_keys_are_counted_and_the_help_lists_them(tmp_path: Path) -> None:
    stage = room(tmp_path, 'news = "f11"\nfind = 7\nrace = "ctrl+p"\nhelp = "alt+h"')
    async with stage.ready(size=(160, 60)) as (pilot, _):
        assert "3 settings are left out: Alt+H lists them" in await refused(pilot, stage)
        await press(pilot, "alt+h", brings=shows(pilot, HelpScreen))
        text = help_text(stage)
        assert "line 2 no action is called 'news'; did you mean 'new'?" in text
        assert "line 3 find has to be a key in quotes, not 7." in text
        assert "line 4 race: Ctrl+P is ‘palette’ in the chat." in text
    assert SettingsFile(tmp_path / "settings.toml").preferences.keys["help"] == "alt+h"
