"""Events: the messages from an engine."""

from typing import Literal

from msgspec import Struct

from ladechat.protocol.values import (
    Count,
    Decision,
    DecoderInfo,
    DraftTree,
    ExpectedTokens,
    LensView,
    Memory,
    Message,
    Milliseconds,
    Number,
    PassCost,
    Piece,
    PoolView,
    Positive,
    Ratio,
    Rivals,
    SamplingDefaults,
    Seconds,
    ServerFigures,
    ServerInfo,
    Settings,
    Share,
    Text,
    Timing,
    TrainedPart,
    WindowView,
)


class Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all messages from an engine. `seq` counts from 0 without gaps; `t` is seconds since the header."""

    seq: Count = 0
    t: Seconds = 0.0


class Header(Event, frozen=True, tag="header"):
    """The first line: the program that writes this stream, and what it was asked to run."""

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
    """The engine is not ready yet: it is at stage `stage` of `stages`, and `fraction` of that is done.

    The bytes are those of a download, or of weights being read. A long stage is reported repeatedly. If it is
    `stoppable`, a `Stop` ends it, and the model answers without its result.
    """

    stage: Count
    stages: Count
    doing: Text
    fraction: Share | None = None
    done_bytes: Count | None = None
    total_bytes: Count | None = None
    stoppable: bool = False


class Ready(Event, frozen=True, tag="ready"):
    """The model is loaded: facts about it, as they were found, and the decoders that can run it.

    `single_token` says, in a sentence, why each of its passes takes only one token; None if they take a tree of them.
    `notices` tell the user about the checkpoint, in a sentence each: parts of its files that were left out, or facts
    that they lack and that were found elsewhere. `trained`: what was trained for this model, at most one of each kind.

    `thinking`: whether its chat template has a switch for that.

    `server`: where another program runs the model. Of such a model some facts are unknown: a text is "" then, a number
    0, and the context length `MOST`.
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
    trained: list[TrainedPart] = []
    server: ServerInfo | None = None
    thinking: bool = False


class SettingsApplied(Event, frozen=True, tag="settings_applied"):
    """The settings from the next step on: as `Configure` requested them, or smaller after the memory was used up."""

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
    """The model's chat template does not support a system message: it is put at the start of a question instead."""

    turn: Number


class TurnStarted(Event, frozen=True, tag="turn_started"):
    """An answer begins: its prompt as it is sent to the model, and how much of it the cache already held.

    The last `continued_tokens` of the prompt are the answer's own, where it is continued.
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
        """The system prompt; "" if there is none."""
        return next((message.content for message in self.messages if message.role == "system"), "")

    @property
    def goes_on(self) -> bool:
        """Whether this is an earlier answer that is continued."""
        return bool(self.messages) and self.messages[-1].role == "assistant"

    @property
    def question(self) -> str:
        """The question to answer: the last message of the user; "" if there is none."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")


class Prefilling(Event, frozen=True, tag="prefilling"):
    """Progress of the prompt through the model, after each chunk."""

    turn: Number
    done_tokens: Count
    total_tokens: Count


class Step(Event, frozen=True, tag="step"):
    """One forward pass and the tokens it yielded. It is complete in itself: a panel can be drawn from a single step.

    `origins` names, for each token, the drafter that foresaw it, as in `DraftTree.sources`, or "model" for the model's
    own next token.

    The first `reasoning` of the tokens are thoughts before the answer, and not part of its text. A server's step may
    hold several `passes`, and says how many tokens it has `drafted` for it, if that is known. `rivals` says for each
    token what was likely in its place, if that is watched; else it is empty.
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
    reasoning: Count = 0
    passes: Positive = 1
    drafted: Count | None = None
    rivals: list[Rivals] = []


class PassCosts(Event, frozen=True, tag="pass_costs"):
    """What passes cost on this machine, by their slots: measured before the first steps of an answer, unless they are
    known already. `costs` is in rising order of slots, the first for one slot.
    """

    turn: Number
    costs: list[PassCost]


class PolicyChoice(Event, frozen=True, tag="policy_choice"):
    """Why the adaptive policy drafts as much as it does: the costs of passes, the tokens that drafts are expected to
    bring, and the number of slots with the most tokens per millisecond. Means over the latest steps that drafted.

    Attributes:
        slots: the slots of a pass, the last token's included; 1 is plain decoding.
        tokens: the expected tokens of a step with that number of slots.
        window: whether the pass has a Jacobi window.
        costs: in rising order of slots, the first for one slot.
        expected: in rising order of slots, the first for one slot.
    """

    turn: Number
    slots: Ratio
    tokens: Ratio
    window: bool
    costs: list[PassCost]
    expected: list[ExpectedTokens]


FinishReason = Literal["eos", "max_new_tokens", "context", "stopped", "failed"]


class TurnFinished(Event, frozen=True, tag="turn_finished"):
    """An answer ended. `text` is the concatenation of the pieces of its steps, without its reasoning.

    `server`: the server's own figures. `pass_tokens`: the tokens of each pass, where a server tells only at the end
    that some of its steps held several passes. `untimed_tokens`: those of the first step, where its time is part of
    `prefill_seconds`, as from a server.
    """

    turn: Number
    reason: FinishReason
    text: str
    token_ids: list[Count]
    steps: Count
    prefill_seconds: Seconds
    decode_seconds: Seconds
    estimated_speedup: Ratio | None = None
    memory: Memory | None = None
    server: ServerFigures | None = None
    pass_tokens: list[Count] = []
    untimed_tokens: Count = 0

    @property
    def tokens_per_second(self) -> float | None:
        """The tokens that came in `decode_seconds`, per second; None if that time is not known."""
        return (len(self.token_ids) - self.untimed_tokens) / self.decode_seconds if self.decode_seconds else None


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
    """Something failed: `message` says what and why, `hint` what to do. A fatal failure ends the engine."""

    code: FailureCode
    message: Text
    hint: Text
    turn: Number | None = None
    fatal: bool = False

    def fails(self, turn: int) -> bool:
        """Return whether that turn has failed by it: it gets no answer, or if it has started, `TurnFinished` follows.

        Any other failure is a notice: the engine continues.
        """
        return self.fatal or self.turn == turn


class Pong(Event, frozen=True, tag="pong"):
    """The answer to a `Ping`. An engine leaves `round_trip_ms` empty: the side that sends the pings measures it, and
    writes the shortest of several into the last one's answer.
    """

    round_trip_ms: Milliseconds | None = None
