"""The state of one scene: its current card, the engine's events so far, and what the engine should do next.

It knows neither screen nor engine: the screen asks what the lesson needs, and passes on the engine's events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ladechat.lessons.scene import Card, LookCard, Predict, Recall, Run, Say, Scene, Task
from ladechat.protocol import (
    Asked,
    Event,
    Failed,
    PassCosts,
    Settings,
    SettingsApplied,
    Step,
    TurnFinished,
    TurnStarted,
)

MISSED = "This did not come up in this answer: it depends on settings and machine. The rest does not need it."
PASSED_ALREADY = "You did this before. To do it again, move the slider, then press Enter."


class Phase(Enum):
    """The state of a card."""

    WAITING = auto()
    """It waits for the reader: a prediction, or a slider."""

    RUNNING = auto()
    """The engine takes steps."""

    EXPLAINED = auto()


@dataclass
class Page:
    """A card that was reached.

    Attributes:
        card: the card's content.
        phase: see `Phase`.
        text: the text shown; a question or task while it waits or runs.
        mark: the number of events when its text was complete.
        choice: the reader's prediction.
        outcome: the choice that came true.
        diagonal, slot: the diagonal and the slot that the text is about, see `LookCard`.
    """

    card: Card
    phase: Phase
    text: str = ""
    mark: int = 0
    choice: int | None = None
    outcome: int | None = None
    diagonal: int | None = None
    slot: int | None = None

    @property
    def right(self) -> bool:
        return self.choice is not None and self.choice == self.outcome


class Lesson:
    """A scene in progress, from its first card on.

    Args:
        reached: the card to advance to automatically, if the reader has been there before.
        choices: the reader's earlier predictions.

    Attributes:
        events: all events of this scene; the screen depends on nothing else.
        runs: the scene's answers.
        settings: the active settings, as far as they are known.
        hurried: whether the steps under way are taken at full speed.
    """

    def __init__(self, scene: Scene, reached: int = 0, choices: Sequence[int] = ()) -> None:
        self.scene = scene
        self.events: list[Event] = []
        self.runs: list[Run] = []
        self.settings = Settings()
        self.hurried = False
        self._pages: list[Page] = []
        self._at = 0
        self._goal = min(reached, len(scene.cards) - 1)
        self._choices = list(choices)
        self._under_way = False
        self._to_ask = False
        self._open()

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def page(self) -> Page:
        """The page that is shown."""
        return self._pages[self._at]

    @property
    def place(self) -> int:
        """The index of the card that is shown, from 0."""
        return self._at

    @property
    def reached(self) -> int:
        """The index of the last card that was reached, from 0."""
        return len(self._pages) - 1

    @property
    def looking_back(self) -> bool:
        return self._at < self.reached

    @property
    def shown_events(self) -> list[Event]:
        """The events that the screen of this page shows."""
        return self.events[: self.page.mark] if self.looking_back else self.events

    @property
    def untimed(self) -> int | None:
        """How many passes at the beginning of the answer on the screen are left out of its times; None: all of them."""
        asked = sum(isinstance(event, Asked) for event in self.shown_events)
        return self.runs[asked - 1].untimed if asked else None

    @property
    def missing(self) -> str:
        """What a task still needs before the question is asked again; "" if nothing, or if this is no task."""
        card = self.page.card
        return card.missing(self.settings) if isinstance(card, Task) else ""

    @property
    def holds_settings(self) -> bool:
        """Whether new settings have to wait: an answer that a task compares keeps those that it began with."""
        return isinstance(self._pages[-1].card, Task) and bool(self.runs) and not self.runs[-1].ended

    @property
    def at_last_card(self) -> bool:
        return self._at == len(self.scene.cards) - 1 and self.page.phase is Phase.EXPLAINED

    @property
    def predictions(self) -> list[Page]:
        """The pages with a prediction whose outcome is known."""
        return [page for page in self._pages if page.choice is not None and page.outcome is not None]

    @property
    def choices(self) -> list[int]:
        """The reader's predictions, in order."""
        return [page.choice for page in self._pages if page.choice is not None]

    # --- what the engine should do ------------------------------------------------------------------------------------

    @property
    def wants_question(self) -> bool:
        """Whether the question should be asked now."""
        return self._to_ask

    @property
    def wants_step(self) -> bool:
        """Whether a step should be taken now. Never while the reader looks back."""
        return not self.looking_back and self.page.phase is Phase.RUNNING and not self._to_the_end and self._may_go_on

    @property
    def wants_rest(self) -> bool:
        """Whether the rest of the answer should come now, at full speed, so that its times count."""
        return not self.looking_back and self._to_the_end and self._may_go_on

    @property
    def _may_go_on(self) -> bool:
        if self._to_ask or not self.runs:
            return False
        run = self.runs[-1]
        return run.settings is not None and not run.ended and run.paced is None and not self._under_way

    @property
    def _to_the_end(self) -> bool:
        """Whether the last card, or an earlier one, needs a whole answer."""
        page = self._pages[-1]
        predicted = isinstance(page.card, Predict) and page.card.whole and page.phase is Phase.RUNNING
        return predicted or any(isinstance(page.card, Task) for page in self._pages)

    def rest_asked_for(self) -> None:
        """Note that the rest of the answer was requested."""
        self.runs[-1].paced = self.runs[-1].passes

    def step_asked_for(self) -> None:
        """Note that a step was requested; the next one waits until it has come."""
        self._under_way = True

    # --- what the reader does -----------------------------------------------------------------------------------------

    @property
    def enter_acts(self) -> bool:
        """Whether Enter does something: shows the next card, hurries, or asks again."""
        waits, card = self.page.phase is Phase.WAITING, self.page.card
        acts = isinstance(card, Recall) or (isinstance(card, Task) and not self.missing)
        return self.looking_back or not waits or acts

    def go_on(self) -> None:
        """Go to the next card, or continue with this one."""
        page = self.page
        if page.phase is Phase.WAITING and isinstance(page.card, Recall):
            page.phase, page.text = Phase.EXPLAINED, page.card.revealed
        elif self.looking_back:
            self._at += 1
        elif page.phase is Phase.RUNNING:
            self.hurried = True
        elif page.phase is Phase.EXPLAINED and not self.at_last_card:
            self._open()
        elif page.phase is Phase.WAITING and isinstance(page.card, Task) and not self.missing:
            page.phase = Phase.RUNNING
            self._to_ask = True

    @property
    def can_skip(self) -> bool:
        """Whether the shown card is a question whose answer can be left out."""
        return not self.looking_back and isinstance(self.page.card, Recall) and self.page.phase is Phase.WAITING

    def back(self) -> None:
        """Go to the card before."""
        self._at = max(0, self._at - 1)

    def choose(self, choice: int) -> None:
        """Set the reader's prediction."""
        page = self.page
        if isinstance(page.card, Predict) and page.phase is Phase.WAITING and choice < len(page.card.choices):
            page.choice, page.phase = choice, Phase.RUNNING

    def skip(self) -> bool:
        """Skip the answer to a question, or hurry a prediction whose outcome is still open, and go there; return False
        if there is neither.
        """
        page = self._pages[-1]
        if self.can_skip:
            self._open()
            return True
        if page.choice is None or page.phase is not Phase.RUNNING:
            return False
        self._at, self.hurried = self.reached, True
        return True

    # --- the engine's events ------------------------------------------------------------------------------------------

    def take(self, event: Event) -> bool:
        """Process an event; return False if it belongs to no answer of this scene."""
        run = self.runs[-1] if self.runs else None
        match event:
            case Asked():
                self.runs.append(Run(event.turn))
                self._to_ask = self._under_way = False
            case TurnStarted() | PassCosts() | Step() | TurnFinished() if run is None or event.turn != run.turn:
                return False
            case PassCosts() if run is not None:
                run.costs = event.costs
            case TurnStarted() if run is not None:
                run.settings = self.settings = event.settings
            case Step() if run is not None:
                run.steps.append(event)
                self._under_way = False
            case TurnFinished() if run is not None:
                run.finished = event
            case Failed() if run is not None and event.fails(run.turn):
                run.broken = True
            case SettingsApplied():
                self._take_settings(event.settings)
        self.events.append(event)
        self._look()
        return True

    def _take_settings(self, settings: Settings) -> None:
        """Note new settings. If a task was done with others, it can be tried again."""
        page = self._pages[-1]
        if isinstance(page.card, Task) and page.phase is Phase.EXPLAINED and settings != self.settings:
            page.phase, page.text = Phase.WAITING, page.card.text
        self.settings = settings

    # --- cards --------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Open the next card."""
        card = self.scene.cards[len(self._pages)]
        self.hurried = False
        match card:
            case Say():
                page = Page(card, Phase.EXPLAINED, card.text)
            case LookCard():
                page = Page(card, Phase.RUNNING)
                self._to_ask = not self.runs
            case Predict() | Recall():
                page = Page(card, Phase.WAITING, card.question)
            case Task():
                page = Page(card, Phase.WAITING, card.text)
        page.mark = len(self.events)
        self._pages.append(page)
        self._at = self.reached
        self._return_to_goal()
        self._look()

    def _return_to_goal(self) -> None:
        """Skip cards up to the one that the reader had reached before."""
        page, before_goal = self._pages[-1], self.reached < self._goal
        if isinstance(page.card, Predict) and self._choices:  # at the goal too: its outcome is known to the reader
            self.choose(self._choices.pop(0))
            self.hurried = True
        elif isinstance(page.card, Predict):
            self._goal = self.reached
        elif isinstance(page.card, Task) and before_goal:
            page.phase, page.text = Phase.EXPLAINED, PASSED_ALREADY
        elif isinstance(page.card, Recall) and before_goal:
            page.phase, page.text = Phase.EXPLAINED, page.card.revealed
        if before_goal:
            self.hurried = True
            if page.phase is Phase.EXPLAINED:
                self._open()

    def _look(self) -> None:
        """Complete the current card if what it waits for has happened."""
        page = self._pages[-1]
        run = self.runs[-1] if self.runs else None
        card = page.card
        if run is None or self._to_ask or page.phase is Phase.EXPLAINED:
            return
        if isinstance(card, Predict) and run.ended and page.phase is Phase.WAITING:
            self._tell(page, MISSED)
        elif page.phase is not Phase.RUNNING:
            return
        elif isinstance(card, LookCard) and run.steps and card.until(run):
            page.diagonal = card.diagonal and card.diagonal(run)
            page.slot = card.slot and card.slot(run)
            self._tell(page, card.text(run))
        elif isinstance(card, Predict) and run.steps and (run.ended if card.whole else self._stepped(page)):
            page.outcome = card.outcome(run)
            self._tell(page, card.text(run))
        elif isinstance(card, Task) and run.finished is not None and run.steps and len(self.runs) > 1:
            self._tell(page, card.result(self.runs[-2], run))
        elif run.ended:
            self._tell(page, MISSED)

    def _stepped(self, page: Page) -> bool:
        """Return whether a step has come since the prediction was requested."""
        return any(isinstance(event, Step) for event in self.events[page.mark :])

    def _tell(self, page: Page, text: str) -> None:
        page.text, page.phase, page.mark = text, Phase.EXPLAINED, len(self.events)
        self.hurried = False
        if self.reached < self._goal:
            self._open()
