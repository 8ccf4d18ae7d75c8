"""An engine without a model: it speaks the protocol, keeps to a script, and waits where a test wants it to."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator

import msgspec

from ladechat import protocol
from ladechat.protocol import Command, Event, Settings
from tests.fake_model import DECISION, POLICY_CHOICE, header, memory, ready, resolved
from tests.widgets import sample_steps

ANSWER = (
    "The n-gram pool keeps what the window has produced, sorted by first token. When the model says that token again, "
    "the tails behind it are tried as guesses, all of them in one pass.\n\n"
    "```python\ndef guesses(pool, token):\n    return pool[token]\n```\n"
    "A guess that the model agrees with is accepted, and the answer grows by several tokens at once."
)


def tokens(text: str) -> list[str]:
    """The text in pieces like those of a tokenizer: parts of words with the space before them, marks, line breaks."""
    return re.findall(r" ?\w{1,6}|\s|[^\w\s]", text)


class FakeEngine:
    """An `EngineSource` that answers each question with the next of its answers. It says one thing a second.

    It has every decoder of the catalog: lookahead with a window and a pool, `auto` with a pool and a chart of its
    policy, hidden transfer with pseudo states while somebody looks, the others with drafts alone.

    Args:
        settings: what it was started with; those of `settings.parameters` that its decoder lacks are kept for others.
        answers: what it says, in turn; the last one again and again.
        hold_loading: keep loading until `finish_loading`.
        hold_steps: send no step until `release`.

    Attributes:
        commands: all that it was sent, but for the wish to know rivals, with which every chat begins.
        closed: whether it was ended by the app.
        stack_dumps: how often it was asked for its thread stacks.
        pace: steps a second that it was told; it takes none at 0, and as many as it can at any other.
        last_line: of its log, as if it had one.
        first_words: what it says before its header, if it were a command of the user's.
        watched, costs_watched, rivals_watched: whether it was told that somebody looks at pseudo states, at what passes
            cost, or at what else was likely.
        fail_next: what the next question fails with, instead of an answer.
        notices: what it says of its checkpoint.
        hold_end: leave an answer open behind its last step.
        steps_done: of the answer that was begun last.
        folds_system: say that the chat template has no place for a system message.
        trim_next: leave out the oldest turn at the next question, and say so.
        single_token: why it can only be decoded plainly, if it can.
        eos_ids: the tokens that end an answer.
        model: the name of its model.
        thinking: whether its chat template has a switch for thinking.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        answers: tuple[str, ...] = (ANSWER,),
        hold_loading: bool = False,
        hold_steps: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        self.commands: list[Command] = []
        self.closed = False
        self.stack_dumps = 0
        self.pace: float | None = None
        self.watched = self.costs_watched = self.rivals_watched = False
        self.fail_next: protocol.FailureCode | None = None
        self.notices: list[str] = []
        self.last_line = self.first_words = ""
        self.trim_next = self.prompt_cached = self.folds_system = False
        self.hold_end = False
        self.single_token: str | None = None
        self.eos_ids = [2]
        self.model = "demo"
        self.thinking = False
        self._answers = deque(answers)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._hold_loading = hold_loading
        self._loaded = False
        self._ended = False
        self._allowed: int | None = 0 if hold_steps else None
        self._asked_for = 0
        self._waiting: deque[protocol.Generate] = deque()
        self._turn: int | None = None
        self._own_decoder: str | None = None
        self._rest: list[str] = []
        self._coming: deque[protocol.Step] = deque()
        self._said: list[str] = []
        self._answer = tokens(answers[0])
        self.steps_done = self._first_step = 0
        self._seq = 0

    # --- what the app calls -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._say(header(self.settings))
        self._say(protocol.Loading(stage=1, stages=2, doing="reading the weights"))
        if not self._hold_loading:
            self.finish_loading()

    async def send(self, command: Command) -> None:
        if command != protocol.Watch(rivals=True) or self.rivals_watched:
            self.commands.append(command)
        match command:
            case protocol.Generate():
                self._waiting.append(command)
                self._work()
            case protocol.Configure():
                wanted = {name: value for name, value in msgspec.structs.asdict(command).items() if value is not None}
                wanted["parameters"] = {**self.settings.parameters, **(command.parameters or {})}
                self.settings = msgspec.structs.replace(self.settings, **wanted)
                self._say(protocol.SettingsApplied(settings=resolved(self.settings)))
                if self._turn is not None:
                    self._plan()
            case protocol.Watch():
                self.watched, self.costs_watched, self.rivals_watched = command.lens, command.costs, command.rivals
            case protocol.Pace():
                self.pace = command.steps_per_second
                self._asked_for = self._asked_for + 1 if command.step else 0
                self._work()
            case protocol.Ping():
                self._say(protocol.Pong())
            case protocol.Stop():
                if self._turn is not None:
                    self._finish("stopped")

    def dump_stacks(self) -> None:
        self.stack_dumps += 1

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        self.closed = True
        self.die()

    # --- what a test calls --------------------------------------------------------------------------------------------

    def finish_loading(self) -> None:
        """Become ready, and begin with what was asked in the meantime."""
        self._loaded = True
        about = {
            "model": self.model,
            "eos_ids": self.eos_ids,
            "single_token": self.single_token,
            "notices": self.notices,
            "thinking": self.thinking,
        }
        self._say(msgspec.structs.replace(ready(self.settings), **about))
        self._work()

    def release(self, steps: int | None = None) -> None:
        """Let that many more steps go; without a number, all there will ever be."""
        self._allowed = None if steps is None else (self._allowed or 0) + steps
        self._work()

    def hold(self) -> None:
        """Let no more steps go."""
        self._allowed = 0

    def release_until(self, word: str) -> None:
        """Let steps go up to the one that completes `word`."""
        while word not in "".join(self._said) and self._coming:
            self.release(1)

    def die(self) -> None:
        """End without a word."""
        if not self._ended:
            self._ended = True
            self._events.put_nowait(None)

    def break_off(self) -> None:
        """Fail in the middle of the answer."""
        self._say(protocol.Failed(code="internal", message="It broke.", hint="Try again.", turn=self._turn))
        self._finish("failed")

    def fail_fatally(self, code: protocol.FailureCode = "load_failed") -> None:
        """Say why, and end."""
        self._say(protocol.Failed(code=code, message="The weights are torn.", hint="Mend them.", fatal=True))
        self.die()

    @property
    def questions(self) -> list[protocol.Generate]:
        """All that it was asked."""
        return [command for command in self.commands if isinstance(command, protocol.Generate)]

    # --- how it works -------------------------------------------------------------------------------------------------

    def _say(self, event: Event) -> None:
        if not self._ended:
            self._events.put_nowait(msgspec.structs.replace(event, seq=self._seq, t=float(self._seq)))
            self._seq += 1

    def _work(self) -> None:
        """As many steps of as many answers as may go now."""
        while self._loaded:
            if self._turn is None:
                if not self._waiting:
                    return
                self._begin(self._waiting.popleft())
            elif not self._coming and not self.hold_end:
                self._finish("eos")
            elif not self._coming or self._allowed == 0 or (self.pace == 0 and not self._asked_for):
                return
            else:
                self._step()

    def _begin(self, command: protocol.Generate) -> None:
        if self.fail_next:
            self._say(
                protocol.Failed(code=self.fail_next, message="It is too long.", hint="Shorten it.", turn=command.turn)
            )
            self.fail_next = None
            return
        if self.trim_next:
            self.trim_next = False
            self._say(
                protocol.HistoryTrimmed(
                    turn=command.turn,
                    dropped_turns=1,
                    dropped_messages=2,
                    tokens_before=1100,
                    tokens_after=600,
                    context_length=1024,
                )
            )
        if self.folds_system and command.messages[0].role == "system":
            self._say(protocol.SystemFolded(turn=command.turn))
        self._turn, self._said, self._asked_for = command.turn, [], 0
        self._own_decoder = command.decoder
        self.steps_done = self._first_step = command.first_step
        last = command.messages[-1]
        continued = tokens(last.content) if last.role == "assistant" else []
        if not continued:
            self._answer = tokens(self._answers.popleft() if len(self._answers) > 1 else self._answers[0])
        self._rest = self._answer[len(continued) :]
        self._plan()
        prompt = [sample_steps.token_id(piece) for message in command.messages for piece in tokens(message.content)]
        self._say(
            protocol.TurnStarted(
                turn=command.turn,
                messages=command.messages,
                prompt_ids=prompt,
                cached_tokens=0,
                max_new_tokens=512,
                settings=resolved(self._in_force),
                continued_tokens=len(continued),
            )
        )
        if not self.prompt_cached:
            self._say(protocol.Prefilling(turn=command.turn, done_tokens=len(prompt), total_tokens=len(prompt)))
        if self.costs_watched:
            self._say(protocol.PassCosts(turn=command.turn, costs=POLICY_CHOICE.costs))
        if self._in_force.decoder == "auto":
            self._say(msgspec.structs.replace(POLICY_CHOICE, turn=command.turn))

    @property
    def _in_force(self) -> Settings:
        """The settings, with the decoder that was asked for with the question."""
        return msgspec.structs.replace(self.settings, decoder=self._own_decoder or self.settings.decoder)

    def _plan(self) -> None:
        """The steps in which the rest of the answer will come, with the present settings."""
        if self._in_force.decoder == "autoregressive":
            self._coming = deque(sample_steps.plain_step(piece) for piece in self._rest)
        else:
            before = self._said[-1] if self._said else "]"
            given = {"window": 5, "ngram": 3, "guesses": 5, **self._in_force.parameters}
            sizes = given["window"], given["ngram"], given["guesses"]
            steps = sample_steps.answer(*sizes, text=[before, *self._rest, ""])
            if self._in_force.decoder != "lookahead":
                steps = [msgspec.structs.replace(step, window=None) for step in steps]
            if self._in_force.decoder not in ("lookahead", "auto"):
                steps = [msgspec.structs.replace(step, pool=None) for step in steps]
            if self._in_force.decoder == "auto":
                steps = [msgspec.structs.replace(step, decision=DECISION) for step in steps]
            self._coming = deque(steps)

    def _step(self) -> None:
        assert self._turn is not None
        step = msgspec.structs.replace(self._coming.popleft(), turn=self._turn, index=self.steps_done)
        if self._in_force.decoder == "hidden_transfer" and self.watched and self._said:
            lens = sample_steps.sharpening(self._said[-1], self._rest, seed=self.steps_done)
            step = msgspec.structs.replace(step, lens=lens)
        if self.rivals_watched:
            step = msgspec.structs.replace(step, rivals=[sample_steps.rivals(piece) for piece in step.pieces])
        self.steps_done += 1
        self._said += step.pieces
        self._rest = self._rest[len(step.pieces) :]
        self._asked_for = max(0, self._asked_for - 1)
        if self._allowed is not None:
            self._allowed -= 1
        self._say(step)

    def _finish(self, reason: protocol.FinishReason) -> None:
        assert self._turn is not None
        self._say(
            protocol.TurnFinished(
                turn=self._turn,
                reason=reason,
                text="".join(self._said),
                token_ids=[sample_steps.token_id(piece) for piece in self._said],
                steps=self.steps_done - self._first_step,
                prefill_seconds=0.1,
                decode_seconds=(self.steps_done - self._first_step) * 0.014,
                estimated_speedup=1.4,
                memory=memory(4_194_304),
            )
        )
        self._turn = self._own_decoder = None
        self._coming.clear()
        self._work()
