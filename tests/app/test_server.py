"""The screen with a model on a server: what it tells, and that it says what is not reported."""

import math
import re
from collections.abc import Sequence
from functools import partial

import msgspec
import pytest

from ladechat.app import LadechatApp
from ladechat.protocol import (
    DecoderInfo,
    Event,
    Message,
    Ready,
    Rivals,
    ServerFigures,
    ServerInfo,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
)
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.race import RaceScreen
from ladechat.session.measuring import Measuring
from ladechat.session.race import Lane
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.panels.server_panel import ServerPanel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, ask, entries, shows
from tests.app.test_help import shown
from tests.fake_engine import FakeEngine
from tests.fake_model import ready
from tests.waiting import act, press, until
from tests.widgets.sample_steps import finished, step

VLLM = ServerInfo(program="vLLM 0.32.0", address="http://host/v1", passes=True, token_ids=True, logprobs=True)
OTHER = ServerInfo(program="Ollama 0.14", address="http://host/v1", passes=False, token_ids=False, logprobs=False)
SERVER = DecoderInfo(name="server", label="the server's decoding", help="The server decodes as it was started.")
A_PASS = re.compile(r"\bpass", re.IGNORECASE)
NOT_TOLD = "Not reported: passes, drafts, window, pool, tree, pseudo states."
FIGURES = ServerFigures(tokens=4, passes=2, drafted=10, accepted=2, tokens_per_second=51.5)


def of_server(info: ServerInfo) -> Ready:
    """What an engine says that asks a server."""
    made = ready(Settings())
    settings = msgspec.structs.replace(made.settings, decoder="server", parameters={})
    return msgspec.structs.replace(
        made, model="tiny", server=info, decoders=[SERVER], settings=settings, parameters=0, single_token=None
    )


def passes(*texts: Sequence[str], reasoning: int = 0) -> list[Step]:
    """Steps of a server, whose first tokens may be thoughts."""
    made = []
    for index, pieces in enumerate(texts):
        plain = step(list(pieces), index=index)
        made.append(
            msgspec.structs.replace(
                plain, draft=None, window=None, pool=None, reasoning=max(0, min(reasoning, len(pieces)))
            )
        )
        reasoning -= len(pieces)
    return made


def started() -> TurnStarted:
    settings = of_server(VLLM).settings
    asked = [Message(role="user", content="Hi?")]
    return TurnStarted(
        turn=1, messages=asked, prompt_ids=[], cached_tokens=0, max_new_tokens=9, settings=settings, seed=1
    )


def ended(steps: list[Step]) -> TurnFinished:
    return msgspec.structs.replace(finished(steps), server=FIGURES)


def texts_of(panel: Panel) -> str:
    return "\n".join("".join(text for text, _ in row) for row in panel.rows(*panel.content_size))


class OnStage(Stage):
    """A stage on which events are shown as if an engine had sent them."""

    def say(self, *events: Event) -> None:
        self.screen.view.presenter.show(events)


@pytest.mark.parametrize("info", [VLLM, OTHER], ids=lambda info: info.program)
async def test_at_80_columns_the_screen_says_what_is_told_and_what_is_not(info: ServerInfo) -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        steps = passes(["A"], [" b", " c", "d."])
        stage.say(of_server(info), started(), *steps, ended(steps))
        await until(lambda: info.program in texts_of(stage.app.query_one(ServerPanel)), pilot)
        panel, speed = texts_of(stage.app.query_one(ServerPanel)), texts_of(stage.app.query_one(SpeedPanel))
        words = " ".join(panel.split())
        assert "Not reported:" in words and "http://host/v1" in words
        assert not stage.app.query_one(PoolPanel).region.area and not stage.app.query_one(WindowPanel).region.area
        if info.passes:
            assert "A colour is a forward pass." in words and "2 of 10" in words and "51.5" in words
            assert "2 passes for 4" in speed and "1.00 of 5.00" in speed
        else:
            assert "A colour is a chunk" in words and "chunks" in words
            assert "2 chunks" in speed and "pass" not in speed
            assert "pass" not in stage.text


async def test_what_waits_for_a_step_says_chunk_where_a_step_is_one() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running((100, 30)) as (pilot, _):
        steps = passes(["A"], ["b"], ["c"])
        stage.say(of_server(OTHER), started(), *steps, ended(steps))
        look = stage.screen.view.presenter.inspection.look_at_step
        await act(pilot, lambda: look(1, 1), brings=lambda: "chunk 2 of 3" in stage.status)


async def test_passes_that_came_together_have_colours_of_their_own_at_the_end() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        steps = passes(["A"], [" b", " c", "d."])
        stage.say(of_server(VLLM), started(), *steps)
        side = stage.app.query_one(SidePanels)
        assert len(side.answer) == 2
        figures = msgspec.structs.replace(FIGURES, passes=3)
        stage.say(msgspec.structs.replace(ended(steps), pass_tokens=[1, 2, 1], steps=3, server=figures))
        assert [side.answer.step(place).pieces for place in range(len(side.answer))] == [["A"], [" b", " c"], ["d."]]
        lines = stage.app.query_one(Transcript)._blocks.lines
        inks = [(text, ink.step) for line in lines for text, ink in line.runs if ink.kind == "step"]
        assert [number for text, number in inks if text.strip()] == [0, 1, 1, 2]
        await until(lambda: "3 passes" in texts_of(stage.app.query_one(SpeedPanel)), pilot)


async def test_thoughts_stand_above_the_answer_and_are_no_part_of_it() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        steps = passes(["Hm", ", so"], [".", "Yes"], ["."], reasoning=3)
        stage.say(of_server(VLLM), started(), *steps, ended(steps))
        await until(lambda: "tiny thinks" in stage.text, pilot)
        assert stage.text.index("tiny thinks") < stage.text.index("Hm, so.") < stage.text.index("Yes."), "to be copied"

        def shown() -> str:
            return "\n".join(line.text for line in stage.app.query_one(Transcript).lines)

        assert "3 tokens in" in shown() and "Hm, so." not in shown()
        await press(pilot, "ctrl+n", brings=lambda: "Hm, so." in shown())
        await press(pilot, "ctrl+n", brings=lambda: "Hm, so." not in shown())
        assert next(stage.app.query_one(Transcript).answers()) == "Yes."


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_click_on_a_token_of_a_server_shows_what_else_was_likely_where_it_tells(size: tuple[int, int]) -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running(size) as (pilot, _):
        rivals = Rivals(pieces=[" b", " or"], logprobs=[math.log(0.6), math.log(0.3)])
        steps = passes(["A"], [" b", " c", "d."])
        steps[1] = msgspec.structs.replace(steps[1], rivals=[rivals] * 3, logprobs=[math.log(0.6)] * 3)
        stage.say(of_server(VLLM), started(), *steps, ended(steps))
        panel, inspection = stage.app.query_one(BiographyPanel), stage.screen.view.presenter.inspection
        look = partial(inspection.look_at_step, 1, 1, 0)
        await act(pilot, look, brings=lambda: panel.region.area and "‹·b›" in texts_of(panel))
        said = " ".join(texts_of(panel).split())
        assert "The likeliest, at 60 %; then ‹·or› 30 %." in said and "Entropy" not in said
        assert "0 drafts" not in said
        stage.say(of_server(OTHER), started(), *steps, ended(steps))
        await act(pilot, look, brings=lambda: panel.unreported)
        assert "Not reported" in " ".join("".join(panel.render_line(y).text for y in range(9)).split())


async def test_the_key_for_decoders_says_that_the_server_decides() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        stage.say(of_server(VLLM))
        await press(pilot, "f3", brings=lambda: "decodes as it was started" in stage.notice)


async def test_a_local_model_after_a_server_has_its_panels_again() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        stage.say(of_server(VLLM))
        await until(lambda: stage.app.query_one(ServerPanel).region.area, pilot)
        stage.say(ready(Settings()))
        await until(lambda: not stage.app.query_one(ServerPanel).region.area, pilot)
        assert stage.app.query_one(PoolPanel).unreported == ""


async def test_an_answer_stays_that_of_its_server_when_another_model_takes_over() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running((120, 40)) as (pilot, _):
        panel, speed = stage.app.query_one(ServerPanel), stage.app.query_one(SpeedPanel)
        steps = passes(["A"], ["b"], ["c"])
        stage.say(of_server(OTHER), started(), *steps, ended(steps))
        stage.say(of_server(VLLM))
        await until(lambda: VLLM.program in texts_of(panel), pilot)
        assert "here" not in texts_of(panel), "the figures are another server's"
        assert "3 chunks" in texts_of(speed)
        look = stage.screen.view.presenter.inspection.look_at_step
        await act(pilot, lambda: look(1, 1), brings=lambda: "chunk 2 of 3" in stage.status)
        assert OTHER.program in texts_of(panel) and "2 chunks" in texts_of(speed)
        await press(pilot, "escape", brings=lambda: VLLM.program in texts_of(panel))
        stage.say(ready(Settings()))
        await until(lambda: not panel.region.area, pilot)
        assert "chunk" in stage.app.query_one(PoolPanel).unreported
        await act(pilot, lambda: look(1, 0), brings=lambda: "chunk 1 of 3" in stage.status)
        assert panel.region.area


async def test_in_the_chat_of_a_server_a_race_is_refused_with_the_command_that_has_one() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running() as (pilot, _):
        stage.say(of_server(VLLM))
        await ask(pilot, "/race Hi?", brings=lambda: "ladechat race --server" in stage.notice)
        assert stage.in_front()


async def test_keys_palette_and_help_say_chunk_where_a_step_is_one() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running((160, 200)) as (pilot, _):
        steps = passes(["A"], ["b"], ["c"])
        stage.say(of_server(OTHER), started(), *steps, ended(steps))
        await until(lambda: OTHER.program in texts_of(stage.app.query_one(ServerPanel)), pilot)
        offered = entries(stage.app)
        assert "A hue for each chunk" in offered["Look"].help
        assert "Four chunks a second" in offered["Slow motion"].help
        tooltips = [active.tooltip for active in stage.screen.active_bindings.values()]
        assert tooltips and not [text for text in tooltips if A_PASS.search(text)]
        await press(pilot, "question_mark", brings=shows(pilot, ExplainScreen))
        assert "four chunks a second" in shown(stage.app) and not A_PASS.search(shown(stage.app).replace(NOT_TOLD, ""))
        await press(pilot, "escape", brings=stage.in_front)
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(stage.app)
        keys, _, papers = text.partition("Panels")
        assert "A chunk of the server's stream" in keys and "Look back, chunk by chunk" in keys
        assert not A_PASS.search(keys.replace("It does not tell its passes.", ""))
        assert "Jacobi" not in text and "n-gram" not in papers.partition("The papers")[0]


async def test_the_help_on_a_server_that_tells_passes_explains_none_of_our_own_drafts() -> None:
    stage = OnStage(FakeEngine(hold_loading=True))
    async with stage.running((160, 200)) as (pilot, _):
        stage.say(of_server(VLLM))
        await until(lambda: VLLM.program in texts_of(stage.app.query_one(ServerPanel)), pilot)
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(stage.app)
        assert "One forward pass of the model" in text and "Look back, pass by pass" in text
        assert "The server's own." in text and "Jacobi" not in text and "attention mask of" not in text


def lane(info: ServerInfo) -> Lane:
    """An answer of a server in a race."""
    steps = passes(["A"], [" b"], [" c", "d."])
    return Lane("server", info.program, started().settings, steps, ended(steps), info)


@pytest.mark.parametrize(
    ("infos", "unit"), [((VLLM, VLLM), "pass"), ((OTHER, OTHER), "chunk"), ((VLLM, OTHER), "step")], ids=str
)
async def test_the_clock_of_a_race_counts_what_a_step_is(infos: Sequence[ServerInfo], unit: str) -> None:
    race = Measuring(FakeEngine(), [Message(role="user", content="Hi?")])
    race.lanes, race.running = [lane(info) for info in infos], False
    screen = RaceScreen(race)
    app = LadechatApp(screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: screen.track is not None, pilot)
        await press(pilot, "home", "right", brings=lambda: f"{unit} 1 of 3" in transport(app))
        assert f"{unit} by {unit}" in transport(app)
        assert next(key for key in screen.active_bindings.values() if key.binding.id == "step_back").tooltip == (
            f"One {unit} back."
        )
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(app)
        assert SERVER.help in text and "The server's own." in text
        assert bool(A_PASS.search(text.partition("Keys")[2])) == (unit == "pass")


def transport(app: LadechatApp) -> str:
    bar = app.screen.query_one(Transport)
    return " ".join((bar.state, *bar.facts))
