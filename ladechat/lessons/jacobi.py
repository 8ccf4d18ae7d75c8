"""Scene 2: Jacobi decoding, guesses without a memory."""

from ladechat.lessons.scene import LookCard, Run, Say, Scene, Task, at_step, brought, next_pass, quoted, set_to
from ladechat.widgets.formatting import counted

BEGINNING = (
    "Guess W tokens and put them into the pass. The model says what it would write after each: the next guesses. From "
    "the left, as long as a guess is what the model says, it is accepted."
)
TASK = "Do more guesses help? Move W to 12 or more, ask again."
END = (
    "Jacobi decoding often guesses the right words at the wrong place, and forgets them. Lookahead decoding keeps them."
)

LEAST_PASSES, LONG_WAIT = 5, 20
"""Passes of the answer before a wrong guess is looked at, and after which any will do."""


def _first_block(run: Run) -> str:
    step = run.last
    if step.window is None:
        return brought(run)
    return (
        "Row −1 went in: the last token, then guesses. Row 'new' is what the model said after each token. The first, "
        f"{quoted(step.window.fresh[0])}, follows the real text, so it is right; the others follow guesses."
    )


def refused(run: Run) -> bool:
    """Return whether the first guess of the block was wrong."""
    window = run.last.window
    return window is not None and len(window.row_ids[0]) > 1 and window.row_ids[0][1] != run.last.token_ids[0]


def misplaced(run: Run) -> int | None:
    """Return how far ahead the block held the accepted token where its first guess was wrong; None if it did not."""
    window, own = run.last.window, run.last.token_ids[0]
    if window is None or not refused(run) or own not in window.row_ids[0][2:]:
        return None
    return window.row_ids[0].index(own, 2)


def _refused_for_its_place(run: Run) -> bool:
    """Stop where the right word stood at the wrong place; if that does not come up soon, at any wrong guess."""
    return run.passes >= LEAST_PASSES and (misplaced(run) is not None or (run.passes >= LONG_WAIT and refused(run)))


def _another_text(run: Run) -> str:
    window, place = run.last.window, misplaced(run)
    if window is None:
        return brought(run)
    guess, own = quoted(window.rows[0][1]), quoted(run.last.pieces[0])
    if place is not None:
        there = f"which stood at +{place}: the right word at the wrong place."
        return f"At +1 stood {guess}, but the model says {own}, {there}"
    return (
        f"At +1 stood {guess}, but the model says {own}: wrong. Everything to its right continues a text with {guess}, "
        "so it is mostly wrong too."
    )


def _longer(before: Run, after: Run) -> str:
    passes = f"{counted(after.passes, 'pass')} instead of {before.passes}"
    return f"{passes}, up to {after.most_slots} slots instead of {before.most_slots}. More guesses are not better ones."


SCENE = Scene(
    name="jacobi",
    title="Jacobi decoding",
    question="What is Jacobi decoding?",
    decoder="jacobi",
    parameters={"window": 5},
    cards=(
        Say(BEGINNING),
        LookCard(at_step(3), _first_block),
        LookCard(_refused_for_its_place, _another_text),
        next_pass(3),
        Task(TASK, "window", set_to("window", "W", 12, 64), _longer),
        Say(END),
    ),
    explains=("window", "pool"),
    asks=("How does Jacobi decoding work?", "Why does the Jacobi iteration converge?"),
)
