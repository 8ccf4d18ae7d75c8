"""The contract between an engine and whatever watches it.

Commands travel to the engine, events come back: JSON, UTF-8 (escaped to ASCII), one message a line, lines split on the
byte ``\\n`` only. The tag of a command is ``"command"``, of an event ``"event"``; its value is the class name in snake
case. The first event of every stream is its ``Header``, so a stream written to a file is a recording as it stands.

A reader skips kinds and keys that it does not know, and is strict about the types of the fields it does know.
``docs/protocol.md`` describes every field with its unit.
"""

import signal
from typing import Literal

from msgspec import Struct

from ladechat.protocol.values import (
    Count,
    Decision,
    DecoderInfo,
    DraftTree,
    Exchange,
    ExpectedTokens,
    LensView,
    Memory,
    Message,
    MinP,
    Number,
    PassCost,
    Penalty,
    Piece,
    PoolView,
    Positive,
    Ratio,
    SamplingDefaults,
    Seconds,
    Seed,
    Settings,
    Share,
    StepsBefore,
    StepsPerSecond,
    Temperature,
    Text,
    Timing,
    TopK,
    TopP,
    Value,
    WindowView,
)

FORMAT = "ladechat"
VERSION = "4.2"
"""Major.minor. A new kind or key raises the minor. A change of meaning, or a new value where a reader knows all of
them, raises the major: readers refuse a later one, and read earlier ones."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line a reader must take: a `Generate` carries a whole conversation."""

WHERE = signal.SIGUSR1
"""An engine that gets this signal, once its header is out, writes the stacks of its threads to its standard error."""


class ProtocolError(ValueError):
    """A line that is not a message of this protocol, or not one this version can read."""


# --- commands -------------------------------------------------------------------------------------------------------


class Command(Struct, frozen=True, kw_only=True, tag_field="command"):
    """Base of everything that is said to an engine."""


class Generate(Command, frozen=True, tag="generate"):
    """Answer the last message of a conversation. The engine keeps nothing between two of these but a cache, and what
    its decoders have learnt.

    `fresh` decodes as if they had learnt nothing, and has them learn nothing for later, and the cache hold for later
    what it held: so that decoders can be compared on one question, whose answer they would know from each other, in the
    midst of a conversation. `decoder` takes the place of the settings' for this answer alone.

    Where the last message is an answer with its tokens, it goes on from them: `seed` and `first_step` are those with
    which it would have gone on, had it not been stopped.
    """

    turn: Number
    messages: list[Message]
    max_new_tokens: Positive | None = None
    fresh: bool = False
    seed: Seed | None = None
    first_step: StepsBefore = 0
    decoder: str | None = None


class Configure(Command, frozen=True, tag="configure"):
    """Change the settings that are named, between two steps, also of a running generation.

    `None` leaves a setting as it is; so does `parameters` for each parameter that it does not name.
    """

    decoder: str | None = None
    parameters: dict[str, Value] | None = None
    temperature: Temperature | None = None
    top_k: TopK | None = None
    top_p: TopP | None = None
    min_p: MinP | None = None
    repetition_penalty: Penalty | None = None
    seed: Seed | None = None


class Stop(Command, frozen=True, tag="stop"):
    """End the running generation after the step, or the prefill chunk, that is under way."""


class Watch(Command, frozen=True, tag="watch"):
    """What somebody looks at, from the next step on. It takes time, so it is not worked out before this is said.

    `lens` is what `Step.lens` shows.
    """

    lens: bool


class Pace(Command, frozen=True, tag="pace"):
    """How many steps a second an answer takes at most, this one and those after it; None: as many as it can, 0: none.

    With `step`, one step is taken at once, also at a pace of 0.
    """

    steps_per_second: StepsPerSecond | None = None
    step: bool = False


class Shutdown(Command, frozen=True, tag="shutdown"):
    """End the engine, now."""


# --- events ---------------------------------------------------------------------------------------------------------


class Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of everything that an engine says. `seq` counts from 0 without gaps; `t` is seconds since the header."""

    seq: Count = 0
    t: Seconds = 0.0


class Header(Event, frozen=True, tag="header"):
    """The first line: who writes this stream, and with what it was asked to run."""

    format: str
    version: str
    program: str
    model: Text
    tokenizer: str | None
    device: Text
    dtype: Text
    settings: Settings
    seed: Number | None
    started: str


class Loading(Event, frozen=True, tag="loading"):
    """What the engine is doing before it can answer: stage `stage` of `stages`, and how far into it.

    The bytes are those of a download, or of weights being read. A long stage is reported again and again. Where it is
    `stoppable`, a `Stop` ends it, and the model answers without.
    """

    stage: Count
    stages: Count
    doing: Text
    fraction: Share | None = None
    done_bytes: Count | None = None
    total_bytes: Count | None = None
    stoppable: bool = False


class Ready(Event, frozen=True, tag="ready"):
    """The model is loaded: facts about it, as they were found, and the decoders that it can be run with.

    `single_token` says why each of its passes takes one token, in a sentence; None where they take a tree of them.
    `notices` are what the user should know of the checkpoint, in a sentence each: what was left out of its files, or
    found where they do not say it.
    """

    model: Text
    model_type: str
    tokenizer: str
    parameters: Count
    layers: Count
    vocabulary: Count
    context_length: Positive
    device: Text
    dtype: Text
    chat_template: Text
    eos_ids: list[Number]
    load_seconds: Seconds
    settings: Settings
    quantization: Text | None = None
    sampling_defaults: SamplingDefaults | None = None
    decoders: list[DecoderInfo] = []
    single_token: Text | None = None
    memory: Memory | None = None
    notices: list[Text] = []


class SettingsApplied(Event, frozen=True, tag="settings_applied"):
    """The settings from the next step on: as `Configure` wants them, or smaller where the memory was used up."""

    settings: Settings


class HistoryTrimmed(Event, frozen=True, tag="history_trimmed"):
    """Whole turns were left out of the prompt, oldest first, because the conversation outgrew the context."""

    turn: Number
    dropped_turns: Count
    dropped_messages: Count
    tokens_before: Count
    tokens_after: Count
    context_length: Positive


class SystemFolded(Event, frozen=True, tag="system_folded"):
    """The model's chat template has no place for a system message: it stands at the head of a question instead."""

    turn: Number


class TurnStarted(Event, frozen=True, tag="turn_started"):
    """A generation begins: its prompt as it is sent to the model, and how much of that the cache already held.

    The last `continued_tokens` of the prompt are the answer's own, where it goes on.
    """

    turn: Number
    messages: list[Message]
    prompt_ids: list[Count]
    cached_tokens: Count
    max_new_tokens: Count
    settings: Settings
    seed: Count | None = None
    continued_tokens: Count = 0

    @property
    def system(self) -> str:
        """How the model was to behave; "" where nothing was said about that."""
        return next((message.content for message in self.messages if message.role == "system"), "")

    @property
    def goes_on(self) -> bool:
        """Is it an answer that goes on?"""
        return bool(self.messages) and self.messages[-1].role == "assistant"

    @property
    def question(self) -> str:
        """What is answered: the last message of the user's; "" if there is none."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")


class Prefilling(Event, frozen=True, tag="prefilling"):
    """Progress of the prompt through the model, after each chunk."""

    turn: Number
    done_tokens: Count
    total_tokens: Count


class Step(Event, frozen=True, tag="step"):
    """One forward pass and what it yielded. Complete in itself: a panel can be drawn from a single one.

    `origins` says of each token which drafter foresaw it, by the names of `DraftTree.sources`, or "model" for the
    model's own next token.
    """

    turn: Number
    index: Count
    token_ids: list[Count]
    pieces: list[Piece]
    logprobs: list[float]
    origins: list[Piece]
    timing: Timing
    draft: DraftTree | None = None
    window: WindowView | None = None
    pool: PoolView | None = None
    lens: LensView | None = None
    decision: Decision | None = None


class PolicyChoice(Event, frozen=True, tag="policy_choice"):
    """Why the adaptive policy drafts as much as it does: what passes cost, what drafts are expected to bring, and the
    number of slots at which tokens per millisecond are most. Means over the latest steps that drafted.

    Attributes:
        slots: of a pass, the last token's included; 1 is plain decoding.
        tokens: expected of a step with that number of slots.
        window: whether the Jacobi window takes part.
        costs: by slots, rising, the first of one slot.
        expected: by slots, rising, the first of one slot.
    """

    turn: Number
    slots: Ratio
    tokens: Ratio
    window: bool
    costs: list[PassCost]
    expected: list[ExpectedTokens]


FinishReason = Literal["eos", "max_new_tokens", "context", "stopped", "failed"]


class TurnFinished(Event, frozen=True, tag="turn_finished"):
    """A generation ended. `text` is what the pieces of its steps concatenate to."""

    turn: Number
    reason: FinishReason
    text: str
    token_ids: list[Count]
    steps: Count
    prefill_seconds: Seconds
    decode_seconds: Seconds
    estimated_speedup: Ratio | None = None
    memory: Memory | None = None


FailureCode = Literal[
    "bad_command",
    "busy",
    "model_not_found",
    "gated",
    "hub_unreachable",
    "no_safetensors",
    "unsupported_architecture",
    "missing_package",
    "load_failed",
    "message_too_long",
    "chat_template",
    "pool_file",
    "disk_full",
    "out_of_memory",
    "internal",
]


class Failed(Event, frozen=True, tag="failed"):
    """Something could not be done: what and why in `message`, what to do in `hint`. A fatal one ends the engine."""

    code: FailureCode
    message: Text
    hint: Text
    turn: Number | None = None
    fatal: bool = False

    def fails(self, turn: int) -> bool:
        """Whether that turn has failed by it. It gets no answer then, or if it has started, its `TurnFinished` follows.

        Any other failure is a notice: the engine goes on.
        """
        return self.fatal or self.turn == turn


# --- what the user's side adds to a recording -----------------------------------------------------------------------
# Such a line repeats the `seq` of the engine's line before it. With them, a screen follows from the events alone.


class Asked(Event, frozen=True, tag="asked"):
    """The user asked something. The engine begins with it when it can."""

    turn: Number
    text: Text


class ConversationCleared(Event, frozen=True, tag="conversation_cleared"):
    """The user began a new conversation."""


class ConversationOpened(Event, frozen=True, tag="conversation_opened"):
    """The user went on with an earlier conversation, in the place of what was there. `exchanges`: oldest first."""

    exchanges: list[Exchange]


class ExchangeRemoved(Event, frozen=True, tag="exchange_removed"):
    """The user took the last question that was answered out of the conversation, with its answer."""


class ExchangeRestored(Event, frozen=True, tag="exchange_restored"):
    """The question that was to replace this exchange got no answer: it is the last of the conversation again."""

    exchange: Exchange


class SystemPrompt(Event, frozen=True, tag="system_prompt"):
    """The user said how the model should behave, from the next question on; "": nothing is said any more."""

    text: Text


class Closed(Event, frozen=True, tag="closed"):
    """The last line of a recording that was ended on purpose. Without it, the session was interrupted."""
