"""Scene 2: Jacobi decoding, guesses without a memory."""

from ladechat.lessons.scene import (
    Look,
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
        "The row −1 is what went into this pass: the last token and the guesses after it. The row 'new' is what the "
        f"model answered below each. The first answer, {quoted(step.window.fresh[0])}, is the model's own token: it "
        "stands on text alone, so it is right. The others stand on guesses; they go into the next pass."
    )


def displaced(run: Run) -> int | None:
    """How far too far ahead the block of the pass before had the token that has come now; None if it had not."""
    if run.passes < 2 or run.steps[-2].window is None:
        return None
    before = run.steps[-2]
    assert before.window is not None
    due = len(before.token_ids) + 1
    row = before.window.row_ids[0]
    return next((place - due for place in range(due + 1, len(row)) if row[place] == run.last.token_ids[0]), None)


def _right_word_wrong_place(run: Run) -> str:
    far = displaced(run) or 0
    return (
        f"{quoted(run.last.pieces[0])} has come now. The block of the pass before had that token too, {far} "
        f"position{'s' * (far != 1)} too far ahead: the right word at the wrong place. Jacobi decoding has no memory, "
        "so the guess was lost."
    )


def _next_pass(run: Run) -> str:
    return f"{brought(run)} {share_of_single(run)}"


def _whole(run: Run) -> str:
    return (
        f"{run.sum}. Few guesses come true at their very place, so a pass seldom brings more than the model's own "
        "token."
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
        Look(at_step(3), _first_block),
        Look(lambda run: displaced(run) is not None, _right_word_wrong_place),
        Predict(QUESTION, ("one", "two", "three or more"), by_tokens(3), _next_pass),
        Look(at_end, _whole),
        Task(TASK, "window", set_to("window", "W", 12, 64), _longer),
        Say(END),
    ),
)
