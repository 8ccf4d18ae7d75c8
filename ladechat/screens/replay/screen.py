"""The replay: a recording in place of an engine."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from rich.markup import escape
from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import ActiveBinding, BindingType
from textual.widgets import Input
from textual.worker import Worker

from ladechat.catalog import first_questions
from ladechat.keys import REPLAY_KEYS
from ladechat.own_keys import with_own_keys
from ladechat.protocol import ConversationCleared, ConversationOpened, DecoderInfo, Event, ExchangeRemoved, TurnStarted
from ladechat.screens.footer import leave_out, relabel_pause, say_unit
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.screens.view import ConversationView, commands, welcome
from ladechat.session.playing import NotRead, Player
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.bars.seek_bar import SeekBar, Transport
from ladechat.widgets.cells import shorten
from ladechat.widgets.inputs import SearchLine
from ladechat.widgets.later import Frames
from ladechat.widgets.presenter import Bookmark
from ladechat.widgets.steps.answer_steps import NEVER_KNOWN, StepPointedAt
from ladechat.widgets.transcript.transcript import NO_TOKENS, Transcript

LINES_AT_ONCE = 64
"""The number of lines read between two frames: about a millisecond of work."""
QUESTION_CELLS = 60
PLAYER_ACTIONS = tuple(key.action for key in REPLAY_KEYS if not key.priority and "." not in key.action)
"""The actions of the replay's own keys: letters, and keys that move the cursor of a text field."""
WHOLE_FOOTER_CELLS = 88
BROKEN_OFF = "the recording ends in the middle of this answer"
SEARCHING = "searching"
BEGINNING = "the beginning of the recording"
TAKES_AWAY = (ConversationCleared, ConversationOpened, ExchangeRemoved)
"""The events that remove messages from the screen: bookmarks from before them do not restore these messages."""


class ReplayScreen(StyledOnce[None]):
    """A recorded session, at its own pace or step by step.

    The rest of the recording is read after the first frame. A jump to a place that has not been read waits for it,
    unless another key replaces the jump.

    Args:
        recording: the recording. It is closed with the screen.
        clock: returns seconds; replaced where the recording is shown in other than real time.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(REPLAY_KEYS)

    def __init__(self, recording: Recording, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self.add_class("-replay")
        self.player = Player(recording)
        self.recording = recording
        self._transport = Transport(id="transport")
        header = recording.header
        self.view = ConversationView(self._transport, welcome(header.settings.decoder), first_questions(header.model))
        self._search = SearchLine(self._transport)
        self._bookmarks: dict[int, Bookmark] = {}
        self._wanted: Callable[[], None] | None = None
        self._notices_shown = 0
        self._offered: tuple[bool, bool, str] | None = None
        self._reading: Worker[None] | None = None
        self._frames = Frames(self, self.show_due)

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        return self.view.presenter.now.decoders.values()

    @property
    def unit(self) -> str:
        """What a step is."""
        return self.view.presenter.unit

    def compose(self) -> ComposeResult:
        yield self.view
        yield from bottom(self._search, messages=False)

    def on_mount(self) -> None:
        self.view.presenter.begin(self.recording.header.settings, BEGINNING)
        self._transport.focus()
        self.view.recording.display = False
        self.query_one("#sliders").disabled = True  # they show the recorded settings and change nothing
        self._show_notices()
        self._frames.due()
        self.call_after_refresh(self._after_first_frame)

    def _after_first_frame(self) -> None:
        gc.enable()
        if not self.recording.complete:
            self._reading = self.run_worker(self._read_on())

    def on_unmount(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self.recording.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _read_on(self) -> None:
        """Read the rest of the recording, a little at a time; another thread waits for the disk."""
        while not self.recording.complete:
            try:
                lines = await asyncio.to_thread(self.recording.fetch)
            except OSError as error:
                self.recording.break_off(error)
            else:
                for start in range(0, max(len(lines), 1), LINES_AT_ONCE):
                    self.recording.take(lines[start : start + LINES_AT_ONCE])
                    await asyncio.sleep(0)
            self._part_read()

    def _part_read(self) -> None:
        self._show_notices()
        if self._wanted is not None:
            self._when_read(self._wanted)
        self._frames.due()  # the bar shows how much has been read

    def _when_read(self, action: Callable[[], None]) -> None:
        """Run an action that moves to a place of the recording: now, or as soon as the place has been read."""
        self._wanted = None
        try:
            action()
        except NotRead:
            self._wanted = action
        self._show_place()

    def _show_notices(self) -> None:
        for notice in self.recording.notices[self._notices_shown :]:
            self.notify(notice, severity="warning", timeout=10)
        self._notices_shown = len(self.recording.notices)

    # --- showing ------------------------------------------------------------------------------------------------------

    def show_due(self) -> None:
        """Show the events that are due by the clock, and schedule the next while playing."""
        if self.is_running:
            first = self.player.position
            self._show(self.player.due(self._clock()), first)

    def _show(self, events: Sequence[Event], first: int) -> None:
        """Show the events from number `first` on, with a bookmark before each new turn, none within an answer."""
        begin = 0
        for place, event in enumerate(events):
            if isinstance(event, TurnStarted) and not event.goes_on:
                self.view.presenter.show(events[begin:place])
                self._bookmarks[first + place] = self.view.presenter.bookmark()
                begin = place
        self.view.presenter.show(events[begin:])
        self._show_place()

    def go(self, position: int) -> None:
        """Show the state after `position` events, and pause there."""
        self.player.playing = False
        self._wanted = None
        self.clear_selection()
        before = self.player.position
        self.player.seek(position)
        if self.player.position < before:
            before = self._rewind(before)
        self._show(self.recording.events[before : self.player.position], before)

    def _rewind(self, before: int) -> int:
        """Go back from position `before` to the start of the turn to be shown, or of the recording.

        Returns:
            The position reached, at or before the player's.
        """
        start = max((place for place in self._bookmarks if place < self.player.position), default=None)
        between = self.recording.events[start or 0 : before]
        if start is None or any(isinstance(event, TAKES_AWAY) for event in between):
            self.view.presenter.begin(self.recording.header.settings, BEGINNING)
            return 0
        self.view.presenter.return_to(self._bookmarks[start])
        return start

    def _show_place(self) -> None:
        player = self.player
        mark = "▶" if player.playing else "■" if player.at_end else "‖"
        turn, steps = player.turn, self.recording.steps_before
        more = "" if self.recording.complete else "+"
        now, whole = _clock(player.seconds), _clock(self.recording.seconds)
        reading = f" · reading {self.recording.share:.0%} …" if more else ""
        self._transport.state = f"{mark} {player.speed:g}×{reading if self._wanted is not None else ''}"
        self._transport.facts = (
            f"{now} of {whole}{more}",
            f"{self.unit} {steps[player.position]:,} of {steps[-1]:,}{more}",
            f"question {turn.number if turn else 0} of {len(self.recording.turns)}{more}",
        )
        self._transport.fraction, self._transport.known = player.fraction, self.recording.share
        self.view.show_pace(None, paused=not player.playing and not player.at_end)
        cut = BROKEN_OFF if player.at_end and self.view.presenter.answering else ""
        self.view.presenter.warn(cut)
        if (offered := (player.playing, player.at_end, self.unit)) != self._offered:
            self._offered = offered
            self.refresh_bindings()
        if player.playing:
            self._frames.go_on()

    def on_descendant_focus(self) -> None:
        """Show in the status line whether the search field has the keys."""
        self.view.status.mode = SEARCHING if self._search.has_focus else ""

    on_descendant_blur = on_descendant_focus

    # --- keys ---------------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self.refresh_bindings()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """Hides the search in a narrow footer, to make room for the key that leaves."""
        bindings = super().active_bindings
        say_unit(bindings, self.unit)
        relabel_pause(bindings, self.player.playing, self.player.at_end)
        if self.size.width < WHOLE_FOOTER_CELLS:
            leave_out(bindings, ("search",))
        return bindings

    def action_pause(self) -> None:
        """Pause or continue; at the end, play from the beginning."""
        self._wanted = None
        self.show_due()  # time continues from now, not from the pause
        playing = not self.player.playing
        if playing and self.player.at_end:
            self.go(0)
        if playing:
            self.clear_selection()
        self.player.playing = playing
        self._show_place()

    def action_step_forward(self) -> None:
        self._when_read(lambda: self.go(self.player.step_forward()))

    def action_step_back(self) -> None:
        self.go(self.player.step_back())

    def action_next_turn(self) -> None:
        self._when_read(lambda: self._jump(self.player.next_turn()))

    def action_previous_turn(self) -> None:
        self._jump(self.player.previous_turn())

    def action_to_start(self) -> None:
        self._jump(0)

    def action_to_end(self) -> None:
        self._when_read(lambda: self._jump(self.player.end()))

    @on(SeekBar.Sought)
    def _sought(self, event: SeekBar.Sought) -> None:
        self._when_read(lambda: self._jump(self.player.place_at(event.fraction)))

    @on(Transcript.FormattedClicked)
    def _formatted_clicked(self) -> None:
        self.notify(with_own_keys(NO_TOKENS, self.app))

    @on(StepPointedAt)
    def _step_pointed_at(self, event: StepPointedAt) -> None:
        position = None if event.turn is None else self.player.behind(event.turn, event.step)
        if position is None:
            self.notify(NEVER_KNOWN)
        else:
            self.go(position)
            self.view.side.point_at(event.diagonal)

    def _jump(self, position: int) -> None:
        """Move to a position, and keep playing if it was playing."""
        playing = self.player.playing
        self.go(position)
        self.player.playing = playing and not self.player.at_end
        self._show_place()

    def action_faster(self) -> None:
        self.player.change_speed(1)
        self._show_place()

    def action_slower(self) -> None:
        self.player.change_speed(-1)
        self._show_place()

    def action_search(self) -> None:
        self._search.open()

    @on(Input.Submitted, "#find")
    def _go_to_next_place(self, event: Input.Submitted) -> None:
        """Move to the next occurrence of the text after what is shown."""
        self._when_read(lambda: self._go_to(event.value))

    def _go_to(self, text: str) -> None:
        position = self.player.found(text)
        if position is not None:
            self.go(position)
            transcript = self.view.transcript
            transcript.anchor()
            if (place := transcript.found(text)) is not None:  # it is seen, and Ctrl+C copies it
                self.selections = {transcript: place}
        elif text:
            self.notify("That is in no question and no answer of this recording.", severity="warning")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: not the return to a missing chat, nor letters during typing."""
        if self._search.has_focus and action in PLAYER_ACTIONS:
            return False
        return action != "back" or not self.alone

    action_back = StyledOnce.action_leave

    def commands(self) -> Iterable[SystemCommand]:
        """Yield the commands of the palette: the actions of all keys, and a jump to every question of the recording."""
        yield from commands(self, REPLAY_KEYS, self.unit)
        for turn in self.recording.turns:
            question = shorten(" ".join(turn.question.split()), QUESTION_CELLS)
            jump = partial(self._jump, turn.position + 1)
            yield SystemCommand(f"Question {turn.number}: {escape(question)}", "Jump there.", jump)


def _clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, as in 4:05; with hours if there are any."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
