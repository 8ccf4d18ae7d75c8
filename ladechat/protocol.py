"""The contract between an engine and whatever watches it.

Commands travel to the engine, events come back: JSON, UTF-8 (escaped to ASCII), one message a line, lines split on the
byte ``\\n`` only. The tag of a command is ``"command"``, of an event ``"event"``; its value is the class name in snake
case. The first event of every stream is its ``Header``, so a stream written to a file is a recording as it stands.

A reader skips kinds and keys that it does not know, and is strict about the types of the fields it does know.
``docs/protocol.md`` describes every field with its unit.
"""

import json
import re
import signal
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

FORMAT = "ladechat"
VERSION = "2.3"
"""Major.minor. A new kind or key raises the minor. A change of meaning, or a new value where a reader knows all of
them, raises the major: readers refuse a later one, and read earlier ones."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line a reader must take: a `Generate` carries a whole conversation."""

WHERE = signal.SIGUSR1
"""A process that gets this signal, once its header is out, writes to its standard error where each thread of it is."""

DecoderName = Literal["lookahead", "prompt_lookup", "jacobi", "autoregressive"]
DECODERS: tuple[str, ...] = get_args(DecoderName)

WINDOW_RANGE = (1, 64)
NGRAM_RANGE = (2, 16)
GUESSES_RANGE = (0, 64)
TEMPERATURE_RANGE = (0.0, 5.0)
PENALTY_RANGE = (0.1, 10.0)

Window = Annotated[int, Meta(ge=WINDOW_RANGE[0], le=WINDOW_RANGE[1])]
Ngram = Annotated[int, Meta(ge=NGRAM_RANGE[0], le=NGRAM_RANGE[1])]
Guesses = Annotated[int, Meta(ge=GUESSES_RANGE[0], le=GUESSES_RANGE[1])]
Temperature = Annotated[float, Meta(ge=TEMPERATURE_RANGE[0], le=TEMPERATURE_RANGE[1])]
TopK = Annotated[int, Meta(ge=0)]
TopP = Annotated[float, Meta(gt=0.0, le=1.0)]
MinP = Annotated[float, Meta(ge=0.0, lt=1.0)]
Penalty = Annotated[float, Meta(ge=PENALTY_RANGE[0], le=PENALTY_RANGE[1])]
Seed = Annotated[int, Meta(ge=0, lt=2**53)]


class ProtocolError(ValueError):
    """A line that is not a message of this protocol, or not one this version can read."""


class Record(Struct, frozen=True, kw_only=True):
    """A value inside a message."""


class Settings(Record, frozen=True):
    """What the decoder runs with: its name, W, N, G, what else feeds the pool, and how tokens are drawn.

    With `auto`, lookahead's W, N and G follow what they yield, and those here are what it goes back to without it.
    A temperature of 0 is greedy: the likeliest token. `top_k` 0, `top_p` 1, `min_p` 0, a penalty of 1 change nothing.
    """

    decoder: DecoderName = "lookahead"
    window: Window = 5
    ngram: Ngram = 3
    guesses: Guesses = 5
    auto: bool = False
    pool_prompt: bool = True
    pool_accepted: bool = True
    temperature: Temperature = 0.0
    top_k: TopK = 0
    top_p: TopP = 1.0
    min_p: MinP = 0.0
    repetition_penalty: Penalty = 1.0
    seed: Seed | None = None


class Message(Record, frozen=True):
    """One turn of the conversation. Past answers carry their token ids, so that the cached prefix matches exactly."""

    role: Literal["system", "user", "assistant"]
    content: str
    token_ids: list[int] | None = None


# --- commands -------------------------------------------------------------------------------------------------------


class Command(Struct, frozen=True, kw_only=True, tag_field="command"):
    """Base of everything that is said to an engine."""


class Generate(Command, frozen=True, tag="generate"):
    """Answer the last message of a conversation. The engine keeps nothing between two of these but a cache."""

    turn: int
    messages: list[Message]
    max_new_tokens: Annotated[int, Meta(ge=1)] | None = None


class Configure(Command, frozen=True, tag="configure"):
    """Change the settings that are named, between two steps, mid-generation too. `None` leaves one as it is."""

    decoder: DecoderName | None = None
    window: Window | None = None
    ngram: Ngram | None = None
    guesses: Guesses | None = None
    auto: bool | None = None
    pool_prompt: bool | None = None
    pool_accepted: bool | None = None
    temperature: Temperature | None = None
    top_k: TopK | None = None
    top_p: TopP | None = None
    min_p: MinP | None = None
    repetition_penalty: Penalty | None = None
    seed: Seed | None = None


class Stop(Command, frozen=True, tag="stop"):
    """End the running generation after the step, or the prefill chunk, that is under way."""


class Shutdown(Command, frozen=True, tag="shutdown"):
    """End the engine, now."""


# --- events ---------------------------------------------------------------------------------------------------------


class Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of everything that an engine says. `seq` counts from 0 without gaps; `t` is seconds since the header."""

    seq: int = 0
    t: float = 0.0


class Header(Event, frozen=True, tag="header"):
    """The first line: who writes this stream, and with what it was asked to run."""

    format: str
    version: str
    program: str
    model: str
    tokenizer: str | None
    device: str
    dtype: str
    settings: Settings
    seed: int | None
    started: str


class Loading(Event, frozen=True, tag="loading"):
    """What the engine is doing before it can answer: stage `stage` of `stages`, and how far into it.

    The bytes are those of a download, or of weights being read. A stage that goes on is told of again and again.
    """

    stage: int
    stages: int
    doing: str
    fraction: float | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None


class SamplingDefaults(Record, frozen=True):
    """How a checkpoint's own generation_config.json would have its tokens drawn. None where it does not say."""

    do_sample: bool
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class Memory(Record, frozen=True):
    """What the engine takes. Each number is None where there is no such thing, or where it is not told.

    `peak_bytes` is told in place of `resident_bytes` by systems that tell only that.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    device_bytes: int | None
    reserved_bytes: int | None
    cache_bytes: int | None


class Ready(Event, frozen=True, tag="ready"):
    """The model is loaded: facts about it, as they were found."""

    model: str
    model_type: str
    tokenizer: str
    parameters: int
    layers: int
    vocabulary: int
    context_length: int
    device: str
    dtype: str
    chat_template: Literal["checkpoint", "llama-2 (built in)"]
    eos_ids: list[int]
    load_seconds: float
    settings: Settings
    quantization: str | None = None
    sampling_defaults: SamplingDefaults | None = None
    plain_only: str | None = None
    memory: Memory | None = None


class SettingsApplied(Event, frozen=True, tag="settings_applied"):
    """The settings from the next step on: as `Configure` wants them, or smaller where the memory was used up."""

    settings: Settings


class HistoryTrimmed(Event, frozen=True, tag="history_trimmed"):
    """Whole turns were left out of the prompt, oldest first, because the conversation outgrew the context."""

    turn: int
    dropped_turns: int
    dropped_messages: int
    tokens_before: int
    tokens_after: int
    context_length: int


class TurnStarted(Event, frozen=True, tag="turn_started"):
    """A generation begins: its prompt as it is sent to the model, and how much of that the cache already held."""

    turn: int
    messages: list[Message]
    prompt_ids: list[int]
    cached_tokens: int
    max_new_tokens: int
    settings: Settings
    seed: int | None = None


class Prefilling(Event, frozen=True, tag="prefilling"):
    """Progress of the prompt through the model, after each chunk."""

    turn: int
    done_tokens: int
    total_tokens: int


Source = Literal["window", "prompt", "accepted", "earlier"]
"""Where an n-gram came from: the window's trajectory, the prompt, text already accepted, or an earlier answer."""

Origin = Literal["window", "prompt", "accepted", "earlier", "model"]
"""Where an emitted token came from: a draft of that source, or the model's own next (bonus) token."""

Verdict = Literal["accepted", "rejected", "untested"]
"""`untested`: an ancestor was refused, so the model never judged this token."""


class DraftTree(Record, frozen=True):
    """The guesses of one step, merged by shared prefix. Node i hangs on node `parents[i]`; -1 is the last token."""

    token_ids: list[int]
    pieces: list[str]
    parents: list[int]
    sources: list[Source]
    verdicts: list[Verdict]


class WindowView(Record, frozen=True):
    """The Jacobi window that went into one pass, and the row that came out.

    Row r, column i stands at position r + i after the last accepted token, which is row 0, column 0.
    """

    rows: list[list[str]]
    row_ids: list[list[int]]
    fresh: list[str]
    fresh_ids: list[int]


class Candidate(Record, frozen=True):
    """One n-gram of the pool that begins with the last accepted token, without that token."""

    token_ids: list[int]
    pieces: list[str]
    source: Source
    tried: bool
    matched: int


class PoolView(Record, frozen=True):
    """The pool at one step: its size, how often it had an answer, and what it holds after the last token.

    `added` counts the n-grams that were new since the step before. `asked` is False where a step of `auto` did not look
    it up; such steps have theirs added together, some steps later, and `after` is the token behind which they began.
    """

    ngrams: int
    lookups: int
    hits: int
    added: int
    after: str
    candidates: list[Candidate]
    asked: bool = True


class Timing(Record, frozen=True):
    """Where the time of one step went, in milliseconds, and how large its pass was."""

    step_ms: float
    forward_ms: float
    slots: int
    cache_length: int
    plain_ms: float | None = None


class Step(Event, frozen=True, tag="step"):
    """One forward pass and what it yielded. Complete in itself: a panel draws from one of these."""

    turn: int
    index: int
    token_ids: list[int]
    pieces: list[str]
    logprobs: list[float]
    origins: list[Origin]
    timing: Timing
    draft: DraftTree | None = None
    window: WindowView | None = None
    pool: PoolView | None = None


class Expectation(Record, frozen=True):
    """What settings are expected to do; `known` is false for what is only hoped for. Plain decoding has W 0 and G 0."""

    window: int
    ngram: int
    guesses: int
    slots: float
    tokens_per_step: float
    tokens_per_second: float
    known: bool


class PassCost(Record, frozen=True):
    """How long a pass of so many slots takes, in milliseconds."""

    slots: int
    ms: float


class Tuned(Event, frozen=True, tag="tuned"):
    """What `auto` has taken from the next step on, and why: when it takes something else, and now and then between.

    `guesses` is the most that a step verifies: how many they are, and how long, is decided step by step.
    """

    turn: int
    window: int
    ngram: int
    guesses: int
    exploring: bool
    expectations: list[Expectation]
    costs: list[PassCost]


FinishReason = Literal["eos", "max_new_tokens", "context", "stopped", "failed"]


class TurnFinished(Event, frozen=True, tag="turn_finished"):
    """A generation ended. `text` is what the pieces of its steps concatenate to."""

    turn: int
    reason: FinishReason
    text: str
    token_ids: list[int]
    steps: int
    prefill_seconds: float
    decode_seconds: float
    estimated_speedup: float | None = None
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
    "pool_file",
    "disk_full",
    "out_of_memory",
    "internal",
]


class Failed(Event, frozen=True, tag="failed"):
    """Something could not be done: what and why in `message`, what to do in `hint`. A fatal one ends the engine."""

    code: FailureCode
    message: str
    hint: str
    turn: int | None = None
    fatal: bool = False


# --- what the user's side adds to a recording -----------------------------------------------------------------------
# Such a line repeats the `seq` of the engine's line before it. With them, a screen follows from the events alone.


class Asked(Event, frozen=True, tag="asked"):
    """The user asked something. The engine begins with it when it can."""

    turn: int
    text: str


class ConversationCleared(Event, frozen=True, tag="conversation_cleared"):
    """The user began a new conversation."""


class Closed(Event, frozen=True, tag="closed"):
    """The last line of a recording that was ended on purpose. Without it, the session was interrupted."""


COMMANDS: dict[str, type[Command]] = {cls.__struct_config__.tag: cls for cls in Command.__subclasses__()}  # type: ignore[misc]  # our tags are names
EVENTS: dict[str, type[Event]] = {cls.__struct_config__.tag: cls for cls in Event.__subclasses__()}  # type: ignore[misc]  # as above


class _CommandTag(Struct):
    kind: str = msgspec.field(name="command")


class _EventTag(Struct):
    kind: str = msgspec.field(name="event")


_decode_command_tag = msgspec.json.Decoder(_CommandTag).decode
_decode_event_tag = msgspec.json.Decoder(_EventTag).decode
_command_decoders = {tag: msgspec.json.Decoder(cls) for tag, cls in COMMANDS.items()}
_event_decoders = {tag: msgspec.json.Decoder(cls) for tag, cls in EVENTS.items()}
_encoder = msgspec.json.Encoder()
_M = TypeVar("_M")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def encode(message: Command | Event) -> bytes:
    """One line, its newline included. ASCII only: no character of a model's text can split a line or upset a reader."""
    line = _encoder.encode(message)
    if not line.isascii():
        # Outside ASCII, JSON has nothing but the insides of strings, where an escape means the character itself.
        line = _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], line.decode()).encode()
    return line + b"\n"


def decode_command(line: bytes) -> Command | None:
    """The command in one line, or None for a kind that this version does not know.

    Raises:
        ProtocolError: the line is not JSON, or not a command, or a field it knows has another type or is out of range.
    """
    return _decode(line, _decode_command_tag, _command_decoders)


def decode_event(line: bytes) -> Event | None:
    """The event in one line, or None for a kind that this version does not know.

    Raises:
        ProtocolError: the line is not JSON, or not an event, or a field it knows has another type.
    """
    return _decode(line, _decode_event_tag, _event_decoders)


def _decode(
    line: bytes,
    decode_tag: Callable[[bytes], _CommandTag | _EventTag],
    decoders: Mapping[str, msgspec.json.Decoder[_M]],
) -> _M | None:
    try:
        decoder = decoders.get(decode_tag(line).kind)
        return None if decoder is None else decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(error)) from error
