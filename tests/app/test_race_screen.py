"""The race on the screen: what each key does, and how it is left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from ladechat.app import LadechatApp
from ladechat.keys import RACE_KEYS
from ladechat.palette import Look
from ladechat.protocol import Message
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.race import RaceScreen
from ladechat.session.measuring import Measuring
from ladechat.session.playing import Clock, Track
from ladechat.session.race import PLAIN
from ladechat.widgets.bars.seek_bar import Transport
from ladechat.widgets.race import LaneHead, LaneView, Remarks
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, entries, footer_names, shows
from tests.app.test_help import shown
from tests.app.test_small_terminals import screen_of
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until

QUESTION = "What is the n-gram pool?"


class Room:
    """A race without a chat behind it."""

    def __init__(self, engine: FakeEngine | None = None, names: tuple[str, ...] | None = None) -> None:
        self.engine = engine or FakeEngine()
        self.measuring = Measuring(self.engine, [Message(role="user", content=QUESTION)], names)
        self.screen = RaceScreen(self.measuring)
        self.app = LadechatApp(self.screen)

    @property
    def track(self) -> Track:
        assert self.screen.track is not None
        return self.screen.track

    @property
    def clock(self) -> Clock:
        return self.track.clock

    @property
    def playing(self) -> bool:
        return self.track.playing

    @property
    def remarks(self) -> str:
        return " ".join(self.screen.query_one("#race-remarks", Remarks).sentences)

    @property
    def steps(self) -> list[int]:
        """How many steps each lane shows."""
        return [len(view._shown) for view in self.screen.query(LaneView)]

    async def measured(self, pilot: Driver) -> None:
        """Wait until the race can be watched, and hold it at its start."""
        await until(lambda: self.screen.track is not None, pilot)
        await pilot.press("home")
        await until(lambda: self.track.at == 0 and not self.playing, pilot)

    @asynccontextmanager
    async def at_start(self, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Driver, Self]]:
        """Run the app, from the start of a race that can be watched."""
        async with self.app.run_test(size=size) as pilot:
            await self.measured(pilot)
            yield pilot, self


def text_of(view: LaneView) -> str:
    chosen = view.query_one(Transcript).get_selection(Selection(None, None))
    return chosen[0].strip() if chosen else ""


async def test_arrows_step_and_end_shows_whole_answers_and_the_seal_and_home_the_start() -> None:
    async with Room().at_start() as (pilot, room):
        assert room.steps == [0, 0, 0, 0] and "identical" not in room.remarks
        await press(pilot, "right", "right", "right", brings=lambda: room.steps == [3, 3, 3, 3])
        await press(pilot, "left", brings=lambda: room.steps == [2, 2, 2, 2])
        assert text_of(room.screen.query(LaneView)[0]) == "The n"
        await press(pilot, "end", brings=lambda: room.steps == [len(lane.steps) for lane in room.measuring.lanes])
        whole = {text_of(view) for view in room.screen.query(LaneView)}
        assert len(whole) == 1 and whole.pop().startswith("The n-gram pool")
        count = len(room.measuring.lanes[0].token_ids)
        assert room.remarks.startswith(f"✓ {count} of {count} tokens identical Passes saved of {count}: lookahead ")
        assert "Tokens a pass ÷ cost of a pass = speed, plain 1×: " in room.remarks
        await press(pilot, "home", brings=lambda: room.steps == [0, 0, 0, 0] and "identical" not in room.remarks)


async def test_space_pauses_and_goes_on_and_at_the_end_begins_anew() -> None:
    async with Room().at_start() as (pilot, room):
        await press(pilot, "space", brings=lambda: room.track.at > 0)
        await until(lambda: "Pause" in footer_names(room.app), pilot)
        await press(pilot, "space", brings=lambda: not room.playing)
        await until(lambda: "Go on" in footer_names(room.app), pilot)
        assert {"Clock", "Again"} <= entries(room.app).keys()
        for again in ("space", "r"):
            await press(pilot, "end", brings=lambda: room.track.at_end and not room.playing)
            await press(pilot, again, brings=lambda: room.playing and not room.track.at_end)


async def test_f1_explains_the_decoders_that_race_and_the_keys() -> None:
    async with Room(names=(PLAIN, "lookahead")).at_start(size=(160, 200)) as (pilot, room):
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = shown(room.app)
        assert all(key.tooltip in text for key in RACE_KEYS) and "One token a pass, nothing guessed." in text
        for heading in ("What you can set", "Panels", "Not on the screen now"):
            assert heading not in text, "there is neither a slider nor a panel in a race"


async def test_keys_change_the_clock_the_speed_and_the_look_and_ctrl_q_leaves() -> None:
    async with Room().at_start() as (pilot, room):
        transport = room.screen.query_one(Transport)
        assert transport.state == "‖ pass by pass 1×"
        await press(pilot, "c", brings=lambda: room.clock is Clock.SECONDS)
        assert transport.state.startswith("‖ measured time ")
        assert transport.facts[0].startswith("0 ms of ")
        await press(pilot, "c", brings=lambda: room.clock is Clock.PASSES)
        for key, speed in (("plus", 2), ("up", 4), ("minus", 2), ("down", 1)):
            await press(pilot, key, brings=lambda: room.track.speed == speed)
            assert transport.state.endswith(f" {speed:g}×")
        async with brings(
            lambda: {view.transcript.palette.look for view in room.screen.query(LaneView)} == {Look.DEMO}, pilot
        ):
            await pilot.press("f4")
        await press(pilot, "ctrl+q", brings=lambda: room.app.return_code == 0)


async def test_whoever_leads_and_how_each_came_in_is_written() -> None:
    async with Room(names=(PLAIN, "lookahead")).at_start() as (pilot, room):
        heads = list(room.screen.query(LaneHead))
        assert [head.standing.place for head in heads] == ["", ""]
        await press(pilot, *["right"] * 12, brings=lambda: [head.standing.place for head in heads] == ["", "▲ 1st"])
        await press(pilot, "end", brings=lambda: [head.standing.place for head in heads] == ["✓ 2nd", "✓ 1st"])
        assert heads[0].standing.figures[2:] == ("1.00 a pass",), "no seconds beside places by passes"
        async with brings(
            lambda: not any("a pass" in figure for head in heads for figure in head.standing.figures), pilot
        ):
            await pilot.press("c")  # nor passes beside places by seconds
        assert all(head.standing.figures for head in heads)


async def test_a_click_on_a_bar_goes_there() -> None:
    async with Room().at_start(size=(120, 40)) as (pilot, room):
        head = room.screen.query(LaneHead)[1]
        async with brings(lambda: room.steps[1] > 0, pilot):
            await pilot.click(head, offset=(head.size.width // 2, head.size.height - 1))
        lane = room.measuring.lanes[1]
        shown = sum(len(step.token_ids) for step in lane.steps[: room.steps[1]])
        assert 0.35 < shown / len(lane.token_ids) < 0.75
        before = room.steps
        await pilot.click(head, offset=(3, 0))
        assert room.steps == before


async def test_a_click_on_the_bar_of_the_clock_goes_there() -> None:
    async with Room().at_start() as (pilot, room):
        transport = room.screen.query_one(Transport)
        async with brings(lambda: room.track.at_end and "identical" in room.remarks, pilot):
            await pilot.click(transport, offset=(transport.content_size.width, 0))
        async with brings(lambda: room.track.at == 0, pilot):
            await pilot.click(transport, offset=(transport.render_line(0).text.index("━") + 1, 0))


async def test_lanes_are_rows_where_it_is_narrow_and_columns_where_it_is_wide() -> None:
    async with Room().at_start(size=(200, 60)) as (pilot, room):
        await press(pilot, "end", brings=lambda: room.track.at_end)
        views = list(room.screen.query(LaneView))
        for size, columns in (((200, 60), 4), ((120, 40), 4), ((80, 24), 1)):
            await pilot.resize_terminal(*size)
            await until(lambda: room.screen.size == size, pilot)
            assert len({view.region.x for view in views}) == columns
            assert len({view.transcript.size.width for view in views}) == 1, "the same text is wrapped alike"
            for view in views:
                assert room.screen.region.contains_region(view.region) and view.transcript.size.height >= 2
            assert room.screen.query_one("#race-remarks").region.bottom <= room.screen.query_one(Transport).region.y


async def test_every_lane_shows_the_last_line_of_its_answer_in_a_low_terminal() -> None:
    async with Room().at_start(size=(60, 20)) as (pilot, room):
        await press(pilot, "end", brings=lambda: room.track.at_end)
        views = list(room.screen.query(LaneView))
        last = views[0].transcript.lines[-2].text.strip()
        assert len(views) == 4 and last.endswith("at once.")
        await until(lambda: sum(last in row for row in screen_of(pilot)) == len(views), pilot)


async def test_the_remarks_leave_the_lanes_their_rows_in_the_lowest_terminals_and_no_row_begins_with_a_dot() -> None:
    for size in ((57, 12), (40, 10)):
        async with Room().at_start(size=size) as (pilot, room):
            await press(pilot, "end", brings=lambda: room.track.at_end and "identical" in room.remarks)
            remarks = room.screen.query_one("#race-remarks", Remarks)
            assert 1 <= remarks.size.height <= 3
            rows = [row for width in range(20, 100) for row in remarks.rows(width, 0)]
            assert len(rows) > 80 * 3 and not any(row[0][0].startswith("·") for row in rows)


# --- measuring, and leaving -------------------------------------------------------------------------------------------


async def test_lanes_that_come_long_after_the_screen_wrap_their_answers_at_words() -> None:
    room = Room(FakeEngine(hold_loading=True, hold_steps=True))
    async with room.app.run_test() as pilot:
        await until(lambda: "reading the weights" in room.screen.query_one(Transport).state, pilot)
        await act(pilot, room.engine.finish_loading, brings=lambda: len(room.screen.query(LaneView)) == 4)
        room.engine.release()
        await room.measured(pilot)
        await press(pilot, "end", brings=lambda: room.steps[0] > 0)
        lines = [line.text for line in room.screen.query(LaneView)[0].transcript.lines]
        assert lines[0].strip().startswith("The n-gram pool keeps what the window")


async def test_while_a_decoder_is_measured_the_screen_says_which_and_escape_stops_it_and_then_leaves() -> None:
    room = Room(FakeEngine(hold_steps=True))
    async with room.app.run_test() as pilot:
        transport = room.screen.query_one(Transport)
        await act(pilot, lambda: room.engine.release(2), brings=lambda: transport.state == "measuring plain decoding")
        await until(lambda: room.screen.query(LaneHead)[0].standing.figures[:1] == ("2 tokens",), pilot)
        heads = room.screen.query(LaneHead)
        assert [head.standing.place for head in heads] == ["measuring …", "waits", "waits", "waits"]
        assert transport.facts == ("2 passes so far", "1 of 4", "Esc stops") and room.steps == [0, 0, 0, 0]
        assert footer_names(room.app) == ["Stop", "palette"], "keys that would do nothing are not offered"
        await pilot.press("space", "right", "left", "c", "r", "plus", "home", "end")
        assert room.screen.track is None
        await press(pilot, "escape", brings=lambda: room.screen.track is not None)
        await room.measured(pilot)
        await press(pilot, "end", brings=lambda: room.steps == [2, 0, 0, 0] and room.track.at_end)
        assert [head.standing.place for head in heads] == ["stopped", *["not measured"] * 3]
        assert "Nothing to compare" in room.remarks
        await press(pilot, "escape", brings=lambda: room.app.return_code == 0)
    assert room.engine.closed


async def test_escape_while_the_engine_loads_ends_it() -> None:
    room = Room(FakeEngine(hold_loading=True))
    async with room.app.run_test() as pilot:
        await until(lambda: "reading the weights" in room.screen.query_one(Transport).state, pilot)
        assert room.remarks.startswith("The same question goes to several decoders.")
        await press(pilot, "escape", brings=lambda: room.screen.track is not None)
        assert "Stopped before anything was measured." in room.remarks
        await pilot.press("space", "right", "left", "c", "r", "home", "end")
    assert room.engine.closed


async def test_an_engine_that_fails_is_told_in_a_sentence() -> None:
    room = Room(FakeEngine(hold_loading=True))
    async with room.app.run_test() as pilot:
        await until(lambda: bool(room.screen.query(Transport)), pilot)
        await act(pilot, room.engine.fail_fatally, brings=lambda: "The weights are torn. Mend them." in room.remarks)


async def test_what_the_model_cannot_do_ends_the_program_with_a_usage_error() -> None:
    engine = FakeEngine()
    engine.single_token = "Its cache cannot go back."
    room = Room(engine, names=(PLAIN, "lookahead"))
    async with room.app.run_test() as pilot:
        await until(lambda: room.app.return_code == 2, pilot)


async def test_ctrl_c_copies_a_selection_and_leaves_where_nothing_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(LadechatApp, "copy_to_clipboard", lambda _, text: copied.append(text))
    async with Room().at_start() as (pilot, room):
        transcript = room.screen.query(LaneView)[0].transcript
        await press(pilot, "end", brings=lambda: room.steps[0] > 0)
        room.screen.selections = {transcript: Selection(Offset(2, 0), Offset(7, 0))}
        await press(pilot, "ctrl+c", brings=lambda: copied == ["The n"] and room.app.is_running)
        await press(pilot, "ctrl+c", brings=lambda: room.app.return_code == 0)
