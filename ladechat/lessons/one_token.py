"""Scene 1: plain decoding, one token a pass."""

from ladechat.lessons.scene import COST, SPEED, LookCard, Predict, Run, Say, Scene, Task, at_step, quoted
from ladechat.protocol import Settings
from ladechat.widgets.formatting import counted

BEGINNING = (
    "A language model reads all of the text so far and says which token comes next. Then it reads on with that token, "
    "for the one after it. One such reading is a forward pass. Here the bundled model will answer a question on this "
    "machine, pass by pass, and it waits for you wherever there is something to see."
)
QUESTION = "The answer is not at its end yet. How many passes will all of it take, by plain decoding?"
TASK = (
    "With a temperature of 0 the likeliest token is taken; above it tokens are drawn by their probabilities. Move the "
    "slider T to 1, and ask again. Does that break the chain?"
)
END = (
    "One pass, one token: each token has to wait for the one before it. In the scenes that follow, passes take "
    "guesses along, called drafts, and keep those that the model agrees with. The text stays the same; it takes fewer "
    "passes."
)


def _first_tokens(run: Run) -> str:
    milliseconds = run.last.timing.step_ms
    return (
        f"{counted(run.passes, 'pass')}, {counted(len(run.token_ids), 'token')}. The last pass brought "
        f"{quoted(*run.last.pieces)} and took {milliseconds:.1f} ms. On a GPU that time goes into reading the weights: "
        "a pass over a few more tokens takes hardly longer. Plain decoding leaves that unused. The bars show what a "
        "larger pass costs here, measured."
    )


def _whole(run: Run) -> str:
    return (
        f"{counted(len(run.token_ids), 'token')} in {counted(run.passes, 'pass')}. The next token cannot be computed "
        "before this one is known: that is the chain which lookahead decoding breaks."
    )


def _warmer(settings: Settings) -> str:
    return "" if settings.temperature >= 0.9 else f"T is {settings.temperature:g} now; move it to 1."


def _drawn(before: Run, after: Run) -> str:
    text = "Other words" if before.token_ids != after.token_ids else "The same words, by chance"
    return (
        f"{text}, and again {counted(len(after.token_ids), 'token')} in {counted(after.passes, 'pass')}. How a token "
        "is chosen changes nothing about the chain."
    )


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
            ("fewer passes than tokens", "as many passes as tokens", "more passes than tokens"),
            lambda run: (run.passes >= len(run.token_ids)) + (run.passes > len(run.token_ids)),
            _whole,
            SPEED,
            whole=True,
        ),
        Task(TASK, "temperature", _warmer, _drawn, SPEED),
        Say(END, SPEED),
    ),
)
