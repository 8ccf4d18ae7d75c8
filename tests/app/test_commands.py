"""Slash commands, and what they lead to: other models, the system prompt, the form of settings, what is kept."""

from pathlib import Path

import pytest
from textual.widgets import Label, OptionList

from ladechat.app import LadechatApp
from ladechat.commands import COMMANDS, SlashCommand, find, matching
from ladechat.palette import Look
from ladechat.preferences import DRAWING, SETTINGS, SettingsFile
from ladechat.protocol import Configure, Settings
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.lists.models import GONE, ModelsScreen, known_models
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.screens.terminal.clipboard import keep
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.engine import NewEngine
from ladechat.widgets.cells import cell_len
from ladechat.widgets.prompt.above_prompt import SlashCommandList
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Driver, Stage, answered, ask, burst, notices_of
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import brings, until


class Room(Stage):
    """A stage whose engines can have another model, and whose settings are kept."""

    def __init__(self, *engines: FakeEngine, path: Path | None = None, store: ConversationStore | None = None) -> None:
        super().__init__(*engines, store=store)
        self.models: list[str] = []
        file = SettingsFile(path) if path is not None else None
        self.screen = ChatScreen(self.session, "demo", store=store, engines=self._engines_of, settings_file=file)
        self.app = LadechatApp(self.screen, self.session, file)
        self.notices = notices_of(self.app)

    def _engines_of(self, model: str) -> NewEngine:
        self.models.append(model)
        return self._new_engine


def test_every_name_is_that_of_one_command() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    assert all(find(command.name.upper()) is command for command in COMMANDS)
    assert sorted(command.name for command in matching("SE")) == ["seed", "set", "settings"]
    assert [command.name for command in matching("window")] == ["set", "settings"], "/set W is what is looked for"
    assert not matching("windowed")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_an_action(command: SlashCommand) -> None:
    action = command.action
    owner = LadechatApp if action.startswith("app.") else Stage().screen
    assert callable(getattr(owner, f"action_{action.removeprefix('app.')}"))


async def test_a_slash_lists_the_commands_and_the_keys_steer_the_list() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        shown = stage.app.query_one(SlashCommandList)
        async with brings(lambda: shown.option_count == len(COMMANDS) and shown.display, pilot):
            await pilot.press("slash")
        room = shown.scrollable_content_region.width - 2  # of 80 columns, with a cell at either side
        assert [row for option in shown.options if cell_len(row := str(option.prompt)) > room] == []
        async with brings(lambda: shown.marked == find("model") and shown.option_count == 1, pilot):
            await pilot.press("m", "o")
        async with brings(lambda: stage.prompt == "/model " and not shown.display, pilot):
            await pilot.press("tab")
        async with brings(lambda: shown.display, pilot):
            await pilot.press(*["backspace"] * 7, "slash")
        async with brings(lambda: shown.marked == COMMANDS[1], pilot):
            await pilot.press("down", "down", "up")
        async with brings(lambda: not shown.display and stage.prompt == "/", pilot):
            await pilot.press("escape")
        async with brings(lambda: type(stage.app.screen).__name__ == "HelpScreen", pilot):
            await pilot.press("backspace", "slash", "h", "e", "enter")
        assert stage.engine.questions == []


@pytest.mark.full
async def test_behind_a_command_with_fixed_choices_these_are_listed() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        shown = stage.app.query_one(SlashCommandList)
        prompt = stage.app.query_one(Prompt)
        await pilot.press(*"/dec", "tab")
        decoders = stage.screen.view.presenter.decoders
        await until(lambda: shown.display and shown.option_count == len(decoders), pilot)
        assert stage.prompt == "/decoder "
        async with brings(lambda: shown.option_count == 1, pilot):
            await pilot.press("p", "l", "a")  # what the screen calls it is found too
        async with brings(lambda: stage.session.requested.decoder == "autoregressive", pilot):
            await pilot.press("enter")
        async with brings(lambda: shown.option_count == len(stage.app.available_themes), pilot):
            prompt.load_text("/theme ")
        async with brings(lambda: not shown.display, pilot):
            prompt.load_text("/model ")


async def test_commands_set_numbers_and_what_is_wrong_is_said() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
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
        async with brings(lambda: stage.notice == "temperature has to be a number from 0 to 5, not '9'.", pilot):
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
    "theme": "nonesuch",
    "replay": "/nowhere/talk.jsonl",
    "export": "talk.doc",
    **{name.replace("_", "-"): "hot" for name in DRAWING},
}
"""A value that each command that takes one refuses; all but a system prompt, which is any text."""


async def refuses(pilot: Driver, stage: Stage, text: str) -> None:
    """Send a command. It is refused with a word on it, and is in the prompt again."""
    said = len(stage.notices)
    async with brings(lambda: len(stage.notices) > said and stage.prompt == text, pilot):
        await ask(pilot, text)


async def test_whatever_is_refused_stays_in_the_prompt_to_be_corrected() -> None:
    assert {one.name for one in COMMANDS if one.argument} == {*REFUSED, "system"}
    stage = Stage(FakeEngine())
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
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
    stage = Stage(FakeEngine())
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await refuses(pilot, stage, "/temperature hot")
        for number, key in enumerate(["ctrl+r", "ctrl+t", "f9", "ctrl+o"], start=2):
            stage.app.query_one(Prompt).load_text("")
            async with brings(lambda number=number: len(stage.notices) == number, pilot):  # type: ignore[misc]
                await pilot.press(key)
            assert stage.prompt == ""


async def test_during_an_answer_a_command_that_has_to_wait_stays_in_the_prompt() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: stage.asking, pilot):
            await ask(pilot, "One?")
        for text in ("/new", "/again", "/edit", "/continue", "/race Why?", "/learn"):
            await refuses(pilot, stage, text)


async def test_enter_runs_what_is_typed_by_then_and_not_what_the_list_held_before() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        prompt = stage.app.query_one(Prompt)
        async with brings(lambda: prompt.commands.display, pilot):
            prompt.insert("/l")
        async with brings(lambda: stage.session.requested.decoder == "lookahead", pilot):
            prompt.load_text("/decoder lookahead")
            await prompt.action_send()


async def test_no_command_is_sent_to_the_model_but_a_slash_can_be() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        async with brings(lambda: stage.prompt == "/modle x", pilot):
            await ask(pilot, "/modle x")
        assert "did you mean /model?" in stage.notice
        async with brings(lambda: "lookahead has no setting nodes; it has W" in stage.notice, pilot):
            await ask(pilot, "/nodes 3")
        async with brings(lambda: len(stage.engine.questions) == 1 and not stage.asking, pilot):
            await ask(pilot, " /etc is what?")
        async with brings(lambda: len(stage.engine.questions) == 2 and not stage.asking, pilot):
            await ask(pilot, "//etc?")
        said = [question.messages[-1].content for question in stage.engine.questions]
        assert said == ["/etc is what?", "/etc?"]
        async with brings(lambda: stage.prompt == " /etc is what?", pilot):
            await pilot.press("up", "up")
        async with brings(lambda: stage.app.query_one(SlashCommandList).display, pilot):
            await pilot.press("ctrl+u", "slash")  # what was emptied is nothing from the past any more


async def test_another_model_goes_on_with_the_conversation_and_one_that_is_not_there_changes_nothing() -> None:
    stage = Room(FakeEngine(), FakeEngine(), FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
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
    stage = Room(FakeEngine(hold_loading=True), FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: "looking for owner/torn …" in stage.status, pilot):
            await ask(pilot, "/model owner/torn")
        async with brings(lambda: stage.notice.endswith("demo model goes on loading."), pilot):
            stage.engines[1].fail_fatally()


@pytest.mark.full
async def test_during_an_answer_the_model_stays() -> None:
    stage = Room(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: "The n-gram" in stage.text, pilot):
            await ask(pilot, "One?")
            stage.engine.release(3)
        async with brings(lambda: stage.notices == ["Stop the answer first (Esc)."] and stage.models == [], pilot):
            await ask(pilot, "/model owner/other")


async def test_a_burst_of_a_name_and_enter_takes_that_model() -> None:
    stage = Room(FakeEngine(), FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: isinstance(stage.app.screen, ModelsScreen), pilot):
            await ask(pilot, "/model")
        async with brings(lambda: bool(stage.models), pilot):
            burst(pilot, *"owner/x", "enter")
        assert stage.models == ["owner/x"]


@pytest.mark.full
async def test_the_list_of_models_takes_what_is_typed_too() -> None:
    stage = Room(FakeEngine(), FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: isinstance(stage.app.screen, ModelsScreen), pilot):
            await ask(pilot, "/model")
        async with brings(lambda: "looking for owner/x …" in stage.status, pilot):
            await pilot.press(*"owner", "slash", "x", "enter")
        async with brings(lambda: bool(stage.notices), pilot):
            stage.engines[1].fail_fatally()
        assert stage.models == ["owner/x"] and stage.prompt == "", "nobody typed a command"


async def test_a_model_named_by_a_relative_path_is_taken_and_kept_by_one_that_leads_there_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    store = ConversationStore(tmp_path / "talks")
    stage = Room(FakeEngine(), FakeEngine(), store=store)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: len(stage.started) == 2 and stage.activity == "ready", pilot):
            await ask(pilot, "/model mine")
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
    async with brings(lambda: isinstance(stage.app.screen, SystemPromptScreen), pilot):
        await ask(pilot, "/system")
    async with brings(lambda: stage.app.screen is stage.screen, pilot):
        await pilot.press(*text, "ctrl+s")


async def test_a_system_prompt_acts_from_the_next_question_and_is_kept_with_the_conversation(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    stage = Room(store=store)
    async with stage.app.run_test() as pilot:
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
        await answered(pilot, stage, "Three?")
        assert stage.engine.questions[-1].messages[0].content == "Be brief.!"
        assert "the model is told: Be brief.!" in " ".join(stage.text.split())
        assert "Rhyme" not in kept.path.read_text()


async def test_a_saved_system_prompt_is_that_of_new_conversations(tmp_path: Path) -> None:
    stage = Room(path=tmp_path / "settings.toml")
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await ask(pilot, "/system Be brief.")
        async with brings(lambda: "the next time" in stage.notice, pilot):
            await ask(pilot, "/save")
        await ask(pilot, "/new")
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[-1].messages[0].content == "Be brief."


async def test_a_burst_sets_in_the_form_what_was_typed_for_each_setting(tmp_path: Path) -> None:
    stage = Room(path=tmp_path / "settings.toml")
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: isinstance(stage.app.screen, SettingsScreen), pilot):
            await ask(pilot, "/settings")
        async with brings(lambda: stage.engine.settings.parameters == {"window": 8, "ngram": 4}, pilot):
            burst(pilot, "down", "8", "enter", "down", "4", "enter")


async def test_the_form_sets_what_is_marked_and_refuses_in_place(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    stage = Room(path=path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: isinstance(stage.app.screen, SettingsScreen), pilot):
            await ask(pilot, "/settings")
        await pilot.press("down", *"99", "enter")
        async with brings(lambda: stage.engine.settings.parameters == {"window": 8}, pilot):
            await pilot.press("backspace", "backspace", "8", "enter")
        assert len(stage.engine.commands) == 1
        async with brings(lambda: stage.engine.settings.parameters.get("pool_prompt") is False, pilot):
            await pilot.press("down", "down", "down", "enter")
        async with brings(lambda: path.exists() and stage.app.screen is stage.screen, pilot):
            await pilot.press("ctrl+s", "escape")
    kept = SettingsFile(path).preferences
    assert (kept.decoder, kept.parameters) == (None, {"window": 8, "pool_prompt": False})  # demo begins with lookahead


def row_of(stage: Stage, name: str) -> str:
    """Mark the row of a setting in the form; return its text."""
    options = stage.app.screen.query_one(OptionList)
    rows = [str(option.prompt) for option in options.options]
    options.highlighted = next(place for place, row in enumerate(rows) if row.split()[0] == name)
    return rows[options.highlighted]


async def set_in_form(pilot: Driver, stage: Stage, name: str, value: str) -> None:
    """Type a value for a setting, and wait until its row has it."""
    row_of(stage, name)
    await pilot.pause()
    async with brings(lambda: value in row_of(stage, name), pilot):
        await pilot.press(*("full_stop" if letter == "." else letter for letter in value), "enter")


async def all_is_read_of(pilot: Driver, stage: Stage, name: str, last: str) -> None:
    """Mark a setting; what it may be, up to its last choice, has to be on the screen."""
    said = stage.app.screen.query_one(".said", Label)
    row_of(stage, name)
    await until(lambda: last in str(said.content), pilot)
    await pilot.pause()
    screen = " ".join(strip.text for strip in stage.app.screen._compositor.render_strips())
    assert all(word in screen.split() for word in str(said.content).split()), "a choice is cut"


async def test_the_form_lists_and_sets_whatever_the_users_file_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    stage = Room(FakeEngine(), FakeEngine(), path=path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: isinstance(stage.app.screen, SettingsScreen), pilot):
            await ask(pilot, "/settings")
        names = {str(option.prompt).split()[0] for option in stage.app.screen.query_one(OptionList).options}
        assert {name.replace("_", "-") for name in SETTINGS if name != "parameters"} <= names
        said = stage.app.screen.query_one(".said", Label)
        for name, value in {"max-new-tokens": "7", "theme": "nord", "look": "demo", "system": "Rhyme."}.items():
            await set_in_form(pilot, stage, name, value)
        row_of(stage, "look")
        async with brings(lambda: "look has to be hues or demo, not 'x'" in str(said.content), pilot):
            await pilot.pause()
            await pilot.press("x", "enter")
        async with brings(lambda: not stage.screen.view.side.display, pilot):
            row_of(stage, "panels")
            await pilot.pause()
            await pilot.press("enter")
        await all_is_read_of(pilot, stage, "decoder", "layer_skip")
        await all_is_read_of(pilot, stage, "theme", "tokyo-night")
        async with brings(lambda: stage.models == ["owner/x"], pilot):
            row_of(stage, "model")
            await pilot.pause()
            await pilot.press(*"owner", "slash", "x", "enter")
        await pilot.press("ctrl+s", "escape")
        await until(lambda: stage.activity == "ready", pilot)
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[0].max_new_tokens == 7
    kept = SettingsFile(path).preferences
    assert (kept.theme, kept.look, kept.panels, kept.max_new_tokens, kept.system) == (
        "nord",
        "demo",
        False,
        7,
        "Rhyme.",
    )


@pytest.mark.full
async def test_theme_look_and_panels_are_as_they_were_left(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    stage = Room(path=path)
    async with stage.app.run_test() as pilot:
        async with brings(lambda: SettingsFile(path).preferences.look == "demo", pilot):
            await ask(pilot, "/theme nord")
            await pilot.press("f2", "f4")
        await until(lambda: SettingsFile(path).preferences.theme == "nord", pilot)
    again = Room(path=path)
    async with again.app.run_test():
        assert (again.app.theme, again.app.palette.look, again.screen.view.side.display) == ("nord", Look.DEMO, False)


@pytest.mark.full
async def test_what_is_wrong_in_the_file_is_said_when_the_app_begins(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('theme = "none such"\nlook = 3\n')
    stage = Room(path=path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.notices, pilot)
        assert stage.notices[0].startswith("2 settings are left out: F1 lists them.")
    assert path.read_text() == 'theme = "none such"\nlook = 3\n'


async def test_auto_in_the_palette_is_auto() -> None:
    stage = Room()
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: stage.session.requested.decoder == "suffix", pilot):
            await ask(pilot, "/decoder suffix")
        commands = {command.title: command for command in stage.app.get_system_commands(stage.app.screen)}
        async with brings(lambda: stage.session.requested.decoder == "auto", pilot):
            commands["Decoder: auto"].callback()
        assert {"Model …", "System prompt …", "Save settings"} <= commands.keys()
        assert [name for name in commands if "window" in name.casefold()], "a newcomer looks for it there"


FENCED = "First:\n```python\na = 1\nb = 2\n```\nthen\n```\nlast\n```\n"


@pytest.mark.full
async def test_a_block_of_code_is_copied_from_the_last_answer_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.terminal.app_on_terminal.keep", lambda text: keep(text, tmp_path))
    stage = Room(FakeEngine(answers=("None here.", FENCED, "None here.", "```sh\nls\n```")))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        async with brings(lambda: "no block of code" in stage.notice, pilot):
            await ask(pilot, "/code")
        await answered(pilot, stage, "Two?", times=2)
        await answered(pilot, stage, "Three?", times=3)
        async with brings(lambda: stage.notice.startswith("1 line of code copied, block 2 of 2;"), pilot):
            await ask(pilot, "/code")
        assert stage.app.clipboard == "last" == (tmp_path / "copied.txt").read_text()
        async with brings(lambda: stage.notice.startswith("2 lines of Python copied, block 1 of 2;"), pilot):
            await ask(pilot, "/code 1")
        assert stage.app.clipboard == "a = 1\nb = 2"
        async with brings(lambda: stage.notice == "There is no block 'x': the answer has blocks 1 to 2.", pilot):
            await ask(pilot, "/code x")
        await answered(pilot, stage, "Four?", times=4)
        commands = {command.title: command for command in stage.app.get_system_commands(stage.app.screen)}
        await commands["Copy code"].callback()
        await until(lambda: stage.notice.startswith("1 line of shell copied;"), pilot)
        assert stage.app.clipboard == "ls"
