"""The end of an answer: joined with that of its first part, as it is saved, and what it tells of the passes."""

from collections.abc import Sequence

from msgspec.structs import replace

from ladechat.protocol.events import Step, TurnFinished
from ladechat.protocol.recorded import Exchange


def joined(first: TurnFinished, second: TurnFinished) -> TurnFinished:
    """Return the totals of a continued answer, as far as they are known of both parts; the stop reason is that of the
    second.
    """
    parts = (first, second)
    rated = [(one.estimated_speedup, one.decode_seconds) for one in parts if one.estimated_speedup is not None]
    seconds = sum(took for _, took in rated)
    whole = replace(
        second,
        text=first.text + second.text,
        token_ids=[*first.token_ids, *second.token_ids],
        steps=first.steps + second.steps if first.steps or not first.token_ids else 0,
        prefill_seconds=first.prefill_seconds + second.prefill_seconds,
        decode_seconds=first.decode_seconds + second.decode_seconds,
        untimed_tokens=first.untimed_tokens + second.untimed_tokens,
        estimated_speedup=sum(speedup * took for speedup, took in rated) / seconds if seconds else None,
        server=None,  # a server tells the figures of a part alone
        pass_tokens=[],
    )
    return whole if has_times(first) and has_times(second) else without_times(whole)


def has_times(end: TurnFinished) -> bool:
    """Return whether the time of an answer is known; of no token, and of a server's first step, there is none."""
    return bool(end.decode_seconds) or end.untimed_tokens == len(end.token_ids)


def without_times(end: TurnFinished) -> TurnFinished:
    """Return an end without times of its steps: not all were measured, or some were slowed down for the viewer."""
    return replace(end, decode_seconds=0.0, untimed_tokens=0, estimated_speedup=None)


def to_save(end: TurnFinished) -> TurnFinished:
    """Return an end as it is saved in an exchange, which has its text and its tokens."""
    return replace(end, seq=0, t=0.0, text="", token_ids=[], memory=None, pass_tokens=[])


def end_of(exchange: Exchange, steps: int) -> TurnFinished:
    """Return how a saved answer of so many steps ended. If that was not saved, it has no times, and no reason is known:
    ``eos``.
    """
    unknown = TurnFinished(
        turn=0, reason="eos", text="", token_ids=[], steps=steps, prefill_seconds=0.0, decode_seconds=0.0
    )
    return replace(exchange.ended or unknown, text=exchange.answer, token_ids=exchange.token_ids)


def one_by_one(steps: Sequence[Step], pass_tokens: Sequence[int]) -> list[Step]:
    """Return the steps of an answer with one pass each, numbered anew from the first one's number.

    The time of a step that held several passes is divided among them. Without `pass_tokens`, those of `TurnFinished`,
    or if they do not fit the steps, the steps stay as they are.
    """
    if sum(pass_tokens) != sum(len(step.token_ids) for step in steps):
        return list(steps)
    passes: list[Step] = []
    left = iter(pass_tokens)
    for step in steps:
        ends = [next(left)]
        while ends[-1] < len(step.token_ids):
            ends.append(ends[-1] + next(left))
        for begin, end in zip([0, *ends], ends, strict=False):
            part = _part(step, begin, end, len(ends))
            passes.append(replace(part, index=steps[0].index + len(passes)))
    return passes


def _part(step: Step, begin: int, end: int, parts: int) -> Step:
    """Return a pass of a step: its tokens from `begin` to `end`."""
    timing = replace(
        step.timing,
        step_ms=step.timing.step_ms / parts,
        forward_ms=step.timing.forward_ms / parts,
        slots=end - begin,
        cache_length=step.timing.cache_length + begin,
    )
    return replace(
        step,
        token_ids=step.token_ids[begin:end],
        pieces=step.pieces[begin:end],
        logprobs=step.logprobs[begin:end],
        rivals=step.rivals[begin:end],
        origins=[*step.origins[begin : end - 1], step.origins[-1]],
        timing=timing,
        reasoning=max(0, min(step.reasoning, end) - begin),
        passes=1,
        drafted=step.drafted if parts == 1 else None,
    )
