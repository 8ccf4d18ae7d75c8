"""The steps of the answers on the screen, stored compactly so that any can be shown again with its panels."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from textual.message import Message

from ladechat.protocol import (
    DecoderInfo,
    Exchange,
    PolicyChoice,
    ServerInfo,
    Step,
    TurnFinished,
    end_of,
    has_times,
    one_by_one,
    unpacked,
)
from ladechat.widgets.steps.explained import EARLIER

TRANSFER = "transfer"
"""The value of `DecoderInfo.needs` for a decoder that has pseudo states."""


class Arrangement(NamedTuple):
    """Which panels are shown, and their heights. It changes rarely, because it follows from whole turns.

    Attributes:
        policy, window, drafts: whether these panels are shown.
        seen_window, seen_drafts: whether a step of this turn, with this decoder, had data for them.
        new_decoder: whether no step of this decoder has been seen yet.
        window_rows: rows of the Jacobi window.
        lens: whether the panel of pseudo states is shown: always, for a decoder that has some.
        lens_rows: number of layers in that panel.
        window_set: the setting W; 0 for a decoder that has none.
        sizes: the settings W, N and G; empty for a decoder that lacks one of them.
        carriers: how many slots carry pseudo states at the most; 0 for a decoder that has none.
    """

    policy: bool = False
    window: bool = True
    drafts: bool = True
    seen_window: bool = False
    seen_drafts: bool = False
    new_decoder: bool = True
    window_rows: int = 2
    lens: bool = False
    lens_rows: int = 4
    window_set: int = 0
    sizes: tuple[int, ...] = ()
    carriers: int = 0

    def after_step(self, step: Step) -> "Arrangement":
        """Return the arrangement after a step. A panel appears when a step has data for it; it is removed only at the
        first step of another decoder.
        """
        window, drafts = step.window is not None, step.draft is not None or step.pool is not None
        if not window and not drafts and step.lens is None:
            return self
        return self._replace(
            window=window or (self.window and not self.new_decoder),
            drafts=drafts or (self.drafts and not self.new_decoder),
            seen_window=window or self.seen_window,
            seen_drafts=drafts or self.seen_drafts,
            new_decoder=False,
            window_rows=len(step.window.rows) if step.window else self.window_rows,
            lens=step.lens is not None or self.lens,
            lens_rows=len(step.lens.rows) if step.lens else self.lens_rows,
        )

    def for_turn(self) -> "Arrangement":
        """Return the arrangement for a new turn: the panels that the turn before used."""
        if not self.seen_window and not self.seen_drafts:
            return self
        unseen = self._replace(window=self.seen_window, drafts=self.seen_drafts)
        return unseen._replace(seen_window=False, seen_drafts=False)

    def for_decoder(self, info: DecoderInfo) -> "Arrangement":
        """Return the arrangement until the decoder's first step: with what the decoder is known to have."""
        lens = info.needs == TRANSFER
        arrangement = Arrangement(window=info.window, drafts=info.tree_attention, lens=lens)
        return arrangement._replace(window_rows=self.window_rows, lens_rows=self.lens_rows)


MOST_BYTES = 64 * 1024 * 1024
"""Limit for all answers but the latest, encoded: some 60,000 steps of `auto`."""

NEVER_KNOWN = "How this answer came about is not known: it is from an earlier session."

_encode = msgspec.msgpack.Encoder().encode
_decode_step = msgspec.msgpack.Decoder(Step).decode
_decode_choice = msgspec.msgpack.Decoder(PolicyChoice).decode


@dataclass
class StepPointedAt(Message):
    """The user has pointed at a step of an answer, and at one of its tokens.

    Attributes:
        turn: the answer's turn; None if its steps were never known to this session.
        step: the index of the step.
        token: the index of the token in the step; None for the step as a whole.
        diagonal: the diagonal of its window to be marked; None for none.
    """

    turn: int | None
    step: int
    token: int | None = None
    diagonal: int | None = None


class AnswerSteps:
    """One answer: its steps, the policy's choices between them, and the panels shown at each step.

    Attributes:
        decoder: the name of the decoder of the latest step.
        server: the server that decoded it; None: this machine did.
        finished: the totals of the answer, once it has ended.
        remembered: number of tokens drafted from n-grams of earlier answers.
        last_accepting: the index of the latest step that emitted several tokens; None without any.
        untimed: the number of first steps that were slowed down for the viewer; None: all of them.
        size: encoded size in bytes.
    """

    def __init__(self) -> None:
        self.decoder = ""
        self.server: ServerInfo | None = None
        self.finished: TurnFinished | None = None
        self.remembered = 0
        self.last_accepting: int | None = None
        self.untimed: int | None = 0
        self.size = 0
        self._steps: list[bytes] = []
        self._arrangements: list[Arrangement] = []
        self._choices: list[bytes] = []
        self._choices_before: list[int] = []
        """For each choice, the number of steps that came before it."""
        self._longest: tuple[int, int | None] = 0, None
        """The length of the longest block of Jacobi decoding, and the latest step with such a block."""
        self._before: tuple[int, int, int, int | None, tuple[int, int | None], int, TurnFinished | None] | None = None
        """The state before the answer was continued; None once the continuation is part of the answer."""

    @classmethod
    def saved(cls, exchange: Exchange, turn: int) -> "AnswerSteps":
        """Return a saved answer as that of a turn, each step with the panels that have something to show of it."""
        answer, arrangement = cls(), Arrangement()
        answer.decoder, answer.server = exchange.decoder, exchange.server
        for step in unpacked(exchange.steps, turn):
            arrangement = arrangement.after_step(step)
            answer.add(step, arrangement)
        answer.finished = end_of(exchange, len(answer))
        answer.untimed = 0 if exchange.ended is None or has_times(answer.finished) else None
        return answer

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: Step, arrangement: Arrangement) -> None:
        """Add a step, and the arrangement of panels shown with it."""
        if len(step.token_ids) > 1:
            self.last_accepting = len(self._steps)
        block = step.window.row_ids[0] if step.window is not None and step.window.row_ids and step.pool is None else []
        if block and len(block) >= self._longest[0]:  # W may be set larger than the answer, so none need be whole
            self._longest = len(block), len(self._steps)
        self.remembered += step.origins.count(EARLIER)
        before = self._arrangements[-1] if self._arrangements else None
        self._arrangements.append(before if before == arrangement else arrangement)  # equal ones share their memory
        self._steps.append(_encode(step))
        self.size += len(self._steps[-1])

    def add_choice(self, choice: PolicyChoice) -> None:
        """Add the policy's choice for the next steps."""
        self._choices_before.append(len(self._steps))
        self._choices.append(_encode(choice))
        self.size += len(self._choices[-1])

    def go_on(self) -> bool:
        """Prepare for a continuation. Steps of an earlier, unsettled one are dropped; return whether any were."""
        came = len(self._steps)
        if self._before is None:
            latest = self.last_accepting, self._longest
            self._before = came, len(self._choices), self.remembered, *latest, self.size, self.finished
        steps, choices, self.remembered, self.last_accepting, self._longest, self.size, self.finished = self._before
        del self._steps[steps:], self._arrangements[steps:]
        del self._choices[choices:], self._choices_before[choices:]
        return steps < came

    def mend(self, pass_tokens: Sequence[int]) -> tuple[list[Step], list[Step]]:
        """Take the passes apart that a server has sent together, in the answer or in its continuation; return its steps
        before and after that.
        """
        begin = self._before[0] if self._before is not None else 0
        came = [self.step(place) for place in range(begin, len(self))]
        passes, arrangements = one_by_one(came, pass_tokens), self._arrangements[begin:]
        del self._steps[begin:], self._arrangements[begin:]
        for step in passes:
            self.add(step, arrangements[0])
        return came, passes

    def settle(self) -> None:
        """Make the continuation a permanent part of the answer."""
        self._before = None

    @property
    def telling(self) -> int | None:
        """The index of the step that panels stay at once the answer has ended: the last one says little, as its block
        is cut at the limit of the answer. None: at the last one.
        """
        return self._longest[1] if self.last_accepting is None else self.last_accepting

    def step(self, place: int) -> Step:
        return _decode_step(self._steps[place])

    def arrangement(self, place: int) -> Arrangement:
        return self._arrangements[place]

    def choice(self, place: int | None = None) -> PolicyChoice | None:
        """Return the policy's choice at a step, or without `place` its latest choice; None before the first."""
        end = len(self._choices) if place is None else bisect_right(self._choices_before, place)
        return _decode_choice(self._choices[end - 1]) if end else None


class LookedAt(NamedTuple):
    """What the panels show while the user looks back.

    Attributes:
        answer: the answer, which may still grow.
        steps: the steps of the answer, up to the selected one.
        token: the index of the selected token in the answer.
        pointed_at: whether the user has pointed at that token, rather than at its step.
    """

    answer: AnswerSteps
    steps: list[Step]
    token: int
    pointed_at: bool

    @property
    def place(self) -> int:
        """The index of the selected step in the answer."""
        return len(self.steps) - 1


class RecentAnswers:
    """The answers on the screen by turn, oldest first. Beyond `most_bytes`, the oldest are dropped. Saved ones are
    packed until they are looked at.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._answers: dict[int, AnswerSteps | Exchange] = {}
        self._blocks: dict[int, int] = {}
        self._most_bytes = most_bytes

    @property
    def latest(self) -> int | None:
        """The turn of the latest answer that has steps."""
        return next((turn for turn in reversed(self._answers) if _has_steps(self._answers[turn])), None)

    def get(self, turn: int) -> AnswerSteps | None:
        """Return the steps of an answer; None if they are not stored."""
        answer = self._answers.get(turn)
        if isinstance(answer, Exchange):
            answer = self._answers[turn] = AnswerSteps.saved(answer, turn)
        return answer

    def last(self, question: int) -> AnswerSteps | None:
        """Return the last answer, if it is that to the question in block number `question`."""
        turn = next(reversed(self._answers), None)
        return None if turn is None or self._blocks[turn] <= question else self.get(turn)

    def begin(self, turn: int, answer: AnswerSteps | Exchange, block: int) -> None:
        """Add an answer that begins with block number `block`, dropping old answers over the size limit."""
        self._answers.pop(turn, None)
        size = sum(map(_size, self._answers.values()))
        while size > self._most_bytes:
            size -= _size(self._answers.pop(next(iter(self._answers))))
        self._answers[turn], self._blocks[turn] = answer, block

    def keep(self, blocks: int) -> None:
        """Forget the answers after the first `blocks` messages of the conversation."""
        self._blocks = {turn: block for turn, block in self._blocks.items() if block < blocks}
        self._answers = {turn: answer for turn, answer in self._answers.items() if turn in self._blocks}


def _size(answer: AnswerSteps | Exchange) -> int:
    return len(answer.steps) if isinstance(answer, Exchange) else answer.size


def _has_steps(answer: AnswerSteps | Exchange) -> bool:
    return bool(answer.steps if isinstance(answer, Exchange) else len(answer))
