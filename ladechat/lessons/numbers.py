"""Scene 6: what W, N and G do, and what they cost."""

from ladechat.lessons.scene import (
    SPEED,
    Look,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    at_step,
    compared,
    counted,
)
from ladechat.protocol import Settings

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
    "measures that, and puts as many drafts into a pass as pay. In the chat it is the default; moving W, N or G takes "
    "over from it."
)


def _slots(run: Run) -> str:
    step = run.last
    if step.window is None or step.draft is None:
        return f"This pass had {counted(step.timing.slots, 'slot')}."
    places = sum(map(len, step.window.rows)) - 1
    window = step.draft.sources.count("window")
    return (
        f"This pass had {counted(step.timing.slots, 'slot')}: one for the last token, the others for drafts. The "
        f"window of {len(step.window.rows)} rows has {places} places besides the last token, and guesses of the pool "
        f"come on top; drafts that begin alike share slots. {window} of the drafts are the window's, or came from it."
    )


def _rate(run: Run) -> float:
    return len(run.token_ids) / max(run.passes, 1)


def _whole(run: Run) -> str:
    return (
        f"{_rate(run):.2f} tokens a pass, or {run.sum}. It varies with the text: what repeats, such as code and lists, "
        "is guessed better."
    )


def _moved(settings: Settings) -> str:
    values = {name: settings.parameters.get(name) for name in PARAMETERS}
    return "" if values != PARAMETERS else "W, N and G are what they were; move one of them."


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
        Look(at_step(8), _slots),
        Predict(
            QUESTION,
            ("less than 1.3", "from 1.3 to 1.7", "more than 1.7"),
            lambda run: (_rate(run) >= 1.3) + (_rate(run) > 1.7),
            _whole,
            SPEED,
            whole=True,
        ),
        Task(TASK, "window", _moved, _judged, SPEED),
        Say(END, SPEED),
    ),
)
