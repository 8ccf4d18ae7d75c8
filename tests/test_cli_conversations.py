"""The command line of the app: which conversation it goes on with, with which model, and what it keeps."""

from pathlib import Path
from typing import Any

import pytest

from ladechat.engine_options import EngineOptions
from ladechat.preferences import SettingsFile
from ladechat.session.conversations.store import ConversationStore
from ladechat.shell import cli
from tests.command_line import check_refused, check_runs
from tests.session.conversations import exchange, forbid, write


@pytest.fixture
def started_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Makes the command believe in a terminal, and takes down what is kept and opened; the data folder is empty."""
    calls: list[dict[str, Any]] = []

    def run(options: EngineOptions, *_: object, **given: Any) -> int:
        calls.append({"options": options, **given})
        return 0

    monkeypatch.setattr("ladechat.app.run_chat", run)
    monkeypatch.setattr(cli, "in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.checks.drawn_in_terminal", lambda: True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return calls


def store_folder() -> Path:
    """Where conversations are saved."""
    folder = ConversationStore().folder
    folder.mkdir(parents=True)
    return folder


def test_the_latest_conversation_is_gone_on_with(started_with: list[dict[str, Any]], tmp_path: Path) -> None:
    folder = store_folder()
    write(folder, "a", exchange("Old?"), when="2020-01-01T12:00:00")
    write(folder, "z", exchange("Older?"), when="2019-01-01T12:00:00")
    check_runs("--continue")
    check_runs()
    assert [given["opened"] and given["opened"].title for given in started_with] == ["Old?", None]


@pytest.mark.parametrize(
    ("options", "settings", "model", "decoder", "instead"),
    [
        ([], "", "owner/x", "auto", ("demo", "lookahead")),
        ([], 'model = "owner/y"', "owner/x", "auto", ("owner/y", "auto")),
        ([], 'decoder = "suffix"', "owner/x", "suffix", ("demo", "suffix")),
        (["--decoder", "lookahead"], "", "owner/x", "lookahead", ("demo", "lookahead")),
        (["-W", "7"], "", "owner/x", "lookahead", ("demo", "lookahead")),
        (["--model", "demo"], "", "demo", "lookahead", None),
        (["--model", "owner/x"], "", "owner/x", "auto", None),
    ],
)
def test_a_conversation_goes_on_with_the_model_that_answered_it_unless_another_is_named(
    options: list[str],
    settings: str,
    model: str,
    decoder: str,
    instead: tuple[str, str] | None,
    started_with: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = SettingsFile().path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings)
    write(store_folder(), "a", exchange("Old?", model="owner/x"))
    check_runs("--continue", *options)
    (given,) = started_with
    engine, other = given["options"], given["instead"]
    assert (engine.model, engine.settings.decoder) == (model, decoder)
    assert (other and (other.model, other.settings.decoder)) == instead


def test_a_model_that_was_named_by_a_relative_path_is_found_from_any_folder(
    started_with: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "here" / "mine").mkdir(parents=True)
    (tmp_path / "here" / "demo").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("mine", "./mine/", "../here/mine", "owner/x", "demo", "~/mine", "x" * 5000):
        check_runs("--model", name)
    named = [given["options"].model for given in started_with]
    assert named[:2] == [str(tmp_path / "here" / "mine")] * 2
    assert Path(named[2]).is_absolute() and Path(named[2]).samefile(tmp_path / "here" / "mine")
    assert named[3:] == ["owner/x", "demo", "~/mine", "x" * 5000]


def test_only_a_system_prompt_of_the_command_line_is_for_a_conversation_that_goes_on(
    started_with: list[dict[str, Any]],
) -> None:
    write(store_folder(), "a", exchange("Old?"))
    for options in ([], ["--system", "Be brief."]):
        check_runs("--continue", *options)
    assert [given["instructed"] for given in started_with] == [None, "Be brief."]


def test_nothing_is_kept_where_that_is_asked_for(started_with: list[dict[str, Any]]) -> None:
    for options in ([], ["--no-save"], ["--no-save", "--warm-start"], ["--no-warm-start"]):
        check_runs(*options)
    assert [given["store"] is None for given in started_with] == [False, True, True, False]
    assert [given["options"].warm_start for given in started_with] == [True, False, False, False]


@pytest.mark.parametrize(
    ("options", "named"),
    [(["--continue"], "There is no conversation to go on with"), (["--continue", "--no-save"], "give one of them")],
)
def test_what_cannot_be_gone_on_with_is_said_in_one_sentence(
    options: list[str], named: str, started_with: list[dict[str, Any]]
) -> None:
    check_refused(*options, says=named)
    assert started_with == []


@pytest.mark.parametrize("what", ["folder", "latest", "a file in its place"])
def test_conversations_that_cannot_be_read_are_not_said_to_be_none_nor_is_an_older_one_gone_on_with(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_with: list[dict[str, Any]]
) -> None:
    folder = ConversationStore().folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    if what == "a file in its place":
        named = folder
        folder.touch()
    else:
        write(folder, "a", exchange("Old?"))
        latest = write(folder, "b", exchange("New?"), when="2031-01-01T12:00:00")
        named = folder if what == "folder" else latest
        forbid(named, monkeypatch)
    way_out = ("chmod",) if what != "a file in its place" else ()
    check_refused("--continue", says=(f"{named} cannot be read: ", *way_out))
    assert started_with == []


def test_a_conversation_goes_on_with_the_command_of_the_engine_whatever_model_answered_it(
    started_with: list[dict[str, Any]],
) -> None:
    write(store_folder(), "a", exchange("Old?", model="owner/x"))
    check_runs("--continue", "--engine", "sh -c true")
    (given,) = started_with
    assert given["opened"].title == "Old?" and given["instead"] is None
    assert given["options"].engine_command.words == ("sh", "-c", "true")


def test_a_preset_has_its_settings_as_if_they_were_typed(
    started_with: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = SettingsFile().path
    preset = path.parent / "presets" / "pirate.toml"
    preset.parent.mkdir(parents=True)
    path.write_text('model = "owner/usual"\ntemperature = 0.1\nmax_new_tokens = 5')
    preset.write_text(
        'model = "owner/x"\ndecoder = "suffix"\nsystem = "Rhyme."\ntemperature = 0.7\n[parameters]\nnodes = 4'
    )
    write(store_folder(), "a", exchange("Old?", model="owner/old"))
    check_runs("--preset", "pirate")
    check_runs("--preset", "pirate", "--model", "demo", "--temperature", "0")
    check_runs("--preset", "pirate", "--continue")
    plain, typed, continued = started_with
    settings = plain["options"].settings
    assert (plain["options"].model, settings.decoder, settings.parameters) == ("owner/x", "suffix", {"nodes": 4})
    assert settings.temperature == 0.7 and plain["settings_file"].begun_with == "pirate"
    assert (typed["options"].model, typed["options"].settings.temperature) == ("demo", 0)
    assert (continued["options"].model, continued["instructed"]) == ("owner/x", "Rhyme.")
    check_refused("--preset", "gone", says="There is no preset gone; there are: pirate.")
    check_refused("--preset", "a/b", says="named by letters, digits, - and _")
    preset.write_text("temperature = 9")
    check_refused("ask", "One?", "--preset", "pirate", says=("pirate.toml, line 1", "from 0 to 5, not 9"))
