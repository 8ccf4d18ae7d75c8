"""The page of a race: all that was measured is in it, for each decoder, and nothing in it but text."""

import re
from pathlib import Path

from typer.testing import CliRunner

from ladechat.export.command import run_race
from ladechat.export.race_page import race_page
from ladechat.protocol import Message
from ladechat.session.measuring import Measuring
from ladechat.session.race import Lane
from ladechat.shell import cli
from ladechat.widgets.cells import visible
from ladechat.widgets.flow import safe
from tests.export.pages import Page
from tests.export.talks import HOSTILE
from tests.export.test_races import QUESTION, measured
from tests.fake_engine import FakeEngine
from tests.session.test_race import lane
from tests.test_refusals import RAW_CONTROLS

PIECES = [[" one"], [" two", " three"], [" four", " five", " six"]]


def race_of(*lanes: Lane, question: str = QUESTION) -> Measuring:
    measuring = Measuring(FakeEngine(), [Message(role="user", content=question)])
    measuring.lanes = list(lanes)
    return measuring


def test_every_token_of_every_decoder_is_in_the_page_with_its_pass() -> None:
    race = measured()
    page = Page(race_page(race))
    assert len(page.answers) == len(race.lanes) == 2
    for shown, tokens, one in zip(page.answers, page.tokens, race.lanes, strict=True):
        assert [text for _, text in shown][1:] == ["".join(step.pieces) for step in one.steps][1:]
        assert [text for _, text in tokens] == [visible(piece) for step in one.steps for piece in step.pieces]
    assert "1st" not in "".join(page.texts["h2"]), "who leads depends on the moment, which only a script knows"
    assert any("tokens identical" in text for text in page.texts["p"])


def test_a_pass_is_a_bar_as_wide_as_it_took_and_as_high_as_what_it_brought_on_one_scale_for_all() -> None:
    slow = lane("autoregressive", [[piece] for step in PIECES for piece in step], ms=[10.0] * 6)
    page = race_page(race_of(slow, lane("lookahead", PIECES, ms=[12.5, 20.0, 30.0])))
    first, second = re.findall(r"<svg.*?</svg>", page)
    bars = [
        [float(each) for each in bar]
        for bar in re.findall(r' x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)"', second)
    ]
    assert bars == [[0.0, 2.0, 12.5, 1.0], [12.5, 1.0, 20.0, 2.0], [32.5, 0.0, 30.0, 3.0]]
    assert first.count("<rect") == 6
    scales = set(re.findall(r'viewBox="(.+?)"', page))
    assert scales == {"0 0 62.50 3"}


def test_both_clocks_of_the_app_are_there_with_the_pace_that_the_app_begins_with() -> None:
    hours, moments = (
        race_page(race_of(lane("lookahead", PIECES, [ms] * 3), lane("auto", PIECES))) for ms in (1e6, 1e2)
    )
    assert 'data-passes="8"' in hours and 'data-seconds="1"' in hours
    assert 'data-seconds="0.1"' in moments, "a race too short to be seen begins in slow motion"
    names = re.findall(r'data-name="(.+?)"', hours)
    assert names == ["pass by pass", "measured time"]


def test_what_a_race_says_stays_text() -> None:
    hostile = lane("lookahead", [[" a"], [HOSTILE, " b"]])
    content = race_page(race_of(hostile, lane("auto", [[" a"], [HOSTILE, " b"]]), question=HOSTILE))
    page = Page(content)
    assert not RAW_CONTROLS.search(content) and len(page.texts["script"]) == 1
    assert safe(HOSTILE) in "".join(text for _, text in page.answers[0])
    assert page.policy.startswith("default-src 'none';") and "unsafe" not in page.policy
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp", content)


def test_a_decoder_that_was_not_measured_has_no_lane() -> None:
    page = Page(race_page(race_of(lane("lookahead", PIECES), lane("auto", []))))
    assert len(page.answers) == 1


def test_a_race_becomes_a_page_and_a_size_for_it_is_refused(tmp_path: Path) -> None:
    run_race(measured("The"), tmp_path / "race.html", force=False)
    assert (tmp_path / "race.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    arguments = ["race", QUESTION, "--export", str(tmp_path / "other.html"), "--size", "90x20"]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "--size is for films and pictures, and changes nothing in a page; leave it out." in result.stderr
