"""An answer that was stopped goes on in its place, and is one answer to everything that looks at it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat.app import LadechatApp
from ladechat.export.conversation import talk_of
from ladechat.protocol import Step
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, answered, ask, begun, replaying
from tests.fake_engine import ANSWER, FakeEngine, tokens
from tests.session.conversations import saved
from tests.waiting import act, brings, press


def blocks(app: LadechatApp) -> list[tuple[str, str]]:
    return [(block.kind, block.written) for block in app.query_one(Transcript)._blocks]


async def recorded(path: Path) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """A session in which an answer was stopped twice and went on: the blocks of its screen, and what was kept."""
    engine = FakeEngine(hold_steps=True)
    store = ConversationStore(path.parent / "talks")
    stage = Stage(engine, store=store)
    stage.recorder.start(path)
    async with stage.app.run_test() as pilot:
        await ask(pilot, "/continue", brings=lambda: stage.notice == "Nothing has been answered yet.")
        for steps, text in ((3, "One?"), (6, "/continue")):
            await ask(pilot, text, brings=lambda: stage.asking)
            assert stage.activity != "ready", "what is asked is under way, and can be stopped"
            await act(pilot, lambda: engine.release(3), brings=lambda: engine.steps_done == steps)
            await press(pilot, "escape", brings=lambda: not stage.asking)
        await ask(pilot, "/continue", brings=lambda: stage.asking)
        await act(pilot, engine.release, brings=lambda: not stage.asking)
        shown = blocks(stage.app)
        answers = stage.screen.view.presenter.answers
        assert answers.latest == 1 and len(answers.get(1) or ()) == engine.steps_done
        await press(pilot, "left", "home", brings=lambda: "pass 1 of " in stage.screen.view.presenter._status.mode)
        await pilot.press("escape", "f7")
        kept = [[one.answer for one in kept.exchanges] for kept in store.conversations()]
    return shown, kept


async def test_an_answer_that_went_on_is_one_on_the_screen_in_the_file_and_in_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "talk.ladechat.jsonl"
    shown, kept = await recorded(path)
    said = [written for kind, written in shown if kind in ("user", "model")]
    assert said == ["One?", ANSWER] and kept == [[ANSWER]]
    count = len(tokens(ANSWER))
    sums = [written for kind, written in shown if kind == "notice" and " passes · " in written]
    assert len(sums) == 1 and sums[0].startswith(f"{count} tokens")
    recording = Recording.read(path)
    (turn,) = talk_of(recording).turns
    assert turn.question == "One?" and turn.answer == ANSWER and turn.figures()["tokens"] == f"{count:,}"
    assert turn.finished is not None and len(turn.finished.token_ids) == count
    assert [step.index for step in turn.steps] == list(range(len(turn.steps)))
    assert len(recording.turns) == 1
    async with replaying(recording, playing=True) as (pilot, app, player):
        player.go(len(recording.events))
        assert [written for kind, written in blocks(app) if kind in ("user", "model")] == said
        first = next(place for place, event in enumerate(recording.events) if isinstance(event, Step)) + 1
        player.go(first)
        await pilot.pause()
        assert blocks(app)[-1] == ("model", turn.steps[0].pieces[0])


@pytest.mark.parametrize("dies", [True, False], ids=["died", "failed"])
async def test_a_continuation_that_broke_off_is_in_the_answer_once_when_it_goes_on(tmp_path: Path, dies: bool) -> None:
    stage = Stage(FakeEngine(hold_steps=True), FakeEngine())
    path = tmp_path / "talk.ladechat.jsonl"
    stage.recorder.start(path)
    async with stage.app.run_test() as pilot:
        first = stage.engine
        await begun(pilot, stage, 3)
        await press(pilot, "escape", brings=lambda: not stage.asking)
        half = dict(blocks(stage.app))["model"]
        await ask(pilot, "/continue", brings=lambda: stage.asking)
        await act(pilot, lambda: first.release(3), brings=lambda: dict(blocks(stage.app))["model"] != half)
        if dies:
            await act(pilot, first.die, brings=lambda: "the engine has ended" in stage.activity)
            await press(pilot, "f5", brings=lambda: stage.activity == "ready")
        else:
            await act(pilot, first.break_off, brings=lambda: "It broke." in stage.text and not stage.asking)
        async with brings(lambda: dict(blocks(stage.app))["model"] == ANSWER and not stage.asking, pilot):
            await ask(pilot, "/continue")
            first.release()
        assert stage.engine.questions[-1].first_step == (6 if dies else 3), "a failed pass leaves nothing"
        await press(pilot, "f8", brings=lambda: stage.app.clipboard == ANSWER)
        shown = blocks(stage.app)
        steps = stage.screen.view.presenter.answers.get(1)
        assert steps is not None and len(steps) == stage.engine.steps_done
        await pilot.press("f7")
    (sum_of_it,) = [written for kind, written in shown if kind == "notice" and " passes · " in written]
    assert sum_of_it.startswith(f"{len(tokens(ANSWER))} tokens · {stage.engine.steps_done} passes")
    recording = Recording.read(path)
    (turn,) = talk_of(recording).turns
    assert turn.answer == ANSWER and len(turn.steps) == stage.engine.steps_done
    assert turn.finished is not None and turn.finished.text == ANSWER
    async with replaying(recording, playing=True) as (_, app, player):
        player.go(len(recording.events))
        assert [one for one in blocks(app) if one[0] == "model"] == [("model", ANSWER)]


async def test_an_answer_goes_on_in_its_place_though_something_was_said_below_it(tmp_path: Path) -> None:
    """By the app, or by its user; at once, or when the conversation was opened again."""
    engine, store = FakeEngine(hold_steps=True), ConversationStore(tmp_path)
    async with Stage(engine, store=store).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        for steps in (3, 6):
            await act(pilot, lambda: engine.release(3), brings=lambda: engine.steps_done == steps)
            await press(pilot, "escape", brings=lambda: not stage.asking)
            for prompt in ("Rhyme.", "Be brief."):
                stage.session.instruct(prompt)
            await ask(pilot, "/continue", brings=lambda: stage.asking)
        await act(pilot, engine.release, brings=lambda: not stage.asking)
        shown = [(kind, written) for kind, written in blocks(stage.app) if written]
        (kept,) = store.conversations()
        half = replace(kept.exchanges[0], answer="".join(tokens(ANSWER)[:4]), system="Rhyme.")
        stage.session.open(saved(kept.path.with_name("gone"), half, system="Rhyme."))
        stage.session.frame()
        await ask(pilot, "/continue", brings=lambda: not stage.asking and "reopened" not in stage.text)
        reopened = [(kind, written) for kind, written in blocks(stage.app) if written]
    assert [kind for kind, _ in shown] == ["user", "model", *["notice"] * 5]
    assert shown[1][1] == ANSWER and [" passes · " in written for _, written in shown[2:]] == [True, *[False] * 4]
    assert [written.split(": ")[-1] for _, written in shown[3:]] == ["Rhyme.", "Be brief."] * 2
    assert [kind for kind, _ in reopened] == ["user", "model", "notice", "notice"]
    assert reopened[1][1] == ANSWER and " passes · " in reopened[2][1]
    assert reopened[3][1] == "As before, the model is told: Rhyme."


async def test_an_answer_that_no_other_has_replaced_goes_on_in_its_place() -> None:
    async with Stage(FakeEngine()).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        stage.engine.fail_next = "message_too_long"
        await press(pilot, "ctrl+r", brings=lambda: stage.prompt == "Two?" and not stage.asking)
        await ask(pilot, "/continue", brings=lambda: not stage.asking and len(stage.engine.questions) == 4)
        shown = [kind for kind, _ in blocks(stage.app)]
    assert [message.content for message in stage.engine.questions[3].messages] == ["One?", ANSWER, "Two?", ANSWER]
    assert shown == ["user", "model", "notice", "user", "notice", "notice", "user", "model", "notice"]


@pytest.mark.parametrize("complete", [False, True], ids=["stopped", "complete"])
async def test_what_is_to_go_on_waits_for_the_model_to_load_and_is_seen_to_wait(complete: bool) -> None:
    async with Stage(FakeEngine(), FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        last = stage.session.conversation.messages[-1].token_ids or []
        stage.engines[1].eos_ids = last[-1:] if complete else [2]
        await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and "reading the weights" in stage.activity)
        await ask(pilot, "/continue", brings=lambda: "/continue waits" in stage.status)
        async with brings(lambda: "The answer does not go on: the model was still loading." in stage.text, pilot):
            await pilot.press("escape")
        assert "waits" not in stage.status and not stage.asking
        await ask(pilot, "/continue", brings=lambda: "/continue waits" in stage.status)
        await act(pilot, stage.engine.finish_loading, brings=lambda: not stage.asking)
        assert stage.activity == "ready" and "waits" not in stage.status
        assert len(stage.engine.questions) == (0 if complete else 1)
        assert ("This answer is complete" in stage.text) == complete


@pytest.mark.full
async def test_an_answer_of_another_model_cannot_go_on_and_the_sentence_says_so(tmp_path: Path) -> None:
    async with Stage(FakeEngine()).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        async with brings(lambda: "can continue only its own" in stage.notice, pilot):
            stage.session.conversation.use_model("owner/other")
            await ask(pilot, "/continue")
        assert not stage.asking and len(stage.engine.questions) == 1


@pytest.mark.full
async def test_a_stop_before_it_went_on_leaves_the_answer_as_it_was() -> None:
    engine = FakeEngine(hold_steps=True)
    async with Stage(engine).running() as (pilot, stage):
        await begun(pilot, stage, 3)
        await press(pilot, "escape", brings=lambda: not stage.asking)
        before = blocks(stage.app)
        await ask(pilot, "/continue", brings=lambda: stage.asking)
        await press(pilot, "escape", brings=lambda: not stage.asking)
        assert [one for one in blocks(stage.app) if one[0] == "model"] == [one for one in before if one[0] == "model"]
        assert len(stage.screen.view.presenter.answers.get(1) or ()) == 3
