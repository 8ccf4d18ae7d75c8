"""Scene 1: plain decoding, one token a pass."""

from ladechat.lessons.scene import COST, SPEED, LookCard, Predict, Run, Say, Scene, Task, at_step, quoted
from ladechat.protocol import Settings
from ladechat.widgets.formatting import counted

BEGINNING = (
    "A language model reads the text so far and says the next token; then it reads that one too, and says the one "
    "after. One such reading is a forward pass. Enter: the bundled model answers on this machine."
)
QUESTION = "How many passes will the whole answer take?"
TASK = "At a temperature above 0, tokens are drawn by chance. Move T to 1 and ask again. Does that break the chain?"
END = (
    "From now on passes take guesses along, called drafts, and accept those that the model would have written. The "
    "same text, in fewer passes."
)


def _first_tokens(run: Run) -> str:
    return (
        f"{counted(run.passes, 'pass')}, {counted(len(run.token_ids), 'token')}; the last brought "
        f"{quoted(*run.last.pieces)}. A GPU spends nearly all of a pass on reading the weights. More tokens in the "
        "pass, a slot each, take hardly longer; plain decoding leaves that unused."
    )


def _whole(run: Run) -> str:
    return (
        f"{counted(len(run.token_ids), 'token')}, {counted(run.passes, 'pass')}. Each token has to wait for the one "
        "before it: that chain is what lookahead decoding breaks."
    )


def _warmer(settings: Settings) -> str:
    return "" if settings.temperature >= 0.9 else f"T is {settings.temperature:g} now; move it to 1."


def _drawn(before: Run, after: Run) -> str:
    text = "Other words" if before.token_ids != after.token_ids else "The same words, by chance"
    return f"{text}, and again {counted(len(after.token_ids), 'token')} in {counted(after.passes, 'pass')}."


SCENE = Scene(
    name="one_token",
    title="One token a pass",
    question="How does lookahead decoding work?",
    decoder="autoregressive",
    parameters={},
    cards=(
        Say(BEGINNING, SPEED),
        LookCard(at_step(5), _first_tokens, COST),
        Predict(
            QUESTION,
            ("fewer than tokens", "as many as tokens", "more"),
            lambda run: (run.passes >= len(run.token_ids)) + (run.passes > len(run.token_ids)),
            _whole,
            SPEED,
            whole=True,
        ),
        Task(TASK, "temperature", _warmer, _drawn, SPEED),
        Say(END, SPEED),
    ),
    explains=("cost", "speed"),
    asks=("What is a forward pass?", "Why is memory the bottleneck?"),
)
