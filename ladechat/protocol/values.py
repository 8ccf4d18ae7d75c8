"""The values inside messages: settings, decoders, what a step shows, what the engine takes."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST = 2**53 - 1
"""Whole numbers beyond it are not exact in every language's JSON."""
MOST_SECONDS = 1e9
"""Thirty years: no session is longer, and a screen can write it down."""
MOST_MILLISECONDS = 1000 * MOST_SECONDS
LEAST_PASS_MILLISECONDS = 1e-6
"""Of a pass that is compared with others: costs are divided by each other."""
MOST_RATIO = 1e6
"""Of times, of tokens a step: more is no measurement."""
MOST_TEXT = 2_000_000
"""Characters of a text that is shown at once: a question, a notice. More of it would hold up the screen."""
MOST_PIECE = 100_000
"""Characters of the text of one token. It is drawn in a line."""

TEMPERATURE_RANGE = (0.0, 5.0)
PENALTY_RANGE = (0.1, 10.0)

Number = Annotated[int, Meta(ge=-MOST, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
StepsBefore = Annotated[int, Meta(ge=0, le=MOST // 2)]
"""Steps to count on from: the index of whatever step follows is a `Count`."""
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Seconds = Annotated[float, Meta(ge=0.0, le=MOST_SECONDS)]
Milliseconds = Annotated[float, Meta(ge=0.0, le=MOST_MILLISECONDS)]
PassMilliseconds = Annotated[float, Meta(ge=LEAST_PASS_MILLISECONDS, le=MOST_MILLISECONDS)]
Ratio = Annotated[float, Meta(ge=0.0, le=MOST_RATIO)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
StepsPerSecond = Annotated[float, Meta(ge=0.0, le=1000.0)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Piece = Annotated[str, Meta(max_length=MOST_PIECE)]

Temperature = Annotated[float, Meta(ge=TEMPERATURE_RANGE[0], le=TEMPERATURE_RANGE[1])]
TopK = Count
TopP = Annotated[float, Meta(gt=0.0, le=1.0)]
MinP = Annotated[float, Meta(ge=0.0, lt=1.0)]
Penalty = Annotated[float, Meta(ge=PENALTY_RANGE[0], le=PENALTY_RANGE[1])]
Seed = Count


class Record(Struct, frozen=True, kw_only=True):
    """A value inside a message."""


Value = bool | Number
"""A parameter of a decoder: a whole number, or on and off."""


class Parameter(Record, frozen=True):
    """Something about a decoder that can be set.

    Attributes:
        name: its key in `Settings.parameters`; decoders that share a name share the value that a user gave.
        label: a few characters for a slider, such as W.
        help: one sentence.
        default: what it is unless it is given; a boolean is on or off and has no range.
        least, most: the range, both ends included.
        live: whether it may change while an answer is being written.
    """

    name: Text
    label: Text
    help: Text
    default: Value
    least: Number = 0
    most: Number = 1
    live: bool = True


class DecoderInfo(Record, frozen=True):
    """A decoder as it is announced: what it is called, what it does, and what can be set.

    Attributes:
        name: its key in `Settings.decoder`.
        label: its name for people.
        help: one sentence.
        parameters: in the order of their sliders.
        tree_attention: whether its passes take several slots, which not every model can.
        by_hand: for a decoder that chooses by itself, the one whose parameters are set by hand instead.
        needs: the kind of what has to be trained for it, see `ladechat.model.trained`, which not every model has.
        least_layers: the fewest decoder layers of a model that it can use, where it runs them one by one, which not
            every model allows; 0 where it runs the whole model only.
    """

    name: Text
    label: Text
    help: Text
    parameters: list[Parameter] = []
    tree_attention: bool = True
    by_hand: str | None = None
    needs: str | None = None
    least_layers: Count = 0


class Settings(Record, frozen=True):
    """The decoder by its name, its parameters by theirs, and how tokens are drawn.

    What an engine says has a value for each parameter of the decoder. What it is told may lack some, which then keep
    their value or have their default.

    A temperature of 0 is greedy: the token with the largest logit. `top_k` 0, `top_p` 1, `min_p` 0, a penalty of 1
    change nothing.
    """

    decoder: str = "auto"
    parameters: dict[str, Value] = {}
    temperature: Temperature = 0.0
    top_k: TopK = 0
    top_p: TopP = 1.0
    min_p: MinP = 0.0
    repetition_penalty: Penalty = 1.0
    seed: Seed | None = None


class Exchange(Record, frozen=True):
    """A question and its answer, as a conversation that is kept has them.

    Attributes:
        token_ids: the answer's tokens, which mean nothing to another model than `model`.
        decoder: the name of the decoder that was chosen when the answer ended.
        system: the system prompt that the question was asked with, "" for none; None where it is not known.
    """

    question: Text
    answer: Text
    token_ids: list[Count]
    model: Text
    decoder: Text
    system: Text | None = None


class Message(Record, frozen=True):
    """One turn of the conversation. Past answers carry their token ids: the last may go on from them, and they say
    which marks of a text the model itself wrote.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    token_ids: list[Number] | None = None


class SamplingDefaults(Record, frozen=True):
    """How a checkpoint's own generation_config.json would have its tokens drawn. None where it does not say."""

    do_sample: bool
    temperature: float | None = None
    top_p: float | None = None
    top_k: Number | None = None


class Memory(Record, frozen=True):
    """What the engine takes. Each number is None where there is no such thing, or where the system does not report it.

    `peak_bytes` takes the place of `resident_bytes` on systems that report only that.
    """

    resident_bytes: Count | None
    peak_bytes: Count | None
    device_bytes: Count | None
    reserved_bytes: Count | None
    cache_bytes: Count | None


Verdict = Literal["accepted", "rejected", "untested"]
"""`untested`: an ancestor was rejected, so the model never judged this token."""


class DraftTree(Record, frozen=True):
    """The drafts of one step, merged by shared prefix. Node i hangs on node `parents[i]`; -1 is the last token.

    `sources` says which drafter brought each: "window", "prompt", "accepted", "earlier", "suffix", "recycling" …
    """

    token_ids: list[Count]
    pieces: list[Piece]
    parents: list[Number]
    sources: list[Piece]
    verdicts: list[Verdict]


class WindowView(Record, frozen=True):
    """The Jacobi window that went into one pass, and the row that came out.

    Row r, column i stands at position r + i after the last accepted token, which is row 0, column 0.
    """

    rows: list[list[Piece]]
    row_ids: list[list[Count]]
    fresh: list[Piece]
    fresh_ids: list[Count]


class LensView(Record, frozen=True):
    """What pseudo rows read at each layer on their way up: how the guesses came about that a step has judged.

    They are the rows of the token at position t. `after` is the token at t + 1, the last one before the step.
    `layers` says how many layers each row has behind it; in a row, index i is the likeliest token at t + 2 + i. Low
    rows may lack the last ones. The last row holds what was guessed.
    """

    after: Piece
    layers: list[Count]
    rows: list[list[Piece]]
    row_ids: list[list[Count]]


class Candidate(Record, frozen=True):
    """One n-gram of the pool that begins with the last accepted token, without that token."""

    token_ids: list[Count]
    pieces: list[Piece]
    source: Piece
    tried: bool
    matched: Count


class PoolView(Record, frozen=True):
    """The pool at one step: its size, how often it had an answer, and what it holds after the last token.

    `added` counts the n-grams that were new since the step before.
    """

    ngrams: Count
    lookups: Count
    hits: Count
    added: Count
    after: Piece
    candidates: list[Candidate]


class Timing(Record, frozen=True):
    """Where the time of one step went, in milliseconds, and how large its pass was."""

    step_ms: Milliseconds
    forward_ms: Milliseconds
    slots: Positive
    cache_length: Count
    plain_ms: Milliseconds | None = None


class Decision(Record, frozen=True):
    """What the adaptive policy decided for a pass.

    Attributes:
        why: "paused" or "none" for a pass without drafts; "pays", "trial" or "window" for one with drafts.
        tokens: expected of the pass.
        cost: of the pass, in plain passes.
        expected: tokens that its drafts would be expected to bring in 1, 2, 4, 8 … slots.
    """

    why: Piece
    tokens: Ratio
    cost: Ratio
    expected: list[Ratio] = []


class PassCost(Record, frozen=True):
    """How long a pass of `slots` slots takes, in milliseconds."""

    slots: Positive
    ms: PassMilliseconds


class ExpectedTokens(Record, frozen=True):
    """How many tokens a step is expected to emit whose pass has `slots` slots, filled with the likeliest drafts."""

    slots: Positive
    tokens: Ratio
