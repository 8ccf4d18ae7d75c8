"""Scene 7: hidden transfer, guesses from inside the model."""

from ladechat.lessons.scene import (
    LENS,
    METHODS,
    POOL,
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    accepted,
    at_end,
    brought,
    by_tokens,
    compared,
    quoted,
    set_to,
    share_of_single,
)
from ladechat.widgets.formatting import counted

BEGINNING = (
    "The second method. Half-way up the model, the hidden state of a token already tells something about tokens "
    "further ahead. Small trained maps make pseudo states of it, which go through the rest of the layers with the "
    "same pass, and the model's own output layer reads a guess off each. No window, no pool, no second model."
)
QUESTION = "New guesses were made in this pass. How many tokens will the next one bring?"
TASK = "These drafts are a tree of alternatives. Move 'nodes' to 1, a single draft a pass, and ask again."
END = (
    "Lookahead decoding needs no training: its guesses come from what was written and what was iterated. Hidden "
    "transfer needs maps trained for the model, and guesses well from the first pass on. Both are verified in the "
    "same way, so both leave the text as it is. That was all: ask the model yourself, in the chat."
)


def _sharpened(run: Run) -> bool:
    return run.last.lens is not None and len(accepted(run.last)) >= 2


def _layers(run: Run) -> str:
    lens = run.last.lens
    if lens is None:
        return brought(run)
    top, low = lens.rows[-1], lens.rows[0]
    return (
        f"A column for each position ahead, a row for each layer. At layer {lens.layers[0]} the pseudo states read "
        f"{quoted(*low)}; at the last one, which guesses, {quoted(*top)}. ✓ above a column: that guess came true. The "
        f"few likeliest of each column become drafts, so one may come true that is not shown. {brought(run)}"
    )


def _next_pass(run: Run) -> str:
    return f"{brought(run)} {share_of_single(run)}"


def _whole(run: Run) -> str:
    return (
        f"{run.sum}. This text is what the bundled model was trained on, and so were its maps; with other texts they "
        "guess less well."
    )


def _single(before: Run, after: Run) -> str:
    return (
        f"{compared(before, after)} With one draft a pass brings two tokens at the most; it has "
        f"{after.slots_per_pass:.0f} slots instead of {before.slots_per_pass:.0f}, and took {after.ms_per_pass:.1f} ms "
        f"instead of {before.ms_per_pass:.1f}: {counted(after.passes, 'pass')} of the cheaper kind."
    )


SCENE = Scene(
    name="hidden_transfer",
    title="Hidden transfer",
    question="How does lookahead decoding work?",
    decoder="hidden_transfer",
    parameters={"nodes": 16},
    cards=(
        Say(BEGINNING, LENS),
        LookCard(_sharpened, _layers, LENS),
        Predict(QUESTION, ("one", "two", "three", "four or more"), by_tokens(4), _next_pass, LENS),
        LookCard(at_end, _whole, POOL),
        Task(TASK, "nodes", set_to("nodes", "nodes", 1, 1), _single, POOL),
        Say(END, METHODS),
    ),
)
