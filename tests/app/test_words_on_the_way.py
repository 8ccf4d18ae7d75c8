"""The welcome and its questions, texts in the lists of choices, the list of messages, and what an export leaves."""

import sys
from pathlib import Path

import pytest
from textual.widgets import Label, Static

from ladechat.catalog import FIRST_QUESTIONS, first_questions
from ladechat.screens.chat import recordings as exporting
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.view import welcome
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, answered, ask, begun, entries, shows
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until


async def test_a_click_asks_a_question_of_the_welcome() -> None:
    async with Stage(welcome=welcome("auto")).ready() as (pilot, stage):
        transcript = stage.app.query_one(Transcript)
        y = next(y for y, line in enumerate(transcript.lines) if FIRST_QUESTIONS[1] in line.text)
        async with brings(lambda: stage.asked == [FIRST_QUESTIONS[1]] and not stage.asking, pilot):
            await pilot.click(Transcript, offset=(6, y))
        assert stage.prompt == ""


def test_another_model_than_ours_is_asked_something_else_and_a_server_has_no_passes_of_one_colour() -> None:
    assert not {*first_questions("owner/name")} & {*first_questions("demo")}
    assert welcome("auto") and not welcome("server")


async def test_tab_writes_the_questions_of_the_welcome_one_after_the_other_until_one_is_asked() -> None:
    async with Stage(welcome=welcome("auto")).ready() as (pilot, stage):
        prompt = stage.app.query_one(Prompt)
        for question in (*FIRST_QUESTIONS, FIRST_QUESTIONS[0]):
            async with brings(lambda question=question: stage.prompt == question, pilot):  # type: ignore[misc]
                await pilot.press("tab")
        async with brings(lambda: stage.prompt == f"{FIRST_QUESTIONS[0]}!" and not prompt.has_focus, pilot):
            await pilot.press("!", "tab")
        prompt.focus()
        await press(pilot, "enter", brings=lambda: len(stage.asked) == 1 and not stage.asking)
        await press(pilot, "tab", brings=lambda: not prompt.has_focus)
        assert stage.prompt == ""


async def test_without_the_welcome_tab_moves_the_focus() -> None:
    async with Stage().ready() as (pilot, stage):
        await press(pilot, "tab", brings=lambda: not stage.app.query_one(Prompt).has_focus)


async def test_the_lists_say_what_each_entry_does_and_its_key() -> None:
    async with Stage().ready(size=(120, 40)) as (pilot, stage):
        commands = entries(stage.app)
        assert commands["Panels"].help == "F2 · Show or hide the panels at the right."
        assert commands["Settings: window, n-grams, temperature …"].help.startswith("/settings · ")
        shown = stage.app.query_one(Completions)
        await press(pilot, *"/pan", brings=lambda: shown.display and shown.option_count == 1)
        assert str(shown.options[0].prompt).split()[:2] == ["/panels", "F2"]
        prompt = stage.app.query_one(Prompt)
        async with brings(lambda: shown.option_count > 5, pilot):
            prompt.load_text("/decoder ")
        rows = [str(option.prompt) for option in shown.options]
        for info in stage.screen.decoders:
            assert any(f"/decoder {info.name} " in row and info.help in row for row in rows)
        await press(pilot, "escape", "f9", brings=lambda: bool(stage.notices))


async def test_messages_can_be_read_again_the_latest_first() -> None:
    async with Stage().ready(size=(120, 40)) as (pilot, stage):

        def read() -> str:
            return "\n".join(str(one.render()) for one in stage.app.screen.query(Static))

        await ask(pilot, "/messages", brings=shows(pilot, ExplainScreen))
        assert "There was none yet." in read()
        await press(pilot, "escape", brings=stage.in_front)
        await press(pilot, "f9", brings=lambda: "Type a question first" in stage.notice)
        await ask(pilot, "/limit hot", brings=lambda: "/limit has to be" in stage.notice)
        stage.app.clear_notifications()
        assert entries(stage.app)["Messages"].help.startswith("/messages · ")
        async with brings(shows(pilot, ExplainScreen), pilot):
            await entries(stage.app)["Messages"].callback()
        assert read().index("/limit has to be") < read().index("Type a question first")
        assert read().count("· warning") == 2


def let_go_on(export: Path) -> None:
    """Let a stand-in for an export write its file."""
    Path(f"{export}.go").touch()


WRITES = """
print("drawing 50%", file=sys.stderr, flush=True)
while not os.path.exists(sys.argv[2] + ".go"):
    time.sleep(0.01)
open(sys.argv[2], "w").write("done")
"""


async def test_a_second_export_waits_for_the_first_and_each_leaves_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "COMMAND", (sys.executable, "-c", f"import os, sys, time\n{WRITES}"))
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    async with Stage().running(size=(160, 40)) as (pilot, stage):

        def doing() -> str:
            return str(stage.app.query_one("#exporting", Label).content)

        await answered(pilot, stage, "One?")
        await ask(pilot, f"/export {first}", brings=lambda: doing() == "exporting: drawing 50%")
        await ask(pilot, f"/export {second}", brings=lambda: "when the export before it has ended" in stage.notice)
        let_go_on(second)
        async with brings(lambda: f"Exported: {second}." in stage.text, pilot):
            assert not second.exists()
            let_go_on(first)
        assert stage.text.index(f"Exported: {first}.") < stage.text.index(f"Exported: {second}.")
        await until(lambda: not stage.app.query_one("#exporting").display, pilot)
        assert first.read_text() == second.read_text() == "done"


async def test_an_export_that_ends_during_an_answer_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "COMMAND", (sys.executable, "-c", f"import os, sys, time\n{WRITES}"))
    page = tmp_path / "a.html"
    async with Stage(FakeEngine(hold_steps=True)).running(size=(160, 40)) as (pilot, stage):
        await begun(pilot, stage, 3)
        await ask(pilot, f"/export {page}", brings=lambda: stage.app.query_one("#exporting").display)
        async with brings(lambda: f"Exported: {page}." in stage.notices, pilot):
            let_go_on(page)
        assert "Exported" not in stage.text, "the answer is not broken in two"
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        await until(lambda: f"Exported: {page}." in stage.text, pilot)
        assert stage.text.index(" tokens a pass") < stage.text.index("Exported")


async def test_a_race_leaves_its_result_in_the_conversation() -> None:
    async with Stage().ready(size=(120, 40)) as (pilot, stage):
        await press(pilot, *"Why", "f9", brings=shows(pilot, RaceScreen))
        screen = stage.app.screen
        assert isinstance(screen, RaceScreen)
        await until(lambda: screen.track is not None, pilot)
        async with brings(lambda: "Race on ‘Why’: ✓ " in stage.text, pilot):
            await pilot.press("escape")
        assert "tokens identical · Passes saved of " in " ".join(stage.text.split())


async def test_the_list_of_conversations_says_at_once_what_is_possible_during_an_answer(tmp_path: Path) -> None:
    write(tmp_path, "a", exchange("Earlier?"))
    async with Stage(FakeEngine(hold_steps=True), store=ConversationStore(tmp_path)).ready() as (pilot, stage):
        said = "During an answer, Enter shows a conversation to read"

        def hint() -> str:
            return str(stage.app.screen.query_one("#said", Label).content)

        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        await until(lambda: "Conversations · 1" in str(stage.app.screen.query_one("#head", Label).content), pilot)
        assert hint() == ""
        await press(pilot, "escape", brings=stage.in_front)
        await begun(pilot, stage, 3)
        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        await until(lambda: hint().startswith(said), pilot)
        await press(pilot, *"nonesuch", brings=lambda: "Nothing has all of these words" in hint())
        await press(pilot, "escape", brings=stage.in_front)
