"""Scene 4: the n-gram pool, the memory."""

from ladechat.lessons.scene import (
    POOL,
    LookCard,
    Predict,
    Run,
    Say,
    Scene,
    Task,
    at_end,
    compared,
    quoted,
    set_to,
)
from ladechat.protocol import Candidate
from ladechat.widgets.formatting import counted
from ladechat.widgets.steps.explained import source_of

BEGINNING = (
    "The pool keeps n-grams: those of the window, of the prompt, and of the text so far. After each token it is asked "
    "what has followed that token before, and gives up to G such tails. They are the guesses, and go into the same "
    "pass as the window, as the verification branch."
)
QUESTION = "The text has one more token now. Will the pool have a guess for the next pass?"
TASK = "And without the pool? Move G to 0, so that no tail is verified, and ask again."
END = (
    "The window finds n-grams, the pool keeps them until their first token comes up again. It stays from answer to "
    "answer in the chat, and is full of what a talk is about."
)


def tried(run: Run) -> list[Candidate]:
    """Return the candidates that the last pass has verified."""
    pool = run.last.pool
    return [] if pool is None else [one for one in pool.candidates if one.tried]


def _known(run: Run) -> str:
    pool, guesses = run.last.pool, tried(run)
    if pool is None or not guesses:
        return "The pool gave no guess."
    best = max(guesses, key=lambda one: one.matched)
    one = "its only tail" if len(guesses) == 1 else f"one of {len(guesses)} tails"
    verdict = f"✓: {best.matched} of {counted(len(best.pieces), 'token')} accepted" if best.matched else "✗: refused"
    return (
        f"The text ended in {quoted(pool.after)}. After that token the pool, with {pool.ngrams} n-grams by now, knew "
        f"{quoted(*best.pieces)}, {one}: {source_of(best.source).phrase}. {verdict}. The panel marks each token: ✓ "
        "agreed, ✗ not, – not asked."
    )


def _had_guess(run: Run) -> str:
    pool = run.last.pool
    if pool is None:
        return "The pool was not asked."
    answer = "It had none" if not tried(run) else f"It had {counted(len(tried(run)), 'tail')}"
    return (
        f"{answer} after {quoted(pool.after)}. You could not know, but so far it had one at {pool.hits} of "
        f"{pool.lookups} passes, which is its hit rate; the fuller it gets, the higher."
    )


def _two_in_one(run: Run) -> bool:
    return any(one.matched >= 2 for one in tried(run))


def _paid(run: Run) -> str:
    best = max(tried(run), key=lambda one: one.matched)
    return (
        f"{quoted(*best.pieces[: best.matched])} was {source_of(best.source).phrase}, and the model agreed with "
        f"{best.matched} of its tokens. With the model's own token after them, the pass brought "
        f"{counted(len(run.last.token_ids), 'token')}: {quoted(*run.last.pieces)}."
    )


def _whole(run: Run) -> str:
    pool = run.last.pool
    found = "" if pool is None else f" The pool ended with {pool.ngrams} n-grams and had a guess at {pool.hits} passes."
    return f"{run.sum}.{found}"


def _without(before: Run, after: Run) -> str:
    return (
        f"{compared(before, after)} What is left comes from the window itself, whose paths are verified like any "
        "guess. Most of what was saved, the pool had brought."
        if after.passes > before.passes
        else f"{compared(before, after)} In this answer the pool brought nothing."
    )


SCENE = Scene(
    name="pool",
    title="The n-gram pool",
    question="What is the n-gram pool?",
    decoder="lookahead",
    parameters={"window": 5, "ngram": 3, "guesses": 5},
    cards=(
        Say(BEGINNING, POOL),
        LookCard(lambda run: bool(tried(run)), _known, POOL),
        Predict(QUESTION, ("yes", "no"), lambda run: 0 if tried(run) else 1, _had_guess, POOL),
        LookCard(_two_in_one, _paid, POOL),
        LookCard(at_end, _whole, POOL),
        Task(TASK, "guesses", set_to("guesses", "G", 0, 0), _without, POOL),
        Say(END, POOL),
    ),
)
