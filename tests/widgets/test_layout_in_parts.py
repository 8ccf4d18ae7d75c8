"""A long conversation is seen at its end at once; what is above is laid out part by part, and nothing seen moves."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from ladechat.widgets.flow import UNKNOWN
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.transcript.whole import WholeMessage
from tests.waiting import act, brings, until
from tests.widgets.hosting import Host, hosted, lines
from tests.widgets.sample_steps import step
from tests.widgets.test_transcript import read

TURNS = 40


def conversation(turns: int = TURNS) -> Iterator[WholeMessage]:
    for turn in range(turns):
        yield WholeMessage("user", "You", [(f"Question {turn}?", UNKNOWN)])
        yield WholeMessage("model", "m", [(f"Answer {turn}, which is too long for one line of the view.", UNKNOWN)])


class Parts:
    """The parts that are due, in the place of a clock; each lays out one message."""

    def __init__(self) -> None:
        self._due: list[Callable[[], object]] = []

    def later(self, _widget: object, _seconds: float, part: Callable[[], object]) -> None:
        self._due.append(part)

    def next(self) -> bool:
        """Lay out the next part; False where none is due."""
        if self._due:
            self._due.pop()()
        return bool(self._due)

    def all(self) -> None:
        while self.next():
            pass


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    parts = Parts()
    monkeypatch.setattr("ladechat.widgets.transcript.message_lines.call_later", parts.later)
    monkeypatch.setattr("ladechat.widgets.transcript.message_lines.PART_SECONDS", 0.0)
    return parts


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Pilot[None], Transcript]]:
    """Run an app around a conversation that was opened, and is seen at its end."""
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        await act(pilot, lambda: transcript.open(conversation()), brings=lambda: transcript.max_scroll_y > 5)
        yield pilot, transcript


def at_top(transcript: Transcript) -> str:
    """The first line that is seen."""
    return lines(transcript)[0].strip()


async def test_all_of_it_is_there_after_the_last_part_as_if_it_had_been_said() -> None:
    one, other = Transcript(), Transcript()
    async with Host(one, 40, 10).run_test() as pilot:
        await act(pilot, lambda: one.open(conversation()), brings=lambda: "Question 0?" in str(one._blocks.lines))
        opened = one.lines
    async with Host(other, 40, 10).run_test():
        for kind, name, [(text, ink)], _ in conversation():
            other.start(kind, name)
            other.add(text, ink)
        assert opened == other.lines


async def test_where_the_view_is_at_the_end_it_stays_there_with_every_part(parts: Parts) -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        async with brings(lambda: f"Question {TURNS - 1}?" in "".join(lines(transcript)), pilot):
            transcript.open(conversation())
        seen, height = lines(transcript), transcript.virtual_size.height
        while parts.next():
            assert lines(transcript) == seen and transcript.follows_end
        assert transcript.virtual_size.height > 4 * height


async def test_whoever_has_scrolled_up_sees_the_same_lines_with_every_part(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        async with brings(lambda: transcript.scroll_offset.y == 3, pilot):
            transcript.scroll_to(y=3, animate=False)
        seen = lines(transcript)
        while parts.next():
            assert lines(transcript) == seen
        transcript.scroll_up(animate=False)
        await until(lambda: lines(transcript)[1:-1] == seen[:-2], pilot)


async def test_home_goes_to_the_first_message_also_before_that_is_laid_out(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        await act(pilot, transcript.action_scroll_home, brings=lambda: transcript.scroll_offset.y == 0)
        await until(lambda: not transcript.app.animator.is_being_animated(transcript, "scroll_y"), pilot)
        parts.all()
        assert lines(transcript)[:2] == ["You", "  Question 0?"]


async def test_what_is_selected_stays_selected_and_the_other_parts_come_after_it(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        last_but_one = 2 * TURNS - 3
        place = transcript._blocks[last_but_one].find(f"Answer {TURNS - 2}", transcript._blocks.start(last_but_one))
        assert place is not None
        height = transcript.virtual_size.height
        pilot.app.screen.selections = {transcript: place}
        for _ in range(3):
            assert parts.next(), "it tries again"
        assert pilot.app.screen.get_selected_text() == f"Answer {TURNS - 2}"
        assert transcript.virtual_size.height == height
        pilot.app.screen.clear_selection()
        parts.all()
        assert transcript.virtual_size.height > height


async def test_copying_all_copies_what_waits_too(parts: Parts) -> None:
    async with opened() as (_, transcript):
        text = read(transcript)
        assert all(f"Question {turn}?" in text and f"Answer {turn}," in text for turn in range(TURNS))


async def test_a_place_that_was_found_is_seen_at_once_and_stays_marked_with_every_part(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        transcript.scroll_to_text(range(20, 22), "answer 10,")
        seen = lines(transcript)
        assert "Answer 10," in "".join(seen) and pilot.app.screen.get_selected_text() == "Answer 10,"
        assert transcript.virtual_size.height < 60, "the others wait"
        while parts.next():
            assert lines(transcript) == seen and pilot.app.screen.get_selected_text() == "Answer 10,"
        assert read(transcript).count("Answer") == TURNS and transcript.laid_out
        await until(lambda: transcript.max_scroll_y > 200, pilot)
        async with brings(lambda: lines(transcript)[:-2] == seen[1:-1], pilot):
            transcript.scroll_down(animate=False)


async def test_the_end_is_there_at_once_too_while_what_is_above_it_waits(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        transcript.scroll_to_text(range(20, 22), "Answer 10,")
        transcript.anchor()
        await until(lambda: f"Answer {TURNS - 1}," in "".join(lines(transcript)), pilot)
        assert transcript.follows_end and not transcript.laid_out
        transcript.notice("The end.")
        await until(lambda: "The end." in "".join(lines(transcript)), pilot)
        parts.all()
        assert transcript.follows_end and read(transcript).count("Answer") == TURNS


async def test_what_is_said_meanwhile_is_the_last_when_all_is_there(parts: Parts) -> None:
    async with opened() as (_, transcript):
        transcript.scroll_to_text(range(20, 22), "Answer 10,")
        seen = lines(transcript)
        transcript.start("model", "m")
        transcript.add_steps([step(["lighthouse"])])
        parts.all()
        assert lines(transcript) == seen and read(transcript).strip().endswith("lighthouse")


async def test_a_place_in_what_was_added_behind_messages_that_wait_stays_in_view(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        transcript.scroll_to_line(10, 0)
        count = transcript.blocks
        transcript.add_whole(conversation(3))
        transcript.scroll_to_text(range(count, count + 6), "Answer 1, which")
        seen = lines(transcript)
        assert pilot.app.screen.get_selected_text() == "Answer 1, which"
        parts.all()
        assert lines(transcript) == seen and pilot.app.screen.get_selected_text() == "Answer 1, which"
        assert read(transcript).count("Answer 1,") == 2


async def test_a_place_in_a_long_question_unfolds_it(parts: Parts) -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        transcript.open([WholeMessage("user", "You", [("line\n" * 30 + "the lighthouse\nkeeper", UNKNOWN)])])
        transcript.scroll_to_text(range(1), "Lighthouse keeper")
        assert pilot.app.screen.get_selected_text() == "the lighthouse\nkeeper"[4:]
        assert "lighthouse" in "".join(lines(transcript))


async def test_another_form_and_another_width_lay_out_what_is_seen_and_keep_it_in_view(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        parts.all()
        await until(lambda: transcript.max_scroll_y > 100, pilot)
        await act(pilot, lambda: transcript.scroll_to(y=63, animate=False), brings=lambda: at_top(transcript) == "You")
        seen = lines(transcript)[1]
        transcript.formatted = True
        assert lines(transcript)[1] == seen and parts.next()
        async with brings(lambda: transcript.virtual_size.width == 59, pilot):
            transcript.styles.width = 60
        assert lines(transcript)[1] == seen and parts.next()


async def test_a_step_is_marked_in_an_answer_that_waits(parts: Parts) -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        transcript.formatted = True
        transcript.start("model", "m")
        transcript.add_steps([step(["lighthouse"], index=7)])
        for kind, name, [(text, ink)], _ in conversation(20):
            transcript.start(kind, name)
            transcript.add(text, ink)
        await until(lambda: transcript.max_scroll_y > 50, pilot)
        await act(pilot, lambda: transcript.mark(1, 7), brings=lambda: "lighthouse" in "".join(lines(transcript)))


async def test_messages_that_are_left_are_seen_where_all_of_them_wait(parts: Parts) -> None:
    async with opened() as (pilot, transcript):
        await act(pilot, lambda: transcript.keep(4), brings=lambda: "Answer 1," in "".join(lines(transcript)))
        transcript.notice("The end.")
        assert "The end." in read(transcript)
