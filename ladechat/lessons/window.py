"""Scene 3: the Jacobi window, whose columns are n-grams."""

from ladechat.lessons.scene import (
    WINDOW,
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    accepted,
    at_end,
    at_step,
    compared,
    quoted,
    set_to,
)
from ladechat.widgets.formatting import counted

BEGINNING = (
    "Lookahead decoding keeps the answers of the last N − 1 passes for W positions ahead: the Jacobi window, the "
    "oldest row on top. It goes into each pass, as the lookahead branch, and the pass writes a fresh row below. Watch "
    "the window fill with what the model says."
)
QUESTION = "This pass wrote the row 'new'. Where will that row stand in the next pass?"
TASK = "How much does the window bring? Move W to 1, one position only, and ask again."
END = (
    "The window makes n-grams out of guesses, pass by pass, at W positions at once. Each is a short piece of text "
    "that the model itself has written, if only after guesses. Now for the place where they are kept."
)


def _column(run: Run) -> str:
    step = run.last
    if step.window is None or step.pool is None:
        return "The window had no room in this pass."
    place = 1 if len(step.window.fresh) > 1 else 0
    ngram = [*(row[place] for row in step.window.rows), step.window.fresh[place]]
    return (
        f"Follow a column of the window down to 'new', one position on in each row: ↘, or ↓ in a narrow panel. One is "
        f"{quoted(*ngram)}. Each token was written by a pass that saw those above it, so a column is an n-gram of N = "
        f"{len(ngram)} tokens. All of them, and their newer ends, enter the pool: {step.pool.added} were new to it."
    )


def moved_up(run: Run) -> int:
    """Return the choice for where the last pass's fresh row is now: 0 on top, 1 lowest of the old rows, 2 nowhere."""
    before, now = run.steps[-2].window if run.passes > 1 else None, run.last.window
    if before is None or now is None or not now.row_ids:
        return 2
    return 1 if now.row_ids[-1] == before.fresh_ids else 0 if now.row_ids[0] == before.fresh_ids else 2


def _where_it_went(run: Run) -> str:
    if moved_up(run) != 1:
        return "The window was set up anew in this pass, so the row is not there."
    return (
        "It is the row −1 now, the newest of the old ones. The oldest row left at the top, and the window moved on by "
        "one position. So each column grows by one token a pass."
    )


def _from_window(run: Run) -> bool:
    return WINDOW in run.last.origins


def _came_true(run: Run) -> str:
    drafts = [piece for piece, origin in zip(run.last.pieces, run.last.origins, strict=True) if origin == WINDOW]
    return (
        f"{quoted(*drafts)}, guessed by the window, came true: this pass brought {quoted(*run.last.pieces)}, "
        f"{counted(len(accepted(run.last)), 'draft')} and the model's own token, all in one colour in the text."
    )


def _whole(run: Run) -> str:
    return (
        f"{run.sum}. Wherever several words have one colour, they came from one pass. {run.single} of the passes "
        "brought one token, as in plain decoding."
    )


def _narrower(before: Run, after: Run) -> str:
    slots = f"A pass had {after.slots_per_pass:.0f} slots instead of {before.slots_per_pass:.0f}"
    return f"{compared(before, after)} {slots}: cheaper, and with fewer n-grams to find something in."


SCENE = Scene(
    name="window",
    title="The window",
    question="How does lookahead decoding work?",
    decoder="lookahead",
    parameters={"window": 5, "ngram": 4, "guesses": 5},
    cards=(
        Say(BEGINNING),
        LookCard(at_step(6), _column),
        Predict(QUESTION, ("on top", "as row −1, just above the fresh one", "nowhere"), moved_up, _where_it_went),
        LookCard(_from_window, _came_true),
        LookCard(at_end, _whole),
        Task(TASK, "window", set_to("window", "W", 1, 1), _narrower),
        Say(END),
    ),
)
