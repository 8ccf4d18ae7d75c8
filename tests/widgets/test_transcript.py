"""The conversation: which token wears what, where the view stands, and what is copied."""

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.style import Style
from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Offset
from textual.selection import Selection

from ladechat import protocol
from ladechat.palette import Look, Palette
from ladechat.widgets.transcript.block import INDENT
from ladechat.widgets.transcript.transcript import NEW_BELOW, Transcript
from ladechat.widgets.transcript.whole import messages_of
from tests.waiting import brings, until
from tests.widgets.hosting import hosted, lines, style_of
from tests.widgets.sample_steps import answer, step

LONG = "Every word of this sentence is long enough to be wrapped somewhere, and none of them may be lost. " * 3


def steps_of(groups: Sequence[Sequence[str]], first: int = 0) -> list[protocol.Step]:
    return [step(pieces, index=first + number) for number, pieces in enumerate(groups)]


def write_question(transcript: Transcript, text: str) -> None:
    transcript.start("user", "You")
    transcript.add(text)


def write_answer(transcript: Transcript, *groups: Sequence[str]) -> None:
    """Write an answer of steps, each of these tokens."""
    transcript.start("model", "m")
    transcript.add_steps(steps_of(groups))


def filled(transcript: Transcript, lines_wanted: int = 60) -> None:
    transcript.start("model", "demo model")
    transcript.add("\n".join(f"line {number}" for number in range(lines_wanted)))


def look_of(style: Style) -> tuple[object, bool, bool]:
    return style.color, bool(style.underline), bool(style.bold)


def read(transcript: Transcript) -> str:
    """All of the text, however it is wrapped, without names and indents."""
    return (transcript.get_selection(Selection(None, None)) or ("", ""))[0]


async def test_blocks_have_a_name_an_indented_text_and_an_empty_line() -> None:
    async with hosted(Transcript(), 40, 12) as (_, transcript):
        write_question(transcript, "What is it?")
        transcript.start("model", "demo model")
        transcript.add_steps(steps_of([[" A"], [" pool", "."]]))
        transcript.notice("3 tokens")
        shown = [line.rstrip() for line in lines(transcript)]
        assert shown[:8] == ["You", "  What is it?", "", "demo model", "  A pool.", "", "  3 tokens", ""]


@pytest.mark.parametrize("formatted", [False, True])
async def test_an_answer_goes_on_where_it_went_on_before_unless_that_was_settled(formatted: bool) -> None:
    async with hosted(Transcript(), 40, 12) as (_, transcript):
        transcript.formatted = formatted
        write_answer(transcript, ["A pool"])
        transcript.sum_up("2 tokens")
        for settled, answer in ((False, "A pool"), (True, "A pool"), (False, "A pool of tails.")):
            transcript.go_on()
            assert list(transcript.answers()) == [answer] and "tails." * (" of" in answer) in read(transcript)
            transcript.add_steps(steps_of([[" of"], [" tails."]], first=1))
            if settled:
                transcript.settle()
            transcript.put_back()
            transcript.notice("It broke off.")
        transcript.go_on()
        assert list(transcript.answers()) == ["A pool of tails."]
        transcript.put_back()
        assert read(transcript).count("It broke off.") == 3 and "2 tokens" not in read(transcript)


async def test_tokens_of_a_step_share_a_hue_and_the_next_step_has_another() -> None:
    async with hosted(Transcript(), 60, 8) as (_, transcript):
        write_answer(transcript, ["aa", "bb", "cc"], ["dd", "ee"], ["ff"], ["gg", "hh"])
        drafted = [look_of(style_of(transcript, text)) for text in ("aabb", "dd", "ff", "gg")]
        plain = look_of(transcript.rich_style)
        assert drafted[2] == plain, "the only token of its step"
        assert len({drafted[0], drafted[1], plain}) == 3
        assert drafted[3] not in (plain, drafted[0])
        assert drafted[0][1:] != drafted[1][1:]


@pytest.mark.parametrize("palette", [Palette(), Palette(look=Look.DEMO), Palette(colour=False)])
async def test_the_models_own_token_behind_drafts_has_their_hue_and_no_cue(palette: Palette) -> None:
    async with hosted(Transcript(), 60, 8) as (_, transcript):
        transcript.palette = palette
        write_answer(transcript, ["aa", "bb", "cc"], ["dd", "ee"])
        for drafted, own in (("aabb", "cc"), ("dd", "ee")):
            assert style_of(transcript, drafted).color == style_of(transcript, own).color
            assert look_of(style_of(transcript, drafted))[1:] != (False, False)
            assert look_of(style_of(transcript, own))[1:] == (False, False)


async def test_the_style_of_a_step_goes_on_in_the_next_line() -> None:
    async with hosted(Transcript(), 20, 8) as (_, transcript):
        write_answer(transcript, ["a" * 10, " ", "b" * 10, "c"])
        assert look_of(style_of(transcript, "a" * 10)) == look_of(style_of(transcript, "b" * 10))


async def test_another_look_recolours_what_is_already_there() -> None:
    async with hosted(Transcript(), 60, 8) as (pilot, transcript):
        write_answer(transcript, ["aa", "bb", "own"], ["cc", "dd", "own"])
        assert style_of(transcript, "aabb").color != style_of(transcript, "ccdd").color
        transcript.palette = Palette(look=Look.DEMO)
        await pilot.pause()
        assert style_of(transcript, "aabb").color == style_of(transcript, "ccdd").color
        transcript.palette = Palette(colour=False)
        await pilot.pause()
        assert style_of(transcript, "aabb").color == transcript.rich_style.color
        assert style_of(transcript, "aabb").underline and style_of(transcript, "ccdd").bold


@pytest.mark.parametrize("width", [12, 25, 61])
async def test_resizing_keeps_the_text_and_the_width(width: int) -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        write_question(transcript, LONG)
        transcript.start("model", "m")
        transcript.add_steps(answer())
        before = read(transcript)
        transcript.styles.width = width
        await until(lambda: transcript.virtual_size.width == width - 1, pilot)
        assert read(transcript) == before
        assert all(cell_len(line) <= width for line in lines(transcript))
        transcript.add("!")
        assert read(transcript).rstrip("\n") == before.rstrip("\n") + "!"


async def test_it_follows_its_end_until_the_user_scrolls_up_and_again_after_end() -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        async with brings(lambda: any("line 59" in line for line in lines(transcript)), pilot):
            filled(transcript)
        assert transcript.follows_end

        async with brings(lambda: not transcript.follows_end, pilot):
            transcript.scroll_up(animate=False)
            transcript.scroll_up(animate=False)
            transcript.scroll_up(animate=False)
        place = transcript.scroll_offset.y
        transcript.add("\nand more\nand more")
        await pilot.pause()
        assert transcript.scroll_offset.y == place
        assert lines(transcript)[-1].strip() == NEW_BELOW.strip()

        async with brings(lambda: transcript.follows_end, pilot):
            transcript.focus()
            await pilot.press("end")
        assert not any(NEW_BELOW.strip() in line for line in lines(transcript))
        async with brings(lambda: any("the very last" in line for line in lines(transcript)), pilot):
            transcript.add("\nthe very last")


@pytest.mark.parametrize("way", ["wheel", "page keys"])
async def test_who_scrolls_back_to_the_end_and_beyond_follows_it_again(way: str) -> None:
    async with hosted(Transcript(), 40, 10) as (pilot, transcript):
        async with brings(lambda: any("line 59" in line for line in lines(transcript)), pilot):
            filled(transcript)
            transcript.focus()
        for event, key in ((MouseScrollUp, "pageup"), (MouseScrollDown, "pagedown")):
            for _ in range(12):
                if way == "wheel":
                    await pilot._post_mouse_events([event], transcript, offset=(5, 5))
                else:
                    await pilot.press(key)
            below = key == "pagedown"
            await until(lambda: transcript.is_vertical_scroll_end == below, pilot)
        async with brings(lambda: any("the very last" in line for line in lines(transcript)), pilot):
            transcript.add("\none\ntwo\nthe very last")


async def test_a_remark_in_the_middle_of_an_answer_does_not_take_over_the_rest_of_it() -> None:
    async with hosted(Transcript(), 40, 10) as (_, transcript):
        write_answer(transcript, ["first"])
        transcript.notice("remark", "alert")
        transcript.add_steps(steps_of([[" second"]], first=1))
        assert lines(transcript)[:7] == ["m", "  first", "", "  remark", "", "  second", ""]


async def test_all_of_a_long_answer_in_bursts_is_there_and_in_view() -> None:
    async with hosted(Transcript(), 60, 12) as (pilot, transcript):
        transcript.start("model", "m")
        pieces = [f" w{number}" for number in range(4000)]
        steps = steps_of([pieces[at : at + 4] for at in range(0, 4000, 4)])
        for at in range(0, len(steps), 50):
            transcript.add_steps(steps[at : at + 50])
        await until(lambda: any("w3999" in line for line in lines(transcript)), pilot)
        assert read(transcript).split() == ["m", *(piece.strip() for piece in pieces)]


def copied(transcript: Transcript, start: tuple[int, int], end: tuple[int, int]) -> str:
    """What is copied of the text between these columns and lines."""
    left, right = (Offset(INDENT + column, line) for column, line in (start, end))
    return (transcript.get_selection(Selection(left, right)) or ("", ""))[0].rstrip("\n")


async def test_a_selection_is_copied_without_indent_and_without_the_breaks_of_wrapping_and_words() -> None:
    async with hosted(Transcript(), 30, 12) as (_, transcript):
        transcript.start("model", "evil\x1b[2J")
        transcript.add("one two three four five six seven eight nine\n    indented\n" + "a" * 40)
        shown = lines(transcript)
        assert shown[:4] == ["evil␛[2J", "  one two three four five", "  six seven eight nine", "      indented"]
        assert copied(transcript, (4, 1), (12, 3)) == "two three four five six seven eight nine\n    indented"
        assert copied(transcript, (0, 4), (30, 5)) == "a" * 40


async def test_a_dragged_selection_is_what_lies_between_also_behind_wide_characters() -> None:
    async with hosted(Transcript(), 40, 8) as (pilot, transcript):
        transcript.start("model", "m")
        transcript.add("漢字 word 漢字")
        async with brings(lambda: (pilot.app.screen.get_selected_text() or "").strip() == "word", pilot):
            await pilot.mouse_down(transcript, offset=(7, 1))
            await pilot.hover(transcript, offset=(11, 1))
            await pilot.mouse_up(transcript, offset=(11, 1))


async def test_what_is_selected_is_marked() -> None:
    async with hosted(Transcript(), 40, 8) as (pilot, transcript):
        transcript.start("model", "m")
        transcript.add("one two three")
        pilot.app.screen.selections = {transcript: Selection(Offset(INDENT + 4, 1), Offset(INDENT + 7, 1))}
        await pilot.pause()
        assert style_of(transcript, "two").bgcolor != style_of(transcript, "three").bgcolor


async def test_an_alert_differs_from_a_remark() -> None:
    async with hosted(Transcript(), 40, 8) as (_, transcript):
        transcript.notice("remark")
        transcript.notice("alert", "alert")
        assert style_of(transcript, "remark").color != style_of(transcript, "alert").color


async def test_an_answer_begins_with_its_first_visible_character() -> None:
    async with hosted(Transcript(), 40, 8) as (_, transcript):
        write_answer(transcript, [" "], ["\n", " "], [" Yes"])
        assert lines(transcript)[1] == "  Yes"


async def test_cleared_is_empty_and_can_be_filled_again() -> None:
    async with hosted(Transcript(), 40, 8) as (_, transcript):
        filled(transcript)
        transcript.keep(0)
        assert not any(lines(transcript))
        transcript.notice("anew")
        assert lines(transcript)[0] == "  anew"


async def test_answers_are_there_as_the_model_wrote_them_the_last_one_first() -> None:
    async with hosted(Transcript(), 16, 8) as (_, transcript):
        assert list(transcript.answers()) == []
        write_question(transcript, "One?")
        write_answer(transcript, ["👩\u200d", "🚀 a long line\n"])
        transcript.notice("remark")
        transcript.add_steps(steps_of([["\tand\x1b more\n"]], first=1))
        write_question(transcript, "Two?")
        transcript.start("model", "m")
        assert list(transcript.answers()) == ["👩\u200d🚀 a long line\n\tand\x1b more"]
        transcript.add("A second one.")
        assert list(transcript.answers()) == ["A second one.", "👩\u200d🚀 a long line\n\tand\x1b more"]


def thinking(*groups: Sequence[str], first: int = 0) -> list[protocol.Step]:
    """Steps of thoughts alone."""
    return [replace(one, reasoning=len(one.pieces)) for one in steps_of(groups, first)]


async def test_thoughts_show_their_last_lines_while_they_come_and_then_one_line() -> None:
    async with hosted(Transcript(), 60, 24) as (pilot, transcript):
        transcript.start("model", "m")
        transcript.add_steps(thinking(*([f"thought {number}", ".\n"] for number in range(20))))
        shown = "\n".join(lines(transcript))
        assert "m thinks" in shown and "thought 19." in shown and "thought 3." not in shown
        assert "40 tokens in 280 ms · Ctrl+N" in shown
        transcript.add_steps(steps_of([["It", " is."]], first=20))
        assert [line.rstrip() for line in lines(transcript)][:6] == [
            "m thinks",
            "  … 40 tokens in 280 ms · Ctrl+N",
            "",
            "m",
            "  It is.",
            "",
        ]
        assert list(transcript.answers()) == ["It is."]
        transcript.action_fold()
        assert "thought 3." in "\n".join(lines(transcript))
        transcript.action_fold()
        assert "thought 3." not in "\n".join(lines(transcript))
        await pilot.click(transcript, offset=(4, 1))
        await until(lambda: "thought 3." in "\n".join(lines(transcript)), pilot)


async def test_a_step_that_is_looked_at_opens_the_thoughts_that_have_it() -> None:
    async with hosted(Transcript(), 60, 12) as (_, transcript):
        transcript.start("model", "m")
        transcript.add_steps([*thinking(["Hm, "], ["so"]), *steps_of([["Yes."]], first=2)])
        transcript.mark(1, 2)
        assert "Hm, so" not in "\n".join(lines(transcript))
        transcript.mark(1, 1)
        assert "Hm, so" in "\n".join(lines(transcript))


async def test_marks_around_no_thoughts_show_nothing() -> None:
    async with hosted(Transcript(), 60, 12) as (_, transcript):
        transcript.start("model", "m")
        transcript.add_steps([*thinking(["", "\n"], ["\n", ""]), *steps_of([["Yes."]], first=2)])
        assert "thinks" not in "\n".join(lines(transcript)) and list(transcript.answers()) == ["Yes."]


async def test_thoughts_that_were_stopped_go_on_in_their_block() -> None:
    async with hosted(Transcript(), 60, 12) as (_, transcript):
        transcript.start("model", "m")
        transcript.add_steps(thinking(["Hm,", " six"]))
        transcript.sum_up("2 tokens")
        assert "2 tokens in 14 ms" in "\n".join(lines(transcript)) and "Hm" not in "\n".join(lines(transcript))
        transcript.go_on()
        transcript.add_steps([*thinking([" or seven."], first=1), *steps_of([["Seven."]], first=2)])
        assert [line.rstrip() for line in lines(transcript)][:5] == [
            "m thinks",
            "  … 3 tokens in 28 ms · Ctrl+N",
            "",
            "m",
            "  Seven.",
        ]
        transcript.action_fold()
        assert "Hm, six or seven." in "\n".join(lines(transcript))


async def test_whatever_an_answer_was_it_looks_the_same_when_it_is_read_again() -> None:
    dice, pieces = random.Random(0), (" the", "n", "-gram", "\n\n", "漢字", "`x`", "", "\u0301", "</s>")
    live, again = Transcript(), Transcript()
    async with hosted(live) as (_, _), hosted(again) as (_, _):
        for _ in range(40):
            groups = [dice.choices(pieces, k=dice.randint(1, 5)) for _ in range(dice.randint(1, 12))]
            thoughts = [dice.randint(0, len(groups[0]))] * (dice.random() < 0.3)
            steps = [replace(one, reasoning=sum(thoughts[at : at + 1])) for at, one in enumerate(steps_of(groups))]
            text = "".join(piece for one in steps for piece in one.pieces[one.reasoning :])
            live.keep(0)
            write_question(live, "Why?")
            live.start("model", "demo model")
            live.add_steps(steps)
            saved = protocol.Exchange(
                question="Why?", answer=text, token_ids=[], model="demo", decoder="auto", steps=protocol.packed(steps)
            )
            again.open(messages_of(saved, steps[0].turn))
            live.notice("figures")
            said = [
                [
                    (block.kind, [line.runs for line in block.lines[1:]])
                    for block in each._blocks
                    if block.kind not in ("user", "notice")
                ]
                for each in (again, live)
            ]
            assert said[0] == said[1]
