"""What a shell meets: input that never ends, a folder that was removed, short options, a list of commands."""

import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ladechat import __version__, checks
from ladechat.shell import cli, race
from tests.waiting import brings


class Terminal(io.StringIO):
    """Standard error, as a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def held_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """The writing end of the pipe that is standard input."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield pipe


def test_input_that_does_not_end_is_said_on_a_terminal_with_the_way_out(
    held_open: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "SECONDS_OF_SILENCE", 0.01)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    questions: list[str | None] = []
    asking = threading.Thread(target=lambda: questions.append(cli._with_pipe("hi")))
    with brings(lambda: "</dev/null" in terminal.getvalue()):
        asking.start()
    held_open.write("and this")
    held_open.close()
    asking.join()
    assert questions == ["hi\n\nand this"]
    assert terminal.getvalue().count("\n") == 1 and "Standard input is read" in terminal.getvalue()


def test_input_that_ends_in_time_is_not_spoken_of(held_open: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SECONDS_OF_SILENCE", 3600)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    held_open.close()
    assert cli._with_pipe("hi") == "hi"
    assert terminal.getvalue() == ""


def test_what_is_no_terminal_hears_nothing_of_it(held_open: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SECONDS_OF_SILENCE", 0)
    monkeypatch.setattr(sys, "stderr", script := io.StringIO())
    held_open.close()
    assert cli._with_pipe("hi") == "hi"
    assert script.getvalue() == ""


@pytest.mark.parametrize("command", [[], ["ask", "hi"], ["bench"], ["tune"], ["race", "hi"], ["engine"], ["learn"]])
def test_in_a_folder_that_was_removed_every_command_says_so(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = CliRunner().invoke(cli.app, command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "working directory was removed" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [[], ["ask"], ["train"], ["train", "sweep"]])
def test_a_short_option_asks_for_help(command: list[str]) -> None:
    short, long = (CliRunner().invoke(cli.app, [*command, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert "-h" in long.stdout


def test_a_short_option_asks_for_the_version() -> None:
    assert CliRunner().invoke(cli.app, ["-V"]).stdout == f"ladechat {__version__}\n"


@pytest.mark.parametrize("group", [[], ["train"]])
@pytest.mark.parametrize("columns", [40, 80])
def test_commands_are_listed_with_all_of_their_sentence(group: list[str], columns: int) -> None:
    result = CliRunner().invoke(cli.app, [*group, "--help"], terminal_width=columns)
    listed = result.stdout.partition("Commands:\n")[2]
    assert listed and "..." not in listed
    said = " ".join(listed.split())
    assert ("a short training at each, with accuracy and similarity" if group else "goes to standard error") in said


def test_what_a_film_lacks_is_said_before_a_race_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("PIL", "ladechat.export.glyphs"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(race, "engine_of", lambda *_: pytest.fail("an engine was made"))
    result = CliRunner().invoke(cli.app, ["race", "hi", "--export", str(tmp_path / "x.gif")])
    assert result.exit_code == 2 and "Pillow" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(("columns", "width"), [("0", 80), ("-5", 80), ("9" * 30, 80), ("²", 80), ("70", 70)])
def test_columns_that_are_none_make_no_answer_vanish(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()

    def say(**_: object) -> None:
        Console(file=out).print("Hi.")

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(cli, "app", say)
    monkeypatch.setattr(cli, "make_streams_safe", lambda: None)
    cli.main()
    assert out.getvalue() == "Hi.\n" and Console(file=out).width == width
