"""Scene 6: the effect of W, N and G, and their cost."""

from ladechat.lessons.scene import (
    BUSY,
    COST,
    ONE_BY_ONE,
    SPEED,
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    at_step,
    measured,
    moved,
)
from ladechat.widgets.formatting import counted
from ladechat.widgets.steps.draft_tree import drafted, slots_of

PARAMETERS = {"window": 5, "ngram": 3, "guesses": 5}
BEGINNING = (
    "W: tokens in a row of the window. N: tokens of an n-gram. G: guesses of the pool. W + 1 or G + 1: up to N − 1 "
    "more slots. N + 1: up to W + G."
)
QUESTION = "How many tokens a pass will the answer come to?"
TASK = "Make this answer faster by the clock: move W, N or G, ask again."
END = (
    "Best depends on a slot's cost: little on an idle GPU, more where computing outweighs reading the weights: a CPU, "
    "a busy machine, many users, long texts, some hundred slots. The chat's 'auto' drafts as much as pays."
)
FASTER = 1.05
"""The gain in time that counts as one; less may be chance."""


def _slots(run: Run) -> str:
    step = run.last
    if step.window is None:
        return f"This pass had {counted(step.timing.slots, 'slot')}."
    cells, _ = drafted(step)
    window = sum(slot.row is not None for slot in slots_of(step))
    alike = f"{window} for the window" if window == cells else f"{window} for the window's {cells} cells"
    shared = "" if window == cells else " Cells that begin alike share a slot."
    pool = step.timing.slots - 1 - window
    return f"{counted(step.timing.slots, 'slot')}: 1 for the last token, {alike}, {pool} more for the pool.{shared}"


def judged(before: Run, after: Run) -> str:
    """Return which of two answers was faster by the clock, and what differed."""
    first, second = before.times, after.times
    passes = f"{counted(after.passes, 'pass')} instead of {before.passes}"
    if first is None or second is None:
        return f"{passes}. {ONE_BY_ONE}"
    if second.speedup is None:
        return f"{passes}. {BUSY} Try again later."
    if first.speedup is None:
        return f"{passes}. The answer before has no times: they disagreed. Ask again."
    dearer = float(f"{second.pass_ms / first.pass_ms:.2f}")  # as it is shown, so that the quotient is right
    gain = before.passes / (after.passes * dearer)
    verdict = (
        "Faster: found."
        if gain >= FASTER
        else "About as fast. Try others?"
        if gain > 1 / FASTER
        else "Slower. Can you find faster ones?"
    )
    return f"{passes}, each {dearer:.2f}× as long: {gain:.1f}× as fast. {verdict}"


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
            lambda run: (run.tokens_per_pass >= 1.3) + (run.tokens_per_pass > 1.7),
            lambda run: f"{run.tokens_per_pass:.2f} tokens a pass, S in the papers. {measured(run)}",
            SPEED,
            whole=True,
        ),
        Task(TASK, "window", moved(PARAMETERS), judged, SPEED),
        Say(END, COST),
    ),
    explains=("slots",),
    asks=("How should I choose W, N and G?", "When is lookahead decoding slower?"),
)
