"""Draws events on the screen. It depends on the events alone, so a replay shows what the live app showed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ladechat import protocol
from ladechat.catalog import BUNDLED
from ladechat.widgets import formatting
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import ANSWERING, StatusLine
from ladechat.widgets.flow import Ink
from ladechat.widgets.inspection import Inspection
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.steps.answer_steps import Arrangement, RecentAnswers
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.transcript.whole import WholeMessage, messages_of
from ladechat.widgets.units import PASS, unit_of

STARTING = "starting the engine …"
READY = "ready"
PREPARING = "preparing the question …"
"""Shown while the prompt is rendered: usually briefly, but a long conversation or a slow template takes seconds."""
READING = "reading the question …"
ENDED = "the engine has ended"
RESTORED = "back to what was here before"
"""Shown above exchanges that were to be replaced."""
NO_MODEL_YET = "model"
"""The name shown before the engine has loaded its model."""
STATUS_PARTS = ("model", "device", "link", "dtype", "facts", "memory")


class Bookmark(msgspec.Struct):
    """What is on the screen, by numbers of messages. Since a turn clears the panels, one can only return to its start.

    Attributes:
        asked_at: the message with the last question.
        exchanges: for each answered question, its message.
        decoders: by name; those announced by the engine, or before that, those of this version.
        settings: those that the engine has confirmed.
        parameters: the last value of each parameter of any decoder, as reported by the engine.
        activity: the text in the status line.
        system_said: whether a notice said that the system prompt is placed in the first question.
        server: the server that decodes; None: this machine does.
        blocks: the number of messages and notices.
        status: the other texts of the status line.
        arrangement: the panels that are shown.
    """

    model: str = NO_MODEL_YET
    asked_at: int = 0
    exchanges: tuple[int, ...] = ()
    decoders: Mapping[str, protocol.DecoderInfo] = msgspec.field(default_factory=lambda: formatting.announced(()))
    settings: protocol.Settings = protocol.Settings()
    parameters: Mapping[str, protocol.Value] = {}
    activity: str = ""
    system_said: bool = False
    server: protocol.ServerInfo | None = None
    blocks: int = 0
    status: tuple[str, ...] = ()
    arrangement: Arrangement = Arrangement()


class Presenter:
    """Draws events on the conversation, the panels beside it and the status line.

    Attributes:
        now: what is on the screen.
        answers: the steps of the answers on the screen.
        inspection: looks back at those steps.
        may_continue: whether an answer that was cut can be continued here.
        chosen: the place of the question that the user has chosen; None if there is none.
    """

    def __init__(
        self,
        transcript: Transcript,
        side: SidePanels,
        status: StatusLine,
        timeline: SeekBar,
        welcome: str = "",
        questions: Sequence[str] = (),
        *,
        limit_meant: bool = False,
    ) -> None:
        self.answers = RecentAnswers()
        self.inspection = Inspection(self.answers, transcript, side, status, timeline)
        self._transcript = transcript
        self._side = side
        self._status = status
        self._welcome, self._questions = welcome, questions
        self._limit_meant = limit_meant
        self.may_continue = False
        self.chosen: int | None = None
        self.now = Bookmark()
        self._in_turn = self._continuing = self._expecting = self._settings_awaited = False
        self._shown_system: str | None = None
        """The system prompt of the last question; None if unknown."""
        self._turn_before = 0  # of earlier sessions: each of their answers has a negative one
        self._first_part: protocol.TurnFinished | None = None
        self._restored: protocol.Exchange | None = None
        """The last exchange, if the panels do not show its answer yet."""

    @property
    def unit(self) -> str:
        return unit_of(self.now.server)

    def begin(self, settings: protocol.Settings | None, doing: str = STARTING) -> None:
        """Show the screen before the first event, with `doing` as the activity.

        Args:
            settings: those that the engine is started with; None: its header tells them.
            doing: what goes on.
        """
        self.now, self._in_turn, self._expecting, self._restored = Bookmark(), False, False, None
        self._status.unit = self.unit
        self._keep(0)
        self._shown_system = None
        self._side.reset()
        for part in STATUS_PARTS:
            setattr(self._status, part, "")
        self._settings_awaited = settings is None
        if settings is None:
            self._side.hide_settings()
            self._status.decoder = ""
        else:
            self._show_settings(settings)
        if self._welcome:
            self._transcript.notice(self._welcome)
            self._transcript.offer(self._questions)
        self.say(doing)

    def bookmark(self) -> Bookmark:
        """Return the state of the screen; call it before a turn starts."""
        now = self.now
        now.blocks, now.arrangement = self._transcript.blocks, self._side.arrangement
        now.status = tuple(getattr(self._status, part) for part in STATUS_PARTS)
        return msgspec.structs.replace(now)

    def return_to(self, bookmark: Bookmark) -> None:
        """Restore the screen; the next event shown must start a turn."""
        self.now, self._in_turn, self._expecting = msgspec.structs.replace(bookmark), False, False
        self._restored = None
        self._status.unit = self.unit
        self._keep(bookmark.blocks)
        self._show_settings(bookmark.settings)
        self._side.show_server(bookmark.server)
        self._side.restore(bookmark.arrangement)
        for part, text in zip(STATUS_PARTS, bookmark.status, strict=True):
            setattr(self._status, part, text)
        self.say(bookmark.activity)

    def show_place(self, exchange: int, text: str, *, answer: bool) -> None:
        """Show the first occurrence of a text in the question of a shown exchange, from 0, or in its answer."""
        if exchange < len(self.now.exchanges):
            question, *later = self.now.exchanges[exchange:]
            end = later[0] if later else self._transcript.blocks
            self._transcript.scroll_to_text(range(question + answer, end), text)

    def answers_to_copy(self) -> Iterator[str]:
        """Return the raw text of the answer to the chosen question, or else of all answers, last first."""
        if self.chosen is None:
            return self._transcript.answers()
        return iter([self._transcript.answer_to(self.now.exchanges[self.chosen])])

    @property
    def answering(self) -> bool:
        """Whether an answer is being generated, or its question is being read."""
        return self._in_turn or self._expecting

    def expect_answer(self) -> None:
        """Show that a question, or the rest of an answer, was requested: nothing is ready until its turn."""
        self._expecting = True
        if self.now.activity == READY:  # else an engine is loading, and the question waits for it
            self.say(PREPARING)

    def note(self, text: str) -> None:
        """Add a notice of the program to the conversation, below an answer that is being written."""
        (self._transcript.notice_below if self.answering else self._transcript.notice)(text)

    def say(self, activity: str) -> None:
        self.now.activity = activity
        self._status.activity = activity

    def warn(self, warning: str) -> None:
        """Show a warning instead of the activity, until `warn("")` or the next activity."""
        self._status.activity = warning or self.now.activity

    def show(self, events: Iterable[protocol.Event]) -> None:
        """Draw events in order; consecutive steps are drawn together."""
        steps: list[protocol.Step] = []
        for event in events:
            if isinstance(event, protocol.Step):
                steps.append(event)
                continue
            self._show_steps(steps)
            steps = []
            self._show(event)
        self._show_steps(steps)
        if self._restored is not None:  # once for all exchanges that came
            self._show_restored(self._restored)

    def _show_steps(self, steps: list[protocol.Step]) -> None:
        if steps:
            self._transcript.add_steps(steps)
            self._side.show_steps(steps)
            self.inspection.show_place()
            if self.now.activity == READING:  # no Prefilling event came: the KV cache holds the whole question
                self.say(ANSWERING)

    def _show(self, event: protocol.Event) -> None:
        match event:
            case protocol.Asked():
                self.chosen = None
                self.now.asked_at = self._transcript.blocks
                self._transcript.start("user", "You")
                self._transcript.add(event.text)
                self.expect_answer()
            case protocol.Header() if self._settings_awaited:
                self._show_settings(event.settings)
            case protocol.Loading():
                self.say(formatting.describe_loading(event))
            case protocol.Ready():
                self._show_ready(event)
            case protocol.SettingsApplied():
                self._show_settings(event.settings)
            case protocol.HistoryTrimmed():
                self._transcript.notice(formatting.describe_trimming(event))
            case protocol.SystemFolded() if not self.now.system_said:
                self.now.system_said = True
                self._transcript.notice(formatting.SYSTEM_FOLDED)
            case protocol.TurnStarted():
                self._show_turn_started(event)
            case protocol.Prefilling():
                self.say(ANSWERING)
                if event.done_tokens < event.total_tokens:
                    self.say(f"reading the question: {event.done_tokens:,} of {event.total_tokens:,} tokens …")
            case protocol.PassCosts():
                self._side.show_costs(event.costs)
            case protocol.PolicyChoice():
                self._side.show_choice(event)
            case protocol.TurnFinished():
                self._show_turn_finished(event)
            case protocol.Pong() if event.round_trip_ms is not None:
                self._status.link = formatting.describe_link(event.round_trip_ms)
            case protocol.Failed():
                self._show_failure(event)
            case protocol.ConversationCleared():
                self._show_conversation([])
            case protocol.ConversationOpened():
                self._show_conversation(event.exchanges)
            case protocol.SystemPrompt():
                self.now.system_said = False
                self._transcript.notice(
                    formatting.describe_system(event.text, as_before=event.text == self._shown_system)
                )
            case protocol.ExchangeRemoved() if self.now.exchanges:  # else the exchange is older than the recording
                self._show_removed()
            case protocol.ExchangeRestored():
                self._add_restored(event.exchange)

    @property
    def _can_go_on(self) -> bool:
        """Whether an answer that was cut can be continued here: one that a server streams in chunks cannot."""
        return self.may_continue and self.unit == PASS

    def _show_turn_started(self, event: protocol.TurnStarted) -> None:
        self._in_turn, self._expecting, self._restored = True, False, None
        self._show_settings(event.settings)
        self._continuing = event.goes_on
        if self._continuing:
            self._continue(event.turn)
        else:
            self._shown_system = event.system
            self._side.clear()
            self.answers.begin(event.turn, self._side.answer, self._transcript.blocks)
            self._transcript.start("model", self.now.model)
        self.say(READING)

    def _show_turn_finished(self, event: protocol.TurnFinished) -> None:
        self._in_turn = False
        if event.reason != "failed" and event.token_ids and not self._continuing:  # a new exchange
            self.now.exchanges += (self.now.asked_at,)
        if event.pass_tokens:
            self._transcript.mend(*self._side.mend(event.pass_tokens))
        whole = protocol.joined(self._first_part, event) if self._continuing and self._first_part else event
        self._side.show_finished(whole)
        if event.reason != "failed":  # else the continuation is not in the conversation's history
            self._side.answer.settle()
            self._transcript.settle()
        self._status.memory = formatting.describe_memory(event.memory)
        answer = self._side.answer
        figures = formatting.describe_finish(
            whole,
            answer.remembered,
            limit_meant=self._limit_meant,
            timed=answer.untimed == 0,
            server=self.now.server,
            may_continue=self._can_go_on,
        )
        self._transcript.sum_up(figures)
        self.say(READY)

    def _show_removed(self) -> None:
        self._shown_system = self._restored = None
        *before, question = self.now.exchanges
        self.now.exchanges = tuple(before)
        self._keep(question)
        self._side.clear()

    def _add_restored(self, exchange: protocol.Exchange) -> None:
        if self.now.asked_at not in self.now.exchanges and self.now.asked_at < self._transcript.blocks:
            self._transcript.notice(RESTORED)  # below a question without an answer
        self._shown_system = exchange.system
        self.now.asked_at = self._transcript.blocks
        self.now.exchanges += (self.now.asked_at,)
        self._side.clear()
        self._transcript.add_whole(self._earlier(exchange, self.now.asked_at))
        self._restored = exchange

    def _earlier(self, exchange: protocol.Exchange, block: int) -> list[WholeMessage]:
        """Return the messages of an earlier session's exchange, whose question is block number `block`."""
        self._turn_before -= 1
        self.answers.begin(self._turn_before, exchange, block + 1)
        return messages_of(exchange, self._turn_before)

    def _show_restored(self, exchange: protocol.Exchange) -> None:
        """Show the answer of the last exchange in the panels, as it ended, and below it how it goes on, if it can."""
        self._restored = None
        self._show_last()
        own = self.now.model in (NO_MODEL_YET, formatting.name_of(exchange.model))
        ended = exchange.ended
        how = formatting.GOES_ON.get(ended.reason) if ended is not None and exchange.token_ids else None
        if how and own and self._can_go_on:
            self._transcript.add(f" · {how}", Ink("muted"))

    def _show_last(self) -> None:
        """Show the last answer in the panels, as it ended."""
        answer = self.answers.last(self.now.exchanges[-1]) if self.now.exchanges else None
        if answer is not None:
            self._side.show_answer(answer)

    def _continue(self, turn: int) -> None:
        """Continue the last answer in its block."""
        self._transcript.go_on()
        if self._side.answer.finished is None:
            self._show_last()
        if self.answers.get(turn) is not self._side.answer:
            if self._side.answer.finished is None:  # its first steps are unknown, or dropped
                self._side.clear()
            self.answers.begin(turn, self._side.answer, self._transcript.blocks - 1)
        if self._side.go_on():
            self.inspection.leave()
        self._first_part, self._side.answer.finished = self._side.answer.finished, None

    def _keep(self, blocks: int) -> None:
        """Remove all but the first `blocks` messages and notices, and the steps of the removed answers."""
        self.chosen = None
        self.inspection.leave()
        self._transcript.keep(blocks)
        self.answers.keep(blocks)

    def _show_conversation(self, exchanges: list[protocol.Exchange]) -> None:
        self._keep(0)
        self.now.system_said = False
        self._shown_system = exchanges[-1].system if exchanges else None
        self.now.exchanges, messages = (), list[WholeMessage]()
        for exchange in exchanges:
            self.now.exchanges += (len(messages),)
            messages += self._earlier(exchange, len(messages))
        self._side.clear()
        self._transcript.open(messages)
        if exchanges:
            self._show_restored(exchanges[-1])
            now = self.now.settings if self.may_continue else None
            self._transcript.sum_up(formatting.describe_reopened(exchanges[-1].settings, self.now.decoders, now))

    def _show_ready(self, event: protocol.Ready) -> None:
        self.now.model, self.now.system_said = formatting.name_of(event.model), False
        status = self._status
        status.model, status.device, status.link, status.dtype = self.now.model, event.device, "", event.dtype
        status.facts, status.memory = formatting.describe_model(event), formatting.describe_memory(event.memory)
        self.now.decoders, self.now.server = formatting.announced(event.decoders), event.server
        status.unit = self._transcript.unit = self.unit
        self._side.show_model(event)
        self._show_settings(event.settings)
        if event.model != BUNDLED:
            self._transcript.notice(formatting.introduce(event))
        for notice in event.notices:
            self._transcript.notice(notice)
        self.say(PREPARING if self._expecting else READY)

    def _show_settings(self, settings: protocol.Settings) -> None:
        self.now.settings, self._settings_awaited = settings, False
        self.now.parameters = {**self.now.parameters, **settings.parameters}
        self._side.show_settings(settings, self.now.decoders, self.now.parameters)
        self._status.decoder = formatting.info_of(settings.decoder, self.now.decoders).label

    def _show_failure(self, event: protocol.Failed) -> None:
        if event.fatal:
            self._transcript.put_back()
        self._transcript.notice(formatting.describe_failure(event), "alert")
        if event.fatal:
            self._in_turn = self._expecting = False
            self._status.link = ""
            self.say(ENDED)
        elif event.turn is not None and not self._in_turn:  # else a TurnFinished follows
            self._expecting = False
            if self.now.activity == PREPARING:  # else the engine is still loading
                self.say(READY)
