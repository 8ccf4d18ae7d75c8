"""The page of the lessons: each card, answer and panel is what the app shows of a run, and nothing in it but text."""

import base64
import json
import re
import zlib
from dataclasses import replace as changed
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.style import Style
from textual.geometry import Region
from typer.testing import CliRunner

from ladechat.export.cells import Cell
from ladechat.export.lesson_page import PHASES, lesson_page
from ladechat.export.lessons import ShownLessons, shoot_lessons
from ladechat.export.pictures import Looks, part_of
from ladechat.lessons.lesson import MISSED, Phase
from ladechat.lessons.scene import Predict, Task
from ladechat.lessons.scenes import SCENES
from ladechat.screens.learn import lesson_session
from ladechat.shell import cli, learn as learn_command
from ladechat.widgets.flow import safe
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.panels.speed_panel import SpeedPanel
from tests.app.test_learn import session_of
from tests.export.pages import Page
from tests.export.talks import HOSTILE
from tests.fake_engine import FakeEngine
from tests.test_refusals import RAW_CONTROLS

ANSWER = "The window writes n-grams into the pool."


@cache
def shown() -> ShownLessons:
    """The last two scenes, with a scripted engine."""
    return shoot_lessons(session_of(FakeEngine(answers=(ANSWER,))), len(SCENES) - 2)


@cache
def content() -> str:
    return lesson_page(shown())


def film() -> dict[str, Any]:
    """What the page's script plays."""
    packed = re.search(r'class="film">(.+?)</script>', content())
    assert packed is not None
    unpacked: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    return unpacked


def test_a_film_of_the_lessons_stops_at_every_card_of_every_scene_and_shows_every_step_between() -> None:
    lessons = shown()
    assert [each.scene for each in lessons.scenes][:2] == list(SCENES[-2:])
    assert any(card.outcome is not None for each in lessons.scenes for card in each.cards)
    for each in lessons.scenes:
        assert len(each.cards) == len(each.scene.cards)
        assert len(each.runs) == bool(each.runs) + sum(isinstance(card, Task) for card in each.scene.cards)
        for card, real in zip(each.cards, each.scene.cards, strict=True):
            assert card.text
            assert bool(card.question) == (card.hides or isinstance(real, Task))
            assert card.choices == (real.choices if card.hides and isinstance(real, Predict) else ())
            assert card.hides or card.text == MISSED or not isinstance(real, Predict)
        for run, answer in enumerate(each.runs, start=1):
            seen = [moment.steps for moment in each.moments if moment.runs == run]
            assert sorted(set(seen) | {0}) == list(range(answer.passes + 1)) and seen == sorted(seen)
        explained = [moment.card for moment in each.moments if moment.phase is Phase.EXPLAINED]
        assert explained == list(range(len(each.cards)))


def test_a_task_is_done_as_a_reader_would_do_it() -> None:
    for each in shown().scenes[:2]:
        task = next(card for card in each.scene.cards if isinstance(card, Task))
        before, after = (run.settings for run in each.runs)
        assert before is not None and after is not None
        assert task.missing(before) and not task.missing(after)


def test_the_page_holds_every_card_and_every_token_and_hides_what_a_prediction_asks_for() -> None:
    page = Page(content())
    runs = [run for each in shown().scenes for run in each.runs]
    assert len(page.answers) == len(runs)
    for spans, run in zip(page.answers, runs, strict=True):
        text = "".join(piece for step in run.steps for piece in step.pieces)
        assert "".join(text for _, text in spans) == safe(text.lstrip())
        assert len(spans) == run.passes
    cards = [card for each in shown().scenes for card in each.cards]
    texts = page.texts["p"]
    assert all(card.text in texts and (not card.question or card.question in texts) for card in cards)
    outcomes = re.findall(r'<details class="outcome" data-outcome="(.+?)">(.+?)</details>', content(), re.DOTALL)
    predicted = [card for card in cards if card.hides]
    assert [number for number, _ in outcomes] == [str(card.outcome) for card in predicted]
    folded = [Page(f"<div>{inside}</div>").texts["p"] for _, inside in outcomes]
    assert all(card.text in inside for card, inside in zip(predicted, folded, strict=True))


def test_the_film_in_the_page_is_that_of_the_panels() -> None:
    unpacked, scenes = film(), shown().scenes
    for moments, each in zip(unpacked["scenes"], scenes, strict=True):
        for (card, phase, runs, steps, rows), moment in zip(moments, each.moments, strict=True):
            assert (card, PHASES[phase], runs, steps) == moment[:-1]
            assert tuple(tuple(map(tuple, unpacked["rows"][row])) for row in rows) == moment.picture
    titles = "\n".join("".join(text for _, text in row) for row in scenes[1].moments[-1].picture)
    assert LensPanel.NAME in titles and SpeedPanel.NAME in titles


def test_a_scene_in_which_nothing_is_asked_has_no_panels() -> None:
    silent = changed(shown().scenes[0], runs=[])
    page = Page(lesson_page(shown()._replace(scenes=[silent])))
    assert page.answers == [] and "pre" not in page.texts
    assert silent.cards[0].text in page.texts["p"]


def test_every_look_has_its_colours_on_both_backgrounds() -> None:
    looks = {look for row in film()["rows"] for look, text in row if text.strip()}
    assert looks and {content().count(f".s{look}{{color:#") for look in looks} == {2}


def test_a_look_is_known_by_its_dark_style_and_cues_stay() -> None:
    dark, light = Style(color="#eeeeee", bgcolor="#111111"), Style(color="#222222", bgcolor="#ffffff")
    marked, light_marked = dark + Style(bgcolor="#333333", bold=True), light + Style(bgcolor="#cccccc", bold=True)
    screen = ((Cell("a", dark), Cell(" ", dark), Cell("b", marked), Cell(" ", dark)),)
    looks = Looks()
    assert looks.unknown(screen)
    looks.learn(screen, ((Cell("a", light), Cell(" ", light), Cell("b", light_marked), Cell(" ", light)),))
    assert not looks.unknown(screen)
    assert looks.picture(screen) == (((0, "a "), (1, "b")),)
    for rule in (".s0{color:#eeeeee}", ".s0{color:#222222}", ".s1{color:#222222;background:#cccccc;font-weight:700}"):
        assert rule in looks.rules()
    assert part_of(screen, Region(1, 0, 2, 1)) == (screen[0][1:3],)


def test_what_the_lessons_say_stays_text() -> None:
    scene = shown().scenes[0]
    hostile_header = replace(shown().header, program=HOSTILE, model=HOSTILE)
    hostile_scene = replace_text(scene, HOSTILE)
    page_text = lesson_page(ShownLessons([hostile_scene], shown().looks, hostile_header))
    page = Page(page_text)
    assert not RAW_CONTROLS.search(page_text) and len(page.texts["script"]) == 2
    assert page.policy.startswith("default-src 'none';") and "unsafe" not in page.policy
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp", page_text)


def replace_text(scene: Any, text: str) -> Any:
    """The scene with a text everywhere that would break out of the page."""
    cards = [changed(card, text=text, question=text, choices=(text, text)) for card in scene.cards]
    steps = [replace(step, pieces=[text] * len(step.pieces)) for step in scene.runs[0].steps]
    pictured = [moment._replace(picture=(((0, text),),)) for moment in scene.moments]
    return changed(scene, cards=cards, moments=pictured, runs=[changed(scene.runs[0], steps=steps)])


def test_an_engine_that_dies_is_no_lesson_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying(FakeEngine):
        async def start(self) -> None:
            self.fail_fatally()

    monkeypatch.setattr(lesson_session, "lesson_session", lambda: session_of(Dying()))
    result = CliRunner().invoke(cli.app, ["learn", "--from", "7", "--export", str(tmp_path / "learn.html")])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "The engine ended before the lessons did: The weights are torn." in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--export", "learn.gif"], "learn.gif is no name for a page; end it in .html."),
        (["--export", "missing/learn.html"], "There is no folder missing"),
        (["--export", "there.html"], "exists already; give another name, or --force"),
        (["--export", "learn.html", "--no-save"], "--restart and --no-save are about how far you are"),
        (["--force"], "--force overwrites what --export names"),
    ],
)
def test_what_cannot_be_exported_is_refused_before_the_engine_starts(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.html").touch()
    monkeypatch.setattr(learn_command, "run_lessons", lambda *_: pytest.fail("it would be played"))
    result = CliRunner().invoke(cli.app, ["learn", *arguments])
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1
