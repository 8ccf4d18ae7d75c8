"""Scene 7: hidden transfer, guesses from inside the model."""

from ladechat.lessons.scene import (
    LENS,
    METHODS,
    POOL,
    LookCard,
    Run,
    Say,
    Scene,
    Task,
    accepted,
    brought,
    compared,
    next_pass,
    quoted,
    set_to,
)

BEGINNING = (
    "Half-way up, three trained matrices make pseudo states for t+2 to t+4 from the hidden state that leads to t+1; "
    "later ones see earlier ones. All pass the upper layers; guesses are read on top."
)
TASK = "Allow the tree one draft: move 'nodes' to 1, ask again."
END = (
    "Medusa, heads on the top layer, has fewer guesses right: compare t+2. The maps are trained on the "
    "model's own text, by cross-entropy or KL; neither model nor text changes."
)


LONG_WAIT = 8
"""Passes of the answer after which any accepted drafts will do, also such as are not the likeliest guesses."""


def _sharpened(run: Run) -> bool:
    """Stop where two guesses that the panel shows are accepted; if that does not come up soon, at any two drafts."""
    drafts, lens = accepted(run.last), run.last.lens
    if lens is None or len(drafts) < 2:
        return False
    return drafts == lens.rows[-1][: len(drafts)] or run.passes >= LONG_WAIT


def _layers(run: Run) -> str:
    lens = run.last.lens
    if lens is None:
        return brought(run)
    return (
        f"After layer {lens.layers[0]} the states say {quoted(*lens.rows[0])}, after layer {lens.layers[-1]} "
        f"{quoted(*lens.rows[-1])}. Each place has several guesses; likeliest paths form a tree. Accepted: "
        f"{quoted(*accepted(run.last))}."
    )


def _single(before: Run, after: Run) -> str:
    return (
        f"{compared(before, after)}: one draft brings two tokens at most. Pseudo states cost too: carriers make "
        "them, slots that may be the last accepted."
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
        next_pass(4, LENS),
        Task(TASK, "nodes", set_to("nodes", "nodes", 1, 1), _single, POOL),
        Say(END, METHODS),
    ),
    explains=("lens", "methods", "slider-nodes", "slider-carriers"),
    asks=("What are carriers?", "How are the maps trained?"),
)
