"""The parts of a scene: a question to a decoder, and cards about what the engine then really does.

No card states what a step brings before it has come: conditions test the steps of an answer, and texts are made from
them. If a condition never holds, only its card is lost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from ladechat.protocol import PassCost, Settings, Step, TurnFinished, Value
from ladechat.widgets.cells import visible
from ladechat.widgets.formatting import counted, division
from ladechat.widgets.steps.pass_times import PassTimes, Times

WINDOW, POOL, SPEED, LENS, MASK, COST, METHODS = "window", "pool", "speed", "lens", "mask", "cost", "methods"
"""The panels that a card can be about, by id."""


ONE_BY_ONE = "One pass at a time: no times."
BUSY = "Times disagree, as on a busy machine: none shown."
"""Said where plain passes took longer than wide ones, or wide ones far shorter than when they were timed alone."""


@dataclass
class Run:
    """One answer, as far as it has come.

    Attributes:
        turn: the number of its turn.
        settings: the settings that it began with; None before it has begun.
        steps: the steps so far.
        paced: the number of steps that were taken one by one; None while they are. Only the times of later ones count:
            a processor that idles between two passes is slower.
        costs: what passes cost on this machine, as far as that is known.
        finished: its last event, once that has come.
        broken: whether it has failed without an end.
    """

    turn: int
    settings: Settings | None = None
    steps: list[Step] = field(default_factory=list)
    paced: int | None = None
    costs: Sequence[PassCost] = ()
    finished: TurnFinished | None = None
    broken: bool = False

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def ended(self) -> bool:
        return self.broken or self.finished is not None

    @property
    def passes(self) -> int:
        return len(self.steps)

    @property
    def token_ids(self) -> list[int]:
        return [token for step in self.steps for token in step.token_ids]

    @property
    def tokens_per_pass(self) -> float:
        return len(self.token_ids) / max(self.passes, 1)

    @property
    def single(self) -> int:
        """The number of passes that brought only one token."""
        return sum(len(step.token_ids) == 1 for step in self.steps)

    @property
    def slots_per_pass(self) -> float:
        return sum(step.timing.slots for step in self.steps) / max(self.passes, 1)

    @property
    def most_slots(self) -> int:
        return max((step.timing.slots for step in self.steps), default=0)

    @property
    def untimed(self) -> int | None:
        """How many passes at its beginning are left out of its times; None: all so far."""
        return None if self.paced is None else self.paced + 1  # the first one at full speed came after a rest

    @property
    def times(self) -> Times | None:
        """The mean times of its passes at full speed and of plain ones; None if they are not known."""
        if self.untimed is None:
            return None
        return reduce(PassTimes.plus, self.steps[self.untimed :], PassTimes()).means(self.tokens_per_pass, self.costs)


@dataclass(frozen=True)
class Say:
    """A card with a text."""

    text: str
    panel: str = WINDOW


@dataclass(frozen=True)
class LookCard:
    """A card that runs the answer until something has happened, then explains it.

    Attributes:
        until: returns whether to stop at the last step.
        text: returns the explanation.
        diagonal: returns the diagonal of the window that the text is about, by its column; None if it is about none.
        slot: returns the slot whose sight the text is about; the reader can go on to the next ones.
    """

    until: Callable[[Run], bool]
    text: Callable[[Run], str]
    panel: str = WINDOW
    diagonal: Callable[[Run], int | None] | None = None
    slot: Callable[[Run], int | None] | None = None


@dataclass(frozen=True)
class Predict:
    """A card that asks the reader to predict what the engine does next.

    Attributes:
        question: the question to the reader.
        choices: two to four answers.
        outcome: returns the index of the choice that came true.
        text: returns what happened, and why.
        whole: whether it is about the rest of the answer, rather than about the next step.
    """

    question: str
    choices: tuple[str, ...]
    outcome: Callable[[Run], int]
    text: Callable[[Run], str]
    panel: str = WINDOW
    whole: bool = False


@dataclass(frozen=True)
class Task:
    """A card that asks the reader to move a slider and ask the question once more. The answer before it ends first.

    Attributes:
        text: what to do.
        slider: the setting of that slider.
        missing: returns what to do before the question can be asked; "" if nothing.
        result: returns the result, from the answer before and the new one.
    """

    text: str
    slider: str
    missing: Callable[[Settings], str]
    result: Callable[[Run, Run], str]
    panel: str = WINDOW


@dataclass(frozen=True)
class Recall:
    """A card with a question about the method, whose answer is hidden until the reader asks for it."""

    question: str
    answer: str
    panel: str = WINDOW

    @property
    def revealed(self) -> str:
        return f"{self.question}\n{self.answer}"


Card = Say | LookCard | Predict | Task | Recall


@dataclass(frozen=True)
class Scene:
    """A scene: an answer of the model, and cards about it.

    Attributes:
        name: one word, which identifies it in the progress file.
        title: the title shown.
        question: the question to the model.
        decoder: the name of the decoder.
        parameters: the parameters of the decoder.
        cards: the cards, in order.
        explains: what is explained first in this scene, by id: the panels and sliders that are new, unless cards do.
        asks: two questions on the subject that the bundled model answers, for the reader to go on with in the chat.
        minutes: the time that a reader needs.
    """

    name: str
    title: str
    question: str
    decoder: str
    parameters: Mapping[str, Value]
    cards: tuple[Card, ...]
    explains: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    minutes: int = 1

    @property
    def predictions(self) -> int:
        return sum(isinstance(card, Predict) for card in self.cards)


# --- conditions and texts of several scenes ---------------------------------------------------------------------------


def at_step(count: int) -> Callable[[Run], bool]:
    """Return a condition that stops after `count` steps."""
    return lambda run: run.passes >= count


def at_once(_run: Run) -> bool:
    """Stop where the answer is: the card is about the pass that the card before it has explained."""
    return True


def quoted(*pieces: str) -> str:
    """Return tokens as panels show them: ``‹·the› ‹·pool›``."""
    return " ".join(f"‹{visible(piece)}›" for piece in pieces)


def accepted(step: Step) -> list[str]:
    """Return the accepted drafts of a step."""
    return [piece for piece, origin in zip(step.pieces, step.origins, strict=True) if origin != "model"]


def brought(run: Run) -> str:
    """Return a sentence about the tokens of the last step, and their source."""
    step = run.last
    drafts = accepted(step)
    if not drafts:
        return f"It brought {quoted(*step.pieces)}: no draft accepted."
    return f"It brought {quoted(*step.pieces)}: {counted(len(drafts), 'draft')} accepted."


def next_pass(most: int, panel: str = WINDOW) -> Predict:
    """Return a card that asks for the number of the next pass's tokens: one, two, … `most` or more."""

    def outcome(run: Run) -> int:
        return min(len(run.last.token_ids), most) - 1

    def text(run: Run) -> str:
        return f"{brought(run)} Nobody can know: {run.single} of {counted(run.passes, 'pass')} brought one token."

    *fewer, last = ("one", "two", "three", "four")[:most]
    question = "How many tokens will the next pass bring?"
    return Predict(question, (*fewer, f"{last} or more"), outcome, text, panel)


def measured(run: Run) -> str:
    """Return a sentence about the speed of this answer on this machine, or why it is not known."""
    times = run.times
    if times is None:
        return ONE_BY_ONE
    if times.speedup is None:
        return BUSY
    tokens, cost, speed = division(times.tokens_per_pass, times.speedup)
    return f"{tokens} ÷ {cost} (the cost of a pass here, in plain ones) ≈ {speed}× plain decoding."


def set_to(name: str, label: str, least: int, most: int) -> Callable[[Settings], str]:
    """Return a function that says what is missing until a parameter of the decoder is in this range."""

    def missing(settings: Settings) -> str:
        value = int(settings.parameters.get(name, 0))
        if least <= value <= most:
            return ""
        goal = f"{least}" if least == most else f"{least} or more" if value < least else f"{most} or less"
        return f"{label} is {value} now; move it to {goal}."

    return missing


def moved(parameters: Mapping[str, Value]) -> Callable[[Settings], str]:
    """Return a function that says what is missing until one of W, N and G differs from the scene's."""

    def missing(settings: Settings) -> str:
        values = {name: settings.parameters.get(name) for name in parameters}
        return "Move W, N or G first." if values == parameters else ""

    return missing


def compared(before: Run, after: Run) -> str:
    """Return what differs between two answers to the same question: passes, and the mean of their slots."""
    return (
        f"{counted(after.passes, 'pass')} instead of {before.passes}, {after.slots_per_pass:.0f} slots on average "
        f"instead of {before.slots_per_pass:.0f}"
    )
