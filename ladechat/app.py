"""The chat app: which key does what, and how it is started."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ladechat.chat import Chat
from ladechat.keys import APP_KEYS
from ladechat.protocol import Configure, ConversationCleared, DecoderName, Failed, Settings, Stop
from ladechat.session.conversation import Conversation
from ladechat.session.live import EngineOptions, LiveEngine
from ladechat.session.recording import Recorder, default_path
from ladechat.session.source import EngineSource
from ladechat.viewer import welcome
from ladechat.widgets.prompt import Prompt

SLOW_MOTION_FRAMES = 8
QUIT_SECONDS = 2.0
DECODER_HELP: dict[DecoderName, str] = {
    "lookahead": "Guess with a Jacobi window and a pool of n-grams.",
    "prompt_lookup": "Guess what followed the same words earlier in the text.",
    "jacobi": "Guess a block and improve it, without a pool.",
    "autoregressive": "One token a step, nothing guessed.",
}
BROKEN_OFF = "This answer was broken off: the engine is started again."


class LadechatApp(Chat):
    """A conversation with a live engine, and its keys."""

    BINDINGS: ClassVar[list[BindingType]] = list(APP_KEYS)
    KEYS: ClassVar[tuple[Binding, ...]] = APP_KEYS

    _quit_next = False

    def action_stop(self) -> None:
        """Stop the answer, and slow motion with it; or a download."""
        self._pacer.frames_per_step = 0
        if self._downloading and self._engine is not None:
            self.run_worker(self._engine.close(), group="commands")
        elif self.answering:
            self._send(Stop())

    def action_interrupt(self) -> None:
        """Copy the selection; without one stop the answer; without that quit, at the second time."""
        prompt = self.query_one(Prompt)
        selected = prompt.selected_text or self.screen.get_selected_text()
        if selected:
            self.copy(selected)
            self.screen.clear_selection()
            prompt.move_cursor(prompt.cursor_location)
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

    def action_switch_decoder(self) -> None:
        """Lookahead or plain decoding, from the next step on."""
        plain = self._wanted.decoder == "autoregressive"
        self._use_decoder("lookahead" if plain else "autoregressive")

    def _use_decoder(self, name: DecoderName) -> None:
        if self._plain_only is not None and name != "autoregressive":
            self.notify(f"Plain decoding only: {self._plain_only}", severity="warning")
            return
        self._wish(Configure(decoder=name))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Besides every key's action, every decoder."""
        yield from super().get_system_commands(screen)
        for name, says in DECODER_HELP.items():
            yield SystemCommand(f"Decoder: {name.replace('_', ' ')}", says, partial(self._use_decoder, name))
        says = "W, N and G as the sliders say." if self._wanted.auto else "W, N and G by what they yield here."
        change = Configure(auto=not self._wanted.auto)
        yield SystemCommand(f"Auto: {'on' if change.auto else 'off'}", says, partial(self._wish, change))

    def action_slow_motion(self) -> None:
        """Show about four steps a second, or as they come."""
        slow = not self._pacer.frames_per_step
        self._pacer.frames_per_step = SLOW_MOTION_FRAMES if slow else 0
        self.notify("Slow motion: about four steps a second are shown." if slow else "Steps are shown as they come.")

    def action_restart_engine(self) -> None:
        """End the engine and start a new one. The conversation stays."""
        if self._restarting:  # the old engine is still leaving, and is to be waited for
            return
        self._take(self._pacer.drain())  # what is in the recording is on the screen too
        if self.answering:
            self._add_at_once(Failed(code="internal", message=BROKEN_OFF, hint="Its question is kept.", fatal=True))
        self._start_engine()

    def action_new_conversation(self) -> None:
        """Forget the conversation, once nothing is being answered any more."""
        if self.answering:
            self.notify("Stop the answer first (Esc).", severity="warning")
            return
        self._conversation.restart()
        self._queued.clear()
        self._add_at_once(ConversationCleared())

    def action_record(self) -> None:
        """Begin or end a recording."""
        if self._recorder.path is not None:
            path = self._recorder.path
            self._end_recording()
            self.notify(f"Recorded: {path}")
            return
        path = default_path(self._model)
        try:
            self._recorder.start(path)
        except OSError as error:
            self._recording_failed(error)
        else:
            self.notify(f"Recording to {path}. F7 ends it.")
        self._show_recording()


def run(
    options: EngineOptions,
    system: str | None = None,
    max_new_tokens: int | None = None,
    recorder: Recorder | None = None,
) -> int:
    """Run the app with a live engine; the exit code."""

    def new_engine(settings: Settings) -> EngineSource:
        return LiveEngine(replace(options, settings=settings))

    conversation = Conversation(system, max_new_tokens)
    app = LadechatApp(new_engine, options.settings, conversation, welcome(options.model), options.model, recorder)
    app.run()
    return app.return_code or 0
