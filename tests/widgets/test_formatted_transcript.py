"""Answers as formatted Markdown, long questions folded, and what both leave of the colours of steps."""

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from ladechat.widgets.prompt.above_prompt import size_of
from ladechat.widgets.transcript.block import INDENT
from ladechat.widgets.transcript.transcript import Transcript
from tests.waiting import act, brings, until
from tests.widgets.hosting import Host, hosted, lines, style_of
from tests.widgets.test_transcript import read, steps_of, write_answer, write_question

MARKDOWN = "# Pools\n\nThe **n-gram pool** keeps\n\n```python\ndef a(): return 1\n```\n"


async def test_answers_are_formatted_on_demand_and_questions_stay_as_they_were_written() -> None:
    async with hosted(Transcript(), 40, 12) as (pilot, transcript):
        write_question(transcript, "**Why?**")
        write_answer(transcript, *([MARKDOWN[at : at + 4], MARKDOWN[at + 4 : at + 8]] for at in range(0, 72, 8)))
        written = [line.text for line in transcript.lines]
        transcript.formatted = True
        await pilot.pause()
        shown = [line.rstrip() for line in lines(transcript)]
        assert shown[:11] == [
            "You",
            "  **Why?**",
            "",
            "m",
            "  Pools",
            "",
            "  The n-gram pool keeps",
            "",
            "  Python",
            "  │ def a(): return 1",
            "",
        ]
        assert style_of(transcript, "n-gram pool").bold
        assert MARKDOWN.strip() in read(transcript)
        transcript.formatted = False
        assert [line.text for line in transcript.lines] == written


async def test_a_formatted_answer_grows_a_few_times_a_second_and_is_whole_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ladechat.widgets.transcript.transcript.FORMATTING_SECONDS", 1000.0)
    async with hosted(Transcript(), 40, 12) as (_, transcript):
        transcript.formatted = True
        write_answer(transcript, ["**one**"])
        transcript.add_steps(steps_of([[" and **two**"]], first=1))
        assert lines(transcript)[:3] == ["m", "  one", ""]
        transcript.notice("2 tokens")
        assert lines(transcript)[:5] == ["m", "  one and two", "", "  2 tokens", ""]


async def test_a_formatted_answer_that_waits_to_be_drawn_is_drawn() -> None:
    async with hosted(Transcript(), 40, 12) as (pilot, transcript):
        transcript.formatted = True
        transcript.start("model", "m")
        for number in range(4):
            transcript.add_steps(steps_of([[f"**word{number}** "]], first=number))
        await until(lambda: "word3" in lines(transcript)[1], pilot)
        async with brings(lambda: "  again" in lines(transcript), pilot):
            transcript.keep(0)
            transcript.add_steps(steps_of([["again"]]))


async def test_a_long_question_is_folded_opens_by_click_and_key_and_is_copied_whole() -> None:
    transcript = Transcript()
    question = "\n".join(f"line {number}" for number in range(50))
    async with Host(transcript, 40, 12).run_test() as pilot:
        write_question(transcript, question)
        transcript.start("model", "m")
        transcript.add("Yes.")
        assert lines(transcript)[1:7] == [
            *[f"  line {number}" for number in range(4)],
            "  … 50 lines in all · click or Ctrl+N",
            "",
        ]
        assert question in read(transcript)
        chosen = transcript.get_selection(Selection(Offset(INDENT, 1), Offset(9, 5)))
        assert chosen is not None and chosen[0].rstrip() == question
        await pilot.click(transcript, offset=(5, 2))
        assert transcript.virtual_size.height == 10
        async with brings(lambda: transcript.virtual_size.height == 56, pilot):
            await pilot.click(transcript, offset=(5, 5))
        assert question in read(transcript)
        await act(pilot, transcript.action_fold, brings=lambda: transcript.virtual_size.height == 10)
        await act(pilot, transcript.action_fold, brings=lambda: transcript.virtual_size.height == 56)


async def test_a_question_of_a_few_lines_is_not_folded() -> None:
    async with hosted(Transcript(), 40, 30) as (_, transcript):
        write_question(transcript, "\n".join("abcdefghij"))
        assert not any("in all" in line for line in lines(transcript))
        transcript.add("\nk")
        assert any("… 11 lines in all" in line for line in lines(transcript))


async def test_a_folded_text_has_as_many_lines_as_the_prompt_said_however_often_they_are_wrapped() -> None:
    transcript = Transcript()
    pasted = ("a line that is wrapped into several rows of so narrow a terminal " + "\n") * 30
    for text, extent in ((pasted, "30 lines"), ("one long line " * 100, "1,399 characters")):
        async with Host(transcript, 40, 12).run_test():
            write_question(transcript, text.strip())
            assert any(f"… {extent} in all ·" in line for line in lines(transcript))
            assert extent in size_of(text.rstrip(" "))
        transcript = Transcript()


async def test_while_a_step_is_marked_the_colours_of_steps_are_shown() -> None:
    async with hosted(Transcript(), 40, 12) as (_, transcript):
        write_answer(transcript, ["**one", "**"], [" two"])
        transcript.formatted = True
        assert lines(transcript)[1] == "  one two"
        transcript.mark(1, 0)
        assert lines(transcript)[1] == "  **one** two"
        transcript.add_steps(steps_of([[" three"]], first=2))
        assert lines(transcript)[1] == "  **one** two three"
        transcript.unmark()
        assert lines(transcript)[1] == "  one two three"
