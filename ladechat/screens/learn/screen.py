"""The lessons: cards about the steps of a real engine, which pauses wherever there is something to see."""

import gc
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Container

from ladechat.keys import LEARN_KEYS
from ladechat.lessons.lesson import Lesson, Phase
from ladechat.lessons.progress import Progress, ProgressFile
from ladechat.lessons.scene import Scene, Task
from ladechat.lessons.scenes import CHAPTERS, EXPLAINED_IN, SCENES
from ladechat.own_keys import with_own_keys
from ladechat.palette import Palette
from ladechat.protocol import Configure, DecoderInfo, Event, Header, Loading, Ready, Settings, Watch
from ladechat.screens.engine_silence import EngineSilence
from ladechat.screens.learn.lesson_hint import ENDED, acts, shown_card
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.screens.view import commands
from ladechat.session.engine import State
from ladechat.session.session import Session
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import ANSWERING, StatusLine
from ladechat.widgets.later import Frames
from ladechat.widgets.lessons import LessonBox, LessonPanels
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.presenter import STARTING, Presenter
from ladechat.widgets.sliders.slider import Slider
from ladechat.widgets.sliders.sliders import Sliders, command_of
from ladechat.widgets.transcript.transcript import Transcript

STEPS_PER_SECOND = 8.0
"""Slow enough to see each step, unless the reader hurries."""
LOADS = "The model is being loaded. The question is asked as soon as it is there …"
ANSWERS = "The model answers, pass by pass …"
PAUSED = "paused between two passes"


class LearnScreen(StyledOnce[None]):
    """Shows one scene after another.

    Args:
        session: a session with an engine of its own. It is closed with the screen.
        progress: the place to start from.
        file: saves the progress; None: nothing is saved.
        notice: the text above the first answer.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(LEARN_KEYS)

    rest_at_full_speed = True
    """Whether the rest of an answer is decoded at full speed; else it comes one step at a time, and no times count."""

    def __init__(
        self, session: Session, progress: Progress, file: ProgressFile | None = None, notice: str = ""
    ) -> None:
        super().__init__()
        self._session, self._progress, self._file = session, progress, file
        self._transcript = Transcript(id="transcript")
        self._transcript.can_focus = False
        self._side = LessonPanels(EXPLAINED_IN, id="side")
        self._status = StatusLine(id="status")
        self._timeline = SeekBar(id="timeline")
        self._box = LessonBox(id="lesson")
        self._presenter = Presenter(
            self._transcript, self._side, self._status, self._timeline, notice, limit_meant=True
        )
        self._engine_events: dict[type[Event], Event] = {}
        self._moved: dict[str, Configure] = {}
        """The settings of moved sliders that were not sent yet."""
        self._stepped_at = 0.0
        self._seen: tuple[object, ...] = ()
        self._reminded = False
        self._frames = Frames(self, self._frame)
        self.silence = EngineSilence(self, session, self._presenter.warn)
        self.lesson = self._new_lesson()

    def compose(self) -> ComposeResult:
        with Container(id="lesson-body"):
            yield self._transcript
            yield self._side
            yield self._box
        yield self._timeline
        yield from bottom(self._status)

    def on_mount(self) -> None:
        self._session.show = self.show
        self._session.changed = self._frames.due
        self._session.watch(Watch(costs=True))  # before a panel of pseudo states is seen, which adds these
        self._presenter.begin(self._of_the_scene)
        self.watch(self.app, "palette", self._show_palette)
        self._show_card()
        self._frames.due()
        self.call_after_refresh(self._after_first_frame)

    def _after_first_frame(self) -> None:
        gc.enable()
        self._session.start()
        self._configure()

    async def on_unmount(self) -> None:
        """End the engine, however the screen is left."""
        await self._session.close()

    def _show_palette(self, palette: Palette) -> None:
        self._side.palette = self._transcript.palette = self._box.palette = palette

    # --- scenes -------------------------------------------------------------------------------------------------------

    @property
    def decoders(self) -> Iterable[DecoderInfo]:
        return self._presenter.now.decoders.values()

    @property
    def unit(self) -> str:
        """What a step is."""
        return self._presenter.unit

    @property
    def _scene(self) -> Scene:
        return CHAPTERS[self._progress.number]

    @property
    def _of_the_scene(self) -> Settings:
        """The settings of the scene, which the engine has not applied while it loads."""
        scene = self._scene
        return replace(self._session.requested, decoder=scene.decoder, parameters=dict(scene.parameters))

    def _new_lesson(self) -> Lesson:
        return Lesson(self._scene, self._progress.card, self._progress.choices)

    def _configure(self) -> None:
        """Apply the settings of the scene, whatever was set before."""
        scene = self._scene
        self._session.configure(
            Configure(decoder=scene.decoder, parameters=dict(scene.parameters), temperature=0.0, top_p=1.0)
        )

    def _begin(self, progress: Progress) -> None:
        """Start a scene, at its beginning or at the saved card."""
        if self._session.asking:
            self._session.stop()
        self._progress = progress
        self._keep()
        self.lesson = self._new_lesson()
        self._moved.clear()
        self._configure()
        self._show_again([])
        self._show_card()

    def _keep(self) -> None:
        if self._file is not None:
            self._file.write(self._progress)

    def _note_progress(self) -> None:
        """Save the progress if it has changed."""
        before, self._progress = self._progress, self._progress.after(self.lesson)
        if self._progress != before:
            self._keep()

    # --- the engine ---------------------------------------------------------------------------------------------------

    def _frame(self) -> None:
        """Show the events since the last frame, and send the engine what the card requires next."""
        if not self.is_running:
            return
        session, lesson = self._session, self.lesson
        session.frame()
        self._send_moved()
        self.silence.look_later()
        if session.state is State.ENDED:
            self._show_card()
        elif lesson.wants_question and not session.asking:
            session.set_pace(session.pace.pause(True))
            session.ask(lesson.scene.question)
        elif lesson.wants_rest and self.rest_at_full_speed:
            lesson.rest_asked_for()
            session.set_pace(session.pace.pause(False))
        elif lesson.wants_step or lesson.wants_rest:
            now = time.monotonic()
            wait = 0.0 if lesson.hurried else self._stepped_at + 1 / STEPS_PER_SECOND - now
            if wait > 0:
                self._frames.due(wait)
            else:
                self._stepped_at = now
                lesson.step_asked_for()
                session.take_step()

    def show(self, events: Sequence[Event]) -> None:
        """Draw the events that belong to this scene, unless the reader is looking back."""
        if self.is_running:
            self._presenter.show([event for event in events if self._take(event) and not self.lesson.looking_back])
            self._show_card()

    def _take(self, event: Event) -> bool:
        if isinstance(event, Header | Loading | Ready):
            self._engine_events[type(event)] = event
            return True
        return self.lesson.take(event)

    def action_restart_engine(self) -> None:
        """Start another engine, and repeat the scene up to the reader's card."""
        if self._session.restart():
            self._begin(self._progress)
            self._presenter.say(STARTING)

    @on(Slider.Changed)
    def _slider_moved(self, event: Slider.Changed) -> None:
        if not self.lesson.looking_back:
            self._moved[event.slider.setting] = command_of(event)
            self._send_moved()

    def _send_moved(self) -> None:
        """Apply the moves of sliders, as soon as the lesson lets them."""
        if not self.lesson.holds_settings:
            for command in self._moved.values():
                self._session.configure(command)
            self._moved.clear()

    @on(LensPanel.Seen)
    def _lens_seen(self, event: LensPanel.Seen) -> None:
        self._session.watch(Watch(lens=event.shown, costs=True))

    # --- showing ------------------------------------------------------------------------------------------------------

    def _show_again(self, events: Sequence[Event]) -> None:
        """Redraw the whole screen from these events of the scene."""
        self._presenter.begin(self._of_the_scene)
        self._presenter.show([*self._engine_events.values(), *events])
        self._seen = ()

    def _show_card(self) -> None:
        lesson, page = self.lesson, self.lesson.page
        self._note_progress()
        self._side.show_panel(page.card.panel, self._scene.explains)
        self._side.query_one(Sliders).disabled = lesson.looking_back
        self._side.show_untimed(lesson.untimed)
        seen = (lesson, lesson.place, page.phase, lesson.enter_acts)
        if seen != self._seen:
            self._reminded = False
        waiting = ANSWERS if Ready in self._engine_events else LOADS
        ended = with_own_keys(ENDED, self.app) if self._session.state is State.ENDED else ""
        self._box.card = shown_card(lesson, self._progress, waiting, reminded=self._reminded, ended=ended)
        if seen != self._seen:
            self._seen = seen
            self._side.point_at(page.diagonal, page.slot)
            self._place_focus()
            self._say_whether_paused()
            self.refresh_bindings()
        if (lesson.wants_question or lesson.wants_step or lesson.wants_rest) and self._session.state is not State.ENDED:
            self._frames.due()

    def _say_whether_paused(self) -> None:
        lesson = self.lesson
        if lesson.runs and lesson.runs[-1].settings is not None and not lesson.runs[-1].ended:
            self._presenter.say(ANSWERING if lesson.page.phase is Phase.RUNNING else PAUSED)

    def _place_focus(self) -> None:
        """Focus a task's slider, so that it takes the arrow keys; with any other card they turn pages."""
        card = self.lesson.page.card
        if not isinstance(card, Task) or self.lesson.looking_back:
            self._box.focus()
        elif not isinstance(self.focused, Slider):
            sliders = [one for one in self._side.query(Slider) if one.display and one.setting == card.slider]
            (sliders[0] if sliders else self._box).focus()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is active and in the footer: a digit is if it is one of the choices."""
        on_slider = isinstance(self.focused, Slider)
        return on_slider if action == "move_slider" else acts(self.lesson, self._progress, action, parameters)

    def action_go_on(self) -> None:
        """Go to the next card or scene; while the engine works, speed it up."""
        lesson = self.lesson
        if lesson.at_last_card and not lesson.looking_back:
            self.action_next_scene()
            return
        was_back = lesson.looking_back
        lesson.go_on()
        self._show_gone_on(was_back)

    def _show_gone_on(self, was_back: bool) -> None:
        """Show the next card; redraw the whole screen if the reader was looking back."""
        if was_back:
            self._show_again(self.lesson.shown_events)
        self._show_card()

    def action_remind(self) -> None:
        """Show what the card waits for."""
        self._reminded = True
        self._show_card()

    def action_move_slider(self) -> None:
        """Move the slider to the left, as its own key does: this binding puts the arrow keys into the footer."""
        if isinstance(self.focused, Slider):
            self.focused.action_move(-1)

    def action_back(self) -> None:
        """Go to the previous card, with the screen as it was then."""
        if self.lesson.place:
            self.lesson.back()
            self._show_again(self.lesson.shown_events)
            self._show_card()

    def action_answer(self, choice: int) -> None:
        self.lesson.choose(choice)
        self._show_card()

    def action_next_slot(self) -> None:
        """Show what the next slot of the pass sees."""
        self._side.next_slot()

    def action_next_scene(self) -> None:
        """Skip a question, or go to the next scene, once its prediction has been shown; after the last scene, leave."""
        was_back = self.lesson.looking_back
        if self.lesson.skip():
            self._show_gone_on(was_back)
        elif self._progress.number + 1 < len(CHAPTERS):
            self._go_to(self._progress.number + 1)
        elif self.lesson.at_last_card:
            self._progress = self._progress.at_scene(0)
            self._keep()
            self.action_leave()

    def action_previous_scene(self) -> None:
        """Restart this scene; at its beginning, go to the previous scene."""
        back = 0 if self.lesson.reached else 1
        self._go_to(max(0, self._progress.number - back))

    def action_read(self, lines: int) -> None:
        self._box.scroll_text(lines)

    def action_page_up(self) -> None:
        self._transcript.action_page_up()

    def action_page_down(self) -> None:
        self._transcript.action_page_down()

    def commands(self) -> Iterable[SystemCommand]:
        yield from commands(self, [one for one in LEARN_KEYS if "(" not in one.action])
        for number, scene in enumerate(CHAPTERS):
            text = f"Scene {number + 1}: {scene.title}" if scene in SCENES else scene.title
            yield SystemCommand(text, "To the beginning of this scene.", partial(self._go_to, number))

    def _go_to(self, scene: int) -> None:
        self._begin(self._progress.at_scene(scene))
