"""The race: one question, several decoders, measured one after another, then shown side by side; or two recordings."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import ActiveBinding, BindingType

from ladechat.catalog import SERVER
from ladechat.keys import RACE_KEYS
from ladechat.own_keys import with_own_keys
from ladechat.protocol import DecoderInfo
from ladechat.refusing import USAGE_ERROR
from ladechat.screens import clocks
from ladechat.screens.footer import leave_out, relabel, relabel_pause, say_unit
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.screens.view import commands
from ladechat.session.measuring import Measuring
from ladechat.session.playing import Clock, Track
from ladechat.session.race import Comparison, Lane
from ladechat.session.server_race import MeasuringServers
from ladechat.widgets.bars.seek_bar import SeekBar, Transport
from ladechat.widgets.flow import safe
from ladechat.widgets.formatting import (
    announced,
    counted,
    describe_link,
    describe_loading,
    describe_way,
    duration,
    info_of,
)
from ladechat.widgets.later import Frames
from ladechat.widgets.race import LaneHead, Lanes, LaneView, PassBars, Remarks, Standing
from ladechat.widgets.units import shared_unit, unit_of

PLAYER_ACTIONS = ("pause", "step_forward", "step_back", "clock", "restart", "faster", "slower", "to_start", "to_end")
"""The actions on a race that was measured."""
PLACES = ("1st", "2nd", "3rd", "4th")
MEASURING = "Each decoder is measured alone, one after another; then all are shown together."
LOADING = "The same question goes to several decoders. First the model is loaded. Esc stops."
ASKING_SERVERS = "The same question goes to each server alone, one after another; then all are shown together."


class RaceScreen(StyledOnce[None]):
    """Measures a race, then plays it on one of two clocks; a comparison of recordings is only played.

    Args:
        race: a race to be measured, or one that was, which is only played; or a comparison of two recordings.
        clock: returns seconds; replaced where the race is shown in other than real time.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(RACE_KEYS)

    def __init__(self, race: Measuring | Comparison, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self.race = race
        self.track: Track | None = None
        """The position in the race; None while it is measured."""
        self._question = Remarks(id="race-question")
        self._body = Lanes(id="lanes")
        self._remarks = Remarks(id="race-remarks")
        self._transport = Transport(id="transport")
        self._lanes: list[LaneView] = []
        self._offered: tuple[bool, bool] | None = None
        self._measured: asyncio.Task[None] | None = None
        self._stop: asyncio.Task[None] | None = None
        self._frames = Frames(self, self.frame)

    def compose(self) -> ComposeResult:
        yield self._question
        yield self._body
        yield self._remarks
        yield from bottom(self._transport)

    def on_mount(self) -> None:
        self._question.say(safe(" ".join(self.race.question.split())))
        self._transport.focus()
        self._frames.due()
        self.call_after_refresh(self._after_first_frame)

    def _after_first_frame(self) -> None:
        gc.enable()
        if self._measuring is not None:
            self._measured = asyncio.create_task(self._measuring.run())

    async def on_unmount(self) -> None:
        """End the race, however the screen is left: its engine, or in an engine lent by a chat, its turn."""
        if self._measured is not None:
            self._measured.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._measured

    # --- showing ------------------------------------------------------------------------------------------------------

    @property
    def _measuring(self) -> Measuring | None:
        return self.race if isinstance(self.race, Measuring) and self.race.running else None

    async def frame(self) -> None:
        if not self.is_running:
            return
        if len(self._lanes) < len(self.race.lanes):
            self._lanes = [LaneView(lane.label) for lane in self.race.lanes]
            await self._body.mount_all(self._lanes)
            self._body.share_width()
        if self._measuring is not None:
            self._show_measuring(self._measuring)
            self._frames.go_on()
        elif self.track is None:
            self._begin()
        else:
            moving = self.track.playing
            self.track.advance(self._clock())
            if moving:
                self._show()

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        known = {**announced(()), SERVER.name: SERVER}
        return [info_of(name, known) for name in dict.fromkeys(lane.name for lane in self.race.lanes)]

    @property
    def unit(self) -> str:
        """What a step of all lanes is."""
        return shared_unit(lane.server for lane in self.race.lanes)

    def _show_measuring(self, measuring: Measuring) -> None:
        """Show the progress. The answers are drawn only afterwards: drawing would slow down the measurement."""
        current = measuring.current
        if isinstance(measuring, MeasuringServers):
            self._remarks.say(ASKING_SERVERS)
        else:
            self._remarks.say(*([LOADING] if current is None else []), MEASURING)
        for view, lane in zip(self._lanes, measuring.lanes, strict=True):
            place = "measuring …" if lane is current else "measured" if lane.finished else "waits"
            view.head.standing = _standing(lane, len(lane.steps), place, 0.0)
        if current is None:
            doing = describe_loading(measuring.loading) if measuring.loading else "starting the engine …"
            self._transport.state, self._transport.facts = doing, ()
        else:
            number = measuring.lanes.index(current)
            self._transport.state = f"measuring {current.label}"
            passes = len(current.steps)
            done = f"{counted(passes, unit_of(current.server))} so far" if passes else "reads the question"
            link = [] if measuring.round_trip_ms is None else [describe_link(measuring.round_trip_ms)]
            self._transport.facts = (done, f"{number + 1} of {len(measuring.lanes)}", *link, "Esc stops")
            self._transport.fraction = number / len(measuring.lanes)
        if (seconds := measuring.silent_for) is not None:
            self._transport.state = f"no word from the engine for {seconds:.0f} s"
            self._transport.facts = (f"Esc {'stops' if self._stop is None else 'leaves'}",)

    def _begin(self) -> None:
        """Show the results when the measurement has ended."""
        if isinstance(self.race, Measuring) and self.race.refused and self.alone:
            self.app.exit(USAGE_ERROR, return_code=USAGE_ERROR)
        self.track = Track(self.race.lanes)
        self._show()

    def _show(self) -> None:
        """Show all lanes at the time of the clock."""
        track, lanes = self.track, self.race.lanes
        if track is None:
            return
        longest = max((len(lane.token_ids) for lane in lanes), default=0)
        done = [track.steps_done(number) for number in range(len(lanes))]
        most = max((len(step.token_ids) for lane in lanes for step in lane.steps), default=1)
        scale = track.end * (1000 if track.clock is Clock.SECONDS else 1), most
        for number, (view, lane) in enumerate(zip(self._lanes, lanes, strict=True)):
            tokens = _tokens(lane, done[number])
            view.show_steps(lane.steps[: done[number]])
            place, fraction = self._place(number, done), tokens / max(longest, 1)
            bars = PassBars.of(lane.steps[: done[number]], track.clock is Clock.SECONDS, *scale)
            view.head.standing = _standing(lane, done[number], place, fraction, track.clock, bars)
        self._show_place(track)
        self._say(track)
        if track.playing:
            self._frames.go_on()

    def _place(self, number: int, done: list[int]) -> str:
        """Return a lane's standing: whether it leads, or its place at the end."""
        track, lanes = self.track, self.race.lanes
        assert track is not None
        lane = lanes[number]
        if done[number] == len(lane.steps):
            ends = [track.finished_at(other) for other, each in enumerate(lanes) if each.whole]
            before = sum(end < track.finished_at(number) for end in ends)
            return f"✓ {PLACES[before]}" if lane.whole else "stopped" if lane.steps else "not measured"
        tokens = [_tokens(each, steps) for each, steps in zip(lanes, done, strict=True)]
        return "▲ 1st" if tokens[number] == max(tokens) > min(tokens) else ""

    def _show_place(self, track: Track) -> None:
        if (offered := (track.playing, track.at_end)) != self._offered:
            self._offered = offered
            self.refresh_bindings()
        mark = "▶" if track.playing else "■" if track.at_end else "‖"
        if track.clock is Clock.PASSES:
            place = f"{self.unit} {int(track.at):,} of {int(track.end):,}"
        else:
            place = f"{duration(track.at)} of {duration(track.end)}"
        self._transport.state = f"{mark} {clocks.described(track.clock, self.unit)[0]} {track.speed:g}×"
        self._transport.facts = (place,)
        self._transport.fraction = track.at / track.end if track.end else 1.0

    def _say(self, track: Track) -> None:
        failure = self.race.failure if isinstance(self.race, Measuring) else None
        failed = [failure, self._way_on] if failure else []
        if not self.race.lanes:
            self._remarks.say(*(failed or ["Stopped before anything was measured.", "Esc leaves."]))
        elif track.at_end:
            link = self.race.round_trip_ms if isinstance(self.race, Measuring) else None
            self._remarks.say(*failed, *self.race.conclusions(), *describe_way(link))
        else:
            self._remarks.say(*failed, clocks.described(track.clock, self.unit)[1])

    @property
    def _way_on(self) -> str:
        """What the user can do if not everything was measured."""
        if isinstance(self.race, Measuring) and self.race.ended and not self.alone:
            return f"Esc goes back to the chat, where {with_own_keys('F5', self.app)} starts the engine again."
        return "Esc leaves."

    # --- keys ---------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: during the measurement nothing can be played."""
        return action not in PLAYER_ACTIONS or bool(self.track is not None and self.race.lanes)

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """Labels Space by what it does: it pauses, continues, or starts again at the end."""
        bindings = super().active_bindings
        say_unit(bindings, self.unit)
        if self.track is None:
            relabel(bindings, "leave", "Stop")
        else:
            relabel_pause(bindings, self.track.playing, self.track.at_end)
            leave_out(bindings, ("from_start",) if self.track.at_end else ())
        return bindings

    def action_stop(self) -> None:
        """Stop the measurement, and show its results; after that, leave."""
        if self._measuring is not None and self._stop is None:
            self._stop = asyncio.create_task(self._measuring.stop())
        else:
            self.action_leave()

    def action_pause(self) -> None:
        """Pause or continue; at the end, play from the start."""
        if self.track is not None:
            self.track.advance(self._clock())  # time continues from now, not from the pause
            if self.track.at_end:
                self.track.restart()
            else:
                self.track.playing = not self.track.playing
            self._show()

    def _change(self, how: Callable[[Track], object]) -> None:
        if self.track is not None:
            how(self.track)
            self._show()

    def action_step_forward(self) -> None:
        self._change(Track.step_forward)

    def action_step_back(self) -> None:
        self._change(Track.step_back)

    def action_to_start(self) -> None:
        self._change(lambda track: track.seek(0.0))

    def action_to_end(self) -> None:
        self._change(lambda track: track.seek(track.end))

    def action_restart(self) -> None:
        if self.track is not None:
            self.track.advance(self._clock())
        self._change(Track.restart)

    def action_clock(self) -> None:
        self._change(Track.change_clock)

    def action_faster(self) -> None:
        self._change(lambda track: track.change_speed(1))

    def action_slower(self) -> None:
        self._change(lambda track: track.change_speed(-1))

    @on(LaneHead.Sought)
    def _sought(self, event: LaneHead.Sought) -> None:
        """Move to the time at which this lane has reached the clicked place on its bar."""
        number = self._lanes.index(event.lane)
        lane = self.race.lanes[number]
        wanted = event.fraction * max(len(each.token_ids) for each in self.race.lanes)
        steps = next((step for step in range(len(lane.steps)) if _tokens(lane, step) >= wanted), len(lane.steps))
        self._change(lambda track: track.seek(track.time_of(number, steps)))

    @on(SeekBar.Sought)
    def _bar_sought(self, event: SeekBar.Sought) -> None:
        self._change(lambda track: track.seek(event.fraction * track.end))

    def commands(self) -> Iterable[SystemCommand]:
        yield from commands(self, RACE_KEYS, self.unit)


def _tokens(lane: Lane, steps: int) -> int:
    return sum(len(step.token_ids) for step in lane.steps[:steps])


def _standing(
    lane: Lane, steps: int, place: str, fraction: float, clock: Clock | None = None, bars: PassBars | None = None
) -> Standing:
    """Return a lane's figures after `steps` steps: those of one clock, as the other's would seem wrong on it."""
    if not steps:
        return Standing(place, fraction=fraction)
    tokens = _tokens(lane, steps)
    seconds = sum(step.timing.step_ms for step in lane.steps[:steps]) / 1000
    counts: tuple[str, ...] = counted(tokens, "token"), counted(steps, "pass")
    by_passes = () if clock is Clock.SECONDS else (f"{tokens / steps:.2f} a pass",)
    if lane.passes is None:  # the server tells neither tokens nor passes
        counts, by_passes = (counted(steps, "chunk"),), ()
    by_time = () if clock is Clock.PASSES else (duration(seconds),)
    return Standing(place, (*counts, *by_passes, *by_time), fraction, bars)
