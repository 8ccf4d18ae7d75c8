"""Presets: what acts now is saved under a name, taken again, listed, and removed."""

from pathlib import Path

from ladechat.preferences import SettingsFile
from ladechat.protocol import Configure
from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Driver, Room, Stage, answered, ask
from tests.app.test_in_effect import said
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press


def preset(folder: Path, name: str, text: str) -> Path:
    """Write the file of a preset."""
    path = folder / "presets" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def listed(stage: Stage) -> list[str]:
    """The rows of the list above the prompt."""
    completions = stage.app.query_one(Completions)
    return [str(option.prompt) for option in completions.options] if completions.display else []


async def set_up(pilot: Driver, stage: Stage) -> None:
    """Make settings of one's own, and save them as the preset "pirate"."""
    await ask(pilot, "/system Answer as a pirate.", brings=lambda: "Answer as a pirate" in said(stage))
    await ask(pilot, "/temperature 0.7", brings=lambda: stage.session.requested.temperature == 0.7)
    await ask(pilot, "/set W 7", brings=lambda: stage.session.requested.parameters == {"window": 7})
    await ask(pilot, "/limit 99", brings=lambda: "at most 99" in said(stage))
    await ask(pilot, "/save pirate", brings=lambda: said(stage).startswith("preset: pirate (/preset) · system: "))


async def test_what_was_saved_under_a_name_is_taken_again_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(path=path).ready(size=(120, 40)) as (pilot, stage):
        await set_up(pilot, stage)
        assert "ladechat --preset pirate begins with it" in stage.notice
    assert not path.exists(), "the settings of the next start are others"
    async with Room(path=path).ready(size=(120, 40)) as (pilot, stage):
        assert said(stage) == ""
        await ask(pilot, "/set G 3", brings=lambda: stage.session.requested.parameters == {"guesses": 3})
        await ask(pilot, "/preset pirate", brings=lambda: said(stage).startswith("preset: pirate (/preset) · system"))
        settings, conversation = stage.session.requested, stage.session.conversation
        assert (settings.decoder, settings.temperature) == ("lookahead", 0.7)
        assert settings.parameters["window"] == 7 and settings.parameters["guesses"] != 3
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[0].messages[0].content == "Answer as a pirate."
        assert stage.engine.questions[0].max_new_tokens == 99
        await ask(pilot, "/temperature 0", brings=lambda: said(stage).startswith("preset: pirate, changed"))
        await press(pilot, "ctrl+l", brings=lambda: "One?" not in stage.text)
        assert conversation.system == "Answer as a pirate.", "new conversations begin with it too"


async def test_a_preset_with_a_model_is_taken_once_that_is_found_and_not_if_it_is_not(tmp_path: Path) -> None:
    preset(tmp_path, "big", 'model = "owner/x"\ndecoder = "suffix"\ntemperature = 0.5\nsystem = "Be big."')
    other = FakeEngine(hold_loading=True)
    async with Room(FakeEngine(), other, path=tmp_path / "settings.toml").ready(size=(120, 40)) as (pilot, stage):
        await ask(pilot, "/preset big", brings=lambda: stage.models == ["owner/x"])
        assert said(stage) == "" and not any(isinstance(one, Configure) for one in stage.started[0].commands)
        async with brings(lambda: said(stage) == "preset: big (/preset) · system: Be big. (/system)", pilot):
            other.finish_loading()
        assert (other.settings.decoder, other.settings.temperature) == ("suffix", 0.5)
        assert stage.session.conversation.model == "owner/x"
    missing = FakeEngine(hold_loading=True)
    async with Room(FakeEngine(), missing, path=tmp_path / "settings.toml").ready() as (pilot, stage):
        await ask(pilot, "/preset big", brings=lambda: stage.models == ["owner/x"])
        async with brings(lambda: stage.prompt == "/preset big", pilot):
            missing.fail_fatally("model_not_found")
        assert stage.session.requested.temperature == 0 and said(stage) == ""


async def test_presets_are_listed_with_what_they_have_and_completed(tmp_path: Path) -> None:
    preset(tmp_path, "brief", 'system = "Be brief."')
    preset(tmp_path, "broken", "temperature = 9")
    preset(tmp_path, "no name", "")
    async with Room(path=tmp_path / "settings.toml").ready(size=(120, 40)) as (pilot, stage):
        await ask(pilot, "/preset", brings=lambda: len(listed(stage)) == 2)
        assert stage.prompt == "/preset "
        brief, broken = listed(stage)
        assert "/preset brief" in brief and "demo model" in brief and "Be brief." in brief
        assert "temperature has to be a number from 0 to 5, not 9" in broken
        await press(pilot, "b", "r", "i", "tab", brings=lambda: stage.prompt == "/preset brief")
        await press(
            pilot, "enter", brings=lambda: said(stage) == "preset: brief (/preset) · system: Be brief. (/system)"
        )
        await ask(pilot, "/remove-preset brief", brings=lambda: stage.notice.startswith("Removed; "))
        assert SettingsFile(tmp_path / "settings.toml").presets == ["broken"]
        assert (tmp_path / "presets" / "brief.removed").read_text() == 'system = "Be brief."'


async def test_names_and_files_that_are_no_good_are_refused_in_a_sentence_and_change_nothing(tmp_path: Path) -> None:
    async with Room(path=tmp_path / "settings.toml").ready() as (pilot, stage):
        await ask(pilot, "/preset", brings=lambda: "There is no preset yet: /save NAME" in stage.notice)
        broken = preset(tmp_path, "broken", "temperature = 9\nsystem = 'x'")
        preset(tmp_path, "torn", "temperature = [")
        fault = f"{broken}, line 1: temperature has to be a number from 0 to 5, not 9."
        await ask(pilot, "/preset broken", brings=lambda: stage.notice.endswith(fault))
        assert stage.prompt == "/preset broken"
        stage.app.query_one(Prompt).clear()
        await ask(pilot, "/preset torn", brings=lambda: "torn.toml is not TOML" in stage.notice)
        await ask(pilot, "/preset gone", brings=lambda: "no preset gone; there are: broken, torn." in stage.notice)
        await ask(pilot, "/save ../up", brings=lambda: "named by letters, digits, - and _" in stage.notice)
        await ask(pilot, "/remove-preset gone", brings=lambda: "no preset gone to remove" in stage.notice)
        assert stage.session.requested == stage.settings[0] and said(stage) == ""
        (tmp_path / "presets" / "taken.toml").mkdir()
        await ask(pilot, "/save taken", brings=lambda: "taken.toml" in stage.notice)
        assert stage.session.conversation.system == ""
