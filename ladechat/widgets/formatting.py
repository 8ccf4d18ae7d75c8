"""Events, settings, sizes and times as text."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ladechat import catalog
from ladechat.protocol import (
    MOST,
    DecoderInfo,
    Failed,
    HistoryTrimmed,
    Loading,
    Memory,
    Ready,
    SamplingDefaults,
    SamplingSettings,
    ServerFigures,
    ServerInfo,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
)
from ladechat.server_address import parted
from ladechat.widgets.units import unit_of

SYSTEM_CHARACTERS = 200
"""Limit on the characters of a system prompt shown in a notice."""

REASONS = {
    "stopped": "stopped",
    "max_new_tokens": "the token limit was reached",
    "context": "the model's context is full",
    "failed": "broken off",
}
REOPENED = "reopened: how these answers were decoded was not saved"
"""Shown below a conversation of an earlier version instead of the settings of its last answer."""
MEANT = "lessons stop at {}"
GOES_ON = {"stopped": "/continue goes on", "max_new_tokens": "/continue goes on, /limit raises it"}
"""What the user can do about these reasons."""


def describe_finish(
    event: TurnFinished,
    remembered: int = 0,
    *,
    limit_meant: bool = False,
    timed: bool = True,
    server: ServerInfo | None = None,
    may_continue: bool = False,
) -> str:
    """Return the line below an answer: its figures, and the stop reason unless the model ended it.

    Args:
        event: the end of the answer.
        remembered: number of its tokens that were drafted from n-grams of earlier answers.
        limit_meant: whether answers are meant to end at their length limit, as in a lesson.
        timed: whether the times of all its passes count. The speed panel leaves some out, and has another rate then.
        server: the server that has answered, if one has.
        may_continue: whether the answer can be continued where it was cut; then how is said.
    """
    parts = figures(event if timed else replace(event, decode_seconds=0.0), server)
    if remembered:
        parts.append(f"{counted(remembered, 'draft')} remembered from earlier answers")
    if event.reason in REASONS:
        meant = limit_meant and event.reason == "max_new_tokens"
        parts.append(MEANT.format(len(event.token_ids)) if meant else REASONS[event.reason])
    if may_continue and event.token_ids and event.reason in GOES_ON:
        parts.append(GOES_ON[event.reason])
    return " · ".join(parts)


def figures(event: TurnFinished, server: ServerInfo | None = None) -> list[str]:
    """Return the known figures of an answer: tokens, passes, tokens per pass (the paper's S) and tokens per second.

    Those of a server are its own, as far as it tells them, and its drafts are among them.
    """
    if server is not None:
        return _figures_of_server(event, server)
    tokens = len(event.token_ids)
    parts = [counted(tokens, "token")]
    if event.steps:
        parts += [counted(event.steps, "pass"), f"{tokens / event.steps:.2f} tokens a pass"]
    if (rate := event.tokens_per_second) is not None:
        parts.append(f"{rate:.0f} tok/s")
    return parts


def _figures_of_server(event: TurnFinished, server: ServerInfo) -> list[str]:
    reported, unit = event.server or ServerFigures(), unit_of(server)
    tokens = len(event.token_ids) if server.passes else reported.tokens
    steps = event.steps
    parts = [] if tokens is None else [counted(tokens, "token")]
    parts += [counted(steps, unit)] if steps else []
    if server.passes and steps and tokens:
        parts.append(f"{tokens / steps:.2f} tokens a pass")
    if reported.drafted and reported.accepted is not None:
        parts.append(f"{reported.accepted:,} of {counted(reported.drafted, 'draft')} accepted")
    if tokens and event.decode_seconds:
        parts.append(f"{(tokens - event.untimed_tokens) / event.decode_seconds:.0f} tok/s")
    return parts


def cost_in_figures(cost: float) -> str:
    """Return the cost of a pass, in plain ones, with three figures."""
    return f"{cost:.{2 if cost < 10 else 1}f}"


def division(per_pass: float, speedup: float) -> tuple[str, str, str]:
    """Return tokens a pass, the cost of a pass and the speed as they are shown: ``1.45``, ``1.54``, ``0.9``. The third
    is the quotient of the others, as a reader finds who divides them. A pass costs ``per_pass / speedup`` plain ones.
    """
    tokens, cost = f"{per_pass:.2f}", cost_in_figures(per_pass / speedup)
    return tokens, cost, f"{float(tokens) / float(cost):.1f}"


def gain(per_pass: float, speedup: float) -> list[str]:
    """Return the formula of the gain, in versions from long to short: ``1.53 tokens a pass ÷ cost 2.04 ≈ 0.8× plain``.
    See `division` for the arguments.
    """
    tokens, cost, speed = division(per_pass, speedup)
    speed = f"≈ {speed}×"
    return [
        f"{tokens} tokens a pass ÷ {cost} (cost of a pass, in plain ones) {speed} plain decoding",
        f"{tokens} tokens a pass ÷ cost {cost} {speed} plain decoding",
        f"{tokens} tokens a pass ÷ cost {cost} {speed} plain",
        f"{tokens} tokens ÷ cost {cost} {speed} plain",
        f"{tokens} ÷ cost {cost} {speed}",
        f"{tokens} ÷ {cost} {speed}",
    ]


def counted(count: int, name: str) -> str:
    """Return a count with its noun: ``1 pass``, ``2 passes``."""
    return f"{count:,} {plural(count, name)}"


def plural(count: float, name: str) -> str:
    """Return the form of a noun after a number: ``pass`` or ``passes``."""
    return name if count == 1 else name + ("es" if name.endswith(("s", "ch")) else "s")


def is_own(step: Step, token: int) -> bool:
    """Return whether a token of a step is the model's own next one, after accepted drafts."""
    return len(step.token_ids) > 1 and step.origins[token] == "model"


def duration(seconds: float) -> str:
    """Return a measured time as text: "48 ms", from one second on "1.2 s"."""
    milliseconds = round(1000 * seconds)
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{seconds:.1f} s"


def describe_trimming(event: HistoryTrimmed) -> str:
    """Return a notice that says what was left out of the prompt, and why."""
    number = event.dropped_turns
    oldest, its = ("question was", "its answer") if number == 1 else (f"{number} questions were", "their answers")
    if not event.tokens_before:  # a server does not tell
        return f"The conversation outgrew the server's context: the oldest {oldest} left out, with {its}."
    return (
        f"The conversation outgrew the context of {event.context_length:,} tokens: the oldest {oldest} left out of "
        f"this prompt, with {its} ({event.tokens_before:,} → {event.tokens_after:,} tokens)."
    )


SYSTEM_FOLDED = (
    "The model's chat template has no place for a system prompt: the model reads it at the head of the first question."
)


def describe_system(text: str, *, as_before: bool = False) -> str:
    """Return a notice of the system prompt that is active from now on, in one line. `as_before` is whether the last
    question had it already.
    """
    line = " ".join(text.split())
    shown = line if len(line) <= SYSTEM_CHARACTERS else line[: SYSTEM_CHARACTERS - 1] + "…"
    if as_before:
        return f"As before, the model is told: {shown}" if text else "As before, the model has no system prompt."
    return f"From the next question on the model is told: {shown}" if text else "The model has no system prompt now."


def describe_failure(event: Failed) -> str:
    """Return what went wrong, and what to do."""
    return f"{event.message} {event.hint}"


def describe_loading(event: Loading) -> str:
    """Return the loading stage and its progress: a download in bytes, anything else by its stage."""
    if event.done_bytes is not None and event.total_bytes:
        share = percent(event.done_bytes / event.total_bytes)
        return f"{event.doing} · {_in_bytes(event.done_bytes, event.total_bytes)} · {share} · Esc stops"
    share = f" · {percent(event.fraction)}" if event.fraction is not None else ""
    return f"{event.doing}{share} ({event.stage}/{event.stages}) …"


def describe_waiting(questions: int, continuing: bool) -> str:
    """Return what starts once the engine has loaded: the rest of an answer, or the waiting questions."""
    answer = "/continue waits" if continuing else ""
    line = f"{counted(questions, 'question')} wait{'s' * (questions == 1)}" if questions else ""
    return " · ".join(filter(None, (answer, line)))


def describe_model(event: Ready) -> str:
    """Return the model's facts for the status line: size, quantization and context length, as far as they are known."""
    return " · ".join(filter(None, [_size(event) if event.parameters else "", _context(event)]))


def _context(event: Ready) -> str:
    return f"context {event.context_length:,}" if event.context_length < MOST else ""


def describe_link(round_trip_ms: float) -> str:
    """Return the latency of the link to the engine: "link 23 ms", below 10 ms with a digit more."""
    return f"link {_milliseconds(round_trip_ms)}"


def describe_way(round_trip_ms: float | None) -> list[str]:
    """Return a sentence on a race's times where its engine is elsewhere; none where it is here."""
    if round_trip_ms is None:
        return []
    return [f"The engine is a round trip of {_milliseconds(round_trip_ms)} away: times are its own, without the way."]


def _milliseconds(number: float) -> str:
    return f"{number:.{0 if number >= 10 else 1}f} ms"


def describe_memory(memory: Memory | None) -> str:
    """Return the memory that the engine uses, on a GPU or else in RAM, and the share of the KV cache."""
    if memory is None:
        return ""
    used = (
        ("GPU memory", memory.reserved_bytes),
        ("memory", memory.resident_bytes),
        ("memory at most", memory.peak_bytes),
    )
    parts = [f"{name} {_in_bytes(count)}" for name, count in used if count is not None][:1]
    if memory.cache_bytes is not None:
        parts.append(f"cache {_in_bytes(memory.cache_bytes)}")
    return ", ".join(parts)


def name_of(model: str) -> str:
    """Return the short name of a model: the last part of a path or hub id; a server's, if its only model is meant."""
    server, model = parted(model)
    if server is not None and not model:
        return server.partition("://")[2].removesuffix("/v1")
    return "demo model" if model == catalog.BUNDLED else model.rstrip("/").rsplit("/", 1)[-1]


def introduce(event: Ready) -> str:
    """Return an introduction: the model, its device, and its own sampling settings, which are not used."""
    if event.server is not None:
        parts = [f"{event.model} on {event.server.program}", event.server.address, _context(event)]
        return f"{', '.join(filter(None, parts))}."
    facts = (
        f"{name_of(event.model)}: {_size(event)}, context {event.context_length:,}, {event.dtype} on {event.device}."
    )
    if event.single_token is not None:
        facts += f" Plain decoding only: {event.single_token}"
    if event.chat_template != "checkpoint":
        facts += f" Chat format: {event.chat_template}."
    own = event.sampling_defaults
    if own is None or not own.do_sample:
        return facts
    return f"{facts} The checkpoint's own sampling defaults are {_sampling(own)}; here the sliders T and P decide."


def what_is_reported(server: ServerInfo) -> str:
    """Return what a server tells of its decoding, and what it does not, in a sentence or two."""
    if server.passes:
        return "A colour is a forward pass. Not reported: refused drafts, window, pool, tree, pseudo states."
    return "A colour is a chunk of the stream. Not reported: passes, drafts, window, pool, tree, pseudo states."


def _size(event: Ready) -> str:
    millions = event.parameters / 1e6
    size = f"{millions / 1000:.1f}B" if millions >= 1000 else f"{millions:.1f}M"
    return f"{size} parameters" + (f", {event.quantization}" if event.quantization else "")


def _sampling(own: SamplingDefaults) -> str:
    named = (("temperature", own.temperature), ("top-p", own.top_p), ("top-k", own.top_k))
    return ", ".join(f"{name} {value:g}" for name, value in named if value is not None) or "temperature 1"


def percent(share: float) -> str:
    """Return a share, 0 to 1, as text: "48 %"."""
    return f"{share:.0%}".replace("%", " %")


def _in_bytes(count: int, total: int = 0) -> str:
    """Return a number of bytes as text, or "3.1 of 4.2 GB", in the unit that suits the larger number."""
    units = (("GB", 1e9, 1), ("MB", 1e6, 1), ("kB", 1e3, 1))
    unit, size, digits = next((unit for unit in units if max(count, total) >= unit[1]), ("B", 1, 0))
    of = f" of {total / size:.{digits}f}" if total else ""
    return f"{count / size:.{digits}f}{of} {unit}"


def announced(decoders: Sequence[DecoderInfo]) -> Mapping[str, DecoderInfo]:
    """Return the decoders by name: those announced by an engine, or before that, those of this version."""
    return {info.name: info for info in decoders} or catalog.DECODERS


def info_of(name: str, decoders: Mapping[str, DecoderInfo]) -> DecoderInfo:
    """Return what is known of a decoder; for an unknown one, an entry that holds only its name."""
    return decoders.get(name) or DecoderInfo(name=name, label=name.replace("_", " "), help="")


def describe_drawing(event: TurnStarted) -> str:
    """Return how the tokens of an answer are sampled, and the token limit. Settings without effect are left out."""
    return f"{_drawing(event.settings, event.seed)}, at most {event.max_new_tokens:,} tokens"


def describe_reopened(then: Settings | None, decoders: Mapping[str, DecoderInfo], now: Settings | None) -> str:
    """Return the line below a reopened conversation: the settings of its last answer if they are known, and how to take
    them if those of `now` are others. None: they cannot be taken.
    """
    if then is None:
        return REOPENED
    same = now is None or replace(now, parameters={}) == replace(then, parameters={})
    offer = "" if same else " · /as-before takes these settings"
    return f"reopened · last: {describe_settings(then, decoders)}, {_drawing(then, then.seed)}{offer}"


def _drawing(settings: Settings, seed: int | None) -> str:
    usual = SamplingSettings()
    values = {name: getattr(settings, name) for name in usual.__struct_fields__}
    values["seed"] = seed if settings.temperature else None
    del values["temperature"]
    changed = [f"{name.replace('_', '-')} {value}" for name, value in values.items() if value != getattr(usual, name)]
    return ", ".join([f"temperature {settings.temperature:g}", *changed])


def describe_settings(settings: Settings, decoders: Mapping[str, DecoderInfo]) -> str:
    """Return a decoder and its parameters: "lookahead W 5 N 3 G 5". Switches at their default are left out."""
    info = info_of(settings.decoder, decoders)
    parts = [info.label]
    for parameter in info.parameters:
        value = settings.parameters.get(parameter.name, parameter.default)
        if not isinstance(parameter.default, bool):
            parts.append(f"{parameter.label} {value}")
        elif value != parameter.default:
            parts.append(f"{parameter.label} {'on' if value else 'off'}")
    return " ".join(parts)
