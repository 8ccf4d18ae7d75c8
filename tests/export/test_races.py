"""A race as a film and as a picture: from its start to its seal, drawn as it was measured."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladechat.export import glyphs
from ladechat.export.cells import Screen
from ladechat.export.command import ExportRefused, run_race
from ladechat.export.film import shoot_race
from ladechat.protocol import Message
from ladechat.session.measuring import Measuring
from ladechat.shell import cli, race
from tests.fake_engine import FakeEngine

QUESTION = "What is the n-gram pool?"


def measured(answer: str = "The n-gram pool") -> Measuring:
    engine = FakeEngine(answers=(answer,))
    measuring = Measuring(engine, [Message(role="user", content=QUESTION)], ("autoregressive", "lookahead"))
    asyncio.run(measuring.run())
    return measuring


def text_of(screen: Screen) -> str:
    return "\n".join("".join(cell.text for cell in row) for row in screen)


def test_a_film_of_a_race_goes_from_its_start_to_its_seal_pass_by_pass() -> None:
    measuring = measured()
    reel = shoot_race(measuring, (100, 24))
    first, last = text_of(reel.frames[0].screen), text_of(reel.frames[-1].screen)
    passes = max(len(lane.steps) for lane in measuring.lanes)
    assert QUESTION in first and f"pass 0 of {passes}" in first and "identical" not in first
    assert f"pass {passes} of {passes}" in last and "tokens identical" in last
    assert "Leave" not in last  # a key of the footer
    assert reel.frames[-1].seconds == pytest.approx(passes / 8, abs=0.1)  # eight passes a second


def test_a_race_becomes_a_file_that_overwrites_nothing(tmp_path: Path) -> None:
    measuring = measured("The")
    picture = tmp_path / "race.svg"
    run_race(measuring, picture, force=False)
    assert "identical" in picture.read_text(encoding="utf-8")
    with pytest.raises(ExportRefused, match="exists already"):
        run_race(measuring, picture, force=False)
    for name, begins in (("race.gif", b"GIF89a"), ("race.cast", b'{"version": 3')):
        run_race(measuring, tmp_path / name, force=False)
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_race_that_is_exported_is_measured_first_and_its_table_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "engine_of", lambda _: FakeEngine(answers=("The",)))
    monkeypatch.setattr(race, "_in_terminal", lambda: True)
    monkeypatch.setattr(race, "_measured", lambda measuring: measuring.run())
    sized = ["--export", str(tmp_path / "race.svg"), "--size", "90x20"]
    result = CliRunner().invoke(cli.app, ["race", QUESTION, *sized])
    assert result.exit_code == 0 and "tokens identical" in result.stdout
    picture = (tmp_path / "race.svg").read_text(encoding="utf-8")
    assert "identical" in picture and picture.count('clip-path="url(#terminal-') > 0
    assert "line-19" in picture and "line-20" not in picture


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--export", "race.md"], "end it in .cast, .gif, .html or .svg"),
        (["--export", "missing/race.gif"], "There is no folder missing"),
        (["--export", "there.gif"], "exists already; give another name, or --force"),
        (["--force"], "--force overwrites what --export names"),
        (["--size", "90x20"], "--size is for the file that --export names"),
        (["--export", "race.gif", "--size", "big"], "--size is columns and rows, from 40x10 to 400x200"),
    ],
)
def test_what_cannot_be_exported_is_refused_before_anything_is_measured(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.gif").touch()
    result = CliRunner().invoke(cli.app, ["race", QUESTION, *arguments])
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1


def test_a_gif_that_cannot_be_painted_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glyphs, "FONTS", ())
    monkeypatch.setattr(race, "Measuring", lambda *_: pytest.fail("it would be measured"))
    result = CliRunner().invoke(cli.app, ["race", QUESTION, "--export", str(tmp_path / "race.gif")])
    assert result.exit_code == 2 and "install DejaVu Sans Mono" in result.stderr and result.stderr.count("\n") == 1
