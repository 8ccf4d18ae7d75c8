"""A recording as a conversation, for formats without a screen: questions, answers and failures, turn by turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ladechat import protocol
from ladechat.catalog import SERVER
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.recordings.recording import Recording
from ladechat.widgets import formatting
from ladechat.widgets.steps.thinking import Thinking
from ladechat.widgets.units import CHUNK, PASS, unit_of

SYSTEM = "system prompt"
THEN = ", then "
"""Separates the decoders of one answer."""
WORDS = ("ended", "decoder")
"""Figures whose value is words, shown without their name."""


@dataclass
class ExportedTurn:
    """A question and its answer, as far as they exist.

    Attributes:
        question: None if the recording starts after it.
        model: the short name of the model that answered; "" if unknown.
        settings: the decoders of its passes, in words: "lookahead W 5 N 3 G 5, then autoregressive".
        started: how the answer began; None if it is not in the recording.
        steps: the steps of the answer.
        earlier: whether the answer is from an earlier session. It may have been continued.
        earlier_answer: such an answer, if its steps are unknown; `steps` are those that continued it.
        earlier_system: the system prompt of an earlier session's question; None if unknown.
        finished: how the answer ended; None if it is not in the recording.
        server: the server that decoded it; None: the recording's machine.
        notices: the app's messages about it: failures, a conversation that was shortened.
        begins_anew: whether the conversation before it was cleared.
        answered: whether it is part of the conversation: an unanswered question is not.
    """

    question: str | None = None
    model: str = ""
    settings: str = ""
    started: protocol.TurnStarted | None = None
    steps: list[protocol.Step] = field(default_factory=list)
    earlier: bool = False
    earlier_answer: str = ""
    earlier_system: str | None = None
    finished: protocol.TurnFinished | None = None
    server: protocol.ServerInfo | None = None
    notices: list[str] = field(default_factory=list)
    begins_anew: bool = False
    answered: bool = False
    _before: tuple[int, protocol.TurnFinished | None, str] | None = field(default=None, repr=False)
    """Steps, end and settings before the answer was continued; None once the continuation is part of it."""

    def go_on(self) -> None:
        """Continue the answer. An earlier continuation is dropped, unless it is settled."""
        if self._before is None:
            self._before = len(self.steps), self.finished, self.settings
        steps, self.finished, self.settings = self._before
        del self.steps[steps:]

    def mend(self, pass_tokens: Sequence[int]) -> None:
        """Take the passes apart that a server has sent together; a continuation has its own."""
        begin = self._before[0] if self._before is not None else 0
        self.steps[begin:] = protocol.one_by_one(self.steps[begin:], pass_tokens)

    def settle(self) -> None:
        """Make the continuation part of the answer."""
        self._before = None

    @property
    def answer(self) -> str:
        """The text that the model wrote, without its reasoning."""
        return self.earlier_answer + "".join(piece for step in self.steps for piece in step.pieces[step.reasoning :])

    @property
    def thoughts(self) -> str:
        """The reasoning before the answer; "" if there is none."""
        return "".join(piece for step in self.steps for piece in step.pieces[: step.reasoning]).strip()

    @property
    def thinking(self) -> str:
        """How long the reasoning is, as a heading for it."""
        return f"Thoughts · {Thinking().after(self.steps).in_words(self.unit)}"

    @property
    def system(self) -> str | None:
        """The system prompt; "" for none, None if unknown."""
        if self.started is None:
            return self.earlier_system
        return self.started.system

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions of the answer, by name, as far as they are known. A system prompt is given as its text."""
        drawing = "" if self.started is None else formatting.describe_drawing(self.started)
        named = {"model": self.model, "decoder": self.settings, "settings": drawing}
        return {name: value for name, value in named.items() if value} | (
            {} if self.system is None else {SYSTEM: self.system}
        )

    @property
    def unit(self) -> str:
        """What a step is: a pass, or a chunk of a server's stream."""
        return unit_of(self.server)

    @property
    def tokens(self) -> int | None:
        """The number of tokens; None if a server does not tell it."""
        if self.unit == CHUNK:
            return None if self.finished is None or self.finished.server is None else self.finished.server.tokens
        return sum(len(step.token_ids) for step in self.steps)

    def figures(self) -> dict[str, str]:
        """Return the figures by name. They cover the steps that exist: a damaged recording may lack some."""
        figures: dict[str, str] = {}
        if self.steps:
            tokens, steps = self.tokens, len(self.steps)
            figures |= {} if tokens is None else {"tokens": f"{tokens:,}"}
            figures[formatting.plural(2, self.unit)] = f"{steps:,}"
            figures |= {} if tokens is None or self.unit == CHUNK else {"tokens per pass": f"{tokens / steps:.2f}"}
        if self.finished is not None:
            if self.finished.decode_seconds and self.tokens:
                tokens = len(self.finished.token_ids) if self.unit == PASS else self.tokens
                figures["tokens per second"] = (
                    f"{(tokens - self.finished.untimed_tokens) / self.finished.decode_seconds:.0f}"
                )
            if self.finished.estimated_speedup is not None:
                figures["estimated speedup"] = f"{self.finished.estimated_speedup:.2f}×"
            if self.finished.reason in formatting.REASONS:
                figures["ended"] = formatting.REASONS[self.finished.reason]
        elif self.steps and (not self.earlier or self._before is not None):
            figures["ended"] = "its end was not recorded"
        if self.settings and self.steps:
            figures["decoder"] = self.settings
        return figures

    @property
    def summary(self) -> str:
        """The figures in one line: "18 tokens · 10 passes · …"."""
        numbers = (f"{value} {name}" if name not in WORDS else value for name, value in self.figures().items())
        return " · ".join(numbers)


@dataclass
class Talk:
    """The conversation in a recording, or a saved one: its title, the model's short name, the program that wrote it,
    the time of its start as it is written there, the turns in order, and problems with the file.
    """

    title: str
    model: str
    program: str
    started: str
    turns: list[ExportedTurn]
    notices: list[str]

    def changes(self) -> Iterator[tuple[ExportedTurn, dict[str, str]]]:
        """Yield each turn with those of its conditions that have changed; the first turn with all."""
        before = {SYSTEM: ""}
        for turn in self.turns:
            yield turn, {name: value for name, value in turn.conditions.items() if before.get(name) != value}
            before |= turn.conditions


def talk_of(recording: Recording) -> Talk:
    """Return the conversation in a recording, with what was cleared on the screen, without what was replaced."""
    reader = _ConversationReader(recording.header.model)
    for event in recording.events:
        reader.read(event)
    header, model = recording.header, formatting.name_of(reader.model)
    title = f"A conversation with {model}"
    return Talk(title, model, header.program, header.started, reader.turns, recording.notices)


def talk_of_saved(saved: SavedConversation, program: str) -> Talk:
    """Return a saved conversation. `program` has saved it."""
    reader = _ConversationReader(saved.model)
    reader.read(protocol.ConversationOpened(exchanges=saved.exchanges))
    model, started = formatting.name_of(saved.model), saved.tree.times[saved.tree.path[0]]
    return Talk(saved.title, model, program, started, reader.turns, [])


class _ConversationReader:
    """Converts events to turns. The turn numbers of events were checked when they were read."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.turns: list[ExportedTurn] = []
        self._decoders: Mapping[str, protocol.DecoderInfo] = formatting.announced(())
        self._server: protocol.ServerInfo | None = None
        self._decoder = ""
        """The active decoder, in words."""
        self._folded = False
        """Whether the notice is still due that the system prompt is part of the first question."""
        self._waits = False
        """Whether the last question waits for its answer to begin."""
        self._cleared = False

    def read(self, event: protocol.Event) -> None:
        match event:
            case protocol.Ready():
                self.model, self._decoders = event.model, formatting.announced(event.decoders)
                self._server = event.server
            case protocol.Asked():
                self._begin(event.text)
                self._waits = True
            case protocol.TurnStarted():
                turn = self._latest if self._belongs_to_latest(event) else self._begin(event.question)
                self._decoder = formatting.describe_settings(event.settings, self._decoders)
                if turn.started is None:
                    turn.started, turn.model = event, formatting.name_of(self.model)
                    turn.settings, turn.server = self._decoder, self._server
                if event.goes_on:
                    turn.go_on()
                turn.notices += [formatting.SYSTEM_FOLDED] if self._folded else []
                self._waits = self._folded = False
            case protocol.SettingsApplied():
                self._decoder = formatting.describe_settings(event.settings, self._decoders)
            case protocol.Step():
                self._latest.steps.append(event)
                self._note_decoder(self._latest)
            case protocol.TurnFinished():
                turn = self._latest
                turn.mend(event.pass_tokens)
                turn.finished = event if turn.finished is None else protocol.joined(turn.finished, event)
                if event.reason != "failed":  # else it is not part of the conversation's answer
                    turn.settle()
                    turn.answered = turn.answered or bool(event.token_ids)
            case protocol.HistoryTrimmed():
                self._latest.notices.append(formatting.describe_trimming(event))
            case protocol.SystemFolded():
                self._folded = not any(formatting.SYSTEM_FOLDED in turn.notices for turn in self.turns)
            case protocol.Failed():
                self._latest.notices.append(formatting.describe_failure(event))
            case protocol.ConversationCleared():
                self._cleared, self._waits = True, False
            case protocol.ConversationOpened():
                self._cleared, self._waits = True, False
                for exchange in event.exchanges:
                    self._add_earlier(exchange)
            case protocol.ExchangeRemoved() if not self._cleared:
                self._remove_last()
            case protocol.ExchangeRestored():
                self._waits = False
                self._add_earlier(event.exchange)
            case protocol.SystemPrompt() if self.turns and not self._cleared:  # else it applies to the first question
                as_before = event.text == self._latest.system
                if self._latest.notices or not as_before:  # else nothing has changed, as when it was opened again
                    self._latest.notices.append(formatting.describe_system(event.text, as_before=as_before))

    def _add_earlier(self, exchange: protocol.Exchange) -> None:
        """Add a turn of an earlier session, with the steps of its answer if they are known."""
        turn = self._begin(exchange.question)
        turn.server = exchange.server
        if exchange.decoder != SERVER.name or turn.server is not None:  # else it is not known what a step is
            turn.steps = protocol.unpacked(exchange.steps, 0)
        if turn.answer != exchange.answer:
            turn.steps, turn.earlier_answer = [], exchange.answer
        turn.model, turn.earlier_system = formatting.name_of(exchange.model), exchange.system
        if exchange.ended is not None:
            turn.finished = protocol.end_of(exchange, len(turn.steps))
        turn.answered = turn.earlier = True
        turn.settings = formatting.info_of(exchange.decoder, self._decoders).label

    def _note_decoder(self, turn: ExportedTurn) -> None:
        """Append the decoder to the turn's settings if it replaced another one during the answer."""
        if turn.settings and turn.settings.rpartition(THEN)[2] != self._decoder:
            turn.settings += f"{THEN}{self._decoder}"

    def _belongs_to_latest(self, started: protocol.TurnStarted) -> bool:
        """Return whether it answers the last question, or continues the last answer."""
        if not started.goes_on:
            return self._waits
        if self._cleared or not self.turns:
            return False
        turn = self.turns[-1]
        return turn.earlier or (bool(turn.steps) and turn.steps[-1].turn == started.turn)

    def _remove_last(self) -> None:
        """Remove the last answered question of the current conversation, and all that came after it."""
        for place in range(len(self.turns) - 1, -1, -1):
            turn = self.turns[place]
            if turn.answered:
                del self.turns[place:]
                self._cleared, self._waits = turn.begins_anew, False
            if turn.answered or turn.begins_anew:
                return

    @property
    def _latest(self) -> ExportedTurn:
        return self._begin(None) if self._cleared or not self.turns else self.turns[-1]

    def _begin(self, question: str | None) -> ExportedTurn:
        self.turns.append(ExportedTurn(question, begins_anew=self._cleared and bool(self.turns)))
        self._cleared = False
        return self.turns[-1]
