"""The steps of the answers that are on the screen, kept in a compact form to be looked at again."""

from bisect import bisect_right
from dataclasses import dataclass

import msgspec
from textual.message import Message

from ladechat.protocol import PolicyChoice, Step, TurnFinished
from ladechat.widgets.arrangement import Arrangement
from ladechat.widgets.draft_sources import EARLIER

MOST_BYTES = 64 * 1024 * 1024
"""Of all answers but the latest: some 60,000 steps of `auto`."""

NEVER_KNOWN = "How this answer came about is not known: it is from an earlier session."

_encode = msgspec.msgpack.Encoder().encode
_decode_step = msgspec.msgpack.Decoder(Step).decode
_decode_choice = msgspec.msgpack.Decoder(PolicyChoice).decode


@dataclass
class StepPointedAt(Message):
    """The user has pointed at a step of an answer, and there at a token.

    Attributes:
        turn: of the answer; None if its steps were never known here.
        step: its index.
        token: which of the step's tokens.
    """

    turn: int | None
    step: int
    token: int = 0


class AnswerSteps:
    """One answer: its steps, what the policy chose meanwhile, and which panels were there.

    Attributes:
        decoder: the name of the one that took the latest step.
        finished: the sum of the answer, once it has ended.
        remembered: tokens that were drafted from what earlier answers had left.
        telling: the place of the latest step that gave several tokens; None without any.
        size: bytes of what is encoded.
    """

    def __init__(self) -> None:
        self.decoder = ""
        self.finished: TurnFinished | None = None
        self.remembered = 0
        self.telling: int | None = None
        self.size = 0
        self._steps: list[bytes] = []
        self._arrangements: list[Arrangement] = []
        self._choices: list[bytes] = []
        self._choices_before: list[int] = []
        """How many steps there were when the choice of the same place came."""
        self._before: tuple[int, int, int, int | None, int, TurnFinished | None] | None = None
        """What there was before it went on; None once what came is part of the answer."""

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: Step, arrangement: Arrangement) -> None:
        """Keep a step, and which panels are there with it."""
        if len(step.token_ids) > 1:
            self.telling = len(self._steps)
        self.remembered += step.origins.count(EARLIER)
        before = self._arrangements[-1] if self._arrangements else None
        self._arrangements.append(before if before == arrangement else arrangement)  # equal ones share their memory
        self._steps.append(_encode(step))
        self.size += len(self._steps[-1])

    def add_choice(self, choice: PolicyChoice) -> None:
        """Keep what the policy chose for the steps to come."""
        self._choices_before.append(len(self._steps))
        self._choices.append(_encode(choice))
        self.size += len(self._choices[-1])

    def go_on(self) -> bool:
        """Have more follow. What came when it went on before goes, unless that was settled; return whether any did."""
        steps = len(self._steps)
        if self._before is None:
            self._before = steps, len(self._choices), self.remembered, self.telling, self.size, self.finished
        kept, choices, self.remembered, self.telling, self.size, self.finished = self._before
        del self._steps[kept:], self._arrangements[kept:]
        del self._choices[choices:], self._choices_before[choices:]
        return len(self._steps) < steps

    def settle(self) -> None:
        """Have what came since it went on be part of the answer."""
        self._before = None

    def step(self, place: int) -> Step:
        """The step at a place, from 0."""
        return _decode_step(self._steps[place])

    def arrangement(self, place: int) -> Arrangement:
        """Which panels were there with it."""
        return self._arrangements[place]

    def choice(self, place: int | None = None) -> PolicyChoice | None:
        """What the policy had chosen when the step at a place came; without a place, what it chose last."""
        end = len(self._choices) if place is None else bisect_right(self._choices_before, place)
        return _decode_choice(self._choices[end - 1]) if end else None


class KeptAnswers:
    """The answers on the screen by their turns, oldest first. Where they take too many bytes, the oldest go."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._answers: dict[int, AnswerSteps] = {}
        self._blocks: dict[int, int] = {}
        self._most_bytes = most_bytes

    @property
    def latest(self) -> int | None:
        """The turn of the latest answer that has steps."""
        return next((turn for turn in reversed(self._answers) if len(self._answers[turn])), None)

    def get(self, turn: int) -> AnswerSteps | None:
        """The steps of an answer; None where they are not kept."""
        return self._answers.get(turn)

    def begin(self, turn: int, answer: AnswerSteps, block: int) -> None:
        """Keep an answer that begins with this block of the conversation."""
        self._answers.pop(turn, None)
        size = sum(kept.size for kept in self._answers.values())
        while size > self._most_bytes:
            size -= self._answers.pop(next(iter(self._answers))).size
        self._answers[turn], self._blocks[turn] = answer, block

    def keep(self, blocks: int) -> None:
        """Forget the answers behind the first blocks of the conversation."""
        self._blocks = {turn: block for turn, block in self._blocks.items() if block < blocks}
        self._answers = {turn: answer for turn, answer in self._answers.items() if turn in self._blocks}
