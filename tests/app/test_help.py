"""The help says what is on the screen, what can be set, and which keys there are, and leaves all as it was."""

import pytest
from textual.widgets import Static

from ladechat.app import LadechatApp
from ladechat.keys import APP_KEYS, REPLAY_KEYS, key_names
from ladechat.screens.help.help import ALWAYS, PAPERS, PASSES, HelpScreen
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Stage, replaying, shows
from tests.session.streams import GOLDEN
from tests.waiting import brings, press


def shown(app: LadechatApp) -> str:
    """All that the help says, however far it is scrolled, in one line."""
    app.screen.query_one("VerticalScroll").styles.height = 400
    texts = []
    for each in app.screen.query(Static):
        strips = each.render_lines(each.size.region)
        texts += [strip.text.strip() for strip in strips]
    return " ".join(" ".join(texts).split())


@pytest.mark.parametrize("close", ["escape", pytest.param("f1", marks=pytest.mark.full)])
async def test_it_explains_the_chat_and_goes_back_to_what_was_typed(close: str) -> None:
    async with Stage().ready(size=(160, 200)) as (pilot, stage):
        async with brings(shows(pilot, HelpScreen), pilot):
            stage.app.query_one(Prompt).insert("half a question")
            await pilot.press("f1")
        text = shown(stage.app)
        assert "2402.02057" in text and "2404.12022" in text
        for name, explanation in (*PASSES, *ALWAYS, *PAPERS):
            assert name in text and explanation in text
        here, _, away = text.partition("Not on the screen now")
        panels = [panel for panel in stage.screen.query(Panel) if panel.explain()]
        assert {panel.id for panel in panels if panel.region.area} >= {"pool", "speed"}
        for panel in panels:
            assert f"{panel.title} {panel.SHOWS}" in (here if panel.region.area else away)
            assert (f"{panel.SHOWS} {panel.COMES}" in text) == (not panel.region.area)
        assert text.index("What you see") < text.index("Keys: ") < text.index("Panels"), "most people come for keys"
        for key in APP_KEYS:
            assert f"{key_names(key)} {key.tooltip}" in text
        assert "Esc Stop the answer, a download, or a search. (/stop)" in text
        assert "←, Ctrl+B Look back" in text and "↑ Bring back an earlier question" in text
        for info in stage.screen.view.presenter.now.decoders.values():
            assert info.help in text
            assert all(parameter.help in text for parameter in info.parameters)
        await press(pilot, close, brings=stage.in_front)
        assert stage.prompt == "half a question" and stage.app.query_one(Prompt).has_focus


async def test_a_replay_has_its_own_keys_in_it() -> None:
    async with replaying(Recording.read(GOLDEN[-1]), size=(160, 200)) as (pilot, app, _):
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(app)
        assert all(key.tooltip in text for key in REPLAY_KEYS)
        here, _, away = text.partition("Not on the screen now")
        assert "It comes with " in away and "In the chat" not in here
