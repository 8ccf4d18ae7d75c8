"""A decoder of one's own is a drafter and two entries: everything else finds it there, in every process."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest
from textual.app import App
from textual.selection import Selection

from ladechat import catalog, registry
from ladechat.app import LadechatApp
from ladechat.protocol import (
    Configure,
    Generate,
    Message,
    Ready,
    Settings,
    SettingsApplied,
    Shutdown,
    Step,
    TurnFinished,
)
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.live import LiveEngine
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.recordings.recording import Recording
from ladechat.session.session import Session
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.sliders.sliders import ParameterSlider, Sliders
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import ask
from tests.engine.inside import inside
from tests.tiny import small_demo
from tests.toy_decoder import INFO, TIMES, register
from tests.waiting import brings, until

ROOT = Path(__file__).parent.parent
PROGRAM = (sys.executable, "-m", "tests.toy_decoder")
"""`ladechat` with the toy. The process of these tests knows nothing of it."""
ENGINE = (*PROGRAM, "engine", "--device", "cpu", "--dtype", "float32")
QUESTION = "What is the n-gram pool?"


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[LiveEngine]:
    engine = LiveEngine([*ENGINE, "--decoder", "toy", "--times", "3"], logs=tmp_path)
    await engine.start()
    yield engine
    await engine.close()


def printed(*arguments: str) -> str:
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_it_is_known_to_nobody_here() -> None:
    assert INFO.name not in catalog.DECODERS and TIMES.name not in catalog.parameters()


@pytest.mark.full
def test_help_has_its_name_and_its_option() -> None:
    text = printed("--help")
    assert f"toy: {INFO.help}" in text
    assert "--times <int> toy: How often it is said again (1 to 9, default: 2)." in text


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["ask", "Hi", "--decoder", "toy", "--times", "10"],
            "ladechat: times has to be from 1 to 9, not 10; set it with --times.",
        ),
        (["bench", "--decoders", "toys"], "There is no decoder 'toys'; give --decoders one or more of"),
    ],
)
def test_what_is_wrong_with_it_is_refused_in_words(arguments: list[str], sentence: str) -> None:
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert sentence in done.stderr
    assert "toy" in done.stderr or "times" in done.stderr


def test_an_engine_announces_it_and_runs_it() -> None:
    toy = Settings(decoder="toy", parameters={"times": 3})
    with patch.dict(catalog.DECODERS), patch.dict(registry.DECODERS):
        register()
        with inside(small_demo(), toy) as engine:
            assert INFO in engine.ready.decoders
            assert engine.ready.settings == toy
            steps, answer = engine.ask(QUESTION, max_new_tokens=12)
            engine.send(Configure(decoder="autoregressive"))
            _, plain = engine.ask(QUESTION, max_new_tokens=12)
    drafts = [step.draft for step in steps if step.draft is not None]
    assert {source for draft in drafts for source in draft.sources} == {"toy"}
    assert len(drafts[0].token_ids) == 3 == max(len(draft.token_ids) for draft in drafts)
    assert answer.token_ids == plain.token_ids, "it writes what plain decoding writes"


@pytest.mark.full
async def test_an_engine_of_its_own_process_announces_it_and_runs_it(engine: LiveEngine) -> None:
    drafted: list[int] = []
    answers: list[list[int]] = []
    async for event in engine.events():
        if isinstance(event, Ready):
            assert INFO in event.decoders
            assert (event.settings.decoder, event.settings.parameters) == ("toy", {"times": 3})
            await engine.send(Generate(turn=1, messages=[Message(role="user", content=QUESTION)], max_new_tokens=12))
        elif isinstance(event, Step) and event.draft is not None and not answers:
            assert set(event.draft.sources) <= {"toy"}
            drafted.append(len(event.draft.token_ids))
        elif isinstance(event, TurnFinished):
            answers.append(event.token_ids)
            await engine.send(Configure(decoder="autoregressive") if len(answers) == 1 else Shutdown())
        elif isinstance(event, SettingsApplied):
            await engine.send(Generate(turn=2, messages=[Message(role="user", content=QUESTION)], max_new_tokens=12))
    assert drafted[0] == 3 == max(drafted)
    assert len(answers) == 2 and answers[0] == answers[1], "it writes what plain decoding writes"


@pytest.mark.full
def test_a_benchmark_measures_it(tmp_path: Path) -> None:
    questions, figures = tmp_path / "one.toml", tmp_path / "figures.json"
    questions.write_text('prompts = ["What is a window?"]')
    options = ("--max-new-tokens", "4", "--rounds", "1", "--questions", str(questions), "--json", str(figures))
    assert " toy " in printed("bench", "--device", "cpu", "--decoders", "toy", *options)
    assert "toy" in json.dumps(json.loads(figures.read_text()))


@pytest.mark.full
async def test_the_app_offers_it_and_a_recording_of_it_replays(tmp_path: Path) -> None:
    """The whole app, with the engine that has it: palette, slider, answer, recording, replay."""
    recorder, file = Recorder(), tmp_path / "toy.ladechat.jsonl"
    recorder.start(file)
    command = [*ENGINE, "--no-auto"]
    session = Session(lambda _: LiveEngine(command, logs=tmp_path), Settings(), Conversation(None, 12), recorder)
    app = LadechatApp(ChatScreen(session, "demo"), session)
    async with app.run_test() as pilot:
        status = app.query_one(StatusLine)
        await until(lambda: status.activity == "ready", pilot)
        commands = {one.title: one for one in app.get_system_commands(app.screen)}
        assert commands["Decoder: toy guesses"].help == INFO.help
        async with brings(lambda: status.decoder == "toy guesses", pilot):
            commands["Decoder: toy guesses"].callback()
        (slider,) = app.query_one(Sliders).parameter_sliders
        assert (slider.parameter, slider.value) == (TIMES, 2)
        async with brings(lambda: session.requested.parameters.get("times") == 6, pilot):
            slider.focus()
            await pilot.press("6")
        async with brings(lambda: " tokens a pass" in whole_text(app), pilot):
            await ask(pilot, QUESTION)
    recorder.stop()
    await session.close()

    recording = Recording.read(file)
    steps = [event for event in recording.events if isinstance(event, Step)]
    (answer,) = (event.text.strip() for event in recording.events if isinstance(event, TurnFinished))
    assert max(len(step.draft.token_ids) for step in steps if step.draft is not None) == 6
    assert {source for step in steps if step.draft is not None for source in step.draft.sources} == {"toy"}
    replay = LadechatApp(ReplayScreen(recording))
    async with replay.run_test() as pilot:
        async with brings(lambda: answer in whole_text(replay), pilot):
            await pilot.press("end")
        assert replay.query_one(StatusLine).decoder == "toy guesses"
        shown = [one.parameter for one in replay.query(ParameterSlider) if one.display]
        assert shown == [TIMES]


def whole_text(app: App[int]) -> str:
    """The conversation as it is on the screen, however it is wrapped."""
    chosen = app.query_one(Transcript).get_selection(Selection(None, None))
    return chosen[0] if chosen else ""
