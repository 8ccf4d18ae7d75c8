"""Two recordings side by side: one answer of each, on one clock, as the lanes of a race."""

from dataclasses import dataclass

from ladechat import catalog
from ladechat.protocol import Ready, Step, TurnFinished, TurnStarted
from ladechat.session.race import Lane, passes_saved, seal
from ladechat.session.recording import SUFFIX
from ladechat.session.replay import Recording


class NothingToCompare(ValueError):
    """The reason why nothing can be shown side by side, in a sentence."""


@dataclass(frozen=True)
class Answer:
    """An answer in a recording."""

    turn: int
    question: str
    model: str
    lane: Lane


class Comparison:
    """The latest question that both recordings have answered; if there is none, the last answer of each.

    Args:
        one, other: the recordings.

    Attributes:
        lanes: one per recording.
        question: the common question; else both questions, with the names of the recordings.

    Raises:
        NothingToCompare: a recording has no answer.
    """

    def __init__(self, one: Recording, other: Recording) -> None:
        ones, others = _answers(one), _answers(other)
        asked = {answer.question for answer in ones} & {answer.question for answer in others}
        self._same_question = bool(asked)
        left, right = ([answer for answer in each if not asked or answer.question in asked] for each in (ones, others))
        first = left[-1]
        second = next((answer for answer in reversed(right) if answer.question == first.question), right[-1])
        self._same_model = first.model == second.model
        self.lanes = [first.lane, second.lane]
        named = [f"{_name(one)}: {first.question}", f"{_name(other)}: {second.question}"]
        self.question = first.question if asked else " · ".join(named)

    def conclusions(self) -> list[str]:
        """Return the closing lines. Times of two sessions are not compared: they may be from two machines."""
        if not self._same_question:
            compared = "The questions differ, so the answers are not compared."
        elif not self._same_model:
            compared = "Two models have answered, so their tokens are not compared."
        else:
            compared = seal(self.lanes)
        return [sentence for sentence in (compared, passes_saved(self.lanes)) if sentence]


def _answers(recording: Recording) -> list[Answer]:
    """Return the answers that have steps, in order, without those whose start was not recorded."""
    answers: list[Answer] = []
    latest: Answer | None = None
    labels = {name: info.label for name, info in catalog.DECODERS.items()}
    model = recording.header.model
    for event in recording.events:
        match event:
            case Ready():
                model = event.model
                labels |= {info.name: info.label for info in event.decoders}
            case TurnStarted() if event.goes_on:
                latest = next((answer for answer in reversed(answers) if answer.turn == event.turn), None)
            case TurnStarted():
                name = event.settings.decoder
                lane = Lane(name, f"{labels.get(name, name)} ({_name(recording)})", event.settings)
                latest = Answer(event.turn, event.question.strip(), model, lane)
                answers.append(latest)
            case Step() if latest is not None:
                latest.lane.steps.append(event)
            case TurnFinished() if latest is not None:
                latest.lane.finished = event
    answers = [answer for answer in answers if answer.lane.steps]
    if not answers:
        raise NothingToCompare(f"{recording.path} has no answer, so there is nothing to be shown beside the other.")
    return answers


def _name(recording: Recording) -> str:
    return recording.path.name.removesuffix(SUFFIX)
