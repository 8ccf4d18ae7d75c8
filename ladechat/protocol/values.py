"""The values inside messages: settings, decoders, the details of a step, the engine's memory use."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

MOST = 2**53 - 1
"""Larger whole numbers are not exact in every language's JSON."""
MOST_SECONDS = 1e9
"""Thirty years: no session is longer, and a screen has room for it."""
MOST_MILLISECONDS = 1000 * MOST_SECONDS
LEAST_PASS_MILLISECONDS = 1e-6
"""The minimum for passes that are compared: their costs are divided by each other."""
MOST_RATIO = 1e6
"""The maximum of ratios of times, and of tokens per step: anything larger is no measurement."""
MOST_TEXT = 2_000_000
"""Characters of a text that is shown at once: a question, a notice. Longer ones would block the screen."""
MOST_PIECE = 100_000
"""Characters of the text of one token. It is drawn in a single line."""
MOST_PACKED = 512 * 1024
"""Bytes of the packed steps of a saved answer: those of some 3,000 passes."""

Number = Annotated[int, Meta(ge=-MOST, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
StepsBefore = Annotated[int, Meta(ge=0, le=MOST // 2)]
"""Steps before the first one: limited so that the index of every later step is a `Count`."""
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Seconds = Annotated[float, Meta(ge=0.0, le=MOST_SECONDS)]
Milliseconds = Annotated[float, Meta(ge=0.0, le=MOST_MILLISECONDS)]
PassMilliseconds = Annotated[float, Meta(ge=LEAST_PASS_MILLISECONDS, le=MOST_MILLISECONDS)]
Ratio = Annotated[float, Meta(ge=0.0, le=MOST_RATIO)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
StepsPerSecond = Annotated[float, Meta(ge=0.0, le=1000.0)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Piece = Annotated[str, Meta(max_length=MOST_PIECE)]

Seed = Count
ThinkingSwitch = Literal["on", "off", "auto"]
"""Whether a model thinks before it answers; "auto": as its chat template has it."""


class Record(Struct, frozen=True, kw_only=True):
    """A value inside a message."""


def setting_meta(help: str, wants: str, short: str = "", option: str = "", **bounds: Any) -> Meta:
    """Describe a setting.

    Args:
        help: what it is, in a sentence.
        wants: what it may be, in words.
        short: `help` in at most 48 characters, where it is longer.
        option: its short form on the command line.
        bounds: those of its values.
    """
    return Meta(description=help, extra={"wants": wants, "short": short or help, "option": option}, **bounds)


class SamplingSettings(Record, frozen=True, kw_only=True):
    """How tokens are sampled, and whether a model thinks first. A temperature of 0 is greedy: the token with the
    largest logit. `top_k` 0, `top_p` 1, `min_p` 0, a penalty of 1, `thinking` "auto" change nothing.

    This is the one place that describes them: options of the command line, settings.toml, slash commands, the form of
    settings, `Settings`, `Configure` and docs/settings.md follow. What one does stands in `ladechat.engine.sampling`.
    """

    temperature: Annotated[
        float,
        setting_meta(
            "0 takes the likeliest token; above it tokens are drawn.",
            "a number from 0 to 5",
            "0 takes the likeliest token; above, drawn.",
            "-T",
            ge=0.0,
            le=5.0,
        ),
    ] = 0.0
    top_k: Annotated[
        int,
        setting_meta("Draw from the k likeliest tokens; 0: from all.", "a whole number, 0 or more", ge=0, le=MOST),
    ] = 0
    top_p: Annotated[
        float,
        setting_meta(
            "Draw from the likeliest tokens that have this probability together.",
            "a number above 0 and at most 1",
            "Draw from tokens of this probability together.",
            "-P",
            gt=0.0,
            le=1.0,
        ),
    ] = 1.0
    min_p: Annotated[
        float,
        setting_meta(
            "Draw from tokens with at least this part of the highest probability.",
            "a number from 0 up to, but not, 1",
            "Least probability of a token, by the highest.",
            ge=0.0,
            lt=1.0,
        ),
    ] = 0.0
    repetition_penalty: Annotated[
        float,
        setting_meta(
            "Above 1, words of the text come again less often.",
            "a number from 0.1 to 10",
            "Above 1, words come again less often.",
            ge=0.1,
            le=10.0,
        ),
    ] = 1.0
    seed: (
        Annotated[
            int,
            setting_meta(
                "Where random numbers begin: the same seed, the same answers.",
                "a whole number, 0 or more",
                "The same seed, the same answers.",
                ge=0,
                le=MOST,
            ),
        ]
        | None
    ) = None
    thinking: Annotated[
        ThinkingSwitch,
        setting_meta(
            "Whether the model thinks before it answers, if that can be chosen.",
            "on, off or auto",
            "Think first?",
        ),
    ] = "auto"


NO_SWITCH = "Thinking cannot be turned on or off: the chat template of this model has no switch for it."
"""The reason why `SamplingSettings.thinking` does nothing."""

Value = bool | Number
"""A parameter of a decoder: a whole number, or on and off."""


class Parameter(Record, frozen=True):
    """A parameter of a decoder that can be set.

    Attributes:
        name: its key in `Settings.parameters`; decoders with a parameter of the same name share the user's value.
        label: a few characters for a slider, such as W.
        help: one sentence.
        default: the value if the user gives none; a boolean is on or off and has no range.
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
    """A decoder as an engine announces it: its name, what it does, and its parameters.

    Attributes:
        name: its key in `Settings.decoder`.
        label: its name for users.
        help: one sentence.
        parameters: in the order of their sliders.
        tree_attention: whether its passes take several slots, which not every model supports.
        by_hand: for a decoder that chooses its parameters, the one whose parameters the user sets instead.
        needs: the kind of trained part that it needs, see `ladechat.model.trained`, which not every model has.
        window: whether its passes take a Jacobi window along.
        least_layers: the minimum number of decoder layers, for a decoder that runs them one by one, which not every
            model supports; 0 for one that runs the whole model only.
    """

    name: Text
    label: Text
    help: Text
    parameters: list[Parameter] = []
    tree_attention: bool = True
    by_hand: str | None = None
    needs: str | None = None
    window: bool = False
    least_layers: Count = 0


class Settings(SamplingSettings, frozen=True):
    """The decoder by name, its parameters by name, and the sampling settings.

    In events they have a value for each parameter of the decoder. In commands some may be missing, and then stay as
    they are or have their default.
    """

    decoder: str = "auto"
    parameters: dict[str, Value] = {}


class Message(Record, frozen=True):
    """One turn of the conversation. Past answers have their token ids: the last answer may be continued from them, and
    they tell marks (special tokens) that the model wrote from text that only looks like them.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    token_ids: list[Number] | None = None


class SamplingDefaults(Record, frozen=True):
    """The sampling settings of a checkpoint's own generation_config.json. None where it has no value."""

    do_sample: bool
    temperature: float | None = None
    top_p: float | None = None
    top_k: Number | None = None


class Memory(Record, frozen=True):
    """The engine's memory use. A number is None if there is no such memory, or if the system does not report it.

    `peak_bytes` replaces `resident_bytes` on systems that report only that.
    """

    resident_bytes: Count | None
    peak_bytes: Count | None
    device_bytes: Count | None
    reserved_bytes: Count | None
    cache_bytes: Count | None


Verdict = Literal["accepted", "rejected", "untested"]
"""`untested`: an ancestor was rejected, so the model never judged this token."""


class DraftTree(Record, frozen=True):
    """The drafts of one step, merged by shared prefix. Node i is a child of node `parents[i]`; -1 is the last token.

    `sources` names the drafter of each node: "window", "prompt", "accepted", "earlier", "suffix", "recycling" …
    """

    token_ids: list[Count]
    pieces: list[Piece]
    parents: list[Number]
    sources: list[Piece]
    verdicts: list[Verdict]


class WindowView(Record, frozen=True):
    """The Jacobi window that went into one pass, and the new row that came out.

    Row r, column i is at position r + i after the last accepted token, which is row 0, column 0.
    """

    rows: list[list[Piece]]
    row_ids: list[list[Count]]
    fresh: list[Piece]
    fresh_ids: list[Count]


class LensView(Record, frozen=True):
    """The argmax of pseudo rows at each layer: how the guesses arose that a step has verified.

    They are the pseudo rows of the token at position t. `after` is the token at t + 1, the last one before the step.
    `layers` says how many layers each row has passed; in a row, index i is the most probable token at t + 2 + i. Low
    rows may lack the last ones. The last row holds the guesses.
    """

    after: Piece
    layers: list[Count]
    rows: list[list[Piece]]
    row_ids: list[list[Count]]


RIVALS, LEAST_LOGPROB = 5, -9999.0
"""How many of the likeliest tokens are named, and what stands for minus infinity, which JSON does not have."""


class Rivals(Record, frozen=True):
    """The likeliest tokens in the place of an emitted one, by the model's own distribution, with their natural
    log-probabilities, and the entropy of all of it, in nats; None from a server, which tells only these.
    """

    pieces: list[Piece]
    logprobs: list[float]
    entropy: Ratio | None = None


class Candidate(Record, frozen=True):
    """One n-gram of the pool that begins with the last accepted token, without that token."""

    token_ids: list[Count]
    pieces: list[Piece]
    source: Piece
    tried: bool
    matched: Count


class PoolView(Record, frozen=True):
    """The pool at one step: its size, its lookups and hits, and its n-grams after the last token.

    `added` counts the n-grams that are new since the step before.
    """

    ngrams: Count
    lookups: Count
    hits: Count
    added: Count
    after: Piece
    candidates: list[Candidate]


class Timing(Record, frozen=True):
    """The time of one step, in milliseconds, and the size of its pass."""

    step_ms: Milliseconds
    forward_ms: Milliseconds
    slots: Positive
    cache_length: Count
    plain_ms: Milliseconds | None = None


MOST_GAIN = 1.15
"""The largest credible speedup, relative to tokens per pass: a pass is no cheaper than a plain one, but times vary."""


def credible_speedup(speedup: float, tokens_per_pass: float) -> float | None:
    """Return a speedup, cut to the tokens per pass; None if it is so high that the machine must have been disturbed."""
    return min(speedup, tokens_per_pass) if speedup <= MOST_GAIN * tokens_per_pass else None


class Decision(Record, frozen=True):
    """The adaptive policy's decision for a pass.

    Attributes:
        why: "paused" or "none" for a pass without drafts; "pays", "trial" or "window" for one with drafts.
        tokens: the expected tokens of the pass.
        cost: the cost of the pass, in plain passes.
        expected: the tokens that drafts are expected to bring in 1, 2, 4, 8 … slots.
    """

    why: Piece
    tokens: Ratio
    cost: Ratio
    expected: list[Ratio] = []


class TrainedPart(Record, frozen=True):
    """The maps of hidden transfer, or the heads of Medusa, that were trained for a model.

    `layers` says for each map how many layers come before it. A map is a matrix of `width` × `width` numbers. `right`
    says how often the best guess was right on held-out text: for each token ahead, or only for the first.
    """

    kind: Text
    layers: list[Count]
    width: Positive
    right: list[Share]
    steps: Count


class PassCost(Record, frozen=True):
    """The time of a pass of `slots` slots, in milliseconds."""

    slots: Positive
    ms: PassMilliseconds


class ExpectedTokens(Record, frozen=True):
    """The expected tokens of a step whose pass has `slots` slots, filled with the most probable drafts."""

    slots: Positive
    tokens: Ratio


class ServerInfo(Record, frozen=True):
    """A server that runs the model, and what it tells of its decoding. It never tells which drafts it refused.

    Attributes:
        program: its name and version, as far as they are known.
        address: where its API is.
        passes: whether its steps are forward passes; else they are the chunks in which it sends the text.
        token_ids: whether it tells the tokens. Else each step has one entry, with an id that means nothing.
        logprobs: whether it tells their log-probabilities; else they are 0.
    """

    program: Text
    address: Text
    passes: bool
    token_ids: bool
    logprobs: bool


class ServerFigures(Record, frozen=True):
    """The server's own figures of one answer; None for what it does not tell.

    Attributes:
        prompt_tokens, tokens: of the prompt, and of the answer with its reasoning.
        passes: the forward passes that gave its tokens.
        drafted, accepted: the drafted tokens, and those of them that came into the text.
        tokens_per_second: its own measurement.
    """

    prompt_tokens: Count | None = None
    tokens: Count | None = None
    passes: Count | None = None
    drafted: Count | None = None
    accepted: Count | None = None
    tokens_per_second: Ratio | None = None
