"""The app: what is on the screen, which key does what, and which event goes where."""

import gc
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

import msgspec
from msgspec.structs import asdict
from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer

from ladechat.keys import APP_KEYS
from ladechat.palette import Look, Palette
from ladechat.protocol import (
    Command,
    Configure,
    Event,
    Failed,
    HistoryTrimmed,
    Loading,
    Prefilling,
    Ready,
    Settings,
    SettingsApplied,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.conversation import Conversation
from ladechat.session.live import EngineOptions, LiveEngine
from ladechat.session.pacing import Pacer
from ladechat.session.source import EngineSource
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.side import SidePanels
from ladechat.widgets.slider import Slider
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.transcript import Transcript
from ladechat.widgets.wording import describe_failure, describe_finish, describe_model, describe_trimming

FRAMES_PER_SECOND = 30
SLOW_MOTION_FRAMES = 8
QUIT_SECONDS = 2.0
RESTART = "The conversation is still here; F5 starts the engine again."
WELCOME = (
    "Ask the bundled model about what you see, for instance: What is the n-gram pool? How do I choose W, N and G? "
    "Write a Python function that reverses a string."
)

NewEngine = Callable[[Settings], EngineSource]
"""Makes an engine with these settings; called at the start, and for each restart."""


class LadechatApp(App[int], inherit_bindings=False):
    """A conversation at the left, and at the right how its answers come about.

    Args:
        new_engine: makes the source of events.
        settings: what the decoder starts with.
        welcome: said in the transcript before anything else.
    """

    CSS_PATH = "app.tcss"
    TITLE = "ladechat"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (70, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = list(APP_KEYS)

    palette: reactive[Palette] = reactive(Palette)
    answering: reactive[bool] = reactive(False)

    def __init__(
        self, new_engine: NewEngine, settings: Settings, conversation: Conversation, welcome: str = ""
    ) -> None:
        super().__init__()
        self._welcome = welcome
        self._new_engine = new_engine
        self._engine: EngineSource | None = None
        self._wanted = settings
        self._conversation = conversation
        self._queued: list[str] = []
        self._pacer = Pacer()
        self._quit_next = False
        self._model = "model"
        self._in_turn = False
        self._restarting = False

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield Transcript(id="transcript")
            yield SidePanels(self._wanted, id="side")
        yield Prompt(id="prompt")
        yield StatusLine(id="status")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _: self._match_theme())
        self._match_theme()
        self.query_one(Prompt).focus()
        self._show_settings(self._wanted)
        if self._welcome:
            self.query_one(Transcript).notice(self._welcome)
        self.set_interval(1 / FRAMES_PER_SECOND, self._frame)
        self._engine = self._new_engine(self._wanted)
        self._say("starting the engine …")
        self.call_after_refresh(self._after_first_frame, self._engine)

    # --- the engine ---------------------------------------------------------------------------------------------------

    def _after_first_frame(self, engine: EngineSource) -> None:
        """Start the engine, which takes commands already, now that the screen is there."""
        gc.enable()
        if engine is self._engine:
            self._run_engine(engine, None)

    def _start_engine(self) -> None:
        """Put a new engine in the place of the old one. Commands may be sent to it at once."""
        old, self._engine = self._engine, self._new_engine(self._wanted)
        self._say("starting the engine …")
        self._run_engine(self._engine, old)

    @work(exclusive=True, group="engine")
    async def _run_engine(self, engine: EngineSource, old: EngineSource | None) -> None:
        """End the old engine, start the new one, and queue what it says, until it ends."""
        if old is not None:
            self._restarting = True
            await old.close()
            self._restarting = False
        told_why = False
        try:
            await engine.start()
            async for event in engine.events():
                self._pacer.put(event)
                told_why = isinstance(event, Failed) and event.fatal
            await engine.close()
            message = "The engine has ended."
        except OSError as error:
            message = f"The engine could not be run: {error}."
        self._engine = None
        if not told_why:
            self._pacer.put(Failed(code="internal", message=message, hint=RESTART, fatal=True))

    async def on_unmount(self) -> None:
        """However the app ends, the engine ends first."""
        if self._engine is not None:
            await self._engine.close()

    def _frame(self) -> None:
        """Show what is due: the transcript takes all steps of a frame in one go, panels repaint at their own pace."""
        if not self.is_running:
            return  # the widgets go before the timer does
        events = self._pacer.frame()
        steps = [event for event in events if isinstance(event, Step)]
        if steps and len(steps) == len(events):
            self._show_steps(steps)
            return
        for event in events:
            self._show(event)

    def _show_steps(self, steps: list[Step]) -> None:
        self.query_one(Transcript).add_steps(steps)
        self.query_one(SidePanels).show_steps(steps)

    def _show(self, event: Event) -> None:
        transcript = self.query_one(Transcript)
        match event:
            case Step():
                self._show_steps([event])
            case Loading():
                self._say(f"{event.doing} ({event.stage}/{event.stages}) …")
            case Ready():
                self._show_ready(event)
            case SettingsApplied():
                self._show_settings(event.settings)
            case HistoryTrimmed():
                transcript.notice(describe_trimming(event))
            case TurnStarted():
                self._in_turn = True
                self._show_settings(event.settings)
                self.query_one(SidePanels).clear()
                transcript.start("model", self._model)
                self._say("reading the question …")
            case Prefilling():
                self._say("answering …")
                if event.done_tokens < event.total_tokens:
                    self._say(f"reading the question: {event.done_tokens:,} of {event.total_tokens:,} tokens …")
            case TurnFinished():
                self._finish(event)
            case Failed():
                self._fail(event)

    def _show_ready(self, event: Ready) -> None:
        status = self.query_one(StatusLine)
        self._model = "demo model" if event.model == "demo" else event.model.rstrip("/").rsplit("/", 1)[-1]
        status.model, status.device, status.dtype = self._model, event.device, event.dtype
        status.facts = describe_model(event)
        self._show_settings(event.settings)
        self._say("ready")
        if not self.answering:
            self._ask_queued()

    def _show_settings(self, settings: Settings) -> None:
        self.query_one(SidePanels).show_settings(settings)
        plain = settings.decoder == "autoregressive"
        self.query_one(StatusLine).decoder = "plain decoding" if plain else settings.decoder

    def _finish(self, event: TurnFinished) -> None:
        self._in_turn = False
        self.query_one(SidePanels).show_finished(event)
        self.query_one(Transcript).notice(describe_finish(event))
        self._conversation.answered(event)
        self._next_question()

    def _fail(self, event: Failed) -> None:
        self.query_one(Transcript).notice(describe_failure(event), "alert")
        if event.fatal:
            self._in_turn = False
            self._say("the engine has ended · F5 starts it again")
        if event.fatal or (event.turn is not None and not self._in_turn):  # else the end of the turn follows
            self._next_question(answer_more=not event.fatal)

    def _next_question(self, answer_more: bool = True) -> None:
        """After an answer, or for want of one: a question that got none goes back to the prompt."""
        self.answering = False
        unanswered = self._conversation.give_up()
        if unanswered is not None and self._queued and not answer_more:
            self._queued.insert(0, unanswered)  # what follows it in the queue may refer to it
        elif unanswered is not None:
            self.query_one(Prompt).offer(unanswered)
        if answer_more:
            self._say("ready")
            self._ask_queued()

    def _ask_queued(self) -> None:
        if self._queued:
            self._ask(self._queued.pop(0))

    # --- questions ----------------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _take_question(self, event: Prompt.Sent) -> None:
        transcript = self.query_one(Transcript)
        if self._engine is None:
            self.query_one(Prompt).offer(event.text)
            self.notify("The engine has ended. F5 starts it again.", severity="warning")
            return
        transcript.anchor()
        if self.answering:
            self._queued.append(event.text)
            self.notify("Sent as soon as this answer has ended.")
        else:
            self._ask(event.text)

    def _ask(self, text: str) -> None:
        """Show the question and send it. An engine that still loads answers it when it has loaded."""
        transcript = self.query_one(Transcript)
        transcript.start("user", "You")
        transcript.add(text)
        self.answering = True
        self._send(self._conversation.ask(text))

    def _send(self, command: Command) -> None:
        if self._engine is not None:
            self.run_worker(self._engine.send(command), group="commands")

    @on(Slider.Changed)
    def _configure(self, event: Slider.Changed) -> None:
        match event.slider.label:
            case "W":
                self._wish(Configure(window=event.value))
            case "N":
                self._wish(Configure(ngram=event.value))
            case "G":
                self._wish(Configure(guesses=event.value))

    def _wish(self, change: Configure) -> None:
        """Ask for other settings. An engine that is started later begins with them; what holds, `_show` hears."""
        given = {name: value for name, value in asdict(change).items() if value is not None}
        self._wanted = msgspec.structs.replace(self._wanted, **given)
        self._send(change)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Stop the answer, and slow motion with it."""
        self._pacer.frames_per_step = 0
        if self.answering:
            self._send(Stop())

    def action_interrupt(self) -> None:
        """Copy the selection; without one stop the answer; without that quit, at the second time."""
        prompt = self.query_one(Prompt)
        selected = prompt.selected_text or self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            prompt.move_cursor(prompt.cursor_location)
            self.notify("Copied.")
        elif self.answering and not self._quit_next:
            self.action_stop()
            self._arm_quit("Stopping. Ctrl+C again quits.")
        elif self._quit_next:
            self.exit(0)
        else:
            self._arm_quit("Ctrl+C again quits.")

    def _arm_quit(self, text: str) -> None:
        self._quit_next = True
        self.notify(text, timeout=QUIT_SECONDS)
        self.set_timer(QUIT_SECONDS, self._disarm_quit)

    def _disarm_quit(self) -> None:
        self._quit_next = False

    def action_page_up(self) -> None:
        """Earlier in the conversation."""
        self.query_one(Transcript).action_page_up()

    def action_page_down(self) -> None:
        """Later in the conversation."""
        self.query_one(Transcript).action_page_down()

    def action_follow(self) -> None:
        """To the end of the conversation, and on with it as it grows."""
        self.query_one(Transcript).anchor()

    def action_toggle_panels(self) -> None:
        """Show or hide the panels."""
        side = self.query_one(SidePanels)
        side.display = not side.display

    def action_switch_decoder(self) -> None:
        """Lookahead or plain decoding, from the next step on."""
        plain = self._wanted.decoder == "autoregressive"
        self._wish(Configure(decoder="lookahead" if plain else "autoregressive"))

    def action_switch_look(self) -> None:
        """A hue for each step, or the two colours of the method's demo figure."""
        look = Look.DEMO if self.palette.look is Look.HUES else Look.HUES
        self.palette = replace(self.palette, look=look)

    def action_slow_motion(self) -> None:
        """Show about four steps a second, or as they come."""
        slow = not self._pacer.frames_per_step
        self._pacer.frames_per_step = SLOW_MOTION_FRAMES if slow else 0
        self.notify("Slow motion: about four steps a second are shown." if slow else "Steps are shown as they come.")

    def action_restart_engine(self) -> None:
        """End the engine and start a new one. The conversation stays."""
        if self._restarting:  # the old engine is still leaving, and is to be waited for
            return
        self._pacer.clear()
        self._in_turn = False
        self._next_question(answer_more=False)
        self._start_engine()

    def action_new_conversation(self) -> None:
        """Forget the conversation, once nothing is being answered any more."""
        if self.answering:
            self.notify("Stop the answer first (Esc).", severity="warning")
            return
        self._conversation.restart()
        self._queued.clear()
        self.query_one(Transcript).clear()
        self.query_one(SidePanels).clear()

    async def action_quit(self) -> None:
        """End the engine and leave."""
        self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key's action, by name, in the command palette."""
        yield from super().get_system_commands(screen)
        for binding in APP_KEYS:
            if binding.id not in ("quit", "interrupt"):
                yield SystemCommand(binding.description, binding.tooltip, getattr(self, f"action_{binding.action}"))

    # --- looks --------------------------------------------------------------------------------------------------------

    def watch_palette(self, palette: Palette) -> None:
        self.query_one(SidePanels).palette = palette
        self.query_one(Transcript).palette = palette

    def _match_theme(self) -> None:
        self.palette = replace(Palette.detect(dark=self.current_theme.dark), look=self.palette.look)

    def _say(self, activity: str) -> None:
        self.query_one(StatusLine).activity = activity


def run(options: EngineOptions, system: str | None = None, max_new_tokens: int | None = None) -> int:
    """Run the app with a live engine; the exit code."""

    def new_engine(settings: Settings) -> EngineSource:
        return LiveEngine(replace(options, settings=settings))

    welcome = WELCOME if options.model == EngineOptions.model else ""
    app = LadechatApp(new_engine, options.settings, Conversation(system, max_new_tokens), welcome)
    app.run()
    return app.return_code or 0
