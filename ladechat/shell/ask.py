"""One question, one answer, for pipes and scripts: the engine's events on standard output."""

import asyncio
import signal
import sys

from rich.console import Console
from rich.text import Text

from ladechat import protocol
from ladechat.engine_options import EngineOptions
from ladechat.interrupts import INTERRUPTED
from ladechat.palette import Palette
from ladechat.protocol import (
    Event,
    Failed,
    Header,
    Loading,
    Pong,
    Prefilling,
    Ready,
    Step,
    Stop,
    SystemFolded,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.command_engine import engine_of
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import and_last_line
from ladechat.session.race import PLAIN
from ladechat.shell.answer_writer import AnswerWriter, console
from ladechat.terminal import Status, forget_output, shown
from ladechat.widgets.formatting import (
    REASONS,
    SYSTEM_FOLDED,
    announced,
    describe_link,
    describe_settings,
    figures,
    is_own,
)
from ladechat.widgets.steps.thinking import Thinking
from ladechat.widgets.units import PASS, unit_of

FAILED = 1
BROKEN_PIPE = 141


def run(options: EngineOptions, conversation: Conversation, question: str, *, as_json: bool) -> int:
    """Ask a question in a conversation, print the answer, and return the exit code: 0, 1 after a failure, 130 after
    Ctrl+C.
    """
    printer = JsonPrinter() if as_json else AnswerPrinter()
    try:
        return asyncio.run(_ask(options, conversation, question, printer))
    except BrokenPipeError:
        # The reader has closed the pipe. What Python still buffers for it has to go somewhere at exit.
        forget_output()
        return BROKEN_PIPE
    except OSError as error:  # a full disk
        to_stderr(f"ladechat: The answer could not be written: {error.strerror or error}.")
        forget_output()
        return FAILED


async def _ask(
    options: EngineOptions, conversation: Conversation, text: str, printer: "JsonPrinter | AnswerPrinter"
) -> int:
    engine = engine_of(options)
    question = conversation.ask(text)
    try:
        await engine.start()
    except OSError as error:
        to_stderr(f"ladechat: The engine could not be run: {error.strerror or error}.")
        return FAILED
    interrupted = asyncio.Event()
    stopping: set[asyncio.Task[None]] = set()
    answering = failed = False

    def interrupt() -> None:
        # During a step an answer stops by itself; an engine that is loading, and a second Ctrl+C, end it at once.
        at_once = interrupted.is_set() or not answering
        interrupted.set()
        stopping.add(asyncio.create_task(engine.close() if at_once else engine.send(Stop())))

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    asking = asyncio.create_task(engine.send(question))  # a command of the user's takes it only after its header
    exit_code = FAILED
    try:
        async for event in engine.events():
            printer.show(event)
            _note(event, conversation, options)
            answering = answering or isinstance(event, TurnStarted)
            if isinstance(event, Failed):
                to_stderr(f"ladechat: {event.message} {event.hint}")
                failed = failed or event.fails(question.turn)
            if isinstance(event, TurnFinished):
                exit_code = FAILED if failed else 0
            if isinstance(event, TurnFinished) or (failed and not answering):
                break
        else:
            if not failed and not interrupted.is_set():
                await engine.close()
                sentence = f"The engine ended before the answer did; its log is {engine.log}."
                to_stderr(f"ladechat: {and_last_line(sentence, engine)}")
    finally:
        asking.cancel()
        await engine.close()
        printer.end()
        conversation.save_unfinished(options.settings.decoder)
    return INTERRUPTED if interrupted.is_set() else exit_code


def _note(event: Event, conversation: Conversation, options: EngineOptions) -> None:
    """Add to the conversation what is answered."""
    match event:
        case Header() if options.engine_command is not None:
            conversation.use_model(event.model)
        case Ready():
            conversation.server = event.server
        case TurnStarted() | Prefilling() | Step():
            conversation.note(event)
        case TurnFinished():
            conversation.answered(event, options.settings.decoder)
            conversation.give_up()  # what has come of an answer that failed


def to_stderr(sentence: str) -> None:
    """Print a line on standard error, with control characters made visible: a terminal may show it later."""
    print(shown(sentence), file=sys.stderr)


class JsonPrinter:
    """The event stream as JSON lines, with its closing line: saved to a file, it is a recording."""

    def __init__(self) -> None:
        self._last: Event | None = None

    def show(self, event: Event) -> None:
        """Print an event."""
        self._last = event
        sys.stdout.buffer.write(protocol.encode(event))  # in UTF-8, whatever the encoding of the terminal
        sys.stdout.buffer.flush()

    def end(self) -> None:
        """Print the closing line."""
        if self._last is not None:
            self.show(protocol.Closed(seq=self._last.seq, t=self._last.t))


class AnswerPrinter:
    """The answer as it is generated, and a summary on standard error."""

    def __init__(self) -> None:
        self._out = console()
        self._writer = AnswerWriter(self._out)
        self._status = Status()
        self._palette = Palette.detect()
        self._ready: Ready | None = None
        self._settings = protocol.Settings()
        self._seed: int | None = None
        self._link = ""
        self._thinking, self._unit = Thinking(), PASS
        self._begun = False
        self._blanks = ""
        """Trailing blanks, printed to a pipe only before more text: an answer has no blanks at its end."""

    def show(self, event: Event) -> None:
        """Print the part of the answer or status that an event adds."""
        match event:
            case Loading():
                self._status.show(f"{event.doing} ({event.stage} of {event.stages})")
            case Ready():
                self._ready, self._unit = event, unit_of(event.server)
                self._status.clear()
                for notice in event.notices:
                    to_stderr(f"ladechat: {notice}")
                self._status.show("reading the question")
            case Prefilling():
                self._status.show(f"reading the question: {event.done_tokens} of {event.total_tokens} tokens")
            case SystemFolded():
                self._status.clear()
                to_stderr(f"ladechat: {SYSTEM_FOLDED}")
            case TurnStarted():
                self._settings, self._seed = event.settings, event.seed
            case Step():
                self._thinking = self._thinking.after([event])
                if event.reasoning:
                    self._status.show(f"thinking: {self._thinking.in_words(self._unit)}")
                self._show_step(event)
            case Pong() if event.round_trip_ms is not None:
                self._link = describe_link(event.round_trip_ms)
            case TurnFinished():
                self._status.clear()
                if self._begun:
                    self._writer.end()
                    self._out.print()
                self._show_summary(event)
            case Failed():
                self._status.clear()

    def end(self) -> None:
        """Clear the status line, however the answer ended."""
        self._status.clear()

    def _show_step(self, step: Step) -> None:
        text = "".join(step.pieces[step.reasoning :])
        if not self._begun:
            text = text.lstrip()
        if not text:
            return
        self._status.clear()
        if self._out.is_terminal:
            self._show_coloured(step)
        else:
            text = self._blanks + text
            written = text.rstrip()
            sys.stdout.write(written)
            self._blanks = text[len(written) :]
        self._begun = True
        sys.stdout.flush()

    def _show_coloured(self, step: Step) -> None:
        for token, piece in enumerate(step.pieces[step.reasoning :], start=step.reasoning):
            style = self._palette.style_of_step(step.index, len(step.token_ids), own=is_own(step, token))
            text = piece if self._begun else piece.lstrip()
            self._begun = self._begun or bool(text)
            self._writer.write(text, style)

    def _show_summary(self, event: TurnFinished) -> None:
        """Print the summary below the answer; on a terminal dimmed, to distinguish it, and wrapped at words."""
        if sys.stderr.isatty():
            console = Console(stderr=True, highlight=False)
            for line in Text(shown(self._summary(event)), "dim").wrap(console, console.width):
                line.rstrip()
                console.print(line)
        else:
            to_stderr(self._summary(event))

    def _summary(self, event: TurnFinished) -> str:
        server = self._ready.server if self._ready is not None else None
        parts, settings = figures(event, server), self._settings
        parts += [f"thoughts, not shown: {self._thinking.in_words(self._unit)}"] if self._thinking.tokens else []
        if event.estimated_speedup is not None and settings.decoder != PLAIN:
            parts.append(f"estimated {event.estimated_speedup:.2f}× as fast as plain decoding")
        if server is None:
            parts.append(describe_settings(settings, announced(self._ready.decoders if self._ready else ())))
        if settings.temperature:
            parts.append(f"temperature {settings.temperature:g}, seed {self._seed}")
        if self._ready is not None:
            parts += filter(None, [self._ready.model, self._ready.device, self._ready.dtype])
            parts += [self._ready.quantization] if self._ready.quantization else []
        parts += [self._link] if self._link else []
        if event.reason in REASONS:
            parts.append(REASONS[event.reason])
        return " · ".join(parts)
