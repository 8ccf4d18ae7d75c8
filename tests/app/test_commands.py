"""Slash commands, and what they lead to: other models, the system prompt, what is copied."""

import re
from functools import partial
from pathlib import Path

import pytest

from ladechat.app import LadechatApp
from ladechat.commands import COMMANDS, find, matching
from ladechat.preferences import SAMPLING_NAMES
from ladechat.protocol import Configure, Settings
from ladechat.screens.lists.models import GONE, ModelsScreen, known_models
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.screens.terminal.app_on_terminal import keep
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.cells import cell_len
from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Driver, Room, Stage, answered, ask, entries, shows
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until


def test_every_name_is_that_of_one_command_which_has_an_action() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    for command in COMMANDS:
        assert find(command.name.upper()) is command
        owner = LadechatApp if command.action.startswith("app.") else Stage().screen
        assert callable(getattr(owner, f"action_{command.action.removeprefix('app.')}"))
    assert sorted(command.name for command in matching("SE")) == ["seed", "set", "settings"]
    assert [command.name for command in matching("window")] == ["set", "settings"], "/set W is what is looked for"
    assert not matching("windowed")


def marked(shown: Completions) -> str:
    """What Tab would write."""
    return shown.marked.text if shown.marked is not None else ""


async def test_a_slash_lists_the_commands_and_the_keys_steer_the_list() -> None:
    async with Room().running() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        await press(pilot, "slash", brings=lambda: shown.option_count == len(COMMANDS) and shown.display)
        room = shown.scrollable_content_region.width - 2  # of 80 columns, with a cell at either side
        assert [row for option in shown.options if cell_len(row := str(option.prompt)) > room] == []
        await press(pilot, "m", "o", brings=lambda: marked(shown) == "/model " and shown.option_count == 1)
        await press(pilot, "tab", brings=lambda: stage.prompt == "/model " and not shown.display)
        await press(pilot, *["backspace"] * 7, "slash", brings=lambda: shown.display)
        await press(pilot, "down", "down", "up", brings=lambda: marked(shown) == f"/{COMMANDS[1].name}")
        await press(pilot, "escape", brings=lambda: not shown.display and stage.prompt == "/")
        async with brings(lambda: type(stage.app.screen).__name__ == "HelpScreen", pilot):
            await pilot.press("backspace", "slash", "h", "e", "enter")
        assert stage.engine.questions == []


@pytest.mark.full
async def test_behind_a_command_with_fixed_choices_these_are_listed() -> None:
    async with Room().ready() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        prompt = stage.app.query_one(Prompt)
        await pilot.press(*"/dec", "tab")
        decoders = stage.screen.view.presenter.now.decoders
        await until(lambda: shown.display and shown.option_count == len(decoders), pilot)
        assert stage.prompt == "/decoder "
        async with brings(lambda: shown.option_count == 1, pilot):
            await pilot.press("p", "l", "a")  # what the screen calls it is found too
        await press(pilot, "enter", brings=lambda: stage.session.requested.decoder == "autoregressive")
        async with brings(lambda: shown.option_count == len(stage.app.available_themes), pilot):
            prompt.load_text("/theme ")
        await act(pilot, lambda: prompt.load_text("/model "), brings=lambda: not shown.display)


async def test_commands_set_numbers_and_what_is_wrong_is_said() -> None:
    async with Room().ready() as (pilot, stage):
        for text in ("/window 9", "/n 4", "/temperature 0.5", "/top-k 40", "/decoder suffix matching"):
            await ask(pilot, text)
        await until(lambda: len(stage.engine.commands) == 5, pilot)
        assert stage.engine.commands == [
            Configure(decoder="lookahead", parameters={"window": 9}),
            Configure(parameters={"ngram": 4}),
            Configure(temperature=0.5),
            Configure(top_k=40),
            Configure(decoder="suffix"),
        ]
        async with brings(lambda: stage.notice == "/temperature has to be a number from 0 to 5, not '9'.", pilot):
            await ask(pilot, "/temperature 9")
        async with brings(
            lambda: stage.notice == "It takes something more: /temperature NUMBER." and stage.prompt == "/temperature ",
            pilot,
        ):
            await ask(pilot, "/temperature")


REFUSED = {
    "code": "x",
    "model": "owner/other",
    "race": "--decoders lookahead",
    "decoder": "nonesuch",
    "set": "W 999",
    "limit": "hot",
    "theme": "nonesuch",
    "replay": "/nowhere/talk.jsonl",
    "export": "talk.doc",
    "save": "a/b",
    "preset": "nonesuch",
    "remove-preset": "nonesuch",
    **{name.replace("_", "-"): "hot" for name in SAMPLING_NAMES},
}
"""A value that each command that takes one refuses; all but a system prompt, which is any text."""


async def refuses(pilot: Driver, stage: Stage, text: str) -> None:
    """Send a command. It is refused with a word on it, and is in the prompt again."""
    said = len(stage.notices)
    await ask(pilot, text, brings=lambda: len(stage.notices) > said and stage.prompt == text)


async def test_what_refuses_a_value_names_the_command_as_it_was_typed() -> None:
    async with Room().ready() as (pilot, stage):
        drawing = (one.name for one in COMMANDS if one.sets in SAMPLING_NAMES and one.sets != "thinking")
        for typed in ("limit", "LIMIT", "W", "window", "set W", "set max_new_tokens", *drawing):
            said = re.compile(rf"/{typed} has to be .*, not 'hot'\.")
            async with brings(partial(lambda said: said.fullmatch(stage.notice), said), pilot):
                await ask(pilot, f"/{typed}  hot")


async def test_whatever_is_refused_stays_in_the_prompt_to_be_corrected() -> None:
    assert {one.name for one in COMMANDS if one.argument} == {*REFUSED, "system", "rename"}
    async with Stage(FakeEngine()).ready() as (pilot, stage):
        for name, value in REFUSED.items():
            await refuses(pilot, stage, f"/{name} {value}")
            await refuses(pilot, stage, f"/{name.upper()}  {value}")
        for one in stage.screen.settings.listed():
            if one.name not in ("model", "system"):
                await refuses(pilot, stage, f"/set {one.name} nonesuch")
                await refuses(pilot, stage, f"/{one.name} nonesuch")
        for text in ("/modle x", "/nodes 3", "/new now", "/stop", "/again", "/edit", "/continue", "/save"):
            await refuses(pilot, stage, text)
        for text in ("/conversations", "/export 'a", "/export a.html b.html", "/export", "/code", "/race"):
            await refuses(pilot, stage, text)
        assert stage.engine.commands == [] and stage.session.requested == Settings(decoder="auto")
        stage.engine.die()
        await until(lambda: "F5" in stage.activity, pilot)
        for text in ("/again", "/continue", "/race Why?"):
            await refuses(pilot, stage, text)


async def test_what_a_key_or_a_form_refuses_puts_no_command_into_the_prompt() -> None:
    async with Stage(FakeEngine()).ready() as (pilot, stage):
        await refuses(pilot, stage, "/temperature hot")
        for number, key in enumerate(["ctrl+r", "ctrl+t", "f9", "ctrl+o"], start=2):
            stage.app.query_one(Prompt).load_text("")
            async with brings(lambda number=number: len(stage.notices) == number, pilot):  # type: ignore[misc]
                await pilot.press(key)
            assert stage.prompt == ""
        assert stage.notices[1:3] == ["Nothing has been answered yet."] * 2


async def test_during_an_answer_a_command_that_has_to_wait_stays_in_the_prompt() -> None:
    async with Room(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        for text in ("/new", "/again", "/edit", "/continue", "/race Why?", "/learn", "/model owner/other"):
            await refuses(pilot, stage, text)
            assert stage.notice == "Stop the answer first (Esc)."
        assert stage.models == [] and stage.app.screen is stage.screen


async def test_enter_runs_what_is_typed_by_then_and_not_what_the_list_held_before() -> None:
    async with Room().running() as (pilot, stage):
        prompt = stage.app.query_one(Prompt)
        await act(pilot, lambda: prompt.insert("/l"), brings=lambda: prompt.commands.display)
        async with brings(lambda: stage.session.requested.decoder == "lookahead", pilot):
            prompt.load_text("/decoder lookahead")
            await prompt.action_send()


async def test_no_command_is_sent_to_the_model_but_a_slash_can_be() -> None:
    async with Room().running() as (pilot, stage):
        await ask(pilot, "/modle x", brings=lambda: stage.prompt == "/modle x")
        assert "did you mean /model?" in stage.notice
        await ask(pilot, "/nodes 3", brings=lambda: "lookahead has no setting nodes; it has W" in stage.notice)
        await ask(pilot, " /etc is what?", brings=lambda: len(stage.engine.questions) == 1 and not stage.asking)
        await ask(pilot, "//etc?", brings=lambda: len(stage.engine.questions) == 2 and not stage.asking)
        assert stage.asked == ["/etc is what?", "/etc?"]
        await press(pilot, "up", "up", brings=lambda: stage.prompt == " /etc is what?")
        async with brings(lambda: stage.app.query_one(Completions).display, pilot):
            await pilot.press("ctrl+u", "slash")  # what was emptied is nothing from the past any more


async def test_another_model_goes_on_with_the_conversation_and_one_that_is_not_there_changes_nothing() -> None:
    async with Room(FakeEngine(), FakeEngine(), FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        async with brings(lambda: len(stage.started) == 2 and stage.activity == "ready", pilot):
            await ask(pilot, "/decoder hidden_transfer")
            await ask(pilot, "/model owner/other")
        assert stage.engines[0].closed and stage.settings[-1].decoder == "auto"
        assert "other is decoded with auto from now on, in the place of hidden_transfer" in stage.notice
        await answered(pilot, stage, "Two?", times=2)
        sent = stage.engine.questions[0].messages
        assert [message.content for message in sent][::2] == ["One?", "Two?"] and sent[1].token_ids is None
        await ask(pilot, "/model owner/torn")
        await answered(pilot, stage, "Meanwhile?", times=3)
        await until(lambda: "looking for owner/torn …" in stage.status, pilot)
        async with brings(lambda: stage.prompt == "/model owner/torn" and "looking" not in stage.status, pilot):
            stage.engines[2].fail_fatally()
        assert stage.notice == "The weights are torn. Mend them. other goes on answering."
        stage.app.clear_notifications()
        assert "The weights are torn. Mend them." in stage.text, "the reason outlasts the message"
        await pilot.press("ctrl+u")
        await answered(pilot, stage, "Three?", times=4)
        assert stage.models == ["owner/other", "owner/torn"] and len(stage.engines[1].questions) == 3


async def test_a_model_that_still_loads_is_not_said_to_answer_where_another_one_is_refused() -> None:
    async with Room(FakeEngine(hold_loading=True), FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await ask(pilot, "/model owner/torn", brings=lambda: "looking for owner/torn …" in stage.status)
        async with brings(lambda: stage.notice.endswith("demo model goes on loading."), pilot):
            stage.engines[1].fail_fatally()


@pytest.mark.full
async def test_the_list_of_models_takes_what_is_typed_too() -> None:
    async with Room(FakeEngine(), FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await ask(pilot, "/model", brings=shows(pilot, ModelsScreen))
        await press(pilot, *"owner", "slash", "x", "enter", brings=lambda: "looking for owner/x …" in stage.status)
        await act(pilot, stage.engines[1].fail_fatally, brings=lambda: bool(stage.notices))
        assert stage.models == ["owner/x"] and stage.prompt == "", "nobody typed a command"


async def test_a_model_named_by_a_relative_path_is_taken_and_kept_by_one_that_leads_there_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    store = ConversationStore(tmp_path / "talks")
    async with Room(FakeEngine(), FakeEngine(), store=store).ready() as (pilot, stage):
        await ask(pilot, "/model mine", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")
        await answered(pilot, stage, "One?")
    assert stage.models == [one.model for one in store.conversations()] == [str(tmp_path / "mine")]
    (tmp_path / "mine").rmdir()
    about = {one.name: one.about for one in known_models(store, ["owner/small", "\0"])}
    assert about[str(tmp_path / "mine")] == GONE and about["owner/small"] == "used before"


def test_known_models_are_each_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, weights in (("models--owner--small", "model.safetensors"), ("models--owner--none", "notes.txt")):
        folder = tmp_path / "hub" / name / "snapshots" / "abc"
        folder.mkdir(parents=True)
        (folder / "config.json").touch()
        (folder / weights).touch()
    write(tmp_path, "a", exchange("One?"))
    failed = known_models(ConversationStore(tmp_path), ["owner/small"], ["owner/torn"])[1]
    assert failed == ("owner/torn", "could not be loaded")
    names = [one.name for one in known_models(ConversationStore(tmp_path), ["owner/small", "demo"])]
    assert names[0] == "demo" and names.count("demo") == 1
    assert names.count("owner/small") == 1 and "owner/none" not in names


async def edit_system(pilot: Driver, stage: Stage, text: str) -> None:
    await ask(pilot, "/system", brings=shows(pilot, SystemPromptScreen))
    await press(pilot, *text, "ctrl+s", brings=stage.in_front)


async def test_a_system_prompt_acts_from_the_next_question_and_is_kept_with_the_conversation(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    async with Room(store=store).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await ask(pilot, "/system Be brief.")
        await edit_system(pilot, stage, "!")
        await answered(pilot, stage, "Two?", times=2)
        first, second = (question.messages[0].content for question in stage.engine.questions)
        assert (first, second) == ("One?", "Be brief.!")
        assert "the model is told: Be brief.!" in " ".join(stage.text.split())
        kept = store.conversations()[0]
        assert kept.system == "Be brief.!"
        await ask(pilot, "/new")
        await until(lambda: "has no system prompt now" in " ".join(stage.text.split()), pilot)
        await ask(pilot, "/system Rhyme.")
        stage.screen.saved.open(kept)
        await answered(pilot, stage, "Three?", times=3)
        assert stage.engine.questions[-1].messages[0].content == "Be brief.!"
        assert "the model is told: Be brief.!" in " ".join(stage.text.split())
        assert "Rhyme" not in kept.path.read_text()


async def test_a_saved_system_prompt_is_that_of_new_conversations(tmp_path: Path) -> None:
    async with Room(path=tmp_path / "settings.toml").ready() as (pilot, stage):
        await ask(pilot, "/system Be brief.")
        await ask(pilot, "/save", brings=lambda: "the next time" in stage.notice)
        await ask(pilot, "/new")
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[-1].messages[0].content == "Be brief."


FENCED = "First:\n```python\na = 1\nb = 2\n```\nthen\n```\nlast\n```\n"


@pytest.mark.full
async def test_a_block_of_code_is_copied_from_the_last_answer_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.terminal.app_on_terminal.keep", lambda text: keep(text, tmp_path))
    stage = Room(FakeEngine(answers=("None here.", FENCED, "None here.", "```sh\nls\n```")))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await ask(pilot, "/code", brings=lambda: "no block of code" in stage.notice)
        await answered(pilot, stage, "Two?", times=2)
        await answered(pilot, stage, "Three?", times=3)
        await ask(pilot, "/code", brings=lambda: stage.notice.startswith("1 line of code copied, block 2 of 2;"))
        assert stage.app.clipboard == "last" == (tmp_path / "copied.txt").read_text()
        await ask(pilot, "/code 1", brings=lambda: stage.notice.startswith("2 lines of Python copied, block 1 of 2;"))
        assert stage.app.clipboard == "a = 1\nb = 2"
        async with brings(lambda: stage.notice == "There is no block 'x': the answer has blocks 1 to 2.", pilot):
            await ask(pilot, "/code x")
        await press(pilot, "alt+up", brings=lambda: stage.screen.view.presenter.chosen == 2)
        await ask(pilot, "/code", brings=lambda: stage.notice == "There is no block of code in this answer.")
        await press(pilot, "alt+up", brings=lambda: stage.screen.view.presenter.chosen == 1)
        await ask(pilot, "/code 1", brings=lambda: stage.notice.startswith("2 lines of Python copied, block 1 of 2;"))
        await press(pilot, "escape", brings=lambda: stage.screen.view.presenter.chosen is None)
        await answered(pilot, stage, "Four?", times=4)
        commands = entries(stage.app)
        assert not {"Keys", "Screenshot"} & commands.keys(), "F1 and /export are better"
        await commands["Copy code"].callback()
        await until(lambda: stage.notice.startswith("1 line of shell copied;"), pilot)
        assert stage.app.clipboard == "ls"
