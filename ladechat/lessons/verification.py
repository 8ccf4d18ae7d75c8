"""Scene 5: one pass verifies all drafts, and why the text stays exact."""

from ladechat.lessons.scene import (
    MASK,
    POOL,
    LookCard,
    Run,
    Say,
    Scene,
    Task,
    accepted,
    at_once,
    next_pass,
    quoted,
    set_to,
)
from ladechat.widgets.formatting import counted
from ladechat.widgets.steps.draft_tree import drafted, slots_of

PARAMETERS = {"window": 5, "ngram": 3, "guesses": 5}
BEGINNING = (
    "What does the model say after the last token? A draft that says the same is accepted: go there. Else take the "
    "model's token."
)
SEEN = (
    "The mask: a slot sees the text, itself and what it follows (in the window: up its diagonal, then left in the top "
    "row). So it answers as if alone."
)
TASK = "Do drafts change the text? Move N to 5, ask again."
END = (
    "At T > 0 tokens are drawn as in plain decoding (same seed, same text), then compared with drafts. In 16 bits, "
    "passes of other sizes round differently: near ties may swap."
)


def _three_with_pool(run: Run) -> bool:
    pool = run.last.pool
    return len(run.last.token_ids) >= 3 and pool is not None and any(one.matched for one in pool.candidates)


def _walked(run: Run) -> str:
    step = run.last
    assert step.draft is not None
    wrong, unreached = (step.draft.verdicts.count(verdict) for verdict in ("rejected", "untested"))
    path = [node for node, verdict in enumerate(step.draft.verdicts) if verdict == "accepted"]
    why = "all were wrong" if path[-1] in step.draft.parents else "no draft was left"
    own = f"; then {quoted(step.pieces[-1])}, where {why}" if step.origins[-1] == "model" else ""
    shared = " (alike drafts share one)" if sum(drafted(step)) > len(step.draft.verdicts) else ""
    return (
        f"{step.timing.slots} slots{shared}, {counted(len(step.draft.verdicts), 'draft')}. The model said "
        f"{quoted(*accepted(step))}: accepted{own}. {wrong} wrong, {unreached} not reached: these leave "
        "the KV cache."
    )


def _cell_of_newest_row(run: Run) -> int | None:
    """Return the slot of a cell of row −1, not in its first column: it sees its diagonal and no neighbour. Without one,
    return that of the last accepted draft, which sees the longest path that came true.
    """
    slots, window = slots_of(run.last), run.last.window
    newest = len(window.rows) - 1 if window is not None else None
    cell = next((index for index, slot in enumerate(slots) if slot.row == newest and newest and slot.column), None)
    accepted_slots = (index for index, slot in enumerate(slots) if slot.verdict == "accepted")
    return max(accepted_slots, default=None) if cell is None else cell


def _same_text(before: Run, after: Run) -> str:
    pairs = zip(before.token_ids, after.token_ids, strict=False)
    same = next(
        (place for place, (a, b) in enumerate(pairs) if a != b), min(len(before.token_ids), len(after.token_ids))
    )
    longest = max(len(before.token_ids), len(after.token_ids))
    passes = f"in {counted(after.passes, 'pass')} instead of {before.passes}"
    if same == longest:
        return f"{same} of {longest} tokens are identical, {passes}."
    return (
        f"The first {same} tokens are identical, then one differs, {passes}. If T was moved, tokens are drawn. Else "
        "two tokens nearly tied, and passes of different size round differently."
    )


SCENE = Scene(
    name="verification",
    title="Verification",
    question="Write a Python function that reverses a string.",
    decoder="lookahead",
    parameters=PARAMETERS,
    cards=(
        Say(BEGINNING, POOL),
        LookCard(_three_with_pool, _walked, POOL),
        LookCard(at_once, lambda _: SEEN, MASK, slot=_cell_of_newest_row),
        next_pass(3, POOL),
        Task(TASK, "ngram", set_to("ngram", "N", 5, 16), _same_text, POOL),
        Say(END, POOL),
    ),
    explains=("mask", "biography"),
    asks=("What is the attention mask?", "Is lookahead decoding exact?"),
)
