"""The replay: a recording in place of an engine, on the same screen."""

import gc
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from rich.markup import escape
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from ladechat.keys import REPLAY_KEYS
from ladechat.protocol import ConversationCleared, Event, Step, TurnStarted
from ladechat.session.replay import Player, Recording
from ladechat.viewer import FRAMES_PER_SECOND, Viewer, welcome
from ladechat.widgets.cells import shorten
from ladechat.widgets.presenter import Bookmark
from ladechat.widgets.transport import Transport

QUESTION_CELLS = 60


class ReplayApp(Viewer):
    """A recorded session, at its own pace or step by step.

    Args:
        recording: what is shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(REPLAY_KEYS)
    KEYS: ClassVar[tuple[Binding, ...]] = REPLAY_KEYS

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording.header.settings, welcome(recording.header.model))
        self.add_class("-replay")
        self.player = Player(recording)
        self._recording = recording
        self._bookmarks: dict[int, Bookmark] = {}
        steps = [0]
        for event in recording.events:
            steps.append(steps[-1] + isinstance(event, Step))
        self._steps_before = steps

    def controls(self) -> Widget:
        return Transport(id="transport")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Transport).focus()
        self.query_one("#sliders").disabled = True  # they show what was, and move nothing
        for notice in self._recording.notices:
            self.notify(notice, severity="warning", timeout=10)
        self.set_interval(1 / FRAMES_PER_SECOND, self._frame)
        self.call_after_refresh(gc.enable)

    # --- showing ------------------------------------------------------------------------------------------------------

    def _frame(self) -> None:
        if self.is_running:
            first = self.player.position
            self._show(self.player.due(time.monotonic()), first)

    def _show(self, events: Sequence[Event], first: int) -> None:
        """Show the events from number `first` on, with a bookmark before each turn that starts."""
        begin = 0
        for place, event in enumerate(events):
            if isinstance(event, TurnStarted):
                self.presenter.show(events[begin:place])
                self._bookmarks[first + place] = self.presenter.bookmark()
                begin = place
        self.presenter.show(events[begin:])
        self._tell_place()

    def go(self, position: int) -> None:
        """Show the state in which `position` events have been shown, and stay there."""
        self.player.playing = False
        before = self.player.position
        self.player.seek(position)
        if self.player.position < before:
            before = self._rewind(before)
        self._show(self._recording.events[before : self.player.position], before)

    def _rewind(self, before: int) -> int:
        """From position `before`, go back to the start of the turn that is to be shown, or of everything.

        Returns:
            The position reached, at or before the player's.
        """
        start = max((place for place in self._bookmarks if place < self.player.position), default=None)
        between = self._recording.events[start or 0 : before]
        if start is None or any(isinstance(event, ConversationCleared) for event in between):
            self.presenter.begin(self._recording.header.settings)
            return 0
        self.presenter.return_to(self._bookmarks[start])
        return start

    def _tell_place(self) -> None:
        player, transport = self.player, self.query_one(Transport)
        mark = "▶" if player.playing else "■" if player.at_end else "‖"
        turn = player.turn
        now, whole = _clock(player.seconds), _clock(self._recording.seconds)
        transport.state = f"{mark} {player.speed:g}×"
        transport.facts = (
            f"{now} of {whole}",
            f"step {self._steps_before[player.position]:,} of {self._steps_before[-1]:,}",
            f"turn {turn.number if turn else 0} of {len(self._recording.turns)}",
        )
        transport.fraction = player.position / len(self._recording.events)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Pause, or go on; at the end, from the beginning."""
        playing = not self.player.playing
        if playing and self.player.at_end:
            self.go(0)
        self.player.playing = playing
        self._tell_place()

    def action_step_forward(self) -> None:
        """One step on."""
        self.go(self.player.step_forward())

    def action_step_back(self) -> None:
        """One step back."""
        self.go(self.player.step_back())

    def action_next_turn(self) -> None:
        """To the next question."""
        self._jump(self.player.next_turn())

    def action_previous_turn(self) -> None:
        """To the question before."""
        self._jump(self.player.previous_turn())

    def action_to_start(self) -> None:
        """To the beginning."""
        self._jump(0)

    def action_to_end(self) -> None:
        """To the end of the recording."""
        self._jump(len(self._recording.events))

    def _jump(self, position: int) -> None:
        """Go somewhere else, and go on from there if it was going on."""
        playing = self.player.playing
        self.go(position)
        self.player.playing = playing and not self.player.at_end
        self._tell_place()

    def action_faster(self) -> None:
        """Faster."""
        self.player.change_speed(1)
        self._tell_place()

    def action_slower(self) -> None:
        """Slower."""
        self.player.change_speed(-1)
        self._tell_place()

    def action_interrupt(self) -> None:
        """Copy the selection; without one leave."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy(selected)
            self.screen.clear_selection()
        else:
            self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Besides the keys, every question of the recording, to jump to."""
        yield from super().get_system_commands(screen)
        for turn in self._recording.turns:
            question = shorten(" ".join(turn.question.split()), QUESTION_CELLS)
            jump = partial(self._jump, turn.position + 1)
            yield SystemCommand(f"Turn {turn.number}: {escape(question)}", "Jump there.", jump)


def _clock(seconds: float) -> str:
    """Minutes and seconds, as 4:05; with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def run(recording: Recording) -> int:
    """Show a recording; the exit code."""
    app = ReplayApp(recording)
    app.run()
    return app.return_code or 0
