"""Scene 4: the n-gram pool, the memory."""

from ladechat.lessons.scene import POOL, LookCard, Predict, Run, Say, Scene, Task, compared, quoted, set_to
from ladechat.protocol import Candidate
from ladechat.widgets.formatting import counted
from ladechat.widgets.steps.explained import source_of

BEGINNING = (
    "The pool keeps n-grams of the window, the prompt and the text. Before each pass we ask it what followed the last "
    "tokens: longest match first (four at most), of equals the latest. Up to G answers, the guesses, go into the pass, "
    "the verification branch."
)
QUESTION = "Will the pool have a guess for the next pass?"
TASK = "And without the pool's guesses? Move G to 0, ask again."
END = "It is kept from answer to answer, so it knows the words of your conversation; when full, the oldest leave."


def tried(run: Run) -> list[Candidate]:
    """Return the guesses that the last pass has verified."""
    pool = run.last.pool
    return [] if pool is None else [one for one in pool.candidates if one.tried]


def _known(run: Run) -> str:
    pool, guesses = run.last.pool, tried(run)
    if pool is None or not guesses:
        return "The pool gave no guess."
    best = max(guesses, key=lambda one: one.matched)
    return (
        f"After {quoted(pool.after)} the pool knew {quoted(*best.pieces)}: {source_of(best.source).phrase}. "
        f"{best.matched} of {counted(len(best.pieces), 'token')} accepted. ✓ accepted, ✗ wrong, – not reached."
    )


def _had_guess(run: Run) -> str:
    pool = run.last.pool
    if pool is None:
        return "The pool was not asked."
    answer = "None" if not tried(run) else counted(len(tried(run)), "guess")
    sources = " and ".join(dict.fromkeys(source_of(one.source).name for one in tried(run)))
    found = f": from {sources}" if sources else ""
    return f"{answer} after {quoted(pool.after)}{found}. So far it had one in {pool.hits} of {pool.lookups} passes."


def _paid(run: Run) -> str:
    best = max(tried(run), key=lambda one: one.matched)
    tokens = counted(len(run.last.token_ids), "token")
    pieces = quoted(*best.pieces[: best.matched])
    return f"{pieces}: {source_of(best.source).phrase}, accepted. {tokens} from this pass."


def _without(before: Run, after: Run) -> str:
    saved = len(after.token_ids) - after.passes
    text = f"{compared(before, after)}. The pool still fills, unused."
    if saved:
        text += f" The window saved {counted(saved, 'pass')}: its guesses are checked too."
    return text


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
        LookCard(lambda run: any(one.matched >= 2 for one in tried(run)), _paid, POOL),
        Task(TASK, "guesses", set_to("guesses", "G", 0, 0), _without, POOL),
        Say(END, POOL),
    ),
    explains=("pool",),
    asks=("How does the pool find n-grams?", "What happens when G is zero?"),
)
