"""The screens that are kept as pictures: each an app, and how it comes to its place, where nothing moves by itself."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from textual import command as palette
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widgets import Input, OptionList, TextArea

from ladechat.app import LadechatApp
from ladechat.lessons.lesson import Phase
from ladechat.lessons.progress import Progress
from ladechat.protocol import Message
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.view import welcome
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.measuring import Measuring
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, answered, ask
from tests.app.test_learn import Room
from tests.fake_engine import ANSWER, FakeEngine
from tests.session.conversations import exchange, write
from tests.session.streams import GOLDEN
from tests.waiting import brings, press, until

Prepare = Callable[[Pilot[int]], Awaitable[None]]

QUESTION = "What is the n-gram pool?"
LISTING = "Sort these lines, please:\n" + "\n".join(f"{number:2}  line of a long paste" for number in range(1, 17))
SYSTEM = "Answer briefly, in plain words.\nSay so where you are not sure."
MODELS = ("HuggingFaceTB/SmolLM2-135M-Instruct", "meta-llama/Llama-2-7b-chat-hf", "/models/tiny.gguf")
PREDICTED = Progress("pool", 2, [0])
"""In the scene on the pool, where a prediction has been answered."""
ASKED = Progress("pool", 2)
"""The same card, before it."""
MID_RACE = ("right",) * 18


class Scene(NamedTuple):
    """An app, and what brings it to its place once it runs."""

    app: LadechatApp
    prepare: Prepare


async def settled(pilot: Pilot[int]) -> None:
    """Wait until all panels are drawn; no cursor blinks."""
    for area in pilot.app.screen.query(TextArea):
        area.cursor_blink = False
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False
    await until(lambda: not any(panel.drawing.waits for panel in pilot.app.screen.query(Panel)), pilot)


async def ready(pilot: Pilot[int], stage: Stage) -> None:
    await until(lambda: bool(stage.app.query(Prompt)) and stage.activity == "ready", pilot)
    await settled(pilot)


# --- the chat ---------------------------------------------------------------------------------------------------------


def mid_answer(decoder: str = "lookahead", *keys: str) -> Scene:
    """In the middle of the second answer."""
    stage = Stage(FakeEngine(answers=("Hello. Ask away.", ANSWER)), welcome=welcome("demo"), decoder=decoder)

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        await answered(pilot, stage, "Hello!")
        async with brings(lambda: stage.activity == "answering …", pilot):
            stage.engine.hold()
            await ask(pilot, QUESTION)
            await pilot.press(*keys)
        async with brings(lambda: "token):" in stage.text, pilot):
            stage.engine.release_until("token):")
        await until(lambda: stage.app.query_one(SpeedPanel)._steps == stage.engine.steps_done, pilot)

    return Scene(stage.app, prepare)


def selected() -> Scene:
    scene = mid_answer()

    async def prepare(pilot: Pilot[int]) -> None:
        await scene.prepare(pilot)
        transcript = pilot.app.query_one(Transcript)
        first = next(y for y, line in enumerate(transcript.lines) if line.text.strip().startswith("The n-gram"))
        pilot.app.screen.selections = {transcript: Selection(Offset(6, first), Offset(30, first + 3))}

    return Scene(scene.app, prepare)


def begun() -> Scene:
    """Nothing asked yet."""
    stage = Stage(welcome=welcome("demo"))
    return Scene(stage.app, lambda pilot: ready(pilot, stage))


def after_answer(*keys: str, question: str = QUESTION, decoder: str = "lookahead") -> Scene:
    """After an answer, and then these keys."""
    stage = Stage(decoder=decoder, system=SYSTEM)

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        await answered(pilot, stage, question)
        await settled(pilot)
        await pilot.press(*keys)

    return Scene(stage.app, prepare)


def after_command(text: str, folder: Path | None = None) -> Scene:
    """What a slash command has opened."""
    for number, model in enumerate(MODELS if folder else ()):
        write(folder or Path(), f"{number}", exchange(model=model))
    stage = Stage(decoder="lookahead", system=SYSTEM, store=ConversationStore(folder) if folder else None)

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        async with brings(lambda: stage.app.screen is not stage.screen, pilot):
            await ask(pilot, text)
        await until(lambda: not folder or stage.app.screen.query_one(OptionList).option_count > len(MODELS), pilot)

    return Scene(stage.app, prepare)


def palette_open() -> Scene:
    stage = Stage()

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        await pilot.press("ctrl+p")
        listed = stage.app.screen.query_one(palette.CommandList)
        await until(lambda: listed.option_count > 3 and listed.region.height > 3, pilot)
        await press(pilot, "down", brings=lambda: listed.highlighted == 1)

    return Scene(stage.app, prepare)


def queue() -> Scene:
    """Two questions wait behind an answer in slow motion."""
    stage = Stage(FakeEngine(hold_steps=True), decoder="lookahead")

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        async with brings(lambda: stage.app.query_one(SpeedPanel)._steps == 6, pilot):
            await ask(pilot, QUESTION)
            stage.engine.release(6)
        async with brings(lambda: len(stage.session.waiting) == 2, pilot):
            await pilot.press("f6")
            await ask(pilot, "How do I choose W, N and G?")
            await ask(pilot, "Is it the same text?")

    return Scene(stage.app, prepare)


def error() -> Scene:
    """An engine that broke in the middle of an answer, and ended."""
    stage = Stage(FakeEngine(hold_steps=True), decoder="lookahead")

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        async with brings(lambda: stage.app.query_one(SpeedPanel)._steps == 6, pilot):
            await ask(pilot, QUESTION)
            stage.engine.release(6)
        async with brings(lambda: "ended" in stage.activity, pilot):
            stage.engine.break_off()
            stage.engine.fail_fatally()

    return Scene(stage.app, prepare)


def conversations(folder: Path, *keys: str) -> Scene:
    """The list of some conversations, after these keys."""
    pool, longer = "What is the n-gram pool?", "Write a Python function that reverses a string, and say how it works"
    titles = [pool, "How do I choose W, N and G?", longer, "Why is it exact?", "Hello!", "Translate: Guten Morgen"]
    for day, title in enumerate([*titles, "What do the colours mean?", "Sort by length: pear, fig", "Good night"]):
        exchanges = [exchange(title), *[exchange()] * (day % 3)]
        when = f"2026-03-{20 - day}T14:{10 + day}:00"
        write(folder, f"{day}", *exchanges, when=when, title="Pools" if title == pool else "")
    stage = Stage(store=ConversationStore(folder))

    async def prepare(pilot: Pilot[int]) -> None:
        await ready(pilot, stage)
        async with brings(lambda: stage.app.screen is not stage.screen, pilot):
            await pilot.press("ctrl+o")
        await until(lambda: bool(stage.app.screen.query_one(OptionList).option_count), pilot)
        await pilot.press(*keys)

    return Scene(stage.app, prepare)


# --- race, replay, lessons --------------------------------------------------------------------------------------------


def race(*keys: str) -> Scene:
    """A race that was measured, after these keys."""
    screen = RaceScreen(Measuring(FakeEngine(), [Message(role="user", content="How does lookahead decoding work?")]))

    async def prepare(pilot: Pilot[int]) -> None:
        await until(lambda: screen.track is not None, pilot)
        await pilot.press("home", *keys)

    return Scene(LadechatApp(screen), prepare)


def measuring() -> Scene:
    """A race of which the first lane is being measured."""
    engine = FakeEngine(hold_steps=True)
    race = Measuring(engine, [Message(role="user", content="How does lookahead decoding work?")])
    screen = RaceScreen(race)

    async def prepare(pilot: Pilot[int]) -> None:
        await until(lambda: len(race.lanes) == 4, pilot)
        async with brings(lambda: "30 passes so far" in screen.query_one(Transport).facts, pilot):
            engine.release(30)

    return Scene(LadechatApp(screen), prepare)


def replay(*keys: str) -> Scene:
    """A recording, held at a step."""
    screen = ReplayScreen(Recording.read(GOLDEN[0]))
    screen.player.playing = False
    return Scene(LadechatApp(screen), lambda pilot: _press(pilot, *["right"] * 14, *keys))


async def _press(pilot: Pilot[int], *keys: str) -> None:
    await pilot.press(*keys)


def lesson(progress: Progress, phase: Phase) -> Scene:
    """A card of the lessons."""
    app = Room(FakeEngine(), progress=progress).app

    async def prepare(pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, LearnScreen)
        await until(lambda: screen.lesson.place == progress.card, pilot)
        await until(lambda: screen.lesson.page.phase is phase, pilot)

    return Scene(app, prepare)
