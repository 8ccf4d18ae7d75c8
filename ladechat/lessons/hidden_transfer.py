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
    brought,
    by_tokens,
    compared,
    quoted,
    set_to,
    share_of_single,
)

BEGINNING = (
    "No window, no pool. Half-way up, three trained matrices make pseudo states of a hidden state, for the next three "
    "places; a later one sees the earlier. They pass the upper layers with the rest; a guess is read from each."
)
QUESTION = "How many tokens will the next pass bring?"
TASK = "Guesses of one place follow those before, the likeliest in a tree. Move 'nodes' to 1, ask again."
END = (
    "More of its guesses are right than of Medusa's trained heads: the table. Trained on the model's own text, by "
    "cross-entropy or KL; the model stays as it is. Lookahead decoding needs no training."
)


def _sharpened(run: Run) -> bool:
    return run.last.lens is not None and len(accepted(run.last)) >= 2


def _layers(run: Run) -> str:
    lens = run.last.lens
    if lens is None:
        return brought(run)
    return (
        f"The pass before guessed, this one checks. After layer {lens.layers[0]} the states say "
        f"{quoted(*lens.rows[0])}, after the last {quoted(*lens.rows[-1])}: the guesses. Accepted: "
        f"{quoted(*accepted(run.last))}."
    )


def _next_pass(run: Run) -> str:
    return f"{brought(run)} {share_of_single(run)}"


def _single(before: Run, after: Run) -> str:
    return f"{compared(before, after)}: one draft brings two tokens at most."


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
        Task(TASK, "nodes", set_to("nodes", "nodes", 1, 1), _single, POOL),
        Say(END, METHODS),
    ),
    asks=("What are carriers?", "How are the maps trained?"),
)
