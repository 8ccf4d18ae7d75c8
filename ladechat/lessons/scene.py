"""The parts of a scene: a question to a decoder, and cards about what the engine then really does.

No card states what a step brings before it has come: conditions test the steps of an answer, and texts are made from
them. If a condition never holds, only its card is lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ladechat.protocol import Settings, Step, TurnFinished, Value
from ladechat.widgets.cells import visible
from ladechat.widgets.formatting import counted

WINDOW, POOL, SPEED, LENS, COST, METHODS = "window", "pool", "speed", "lens", "cost", "methods"
"""The panels that a card can be about, by id."""


@dataclass
class Run:
    """One answer, as far as it has come.

    Attributes:
        turn: the number of its turn.
        settings: the settings that it began with; None before it has begun.
        steps: the steps so far.
        finished: its last event, once that has come.
        broken: whether it has failed without an end.
    """

    turn: int
    settings: Settings | None = None
    steps: list[Step] = field(default_factory=list)
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
    def single(self) -> int:
        """The number of passes that brought only one token."""
        return sum(len(step.token_ids) == 1 for step in self.steps)

    @property
    def slots_per_pass(self) -> float:
        return sum(step.timing.slots for step in self.steps) / max(self.passes, 1)

    @property
    def ms_per_pass(self) -> float:
        return sum(step.timing.step_ms for step in self.steps) / max(self.passes, 1)

    @property
    def plain_ms_per_pass(self) -> float | None:
        """The mean time of a plain pass, as the engine measured it; None if it has not."""
        measured = [step.timing.plain_ms for step in self.steps if step.timing.plain_ms]
        return sum(measured) / len(measured) if measured else None

    @property
    def sum(self) -> str:
        """The totals in words: ``64 tokens in 42 passes: 22 saved``."""
        tokens = len(self.token_ids)
        saved = tokens - self.passes
        return f"{counted(tokens, 'token')} in {counted(self.passes, 'pass')}: {saved if saved else 'none'} saved"


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
    """

    until: Callable[[Run], bool]
    text: Callable[[Run], str]
    panel: str = WINDOW


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
    """A card that asks the reader to move a slider and ask the question once more.

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


Card = Say | LookCard | Predict | Task


@dataclass(frozen=True)
class Scene:
    """A scene of about a minute.

    Attributes:
        name: one word, which identifies it in the progress file.
        title: the title shown.
        question: the question to the model.
        decoder: the name of the decoder.
        parameters: the parameters of the decoder.
        cards: the cards, in order.
    """

    name: str
    title: str
    question: str
    decoder: str
    parameters: Mapping[str, Value]
    cards: tuple[Card, ...]

    @property
    def predictions(self) -> int:
        return sum(isinstance(card, Predict) for card in self.cards)


# --- conditions and texts of several scenes ---------------------------------------------------------------------------


def at_step(count: int) -> Callable[[Run], bool]:
    """Return a condition that stops after `count` steps."""
    return lambda run: run.passes >= count


def at_end(run: Run) -> bool:
    """Return whether the answer has ended."""
    return run.ended


def quoted(*pieces: str) -> str:
    """Return tokens as panels show them: ``‹·the› ‹·pool›``."""
    return " ".join(f"‹{visible(piece)}›" for piece in pieces)


def accepted(step: Step) -> list[str]:
    """Return the accepted drafts of a step."""
    return [piece for piece, origin in zip(step.pieces, step.origins, strict=True) if origin != "model"]


def by_tokens(most: int) -> Callable[[Run], int]:
    """Return a function that returns the choice for the last step's tokens: one, two, … `most` or more."""
    return lambda run: min(len(run.last.token_ids), most) - 1


def brought(run: Run) -> str:
    """Return a sentence about the tokens of the last step, and their source."""
    step = run.last
    drafts = accepted(step)
    if not drafts:
        return f"It brought {quoted(*step.pieces)} alone: no draft was accepted."
    sure = f"{counted(len(drafts), 'draft')} accepted, and the model's own token"
    return f"It brought {quoted(*step.pieces)}: {sure}."


def share_of_single(run: Run) -> str:
    """Return a sentence about how many passes of this answer brought only one token."""
    return f"Nobody can know: {run.single} of {counted(run.passes, 'pass')} so far brought one token."


def measured(run: Run) -> str:
    """Return a sentence about the cost of a pass of this answer on this machine, compared with a plain one."""
    plain = run.plain_ms_per_pass
    beside = f", where a plain pass takes {plain:.1f} ms here" if plain is not None else ""
    return f"A pass had {run.slots_per_pass:.0f} slots on average and took {run.ms_per_pass:.1f} ms{beside}."


def set_to(name: str, label: str, least: int, most: int) -> Callable[[Settings], str]:
    """Return a function that says what is missing until a parameter of the decoder is in this range."""

    def missing(settings: Settings) -> str:
        value = int(settings.parameters.get(name, 0))
        if least <= value <= most:
            return ""
        goal = f"{least}" if least == most else f"{least} or more" if value < least else f"{most} or less"
        return f"{label} is {value} now; move it to {goal}."

    return missing


def compared(before: Run, after: Run) -> str:
    """Return a sentence that compares the passes of two answers to the same question."""
    return (
        f"{counted(after.passes, 'pass')} for {counted(len(after.token_ids), 'token')}; before it took {before.passes}."
    )
