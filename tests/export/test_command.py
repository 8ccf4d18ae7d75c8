"""The command line of an export: the format by the name of the file, and a sentence for what cannot be."""

import json
import stat
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.style import Style
from typer.testing import CliRunner, Result

from ladechat.export.cells import Cell
from ladechat.export.command import WRITERS_OF_TALKS
from ladechat.export.conversation import Talk
from ladechat.export.film import Frame, Reel
from ladechat.formats import FILMS, FORMATS
from ladechat.protocol import Step
from ladechat.session.recordings.recording import Recording
from ladechat.shell import cli
from tests.export.talks import hostile, two_turns
from tests.session.streams import GOLDEN
from tests.test_refusals import RAW_CONTROLS

STEPS = sum(isinstance(event, Step) for event in Recording.read(GOLDEN[-1]).events)


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, ["export", *map(str, arguments)])


def check_refused(result: Result, named: str) -> None:
    assert result.exit_code == 2 and named in result.stderr, result.output
    assert result.stderr.count("\n") == 1 and not result.stdout


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("talk.cast", '{"version": 3,'),
        ("talk.html", "<!doctype html>"),
        ("talk.SVG", "<svg "),
        ("talk.md", "# A conversation with demo model\n"),
        ("talk.json", '{\n "format": "ladechat-conversation"'),
    ],
)
def test_the_ending_of_the_name_says_the_format(
    name: str, begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Frame(0.0, ((Cell("a", Style()),),))
    monkeypatch.setattr("ladechat.export.film.shoot", lambda *_: Reel([frame], (1, 1), "", []))
    monkeypatch.setattr("ladechat.export.film.photograph", lambda *_: "<svg />")
    result = export(GOLDEN[-1], tmp_path / name)
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_format_that_is_named_wins_over_the_ending(tmp_path: Path) -> None:
    assert export(GOLDEN[-1], tmp_path / "talk.html", "--format", "json").exit_code == 0
    assert json.loads((tmp_path / "talk.html").read_text())["turns"]
    assert export(GOLDEN[-1], tmp_path / "talk", "--format", "cast2", "--idle", "0", "--size", "60x16").exit_code == 0
    header = json.loads((tmp_path / "talk").read_text().splitlines()[0])
    assert (header["version"], header["width"], header["height"]) == (2, 60, 16)


def test_every_format_that_is_offered_is_written() -> None:
    assert set(FORMATS) == {*FILMS, "svg", *WRITERS_OF_TALKS}


def test_a_picture_shows_the_step_that_was_asked_for_and_fetches_nothing(tmp_path: Path) -> None:
    assert export(GOLDEN[-1], tmp_path / "third.svg", "--step", "3", "--size", "80x20").exit_code == 0
    assert export(GOLDEN[-1], tmp_path / "last.svg", "--size", "80x20").exit_code == 0
    third, last = (
        "".join(ElementTree.fromstring((tmp_path / name).read_text(encoding="utf-8")).itertext()).replace("\xa0", " ")
        for name in ("third.svg", "last.svg")
    )
    assert f"pass 3 of {STEPS}" in third and f"pass {STEPS} of {STEPS}" in last
    assert "font-face" not in third and "url(http" not in (tmp_path / "third.svg").read_text(encoding="utf-8")


def test_pauses_are_shortened_in_a_film_and_in_no_picture(tmp_path: Path) -> None:
    assert export(GOLDEN[1], tmp_path / "talk.svg", "--size", "60x16").exit_code == 0
    assert "0:15" in (tmp_path / "talk.svg").read_text(encoding="utf-8")
    film = ["--format", "cast2", "--idle", "0.5", "--size", "60x16"]
    assert export(GOLDEN[1], tmp_path / "talk.cast", *film).exit_code == 0
    events = [json.loads(line) for line in (tmp_path / "talk.cast").read_text().splitlines()[1:]]
    times = [seconds for seconds, code, _ in events if code == "o"]
    assert 2 < times[-1] < 10 and max(after - before for before, after in pairwise(times)) <= 0.6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["talk.txt"], "does not say which format to write; end it in .cast"),
        (["talk"], "does not say which format"),
        (["talk.html", "--format", "pdf"], "There is no format 'pdf'; use --format cast, "),
        (["talk.svg", "--size", "100"], "--size is columns and rows, from 40x10 to 400x200"),
        (["talk.svg", "--size", "39x30"], "--size is columns and rows"),
        (["talk.svg", "--size", "9999x9999"], "--size is columns and rows"),
        (["talk.cast", "--speed", "0"], "--speed has to be from 0.1 to 100, not 0"),
        (["talk.cast", "--speed", "nan"], "--speed has to be from 0.1 to 100"),
        (["talk.cast", "--idle", "-1"], "--idle has to be from 0 to 86,400, not -1"),
        (["talk.svg", "--step", "0"], "--step counts passes from 1"),
        (["talk.svg", "--step", f"{STEPS + 1}"], f"has {STEPS} passes, so there is no pass {STEPS + 1}"),
        (["talk.html", "--speed", "2"], "--speed is for cast, cast2 and gif, and changes nothing in html"),
        (["talk.cast", "--step", "2"], "--step is for svg"),
        (["talk.json", "--size", "80x24"], "--size is for cast, cast2, gif and svg"),
        (["missing/talk.md"], "There is no folder missing; make it first"),
        (["."], "does not say which format"),
        ([".", "--format", "md"], "is no file"),
        (["a" * 300 + ".md"], "cannot be written: File name too long"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_exported_is_told_in_one_sentence(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(export(GOLDEN[-1], *arguments), named)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "cannot be read: No such file"),
        (b"hello\n", "is not a recording"),
        (b'{"event":"header","format":"ladechat","version":"9.0"}\n', "9.0"),
    ],
)
def test_what_is_no_recording_is_told_in_one_sentence(content: bytes | None, named: str, tmp_path: Path) -> None:
    source = tmp_path / "talk.jsonl"
    if content is not None:
        source.write_bytes(content)
    check_refused(export(source, tmp_path / "talk.html"), named)
    assert not (tmp_path / "talk.html").exists()


@pytest.mark.parametrize("there", ["a file", "a link", "a link to nothing"])
def test_nothing_is_overwritten_unless_that_is_asked_for_and_a_link_stays_one(there: str, tmp_path: Path) -> None:
    out = tmp_path / "talk.md"
    target = out if there == "a file" else tmp_path / "target.md"
    if out != target:
        out.symlink_to(target)
    if there != "a link to nothing":
        target.write_text("mine")
    check_refused(export(GOLDEN[-1], out), "exists already; give another name, or --force")
    assert target.exists() == (there != "a link to nothing") and (not target.exists() or target.read_text() == "mine")
    assert export(GOLDEN[-1], out, "--force").exit_code == 0
    assert out.is_symlink() == (there != "a file") and target.read_text().startswith("# A conversation")


def test_what_appears_while_a_film_is_drawn_is_not_overwritten_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "talk.md"

    def drawn_slowly(talk: Talk) -> str:
        out.write_text("mine")
        return "an export"

    monkeypatch.setattr("ladechat.export.command.WRITERS_OF_TALKS", {"md": drawn_slowly})
    check_refused(export(GOLDEN[-1], out), "exists already")
    assert out.read_text() == "mine"


def test_a_recording_is_never_overwritten_by_its_export(tmp_path: Path) -> None:
    source = two_turns(tmp_path).path
    link = tmp_path / "link.json"
    link.symlink_to(source)
    before = source.read_bytes()
    for out in (source, link):
        check_refused(export(source, out, "--format", "json", "--force"), "is the recording itself")
    assert source.read_bytes() == before


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "talk.md"
    out.write_text("mine")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    check_refused(export(GOLDEN[-1], out, "--force"), "cannot be written: No space left on device")
    assert out.read_text() == "mine" and list(tmp_path.iterdir()) == [out]


def test_of_a_broken_recording_what_can_be_read_is_exported_with_a_notice(tmp_path: Path) -> None:
    source = tmp_path / "talk.jsonl"
    source.write_bytes(GOLDEN[-1].read_bytes()[:-2000])
    for name, options in (
        ("talk.html", []),
        ("talk.md", []),
        ("talk.json", []),
        ("talk.cast", ["--idle", "0", "--size", "60x16"]),
    ):
        result = export(source, tmp_path / name, *options)
        assert result.exit_code == 0 and "the last line is not complete and is left out" in result.stderr
        assert "the last line is not complete and is left out" in (tmp_path / name).read_text(encoding="utf-8")


def test_notices_on_the_terminal_steer_nothing(tmp_path: Path) -> None:
    source = tmp_path / "\x1b[31mred.jsonl"
    source.write_bytes(hostile(tmp_path).path.read_bytes()[:-2])
    result = export(source, tmp_path / "talk.json")
    assert result.exit_code == 0 and "\\x1b" in result.stderr and not RAW_CONTROLS.search(result.output)
