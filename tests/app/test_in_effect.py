"""What shapes the next answers is on the screen where it is not as usual, and a cut answer says what goes on."""

from pathlib import Path

from msgspec.structs import replace

from ladechat.protocol import NO_SWITCH, Configure, Loading, TurnFinished
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.in_effect import InEffect
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Room, Stage, answered, ask, begun, replaying
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until


def said(stage: Stage) -> str:
    """What the line says; "" where there is none."""
    line = stage.app.query_one(InEffect)
    return line.render_line(0).text.strip() if line.region.area else ""


async def test_a_system_prompt_a_limit_and_the_formatted_view_are_named_while_they_act() -> None:
    async with Stage().ready(size=(120, 40)) as (pilot, stage):
        assert said(stage) == ""
        await press(pilot, "ctrl+g", brings=lambda: said(stage) == "formatted (Ctrl+G)")
        await ask(pilot, "/limit 2000", brings=lambda: "at most 2,000 tokens (/limit)" in said(stage))
        text = "Answer as a pirate who has read every book on compilers, and rhyme.\nBe brief."
        await ask(pilot, f"/system {text}", brings=lambda: said(stage).startswith("system: Answer as a pirate who"))
        assert "… (/system) · at most 2,000 tokens (/limit) · formatted (Ctrl+G)" in said(stage)
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[0].max_new_tokens == 2000
        async with brings(lambda: said(stage) == "system: Answer as a… · at most 2,000 tokens · formatted", pilot):
            await pilot.resize_terminal(57, 12)
        async with brings(lambda: said(stage).startswith("system: Answer … · at most 2,000"), pilot):
            await pilot.resize_terminal(40, 10)
        async with brings(lambda: "formatted" in said(stage), pilot):
            await pilot.resize_terminal(120, 40)
        await press(pilot, "ctrl+g", brings=lambda: "format" not in said(stage))
        stage.session.instruct("")
        await until(lambda: said(stage) == "at most 2,000 tokens (/limit)", pilot)


async def test_thinking_is_turned_off_and_on_and_named_while_that_acts() -> None:
    engine = FakeEngine()
    engine.thinking = True
    async with Stage(engine).ready(size=(120, 40)) as (pilot, stage):
        await ask(pilot, "/thinking off", brings=lambda: said(stage) == "thinking off (/thinking)")
        await ask(pilot, "/set thinking ON", brings=lambda: said(stage) == "thinking on (/thinking)")
        await ask(pilot, "/thinking auto", brings=lambda: said(stage) == "")
        assert engine.commands == [Configure(thinking=to) for to in ("off", "on", "auto")]
        refused = "/thinking has to be on, off or auto, not 'perhaps'."
        await ask(pilot, "/thinking perhaps", brings=lambda: stage.notice == refused)


async def test_a_model_without_a_switch_for_thinking_refuses_it_in_a_sentence() -> None:
    stage = Stage()
    stage.session.requested = replace(stage.session.requested, thinking="on")
    async with stage.ready(size=(120, 40)) as (pilot, _):
        await ask(pilot, "/thinking off", brings=lambda: stage.notice == NO_SWITCH)
        assert stage.engine.commands == [] and said(stage) == ""
        await ask(pilot, "/thinking auto", brings=lambda: stage.engine.commands == [Configure(thinking="auto")])


async def test_thinking_is_set_while_a_model_loads_of_which_nobody_knows_yet_whether_it_has_a_switch() -> None:
    first, second = FakeEngine(hold_loading=True), FakeEngine(hold_loading=True)
    second.thinking = True
    async with Room(first, second).running(size=(120, 40)) as (pilot, stage):
        await ask(pilot, "/thinking off", brings=lambda: said(stage) == "thinking off (/thinking)")
        async with brings(lambda: said(stage) == "", pilot):
            first.finish_loading()  # without a switch
        await ask(pilot, "/model owner/x", brings=lambda: "looking for owner/x …" in stage.status)
        async with brings(lambda: said(stage) == "thinking off (/thinking)", pilot):
            second._say(Loading(stage=2, stages=2, doing="reading the weights"))
        await ask(pilot, "/thinking on", brings=lambda: said(stage) == "thinking on (/thinking)")
        async with brings(lambda: stage.activity == "ready", pilot):
            second.finish_loading()
        assert said(stage) == "thinking on (/thinking)" and second.settings.thinking == "on"
        assert NO_SWITCH not in stage.notices


async def test_what_acts_from_the_start_is_named_from_the_start() -> None:
    async with Stage(system="Be brief.").running() as (pilot, stage):
        await until(lambda: said(stage) == "system: Be brief.", pilot)


async def test_an_answer_that_was_stopped_says_what_goes_on_but_not_where_nothing_can(tmp_path: Path) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    stage.recorder.start(tmp_path / "talk.ladechat.jsonl")
    async with stage.app.run_test() as pilot:
        await begun(pilot, stage, 3)
        await press(pilot, "escape", brings=lambda: "stopped · /continue goes on" in " ".join(stage.text.split()))
        await pilot.press("f7")
    recording = Recording.read(tmp_path / "talk.ladechat.jsonl")
    assert [event.reason for event in recording.events if isinstance(event, TurnFinished)] == ["stopped"]
    async with replaying(recording) as (pilot, app, _):
        await press(pilot, "end", brings=lambda: "stopped" in app.query_one(Transcript)._blocks[-1].written)
        assert "/continue" not in app.query_one(Transcript)._blocks[-1].written
