"""Scene 2: Jacobi decoding, guesses without a memory."""

from ladechat.lessons.scene import (
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    at_end,
    at_step,
    brought,
    by_tokens,
    compared,
    quoted,
    set_to,
    share_of_single,
)

BEGINNING = (
    "Guess W tokens at once, and put them into the pass behind the last token. The pass says what the model would "
    "write after each of them, and that is the next guess. This is Jacobi iteration. Guesses that are what the model "
    "says anyway, from the left on, are accepted: several tokens from one pass."
)
QUESTION = "The block goes into the next pass. How many tokens will that pass bring?"
TASK = "Would a longer block help? Move W to 12 or more, and ask again."
END = (
    "Jacobi decoding often guesses the right words, but at the wrong place, and then forgets them. Lookahead decoding "
    "does two things about that: it keeps several passes' guesses, the window, and it remembers what they form, the "
    "pool."
)


def _first_block(run: Run) -> str:
    step = run.last
    if step.window is None:
        return brought(run)
    return (
        "The row −1 went into this pass: the last token, at +0, and guesses. The row 'new' is what the model answered "
        f"after each of them, so it stands one place further right. Its first token, {quoted(step.window.fresh[0])}, "
        "was answered to text alone: it is the model's own, and right. The others were answered to guesses."
    )


def refused(run: Run) -> bool:
    """Return whether the first guess of the block was rejected."""
    window = run.last.window
    return window is not None and len(window.row_ids[0]) > 1 and window.row_ids[0][1] != run.last.token_ids[0]


def _another_text(run: Run) -> str:
    window = run.last.window
    if window is None:
        return brought(run)
    guess, own = window.rows[0][1], run.last.pieces[0]
    return (
        f"The guess at +1 was {quoted(guess)}, but the model says {quoted(own)}: refused. All that is answered right "
        f"of it continues a text with {quoted(guess)} in it, so it is seldom right. Where it is, as a word that comes "
        "later, Jacobi decoding has no memory to keep it in."
    )


def _next_pass(run: Run) -> str:
    return f"{brought(run)} {share_of_single(run)}"


def _whole(run: Run) -> str:
    return (
        f"{run.sum}. Few guesses come true at their very place, so a pass seldom brings more than the model's own "
        "token. Near its end an answer wants no more tokens, so the last blocks are shorter than W."
    )


def _longer(before: Run, after: Run) -> str:
    return (
        f"{compared(before, after)} A pass had {after.slots_per_pass:.0f} slots instead of "
        f"{before.slots_per_pass:.0f}. More guesses alone are not better guesses."
    )


SCENE = Scene(
    name="jacobi",
    title="Jacobi: guess all at once",
    question="What is Jacobi decoding?",
    decoder="jacobi",
    parameters={"window": 5},
    cards=(
        Say(BEGINNING),
        LookCard(at_step(3), _first_block),
        LookCard(lambda run: run.passes >= 5 and refused(run), _another_text),
        Predict(QUESTION, ("one", "two", "three or more"), by_tokens(3), _next_pass),
        LookCard(at_end, _whole),
        Task(TASK, "window", set_to("window", "W", 12, 64), _longer),
        Say(END),
    ),
)
