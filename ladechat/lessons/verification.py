"""Scene 5: one pass verifies all drafts, and why the text stays exact."""

from ladechat.lessons.scene import (
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
    measured,
    quoted,
    share_of_single,
)
from ladechat.protocol import Settings
from ladechat.widgets.formatting import counted

PARAMETERS = {"window": 5, "ngram": 3, "guesses": 5}
BEGINNING = (
    "A pass takes slots: the last token, and each draft behind the token that it follows. So drafts form a tree. The "
    "pass says what the model would write after each slot. If a draft after the last token is just that, go there, "
    "and look what comes after it; and so on, until no draft fits. The token that the model says there is taken too."
)
QUESTION = "How many tokens will the next pass bring, the model's own token included?"
TASK = "Does the text depend on the drafts? Change W, N or G as you like, and ask again: will there be other words?"
END = (
    "Drafts decide which slots are computed, never which token is written: every token is the model's own choice at "
    "its place. So the text is that of plain decoding, whatever is set. What a refused draft costs is time: its slot."
)


def _three_with_pool(run: Run) -> bool:
    pool = run.last.pool
    return len(run.last.token_ids) >= 3 and pool is not None and any(one.matched for one in pool.candidates)


def _walked(run: Run) -> str:
    step = run.last
    assert step.draft is not None
    drafts = accepted(step)
    refused, untested = (step.draft.verdicts.count(verdict) for verdict in ("rejected", "untested"))
    return (
        f"{step.timing.slots} slots: the last token and {counted(len(step.draft.verdicts), 'draft')}. The model said "
        f"{quoted(*drafts)}, and drafts said so too; then it said {quoted(step.pieces[-1])}, where no draft fitted or "
        f"none was left. Together {counted(len(step.token_ids), 'token')} from one pass. {refused} drafts were "
        f"refused, and {untested} never judged, since they hang on refused ones."
    )


def _next_pass(run: Run) -> str:
    return f"{brought(run)} {share_of_single(run)} At the least it is one, even if all drafts are refused."


def _whole(run: Run) -> str:
    return (
        f"{run.sum}. {measured(run)} "
        "Whether that pays depends on the machine: more slots cost nearly nothing on a GPU, and something on a CPU."
    )


def _other_drafts(settings: Settings) -> str:
    values = {name: settings.parameters.get(name) for name in PARAMETERS}
    return "" if values != PARAMETERS else "Move W, N or G first."


def _same_text(before: Run, after: Run) -> str:
    pairs = zip(before.token_ids, after.token_ids, strict=False)
    same = next(
        (place for place, (a, b) in enumerate(pairs) if a != b), min(len(before.token_ids), len(after.token_ids))
    )
    longest = max(len(before.token_ids), len(after.token_ids))
    passes = f"{after.passes} passes instead of {before.passes}"
    if same == longest:
        return f"{same} of {longest} tokens are identical, in {passes}. Other drafts, other passes, the same text."
    return (
        f"The first {same} tokens are identical, then one differs, in {passes}. If T was moved, tokens are drawn. Else "
        "two tokens nearly tied, and passes of different size round differently: docs/lookahead.md says when."
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
        Predict(QUESTION, ("one", "two", "three or more"), by_tokens(3), _next_pass, POOL),
        LookCard(at_end, _whole, POOL),
        Task(TASK, "window", _other_drafts, _same_text, POOL),
        Say(END, POOL),
    ),
)
