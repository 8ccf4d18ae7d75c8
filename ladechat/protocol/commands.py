"""Commands: the messages to an engine."""

from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from ladechat.protocol.values import (
    Message,
    Number,
    Positive,
    SamplingSettings,
    Seed,
    StepsBefore,
    StepsPerSecond,
    ThinkingSwitch,
    Value,
)


class Command(Struct, frozen=True, kw_only=True, tag_field="command"):
    """Base of all messages to an engine."""


class Generate(Command, frozen=True, tag="generate"):
    """Answer the last message of a conversation. Between two of these the engine saves nothing but its KV cache and
    what its decoders have learnt.

    With `fresh`, decoders start with nothing learnt and learn nothing for later, and the cache is restored afterwards.
    So decoders can be compared on one question in the middle of a conversation, without one learning the answer from
    another. `decoder` replaces the decoder of the settings, for this answer alone.

    If the last message is an answer with its tokens, it is continued: `seed` and `first_step` are those with which it
    would have continued if it had not been stopped, and `thinking` is that of the settings with which it began, as its
    prompt depends on it.
    """

    turn: Number
    messages: list[Message]
    max_new_tokens: Positive | None = None
    fresh: bool = False
    seed: Seed | None = None
    first_step: StepsBefore = 0
    decoder: str | None = None
    thinking: ThinkingSwitch | None = None


SamplingChange: Any = msgspec.defstruct(
    "SamplingChange",
    [(name, kind | None, None) for name, kind in get_type_hints(SamplingSettings, include_extras=True).items()],
    frozen=True,
    kw_only=True,
)
"""The sampling settings, each of which may be None."""


class Configure(Command, SamplingChange, frozen=True, tag="configure"):  # type: ignore[misc]  # a class made here
    """Change the settings that have a value, between two steps, also during an answer.

    `None` leaves a setting as it is; so does `parameters` for each parameter that it does not contain.
    """

    decoder: str | None = None
    parameters: dict[str, Value] | None = None


class Stop(Command, frozen=True, tag="stop"):
    """End the running answer after the step, or the prefill chunk, that is under way."""


class Watch(Command, frozen=True, tag="watch"):
    """The details that are shown, from the next step on. They cost time, so they are computed only on request.

    `lens`, `rivals`: whether steps have `Step.lens`, `Step.rivals`. `costs`: whether answers come with `PassCosts`.
    """

    lens: bool = False
    costs: bool = False
    rivals: bool = False


class Pace(Command, frozen=True, tag="pace"):
    """Limits the steps a second of this answer and later ones. None: no limit; 0: no steps.

    With `step`, one step is taken at once, even at a pace of 0.
    """

    steps_per_second: StepsPerSecond | None = None
    step: bool = False


class Ping(Command, frozen=True, tag="ping"):
    """Answer with a `Pong` at once, whatever the engine is doing: how long that takes is the latency of the link."""


class Shutdown(Command, frozen=True, tag="shutdown"):
    """End the engine at once."""
