"""How an answer ended, as it is saved with the answer: its reason and figures, without what the answer has already."""

from msgspec.structs import replace

from ladechat.protocol.events import TurnFinished
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
