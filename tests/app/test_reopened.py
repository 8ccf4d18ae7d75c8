"""A conversation is reopened as it was left: its colours, its passes, its settings, its view."""

import zlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat.protocol import Settings, encode, packed
from ladechat.screens.chat.looking_back import STEPS_DROPPED
from ladechat.session.conversations.saved import Answered, Viewed
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.flow import Ink
from ladechat.widgets.formatting import REOPENED
from ladechat.widgets.steps.answer_steps import NEVER_KNOWN
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept
from tests.app.stage import Room, Stage, answered, ask, begun
from tests.app.test_in_effect import said as in_effect
from tests.app.test_looking_back import looked_at, marked, place_of
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import brings, press, until
from tests.widgets.sample_steps import step

LONG = "\n\n".join(
    f"A paragraph of **some words**, number {number}, that fill more than a line." for number in range(40)
)


def coloured(stage: Stage) -> list[tuple[str, Ink]]:
    """All tokens that have the colours of steps, with these, whatever the turn is."""
    lines = stage.app.query_one(Transcript).lines
    runs = [run for line in lines for run in line.runs]
    return [(text, replace(ink, turn=0)) for text, ink in runs if ink.kind == "step"]


def reopened(tmp_path: Path, *engines: FakeEngine) -> Stage:
    """An app that goes on with the latest conversation."""
    return Stage(*engines, store=ConversationStore(tmp_path / "talks"), opened=kept(tmp_path)[0])


async def test_saved_answers_have_their_colours_and_their_passes_can_be_looked_back_at(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "talks")
    async with Stage(FakeEngine(), store=store, decoder="lookahead").ready(size=(120, 40)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        before = coloured(stage)
        steps = len(stage.screen.view.side.answer)
        await press(pilot, "left", "home", brings=lambda: looked_at(stage) == (1, steps))
        window = stage.app.query_one("#window").render_line(4).text
    store.begin_new()
    async with reopened(tmp_path).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: coloured(stage) == before, pilot)
        assert max(ink.step for _, ink in before) in range(steps - 3, steps)
        await press(pilot, "left", "home", brings=lambda: looked_at(stage) == (1, steps))
        assert marked(stage.app) == "The" and stage.app.query_one("#window").render_line(4).text == window
        assert f"pass 1 of {steps} of this answer" in stage.status
        await press(pilot, "right", "right", "escape", brings=lambda: looked_at(stage) is None)
        transcript = stage.app.query_one(Transcript)
        async with brings(lambda: (looked_at(stage) or (0,))[0] > 1, pilot):
            await pilot.click(transcript, offset=place_of(stage.app, "."))
        await answered(pilot, stage, "Three?", times=3)
        assert coloured(stage)[: len(before)] == before


def thinking(tmp_path: Path) -> None:
    """Save a conversation whose first answer begins with three passes of thoughts."""
    pieces = ["<", "Hm", ", seven?", "Yes, ", "seven."]
    steps = [replace(step([piece], index=place), reasoning=int(place < 3)) for place, piece in enumerate(pieces)]
    write(tmp_path / "talks", "a", replace(exchange("Why?", "Yes, seven."), steps=packed(steps)), exchange("And?"))


async def test_the_thoughts_of_a_saved_answer_are_folded_above_it_and_in_the_colours_of_their_passes(
    tmp_path: Path,
) -> None:
    thinking(tmp_path)
    async with reopened(tmp_path).ready(size=(120, 40)) as (pilot, stage):
        transcript = stage.app.query_one(Transcript)

        def shown() -> str:
            return "\n".join(line.text for line in transcript.lines)

        await until(lambda: "demo model thinks" in shown(), pilot)
        assert "… 3 tokens in" in shown() and "Hm" not in shown() and "Yes, seven." in shown()
        assert [*transcript.answers()] == ["Yes.", "Yes, seven."]
        await press(pilot, "ctrl+n", brings=lambda: "<Hm, seven?" in shown())
        assert [text for text, _ in coloured(stage)][:3] == ["<", "Hm", ", seven?"]
        async with brings(lambda: looked_at(stage) == (2, 5), pilot):
            await pilot.click(transcript, offset=place_of(stage.app, "Hm"))
        assert transcript.block_of(2) == 4 and stage.screen.view.presenter.now.exchanges == (0, 4)


async def test_the_rest_of_a_reopened_answer_has_its_colours_too_and_both_are_saved(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "talks")
    async with Stage(FakeEngine(hold_steps=True), store=store).running(size=(120, 40)) as (pilot, stage):
        await begun(pilot, stage, 3)
        await press(pilot, "escape", brings=lambda: not stage.asking)
        first = coloured(stage)
    store.begin_new()
    async with (again := reopened(tmp_path, FakeEngine())).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: coloured(stage) == first, pilot)
        await ask(pilot, "/continue", brings=lambda: not stage.asking and len(coloured(stage)) > len(first))
        whole = "".join(text for text, _ in coloured(stage))
        assert again.screen.saved.store is not None
        colours = coloured(stage)
    again.screen.saved.store.begin_new()
    async with reopened(tmp_path).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: "".join(text for text, _ in coloured(stage)) == whole, pilot)
        assert coloured(stage) == colours and coloured(stage)[: len(first)] == first


async def test_answers_of_earlier_versions_and_damaged_steps_are_plain_and_that_is_said(tmp_path: Path) -> None:
    torn, other = replace(exchange("Torn?"), steps=b"torn"), replace(exchange("Other?"), steps=b"")
    write(tmp_path / "talks", "a", exchange("Old?"), torn, other)
    async with reopened(tmp_path).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: REOPENED in stage.text, pilot)
        assert stage.text.count("Yes.") == 3 and coloured(stage) == []
        async with brings(lambda: stage.notice == NEVER_KNOWN, pilot):
            transcript = stage.app.query_one(Transcript)
            line = next(y for y, one in enumerate(transcript.lines) if "Yes." in one.text)
            await pilot.click(transcript, offset=(5, line + transcript.styles.padding.top))


async def test_that_lines_of_a_file_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "talks", "a", exchange("One?"), exchange("Two?"), exchange("Three?"))
    first, one, two, three = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, one[:-9] + b"\n", two, three]))
    async with reopened(tmp_path).ready() as (pilot, stage):
        await until(lambda: f"left out (1 line): {path}" in stage.notice, pilot)
        assert "One?" not in stage.text and "Two?" in stage.text and "Three?" in stage.text


async def test_of_steps_of_which_only_the_colours_can_be_read_no_pass_is_shown_and_that_is_said(tmp_path: Path) -> None:
    half = zlib.compress(b'{"event":"step","pieces":["Y","es."],"origins":["model","model"]}\n')
    write(tmp_path / "talks", "a", replace(exchange("Half?"), steps=half))
    async with reopened(tmp_path).ready(size=(120, 40)) as (pilot, stage):
        await until(lambda: [text for text, _ in coloured(stage)] == ["Y", "es."], pilot)
        async with brings(lambda: stage.notice == STEPS_DROPPED, pilot):
            await pilot.press("left")
            await pilot.click(stage.app.query_one(Transcript), offset=place_of(stage.app, "es."))
        assert looked_at(stage) is None


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
async def test_the_view_is_as_it_was_left(tmp_path: Path, width: int, height: int) -> None:
    size, store = (width, height), ConversationStore(tmp_path / "talks")

    def top(stage: Stage) -> tuple[str, bool]:
        transcript = stage.app.query_one(Transcript)
        return transcript.render_line(0).text.strip(), transcript.formatted

    async with Stage(FakeEngine(answers=(LONG,)), store=store).ready(size=size) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        transcript = stage.app.query_one(Transcript)
        await press(pilot, "ctrl+g", brings=lambda: transcript.formatted)
        async with brings(lambda: "number 20" in top(stage)[0], pilot):
            transcript.scroll_to_text(range(1, 2), "number 30")
            line = next(y for y, one in enumerate(transcript.lines) if "number 20" in one.text)
            transcript.scroll_to(y=line, animate=False, immediate=True)
        left = top(stage)
    store.begin_new()
    async with reopened(tmp_path).ready(size=size) as (pilot, stage):
        await until(lambda: top(stage) == left, pilot)
        await press(pilot, "ctrl+g", "end", brings=lambda: stage.app.query_one(Transcript).follows_end)
        await press(pilot, "ctrl+l", brings=lambda: "One?" not in stage.text)
        stage.screen.saved.open(kept(tmp_path)[0])
        await until(lambda: stage.app.query_one(Transcript).follows_end and "Two?" in stage.text, pilot)
        assert not stage.app.query_one(Transcript).formatted


async def test_an_answer_that_came_elsewhere_since_is_in_view(tmp_path: Path) -> None:
    path = write(tmp_path / "talks", "a", exchange("One?", LONG))
    lines = Viewed(formatted=True, message=0), Answered(when="2030-01-02T12:00:00", exchange=exchange("Two?", "New."))
    with path.open("ab") as file:
        file.write(b"".join(map(encode, lines)))
    async with reopened(tmp_path).ready() as (pilot, stage):
        await until(lambda: stage.app.query_one(Transcript).follows_end and "New." in stage.text, pilot)
        assert stage.app.query_one(Transcript).formatted


async def test_the_settings_of_the_last_answer_are_shown_and_taken_again_by_a_command(tmp_path: Path) -> None:
    path, store = tmp_path / "settings.toml", ConversationStore(tmp_path / "talks")
    room = Room(path=path, store=store)
    async with room.ready(size=(120, 40)) as (pilot, stage):
        await ask(pilot, "/temperature 0.7", brings=lambda: stage.session.requested.temperature == 0.7)
        await ask(pilot, "/set W 7", brings=lambda: stage.session.requested.parameters == {"window": 7})
        await answered(pilot, stage, "One?")
    store.begin_new()
    async with Room(path=path, store=ConversationStore(tmp_path / "talks")).ready(size=(120, 40)) as (pilot, stage):
        stage.screen.saved.open(kept(tmp_path)[0])
        shown = "reopened · last: lookahead W 7 N 3 G 5, temperature 0.7 · /as-before takes these settings"
        await until(lambda: shown in " ".join(stage.text.split()), pilot)
        await ask(pilot, "/as-before", brings=lambda: stage.session.requested.temperature == 0.7)
        await until(lambda: stage.engine.settings.parameters["window"] == 7, pilot)
        assert stage.engine.settings.decoder == "lookahead" and in_effect(stage) == ""
        await press(pilot, "ctrl+l", brings=lambda: "One?" not in stage.text)
        stage.screen.saved.open(kept(tmp_path)[0])
        await until(lambda: "temperature 0.7" in stage.text, pilot)
        assert "/as-before" not in stage.text


async def test_without_a_known_answer_there_are_no_settings_to_take(tmp_path: Path) -> None:
    async with Stage().ready() as (pilot, stage):
        await ask(pilot, "/as-before", brings=lambda: "is not known with which settings" in stage.notice)
        assert stage.session.requested == Settings(decoder="auto")


async def test_a_variant_that_is_shown_again_has_its_colours(tmp_path: Path) -> None:
    engine = FakeEngine(answers=("A first answer of some words.", "Another one."))
    async with Stage(engine, store=ConversationStore(tmp_path / "talks")).ready(size=(120, 40)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        first = coloured(stage)
        await press(pilot, "ctrl+r", brings=lambda: not stage.asking and "Another" in stage.text)
        await press(pilot, "alt+left", brings=lambda: "A first answer" in stage.text)
        assert coloured(stage) == first
