"""Scene 6: the effect of W, N and G, and their cost."""

from ladechat.lessons.scene import (
    COST,
    SPEED,
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    at_step,
    compared,
    measured,
)
from ladechat.protocol import Settings
from ladechat.widgets.formatting import counted
from ladechat.widgets.steps.draft_tree import slots_of

PARAMETERS = {"window": 5, "ngram": 3, "guesses": 5}
BEGINNING = (
    "Three numbers shape a pass. W: how many positions ahead the window works on. N: tokens in an n-gram; the window "
    "has N − 1 rows, and a guess brings up to N − 1 drafts. G: how many guesses of the pool a pass verifies. Larger "
    "means more slots a pass, and more chances."
)
QUESTION = "How many tokens a pass will the whole answer come to?"
TASK = "Now it is yours: find W, N and G with which the same answer takes fewer passes, and ask again."
END = (
    "Fewer passes, but larger ones: what is best depends on what a slot costs on your machine. The decoder 'auto' "
    "measures that, and puts as many drafts into a pass as pay. With any model but this one, the chat begins with it; "
    "moving W, N or G takes over from it."
)


def _slots(run: Run) -> str:
    step = run.last
    if step.window is None:
        return f"This pass had {counted(step.timing.slots, 'slot')}."
    places = sum(map(len, step.window.row_ids)) - 1
    window = sum(slot.row is not None for slot in slots_of(step))
    alike = "" if window == places else f" and takes {window}, since some begin alike and share a slot"
    return (
        f"This pass had {counted(step.timing.slots, 'slot')}. The last token takes 1. The window of "
        f"{counted(len(step.window.rows), 'row')} has {places} places besides it{alike}. Guesses of the pool took "
        f"{step.timing.slots - 1 - window} more; one that begins like the window shares its slots too."
    )


def _rate(run: Run) -> float:
    return len(run.token_ids) / max(run.passes, 1)


def _whole(run: Run) -> str:
    return (
        f"{_rate(run):.2f} tokens a pass, or {run.sum}. It varies with the text: what repeats, such as code and lists, "
        f"is guessed better. {measured(run)}"
    )


def _moved(settings: Settings) -> str:
    values = {name: settings.parameters.get(name) for name in PARAMETERS}
    return "" if values != PARAMETERS else "Move W, N or G first."


def _judged(before: Run, after: Run) -> str:
    better = (
        "Fewer: found." if after.passes < before.passes else "Not fewer: move on and try again, or leave it at that."
    )
    return (
        f"{better} {compared(before, after)} A pass had {after.slots_per_pass:.0f} slots and took "
        f"{after.ms_per_pass:.1f} ms; before, {before.slots_per_pass:.0f} slots and {before.ms_per_pass:.1f} ms."
    )


SCENE = Scene(
    name="numbers",
    title="W, N and G",
    question="How does lookahead decoding work?",
    decoder="lookahead",
    parameters=PARAMETERS,
    cards=(
        Say(BEGINNING, SPEED),
        LookCard(at_step(8), _slots, COST),
        Predict(
            QUESTION,
            ("less than 1.3", "from 1.3 to 1.7", "more than 1.7"),
            lambda run: (_rate(run) >= 1.3) + (_rate(run) > 1.7),
            _whole,
            SPEED,
            whole=True,
        ),
        Task(TASK, "window", _moved, _judged, SPEED),
        Say(END, COST),
    ),
)
