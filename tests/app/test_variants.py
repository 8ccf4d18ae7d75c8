"""Earlier questions: chosen, edited, answered again, deleted and gone on from; what was there stays as a variant."""

from pathlib import Path

import pytest
from textual.selection import Selection

from ladechat.screens.chat.context import STOP_FIRST
from ladechat.screens.chat.questions import CHOSEN, DELETED, LAST_CHOSEN, ONLY_FIRST, ONLY_VARIANT, VARIANT_DELETED
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept, new_stage, rows, show_list, shown
from tests.app.stage import Driver, Stage, answered, ask, footer_names, replaying
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until

SIZE = (100, 50)


def heads(stage: Stage) -> list[str]:
    """The lines with the name above each question."""
    return [line.text for line in stage.app.query_one(Transcript).lines if line.text.startswith("You")]


def chosen(stage: Stage) -> str:
    """The question below the name that is marked; "" if there is none."""
    lines = stage.app.query_one(Transcript).lines
    marked = [place for place, line in enumerate(lines) if any(ink.kind == "marked" for _, ink in line.runs)]
    return lines[marked[0] + 1].text.strip() if marked else ""


def where(stage: Stage) -> str:
    """The line above the prompt about the place of the next question."""
    line = stage.app.query_one("#editing")
    return str(line.content) if line.display else ""  # type: ignore[attr-defined]


def asked_last(stage: Stage) -> list[str]:
    return [message.content for message in stage.engine.questions[-1].messages]


async def three_asked(pilot: Driver, stage: Stage) -> None:
    for times, question in enumerate(("One?", "Two?", "Three?"), 1):
        await answered(pilot, stage, question, times=times)


async def again(pilot: Driver, stage: Stage, brought: str) -> None:
    await press(pilot, "ctrl+r", brings=lambda: brought in stage.text and not stage.asking)


def reopened(tmp_path: Path, before: Stage) -> Stage:
    """The conversation of an app that was left, in another one."""
    assert before.screen.saved.store is not None
    before.screen.saved.store.begin_new()
    return new_stage(tmp_path, opened=kept(tmp_path)[0])


def five(tmp_path: Path) -> Stage:
    return new_stage(tmp_path, "first", "second", "third", "fourth", "fifth")


async def test_old_answers_stay_as_variants_and_the_one_that_is_shown_is_sent_and_opened_again(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await press(pilot, "alt+left", brings=lambda: stage.notice == ONLY_VARIANT)
        await again(pilot, stage, "second")
        await again(pilot, stage, "third")
        await until(lambda: heads(stage) == ["You  ‹ 3 of 3 ›"], pilot)
        await press(pilot, "alt+left", brings=lambda: heads(stage) == ["You  ‹ 2 of 3 ›"])
        assert "second" in stage.text and "third" not in stage.text and stage.text.startswith("You\nOne?")
        await press(pilot, "alt+right", "alt+right", brings=lambda: heads(stage) == ["You  ‹ 1 of 3 ›"])
        await ask(pilot, "Two?", brings=lambda: "fourth" in stage.text and not stage.asking)
        ids = stage.engine.questions[-1].messages[1].token_ids
        assert asked_last(stage) == ["One?", "first", "Two?"] and ids, "the cache holds what was said"
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first", "fourth"]
    async with reopened(tmp_path, stage).running(SIZE) as (pilot, stage):
        await until(lambda: heads(stage) == ["You  ‹ 1 of 3 ›", "You"], pilot)
        await press(pilot, "alt+up", "alt+up", "alt+left", brings=lambda: heads(stage) == ["You  ‹ 3 of 3 ›"])
        assert "third" in stage.text and "fourth" not in stage.text
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["third"]


async def test_alt_right_takes_back_what_alt_left_has_shown_also_where_other_questions_follow_then(
    tmp_path: Path,
) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", "ctrl+r", brings=lambda: "fourth" in stage.text and not stage.asking)
        replaced, new = ["You", "You  ‹ 1 of 2 ›", "You"], ["You", "You  ‹ 2 of 2 ›"]
        await until(lambda: heads(stage) == new, pilot)
        await press(pilot, "alt+left", brings=lambda: heads(stage) == replaced)
        await press(pilot, "alt+right", brings=lambda: heads(stage) == new)
        await press(pilot, "alt+left", brings=lambda: heads(stage) == replaced)
        await press(pilot, "alt+up", brings=lambda: chosen(stage) == "Three?")
        await press(pilot, "escape", "alt+right", brings=lambda: stage.notice == ONLY_VARIANT)
        assert heads(stage) == replaced


async def test_what_another_variant_says_is_found_and_opens_there(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", "ctrl+r", brings=lambda: "fourth" in stage.text and not stage.asking)
        await show_list(pilot, stage, 1)
        await press(pilot, *"third", brings=lambda: "another variant: … third …" in rows(stage)[0])
        await press(pilot, "enter", brings=lambda: stage.in_front() and stage.screen.get_selected_text() == "third")
        assert heads(stage) == ["You", "You  ‹ 1 of 2 ›", "You"]
    async with new_stage(tmp_path).running(SIZE) as (pilot, stage):
        await show_list(pilot, stage, 1)
        await press(pilot, *"fourth", "enter", brings=lambda: stage.in_front() and "fourth" in stage.text)
        await until(lambda: stage.screen.get_selected_text() == "fourth" and heads(stage)[-1] == "You  ‹ 2 of 2 ›")


async def test_a_found_variant_of_the_open_conversation_waits_for_the_end_of_its_answer(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await again(pilot, stage, "second")
        stage.engine.hold()
        await ask(pilot, "Two?", brings=lambda: stage.asking)
        await show_list(pilot, stage, 1)
        await press(pilot, *"first", "enter", brings=lambda: stage.in_front() and stage.notice == STOP_FIRST)
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        assert "second" in stage.text and "first" not in stage.text


async def test_an_earlier_question_is_edited_and_all_that_came_after_it_comes_back(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", brings=lambda: chosen(stage) == "Two?")
        assert where(stage) == CHOSEN.format(2, 3) and "Delete" in footer_names(stage.app)
        await press(pilot, "alt+down", brings=lambda: where(stage) == LAST_CHOSEN.format(3, 3))
        await press(pilot, "alt+up", brings=lambda: chosen(stage) == "Two?")
        await press(pilot, "ctrl+t", brings=lambda: stage.prompt == "Two?")
        assert "Editing question 2 of 3" in where(stage)
        await press(pilot, "!", "escape", brings=lambda: stage.prompt == "" and "Question 2" in where(stage))
        await press(pilot, "ctrl+t", "!", "enter", brings=lambda: "fourth" in stage.text and not stage.asking)
        assert asked_last(stage) == ["One?", "first", "Two?!"] and where(stage) == chosen(stage) == ""
        await until(lambda: heads(stage) == ["You", "You  ‹ 2 of 2 ›"], pilot)
        await press(pilot, "alt+left", brings=lambda: heads(stage) == ["You", "You  ‹ 1 of 2 ›", "You"])
        assert "second" in stage.text and "third" in stage.text and "fourth" not in stage.text
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?", "Two?", "Three?"]


async def test_what_is_asked_while_a_question_is_chosen_follows_its_answer(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, *["alt+up"] * 5, "alt+down", brings=lambda: chosen(stage) == "Two?")
        await press(pilot, "alt+up", brings=lambda: chosen(stage) == "One?")
        await ask(pilot, "Else?", brings=lambda: "fourth" in stage.text and not stage.asking)
        assert asked_last(stage) == ["One?", "first", "Else?"]
        await until(lambda: heads(stage) == ["You", "You  ‹ 2 of 2 ›"], pilot)
        await press(pilot, "alt+up", brings=lambda: chosen(stage) == "Else?")
        await press(pilot, "escape", brings=lambda: chosen(stage) == where(stage) == "")
        await press(pilot, "alt+up", "alt+up", "ctrl+r", brings=lambda: "fifth" in stage.text and not stage.asking)
        assert asked_last(stage) == ["One?"] and "fourth" not in stage.text
        await press(pilot, "alt+left", brings=lambda: heads(stage) == ["You  ‹ 1 of 2 ›", "You  ‹ 2 of 2 ›"])


async def test_a_question_is_chosen_with_the_mouse_and_so_are_its_variants(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await again(pilot, stage, "second")
        await ask(pilot, "Two?", brings=lambda: "third" in stage.text and not stage.asking)
        await until(lambda: heads(stage) == ["You  ‹ 2 of 2 ›", "You"], pilot)
        await click(pilot, stage, "‹", brings="first")
        assert heads(stage) == ["You  ‹ 1 of 2 ›"] and chosen(stage) == "One?"
        await click(pilot, stage, "›", brings="third")
        async with brings(lambda: chosen(stage) == "Two?", pilot):
            await pilot.click(Transcript, offset=place_of(stage, "Two?"))
        await press(pilot, "escape", brings=lambda: chosen(stage) == "")


async def click(pilot: Driver, stage: Stage, text: str, *, brings: str) -> None:
    async with _brings(lambda: brings in stage.text, pilot):
        await pilot.click(Transcript, offset=place_of(stage, text))


_brings = brings


def place_of(stage: Stage, text: str) -> tuple[int, int]:
    """Where a text is in the transcript, all of which is in view."""
    transcript = stage.app.query_one(Transcript)
    y, line = next((y, line) for y, line in enumerate(transcript.lines) if text in line.text)
    return line.text.index(text) + transcript.styles.padding.left, y - transcript.scroll_offset.y


async def test_a_deleted_question_takes_along_what_follows_it_and_comes_back(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", "delete", brings=lambda: "Two?" not in stage.text)
        assert "Three?" not in stage.text and stage.notice == DELETED and chosen(stage) == ""
        await ask(pilot, "Else?", brings=lambda: "fourth" in stage.text and not stage.asking)
        assert asked_last(stage) == ["One?", "first", "Else?"] and heads(stage) == ["You", "You"]
    async with reopened(tmp_path, stage).running(SIZE) as (pilot, stage):
        await ask(pilot, "/undelete", brings=lambda: "Three?" in stage.text)
        await until(lambda: heads(stage) == ["You", "You  ‹ 1 of 2 ›", "You"], pilot)
        await press(pilot, *["alt+up"] * 3, "delete", brings=lambda: stage.notice == ONLY_FIRST)
        assert "One?" in stage.text
        await ask(pilot, "/undelete", brings=lambda: "Nothing is deleted" in stage.notice)


async def test_deleting_a_variant_says_that_another_stands_in_its_place(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await again(pilot, stage, "second")
        await press(pilot, "alt+up", "delete", brings=lambda: "first" in stage.text and "second" not in stage.text)
        assert stage.notice == VARIANT_DELETED
        await press(pilot, "alt+up", "delete", brings=lambda: stage.notice == ONLY_FIRST)
        await ask(pilot, "/undelete", brings=lambda: "second" in stage.text)


async def test_what_takes_the_place_of_a_deleted_variant_is_in_view_and_so_is_what_comes_back(tmp_path: Path) -> None:
    async with new_stage(tmp_path, "first", "line\n" * 60, "second").running((80, 24)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Long?", times=2)
        await press(pilot, "alt+up", "alt+up", "ctrl+r", brings=lambda: "second" in stage.text and not stage.asking)
        transcript = stage.app.query_one(Transcript)

        def in_view(text: str) -> bool:
            return any(text in line.text for line in shown(transcript))

        await press(pilot, "alt+up", "delete", brings=lambda: "Long?" in stage.text and in_view("first"))
        assert not transcript.follows_end
        await ask(pilot, "/undelete", brings=lambda: in_view("second"))


async def test_f8_copies_the_answer_to_the_chosen_question(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", "f8", brings=lambda: stage.app.clipboard == "second")
        await press(pilot, "alt+up", "f8", brings=lambda: stage.app.clipboard == "first")
        await press(pilot, "escape", "f8", brings=lambda: stage.app.clipboard == "third")


async def test_the_delete_key_deletes_what_is_typed_while_there_is_something(tmp_path: Path) -> None:
    async with five(tmp_path).running(SIZE) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        await press(pilot, *"ab", "alt+up", "left", "delete", brings=lambda: stage.prompt == "a")
        assert "Two?" in stage.text and chosen(stage) == "Two?"


@pytest.mark.parametrize("how", ["refused", "stopped", "broken off", "engine died"])
async def test_an_earlier_answer_whose_replacement_does_not_come_is_there_again_with_all_after_it(
    tmp_path: Path, how: str
) -> None:
    engines = FakeEngine(answers=("first", "second", "third", "fourth")), FakeEngine(answers=("fifth",))
    stage = Stage(*engines, store=ConversationStore(tmp_path / "talks"))
    async with stage.app.run_test(size=SIZE) as pilot:
        await three_asked(pilot, stage)
        stage.engine.hold()
        stage.engine.fail_next = "message_too_long" if how == "refused" else None
        async with brings(lambda: len(stage.engine.questions) == 4, pilot):
            await pilot.press("alt+up", "alt+up", "ctrl+t", "!", "enter")
        match how:
            case "stopped":
                await pilot.press("escape")
            case "broken off":
                stage.engine.break_off()
            case "engine died":
                stage.engine.die()
        await until(lambda: not stage.asking and "third" in stage.text, pilot)
        assert stage.prompt == "Two?!" and "Editing question 2 of 3" in where(stage) and heads(stage)[-1] == "You"
        if how == "engine died":
            await press(pilot, "f5", brings=lambda: stage.activity == "ready")
        stage.engine.release()
        await press(pilot, "enter", brings=lambda: not stage.asking and "third" not in stage.text)
        assert asked_last(stage) == ["One?", "first", "Two?!"]
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?", "Two?!"]


async def test_nothing_of_this_is_done_during_an_answer_or_before_the_first(tmp_path: Path) -> None:
    stage = Stage(FakeEngine(hold_steps=True), store=ConversationStore(tmp_path))
    async with stage.app.run_test(size=SIZE) as pilot:
        await press(pilot, "alt+up", brings=lambda: "Nothing has been answered" in stage.notice)
        await ask(pilot, "One?", brings=lambda: stage.asking)
        for key in ("alt+up", "alt+left"):
            before = len(stage.notices)
            await press(pilot, key, brings=lambda before=before: len(stage.notices) > before)  # type: ignore[misc]
            assert stage.notice == "Stop the answer first (Esc)."


async def test_a_long_question_stays_folded_and_one_far_above_comes_into_view(tmp_path: Path) -> None:
    async with new_stage(tmp_path, "line\n" * 60).running((80, 24)) as (pilot, stage):
        await answered(pilot, stage, "\n".join(map(str, range(30))))
        await answered(pilot, stage, "Two?", times=2)
        transcript = stage.app.query_one(Transcript)
        await press(pilot, "alt+up", "alt+up", brings=lambda: transcript.scroll_offset.y == 0)
        assert not any(line.text.strip() == "29" for line in transcript.lines)
        await press(pilot, "escape", brings=lambda: transcript.follows_end)


@pytest.mark.parametrize(
    ("size", "answer"), [((40, 10), "line\n" * 60), ((60, 12), "short")], ids=["more below", "at the end"]
)
async def test_a_chosen_question_is_near_the_top_of_a_low_screen(
    tmp_path: Path, size: tuple[int, int], answer: str
) -> None:
    async with new_stage(tmp_path, answer).running(size) as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        transcript = stage.app.query_one(Transcript)
        height = transcript.size.height
        for question in ("Two?", "One?"):
            async with brings(lambda: chosen(stage) == question and transcript.size.height < height, pilot):
                await pilot.press("alt+up")
            top = [strip.text.strip() for strip in shown(transcript)][:3]
            assert "You" in top and question in top


@pytest.mark.full
async def test_a_replay_shows_each_branch_when_it_was_shown(tmp_path: Path) -> None:
    stage = five(tmp_path)
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test(size=SIZE) as pilot:
        await three_asked(pilot, stage)
        await press(pilot, "alt+up", "alt+up", "ctrl+r", brings=lambda: "fourth" in stage.text and not stage.asking)
        await press(pilot, "alt+left", brings=lambda: "third" in stage.text)
        await press(pilot, "alt+up", "delete", brings=lambda: "third" not in stage.text)
        stage.engine.fail_next = "message_too_long"
        await press(pilot, "ctrl+r", brings=lambda: stage.prompt == "Two?")
        await ask(pilot, "/undelete", brings=lambda: "third" in stage.text)
        shown = stage.text
    recording = Recording.read(tmp_path / "talk.jsonl")
    assert recording.closed and recording.notices == []
    async with replaying(recording, SIZE, playing=True) as (pilot, _, screen):

        def text_at(place: int) -> str:
            screen.go(place)
            selected = screen.view.transcript.get_selection(Selection(None, None))
            return selected[0] if selected else ""

        places = range(len(recording.events) + 1)
        forward = [text_at(place) for place in places]
        assert forward[-1].endswith(shown)
        assert [text_at(place) for place in reversed(places)] == forward[::-1]
