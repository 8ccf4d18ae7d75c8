"""The steps of a server that has reported its passes only at the end of an answer, one by one."""

from collections.abc import Sequence

from msgspec.structs import replace

from ladechat.protocol.events import Step


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
