"""What a scene is made of: a question to a decoder, and cards that talk about what the engine then really does.

No card says what a step brings before it has come: conditions look at the steps of an answer, and texts are made of
them. A condition that never holds costs nothing but its card.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ladechat.protocol import Settings, Step, TurnFinished, Value
from ladechat.widgets.cells import visible
from ladechat.widgets.formatting import counted

WINDOW, POOL, SPEED, LENS = "window", "pool", "speed", "lens"
"""The panels that a card can be about, by their ids."""


@dataclass
class Run:
    """One answer, as far as it has come.

    Attributes:
        turn: its number.
        settings: those that it began with; None before it has begun.
        steps: all that have come.
        finished: its end, once that has come.
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
        """How many passes have brought one token only."""
        return sum(len(step.token_ids) == 1 for step in self.steps)

    @property
    def slots_per_pass(self) -> float:
        return sum(step.timing.slots for step in self.steps) / max(self.passes, 1)

    @property
    def ms_per_pass(self) -> float:
        return sum(step.timing.step_ms for step in self.steps) / max(self.passes, 1)

    @property
    def plain_ms_per_pass(self) -> float | None:
        """What a plain pass took meanwhile, as the engine measured it; None where it has not."""
        measured = [step.timing.plain_ms for step in self.steps if step.timing.plain_ms]
        return sum(measured) / len(measured) if measured else None

    @property
    def sum(self) -> str:
        """``64 tokens in 42 passes: 22 saved``"""
        tokens = len(self.token_ids)
        saved = tokens - self.passes
        return f"{counted(tokens, 'token')} in {counted(self.passes, 'pass')}: {saved if saved else 'none'} saved"


@dataclass(frozen=True)
class Say:
    """Words."""

    text: str
    panel: str = WINDOW


@dataclass(frozen=True)
class Look:
    """Lets the answer run until something has happened, then says what.

    Attributes:
        until: whether the last step is the one to stop at.
        text: what is to be seen there.
    """

    until: Callable[[Run], bool]
    text: Callable[[Run], str]
    panel: str = WINDOW


@dataclass(frozen=True)
class Predict:
    """Has the reader predict what the engine does next.

    Attributes:
        question: what is asked.
        choices: two to four.
        outcome: which of them came true, by its place.
        text: what came, and why.
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
    """Has the reader move a slider and ask the question once more.

    Attributes:
        text: what to do.
        slider: the setting that the slider is of.
        missing: what is to be done before it makes sense to ask; "" where all is as it should be.
        result: what came of it, by the answer before and the new one.
    """

    text: str
    slider: str
    missing: Callable[[Settings], str]
    result: Callable[[Run, Run], str]
    panel: str = WINDOW


Card = Say | Look | Predict | Task


@dataclass(frozen=True)
class Scene:
    """About a minute.

    Attributes:
        name: one word, by which its place is remembered.
        title: as it is shown.
        question: what the model is asked.
        decoder: the name of the decoder, and
        parameters: what is set about it.
        cards: in their order.
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


# --- what several scenes look for, and say ----------------------------------------------------------------------------


def at_step(count: int) -> Callable[[Run], bool]:
    """Stop behind so many steps."""
    return lambda run: run.passes >= count


def at_end(run: Run) -> bool:
    """Stop at the end of the answer."""
    return run.ended


def quoted(*pieces: str) -> str:
    """Tokens as they are seen in the panels: ``‹·the› ‹·pool›``."""
    return " ".join(f"‹{visible(piece)}›" for piece in pieces)


def accepted(step: Step) -> list[str]:
    """The drafts that a step has accepted."""
    return [piece for piece, origin in zip(step.pieces, step.origins, strict=True) if origin != "model"]


def by_tokens(most: int) -> Callable[[Run], int]:
    """The choice for how many tokens the last step brought: one, two, and so on up to `most` or more."""
    return lambda run: min(len(run.last.token_ids), most) - 1


def brought(run: Run) -> str:
    """What the last step brought, and where from."""
    step = run.last
    drafts = accepted(step)
    if not drafts:
        return f"It brought {quoted(*step.pieces)} alone: no draft was accepted."
    sure = f"{counted(len(drafts), 'draft')} accepted, and the model's own token"
    return f"It brought {quoted(*step.pieces)}: {sure}."


def share_of_single(run: Run) -> str:
    """How often a pass of this answer has brought one token only, which nobody can foresee."""
    return f"Nobody can know: {run.single} of {counted(run.passes, 'pass')} so far brought one token."


def measured(run: Run) -> str:
    """What a pass of this answer cost on this machine, beside a plain one."""
    plain = run.plain_ms_per_pass
    beside = f", where a plain pass takes {plain:.1f} ms here" if plain is not None else ""
    return f"A pass had {run.slots_per_pass:.0f} slots on average and took {run.ms_per_pass:.1f} ms{beside}."


def set_to(name: str, label: str, least: int, most: int) -> Callable[[Settings], str]:
    """What is missing until a parameter of the decoder is in this range."""

    def missing(settings: Settings) -> str:
        value = int(settings.parameters.get(name, 0))
        if least <= value <= most:
            return ""
        goal = f"{least}" if least == most else f"{least} or more" if value < least else f"{most} or less"
        return f"{label} is {value} now; move it to {goal}."

    return missing


def compared(before: Run, after: Run) -> str:
    """Passes of two answers to the same question."""
    return (
        f"{counted(after.passes, 'pass')} for {counted(len(after.token_ids), 'token')}; before it took {before.passes}."
    )
