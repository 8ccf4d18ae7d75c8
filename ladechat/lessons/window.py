"""Scene 3: the Jacobi window, whose diagonals are n-grams."""

from ladechat.lessons.scene import WINDOW, LookCard, Predict, Run, Say, Scene, Task, at_step, compared, quoted, set_to
from ladechat.widgets.formatting import counted

BEGINNING = (
    "The window: N − 1 rows of W tokens, oldest on top: the last token (+0), then guesses of the last passes; at "
    "first, random tokens of the text. Each pass reads it (lookahead branch) and writes another row."
)
QUESTION = "Where will 'new' stand in the next pass?"
TASK = "What does the window bring? Move W to 1, ask again."
END = "The window's guesses are drafts too. N-grams that do not fit here may fit later: the pool keeps them."


def named_diagonal(run: Run) -> int | None:
    """Return the diagonal that is named, by its column: the second, since the first begins in the text."""
    window = run.last.window
    return None if window is None else 1 if len(window.fresh) > 1 else 0


def _diagonal(run: Run) -> str:
    step, place = run.last, named_diagonal(run)
    if step.window is None or step.pool is None or place is None:
        return "The window had no room in this pass."
    ngram = [*(row[place] for row in step.window.rows), step.window.fresh[place]]
    ends = " and ".join(str(length) for length in range(len(ngram) - 1, 1, -1))
    too = f", their last {ends} tokens too" if ends else ""
    return (
        f"Follow the marked diagonal: {quoted(*ngram)}. Each was written after those above it: an n-gram of N = "
        f"{len(ngram)} tokens. Diagonals go into the pool{too}: {step.pool.added} new."
    )


def moved_up(run: Run) -> int:
    """Return the choice for where the last pass's fresh row is now: 0 on top, 1 lowest of the old rows, 2 nowhere."""
    before, now = run.steps[-2].window if run.passes > 1 else None, run.last.window
    if before is None or now is None or not now.row_ids:
        return 2
    return 1 if now.row_ids[-1] == before.fresh_ids else 0 if now.row_ids[0] == before.fresh_ids else 2


def _where_it_went(run: Run) -> str:
    if moved_up(run) != 1:
        return "The window was set up anew in this pass, so the row is not there."
    return "It is row −1 now; the oldest has left. The window moves by one place, whatever is accepted."


def _came_true(run: Run) -> str:
    drafts = [piece for piece, origin in zip(run.last.pieces, run.last.origins, strict=True) if origin == WINDOW]
    tokens = counted(len(run.last.token_ids), "token")
    return f"From the window, accepted: {quoted(*drafts)}. {tokens} from one pass, marked alike."


def _narrower(before: Run, after: Run) -> str:
    return f"{compared(before, after)}: cheaper passes, fewer n-grams."


SCENE = Scene(
    name="window",
    title="The window",
    question="How does lookahead decoding work?",
    decoder="lookahead",
    parameters={"window": 5, "ngram": 4, "guesses": 5},
    cards=(
        Say(BEGINNING),
        LookCard(at_step(6), _diagonal, diagonal=named_diagonal),
        Predict(QUESTION, ("on top", "lowest, as row −1", "nowhere"), moved_up, _where_it_went),
        LookCard(lambda run: WINDOW in run.last.origins, _came_true),
        Task(TASK, "window", set_to("window", "W", 1, 1), _narrower),
        Say(END),
    ),
    explains=("window",),
    asks=("Why does the window have rows?", "How does the window begin?"),
)
